"""Labelled text from tables: TSV, CSV and JSON-lines files, plain or gzipped.

Every row of the file becomes one example or an error that names the file and the line; rows are
left out only on request, and then counted in the log. `rows.py` says what a row is.
"""

import logging
import math
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from keras_bert.data.rows import Column, name_lines, read_rows

logger = logging.getLogger("keras_bert")

# What float() takes beside it (nan, infinity, 1_000, digits of other scripts) is no label.
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Examples(NamedTuple):
    """Texts with their labels, column by column.

    Attributes:
        texts: one list of strings, or a pair of equally long lists for sentence pairs.
        labels: class ids when label names were given, else the labels as written, else `None`;
            floats for regression; for texts that may have several labels a list each, of 0 and 1
            for every label name, else of the labels as written.
        lines: the line of the file (from 1) that each example starts on, if there is a file.
    """

    texts: list[str] | tuple[list[str], list[str]]
    labels: list[int] | list[str] | list[float] | list[list[int]] | list[list[str]] | None = None
    lines: list[int] | None = None

    def head(self, count: int | None) -> "Examples":
        """Gives the first `count` examples; all of them for `None`.

        Args:
            count: how many, or None.

        Returns:
            As many of the same form.
        """
        pair = isinstance(self.texts, tuple)
        texts = tuple(t[:count] for t in self.texts) if pair else self.texts[:count]
        rest = [values and values[:count] for values in (self.labels, self.lines)]
        return Examples(texts, *rest)


def read_table(
    path: str | Path,
    text_columns: Column | Sequence[Column],
    label_column: Column | Sequence[Column] | None = None,
    *,
    header: bool = True,
    columns: Sequence[str] | None = None,
    label_names: Sequence[str] | None = None,
    delimiter: str | None = None,
    label_kind: Literal["class", "number", "several"] = "class",
    label_separator: str = ",",
    skip_labels: Collection[str] = (),
    skip_broken_rows: bool = False,
) -> Examples:
    """Reads texts, and labels if asked, from a table.

    Args:
        path: a `.tsv`, `.txt` (tabs), `.csv` or `.jsonl` file, or one of these with `.gz` added.
        text_columns: one column, or two for sentence pairs; each a name, or an index from 0.
        label_column: the column of the labels; `None` reads texts alone. For `label_kind="several"`
            it may be several columns, one a label, that hold 0 or 1.
        header: whether the first line names the columns. JSON lines have names of their own.
        columns: names of the columns of a file without a header; each row must have this many.
        label_names: the labels as the file writes them, in the order of their ids.
        delimiter: the field separator, if the file name does not tell it.
        label_kind: "class", one label a row; "number", a finite number a row, for regression;
            "several", any number of labels a row, none included; as 0 and 1 for each of
            `label_names` or of the label columns, so that N rows make a matrix [N, C].
        label_separator: what stands between the labels of a row that has several; spaces around it
            are dropped. A list in JSON lines needs none.
        skip_labels: rows with one of these as the label are left out; the log says how many, and
            where.
        skip_broken_rows: leaves out lines with too few or too many columns, likewise.

    Returns:
        `Examples` in the order of the file.

    Raises:
        ValueError: with the file, the line, what was found and what was expected, if a column is
            missing, a row is short or long, a label is not in `label_names`, not a number, not 0
            or 1, or twice in a row, the bytes are not UTF-8 (a byte-order mark is fine), or the
            file holds no example.
        FileNotFoundError: if there is no such file.
    """
    path = Path(path)
    text_columns, label_columns = _as_list(text_columns), _as_list(label_column)
    one_a_label = label_kind == "several" and not isinstance(label_column, str | int | None)
    skip_labels = {skip_labels} if isinstance(skip_labels, str) else set(skip_labels)
    if len(text_columns) not in (1, 2):
        raise ValueError(f"text_columns must be 1 or 2 columns, got {text_columns}.")
    parse = _label_parser(label_kind, label_columns, one_a_label, label_names, label_separator)
    broken: list[int] | None = [] if skip_broken_rows else None
    skipped: list[int] = []
    texts: list[list[str]] = [[] for _ in text_columns]
    labels: list = []
    lines: list[int] = []
    for line, cells in read_rows(
        path,
        [*text_columns, *label_columns],
        header=header,
        names=columns,
        delimiter=delimiter,
        list_columns=label_columns if label_kind == "several" and not one_a_label else (),
        broken=broken,
    ):
        label_cells = cells[len(text_columns) :]
        if any(isinstance(cell, str) and cell in skip_labels for cell in label_cells):
            skipped.append(line)
            continue
        if label_columns:
            try:
                labels.append(parse(label_cells))
            except ValueError as error:
                hint = "" if lines or header else "; is this a header line in a file without one?"
                raise ValueError(f"{path}, line {line}: {error}{hint}") from error
        for column, cell in zip(texts, cells, strict=False):
            column.append(cell)
        lines.append(line)
    for left_out, why in (
        (broken, "more or fewer columns than the table"),
        (skipped, f"a label of {sorted(skip_labels)}"),
    ):
        if left_out:
            rows = f"{len(left_out)} row{'s' if len(left_out) > 1 else ''}"
            logger.warning("%s: %s left out, with %s: %s", path, rows, why, name_lines(left_out))
    if not lines:
        rest = f"; {len(skipped) + len(broken or ())} rows were left out"
        why = rest if skipped or broken else "; the file is empty or holds only a header"
        raise ValueError(f"{path}: no examples{why}.")
    return Examples(
        texts[0] if len(texts) == 1 else (texts[0], texts[1]),
        labels if label_columns else None,
        lines,
    )


def _as_list(columns: Column | Sequence[Column] | None) -> list[Column]:
    if columns is None:
        return []
    return [columns] if isinstance(columns, str | int) else list(columns)


def _label_parser(
    kind: str,
    columns: Sequence[Column],
    one_a_label: bool,
    names: Sequence[str] | None,
    separator: str,
) -> Callable[[list], object]:
    """A function from the label cells of a row to its label; what it raises has no place yet."""
    if kind not in ("class", "number", "several"):
        raise ValueError(f"label_kind must be 'class', 'number' or 'several', got {kind!r}.")
    if names is not None and not columns:
        raise ValueError("label_names were given without a label_column to find the labels in.")
    if names is not None and len(set(names)) != len(names):
        raise ValueError(f"label_names must differ from each other, got {list(names)}.")
    if len(columns) > 1 and kind != "several":
        raise ValueError(f"{len(columns)} label columns are for label_kind='several', not {kind!r}")
    if names is not None and (kind == "number" or one_a_label):
        what = "numbers" if kind == "number" else f"the columns {list(columns)}, which name them"
        raise ValueError(f"label_names {list(names)} do not go with labels that are {what}.")
    ids = None if names is None else {name: i for i, name in enumerate(names)}
    column = columns[0] if columns else None

    def number(cells: list[str]) -> float:
        value = float(cells[0]) if NUMBER.fullmatch(cells[0].strip()) else math.nan
        if not math.isfinite(value):
            raise ValueError(f"label {cells[0]!r} in column {column!r} is not a finite number")
        return value

    def known(label: str) -> str:
        if ids is not None and label not in ids:
            raise ValueError(f"label {label!r} in column {column!r} is not one of {list(names)}")
        return label

    def one(cells: list[str]) -> int | str:
        return known(cells[0]) if ids is None else ids[known(cells[0])]

    def several(cells: list) -> list:
        cell = cells[0]
        if isinstance(cell, str):
            cell = [part.strip() for part in cell.split(separator)] if cell.strip() else []
        if len(set(cell)) != len(cell):
            raise ValueError(f"labels {cell} in column {column!r} are not all different")
        found = [known(label) for label in cell]
        return found if ids is None else [int(name in found) for name in ids]

    def marked(cells: list) -> list[int]:
        for name, cell in zip(columns, cells, strict=True):
            if cell not in ("0", "1"):
                raise ValueError(f"{cell!r} in the label column {name!r} is neither '0' nor '1'")
        return [int(cell) for cell in cells]

    if kind == "number":
        return number
    if kind == "several":
        return marked if one_a_label else several
    return one
