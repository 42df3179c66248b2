"""Checks of the numbers in a checkpoint's settings, before they are used."""

import math
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# The largest sizes of a backbone. They are far above any BERT: larger values mean damage.
SIZES = {
    "vocabulary_size": 10_000_000,
    "num_layers": 1_000,
    "num_heads": 1_000_000,
    "hidden_dim": 1_000_000,
    "intermediate_dim": 10_000_000,
    "max_sequence_length": 10_000_000,
    "num_segments": 1_000_000,
}
# Exclusive upper limits of its other numbers.
NUMBERS = {
    "hidden_dropout": 1,
    "attention_dropout": 1,
    "layer_norm_epsilon": 1,
    "initializer_range": 1_000,
}
DTYPES = ("float32", "float16", "bfloat16")  # of tensors


def short(value: Any) -> str:
    """Formats a value for an error, however large or deeply nested."""
    return reprlib.repr(value)


def shown(name: str) -> str:
    """A name from a file or folder, without terminal control characters."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)


def check_name(name: str) -> None:
    """Raises a ValueError for a tensor name with terminal control characters."""
    if not name.isprintable():
        raise ValueError(f"a tensor is called {short(name)}; expected printable characters")


def is_number(value: Any, limit: float = 1) -> bool:
    """Whether this is a number from 0 to below the limit; with limit 1, a dropout rate."""
    return type(value) in (int, float) and 0 <= value < limit


def check_number(value: Any, key: str, where: str, limit: float = 1) -> float:
    """Returns a value for which `is_number` holds.

    Raises:
        ValueError: if it is none.
    """
    if not is_number(value, limit):
        raise ValueError(
            f"{where}: {key} is {short(value)}; expected a number from 0 to less than {limit:,}"
        )
    return value


def check_size(value: Any, key: str, where: str, most: int = 10_000_000) -> int:
    """Returns a value that is an integer of 1 or more.

    Raises:
        ValueError: if it is none.
    """
    if type(value) is not int or not 1 <= value <= most:
        raise ValueError(f"{where}: {key} is {short(value)}; expected a number from 1 to {most:,}")
    return value


def check_config(config: Mapping[str, Any], where: str, keys: Mapping[str, str]) -> None:
    """Checks all arguments of a backbone from a checkpoint.

    Args:
        config: arguments of `BertBackbone`.
        where: the file, for errors.
        keys: names of arguments in the file, where they differ.

    Raises:
        ValueError: if one is missing or impossible.
    """
    names = {name: keys.get(name, name) for name in (*SIZES, *NUMBERS, "activation")}
    for name, most in SIZES.items():
        check_size(config.get(name), names[name], where, most)
    for name, limit in NUMBERS.items():
        check_number(config.get(name), names[name], where, limit)
    problem = ""
    if config["layer_norm_epsilon"] == 0:  # constant rows would be divided by it
        problem = f"{names['layer_norm_epsilon']} is 0; expected more than 0"
    elif not isinstance(config.get("activation"), str):
        problem = f"{names['activation']} is {short(config.get('activation'))}; expected a name"
    elif config["hidden_dim"] % config["num_heads"]:
        problem = f"{names['hidden_dim']} {config['hidden_dim']} is not divisible by "
        problem += f"{names['num_heads']} {config['num_heads']}"
    if problem:
        raise ValueError(f"{where}: {problem}")


def least_numbers(config: Mapping[str, Any]) -> int:
    """The number of elements in the tables and kernels of a checked backbone, without biases."""
    hidden, inner = config["hidden_dim"], config["intermediate_dim"]
    rows = config["vocabulary_size"] + config["max_sequence_length"] + config["num_segments"]
    return hidden * (rows + config["num_layers"] * (4 * hidden + 2 * inner))


def is_names(value: Any) -> bool:
    """Whether this is a list of strings."""
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def listed(folder: Path) -> str:
    """The names of the files in a folder, for an error."""
    return ", ".join(sorted(shown(path.name) for path in folder.iterdir())) or "nothing"


def is_labels(value: Any) -> bool:
    """Whether this is a list of names of classes: strings and finite numbers."""
    return isinstance(value, list) and all(
        isinstance(name, str | int) or isinstance(name, float) and math.isfinite(name)
        for name in value
    )


def check_vocabulary_fits(tokens: list[str] | None, config: Mapping[str, Any], where: str) -> None:
    """Raises a ValueError if there are more tokens than rows in the word table."""
    if len(tokens or ()) > config["vocabulary_size"]:
        raise ValueError(
            f"{where} has {len(tokens or ())} tokens for the {config['vocabulary_size']} rows of "
            "the word table"
        )
