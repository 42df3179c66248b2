"""Validation of texts passed by users."""

from collections.abc import Iterable
from typing import Any


def is_text(x: Any) -> bool:
    """Whether x is one text, as opposed to a list of them."""
    return isinstance(x, str | bytes)


def check_texts(texts: Any, name: str = "texts") -> list:
    """Converts a user's column of texts to a list of str or bytes.

    Args:
        texts: list, tuple, NumPy array or pandas column of str or bytes.
        name: its name in errors.

    Raises:
        TypeError: if there is no list, or an item is not a text, such as the NaN of an empty cell.
        ValueError: if a text contains a lone surrogate.
    """
    given, table = texts, hasattr(texts, "columns")
    texts = texts.numpy() if hasattr(texts, "numpy") else texts
    if hasattr(texts, "tolist"):
        texts = texts.tolist()
    elif isinstance(texts, Iterable) and not is_text(texts):
        texts = list(texts)
    if table or not isinstance(texts, list):
        problem = "expected a list of strings"
        if table:
            problem = "expected one column of the table"
        elif is_text(texts):
            problem = "expected a list of strings, not a string"
        kind = type(given).__name__
        shown = f"{name} of type {kind}" if table else f"{name}={given!r:.80} of type {kind}"
        raise TypeError(f"{shown}: {problem}")
    for row, text in enumerate(texts):
        if not is_text(text):
            pairs = isinstance(text, tuple | list) and len(text) == 2
            raise TypeError(
                f"{name}[{row}]={text!r:.80} of type {type(text).__name__}: expected a str"
                + (". Pass pairs as two lists: (firsts, seconds)" if pairs else "")
            )
        if isinstance(text, str) and not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise ValueError(f"{name}[{row}] cannot be encoded as UTF-8: {error}") from error
    return texts


def as_strings(texts: list, errors: str = "strict") -> list[str]:
    """Decodes those of checked texts that are bytes; for `errors` see `bytes.decode`."""
    return [text.decode(errors=errors) if isinstance(text, bytes) else text for text in texts]


def text_columns(x: Any, most: int | None = 2) -> tuple[list, ...]:
    """Splits texts, or a pair of columns, into a tuple of lists of equal length.

    Args:
        x: a column of texts, or a tuple of two columns.
        most: maximum number of columns in a tuple; None for any number from two.

    Raises:
        TypeError: if an item is not a text, or a tuple contains plain strings.
        ValueError: if the columns differ in length, or there are too few or too many.
    """
    if not isinstance(x, tuple):
        return (check_texts(x),)
    if any(map(is_text, x)):
        raise TypeError(
            "a tuple of strings is ambiguous: expected a list of texts, or a tuple of two lists "
            "(firsts, seconds); for one pair pass ([first], [second])"
        )
    if len(x) < 2 or (most is not None and len(x) > most):
        raise ValueError(f"expected (firsts, seconds), got a tuple of {len(x)}")
    names = ("first", "second", "third", *(f"{i + 1}th" for i in range(3, len(x))))[: len(x)]
    columns = tuple(check_texts(c, f"{name}s") for c, name in zip(x, names, strict=True))
    for name, column in zip(names, columns, strict=True):
        if len(column) != len(columns[0]):
            raise ValueError(f"{len(columns[0])} first texts but {len(column)} {name} texts")
    return columns
