"""Rows of ids stored without padding: memory depends on tokens, not on `sequence_length`."""

from contextlib import contextmanager

import keras
import numpy as np


def is_ragged(value) -> bool:
    """Whether a value is a `tf.RaggedTensor`."""
    return hasattr(value, "row_splits")


@contextmanager
def host_only():
    """A scope, also a decorator, for threads: TensorFlow's operations in it run on the CPU.

    Operations of several Python threads on one GPU can read each other's shapes, which gives wrong
    values or errors (tensorflow/tensorflow#123980).
    """
    import tensorflow as tf

    with tf.device("CPU"):
        yield


def count(column) -> int:
    """The number of rows of a column."""
    return int(column.shape[0]) if is_ragged(column) else len(column)


def without_padding(value, padding_mask):
    """Removes padding from rows [R, T] or [N, C, T]: a `tf.RaggedTensor` [..., tokens]."""
    import tensorflow as tf

    with tf.device("CPU"):
        length = tf.shape(value)[-1]
        real = tf.reshape(tf.cast(padding_mask, tf.bool), [-1, length])
        rows = tf.ragged.boolean_mask(tf.reshape(value, [-1, length]), real)
        if len(value.shape) == 3:
            texts = value.shape[1] or tf.shape(value, tf.int64)[1]
            rows = tf.RaggedTensor.from_uniform_row_length(rows, texts)
        return rows


def joined(parts: list):
    """Concatenates a column of several chunks: arrays, or ragged rows."""
    import tensorflow as tf

    if not is_ragged(parts[0]):
        return np.concatenate([np.asarray(part) for part in parts])
    if len(parts) == 1:
        return parts[0]
    with tf.device("CPU"):
        texts = parts[0].uniform_row_length
        if texts is not None:  # [N, C, tokens]
            rows = joined([part.values for part in parts])
            return tf.RaggedTensor.from_uniform_row_length(rows, texts)
        return tf.concat(parts, axis=0)


def joined_rows(parts: list[dict]) -> dict:
    """Concatenates rows of ids by name of several chunks."""
    return {name: joined([part[name] for part in parts]) for name in parts[0]}


def dense(column, rows, width: int, fill: int = 0):
    """Gathers rows [R] of a column, a tensor [N, ...]; those of a `tf.RaggedTensor`
    [N, ..., tokens] are padded to T = `width` with `fill`."""
    if isinstance(column, np.ndarray):
        return column[rows]
    import tensorflow as tf

    if not is_ragged(column):
        return tf.gather(column, rows)
    texts = column.shape[1]
    if texts is not None:  # [N, C, tokens], which a gather forgets
        places = tf.cast(rows, tf.int32)[:, None] * texts + tf.range(texts)
        padded = dense(column.values, tf.reshape(places, [-1]), width, fill)
        padded = tf.reshape(padded, [-1, texts, width])
        padded.set_shape([rows.shape[0], texts, width])
        return padded
    values = tf.gather(column, rows)
    padded = values.to_tensor(fill, shape=[None] * (values.shape.rank - 1) + [width])
    padded.set_shape([rows.shape[0], *padded.shape[1:]])  # XLA needs it
    return padded


def dense_parts(parts, rows, width: int) -> list:
    """`dense` for all columns of (x, labels, weights); padding has the ignored label -1."""
    return [
        None
        if part is None
        else keras.tree.map_structure(lambda c, fill=fill: dense(c, rows, width, fill), part)
        for part, fill in zip(parts, (0, -1, 0), strict=False)
    ]


def constant(column):
    """A tensor on the host, where `tf.data` reads it; ragged rows are unchanged."""
    import tensorflow as tf

    if is_ragged(column):
        return column
    with tf.device("CPU"):
        return tf.constant(column)
