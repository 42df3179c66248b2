"""From Python data to the batches that `fit` reads."""

import math
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
        ValueError: if a text holds half of a surrogate pair.
    """
    if hasattr(texts, "columns"):
        raise TypeError(f"{name} are a table ({type(texts).__name__}): pass one column of it")
    if hasattr(texts, "numpy"):
        texts = texts.numpy()
    if isinstance(texts, str | bytes):
        raise TypeError(f"{name} are one string: expected a list of strings")
    texts = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    for row, text in enumerate(texts):
        if not isinstance(text, str | bytes):
            raise TypeError(
                f"{name}[{row}] is {text!r} of type {type(text).__name__}; expected a str"
            )
        if isinstance(text, str) and not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise ValueError(f"{name}[{row}] can't be written as UTF-8: {error}") from error
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


class ArrayBatches(keras.utils.PyDataset):
    """Batches of id arrays for any backend.

    Args:
        x: the model's inputs by name, arrays of N rows.
        labels: N labels, or None.
        weights: N weights, or None.
        batch_size: rows of a batch; the last may be smaller.
        shuffle: whether to draw a new order every epoch.
        seed: seed of the orders.

    Raises:
        ValueError: if the columns differ in length.
    """

    def __init__(self, x, labels, weights, batch_size, shuffle, seed):
        super().__init__()
        sizes = {name: len(value) for name, value in x.items()}
        sizes |= {"labels": len(labels)} if labels is not None else {}
        sizes |= {"sample weights": len(weights)} if weights is not None else {}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"columns of different length: {sizes}")
        self.x, self.labels, self.weights = x, labels, weights
        self.batch_size = batch_size
        self.size = next(iter(sizes.values()))
        self.random = np.random.default_rng(seed) if shuffle else None
        self.order = np.arange(self.size)
        self.on_epoch_end()

    def __len__(self):
        return math.ceil(self.size / self.batch_size)

    def __getitem__(self, index):
        rows = self.order[index * self.batch_size : (index + 1) * self.batch_size]
        extra = [None if v is None else v[rows] for v in (self.labels, self.weights)]
        x = {name: value[rows] for name, value in self.x.items()}
        return keras.utils.pack_x_y_sample_weight(x, *extra)

    def on_epoch_end(self):
        if self.random is not None:
            self.random.shuffle(self.order)
