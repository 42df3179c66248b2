"""Lines and rows of text files, plain or gzipped, each with the number of its line.

Under all readers of labelled files. Every row is handed on or is an error that names the file and
the line; only blank lines are passed over. Three dialects are known, chosen by the file name or by
`delimiter`:

- tab: quoting is off, a quotation mark is text. The GLUE files are written so (MRPC and STS-B hold
  unbalanced quotes, and a reader that honours them swallows rows).
- any other delimiter: CSV as in RFC 4180, quotes honoured, a field may hold line breaks.
- `.jsonl`: one JSON object a line, the columns are its keys.
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
NAMED_LINES = 5
# What a gzip file may unpack to: so many times its size, and so many bytes beyond. Text packs to a
# third or a tenth; a file made to fill the memory to a thousandth.
MOST_UNPACKED, FREE_BYTES = 100, 64 << 20
_SURELY_SHOWN = 200  # levels of nesting

Column = str | int


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yields (line number from 1, line with its ending), decoded line by line.

    Lines end at a line feed alone, so that U+2028, U+0085 or a lone CR inside a text splits no
    row; bytes are decoded one line at a time so that an error can name the line.

    Args:
        path: of the file; gzipped if its name ends with `.gz`.
        encoding: in which a line feed is one byte, as in all but UTF-16 and UTF-32; a byte-order
            mark of UTF-8 is dropped.

    Raises:
        ValueError: with file and line, if the bytes are not of this encoding, or the gzip file is
            broken or unpacks to far more than text does.
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
            raise ValueError(f"{path}, after line {number}: broken gzip file: {error}") from error


def _bounded(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """Lines of an unpacked file; an error in place of more than it could hold of text."""
    left, number = MOST_UNPACKED * path.stat().st_size + FREE_BYTES, 0
    while raw := file.readline(left + 1):
        number += 1
        left -= len(raw)
        if left < 0:
            raise ValueError(
                f"{path}, line {number}: the gzip file of {path.stat().st_size:,} bytes unpacks to "
                f"more than {MOST_UNPACKED} times as many; unpack it if that is right"
            )
        yield raw


def parse_json(text: str, path: Path | str, line: int | None = None) -> Any:
    """Reads JSON that may be anything.

    Args:
        text: the JSON.
        path: the file, for errors, and
        line: the line, if it is that of a line.

    Raises:
        ValueError: with file and line, if it is none, or nested too deeply to be looked at.
    """
    where = str(path) if line is None else f"{path}, line {line}"
    try:
        value = json.loads(text)
        if text.count("[") + text.count("{") > _SURELY_SHOWN:
            repr(value)  # what the parser still takes may be too deep for an error to show
    except RecursionError:
        raise ValueError(f"{where}: JSON nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {line or error.lineno}: not JSON: {error}") from error
    except ValueError as error:  # a number of thousands of digits
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
    """Yields (line number, the cells of the wanted columns).

    Args:
        path: a `.tsv`, `.txt` (tabs), `.csv` or `.jsonl` file, or one of these with `.gz` added.
        columns: the wanted ones, each a name or an index from 0.
        header: whether the first line names the columns. JSON lines have names of their own.
        names: of the columns of a file without a header; each row must have this many.
        delimiter: the field separator, if the file name does not tell it.
        list_columns: those of `columns` that may hold a list in JSON lines; their cells are then
            lists of str.
        broken: if given, the numbers of lines with too few or too many columns are put here
            instead of being an error.

    Raises:
        ValueError: with file, line, what was found and what was expected.
    """
    delimiter = find_delimiter(path, delimiter)
    if delimiter is None:
        return _json_rows(path, columns, list_columns)
    return _delimited_rows(path, columns, delimiter, header, names, broken)


def column_names(path: Path, delimiter: str | None = None) -> list[str]:
    """The names in the header line, or the keys of the first object of JSON lines."""
    delimiter = find_delimiter(path, delimiter)
    if delimiter is None:
        return next(([*row] for _, row in json_objects(path)), [])
    return next((cells for _, cells in _split(path, delimiter)), [])


def find_delimiter(path: Path, delimiter: str | None = None) -> str | None:
    """`delimiter`, or else that of the file's ending; `None` for JSON lines.

    Raises:
        ValueError: the ending does not tell it.
    """
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if delimiter is not None or suffix == ".jsonl":
        return delimiter
    if suffix not in DELIMITERS:
        raise ValueError(
            f"{path}: the ending {suffix!r} does not tell the format; give `delimiter`, or "
            f"name the file {', '.join([*DELIMITERS, '.jsonl'])} (or one of these with .gz)."
        )
    return DELIMITERS[suffix]


def name_lines(lines: Sequence[int]) -> str:
    """For messages: "line 3", "lines 3, 8", "lines 3, 8, 9, 11, 20 and 4 more"."""
    named = ", ".join(map(str, lines[:NAMED_LINES]))
    more = f" and {len(lines) - NAMED_LINES} more" if len(lines) > NAMED_LINES else ""
    return f"line{'s' if len(lines) > 1 else ''} {named}{more}"


def _split(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, cells) of the rows that are not blank."""
    if delimiter == "\t":
        for number, line in read_lines(path):
            if line.strip("\r\n "):
                yield number, line.removesuffix("\n").removesuffix("\r").split("\t")
        return
    # strict: else a quote that is never closed would swallow the rest of the file as one field.
    reader = csv.reader((line for _, line in read_lines(path)), delimiter=delimiter, strict=True)
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
    wanted: Sequence[Column],
    delimiter: str,
    header: bool,
    columns: Sequence[str] | None,
    broken: list[int] | None,
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


def json_objects(path: Path) -> Iterator[tuple[int, dict]]:
    """Yields (line number, object) of a JSON-lines file."""
    for line, content in read_lines(path):
        if not content.strip():
            continue
        row = parse_json(content, path, line)
        if not isinstance(row, dict):
            raise ValueError(f"{path}, line {line}: expected a JSON object, got {row!r:.80}.")
        yield line, row


def _json_rows(
    path: Path, wanted: Sequence[Column], list_columns: Collection[Column]
) -> Iterator[tuple[int, list]]:
    """Yields (line number, the wanted values as strings) of a JSON-lines file."""
    for line, row in json_objects(path):
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
                    f"{path}, line {line}: key {column!r} should hold {expected}, got "
                    f"{value!r:.80}."
                )
            values = [item if isinstance(item, str) else json.dumps(item) for item in values]
            cells.append(values if may_be_list else values[0])
        yield line, cells


def _same(cell: str, name: str) -> bool:
    return cell.strip().lower() == name.lower()


def _short(cells: Sequence[str]) -> list[str]:
    """Cells cut to a length fit for an error message."""
    return [cell if len(cell) <= 40 else cell[:37] + "..." for cell in cells]
