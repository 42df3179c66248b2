"""The variables of a TensorFlow train step, as lists that go into compiled functions."""

from typing import NamedTuple

import tensorflow as tf


class StepVariables(NamedTuple):
    """Lists of `tf.Variable`, one replica's copies: what its train step reads and writes."""

    trainable: list
    others: list
    metrics: list
    slots: list
    optimizer: list
    counters: list


def read(variables: list) -> list:
    """The values of variables."""
    return [tf.convert_to_tensor(variable) for variable in variables]


def write(variables: list, values: list) -> None:
    """Gives variables their new values."""
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
