"""Checks of the numbers that users pass, in one dialect."""

import math
import numbers
from typing import Any

BATCH_SIZE = 32  # rows of a batch where nobody says


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Checks a whole number.

    Args:
        name: of the argument.
        value: what was passed.
        least: the least that it may be.

    Returns:
        It as an int.

    Raises:
        ValueError: if it is none, or less.
    """
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(f"{name}={value!r}: expected a whole number, {least} or more")
    return int(value)


def check_number(name: str, value: Any, least: float = 0, most: float = math.inf) -> None:
    """Checks a finite number from `least` to `most`.

    Raises:
        ValueError: if it is none, or out of range.
    """
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not math.isfinite(value) or not least <= value <= most:
        until = "" if most == math.inf else f" to {most:g}"
        raise ValueError(f"{name}={value!r}: expected a number from {least:g}{until or ' on'}")


def check_batch_size(value: Any) -> int:
    """Checks rows of a batch; None gives the default of 32.

    Raises:
        ValueError: if it is no whole number above 0.
    """
    return BATCH_SIZE if value is None else check_count("batch_size", value)
