"""Batches for training from any position, in an order that is a function of the seed.

A source has the number of batches in a pass over its data (`steps`, None if unknown), an endless
stream of passes starting at batch `first` (`stream`), and a single pass (`one_pass`). A resumed run
sees the same batches as an uninterrupted one.
"""

import functools
import hashlib
import itertools
import math
from collections.abc import Callable

import keras
import numpy as np

from keras_bert.data.ragged import constant, count, dense_parts


class RowSource:
    """Rows in memory, gathered and mapped by `tf.data` on the host.

    Args:
        x: a tuple of columns of N texts, or a dict of arrays [N, ...] or `tf.RaggedTensor`.
        labels, weights: [N, ...] or None.
        batch_size: number of rows in a batch.
        preprocess: maps (x, y, sample_weight) of a batch to the model's inputs.
        shuffle: whether to shuffle anew in every pass: pass p has the permutation of TensorFlow's
            stateless shuffle with the seed (`seed`, p).
        seed: seed of the orders.
        whole: whether to fill up the last batch of a pass, so that all have the same shape. The
            filling repeats other rows; with labels it has weight 0.
        width: T, to which ragged rows are padded in their batch.

    Raises:
        ValueError: if there are no rows, or columns differ in length.
    """

    def __init__(
        self,
        x,
        labels,
        weights,
        batch_size: int,
        preprocess: Callable,
        shuffle: bool = False,
        seed: int = 0,
        whole: bool = False,
        width: int | None = None,
    ):
        self.size = self._count = check_columns(x, labels, weights)
        self.batch_size = batch_size
        self.steps = math.ceil(self.size / batch_size)
        if whole and labels is not None and weights is None:
            weights = np.ones(self.size, "float32")
        # A list of texts would be treated as a structure of scalars.
        x = x if isinstance(x, dict) else tuple(np.asarray(column, object) for column in x)
        rows = (x, labels, weights)
        self._rows = rows[: 1 if labels is None else 2 if weights is None else 3]
        self._preprocess = preprocess
        self._shuffle, self._seed, self._whole, self._width = shuffle, seed, whole, width

    def facts(self) -> dict:
        """A fingerprint of the batches, for comparison with an interrupted run."""
        return facts_of(self._rows, self.size, self.batch_size, self._shuffle, self._seed)

    def stream(self, first: int = 0):
        """An endless `tf.data.Dataset` of batches, starting at batch `first` of the first pass."""
        import tensorflow as tf

        first_pass, skipped = divmod(first, self.steps)

        @tf.autograph.experimental.do_not_convert
        def indices(number):
            left_out = tf.where(number == first_pass, tf.constant(skipped, tf.int64), 0)
            return self._indices(number).skip(left_out)

        return self._batches(tf.data.Dataset.range(first_pass, tf.int64.max).flat_map(indices))

    def one_pass(self):
        """A `tf.data.Dataset` of the first pass, of known size."""
        return self._batches(self._indices(0))

    def _indices(self, number):
        """Datasets of (row indices, False for filling), each [batch_size]."""
        import tensorflow as tf

        order = tf.range(self._count)
        if self._shuffle:
            seed = tf.stack([tf.constant(self._seed, tf.int64), tf.cast(number, tf.int64)])
            order = tf.random.experimental.stateless_shuffle(order, seed=seed)
        place = tf.range(self.steps * self.batch_size)
        shape = [self.steps, self.batch_size]
        rows = tf.reshape(tf.gather(order, place % self._count), shape)
        return tf.data.Dataset.from_tensor_slices((rows, tf.reshape(place < self._count, shape)))

    def _batches(self, indices):
        import tensorflow as tf

        # Outside of the map, whose graph would hold them as constants.
        table = keras.tree.map_structure(constant, self._rows)

        @tf.autograph.experimental.do_not_convert  # it would take a second without benefit
        def gather(rows, real):
            return self._preprocess(*self._batch_of(table, rows, real))

        return finish(indices.map(gather, num_parallel_calls=tf.data.AUTOTUNE))

    def _batch_of(self, table, rows, real) -> tuple:
        return batch_of(table, rows, real, self._whole, self._width)


def batch_of(table, rows, real, whole: bool, width: int | None) -> tuple:
    """Gathers rows [B] of a table, inside `tf.data`; those that are not `real` are dropped or,
    if `whole`, kept with weight 0. A single column of texts is returned as it is."""
    import tensorflow as tf

    if not whole:
        rows = tf.boolean_mask(rows, real)
    x, *rest = dense_parts(table, rows, width)
    if whole and len(rest) == 2:
        shape = [-1] + [1] * (rest[1].shape.rank - 1)
        rest[1] = rest[1] * tf.reshape(tf.cast(real, rest[1].dtype), shape)
    return x[0] if isinstance(x, tuple) and len(x) == 1 else x, *rest


class DatasetSource:
    """A user's `tf.data.Dataset` of batches (x, y) or (x, y, sample_weight), or of x only.

    Args:
        dataset: the batches.
        preprocess: maps (x, y, sample_weight) of a batch to the model's inputs.
        multiple: each batch is filled up to a multiple of this number of rows; the filling repeats
            rows, with weight 0. 1 leaves batches unchanged.
    """

    def __init__(self, dataset, preprocess: Callable, multiple: int = 1):
        import tensorflow as tf

        size = int(dataset.cardinality())
        self.endless = size == tf.data.INFINITE_CARDINALITY
        self.steps = size if size >= 0 else None
        self._dataset, self._preprocess, self._multiple = dataset, preprocess, multiple

    def stream(self, first: int = 0):
        """An endless stream of batches, starting at `first`.

        Earlier ones are read and discarded, unless the dataset has an attribute `starting_at`, like
        that of `pretraining_dataset`.
        """
        if self.endless and hasattr(self._dataset, "starting_at"):
            return self._batches(self._dataset.starting_at(first) if first else self._dataset)
        return self._batches(self._dataset.repeat().skip(first))

    def facts(self) -> dict:
        """Like `RowSource.facts`, but without the rows, which would have to be read."""
        return {
            "batches of the dataset": int(self._dataset.cardinality()),
            "elements of the dataset": str(self._dataset.element_spec),
        }

    def one_pass(self):
        """A single pass."""
        return self._batches(self._dataset)

    def _batches(self, dataset):
        import tensorflow as tf

        @tf.autograph.experimental.do_not_convert
        def prepare(*batch):
            batch = self._preprocess(*batch)
            if self._multiple == 1:
                return batch
            return fill_up(*keras.utils.unpack_x_y_sample_weight(batch), self._multiple)

        # A batch of x only arrives as one argument, (x, y) as two, and so on.
        return finish(dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE))


class ArraySource(keras.utils.PyDataset):
    """Rows of arrays for backends other than TensorFlow; a stream of NumPy batches.

    Args:
        x: the model's inputs by name, arrays of N rows.
        labels, weights: [N, ...] or None.
        batch_size: number of rows in a batch; with labels the last is filled up with rows of weight
            0.
        shuffle, seed, width: as in `RowSource`.
        multiple: without labels, batches have a multiple of this number of rows: the last is filled
            up with others, whose outputs are to be cut off.

    Raises:
        ValueError: if there are no rows, or columns differ in length.
    """

    def __init__(
        self, x, labels, weights, batch_size, shuffle=False, seed=0, width=None, multiple=1
    ):
        super().__init__()
        if labels is None:
            batch_size += -batch_size % multiple
        self._multiple = multiple
        self.size = check_columns(x, labels, weights)
        self.steps = math.ceil(self.size / batch_size)
        if labels is not None and weights is None:
            weights = np.ones(self.size, "float32")
        self.x, self.labels, self.weights = x, labels, weights
        self.batch_size, self.shuffle, self.seed, self._width = batch_size, shuffle, seed, width
        self._order = functools.lru_cache(maxsize=2)(self._permutation)

    def facts(self) -> dict:
        """See `RowSource.facts`."""
        rows = self.x, self.labels, self.weights
        return facts_of(rows, self.size, self.batch_size, self.shuffle, self.seed)

    def stream(self, first: int = 0):
        """An endless generator of the batches, starting at `first`."""
        return (self._batch(index) for index in itertools.count(first))

    def one_pass(self) -> "ArraySource":
        """A single pass."""
        return self

    def __len__(self):
        return self.steps

    def __getitem__(self, index):
        return self._batch(index)

    def _batch(self, index):
        number, step = divmod(index, self.steps)
        order = self._order(number)
        place = np.arange(step * self.batch_size, (step + 1) * self.batch_size)
        if self.labels is None:
            count = min(self.batch_size, self.size - step * self.batch_size)
            place = place[: count + -count % self._multiple]
        rows = order[place % self.size]
        parts = dense_parts((self.x, self.labels, self.weights), rows, self._width)
        x, labels, weights = keras.tree.map_structure(np.asarray, parts)
        if self.labels is None:
            return (x,)
        weights = weights * (place < self.size).reshape((-1,) + (1,) * (weights.ndim - 1))
        return x, labels, weights.astype("float32")

    def _permutation(self, number):
        if not self.shuffle:
            return np.arange(self.size)
        return np.random.default_rng([self.seed, number]).permutation(self.size)


def facts_of(rows, size: int, batch_size: int, shuffle: bool, seed: int) -> dict:
    """A fingerprint of the batches of N = `size` rows in memory, of any structure."""
    state = hashlib.blake2b(digest_size=16)
    for column in keras.tree.flatten(rows):
        if hasattr(column, "row_splits"):  # a tf.RaggedTensor
            parts = [column.flat_values, column.row_splits]
        else:
            parts = [column]
        for array in map(np.asarray, parts):
            if array.dtype == object:
                for text in array.ravel().tolist():
                    data = text if isinstance(text, bytes) else str(text).encode()
                    state.update(len(data).to_bytes(8, "little") + data)
            else:
                state.update(f"{array.dtype} {array.shape}".encode())
                state.update(np.ascontiguousarray(array).tobytes())
    facts = {"rows": size, "batch_size": batch_size, "shuffle": shuffle, "seed": seed}
    return facts | {"texts, labels and weights": state.hexdigest()}


def check_columns(x, labels, weights) -> int:
    """Checks that all columns have the same length, and returns it.

    Raises:
        ValueError: if there are no rows, or columns differ in length.
    """
    columns = x.items() if isinstance(x, dict) else zip(("texts", "second texts"), x, strict=False)
    columns = dict(columns)
    for name, value in (("labels", labels), ("sample weights", weights)):
        by_output = value if isinstance(value, dict) else {None: value}
        columns |= {name if n is None else f"{name} of {n!r}": v for n, v in by_output.items()}
    sizes = {name: count(column) for name, column in columns.items() if column is not None}
    first, size = next(iter(sizes.items()))
    for name, other in sizes.items():
        if other != size:
            raise ValueError(f"{name} of length {other}: expected {size}, as many as {first}")
    if size == 0:
        raise ValueError("there are no texts" if "texts" in columns else "there are no rows")
    return size


def fill_up(x, y, sample_weight, multiple: int):
    """Fills up a batch to a multiple of a number of rows, inside `tf.data`: repeated rows [B, ...]
    of weight 0 at the end. Each part is a tensor or a structure of tensors; weights may be None."""
    import tensorflow as tf

    if sample_weight is None:
        sample_weight = keras.tree.map_structure(lambda v: tf.ones(tf.shape(v)[:1]), y)
    rows = tf.shape(keras.tree.flatten(y)[0])[0]
    target = (rows + multiple - 1) // multiple * multiple
    place = tf.range(target)
    x, y, sample_weight = keras.tree.map_structure(
        lambda v: tf.gather(v, place % rows), (x, y, sample_weight)
    )

    def blank(weight):
        real = tf.reshape(place < rows, [-1] + [1] * (weight.shape.rank - 1))
        return weight * tf.cast(real, weight.dtype)

    return x, y, keras.tree.map_structure(blank, sample_weight)


def finish(dataset):
    """Prefetches, and makes several workers split each batch by rows, not by files."""
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.prefetch(tf.data.AUTOTUNE).with_options(options)
