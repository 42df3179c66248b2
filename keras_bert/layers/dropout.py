"""Dropout by a hash of each unit's position, with seeds that can be drawn before use."""

import math

import keras
import numpy as np
from keras import ops

from keras_bert.arguments import check_number

# A 32-bit hash from github.com/skeeto/hash-prospector: shifts by 16, 15 and 15 with these two
# factors in between; it makes numbers of seeds. Rows and columns have a shorter one, and a unit the
# product of its row's, made odd, and its column's: one operation. Our tests check that units are
# dropped independently.
SHIFTS = (16, 15)
FACTORS = (0x21F0AAAD, 0xD35A2D97)


@keras.saving.register_keras_serializable(package="keras_bert")
class Dropout(keras.layers.Layer):
    """Inverted dropout: zeroes units at random in training and scales the others by 1 / (1 - rate).

    Reference: Srivastava et al. 2014, section 10; google-research/bert `modeling.py`, `dropout`.

    A hash of a unit's row, its column and the seed decides whether it is dropped: a few integer
    operations. TensorFlow's random number generator made a training step on an H200 7% longer, and
    under XLA on a CPU it costs hundreds of times as much. The hash drops the same units on every
    backend. The 32-bit comparison makes the rate exact to 1e-9, and the division is done in float32
    even if the units are bfloat16, in which 1 / 0.9 would be off by 0.002.

    A block recomputed in the backward pass (gradient checkpointing) must drop the same units as in
    the forward pass. A layer that drew its seed inside the recomputed function would draw another
    the second time, so the block calls `draw` outside and passes the seed to `call`.

    Args:
        rate: dropout rate, in [0, 1).
        seed: integer from which the seeds of the calls are derived; None for a random one.

    Call arguments:
        inputs: float [..., U], with at least one axis.
        training: whether to apply dropout.
        seed: from `draw`; None to draw one.

    Returns:
        Tensor with the shape and dtype of `inputs`.

    Raises:
        ValueError: if `rate` is out of range.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs):
        super().__init__(**kwargs)
        check_number("rate", rate, below=1)
        self.rate = rate
        self.seed = seed
        if rate > 0:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True
        self.built = True

    def draw(self, training: bool | None):
        """Draws the seed of one call.

        Args:
            training: whether the model is training.

        Returns:
            A seed tensor, or None if nothing is dropped.
        """
        if not training or self.rate == 0:
            return None
        return self.seed_generator.next()

    def call(self, inputs, training=False, seed=None):
        if not training or self.rate == 0:
            return inputs
        seed = self.draw(training) if seed is None else seed
        wide = ops.cast(inputs, keras.backend.result_type(inputs.dtype, "float32"))
        kept = ops.where(kept_units(ops.shape(inputs), self.rate, seed), wide / (1 - self.rate), 0)
        return ops.cast(kept, inputs.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config() | {"rate": self.rate, "seed": self.seed}


def kept_units(shape, rate: float, seed):
    """The mask of units to keep, bool, of their shape [..., U]; the seed is two integers."""
    # Few operations in the graph: those of all dropouts were a third of a train step's.
    first, second = ops.unstack(ops.cast(seed, "uint32"), 2)
    numbers = [ops.convert_to_tensor(np.uint32(n)) for n in (*SHIFTS, *FACTORS)]
    key = _mixed(_mixed(first, numbers) + second, numbers)
    start = ops.unstack(_mixed(key + np.array([1, 2], "uint32"), numbers), 2)
    _, shift, factor, _ = numbers
    rows, columns = (
        (ops.cast(ops.arange(n, dtype="int32"), "uint32") + s) * factor
        for n, s in zip((math.prod(shape[:-1]), shape[-1]), start, strict=True)
    )
    rows, columns = (ops.bitwise_xor(x, ops.right_shift(x, shift)) for x in (rows, columns))
    place = ops.bitwise_or(rows, np.uint32(1))[:, None] * columns
    return ops.reshape(place >= np.uint32(round(rate * 2**32)), shape)


def _mixed(x, numbers):
    """The hash of uint32 numbers; `numbers` are shifts and factors, as tensors."""
    shift, last, first, second = numbers
    x = ops.bitwise_xor(x, ops.right_shift(x, shift)) * first
    x = ops.bitwise_xor(x, ops.right_shift(x, last)) * second
    return ops.bitwise_xor(x, ops.right_shift(x, last))
