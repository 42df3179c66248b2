"""Seeds that differ between replicas inside a step, and are equal outside of it."""

import tensorflow as tf

from keras_bert.training import replicas


def seed_shift():
    """The offset that this replica adds to seeds, for its own dropout masks; or None."""
    if replicas.count() == 1:
        return None
    # A constant where it can be, and int64, which TensorFlow keeps on the GPU.
    index = replicas.index()
    static = tf.get_static_value(index)
    index = tf.cast(index, tf.int64) if static is None else tf.constant(static, tf.int64)
    return index * 1_000_003  # far from consecutive seeds that users pick


def shifted(variables: list, values: list, shift, sign: int = 1) -> list:
    """The values of variables, with seeds shifted.

    Args:
        variables: Keras variables.
        values: their values.
        shift: from `seed_shift`.
        sign: -1 reverts the shift.
    """
    if shift is None:
        return values
    return [
        value + tf.cast([sign * shift, 0], value.dtype) if _is_seed(variable) else value
        for variable, value in zip(variables, values, strict=True)
    ]


def _is_seed(variable) -> bool:
    return variable.path.endswith("seed_generator_state")
