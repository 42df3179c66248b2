"""Labelled text from tables: TSV, CSV, JSON lines (plain or gzipped) and Parquet files.

Every record of the file becomes an example or raises an error that names the file and the line;
records are skipped only on request, and then counted in the log. `rows.py` defines a record.
"""

import logging
import math
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from keras_bert.arguments import check_choice
from keras_bert.data.rows import Column, name_lines, read_rows

logger = logging.getLogger("keras_bert")

# float() also accepts nan, infinity, 1_000 and digits of other scripts, which are not valid labels.
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Examples(NamedTuple):
    """Texts with their labels, in columns.

    Attributes:
        texts: a list of strings, or a pair of lists of equal length for text pairs.
        labels: class ids if label names were given, otherwise the labels as written; floats for
            regression; for multi-label a list for each text, of 0 and 1 for every label name, or of
            the labels as written; None without labels.
        lines: the line of the file (from 1) where each example starts, if there is a file.
    """

    texts: list[str] | tuple[list[str], list[str]]
    labels: list[int] | list[str] | list[float] | list[list[int]] | list[list[str]] | None = None
    lines: list[int] | None = None

    def head(self, count: int | None) -> "Examples":
        """Returns the first `count` examples; all for None.

        Args:
            count: number of examples, or None.

        Returns:
            An object of the same class.
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
    """Reads texts, and optionally labels, from a table.

    Args:
        path: a `.tsv`, `.txt` (tabs), `.csv` or `.jsonl` file, or one of these with `.gz` added; or
            a `.parquet` file.
        text_columns: one column, or two for text pairs; each a name, or an index from 0.
        label_column: the column of the labels; None reads only texts. For `label_kind="several"` it
            can be several columns, one for each label, with 0 or 1.
        header: whether the first line has column names. JSON lines and Parquet have their own.
        columns: column names of a file without a header; each line must have as many columns.
        label_names: the labels as written in the file, in the order of their ids.
        delimiter: the field separator, if it follows neither from the file name nor, of `.csv`,
            from a header line without commas.
        label_kind: "class", one label per example; "number", a finite number, for regression;
            "several", any number of labels, or none; as 0 and 1 for each of `label_names` or of
            the label columns, so that N examples give a matrix [N, C].
        label_separator: separator between several labels of an example; spaces around it are
            dropped. Not needed for lists in JSON lines.
        skip_labels: examples with one of these labels are skipped; the log has their number and
            lines.
        skip_broken_rows: skips lines with too few or too many columns, and logs them too.

    Returns:
        `Examples` in the order of the file.

    Raises:
        ValueError: with file and line, if a column is missing, a line has too few or too many
            columns, a label is not in `label_names`, not a number, not 0 or 1, or duplicated in an
            example, the bytes are not UTF-8 (a byte-order mark is allowed), or the file has no
            examples.
        FileNotFoundError: if the file does not exist.
    """
    path = Path(path)
    text_columns, label_columns = _as_list(text_columns), _as_list(label_column)
    one_a_label = label_kind == "several" and not isinstance(label_column, str | int | None)
    skip_labels = {skip_labels} if isinstance(skip_labels, str) else set(skip_labels)
    if len(text_columns) not in (1, 2):
        raise ValueError(f"text_columns={text_columns}: expected 1 or 2 columns")
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
            logger.warning("%s: %s skipped, with %s: %s", path, rows, why, name_lines(left_out))
    if not lines:
        rest = f"; {len(skipped) + len(broken or ())} rows were skipped"
        why = rest if skipped or broken else "; the file is empty or has only a header"
        raise ValueError(f"{path}: no examples{why}")
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
    """A function from the label cells of an example to its label; its errors lack file and line."""
    check_choice("label_kind", kind, ("class", "number", "several"))
    problem = ""
    if len(columns) > 1 and kind != "several":
        problem = f"label_kind={kind!r}: expected 'several' for {len(columns)} columns"
    elif names is not None and not columns:
        problem = "label_names: expected a label_column with them"
    elif names is not None and len(set(names)) != len(names):
        problem = f"label_names={list(names)}: expected different names"
    elif names is not None and (kind == "number" or one_a_label):
        what = "numbers" if kind == "number" else f"the columns {list(columns)}, which name them"
        problem = f"label_names {list(names)} do not go with labels that are {what}"
    if problem:
        raise ValueError(problem)
    ids = None if names is None else {name: i for i, name in enumerate(names)}
    column = columns[0] if columns else None

    def number(cells: list[str]) -> float:
        value = float(cells[0]) if NUMBER.fullmatch(cells[0].strip()) else math.nan
        if not math.isfinite(value):
            raise ValueError(f"label {cells[0]!r} in column {column!r}: expected a finite number")
        return value

    def known(label: str) -> str:
        if ids is not None and label not in ids:
            raise ValueError(f"label {label!r} in column {column!r}: expected one of {list(names)}")
        return label

    def one(cells: list[str]) -> int | str:
        return known(cells[0]) if ids is None else ids[known(cells[0])]

    def several(cells: list) -> list:
        cell = cells[0]
        if isinstance(cell, str):
            cell = [part.strip() for part in cell.split(separator)] if cell.strip() else []
        if len(set(cell)) != len(cell):
            raise ValueError(f"labels {cell} in column {column!r}: expected different labels")
        found = [known(label) for label in cell]
        return found if ids is None else [int(name in found) for name in ids]

    def marked(cells: list) -> list[int]:
        for name, cell in zip(columns, cells, strict=True):
            if cell not in ("0", "1"):
                raise ValueError(f"{cell!r} in the label column {name!r}: expected '0' or '1'")
        return [int(cell) for cell in cells]

    if kind == "number":
        return number
    if kind == "several":
        return marked if one_a_label else several
    return one
