"""Dropout by a hash of each unit's place, whose random seed can be drawn ahead of its use."""

import math

import keras
from keras import ops

from keras_bert.arguments import check_number

# Of a 32-bit hash found by github.com/skeeto/hash-prospector: shifts by 16, 15 and 15 and these two
# factors between them. That units are dropped independently is tested, not taken from there.
FACTORS = (0x21F0AAAD, 0xD35A2D97)


@keras.saving.register_keras_serializable(package="keras_bert")
class Dropout(keras.layers.Layer):
    """Sets a share of the units to zero while training, and divides the others by what is left.

    Rule: Srivastava et al. 2014, section 10, as google-research/bert `modeling.py`, `dropout`.

    Whether a unit is dropped is decided by a hash of its row, its column and the seed: a few
    integer operations. TensorFlow's generator of random numbers made a training step on an H200 7%
    longer, and costs XLA on a CPU hundreds of times as much. The hash gives the same units on every
    backend.
    Compared with 32 bits the share is exact to 1e-9, and the quotient is taken in float32, also
    where the units are bfloat16, in which 1 / 0.9 would be off by two thousandths.

    Recomputing a block in the backward pass (gradient checkpointing) must drop the same units as
    the forward pass did. A layer that draws its seed inside the recomputed function would draw
    another the second time; so the block draws with `draw` outside and passes it to `call`.

    Args:
        rate: share of the units to drop, from 0 to below 1.
        seed: whole number that the seeds of single calls follow from; None for a random one.

    Call arguments:
        inputs: float [..., U], of one axis or more.
        training: whether to drop anything.
        seed: from `draw`; None to draw one.

    Returns:
        As `inputs`.

    Raises:
        ValueError: if `rate` is out of range.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs):
        super().__init__(**kwargs)
        check_number("rate", rate)
        if rate >= 1:
            raise ValueError(f"rate={rate}: expected 0 <= rate < 1")
        self.rate = rate
        self.seed = seed
        if rate > 0:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True
        self.built = True

    def draw(self, training: bool | None):
        """Draws the seed of one call.

        Args:
            training: whether the model trains.

        Returns:
            A seed tensor, or None where nothing is dropped.
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
    """Says which units stay.

    Args:
        shape: of the units, [..., U].
        rate: share of them that goes.
        seed: two whole numbers.

    Returns:
        bool tensor of the shape.
    """
    seed = ops.cast(seed, "uint32")
    key = _mixed(_mixed(seed[0]) + seed[1])
    rows = ops.arange(math.prod(shape[:-1]), dtype="int32")
    columns = ops.arange(shape[-1], dtype="int32")
    rows = _mixed(ops.cast(rows, "uint32") + _mixed(key + _uint32(1)))
    columns = _mixed(ops.cast(columns, "uint32") + _mixed(key + _uint32(2)))
    place = ops.bitwise_xor(rows[:, None], columns)
    place = place * _uint32(FACTORS[0])
    place = ops.bitwise_xor(place, ops.right_shift(place, _uint32(15)))
    place = place * _uint32(FACTORS[1])
    return ops.reshape(place >= _uint32(round(rate * 2**32)), shape)


def _mixed(x):
    """The hash of uint32 numbers."""
    for shift, factor in zip((16, 15), FACTORS, strict=True):
        x = ops.bitwise_xor(x, ops.right_shift(x, _uint32(shift))) * _uint32(factor)
    return ops.bitwise_xor(x, ops.right_shift(x, _uint32(15)))


def _uint32(number: int):
    return ops.convert_to_tensor(number, "uint32")
