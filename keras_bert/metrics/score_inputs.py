"""Checks of what metrics compare: input that would silently give a wrong number is an error."""

from typing import Any

import numpy as np


def check_shapes(**arrays: tuple[Any, str]) -> None:
    """Checks the shapes of arrays, by name (array, form), against each other.

    A form has a letter for each axis, such as "NC", and axes with the same letter have the same
    length, which is not 0.
    """
    lengths: dict[str, int] = {}
    for array, form in arrays.values():
        shape = np.shape(array)
        equal = len(shape) == len(form)
        if not equal or any(
            lengths.setdefault(c, n) != n for c, n in zip(form, shape, strict=True)
        ):
            found = (f"{name} of shape {[*np.shape(v)]}" for name, (v, _) in arrays.items())
            forms = (f"[{', '.join(form)}]" for _, form in arrays.values())
            raise ValueError(f"{' and '.join(found)}: expected {' and '.join(forms)}")
    if 0 in lengths.values():
        raise ValueError(f"Nothing to score: {' and '.join(arrays)} are empty")


def check_values(name: str, values: np.ndarray, right: np.ndarray, expected: str) -> None:
    """Checks values of examples, [N] or [N, C], and names the first one that is not `right`."""
    wrong = np.argwhere(~right)
    if len(wrong):
        example, *column = wrong[0].tolist()
        place = f"example {example}" + "".join(f", class {number}" for number in column)
        raise ValueError(
            f"{name} {values[tuple(wrong[0])]} of {place}: expected {expected} ({len(wrong)} such)"
        )
