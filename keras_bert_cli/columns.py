"""Which columns of a table hold the texts and the labels, by their names and contents."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from keras_bert.data.rows import column_names, header_delimiter, read_objects, read_rows
from keras_bert.data.tables import NUMBER

ROWS = 1000  # read to guess by
TEXT_NAMES = ("text", "sentence", "review", "content", "body", "comment", "message", "document")
PAIR_NAMES = (
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("text", "text_pair"),
    ("#1 string", "#2 string"),
    ("anchor", "positive"),
    ("query", "passage"),
)
LABEL_NAMES = (
    "label",
    "labels",
    "tags",
    "class",
    "category",
    "sentiment",
    "target",
    "rating",
    "stars",
)
NUMBER_NAMES = ("score", "rating", "stars", "similarity", "value", "target", "label", "grade")


class Columns(NamedTuple):
    """Columns of a table, and how they were found.

    Attributes:
        texts: names of the columns with texts.
        labels: names of those with labels; empty without labels.
        guesses: a sentence for each choice that was not given.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    guesses: tuple[str, ...] = ()


def find_columns(
    path: Path,
    texts: Sequence[str] = (),
    labels: Sequence[str] = (),
    *,
    pairs: bool | None = False,
    label_kind: str | None = "class",
    delimiter: str | None = None,
) -> Columns:
    """Chooses the columns that are not given.

    Args:
        path: a table with column names.
        texts: names of the columns with texts, if given.
        labels: names of those with labels, if given.
        pairs: True for two columns of texts, False for one, None for what the names suggest.
        label_kind: "class", "number", "several", or None for no labels; "optional" for a number if
            there is a column of that kind.
        delimiter: as `keras_bert.data.read_table`.

    Returns:
        The columns.

    Raises:
        ValueError: if a column does not exist, or none looks like what is asked for; the message
            lists the columns.
    """
    names = column_names(path, delimiter)
    if not names:
        raise ValueError(f"{path}: no columns; the file is empty")
    separator = header_delimiter(path, delimiter)
    for name in (*texts, *labels):
        if names.count(name) != 1:
            problem = "several columns" if name in names else "no column"
            raise ValueError(f"{path}, line 1: {problem} {name!r}; the columns are {names}")
    texts, labels, guesses = tuple(texts), tuple(labels), []
    if delimiter is None and path.name.endswith((".csv", ".csv.gz")) and separator != ",":
        guesses.append(f"columns are separated by {separator!r}")
    free = [name for name in names if name not in (*texts, *labels) and names.count(name) == 1]
    cells = _cells(path, free, delimiter)
    only = "" if len(names) > 1 else "; if it has several, name their separator with --delimiter"
    if not labels and label_kind is not None:
        wanted = LABEL_NAMES if label_kind in ("class", "several") else NUMBER_NAMES
        labels, why = _label_column(cells, wanted, label_kind)
        if labels:
            guesses.append(f"labels in {_quoted(labels)}, {why}")
        elif label_kind != "optional":
            raise ValueError(
                f"{path}: no column looks like labels; the columns are {names}: name one with "
                f"--label{only}"
            )
    if not texts:
        left = {name: column for name, column in cells.items() if name not in labels}
        texts, why = _text_columns(left, pairs)
        if not texts:
            kind = "two columns of texts" if pairs else "texts"
            raise ValueError(
                f"{path}: no column looks like {kind}; the columns are {names}: name it with "
                f"--text{only}"
            )
        guesses.append(f"texts in {_quoted(texts)}, {why}")
    return Columns(texts, labels, tuple(guesses))


def _quoted(names: Sequence[str]) -> str:
    return " and ".join(f"{name!r}" for name in names)


def _cells(path: Path, names: list[str], delimiter: str | None) -> dict[str, list]:
    """The first cells of columns, without those of objects that hold neither text nor label.

    Rows in which a column is empty or of another kind than in most rows say nothing of the column:
    they are left out here, and the reader of the file names them.
    """
    if header_delimiter(path, delimiter) is not None:
        rows = read_rows(path, names, delimiter=delimiter, broken=[])
        first = [cells for _, cells in itertools.islice(rows, ROWS)]
        found = {name: [cells[i] for cells in first] for i, name in enumerate(names)}
        return {name: _usual(column) or column for name, column in found.items()}
    objects = [row for _, row in itertools.islice(read_objects(path, columns=names), ROWS)]
    found = {name: _usual([_cell(row.get(name)) for row in objects]) for name in names}
    return {name: column for name, column in found.items() if column}


def _usual(column: list[str | list[str] | None]) -> list:
    """The texts of a column, or its lists, if half of its cells or more are such; else none."""
    texts = [cell for cell in column if isinstance(cell, str) and cell.strip()]
    lists = [cell for cell in column if isinstance(cell, list)]
    return next((kept for kept in (texts, lists) if 2 * len(kept) >= len(column)), [])


def _cell(value) -> str | list[str] | None:
    """A value of an object as `keras_bert.data.read_table` gives it; None for nested ones."""
    if isinstance(value, list):
        items = [_cell(item) for item in value]
        return items if all(isinstance(item, str) for item in items) else None
    if value is None or isinstance(value, dict):
        return None
    return value if isinstance(value, str) else json.dumps(value)


def _named(cells: dict[str, list], wanted: Sequence[str]) -> str | None:
    by_name = {name.strip().lower(): name for name in cells}
    return next((by_name[name] for name in wanted if name in by_name), None)


def _label_column(cells: dict[str, list], wanted: Sequence[str], kind: str):
    if kind == "several":
        marks = [n for n, column in cells.items() if column and set(map(str, column)) <= {"0", "1"}]
        if len(marks) > 1:
            return tuple(marks), "columns of 0 and 1"
    name = _named(cells, wanted)
    if name is not None:
        return (name,), "by its name"
    if kind in ("number", "optional"):
        numbers = [n for n, column in cells.items() if _are_numbers(column)]
        # A column of whole numbers that all differ counts the rows.
        numbers = [n for n in numbers if len(set(cells[n])) < len(cells[n])]
        return ((numbers[-1],), "the last column of numbers") if numbers else ((), "")
    lists = [n for n, column in cells.items() if any(isinstance(c, list) for c in column)]
    if kind == "several" and lists:
        return (lists[-1],), "a column of lists"
    few = {
        n: len(set(column))
        for n, column in cells.items()
        if column and all(isinstance(c, str) for c in column) and 1 < len(set(column))
    }
    few = {n: count for n, count in few.items() if count <= max(2, len(cells[n]) // 4)}
    if not few:
        return (), ""
    # Of several such columns the last: labels follow what they are about.
    return (min(reversed(few), key=few.get),), "the column with the fewest different values"


def _text_columns(cells: dict[str, list], pairs: bool | None):
    by_name = {name.strip().lower(): name for name in cells}
    if pairs is not False:
        for first, second in PAIR_NAMES:
            if first in by_name and second in by_name:
                return (by_name[first], by_name[second]), "by their names"
    texts = {
        name: mean(map(len, column))
        for name, column in cells.items()
        if column and all(isinstance(c, str) for c in column) and not _are_numbers(column)
    }
    if pairs:
        longest = sorted(texts, key=texts.get)[-2:]
        chosen = tuple(name for name in texts if name in longest)  # in the order of the table
        return (chosen, "the two with the longest texts") if len(chosen) == 2 else ((), "")
    name = _named(cells, TEXT_NAMES)
    if name is not None:
        return (name,), "by its name"
    return ((max(texts, key=texts.get),), "the longest texts") if texts else ((), "")


def _are_numbers(column: list) -> bool:
    """Whether more than half of the cells are numbers."""
    numbers = [c for c in column if isinstance(c, str) and NUMBER.fullmatch(c.strip())]
    return 2 * len(numbers) > len(column)
