"""Predictions for rows of which those of like length share a batch: little goes into padding."""

from collections.abc import Callable
from functools import partial

import keras
import numpy as np

from keras_bert.data.packing import PackedSource
from keras_bert.data.ragged import dense, is_ragged
from keras_bert.tasks.packing import may_pack
from keras_bert.text.packing import bucket_lengths


def predict_by_length(task, x, columns, batch_size: int | None, kwargs: dict):
    """Does the work of `BertTask.predict` for texts or ids in memory.

    Args:
        task: a compiled task.
        x: as there.
        columns: the columns of x if they are texts; else None, and rows stay in their order.
        batch_size: as there.
        kwargs: as there.

    Returns:
        The outputs, in the order of the rows.
    """
    order = None
    if columns is not None and not may_pack(task):
        lengths = [sum(len(text) for text in row) for row in zip(*columns, strict=True)]
        order = np.argsort(lengths, kind="stable")
        columns = tuple([column[i] for i in order] for column in columns)
        x = columns if len(columns) > 1 else columns[0]
    source = task._source(x, batch_size=batch_size, labelled=False)
    outputs = task.predict_batches(source.one_pass(), kwargs)
    if isinstance(source, PackedSource):
        return keras.tree.map_structure(source.in_order, outputs)
    # The last batch may have been filled up.
    outputs = keras.tree.map_structure(lambda v: v[: source.size], outputs)
    if order is None:
        return outputs
    return keras.tree.map_structure(lambda v: v[np.argsort(order)], outputs)


def by_length(predict: Callable, ids: dict, by_token: bool = True, longest: int | None = None):
    """Gives a prediction for rows of ids that are in memory, whatever their number.

    Args:
        predict: gives the outputs of rows of one length.
        ids: int32 arrays of R rows, whose last axis is T; or `tf.RaggedTensor` without padding.
        by_token: whether an axis 1 of outputs that is as long as a cut row is one of tokens, to
            be filled up with zeros to T.
        longest: T of ragged rows.

    Returns:
        The outputs, in the order of the rows.

    Raises:
        ValueError: if there are no rows.
    """
    mask = ids["padding_mask"]
    rows, length = mask.shape[0], mask.shape[-1] or longest
    if not rows:
        raise ValueError("there are no rows")
    if is_ragged(mask):
        used = mask.row_lengths(axis=mask.shape.rank - 1)
        used = np.asarray(getattr(used, "flat_values", used))
    else:
        used = (mask != 0) * np.arange(1, length + 1)  # by the last token
    used = used.reshape(rows, -1).max(axis=1, initial=1)  # several texts may share a row
    ladder = bucket_lengths(length)
    place = np.searchsorted(ladder, used)
    parts, order = [], []
    for number in np.unique(place):
        chosen, width = np.flatnonzero(place == number), ladder[number]
        part = {name: np.asarray(dense(v, chosen, width))[..., :width] for name, v in ids.items()}
        output = predict(part)
        if by_token:
            output = keras.tree.map_structure(partial(_filled, width, length), output)
        parts.append(output)
        order.append(chosen)
    back = np.argsort(np.concatenate(order))
    return keras.tree.map_structure(lambda *v: np.concatenate(v)[back], *parts)


def _filled(width: int, length: int, value: np.ndarray) -> np.ndarray:
    """Fills axis 1 up from the cut length to the whole, where it is one of tokens."""
    if value.ndim < 2 or value.shape[1] != width or width == length:
        return value
    room = [(0, 0), (0, length - width)] + [(0, 0)] * (value.ndim - 2)
    return np.pad(value, room)
