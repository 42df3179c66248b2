"""Copies named tensors into a model's weights, strictly."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import keras
import numpy as np

from keras_bert.checkpoints.report import LoadingReport


class Slot(NamedTuple):
    """One row of a name table: a tensor of the checkpoint and the weight it fills.

    Args:
        name: the tensor's name in the checkpoint.
        weight: the Keras variable.
        transpose: whether the checkpoint holds the matrix the other way round.
        optional: whether the weight may stay new if the checkpoint lacks it.
    """

    name: str
    weight: keras.Variable
    transpose: bool = False
    optional: bool = False


def fill(slots: Iterable[Slot], tensors: Mapping[str, np.ndarray], report: LoadingReport) -> None:
    """Gives each slot its tensor; checks all of them before the first weight changes.

    Args:
        slots: the name table.
        tensors: the checkpoint.
        report: gets the names.

    Raises:
        ValueError: if tensors are missing, or have another shape than the weight.
    """
    slots, faults, values = list(slots), [], []
    for slot in slots:
        if slot.name not in tensors:
            if not slot.optional:
                faults.append(f"{slot.name} is missing")
            values.append(None)
            continue
        value = np.asarray(tensors[slot.name])
        value = value.T if slot.transpose else value
        if value.shape != tuple(slot.weight.shape):
            faults.append(
                f"{slot.name} has shape {value.shape}, the model's {slot.weight.path} "
                f"{tuple(slot.weight.shape)}"
            )
        values.append(value)
    if faults:
        seen = ", ".join(sorted(tensors)[:8])
        raise ValueError(
            f"{report.source} does not fit the model: {'; '.join(faults[:20])}"
            f"{f' and {len(faults) - 20} more' if len(faults) > 20 else ''}. The checkpoint's "
            f"{len(tensors)} tensors begin with: {seen}"
        )
    for slot, value in zip(slots, values, strict=True):
        if value is None:
            report.new.append(slot.weight.path)
        else:
            slot.weight.assign(value.astype("float32"))
            report.loaded.append(slot.weight.path)
    report.left_over += sorted(set(tensors) - {slot.name for slot in slots})
