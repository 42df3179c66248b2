"""Checks of arguments and of optional packages, with uniform error messages."""

import math
import numbers
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

BATCH_SIZE = 32  # the default


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Checks an integer argument.

    Args:
        name: of the argument.
        value: what was passed.
        least: the smallest value allowed.

    Returns:
        The value as an int.

    Raises:
        ValueError: if it is not an integer or is less than `least`.
    """
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(f"{name}={value!r}: expected a whole number, {least} or more")
    return int(value)


@contextmanager
def needed(user: str, library: str, package: str) -> Iterator[None]:
    """Says how to install an optional library that an import inside of it lacks.

    Args:
        user: what needs it.
        library: its name.
        package: what pip installs, such as "'keras3-bert[plots]'".

    Raises:
        ImportError: if it is missing.
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(f"{user} needs {library}: `pip install {package}`") from error


def check_choice(name: str, value: Any, known: Collection[str]) -> None:
    """Checks an argument that is one of some names.

    Raises:
        ValueError: if it is none of them.
    """
    if value not in known:
        raise ValueError(f"{name}={value!r}: expected one of {', '.join(known)}")


def check_number(
    name: str, value: Any, least: float = 0, most: float = math.inf, below: float = math.inf
) -> None:
    """Checks a finite number: from `least` to `most`, or below `below`.

    Raises:
        ValueError: if it is not a number or out of range.
    """
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not math.isfinite(value) or not least <= value <= most or value >= below:
        until = "" if most == math.inf else f" to {most:g}"
        until = until if below == math.inf else f" to below {below:g}"
        raise ValueError(f"{name}={value!r}: expected a number from {least:g}{until or ' on'}")


def check_above_zero(name: str, value: Any, most: float = math.inf) -> None:
    """Checks a finite number above 0, up to `most`.

    Raises:
        ValueError: if it is not a number or out of range.
    """
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not math.isfinite(value) or not 0 < value <= most:
        until = "" if most == math.inf else f" and up to {most:g}"
        raise ValueError(f"{name}={value!r}: expected a number above 0{until}")


def check_batch_size(value: Any) -> int:
    """Checks a batch size; None gives the default of 32.

    Raises:
        ValueError: if it is not a positive integer.
    """
    return BATCH_SIZE if value is None else check_count("batch_size", value)
