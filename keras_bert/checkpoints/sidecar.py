"""keras_bert.json: what a form of checkpoint can't say, beside its own files.

Other programs pass over it. Without it a reader falls back on what the form says, or on what is
usual for it. It holds any of these keys of `Contents`, and "version": config (some arguments of
`BertBackbone`), head, labels, problem, head_dropout, tokenizer, dtype.
"""

import json
from pathlib import Path
from typing import Any

from keras_bert.atomic import write_file
from keras_bert.checkpoints.contents import HEADS, Contents
from keras_bert.checkpoints.source import Source

FILE = "keras_bert.json"
_VERSION = 1
_CONFIG = (
    "activation",
    "hidden_dropout",
    "attention_dropout",
    "layer_norm_epsilon",
    "initializer_range",
)
_TYPES: dict[str, tuple] = {
    "config": (dict,),
    "head": (str, type(None)),
    "labels": (list, type(None)),
    "problem": (str,),
    "head_dropout": (float, int, type(None)),
    "tokenizer": (dict, type(None)),
    "dtype": (str,),
}


def write_sidecar(contents: Contents, folder: Path) -> None:
    """Writes the file into a folder."""
    values: dict[str, Any] = {name: getattr(contents, name) for name in _TYPES}
    values["config"] = {name: contents.config[name] for name in _CONFIG if name in contents.config}
    text = json.dumps({"version": _VERSION, **values}, indent=2) + "\n"
    write_file(folder / FILE, text.encode())


def read_sidecar(source: Source) -> dict[str, Any]:
    """Reads the file; an empty dict where there is none.

    Raises:
        ValueError: if it is of another version, or a value is of the wrong kind.
    """
    if not source.has(FILE):
        return {}
    values = source.json(FILE)
    if values.pop("version", None) != _VERSION:
        raise ValueError(f"{source.name}/{FILE} is not of version {_VERSION}")
    for name, value in values.items():
        if name not in _TYPES or not isinstance(value, _TYPES[name]):
            raise ValueError(f"{source.name}/{FILE}: unexpected {name}: {value!r}")
    strange = set(values.get("config", {})) - set(_CONFIG)
    if strange or values.get("head") not in (None, *HEADS):
        raise ValueError(
            f"{source.name}/{FILE}: unexpected {', '.join(sorted(strange)) or values['head']}"
        )
    return values
