"""The network of a task inside a serving graph: any number of rows of any length."""

from collections.abc import Callable

import keras

from keras_bert.arguments import check_count

# Inputs whose last axis is that of tokens.
BY_TOKEN = ("token_ids", "segment_ids", "padding_mask", "position_ids", "sequence_ids")
ROWS = 8  # default number of rows run through the network at once


class Network:
    """Runs a task's network over rows of ids in a graph.

    Rows of similar length are run together, each chunk truncated to its longest row.

    Args:
        task: a task of `keras_bert.tasks`.
        weights: "float32" for unchanged weights; "float16" to store them in half the bytes and cast
            them back at each call.
        rows: number of rows run at once, which bounds memory per request and reduces padding. Small
            numbers are fastest on a CPU, since they fit its caches.

    Attributes:
        weights: as passed.
        variables: the `tf.Variable`s that the graph reads, to be stored in a SavedModel.
    """

    def __init__(self, task, weights: str = "float32", rows: int = ROWS):
        import tensorflow as tf

        self._rows = check_count("rows", rows)
        self.weights = weights
        if weights not in ("float32", "float16"):
            raise ValueError(f"weights={weights!r}: expected float32 or float16")
        self.task = task
        self._halves = []
        if weights == "float16":
            self._halves = [
                (variable, tf.Variable(_as_half(variable), name=variable.path, trainable=False))
                for variable in task.weights
                if variable.dtype == "float32"
            ]
        replaced = {variable.path for variable, _ in self._halves}
        kept = [variable.value for variable in task.variables if variable.path not in replaced]
        self.variables = [*kept, *(half for _, half in self._halves)]
        self._part = tf.function(self.call, autograph=False)

    def call(self, ids: dict):
        """Computes the network's output for a batch of rows, all at once."""
        import tensorflow as tf

        if not self._halves:
            return self.task(ids, training=False)
        mapping = [(variable, tf.cast(half, tf.float32)) for variable, half in self._halves]
        with keras.StatelessScope(state_mapping=mapping):
            return self.task(ids, training=False)

    def __call__(self, ids: dict, after: Callable | None = None):
        """Computes the output for rows of ids.

        Args:
            ids: int32 tensors by name, [R, ..., T] or, for inputs that are not by token, [R, P].
            after: reduces the output of some rows to the part to keep.

        Returns:
            Tensors [R, ...], structured as the output. If a task's outputs are by token, axis 1 is
            padded with zeros to T.
        """
        import tensorflow as tf

        mask = ids["padding_mask"]
        count, length = tf.shape(mask)[0], tf.shape(mask)[-1]
        # A row of padding if there are no rows: an empty batch has an empty answer.
        ids = {
            name: tf.pad(value, [[0, tf.maximum(1 - count, 0)]] + [[0, 0]] * (value.shape.rank - 1))
            for name, value in ids.items()
        }
        mask = ids["padding_mask"]
        used = tf.where(mask != 0, tf.range(1, length + 1), 0)
        used = tf.reduce_max(used, axis=list(range(1, mask.shape.rank)))  # [R]
        order = tf.argsort(used, stable=True)
        parts = (tf.size(order) + self._rows - 1) // self._rows
        by_token = getattr(self.task, "outputs_by_token", False)

        def part(number):
            chosen = order[number * self._rows : (number + 1) * self._rows]
            width = tf.maximum(tf.gather(used, chosen[-1]), 1)
            batch = {name: tf.gather(value, chosen) for name, value in ids.items()}
            for name in BY_TOKEN:
                if name in batch:
                    batch[name] = batch[name][..., :width]
            output = self._part(batch)
            if after is not None:
                output = after(output)
            if not by_token:
                return keras.tree.flatten(output), output
            room = length - width
            filled = keras.tree.map_structure(
                lambda v: tf.pad(v, [[0, 0], [0, room]] + [[0, 0]] * (v.shape.rank - 2)), output
            )
            return keras.tree.flatten(filled), filled

        first, structure = part(0)
        arrays = [
            tf.TensorArray(v.dtype, parts, infer_shape=False, element_shape=[None, *v.shape[1:]])
            for v in first
        ]
        arrays = [array.write(0, value) for array, value in zip(arrays, first, strict=True)]

        def body(number, *arrays):
            values, _ = part(number)
            return number + 1, *(a.write(number, v) for a, v in zip(arrays, values, strict=True))

        _, *arrays = tf.while_loop(
            lambda number, *_: number < parts, body, (1, *arrays), parallel_iterations=1
        )
        back = tf.argsort(order)[:count]
        values = [tf.gather(array.concat(), back) for array in arrays]
        return keras.tree.pack_sequence_as(structure, values)


def _as_half(variable):
    """A weight in float16.

    Raises:
        ValueError: if a value is too large for float16.
    """
    import tensorflow as tf

    half = tf.cast(variable.value, tf.float16)
    if not bool(tf.reduce_all(tf.math.is_finite(half))):
        raise ValueError(f"{variable.path} has numbers that float16 cannot hold (up to 65504)")
    return half
