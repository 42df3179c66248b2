"""Weights changed by training, as a small file to use with the original checkpoint.

See `checkpoints.part_file` for what is in it.
"""

import hashlib
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert.checkpoints.checks import SIZES, short, shown
from keras_bert.checkpoints.contents import changed_settings
from keras_bert.checkpoints.names import weights_by_name
from keras_bert.checkpoints.part_file import read_part, write_part
from keras_bert.checkpoints.shapes import few
from keras_bert.models.tuning import add_lora, lora_layers, tune

# Settings of the backbone that decide what its weights mean.
_BASE = (*SIZES, "activation", "layer_norm_epsilon", "adapter_dim")


def save_tuned_part(model: keras.Model, path: str | Path) -> None:
    """Writes everything that a model's checkpoint does not hold, atomically.

    That is every weight which is trainable now, and, trainable or not: the heads, adapters,
    low-rank factors, and what `loading_report` calls new. A weight that was trained and then
    frozen is not written; `load_tuned_part` refuses such a file, for its base differs.

    Args:
        model: a task with a `BertBackbone` as its `backbone`.
        path: the file to create or replace; links are followed.

    Raises:
        ValueError: if two weights share a path, or low-rank updates differ in rank or are scaled.
    """
    weights = weights_by_name(model)
    kept = {id(weight) for weight in model.trainable_weights} | _beyond_base(model)
    tensors, digests = {}, {}
    for key, weight in weights.items():
        if id(weight) in kept:
            tensors[key] = _values(weight)
        else:
            digests[key] = _digest(weight)
    lora = _lora(model)
    header = {
        "class": type(model).__name__,
        "tuning": "lora" if lora else getattr(model, "tuning", None),
        "lora": lora,
        "labels": getattr(model, "labels", None),
        "base": _base(model),
        "digests": digests,
    }
    write_part(path, header, tensors)


def load_tuned_part(model: keras.Model, path: str | Path) -> None:
    """Loads the file of `save_tuned_part` into a model that was just made from the same checkpoint.

    Low-rank updates are added where the file has them, and the weights that `tune` chose are
    chosen again; a model that is to train on has to be compiled as after `tune`. A classifier
    without labels takes the file's. Everything is checked before the model changes.

    Args:
        model: a task of the same class, with the same `adapter_dim`.
        path: the file.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if the file is damaged or not a part; if class, labels or settings differ; if
            weights are missing, unexpected or of another shape; or if the base differs.
    """
    header, tensors = read_part(path)
    lora, labels = header["lora"], header["labels"]
    _check_base(model, path, header)
    if labels and getattr(model, "labels", None) not in (None, labels):
        raise ValueError(f"{path} has the labels {labels}, the model {model.labels}")
    _check_shapes(model, path, lora, tensors)
    weights = weights_by_name(model)
    digests = header["digests"].items()
    others = [k for k, v in digests if k not in weights or _digest(weights[k]) != v]
    if others:
        raise ValueError(
            f"{path} belongs to another checkpoint, or the model was trained since it was loaded: "
            f"{len(others)} of {len(digests)} weights differ, such as {', '.join(others[:5])}"
        )
    if lora and not lora_layers(model.backbone):
        add_lora(model, lora["rank"], lora["layers"])
    if header["tuning"]:
        tune(model, header["tuning"], lora["rank"] if lora else 1)
    weights = weights_by_name(model)
    for key, value in tensors.items():
        weights[key].assign(value)
    if labels:
        model.labels = labels


def _beyond_base(model) -> set[int]:
    """The ids of the weights that no checkpoint under the model holds."""
    report = getattr(model, "loading_report", None)
    new = set() if report is None else set(report.new)
    new |= {weight.path for adapter in model.backbone.adapters for weight in adapter.weights}
    base = [w for w in model.backbone.weights if w.path not in new and "lora" not in w.name]
    return {id(weight) for weight in model.weights} - {id(weight) for weight in base}


def _lora(model) -> dict[str, Any] | None:
    layers = lora_layers(model.backbone)
    if not layers:
        return None
    found = {(layer.lora_rank, layer.lora_alpha) for layer in layers}
    rank, alpha = min(found)
    if len(found) > 1 or rank != alpha:
        raise ValueError(
            f"low-rank updates have (rank, alpha) {sorted(found)}; expected one rank, and alpha "
            "the same, as backbone.enable_lora gives"
        )
    return {"rank": rank, "layers": sorted({layer.name for layer in layers})}


def _base(model) -> dict[str, Any]:
    named = {name: getattr(model.backbone, name) for name in _BASE}
    return named | changed_settings(model.backbone, _BASE)


def _check_base(model, path, header) -> None:
    if header["class"] != type(model).__name__:
        raise ValueError(f"{path} is of a {header['class']}, the model a {type(model).__name__}")
    theirs, mine = header["base"], _base(model)
    others = [name for name in {**mine, **theirs} if theirs.get(name) != mine.get(name)]
    if others:
        faults = [
            f"{shown(name)} is {short(theirs.get(name))}, not {short(mine.get(name))}"
            for name in others
        ]
        raise ValueError(f"{path} is of a backbone whose {', '.join(faults)}")


def _check_shapes(model, path, lora, tensors) -> None:
    """Compares a file's tensors with the weights that the model has, or will have with updates."""
    weights, beyond, updates = weights_by_name(model), _beyond_base(model), {}
    if lora and not lora_layers(model.backbone):
        updates = _update_shapes(model, weights, lora)
    shapes = {key: tuple(weight.shape) for key, weight in weights.items()} | updates
    needed = {key for key, weight in weights.items() if id(weight) in beyond} | {*updates}
    faults = [f"{key} is missing" for key in sorted(needed - set(tensors))]
    for key, value in tensors.items():
        if key not in shapes:
            faults.append(f"{key} is unexpected")
        elif value.shape != shapes[key] or value.dtype != np.float32:
            faults.append(
                f"{key} is {value.dtype} of shape {value.shape}, the model's float32 of shape "
                f"{shapes[key]}"
            )
    if faults:
        raise ValueError(f"{path} does not fit the model: {few(faults, 20)}")


def _update_shapes(model, weights, lora) -> dict[str, tuple[int, int]]:
    """Paths and shapes of the factors that `enable_lora` would make."""
    dense = [x for x in model.backbone._flatten_layers() if isinstance(x, keras.layers.Dense)]
    kernels = {id(x.weights[0]) for x in dense if x.name in lora["layers"]}
    shapes = {}
    for key, weight in weights.items():
        if id(weight) in kernels:
            start, (rows, columns) = key.removesuffix("kernel"), weight.shape
            shapes |= {f"{start}lora_kernel_a": (rows, lora["rank"])}
            shapes |= {f"{start}lora_kernel_b": (lora["rank"], columns)}
    return shapes


def _values(weight) -> np.ndarray:
    return np.ascontiguousarray(keras.ops.convert_to_numpy(weight), "<f4")


def _digest(weight) -> str:
    # Detects mistakes, not forgeries: eight bytes suffice.
    return hashlib.blake2b(_values(weight).data, digest_size=8).hexdigest()
