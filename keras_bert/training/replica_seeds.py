"""Seeds that differ between replicas inside of a step, and are the same outside of it."""

import tensorflow as tf

from keras_bert.training import replicas


def seed_shift():
    """What this replica adds to the seeds, so that it has dropout of its own; or None."""
    if replicas.count() == 1:
        return None
    return replicas.index() * 1_000_003  # far from the seeds that users pick in a row


def shifted(variables: list, values: list, shift, sign: int = 1) -> list:
    """The values of variables, the seeds among them shifted.

    Args:
        variables: Keras variables.
        values: their values.
        shift: from `seed_shift`.
        sign: -1 takes the shift back.
    """
    if shift is None:
        return values
    return [
        value + tf.cast([sign * shift, 0], value.dtype) if _is_seed(variable) else value
        for variable, value in zip(variables, values, strict=True)
    ]


def _is_seed(variable) -> bool:
    return variable.path.endswith("seed_generator_state")
