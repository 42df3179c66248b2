"""Batches of a table that is read in pieces, in an order that is a function of seed and epoch.

In each epoch the pieces get a new order, and the rows in that order are divided into lanes of equal
size. A batch has as many rows from each lane, which are shuffled within a window of the lane. So
every batch has rows from many places of the table, a run may start at any batch without the ones
before, and workers that train together read lanes of their own, and see the batches of one worker.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from keras_bert.data.packed_rows import packed_batch
from keras_bert.data.ragged import count, is_ragged
from keras_bert.data.sources import batch_of, finish
from keras_bert.data.table_rows import Index

# The number of lanes divides the batch size and this number, whose divisors are usual numbers of
# workers.
LANES = 48
# Limits of a window, all lanes together; what of it is in memory is a small multiple.
WINDOW_ROWS = 32768
WINDOW_CELLS = 1 << 22
WINDOW_CHARACTERS = 1 << 25
_ORDER, _ROWS = range(2)  # purposes of a draw


class Packing(NamedTuple):
    """How texts are packed into rows of the encoder.

    Attributes:
        slots: S, places for texts in a row.
        row_length: P, tokens of a row.
    """

    slots: int
    row_length: int


class TableSource:
    """A source of batches, see `keras_bert.data.sources`, of a table that is not in memory.

    Args:
        index: the pieces.
        load: reads rows of pieces: takes lists of (piece, first row, row behind the last), each
            with a dict for what is kept from call to call; and the order of all these rows, int
            [N]. Returns [x, labels, weights] of rows of the network, labels and weights may be
            None; with `packing` those of texts, and members, int32 [N, S], the texts of each row.
        facts: what a resumed run compares.
        batch_size, preprocess, shuffle, seed, whole, width: as `RowSource`.
        packing: None for a row of its own for each text.
    """

    def __init__(
        self,
        index: Index,
        load: Callable,
        facts: dict,
        batch_size: int,
        preprocess: Callable,
        shuffle: bool,
        seed: int,
        whole: bool,
        width: int,
        packing: Packing | None = None,
    ):
        self.size = index.size
        self.steps = math.ceil(self.size / batch_size)
        self.batch_size, self.packing = batch_size, packing
        examples = int(index.examples.sum())
        if packing:
            self.texts_per_step = examples / self.steps
        self._index, self._load = index, load
        self._preprocess, self._shuffle, self._seed = preprocess, shuffle, seed % 2**64
        self._whole, self._width = whole, width
        self.lanes = math.gcd(batch_size, LANES) if shuffle else 1
        by_row = examples / self.size
        window = min(
            WINDOW_ROWS / by_row,
            WINDOW_CELLS / (packing.row_length if packing else width),
            WINDOW_CHARACTERS / (by_row * index.characters / examples),
        )
        self._together = max(1, int(window) // batch_size)  # batches of a window
        self._spec = None
        self._facts = facts | {
            "rows": self.size,
            "batch_size": batch_size,
            "shuffle": shuffle,
            "seed": seed,
            "packing": packing and list(packing),
            "batches of a window": self._together,
            "texts, labels and weights": f"{index.checksum:032x}",
        }

    def facts(self) -> dict:
        """A fingerprint of the batches, for comparison with an interrupted run."""
        return self._facts

    def reads_apart(self, workers: int) -> bool:
        """Whether so many workers each read a part of the table only."""
        return self.lanes % workers == 0

    def stream(self, first: int = 0, share: tuple[int, int, int] = (0, 1, 1)):
        """An endless `tf.data.Dataset` of batches, starting at batch `first` of the first pass.

        Args:
            first: index of the batch.
            share: (index of a worker, number of workers, replicas of this worker), to get the part
                of each batch that this worker trains on, divided among its replicas.
        """
        import tensorflow as tf

        endless = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
        return self._batches(first, None, share).apply(endless)

    def one_pass(self):
        """A `tf.data.Dataset` of the first pass, of known size."""
        import tensorflow as tf

        known = tf.data.experimental.assert_cardinality(self.steps)
        return self._batches(0, 1, (0, 1, 1)).apply(known)

    # === The order ===

    def _sequence(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """(pieces in the order of an epoch, the number of rows up to the end of each)."""
        firsts = np.flatnonzero(np.diff(self._index.segment, prepend=-1))
        lengths = np.diff(firsts, append=len(self._index.segment))
        if self._shuffle:
            order = np.random.default_rng([_ORDER, self._seed, epoch]).permutation(len(firsts))
            firsts, lengths = firsts[order], lengths[order]
        begins = np.cumsum(lengths) - lengths
        pieces = np.arange(len(self._index.segment)) + np.repeat(firsts - begins, lengths)
        return pieces, np.cumsum(self._index.rows[pieces])

    def _windows(self, first: int, epochs: int | None, lanes: range) -> Iterator[tuple]:
        """Yields (what `load` returns, rows of each batch, int32 [k, rows]); -1 is filling."""
        epoch, batch = divmod(first, self.steps)
        kept: dict[int, dict] = {lane: {} for lane in lanes}
        while epochs is None or epoch < epochs:
            pieces, ends = self._sequence(epoch)
            for window in range(batch // self._together, math.ceil(self.steps / self._together)):
                begin = window * self._together
                count = min(self._together, self.steps - begin)
                table, rows = self._window(epoch, window, count, lanes, pieces, ends, kept)
                yield table, rows[max(batch - begin, 0) :]
            epoch, batch = epoch + 1, 0

    def _window(self, epoch, window, count, lanes, pieces, ends, kept) -> tuple:
        each = self.batch_size // self.lanes  # rows of a lane in a batch
        places = np.full((len(lanes), count * each), -1, "int32")
        parts, orders, size = [], [], 0
        for number, lane in enumerate(lanes):
            begin = lane * self.size // self.lanes + window * self._together * each
            end = min(begin + count * each, (lane + 1) * self.size // self.lanes)
            own = max(end - begin, 0)
            order = np.arange(own)
            if self._shuffle:
                seed = [_ROWS, self._seed, epoch, lane, window]
                order = np.random.default_rng(seed).permutation(own)
            if own:
                parts.append((self._ranges(pieces, ends, begin, end), kept[lane]))
                orders.append(size + order)
            places[number, :own] = size + np.arange(own)
            size += own
        if not size:  # none of these lanes has a row in the last batch, which is filled up
            parts, orders = [([(int(pieces[0]), 0, 1)], {})], [np.arange(1)]
        table = self._load(parts, np.concatenate(orders))
        by_lane = places.reshape(len(lanes), count, each)
        return table, by_lane.swapaxes(0, 1).reshape(count, -1)

    def _ranges(self, pieces, ends, begin: int, end: int) -> list[tuple[int, int, int]]:
        """Rows of an epoch, as (piece, first row, row behind the last)."""
        found = []
        place = int(np.searchsorted(ends, begin, side="right"))
        while begin < end:
            start = int(ends[place] - self._index.rows[pieces[place]])
            until = min(end, int(ends[place]))
            found.append((int(pieces[place]), begin - start, until - start))
            begin, place = until, place + 1
        return found

    # === Batches ===

    def _batches(self, first: int, epochs: int | None, share: tuple[int, int, int]):
        import tensorflow as tf

        worker, workers, replicas = share
        if self.reads_apart(workers):
            own, cut = self.lanes // workers, slice(None)
            lanes = range(worker * own, (worker + 1) * own)
        else:
            own = self.batch_size // workers
            lanes, cut = range(self.lanes), slice(worker * own, (worker + 1) * own)
        flat, spec = self._specification()
        places = [None, None, self.packing.slots] if self.packing else [None, None]

        def generate():
            for table, rows in self._windows(first, epochs, lanes):
                rows = rows[:, cut]
                real, rows = rows >= 0, np.maximum(rows, 0)
                if self.packing:
                    *table, members = table
                    rows = np.where(real[:, :, None], members[rows], -1)
                parts = tf.nest.flatten(_weighted(*table), expand_composites=True)
                for part, known in zip(parts, flat, strict=True):
                    if not known.shape.is_compatible_with(part.shape):
                        raise ValueError(
                            f"rows of shape {part.shape}: expected {known.shape} as in the first "
                            "row, with as many texts in every example"
                        )
                yield *parts, rows, real

        windows = tf.data.Dataset.from_generator(
            generate,
            output_signature=(
                *flat,
                tf.TensorSpec(places, "int32"),
                tf.TensorSpec([None, None], "bool"),
            ),
        ).prefetch(1)

        def split(*parts):
            *table, rows, real = parts
            batches = tf.data.Dataset.from_tensor_slices((rows, real))
            return batches.map(lambda rows, real: (*table, rows, real))

        def make(*parts):
            *table, rows, real = parts
            table = tf.nest.pack_sequence_as(spec, table, expand_composites=True)
            if self._whole:
                rows.set_shape([self.batch_size // workers, *rows.shape[1:]])
            if self.packing:
                batch = packed_batch(table, rows, self._width, self.packing.row_length)
            else:
                batch = batch_of(table, rows, real, self._whole, self._width)
            return self._preprocess(*batch)

        plain = tf.autograph.experimental.do_not_convert  # it would take seconds
        batches = windows.flat_map(plain(split))
        batches = batches.map(plain(make), num_parallel_calls=tf.data.AUTOTUNE)
        if replicas > 1:
            batches = batches.map(_by_replica(replicas)).unbatch()
        return finish(batches)

    def _specification(self) -> tuple[list, tuple]:
        """(specs of the tensors of a table, specs of its parts)."""
        if self._spec is None:
            import tensorflow as tf

            table = _weighted(*self._load([([(0, 0, 1)], {})], np.arange(1))[:3])
            flat = tf.nest.flatten(table, expand_composites=True)
            self._spec = [_spec(part) for part in flat], tf.nest.map_structure(_spec, table)
        return self._spec


def _weighted(x, labels, weights) -> tuple:
    """(x,) or (x, labels, weights), with weights of 1 if there are none."""
    if labels is None:
        return (x,)
    return x, labels, np.ones(count(labels), "float32") if weights is None else weights


def _spec(value: Any):
    """The spec of a value, for any number of rows."""
    import tensorflow as tf

    if is_ragged(value):
        shape = [None, *value.shape[1:]]
        return tf.RaggedTensorSpec(shape, value.dtype, value.ragged_rank)
    return tf.TensorSpec([None, *value.shape[1:]], value.dtype)


def _by_replica(replicas: int) -> Callable:
    """A function from a batch to one with an additional axis of replicas in front."""
    import tensorflow as tf

    def divide(*batch):
        return tf.nest.map_structure(
            lambda v: tf.reshape(v, tf.concat([[replicas, -1], tf.shape(v)[1:]], 0)), batch
        )

    return divide
