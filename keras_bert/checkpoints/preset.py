"""This package's preset folders, read without running anything that they name.

The files are those of KerasHub's presets: config.json and model.weights.h5 for the backbone,
task.json and task.weights.h5 for the head, preprocessor.json, tokenizer.json and
assets/tokenizer/vocab.txt for the preprocessor.
"""

import inspect
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import keras

from keras_bert.checkpoints.checks import check_config, check_size, is_names, least_numbers, short
from keras_bert.checkpoints.keras_weight_files import check_whole
from keras_bert.checkpoints.report import LoadingReport
from keras_bert.checkpoints.saved_settings import check_saved
from keras_bert.checkpoints.source import Source
from keras_bert.models.backbone import BertBackbone

PACKAGE = "keras_bert>"
FILES = ("*.json", "*.weights.h5", "assets")
# Settings of a backbone: its arguments, and some that Keras and `get_config` add.
_ARGUMENTS = {
    name: argument
    for name, argument in inspect.signature(BertBackbone.__init__).parameters.items()
    if name not in ("self", "kwargs")
}
_FLAGS = tuple(n for n, argument in _ARGUMENTS.items() if isinstance(argument.default, bool))
_ADDED = ("name", "trainable", "dtype", "frozen", "lora")


def settings(source: Source, file: str, class_name: str) -> dict[str, Any]:
    """Reads the settings of one object from a preset.

    The class named in the file is compared and never imported, so that a preset can't choose
    what code runs.

    A user's own class is named with its package, as Keras registers it.

    Raises:
        ValueError: if the file holds another class, or no settings.
    """
    content = source.json(file)
    found, wanted = content.get("registered_name"), registered(class_name)
    if found != wanted or not isinstance(content.get("config"), dict):
        raise ValueError(
            f"{source.name}/{file}: expected the settings of {wanted}, found {short(found)}"
        )
    check_saved(content["config"], f"{source.name}/{file}")
    _check_classes(content["config"].get("num_classes"), f"{source.name}/{file}", source)
    return content["config"]


def registered(class_name: str) -> str:
    """The name under which Keras registers a class of ours, or of a user's own package."""
    return class_name if ">" in class_name else PACKAGE + class_name


def _check_classes(count: int | None, where: str, source: Source) -> None:
    """Raises a ValueError if the file of the head can't hold so many classes, before it is made."""
    if count is None or not source.has("task.weights.h5"):
        return
    size = source.path("task.weights.h5").stat().st_size
    if count > size:
        raise ValueError(
            f"{where}: num_classes is {count:,}, and task.weights.h5 has {size:,} bytes"
        )


def load_backbone(
    source: Source, load_weights: bool, report: LoadingReport, **overrides
) -> BertBackbone:
    """Makes the backbone of a preset.

    Adapters requested from a preset without any are new.

    For `load_weights` and the overrides see `Checkpoint.backbone`; `report` gets the names.

    Raises:
        ValueError: if a setting is unknown, or the weights do not fit.
    """
    config = settings(source, "config.json", "BertBackbone")
    saved_dim = config.get("adapter_dim")
    _check_backbone(config, f"{source.name}/config.json")
    if load_weights:
        _check_sizes(config, source)
    config |= overrides
    tuning = {name: config.pop(name, None) for name in ("frozen", "lora")}
    trainable = config.pop("trainable", True)
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
    backbone.trainable = trainable
    backbone.restore_tuning(**tuning)
    new = backbone.adapters if saved_dim is None else []
    path = source.path("model.weights.h5")
    load_h5(lambda p: keras.saving.load_weights(backbone, p, objects_to_skip=new), path)
    report.new += [weight.path for adapter in new for weight in adapter.weights]
    report.loaded += [w.path for w in backbone.weights if w.path not in {*report.new}]
    return backbone


def _check_backbone(config: dict[str, Any], where: str) -> None:
    check_config(config, where, {})
    unknown = config.keys() - {*_ARGUMENTS, *_ADDED}
    if unknown:
        raise ValueError(f"{where} has the unknown settings {', '.join(sorted(unknown))}")
    right = {name: (lambda value: isinstance(value, bool), "true or false") for name in _FLAGS}
    right["frozen"] = lambda value: is_names(value or []), "paths of weights"
    right["lora"] = (
        lambda value: value is None or _is_lora(value, config["hidden_dim"]),
        "null, or a rank up to hidden_dim, alpha and names of layers",
    )
    for name, (is_right, expected) in right.items():
        if name in config and not is_right(config[name]):
            raise ValueError(f"{where}: {name} is {short(config[name])}; expected {expected}")
    if config.get("adapter_dim") is not None:
        check_size(config["adapter_dim"], "adapter_dim", where)
    if config["activation"] not in ("gelu_exact", "gelu_tanh"):
        try:
            keras.activations.get(config["activation"])
        except ValueError as error:
            raise ValueError(f"{where}: activation: {error}") from error


def _is_lora(value: Any, most: int) -> bool:
    return (
        isinstance(value, dict)
        and type(value.get("rank")) is int
        and 1 <= value["rank"] <= most
        and isinstance(value.get("alpha"), int | float)
        and is_names(value.get("layers"))
    )


def _check_sizes(config: dict[str, Any], source: Source) -> None:
    """Raises a ValueError if the file of weights can't be that of such a backbone.

    Before the backbone is made, which takes the memory and the time that its sizes ask for.
    """
    path = source.path("model.weights.h5")
    shapes = check_whole(path)
    blocks = {name.split("/")[1] for name in shapes if name.startswith("layers/encoder_block")}
    if len(blocks) != config["num_layers"]:
        raise ValueError(
            f"{source.name}/config.json: num_layers is {config['num_layers']}, and {path} has "
            f"{len(blocks)}"
        )
    need, there = least_numbers(config), sum(map(prod, shapes.values()))
    if need > 2 * there:  # int4 has two of them in one
        raise ValueError(
            f"{path} has {there:,} numbers; a model of the sizes in config.json has {need:,}"
        )


def load_h5(load: Callable[[str], None], path: Path) -> None:
    """Calls a weight loader, and unifies its many errors.

    Raises:
        ValueError: if the file is damaged or does not fit.
    """
    check_whole(path)
    try:
        load(str(path))
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path} can't be read into this model: {error}") from error


def dtype_policy(value: Any, source: Source):
    """Rebuilds a dtype policy from its name or from what Keras serialized.

    Raises:
        ValueError: if the value names anything but one of Keras's own policies.
    """
    problem = "is not one of Keras's dtype policies"
    if _is_policy(value):
        try:
            return keras.dtype_policies.get(value)
        except (TypeError, ValueError, KeyError) as error:
            problem = f"{problem}: {error}"
    raise ValueError(f"{source.name}: dtype {short(value)} {problem}")


def _is_policy(value: Any) -> bool:
    """Whether Keras makes a policy and nothing else of this: so does all that is nested in it."""
    if not isinstance(value, dict):
        return value is None or isinstance(value, str | int)
    name, config = str(value.get("class_name")), value.get("config")
    if (
        value.get("module") not in ("keras", "keras.dtype_policies")
        or value.get("registered_name") not in (None, name)
        or not name.endswith(("DTypePolicy", "DTypePolicyMap"))
        or not isinstance(config, dict)
    ):
        return False
    parts = {**config}
    inner = parts.pop("policy_map", {})
    return isinstance(inner, dict) and all(map(_is_policy, [*parts.values(), *inner.values()]))
