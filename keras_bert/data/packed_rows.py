"""Sequence packing: best-fit packing of lengths, and batches of packed rows.

`keras_bert.layers.packing` defines a packed row.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from keras_bert.data.ragged import constant, count, dense_parts, is_ragged
from keras_bert.data.sources import RowSource

# Number of texts that are packed together. Only the last rows of a block stay half empty; smaller
# blocks fill rows less well, larger ones separate more neighbours.
BLOCK = 8192


def pack_lengths(
    lengths: Sequence[int],
    row_length: int,
    most: int | None = None,
    block: int = BLOCK,
    order: np.ndarray | None = None,
) -> np.ndarray:
    """Packs texts into rows by best fit.

    Best-fit decreasing, the longest text of a block first, needs at most 11/9 of the optimal number
    of rows (Johnson 1973); with the lengths of real texts, many of them short, hardly any cell
    stays empty. It puts texts of like length together, though: a batch of such rows has few long
    texts or many short ones, and its mean loss weighs a long one more. With an `order`, a random
    one or that of the texts, each row is a sample of all texts.

    Args:
        lengths: N integers from 0 to `row_length`.
        row_length: number of tokens in a row.
        most: maximum number of texts in a row; by default as many as fit.
        block: number of texts that are packed together.
        order: int [N], the texts in the order in which they are put into rows; by default blocks
            are of neighbours, each from the longest text to the shortest.

    Returns:
        int32 [rows, S]: the indices of the texts in each row, padded with -1. Each text is in
        exactly one row. S is the maximum number of texts in a row.

    Raises:
        ValueError: if a length is out of range.
    """
    lengths = np.asarray(lengths)
    wrong = np.flatnonzero((lengths < 0) | (lengths > row_length))
    if wrong.size:
        first = wrong[0]
        raise ValueError(
            f"text {first} of {lengths[first]} tokens: expected 0 to {row_length}, the length of a "
            "row"
        )
    rows = []
    for start in range(0, len(lengths), block):
        if order is None:
            texts = start + np.argsort(-lengths[start : start + block], kind="stable")
        else:
            texts = order[start : start + block]
        rows += _best_fit(texts.tolist(), lengths[texts].tolist(), row_length, most or row_length)
    members = np.full((len(rows), max(map(len, rows), default=1)), -1, "int32")
    for row, texts in zip(members, rows, strict=True):
        row[: len(texts)] = texts
    return members


def _best_fit(texts, lengths, row_length, most) -> list[list[int]]:
    """Puts each text into the fullest row that has room for it."""
    rows, open_rows = [], [[] for _ in range(row_length + 1)]  # by remaining space
    rooms = 0  # bit n is set if there is an open row with space for n
    for text, length in zip(texts, lengths, strict=True):
        fitting = rooms >> length
        if fitting:
            room = length + (fitting & -fitting).bit_length() - 1
            row = open_rows[room].pop()
            if not open_rows[room]:
                rooms ^= 1 << room
        else:
            row, room = [], row_length
            rows.append(row)
        row.append(text)
        room -= length
        if len(row) < most:
            open_rows[room].append(row)
            rooms |= 1 << room
    return rows


def packed_from(lengths, text_length, row_length: int):
    """Computes the token of each cell of packed rows; inside `tf.data`.

    Args:
        lengths: int32 [R, S], number of tokens of each text of a row, 0 for none.
        text_length: T, the width of the texts' own rows.
        row_length: P.

    Returns:
        int32 [R, P], see `keras_bert.layers.packing`.
    """
    import tensorflow as tf

    ends = tf.cumsum(lengths, axis=1)
    place = tf.broadcast_to(tf.range(row_length), [tf.shape(lengths)[0], row_length])
    slot = tf.searchsorted(ends, place, side="right")  # [R, P], S past the last text
    held = slot < tf.shape(lengths)[1]
    slot = tf.where(held, slot, 0)
    starts = tf.gather(ends - lengths, slot, batch_dims=1)
    return tf.where(held, slot * text_length + place - starts, -1)


def lay_into_rows(batch: dict, places: int) -> dict:
    """Packs masked texts into rows, inside `tf.data`, so that heads operate on rows too.

    Args:
        batch: a batch of R * S texts (see `contract.py`), and `packed_from` int32 [R, P].
        places: maximum number of masked tokens in the texts of a row.

    Returns:
        A batch of R rows of P tokens, with `position_ids`, `sequence_ids` and `places` slots for
        masked tokens, with weight 0 in unused ones.
    """
    import tensorflow as tf

    cells = batch["packed_from"]
    rows, text_length = tf.shape(cells)[0], batch["token_ids"].shape[1]
    held, cells = cells >= 0, tf.maximum(cells, 0)

    def by_row(column):
        return tf.reshape(column, [rows, -1])

    def lay(ids):
        return tf.where(held, tf.gather(by_row(ids), cells, batch_dims=1), 0)

    starts = tf.cumsum(by_row(tf.reduce_sum(batch["padding_mask"], axis=1)), 1, exclusive=True)
    masked = batch["mask_weights"] != 0
    positions = batch["mask_positions"] + tf.reshape(starts, [-1, 1])
    masks = {
        "mask_positions": tf.where(masked, positions, 0),
        "mask_ids": tf.where(masked, batch["mask_ids"], 0),
        "mask_weights": batch["mask_weights"],
    }
    first = tf.argsort(by_row(tf.cast(~masked, tf.int32)), axis=1, stable=True)[:, :places]
    masks = {name: tf.gather(by_row(v), first, batch_dims=1) for name, v in masks.items()}
    return masks | {
        "token_ids": lay(batch["token_ids"]),
        "segment_ids": lay(batch["segment_ids"]),
        "padding_mask": tf.cast(held, tf.int32),
        "position_ids": cells % text_length,
        "sequence_ids": cells // text_length,
    }


class PackedSource(RowSource):
    """A `RowSource` with several texts packed into a row of the encoder.

    A batch has R rows with S slots for texts. It has the labels and weights of R * S texts, with
    weight 0 in empty slots. Texts that share a row stay together; the order of the rows is shuffled
    anew in every pass.

    Args:
        x: a dict of arrays [N, T], or of `tf.RaggedTensor` [N, tokens] without padding.
        labels, weights, preprocess, shuffle, seed, whole: as in `RowSource`.
        batch_size: number of rows R in a batch.
        members: from `pack_lengths`.
        row_length: number of tokens P in a row.
        text_length: T, to which ragged rows are padded, so that all batches have one shape.
    """

    def __init__(
        self,
        x,
        labels,
        weights,
        batch_size: int,
        preprocess: Callable,
        members: np.ndarray,
        row_length: int,
        shuffle: bool,
        seed: int,
        whole: bool,
        text_length: int,
    ):
        if labels is not None and weights is None:
            weights = np.ones(count(x["token_ids"]), "float32")
        super().__init__(
            x, labels, weights, batch_size, preprocess, shuffle, seed, whole, text_length
        )
        self.members, self._row_length = members, row_length
        self._count = len(members)  # the batches are of rows, in each of which are several texts
        self.steps = math.ceil(self._count / batch_size)
        self.texts_per_step = self.size / self.steps

    @property
    def lengths(self) -> np.ndarray:
        """The number of tokens of each text, int [N]."""
        mask = self._rows[0]["padding_mask"]
        return np.asarray(mask.row_lengths() if is_ragged(mask) else mask.sum(axis=1))

    def most_in_a_row(self, numbers: np.ndarray) -> int:
        """The maximum over rows of the sum of the numbers [N] of a row's texts."""
        return int(np.where(self.members < 0, 0, numbers[self.members]).sum(axis=1).max())

    def facts(self) -> dict:
        """See `RowSource.facts`."""
        return {"packed rows": self._count} | super().facts()

    def in_order(self, output: np.ndarray) -> np.ndarray:
        """Reorders the outputs [steps * R * S, ...] of an unshuffled pass by text, [N, ...]."""
        flat = self.members.reshape(-1)
        result = np.empty((self.size, *output.shape[1:]), output.dtype)
        result[flat[flat >= 0]] = output[: len(flat)][flat >= 0]
        return result

    def _batches(self, indices):
        self._places = constant(self.members)  # outside of the map, as the table
        return super()._batches(indices)

    def _batch_of(self, table, rows, real) -> tuple:
        import tensorflow as tf

        if not self._whole:
            rows, real = tf.boolean_mask(rows, real), True
        members = tf.where(tf.reshape(real, [-1, 1]), tf.gather(self._places, rows), -1)
        return packed_batch(table, members, self._width, self._row_length)


def packed_batch(table, members, text_length: int, row_length: int) -> tuple:
    """The texts of packed rows, inside `tf.data`.

    Args:
        table: (x,) or (x, labels, weights) of all texts.
        members: int32 [R, S], the texts of each row, -1 for none.
        text_length: T, to which ragged texts are padded.
        row_length: P.

    Returns:
        The same parts of R * S texts; x has `packed_from` too.
    """
    import tensorflow as tf

    texts = tf.reshape(members, [-1])
    there = texts >= 0
    x, *rest = dense_parts(table, tf.maximum(texts, 0), text_length)
    if rest:
        weights = rest[1]
        used = tf.reshape(there, [-1] + [1] * (weights.shape.rank - 1))
        rest[1] = weights * tf.cast(used, weights.dtype)
    # The texts of empty slots get no tokens.
    real = tf.cast(x["padding_mask"], tf.bool) & there[:, None]
    mask = tf.cast(real, tf.int32)  # the sum in a narrower dtype would overflow
    lengths = tf.reshape(tf.reduce_sum(mask, axis=1), tf.shape(members))
    cells = packed_from(lengths, tf.shape(mask)[1], row_length)
    return {**x, "padding_mask": mask, "packed_from": cells}, *rest


def packable_lengths(padding_mask: np.ndarray) -> np.ndarray | None:
    """The number of tokens of each row [N, T], or None if a row has tokens after padding."""
    real = np.asarray(padding_mask) != 0
    lengths = real.sum(axis=1)
    return lengths if (real == (np.arange(real.shape[1]) < lengths[:, None])).all() else None
