"""Counters of the train step, kept outside of the model and read on demand."""

import keras
import numpy as np
import tensorflow as tf


class BatchCounters:
    """Rows, tokens and slots since the last `reset`, and the losses of single steps.

    The step adds to variables on the device, so that nothing waits for the host. They are
    TensorFlow variables: not weights of the model, and not in the logs.
    """

    NAMES = ("rows", "tokens", "slots")

    def __init__(self):
        # int64, since an int32 variable of TensorFlow lives on the host.
        summed = {"aggregation": "sum", "synchronization": "on_read"}
        self.parts = keras.Variable(
            np.zeros(3), dtype="int64", trainable=False, name="parts", **summed
        )
        self.steps = keras.Variable(0, dtype="int64", trainable=False, name="steps")
        self.first_bad = keras.Variable(-1, dtype="int64", trainable=False, name="first_bad")
        self.loss = keras.Variable(0.0, dtype="float32", trainable=False, name="loss")

    @staticmethod
    def count(x, weights):
        """Counts rows with a target, their tokens and the slots of the batch: int64 [3]."""
        weight = tf.reshape(weights[0], [tf.shape(weights[0])[0], -1])
        real = tf.cast(tf.reduce_any(weight != 0, axis=1), tf.int64)  # [B]
        mask = x.get("padding_mask") if isinstance(x, dict) else None
        rows = tf.reduce_sum(real)
        if mask is None:
            return tf.stack([rows, tf.zeros_like(rows), tf.zeros_like(rows)])
        by_row = tf.reshape(mask, [tf.shape(mask)[0], -1])  # a row may hold several texts
        tokens = tf.reduce_sum(tf.cast(by_row, tf.int64) * real[:, None])
        slots = x["packed_from"] if x.get("packed_from") is not None else mask
        return tf.stack([rows, tokens, tf.size(slots, tf.int64)])

    @property
    def variables(self) -> list[keras.Variable]:
        """All variables, in the order that `add` expects."""
        return [self.parts, self.steps, self.first_bad, self.loss]

    @staticmethod
    def add(variables: list, loss, counts) -> None:
        """Adds a step to one replica's copies of `variables`: the global loss, its own `count`."""
        parts, steps, first_bad, last_loss = variables
        parts.assign_add(counts)
        bad = tf.logical_not(tf.math.is_finite(loss)) & (first_bad < 0)
        first_bad.assign(tf.where(bad, steps + 0, first_bad))
        last_loss.assign(loss)
        steps.assign_add(1)

    def reset(self) -> None:
        """Resets all counts."""
        self.parts.assign(np.zeros(3))
        self.steps.assign(0)
        self.first_bad.assign(-1)

    def read(self) -> dict:
        """Reads the counts since the last reset.

        Returns:
            A dict: `rows` with a target, their `tokens`, `slots` of the batches (tokens and
            padding), `steps`, `loss` of the last step, and `first_bad`, the step (from 0) at which
            the loss was first not finite, or None.
        """
        parts, steps, first_bad, loss = (keras.ops.convert_to_numpy(v) for v in self.variables)
        return {
            **dict(zip(self.NAMES, parts.tolist(), strict=True)),
            "steps": int(steps),
            "loss": float(loss),
            "first_bad": None if first_bad < 0 else int(first_bad),
        }
