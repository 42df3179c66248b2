"""Labelled text from tables: TSV, CSV and JSON-lines files, plain or gzipped.

Every row of the file becomes one example or an error that names the file and the line; only blank
lines are passed over. Three dialects are known, chosen by the file name or by `delimiter`:

- tab: quoting is off, a quotation mark is text. The GLUE files are written so (MRPC and STS-B hold
  unbalanced quotes, and a reader that honours them swallows rows).
- any other delimiter: CSV as in RFC 4180, quotes honoured, a field may hold line breaks.
- `.jsonl`: one JSON object a line, the columns are its keys.
"""

import csv
import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

UTF8_BOM = b"\xef\xbb\xbf"
DELIMITERS = {".tsv": "\t", ".txt": "\t", ".csv": ","}


class Examples(NamedTuple):
    """Texts with their labels, column by column.

    Attributes:
        texts: one list of strings, or a pair of equally long lists for sentence pairs.
        labels: class ids when label names were given, else the labels as written, else `None`.
        lines: the line of the file (from 1) that each example starts on, if there is a file.
    """

    texts: list[str] | tuple[list[str], list[str]]
    labels: list[int] | list[str] | None = None
    lines: list[int] | None = None

    def head(self, count: int | None) -> "Examples":
        """The first `count` examples; all of them for `None`."""
        pair = isinstance(self.texts, tuple)
        texts = tuple(t[:count] for t in self.texts) if pair else self.texts[:count]
        rest = [values and values[:count] for values in (self.labels, self.lines)]
        return Examples(texts, *rest)


def read_table(
    path: str | Path,
    text_columns: str | int | Sequence[str | int],
    label_column: str | int | None = None,
    *,
    header: bool = True,
    columns: Sequence[str] | None = None,
    label_names: Sequence[str] | None = None,
    delimiter: str | None = None,
) -> Examples:
    """Reads texts, and labels if asked, from a table.

    Args:
        path: a `.tsv`, `.txt` (tabs), `.csv` or `.jsonl` file, or one of these with `.gz` added.
        text_columns: one column, or two for sentence pairs; each a name, or an index from 0.
        label_column: the column of the labels; `None` reads texts alone.
        header: whether the first line names the columns. JSON lines have names of their own.
        columns: names of the columns of a file without a header; each row must have this many.
        label_names: the labels as the file writes them, in the order of their ids.
        delimiter: the field separator, if the file name does not tell it.

    Returns:
        `Examples` in the order of the file.

    Raises:
        ValueError: with the file, the line, what was found and what was expected, if a column is
            missing, a row is short or long, a label is not in `label_names`, the bytes are not
            UTF-8 (a byte-order mark is fine), or the file holds no example.
        FileNotFoundError: if there is no such file.
    """
    path = Path(path)
    if isinstance(text_columns, (str, int)):
        text_columns = [text_columns]
    if len(text_columns) not in (1, 2):
        raise ValueError(f"text_columns must be 1 or 2 columns, got {list(text_columns)}.")
    if label_names is not None and label_column is None:
        raise ValueError("label_names were given without a label_column to find the labels in.")
    if label_names is not None and len(set(label_names)) != len(label_names):
        raise ValueError(f"label_names must differ from each other, got {list(label_names)}.")
    wanted = [*text_columns] if label_column is None else [*text_columns, label_column]

    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if delimiter is None and suffix == ".jsonl":
        rows = _json_rows(path, wanted)
    else:
        delimiter = delimiter or DELIMITERS.get(suffix)
        if delimiter is None:
            raise ValueError(
                f"{path}: the ending {suffix!r} does not tell the format; give `delimiter`, or "
                f"name the file {', '.join([*DELIMITERS, '.jsonl'])} (or one of these with .gz)."
            )
        rows = _delimited_rows(path, wanted, delimiter, header, columns)

    texts: list[list[str]] = [[] for _ in text_columns]
    labels: list = []
    lines: list[int] = []
    ids = None if label_names is None else {name: i for i, name in enumerate(label_names)}
    for line, cells in rows:
        if ids is not None:
            if cells[-1] not in ids:
                hint = "" if lines or header else "; is this a header line in a file without one?"
                raise ValueError(
                    f"{path}, line {line}: label {cells[-1]!r} in column {label_column!r} is not "
                    f"one of {list(label_names)}{hint}"
                )
            labels.append(ids[cells[-1]])
        elif label_column is not None:
            labels.append(cells[-1])
        for column, cell in zip(texts, cells, strict=False):
            column.append(cell)
        lines.append(line)
    if not lines:
        raise ValueError(f"{path}: no examples; the file is empty or holds only a header.")
    return Examples(
        texts[0] if len(texts) == 1 else (texts[0], texts[1]),
        None if label_column is None else labels,
        lines,
    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yields (line number from 1, line with its ending), decoded line by line.

    Lines end at a line feed alone, so that U+2028, U+0085 or a lone CR inside a text splits no
    row; bytes are decoded one line at a time so that an error can name the line.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    number = 0
    with opener(path, "rb") as file:
        try:
            for raw in file:
                number += 1
                if number == 1:
                    raw = raw.removeprefix(UTF8_BOM)
                yield number, raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}, line {number}: byte 0x{error.object[error.start]:02x} at position "
                f"{error.start} of the line is not UTF-8; convert the file to UTF-8."
            ) from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}, after line {number}: broken gzip file: {error}") from error


def _split(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, cells) of the rows that are not blank."""
    if delimiter == "\t":
        for number, line in _lines(path):
            if line.strip("\r\n "):
                yield number, line.removesuffix("\n").removesuffix("\r").split("\t")
        return
    # strict: else a quote that is never closed would swallow the rest of the file as one field.
    reader = csv.reader((line for _, line in _lines(path)), delimiter=delimiter, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise ValueError(f"{path}, row from line {number}: not valid CSV: {error}") from error
        if row is None:
            return
        if row:  # a blank line is an empty row; a row of empty cells is not
            yield number, row


def _delimited_rows(
    path: Path,
    wanted: Sequence[str | int],
    delimiter: str,
    header: bool,
    columns: Sequence[str] | None,
) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, the wanted cells), every row checked for its number of cells."""
    if header and columns is not None:
        raise ValueError("columns are for files without a header; this one is to have a header.")
    if not header and columns is None and any(isinstance(column, str) for column in wanted):
        raise ValueError(f"A file without a header needs `columns` to find {list(wanted)} by name.")
    places = names = width = None
    for line, cells in _split(path, delimiter):
        if places is None:
            names = cells if header else columns
            width = len(cells) if names is None else len(names)
            if header or len(cells) == width:  # a wrong width has the clearer error, below
                places = [_place(path, line, column, names, width) for column in wanted]
            if header:
                continue
            if places and names and all(_same(cells[i], names[i]) for i in places):
                raise ValueError(
                    f"{path}, line {line}: a header line {cells} where none is expected; the file "
                    f"should start with its first row, columns {list(names)}."
                )
        if len(cells) != width:
            expected = f"{width} columns" if names is None else f"{width} columns {list(names)}"
            kind = "" if header else ", no header line"
            raise ValueError(
                f"{path}, line {line}: {len(cells)} columns {_short(cells)}, but expected "
                f"{expected}{kind}."
            )
        yield line, [cells[i] for i in places]


def _place(
    path: Path, line: int, column: str | int, names: Sequence[str] | None, width: int
) -> int:
    """Index of a column given by name or index."""
    if isinstance(column, int):
        if not 0 <= column < width:
            raise ValueError(
                f"{path}, line {line}: no column {column}; the table has columns 0 to {width - 1}."
            )
        return column
    if list(names).count(column) != 1:
        problem = "several columns" if column in names else "no column"
        raise ValueError(
            f"{path}, line {line}: {problem} {column!r}; the columns are {_short(names)}. Does the "
            "file have the header line that is expected?"
        )
    return list(names).index(column)


def _json_rows(path: Path, wanted: Sequence[str | int]) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, the wanted values as strings) of a JSON-lines file."""
    for line, content in _lines(path):
        if not content.strip():
            continue
        try:
            row = json.loads(content)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}, line {line}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise ValueError(f"{path}, line {line}: expected a JSON object, got {row!r:.80}.")
        cells = []
        for column in wanted:
            if column not in row:
                raise ValueError(f"{path}, line {line}: no key {column!r}; the keys are {[*row]}.")
            value = row[column]
            if value is None or isinstance(value, (dict, list)):
                raise ValueError(
                    f"{path}, line {line}: key {column!r} should hold a string or a number, got "
                    f"{value!r:.80}."
                )
            cells.append(value if isinstance(value, str) else json.dumps(value))
        yield line, cells


def _same(cell: str, name: str) -> bool:
    return cell.strip().lower() == name.lower()


def _short(cells: Sequence[str]) -> list[str]:
    """Cells cut to a length fit for an error message."""
    return [cell if len(cell) <= 40 else cell[:37] + "..." for cell in cells]
