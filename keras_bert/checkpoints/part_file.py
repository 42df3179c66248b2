"""The file of a tuned part: a safetensors file with settings in its header.

Its tensors are float32, under the paths of the weights in the model. "keras_bert_part" in its
header is JSON:
    version: 1.
    class: name of the task's class.
    tuning: the word that `keras_bert.models.tune` was called with, or null.
    lora: null, or {"rank": columns of the factors, "layers": names of the layers with an update}.
    labels: names of a classifier's labels, or null.
    base: settings of the backbone.
    digests: of each weight of the backbone that is not among the tensors, by its path.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from keras_bert.atomic import write_file
from keras_bert.checkpoints.checks import check_name, is_labels, is_names
from keras_bert.models.tuning import KINDS

_VERSION = 1
_HEADER = "keras_bert_part"


def write_part(path: str | Path, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """Writes a part of float32 arrays atomically; the header has all settings but the version."""
    content = save(tensors, {_HEADER: json.dumps({"version": _VERSION, **header})})
    write_file(path, content)


def read_part(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Reads the header and the tensors of a part.

    Raises:
        FileNotFoundError: if there is no file.
        ValueError: if it is damaged or not a part.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(_HEADER)
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - no dict
        for name in tensors:
            check_name(name)
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path} is not a whole safetensors file: {error}") from error
    if text is None:
        raise ValueError(f"{path} is no tuned part: its header has no {_HEADER}")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {_HEADER} in its header is not valid JSON: {error}") from error
    version = header.get("version") if isinstance(header, dict) else None
    if version != _VERSION:
        raise ValueError(f"{path} has version {version!r} of the format; expected {_VERSION}")
    if not _well_formed(header):
        raise ValueError(f"{path}: {_HEADER} in its header lacks settings, or has wrong ones")
    return header, tensors


def _well_formed(header: dict) -> bool:
    lora, labels = header.get("lora", 0), header.get("labels", 0)
    return (
        isinstance(header.get("class"), str)
        and isinstance(header.get("base"), dict)
        and isinstance(header.get("digests"), dict)
        and header.get("tuning", 0) in (None, *KINDS)
        and (labels is None or is_labels(labels))
        and (
            lora is None
            or isinstance(lora, dict)
            and isinstance(lora.get("rank"), int)
            and is_names(lora.get("layers"))
        )
        and (header["tuning"] == "lora") == (lora is not None)
    )
