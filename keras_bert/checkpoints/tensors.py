"""Copies named tensors into a model's weights, strictly."""

from collections.abc import Iterable, Mapping

import keras
import numpy as np

from keras_bert.checkpoints.report import LoadingReport
from keras_bert.checkpoints.shapes import few


def fill(
    weights: Mapping[str, keras.Variable],
    tensors: Mapping[str, np.ndarray],
    report: LoadingReport,
    optional: Iterable[str] = (),
) -> None:
    """Gives each weight its tensor; checks all of them before the first one changes.

    Args:
        weights: by the names of `names.weights_by_name`.
        tensors: float32 arrays by the same names; those of other weights are ignored.
        report: gets the paths of the weights.
        optional: prefixes of names whose weights stay new if the checkpoint lacks them.

    Raises:
        ValueError: if tensors are missing, or differ in shape from the weight.
    """
    faults, missing = [], []
    for name, weight in weights.items():
        if name not in tensors:
            missing.append(name)
            if not name.startswith(tuple(optional)):
                faults.append(f"{name} is missing")
        elif tensors[name].shape != tuple(weight.shape):
            faults.append(
                f"{name} has shape {tensors[name].shape}, the model's {weight.path} "
                f"{tuple(weight.shape)}"
            )
    if faults:
        raise ValueError(
            f"{report.source} does not fit the model: {few(faults, 20)}. The checkpoint's "
            f"{len(tensors)} tensors, by our names, begin with: {', '.join(sorted(tensors)[:8])}"
        )
    for name, weight in weights.items():
        if name in missing:
            report.new.append(weight.path)
        else:
            weight.assign(tensors[name])
            report.loaded.append(weight.path)
