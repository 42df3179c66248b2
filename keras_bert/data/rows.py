"""Lines and records of text files, plain or gzipped, with line numbers.

Used by all readers of labelled files. Every record is returned or raises an error that names the
file and the line; only blank lines are skipped. There are three dialects, chosen by the file name
or `delimiter`:

- tab: without quoting; quotation marks are text, as in the GLUE files (MRPC and STS-B contain
  unbalanced quotes, with which a quoting reader would lose lines).
- any other delimiter: CSV as in RFC 4180, with quoting; a field can contain line breaks.
- `.jsonl`: one JSON object per line; its keys are the columns. `.parquet` is read as such objects;
  the "line" of a row is its number from 1.
"""

import codecs
import csv
import gzip
import json
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

UTF8_BOM = b"\xef\xbb\xbf"
DELIMITERS = {".tsv": "\t", ".txt": "\t", ".csv": ","}
OBJECTS = (".jsonl", ".parquet")  # files of objects, without a delimiter
PARQUET_ROWS = 1024  # read at a time
NAMED_LINES = 5
# Limits of unpacking a gzip file: a factor of its size, plus a number of bytes. Text compresses by
# a factor of 3 to 10; a zip bomb by 1,000.
MOST_UNPACKED, FREE_BYTES = 100, 64 << 20
_SURELY_SHOWN = 200  # levels of nesting in JSON

Column = str | int


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yields (line number from 1, line with its line end), decoded line by line.

    Lines end only at a line feed, so U+2028, U+0085 or a single CR inside a text does not split it;
    bytes are decoded line by line, so that an error can name the line.

    Args:
        path: the file; gzipped if its name ends with `.gz`.
        encoding: an encoding with one byte for a line feed, any except UTF-16 and UTF-32; a UTF-8
            byte-order mark is dropped.

    Raises:
        ValueError: with file and line, if the bytes are not in this encoding, or the gzip file is
            damaged or unpacks to far more than text would.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    number = 0
    with opener(path, "rb") as file:
        try:
            for raw in _bounded(file, path) if path.suffix == ".gz" else file:
                number += 1
                if number == 1 and codecs.lookup(encoding).name == "utf-8":
                    raw = raw.removeprefix(UTF8_BOM)
                yield number, raw.decode(encoding)
        except UnicodeDecodeError as error:
            name = "UTF-8" if error.encoding == "utf-8" else error.encoding
            hint = "; is it gzipped, without .gz in its name?" if raw[:2] == b"\x1f\x8b" else ""
            raise ValueError(
                f"{path}, line {number}: byte 0x{error.object[error.start]:02x} at position "
                f"{error.start} of the line is not {name}; convert the file to UTF-8{hint}."
            ) from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}, after line {number}: damaged gzip file: {error}") from error


def _bounded(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yields lines of an unpacked file; raises an error if it is larger than text would be."""
    left, number = MOST_UNPACKED * path.stat().st_size + FREE_BYTES, 0
    while raw := file.readline(left + 1):
        number += 1
        left -= len(raw)
        if left < 0:
            raise ValueError(
                f"{path}, line {number}: the gzip file of {path.stat().st_size:,} bytes unpacks to "
                f"more than {MOST_UNPACKED} times its size; unpack it first if that is intended"
            )
        yield raw


def parse_json(text: str, path: Path | str, line: int | None = None) -> Any:
    """Parses untrusted JSON.

    Args:
        text: the JSON.
        path: the file, for errors.
        line: the line, for errors, if the text is one line.

    Raises:
        ValueError: with file and line, if it is not JSON or nested too deeply.
    """
    where = str(path) if line is None else f"{path}, line {line}"
    try:
        value = json.loads(text)
        if text.count("[") + text.count("{") > _SURELY_SHOWN:
            repr(value)  # accepted by the parser, but too deep to show in an error
    except RecursionError:
        raise ValueError(f"{where}: JSON nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {line or error.lineno}: not JSON: {error}") from error
    except ValueError as error:  # a number with thousands of digits
        raise ValueError(f"{where}: {error}") from error
    return value


def read_rows(
    path: Path,
    columns: Sequence[Column],
    *,
    header: bool = True,
    names: Sequence[str] | None = None,
    delimiter: str | None = None,
    list_columns: Collection[Column] = (),
    broken: list[int] | None = None,
) -> Iterator[tuple[int, list]]:
    """Yields (line number, the cells of the requested columns).

    Args:
        path: a `.tsv`, `.txt` (tabs), `.csv` or `.jsonl` file, or one of these with `.gz` added;
            or a `.parquet` file.
        columns: the requested columns, by name or index from 0.
        header: whether the first line has column names. JSON lines and Parquet have their own.
        names: column names of a file without a header; each line must have as many columns.
        delimiter: the field separator, if it does not follow from the file name.
        list_columns: those of `columns` that can be lists in JSON lines; their cells are then lists
            of str.
        broken: if given, line numbers with too few or too many columns are added to it instead of
            raising an error.

    Raises:
        ValueError: with file, line, what was found and what was expected.
    """
    delimiter = find_delimiter(path, delimiter)
    if delimiter is None:
        return _json_rows(path, columns, list_columns)
    return _delimited_rows(path, columns, delimiter, header, names, broken)


def column_names(path: Path, delimiter: str | None = None) -> list[str]:
    """The names in the header line, or the keys of the first object of JSON lines or Parquet."""
    delimiter = find_delimiter(path, delimiter)
    if delimiter is None:
        return next(([*row] for _, row in read_objects(path)), [])
    return next((cells for _, cells in _split(path, delimiter)), [])


def find_delimiter(path: Path, delimiter: str | None = None) -> str | None:
    """`delimiter`, or that of the file's extension; None for JSON lines and Parquet.

    Raises:
        ValueError: if the extension is unknown.
    """
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if delimiter is not None or suffix in OBJECTS:
        return delimiter
    if suffix not in DELIMITERS:
        raise ValueError(
            f"{path}: extension {suffix!r}: expected "
            f"{', '.join([*DELIMITERS, *OBJECTS])} (text also with .gz), or pass `delimiter`"
        )
    return DELIMITERS[suffix]


def name_lines(lines: Sequence[int]) -> str:
    """Lines for messages: "line 3", "lines 3, 8", "lines 3, 8, 9, 11, 20 and 4 more"."""
    named = ", ".join(map(str, lines[:NAMED_LINES]))
    more = f" and {len(lines) - NAMED_LINES} more" if len(lines) > NAMED_LINES else ""
    return f"line{'s' if len(lines) > 1 else ''} {named}{more}"


def _split(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, cells) of non-blank lines."""
    if delimiter == "\t":
        for number, line in read_lines(path):
            if line.strip("\r\n "):
                yield number, line.removesuffix("\n").removesuffix("\r").split("\t")
        return
    # strict: otherwise an unclosed quote would turn the rest of the file into one field.
    reader = csv.reader((line for _, line in read_lines(path)), delimiter=delimiter, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise ValueError(f"{path}, record at line {number}: not valid CSV: {error}") from error
        if row is None:
            return
        if row:  # a blank line gives no cells; a line of empty cells is not blank
            yield number, row


def _delimited_rows(
    path: Path,
    wanted: Sequence[Column],
    delimiter: str,
    header: bool,
    columns: Sequence[str] | None,
    broken: list[int] | None,
) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, the requested cells), checking the number of cells of each line."""
    if header and columns is not None:
        raise ValueError("columns: expected None with header=True, where the first line has them")
    if not header and columns is None and any(isinstance(column, str) for column in wanted):
        raise ValueError(
            f"columns=None: expected all column names without a header, to find {list(wanted)}"
        )
    places = names = width = None
    for line, cells in _split(path, delimiter):
        if places is None:
            names = cells if header else columns
            width = len(cells) if names is None else len(names)
            if header or len(cells) == width:  # the error for a wrong width, below, is clearer
                places = [_place(path, line, column, names, width) for column in wanted]
            if header:
                continue
            if places and names and all(_same(cells[i], names[i]) for i in places):
                raise ValueError(
                    f"{path}, line {line}: a header line {cells}: expected the first "
                    f"example, with the columns {list(names)}."
                )
        if len(cells) != width:
            if broken is not None:
                broken.append(line)
                continue
            expected = f"{width} columns" if names is None else f"{width} columns {list(names)}"
            kind = "" if header else ", no header line"
            raise ValueError(
                f"{path}, line {line}: {len(cells)} columns {_short(cells)}, but expected "
                f"{expected}{kind}."
            )
        yield line, [cells[i] for i in places]


def _place(path: Path, line: int, column: Column, names: Sequence[str] | None, width: int) -> int:
    """The index of a column given by name or index."""
    if isinstance(column, int):
        if not 0 <= column < width:
            raise ValueError(f"{path}, line {line}: no column {column}: expected 0 to {width - 1}.")
        return column
    if list(names).count(column) != 1:
        problem = "several columns" if column in names else "no column"
        raise ValueError(
            f"{path}, line {line}: {problem} {column!r}; the columns are {_short(names)}. Does the "
            "file have the expected header line?"
        )
    return list(names).index(column)


def read_objects(path: Path) -> Iterator[tuple[int, dict]]:
    """Yields (line number, object) of a JSON lines file, or (row number, row) of a Parquet file.

    Raises:
        ImportError: for Parquet, if pyarrow is not installed.
        ValueError: with file and line, if a line is not a JSON object, or the file is damaged.
    """
    if path.suffix == ".parquet":
        yield from _parquet_rows(path)
        return
    for line, content in read_lines(path):
        if not content.strip():
            continue
        row = parse_json(content, path, line)
        if not isinstance(row, dict):
            raise ValueError(f"{path}, line {line}: expected a JSON object, got {row!r:.80}.")
        yield line, row


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(f"{path}: Parquet needs pyarrow: pip install pyarrow") from error
    number = 0
    with open(path, "rb") as file:
        try:
            for batch in pyarrow.parquet.ParquetFile(file).iter_batches(PARQUET_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield number, {name: as_json(value) for name, value in row.items()}
        except pyarrow.ArrowException as error:
            reason = str(error).split("\n")[0]
            raise ValueError(f"{path}, after row {number}: not Parquet: {reason}") from error


def as_json(value: Any) -> Any:
    """A value of a Parquet column as JSON would have it; dates and decimals as they are written.

    Args:
        value: a value of Arrow's `to_pylist`.
    """
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, dict):
        return {name: as_json(item) for name, item in value.items()}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def _json_rows(
    path: Path, wanted: Sequence[Column], list_columns: Collection[Column]
) -> Iterator[tuple[int, list]]:
    """Yields (line number, the requested values as strings) of a file of objects."""
    for line, row in read_objects(path):
        cells = []
        for column in wanted:
            if column not in row:
                raise ValueError(f"{path}, line {line}: no key {column!r}; the keys are {[*row]}.")
            value = row[column]
            may_be_list = column in list_columns and isinstance(value, list)
            values = value if may_be_list else [value]
            if any(item is None or isinstance(item, dict | list) for item in values):
                expected = "strings or numbers" if may_be_list else "a string or a number"
                raise ValueError(
                    f"{path}, line {line}: key {column!r}: expected {expected}, got {value!r:.80}."
                )
            values = [item if isinstance(item, str) else json.dumps(item) for item in values]
            cells.append(values if may_be_list else values[0])
        yield line, cells


def _same(cell: str, name: str) -> bool:
    return cell.strip().lower() == name.lower()


def _short(cells: Sequence[str]) -> list[str]:
    """Cells shortened for an error message."""
    return [cell if len(cell) <= 40 else cell[:37] + "..." for cell in cells]
