"""From Python data to the batches that `fit` reads."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np


def check_texts(texts: Any, name: str = "texts") -> list:
    """Makes a list of strings of what a user passes for a column of texts.

    Args:
        texts: list, tuple, NumPy array or pandas column of str or bytes.
        name: what to call it in an error.

    Returns:
        A list of str or bytes.

    Raises:
        TypeError: if an item is not a text, such as the NaN of an empty cell.
    """
    if hasattr(texts, "numpy"):
        texts = texts.numpy()
    texts = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    for row, text in enumerate(texts):
        if not isinstance(text, str | bytes):
            raise TypeError(
                f"{name}[{row}] is {text!r} of type {type(text).__name__}; expected a str"
            )
    return texts


def text_columns(x: Any) -> tuple[list, ...]:
    """Splits texts, or a pair of columns, into columns of equal length.

    Args:
        x: a column of texts, or a tuple of two columns.

    Returns:
        A tuple of one or two lists.

    Raises:
        TypeError: if an item is not a text, or a tuple holds plain strings.
        ValueError: if the columns differ in length, or there are more than two.
    """
    if not isinstance(x, tuple):
        return (check_texts(x),)
    if any(isinstance(column, str | bytes) for column in x):
        raise TypeError(
            "a tuple of strings is ambiguous: expected a list of texts, or a tuple of two lists "
            "(firsts, seconds); for one pair write ([first], [second])"
        )
    if len(x) != 2:
        raise ValueError(f"expected (firsts, seconds), got a tuple of {len(x)}")
    columns = check_texts(x[0], "firsts"), check_texts(x[1], "seconds")
    if len(columns[0]) != len(columns[1]):
        raise ValueError(f"{len(columns[0])} first texts but {len(columns[1])} second texts")
    return columns


def text_dataset(
    columns: tuple[list, ...],
    labels: np.ndarray | None,
    sample_weight: np.ndarray | None,
    batch_size: int,
    preprocess: Callable,
    shuffle: bool = False,
    seed: int = 0,
):
    """Batches of model input, tokenized on the host by parallel workers.

    Args:
        columns: one or two columns of N texts.
        labels: [N, ...] or None.
        sample_weight: [N] or None.
        batch_size: rows of a batch; the last may be smaller.
        preprocess: maps (x, y, sample_weight) to what the model reads.
        shuffle: whether to draw a new order every epoch.
        seed: seed of the orders.

    Returns:
        A `tf.data.Dataset` of known size.

    Raises:
        ValueError: if there are no rows, or labels or weights of another number.
    """
    import tensorflow as tf

    size = len(columns[0])
    if size == 0:
        raise ValueError("there are no texts")
    for name, values in (("labels", labels), ("sample weights", sample_weight)):
        if values is not None and len(values) != size:
            raise ValueError(f"{size} texts but {len(values)} {name}")
    x = tuple(tf.constant(column) for column in columns)
    dataset = tf.data.Dataset.from_tensor_slices(
        keras.utils.pack_x_y_sample_weight(x if len(x) > 1 else x[0], labels, sample_weight)
    )
    if shuffle:
        dataset = dataset.shuffle(size, seed=seed, reshuffle_each_iteration=True)
    return map_batches(dataset.batch(batch_size), preprocess)


def map_batches(dataset, preprocess: Callable):
    """Applies `preprocess` to every batch, in parallel and in order.

    Args:
        dataset: batches of x, (x, y) or (x, y, sample_weight).
        preprocess: maps x, y, sample_weight to what the model reads.
    """
    import tensorflow as tf

    # A batch of x alone arrives as one argument, (x, y) as two, and so on.
    return dataset.map(
        lambda *batch: preprocess(*batch), num_parallel_calls=tf.data.AUTOTUNE
    ).prefetch(tf.data.AUTOTUNE)
