"""Our own preset folders, read without running what they name.

The files are those of KerasHub's presets: config.json and model.weights.h5 for the backbone,
task.json and task.weights.h5 for the head, preprocessor.json, tokenizer.json and
assets/tokenizer/vocab.txt for the text side.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras

from keras_bert.checkpoints.int8_weights import from_int8, is_int8
from keras_bert.checkpoints.report import LoadingReport
from keras_bert.checkpoints.source import Source
from keras_bert.models.backbone import BertBackbone

PACKAGE = "keras_bert>"
FILES = ("*.json", "*.weights.h5", "assets")


def settings(source: Source, file: str, class_name: str) -> dict[str, Any]:
    """Reads the settings of one object from a preset.

    The class named in the file is compared and never imported, so that a preset can't choose
    what code runs.

    Args:
        source: the preset.
        file: name of a JSON file in it.
        class_name: the class expected.

    Raises:
        ValueError: if the file holds another class, or no settings.
    """
    content = source.json(file)
    found = content.get("registered_name")
    if found != PACKAGE + class_name or not isinstance(content.get("config"), dict):
        raise ValueError(
            f"{source.name}/{file}: expected the settings of {PACKAGE}{class_name}, found {found!r}"
        )
    return content["config"]


def load_backbone(
    source: Source, load_weights: bool, report: LoadingReport, **overrides
) -> BertBackbone:
    """Makes the backbone of a preset.

    Adapters that are asked of a preset without any are new.

    Args:
        source: the preset.
        load_weights: False for new weights in the same shape.
        report: gets the names of the weights.
        **overrides: `BertBackbone` arguments that replace the preset's.

    Raises:
        ValueError: if a setting is unknown, or the weights do not fit.
    """
    config = settings(source, "config.json", "BertBackbone")
    saved_dim = config.get("adapter_dim")
    config |= overrides
    config.pop("trainable", None)  # what was frozen for one training is free for the next
    config["dtype"] = dtype_policy(config.get("dtype"), source)
    adapters_are_new = config.get("adapter_dim") != saved_dim
    all_are_read = load_weights and not adapters_are_new
    try:
        backbone = BertBackbone.blank(**config) if all_are_read else BertBackbone(**config)
    except TypeError as error:
        raise ValueError(f"{source.name}/config.json: {error}") from error
    if not load_weights:
        report.new += [weight.path for weight in backbone.weights]
        return backbone
    if saved_dim not in (None, backbone.adapter_dim):
        raise ValueError(
            f"{source.name} has adapters of adapter_dim={saved_dim}, without which its other "
            f"weights have no meaning: got adapter_dim={backbone.adapter_dim}"
        )
    new = backbone.adapters if saved_dim is None else []
    path = source.path("model.weights.h5")
    load_h5(lambda p: keras.saving.load_weights(backbone, p, objects_to_skip=new), path)
    report.new += [weight.path for adapter in new for weight in adapter.weights]
    report.loaded += [w.path for w in backbone.weights if w.path not in {*report.new}]
    return backbone


def load_h5(load: Callable[[str], None], path: Path) -> None:
    """Calls a weight loader, whose many errors become one; int8 weights are unpacked for it.

    Raises:
        ValueError: if the file is damaged or does not fit.
    """
    try:
        if not is_int8(path):
            load(str(path))
            return
        with tempfile.TemporaryDirectory() as folder:
            whole = str(Path(folder) / "whole.weights.h5")
            from_int8(path, whole)
            load(whole)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path} can't be read into this model: {error}") from error


def dtype_policy(value: Any, source: Source):
    """Rebuilds a dtype policy from its name or from what Keras serialized.

    Raises:
        ValueError: if the value names anything but one of Keras's own policies.
    """
    if not isinstance(value, dict):
        return value
    nested = [value, *value.get("config", {}).get("policy_map", {}).values()]
    endings = ("DTypePolicy", "DTypePolicyMap")
    for part in nested:
        known = isinstance(part, dict) and part.get("module") in ("keras", "keras.dtype_policies")
        if not known or not str(part.get("class_name")).endswith(endings):
            raise ValueError(f"{source.name}: dtype {part!r} is not one of Keras's dtype policies")
    return keras.dtype_policies.get(value)
