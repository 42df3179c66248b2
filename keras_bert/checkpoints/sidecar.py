"""keras_bert.json: settings that a checkpoint format cannot hold, next to its own files.

Other programs ignore it. Without it a reader uses the settings of the format, or its usual
defaults. It holds any of these keys of `Contents`, and "version": config (some arguments of
`BertBackbone`), masked_lm, head, labels, problem, thresholds, temperature, head_dropout,
tokenizer, dtype.
"""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from keras_bert.atomic import write_file
from keras_bert.checkpoints.checks import DTYPES, NUMBERS, is_number, short
from keras_bert.checkpoints.contents import HEADS, Contents
from keras_bert.checkpoints.saved_settings import is_right
from keras_bert.checkpoints.source import Source
from keras_bert.text.tokenizer import SETTINGS

FILE = "keras_bert.json"
_VERSION = 1
_CONFIG = ("activation", "causal", *NUMBERS)
_MASKED_LM = ("activation", "layer_norm_epsilon")


def write_sidecar(contents: Contents, folder: Path) -> None:
    """Writes the file into a folder."""
    text = json.dumps({"version": _VERSION, **_values(contents)}, indent=2) + "\n"
    write_file(folder / FILE, text.encode())


def read_sidecar(source: Source) -> dict[str, Any]:
    """Reads and checks the file; an empty dict if there is none.

    Raises:
        ValueError: if it is of another version, or a value is impossible.
    """
    if not source.has(FILE):
        return {}
    values, where = source.json(FILE), f"{source.name}/{FILE}"
    if values.pop("version", None) != _VERSION:
        raise ValueError(f"{where} is not of version {_VERSION}")
    _check(values, where)
    return values


def check_settings(contents: Contents) -> None:
    """Raises a ValueError if contents hold values that `read_sidecar` would reject."""
    _check(_values(contents), contents.source)


def _values(contents: Contents) -> dict[str, Any]:
    values = {name: getattr(contents, name) for name in _RIGHT}
    return values | {"config": {n: contents.config[n] for n in _CONFIG if n in contents.config}}


def _check(values: Mapping[str, Any], where: str) -> None:
    wrong = [
        f"{name}: {short(value)}"
        for name, value in values.items()
        if name not in _RIGHT or not _RIGHT[name](value)
    ]
    if wrong:
        raise ValueError(f"{where}: unexpected {'; '.join(wrong)}")


def _is_config(values: Any) -> bool:
    return isinstance(values, dict) and all(
        isinstance(value, str if name == "activation" else bool)
        if name in ("activation", "causal")
        else is_number(value, NUMBERS.get(name, 0)) and (value > 0 or "epsilon" not in name)
        for name, value in values.items()
    )


def _is_rule(values: Any) -> bool:
    """Whether these may be arguments of `BertTokenizer`, or None."""
    return values is None or (
        isinstance(values, dict)
        and all(name in SETTINGS and is_right(name, value) for name, value in values.items())
    )


_RIGHT = {
    "config": _is_config,
    "masked_lm": lambda value: _is_config(value) and value.keys() <= set(_MASKED_LM),
    "head": lambda value: value in (None, *HEADS),
    "labels": partial(is_right, "labels"),
    "problem": partial(is_right, "problem"),
    "thresholds": partial(is_right, "thresholds"),
    "temperature": partial(is_right, "temperature"),
    "head_dropout": lambda value: value is None or is_number(value),
    "tokenizer": _is_rule,
    "dtype": lambda value: value in DTYPES,
}
