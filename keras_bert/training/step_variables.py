"""The variables that a TensorFlow train step reads and writes, as lists for compiled functions."""

from typing import NamedTuple

import tensorflow as tf


class StepVariables(NamedTuple):
    """Lists of `tf.Variable`, one replica's copies, that its train step reads and writes."""

    trainable: list
    others: list
    metrics: list
    slots: list
    optimizer: list
    schedule: list
    counters: list


def read(variables: list) -> list:
    """The values of variables."""
    return [tf.convert_to_tensor(variable) for variable in variables]


def write(variables: list, values: list) -> None:
    """Gives variables their new values."""
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def tensors(batch) -> list:
    """All tensors of a batch, without None."""
    return [value for value in tf.nest.flatten(batch) if value is not None]
