"""Lines and records of files, plain or gzipped, with line numbers, from any place in them.

Used by all readers of labelled files. Every record is returned or raises an error that names the
file and the line; only blank lines are skipped. There are three dialects, chosen by the file name
or `delimiter`:

- tab: without quoting; quotation marks are text, as in the GLUE files (MRPC and STS-B contain
  unbalanced quotes, with which a quoting reader would lose lines).
- any other delimiter: CSV as in RFC 4180, with quoting; a field can contain line breaks. Where the
  header line of a `.csv` file has semicolons and no comma, as spreadsheets write it in many
  countries, semicolons separate the columns.
- `.jsonl`: one JSON object per line; its keys are the columns. `.parquet` and `.tfrecord` (records
  of `tf.train.Example`) are read as such objects; the "line" of a row is its number from 1. A text
  in Parquet has at most `LONGEST_TEXT` bytes.

A path with a scheme, such as gs://bucket/file.csv, is opened by `tf.io.gfile`.
"""

import codecs
import csv
import gzip
import io
import json
import math
import os
import re
import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import google_crc32c

from keras_bert.arguments import needed

UTF8_BOM = b"\xef\xbb\xbf"
DELIMITERS = {".tsv": "\t", ".txt": "\t", ".csv": ","}
RECORDS = (".tfrecord", ".tfrecords")
OBJECTS = (".jsonl", ".parquet", *RECORDS)  # files of objects, without a delimiter
PARQUET_ROWS = 1024  # read at a time
HELD = 64 << 20  # bytes of rows of Parquet that are unpacked at once
LONGEST_TEXT = 16 << 20  # bytes of a text in Parquet
ROW_BYTES = 16  # that a row counts for beside its values, which may be nulls
BUFFER = 1 << 20  # bytes read at a time from Parquet and through `tf.io.gfile`
NAMED_LINES = 5
# Limits of unpacking a gzip or Parquet file: a factor of its size, plus a number of bytes. Text
# compresses by a factor of 3 to 10; a zip bomb by 1,000.
MOST_UNPACKED, FREE_BYTES = 100, 64 << 20
_SURELY_SHOWN = 200  # levels of nesting in JSON

Column = str | int
Bad = Callable[[int, str], None]  # takes the line of a row that cannot be read, and the reason


@dataclass
class Place:
    """How far a file was read; readers start there, and move it past each row that they yield.

    Attributes:
        offset: bytes in front of the next row, of the unpacked file; for Parquet, rows.
        line: lines in front of it; for objects without lines, rows.
    """

    offset: int = 0
    line: int = 0


def is_remote(path: Path | str) -> bool:
    """Whether a path has a scheme, and `tf.io.gfile` opens it."""
    return "://" in str(path)


def open_bytes(path: Path | str) -> IO[bytes]:
    """Opens a local file, or an address that `tf.io.gfile` opens; raises an OSError if it can't."""
    if not is_remote(path):
        return open(path, "rb")
    import tensorflow as tf

    try:
        file = tf.io.gfile.GFile(str(path), "rb")
        return io.BufferedReader(_Remote(file), BUFFER)
    except tf.errors.NotFoundError as error:
        raise FileNotFoundError(f"{path} is not there") from error
    except tf.errors.OpError as error:
        raise OSError(f"{path}: {error.message}") from error


class _Remote(io.RawIOBase):
    """A `tf.io.gfile.GFile` as a raw file of Python."""

    def __init__(self, file):
        self._file = file
        file.size()  # opens it, so that a missing file is found here

    def readable(self):
        return True

    def seekable(self):
        return True

    def readinto(self, buffer):
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset, whence=io.SEEK_SET):
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: self._file.size()}
        self._file.seek(base[whence] + offset)
        return self.tell()

    def tell(self):
        return self._file.tell()

    def close(self):
        self._file.close()
        super().close()


def file_size(path: Path | str) -> int:
    """The size of a file in bytes."""
    if not is_remote(path):
        return os.stat(path).st_size
    import tensorflow as tf

    return tf.io.gfile.stat(str(path)).length


def is_gzip(path: Path | str) -> bool:
    """Whether a file is gzipped, by its name."""
    return PurePosixPath(path).suffix == ".gz"


def extension(path: Path | str) -> str:
    """The extension of a file without `.gz` and without the number of a shard."""
    path = PurePosixPath(path)
    suffix = PurePosixPath(path.stem).suffix if is_gzip(path) else path.suffix
    return re.sub(r"-\d+(-of-\d+)?$", "", suffix)  # .tfrecord-00000-of-00010


@contextmanager
def open_at(path: Path | str, at: Place, unit: str = "line") -> Iterator[IO[bytes]]:
    """A file at a place, unpacked if it is gzipped; damage is an error that names the place."""
    packed = is_gzip(path)
    with open_bytes(path) as raw, gzip.open(raw) if packed else nullcontext(raw) as file:
        try:
            if at.offset:
                file.seek(at.offset)
            yield file
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            place = at.offset if unit == "byte" else at.line
            raise ValueError(f"{path}, after {unit} {place}: damaged gzip file: {error}") from error


def read_lines(
    path: Path | str,
    encoding: str = "utf-8",
    at: Place | None = None,
    bad: Bad | None = None,
    errors: str = "strict",
    longest: int | None = None,
) -> Iterator[tuple[int, str]]:
    """Yields (line number from 1, line with its line end), decoded line by line.

    Lines end only at a line feed, so U+2028, U+0085 or a single CR inside a text does not split it;
    bytes are decoded line by line, so that an error can name the line.

    Args:
        path: the file; gzipped if its name ends with `.gz`.
        encoding: any with one byte for a line feed; a UTF-8 byte-order mark is dropped.
        at: where to begin; by default at the first line.
        bad: takes lines that are not in this encoding, which otherwise raise an error.
        errors: as in `bytes.decode`.
        longest: maximum number of bytes of a line; None for no limit.

    Raises:
        ValueError: with file and line, if the bytes are not in this encoding, a line is too long,
            or the gzip file is damaged or unpacks to far more than text would.
    """
    at = Place() if at is None else at
    marked = codecs.lookup(encoding).name == "utf-8"
    packed = is_gzip(path)
    with open_at(path, at) as file:
        plain = not packed and longest is None
        for content in file if plain else _bounded(file, path, at, packed, longest):
            at.line += 1
            at.offset += len(content)
            if at.line == 1 and marked:
                content = content.removeprefix(UTF8_BOM)
            try:
                text = content.decode(encoding, errors)
            except UnicodeDecodeError as error:
                report(bad, at.line, f"{path}, line {at.line}: {undecoded(error)}", error)
                continue
            yield at.line, text


def report(bad: Bad | None, line: int, message: str, error: Exception | None = None) -> None:
    """Gives a wrong row to `bad`, or raises a ValueError if that is None."""
    if bad is None:
        raise ValueError(message) from error
    bad(line, message)


def undecoded(error: UnicodeDecodeError) -> str:
    """The reason that a line cannot be decoded."""
    name = "UTF-8" if error.encoding == "utf-8" else error.encoding
    hint = ", in a spreadsheet by saving it as CSV UTF-8"
    if error.object[:2] == b"\x1f\x8b":
        hint = "; it looks gzipped, without .gz in its name"
    elif error.object[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        hint = f"; it is UTF-16{hint}"
    return (
        f"byte 0x{error.object[error.start]:02x} at position {error.start} of the line is not "
        f"{name}; convert the file to UTF-8{hint}"
    )


def _bounded(
    file: IO[bytes], path: Path | str, at: Place, packed: bool, longest: int | None
) -> Iterator[bytes]:
    """Yields lines; raises an error if one is too long, or an unpacked file larger than text."""
    size, number = file_size(path), at.line
    left = MOST_UNPACKED * size + FREE_BYTES - at.offset
    longest = longest or left
    while raw := file.readline((min(left, longest) if packed else longest) + 1):
        number += 1
        left -= len(raw)
        if len(raw) > longest:
            raise ValueError(
                f"{path}, line {number}: expected a line feed after at most {longest:,} bytes"
            )
        if packed and left < 0:
            raise ValueError(
                f"{path}, line {number}: the gzip file of {size:,} bytes unpacks to "
                f"more than {MOST_UNPACKED} times its size; unpack it first if that is intended"
            )
        yield raw


def parse_json(text: str, path: Path | str, line: int | None = None) -> Any:
    """Parses untrusted JSON of a file, or of one line of it.

    Raises:
        ValueError: with file and line, if it is not JSON, nested too deeply, or an object has a key
            twice.
    """
    try:
        value = _DECODER.decode(text)
        if text.count("[") + text.count("{") > _SURELY_SHOWN:
            repr(value)  # accepted by the parser, but too deep to show in an error
        return value
    except RecursionError:
        reason = "JSON nested too deeply"
    except json.JSONDecodeError as error:
        line, reason = line or error.lineno, f"not JSON: {error}"
    except ValueError as error:  # a number with thousands of digits, or a key twice
        reason = str(error)
    raise ValueError(f"{path}{'' if line is None else f', line {line}'}: {reason}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # JSON leaves open which of the values counts
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"several keys {twice!r:.80} in one object")
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def plain_text(value: Any) -> str:
    """A string, a finite number or a boolean as a text or the name of a label.

    Raises:
        ValueError: if it is something else, such as the NaN that pandas has for a missing value.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"expected a string or a number, got {value!r:.80}")
    return json.dumps(value)


def read_rows(
    path: Path | str,
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
        path, columns, header, names, delimiter: as `keras_bert.data.read_table`.
        list_columns: those of `columns` that can be lists in JSON lines; their cells are then lists
            of str.
        broken: if given, line numbers with too few or too many columns are added to it instead of
            raising an error.

    Raises:
        ValueError: with file, line, what was found and what was expected.
    """
    delimiter = header_delimiter(path, delimiter) if header else find_delimiter(path, delimiter)
    if delimiter is None:
        return _json_rows(path, columns, list_columns)
    wrong = None if broken is None else lambda line, message: broken.append(line)
    return _delimited_rows(path, columns, delimiter, header, names, wrong)


def read_cells(
    path: Path | str,
    columns: Sequence[str],
    names: Sequence[str] | None,
    delimiter: str | None = None,
    at: Place | None = None,
    bad: Bad | None = None,
) -> Iterator[tuple[int, list]]:
    """Yields (line number, the cells of the requested columns), from any place of a file.

    Args:
        path: the file.
        columns: the requested columns.
        names: those of the header line, behind which `at` has to be; None for objects, whose cells
            are values of any type of JSON instead of strings.
        delimiter: the field separator, if it does not follow from the file name.
        at: where to begin; by default with the first row.
        bad: takes rows that cannot be read, which otherwise raise a ValueError.
    """
    if names is not None:
        delimiter = find_delimiter(path, delimiter)
        yield from _delimited_rows(path, columns, delimiter, False, names, bad, at, bad)
        return
    for line, row in read_objects(path, at, bad, columns):
        try:
            cells = [row[column] for column in columns]
        except KeyError:
            missing = next(column for column in columns if column not in row)
            keys = f"no key {missing!r}; the keys are {[*row]}"
            report(bad, line, f"{path}, line {line}: {keys}")
        else:
            yield line, cells


def column_names(
    path: Path | str, delimiter: str | None = None, at: Place | None = None
) -> list[str]:
    """The names in the header line, or the keys of the first object; moves `at` past a header."""
    delimiter = header_delimiter(path, delimiter)
    if delimiter is None and extension(path) == ".parquet":
        with open_bytes(path) as file:
            opened = open_parquet(path, file)
            return opened.schema_arrow.names if opened.metadata.num_rows else []
    if delimiter is None:
        return next(([*row] for _, row in read_objects(path)), [])
    return next((cells for _, cells in split_lines(path, delimiter, at)), [])


def find_delimiter(path: Path | str, delimiter: str | None = None) -> str | None:
    """`delimiter`, or that of the file's extension; None for files of objects.

    Raises:
        ValueError: if the extension is unknown.
    """
    suffix = extension(path)
    if delimiter is not None or suffix in OBJECTS:
        return delimiter
    if suffix not in DELIMITERS:
        raise ValueError(
            f"{path}: extension {suffix!r}: expected "
            f"{', '.join([*DELIMITERS, *OBJECTS])} (text also with .gz), or pass `delimiter`"
        )
    return DELIMITERS[suffix]


def header_delimiter(path: Path | str, delimiter: str | None = None) -> str | None:
    """As `find_delimiter`; opens a `.csv` file, whose header line may show semicolons."""
    found = find_delimiter(path, delimiter)
    if delimiter is not None or found != ",":
        return found
    header = next((line for _, line in read_lines(path) if line.strip()), "")
    return ";" if ";" in header and "," not in header else found


def name_lines(lines: Sequence[int], unit: str = "line") -> str:
    """Lines for messages: "line 3", "lines 3, 8", "lines 3, 8, 9, 11, 20 and 4 more"."""
    named = ", ".join(map(str, lines[:NAMED_LINES]))
    more = f" and {len(lines) - NAMED_LINES} more" if len(lines) > NAMED_LINES else ""
    return f"{unit}{'s' if len(lines) > 1 else ''} {named}{more}"


def split_lines(
    path: Path | str,
    delimiter: str,
    at: Place | None = None,
    bad: Bad | None = None,
    errors: str = "strict",
    longest: int | None = None,
) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, cells) of non-blank lines; for the arguments see `read_lines`."""
    if delimiter == "\t":
        for number, line in read_lines(path, "utf-8", at, bad, errors, longest):
            if line.strip("\r\n "):
                yield number, line.removesuffix("\n").removesuffix("\r").split("\t")
        return
    at = Place() if at is None else at
    # A line inside of a record cannot be left out, only the record: its bytes stay visible.
    errors = errors if bad is None else "surrogateescape"
    # strict: otherwise an unclosed quote would turn the rest of the file into one field.
    lines = (line for _, line in read_lines(path, "utf-8", at, None, errors, longest))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        number = at.line + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            unclosed = "unexpected end of data" in str(error)  # and all lines behind the quote
            message = f"{path}, record at line {number}: not valid CSV: {error}"
            report(None if unclosed else bad, number, message, error)
            continue
        if row is None:
            return
        if bad is not None and any(not cell.isascii() and _has_surrogates(cell) for cell in row):
            bad(number, f"{path}, record at line {number}: not UTF-8")
        elif row:  # a blank line gives no cells; a line of empty cells is not blank
            yield number, row


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _delimited_rows(
    path: Path | str,
    wanted: Sequence[Column],
    delimiter: str,
    header: bool,
    columns: Sequence[str] | None,
    wrong_width: Bad | None,
    at: Place | None = None,
    bad: Bad | None = None,
) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, the requested cells), checking the number of cells of each line."""
    if header and columns is not None:
        raise ValueError("columns: expected None with header=True, where the first line has them")
    if not header and columns is None and any(isinstance(column, str) for column in wanted):
        raise ValueError(
            f"columns=None: expected all column names without a header, to find {list(wanted)}"
        )
    places = names = width = None
    for line, cells in split_lines(path, delimiter, at, bad):
        if places is None:
            names = cells if header else columns
            width = len(cells) if names is None else len(names)
            if header or len(cells) == width:  # the error for a wrong width, below, is clearer
                places = [_place(path, line, column, names, width) for column in wanted]
            if header:
                continue
            again = at is None and places and names
            if again and all(cells[i].strip().lower() == names[i].lower() for i in places):
                raise ValueError(
                    f"{path}, line {line}: a header line {cells}: expected the first "
                    f"example, with the columns {list(names)}"
                )
        if len(cells) != width:
            expected = f"{width} columns" if names is None else f"{width} columns {list(names)}"
            kind = ", no header line" if not header and at is None else ""
            found = f"{len(cells)} columns {_short(cells)}"
            report(
                wrong_width, line, f"{path}, line {line}: {found}, but expected {expected}{kind}"
            )
            continue
        yield line, [cells[i] for i in places]


def _place(
    path: Path | str, line: int, column: Column, names: Sequence[str] | None, width: int
) -> int:
    """The index of a column given by name or index."""
    if isinstance(column, int):
        found, expected = [*range(width)], f": expected 0 to {width - 1}"
    else:
        found, expected = list(names), f"; the columns are {_short(names)}. "
        expected += "Does the file have the expected header line?"
    if found.count(column) != 1:
        problem = "several columns" if column in found else "no column"
        raise ValueError(f"{path}, line {line}: {problem} {column!r}{expected}")
    return found.index(column)


def read_objects(
    path: Path | str,
    at: Place | None = None,
    bad: Bad | None = None,
    columns: Collection[str] | None = None,
) -> Iterator[tuple[int, dict]]:
    """Yields (line number, object) of JSON lines, or (number, row) of Parquet and TFRecords.

    Args:
        path: the file.
        at: where to begin; by default with the first row.
        bad: takes lines that are not objects, which otherwise raise a ValueError.
        columns: those to read of Parquet; by default all.
    """
    at = Place() if at is None else at
    if extension(path) == ".parquet":
        yield from _parquet_rows(path, at, bad, columns)
        return
    if extension(path) in RECORDS:
        yield from _record_rows(path, at, bad)
        return
    for line, content in read_lines(path, at=at, bad=bad):
        if not content.strip():
            continue
        try:
            row, message = parse_json(content, path, line), ""
            if not isinstance(row, dict):
                message = f"{path}, line {line}: expected a JSON object, got {row!r:.80}"
        except ValueError as error:
            message = str(error)
        if message:
            report(bad, line, message)
        else:
            yield line, row


def parquet_groups(path: Path | str) -> list[int]:
    """The number of rows of each row group of a Parquet file."""
    with open_bytes(path) as file:
        metadata = open_parquet(path, file).metadata
        return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]


def open_parquet(path: Path | str, file: IO[bytes], shared: Sequence[str] = ()):
    """Opens a Parquet file.

    Args:
        path: its name, for errors.
        file: the file.
        shared: columns of texts to read as Arrow's dictionaries, by their paths in the schema.

    Raises:
        ImportError: if pyarrow is not installed.
        ValueError: if it is not Parquet, or has two columns of one name.
    """
    with needed(f"{path}: Parquet", "pyarrow", "pyarrow"):
        import pyarrow
        import pyarrow.parquet
    try:
        # Not the whole of a row group at once, which may be larger than memory.
        found = pyarrow.parquet.ParquetFile(
            file, buffer_size=BUFFER, pre_buffer=False, read_dictionary=shared
        )
    except pyarrow.ArrowException as error:
        reason = str(error).split("\n")[0]
        raise ValueError(f"{path}, after row 0: not Parquet: {reason}") from error
    names = found.schema_arrow.names
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path}: several columns {twice[0]!r}")
    return found


def _parquet_rows(
    path: Path | str, at: Place, bad: Bad | None, columns: Collection[str] | None
) -> Iterator[tuple[int, dict]]:
    with open_bytes(path) as file:
        for line, row in parquet_rows(path, file, columns, at.offset):
            at.offset = at.line = line
            if isinstance(row, ValueError):
                report(bad, line, f"{path}, line {line}: {row}", row)
            else:
                yield line, row


def parquet_rows(
    path: Path | str,
    file: IO[bytes],
    columns: Collection[str] | None,
    begin: int = 0,
    end: int | None = None,
) -> Iterator[tuple[int, dict | ValueError]]:
    """Yields (row from 1, its values by column, or why it cannot be read).

    A value that is stored once may be in every row, so that a small file can unpack to any size.
    Rows are read in batches of about `HELD` bytes at most, or of one row.

    Args:
        path: the file, for its size and for errors.
        file: the file.
        columns: those to read; all if one of them is missing, for the error that lists them.
        begin: rows in front of the first to read.
        end: rows in front of the first that is not read; by default all are.

    Raises:
        ValueError: with file and row, if the file is damaged, or unpacks to far more than text.
    """
    opened = open_parquet(path, file)
    import pyarrow

    known = opened.schema_arrow.names
    chosen = None if columns is None or {*columns} - {*known} else list(columns)
    size = file_size(path)
    left = MOST_UNPACKED * size + FREE_BYTES

    def bounded(unpacked: int, row: int) -> int:
        if unpacked > left:
            raise ValueError(
                f"{path}, line {row}: the Parquet file of {size:,} bytes unpacks to more than "
                f"{MOST_UNPACKED} times its size; write it as JSON lines if that is intended"
            )
        return left - unpacked

    row, after = begin, 0
    try:
        for group in range(opened.metadata.num_row_groups):
            first, after = after, after + opened.metadata.row_group(group).num_rows
            if after <= begin or (end is not None and first >= end):
                continue
            chunks = _chunks(opened, group, chosen)
            bounded(sum(c.total_uncompressed_size + c.num_values for c, _ in chunks), row + 1)
            rows = _rows_at_once(path, file, group, after - first, chunks)
            for batch in opened.iter_batches(rows, row_groups=[group], columns=chosen):
                part = batch.slice(max(0, begin - first))
                part = part if end is None else part.slice(0, max(0, end - row))
                first += batch.num_rows
                if not part.num_rows:
                    continue
                unpacked = sum(map(_unpacked_size, part))
                left = bounded(unpacked + ROW_BYTES * part.num_rows, row + 1)
                for value in _python_rows(part, unpacked):
                    row += 1
                    yield row, value
    except pyarrow.ArrowException as error:
        reason = str(error).split("\n")[0]
        raise ValueError(f"{path}, after row {row}: not Parquet: {reason}") from error


def _chunks(opened, group: int, columns: list[str] | None) -> list[tuple]:
    """Metadata of the columns of a row group that are read: (of the chunk, of the schema)."""
    about = opened.metadata.row_group(group)
    found = [(about.column(i), opened.metadata.schema.column(i)) for i in range(about.num_columns)]
    return [one for one in found if columns is None or one[1].path.split(".")[0] in columns]


def _rows_at_once(
    path: Path | str, file: IO[bytes], group: int, count: int, chunks: list[tuple]
) -> int:
    """The number of rows of a row group, which has `count`, that unpack to about `HELD` bytes.

    The metadata tell how much is stored, but not how long a text is that many rows share. So the
    first row of such a column is read with its texts as they are stored, which brings all of them.
    """
    shared = {
        leaf.path: chunk.total_uncompressed_size
        for chunk, leaf in chunks
        if leaf.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page
    }
    longest = _longest_shared(path, file, group, shared) if shared else {}
    each, most = 0, PARQUET_ROWS
    for chunk, leaf in chunks:
        values = max(chunk.num_values, 1)
        width = chunk.total_uncompressed_size // values
        if leaf.physical_type != "BYTE_ARRAY":
            width = max(leaf.length, 12)  # 12 bytes is the widest number
        elif leaf.path in longest:
            width = max(width, longest[leaf.path])
        elif leaf.path in shared or "DELTA_BYTE_ARRAY" in chunk.encodings:
            # The first row has no text, or hardly any program writes so. A text is at most as long
            # as all that is stored; few rows at a time cost some microseconds each.
            few = HELD * count // (chunk.total_uncompressed_size * values or 1)
            most = min(most, max(few, 16))
        each += width * values
    return max(min(most, HELD * count // (each or 1)), 1)


def _longest_shared(
    path: Path | str, file: IO[bytes], group: int, stored: dict[str, int]
) -> dict[str, int]:
    """Bytes of the longest text that rows of a row group share, by column; `stored` has theirs."""
    import pyarrow.compute as pc

    def dictionary(array):
        while not hasattr(array, "dictionary"):
            array = array.flatten()
            array = array[0] if isinstance(array, list) else array  # of a structure, the one read
        return array.dictionary

    found, opened = {}, open_parquet(path, file, [*stored])
    for leaf in stored:
        batch = next(opened.iter_batches(1, row_groups=[group], columns=[leaf]), None)
        texts = [] if batch is None else dictionary(batch.column(0))
        if len(texts):
            found[leaf] = pc.max(pc.binary_length(texts)).as_py() or 0
        if len(texts) == 1:  # it may come from a page without the shared ones
            found[leaf] = max(found[leaf], stored[leaf])
    return found


def _unpacked_size(array) -> int:
    """Bytes of an array of Arrow when each of its texts is a text of its own."""
    import pyarrow.compute as pc

    if hasattr(array, "dictionary"):
        return pc.sum(_text_sizes(array)).as_py() or 0
    if not hasattr(array, "flatten"):
        return array.nbytes
    # A map has no `flatten` that works.
    inner = [array.keys, array.items] if hasattr(array, "items") else array.flatten()
    parts = inner if isinstance(inner, list) else [inner]
    return 8 * len(array) + sum(map(_unpacked_size, parts))


def _text_sizes(column):
    """Bytes of each text of a column of Arrow."""
    import pyarrow.compute as pc

    if hasattr(column, "dictionary"):
        return pc.binary_length(column.dictionary).take(column.indices)
    return pc.binary_length(column)


def _python_rows(batch, size: int) -> Iterator[dict | ValueError]:
    """Rows as values of JSON, or the reason that one is none; `size` is that of all, unpacked."""
    import pyarrow.compute as pc
    from pyarrow.types import is_binary, is_dictionary, is_large_binary, is_large_string, is_string

    kinds = (is_string, is_binary, is_dictionary, is_large_string, is_large_binary)
    texts = [field.name for field in batch.schema if any(kind(field.type) for kind in kinds)]

    def too_long(part) -> str | None:
        longest = ((name, pc.max(_text_sizes(part.column(name))).as_py()) for name in texts)
        return next((name for name, length in longest if (length or 0) > LONGEST_TEXT), None)

    if size <= HELD and (size <= LONGEST_TEXT or not too_long(batch)):
        try:
            rows = batch.to_pylist()
            yield from [{name: as_json(value) for name, value in row.items()} for row in rows]
            return
        except UnicodeDecodeError:  # of some string: row by row, to find it
            pass
    for number in range(batch.num_rows):
        part = batch.slice(number, 1)
        if name := too_long(part):
            yield ValueError(f"column {name!r}: expected a text of at most {LONGEST_TEXT:,} bytes")
            continue
        try:
            (row,) = part.to_pylist()
            yield {name: as_json(value) for name, value in row.items()}
        except UnicodeDecodeError as error:
            yield ValueError(f"not UTF-8: {error}")


def _record_rows(path: Path | str, at: Place, bad: Bad | None) -> Iterator[tuple[int, dict]]:
    """Records of `tf.train.Example`: features of one value as that value, others as lists."""
    from tensorflow.core.example.example_pb2 import Example

    for line, data in _records(path, at):
        try:
            found = Example.FromString(data).features.feature
            row = {name: _feature(found[name]) for name in found}
        except Exception as error:  # of protobuf's implementation in use, or of the decoding
            message = f"{path}, record {line}: not a tf.train.Example in UTF-8: {error}"
            report(bad, line, message, error)
            continue
        yield line, row


def _feature(feature) -> Any:
    kind = feature.WhichOneof("kind")
    values = list(getattr(feature, kind).value) if kind else []
    if kind == "bytes_list":
        values = [value.decode() for value in values]
    return values[0] if len(values) == 1 else values


def _records(path: Path | str, at: Place) -> Iterator[tuple[int, bytes]]:
    """Records of a TFRecord file: length, its checksum, data, their checksum."""
    left = (MOST_UNPACKED if is_gzip(path) else 1) * file_size(path) + FREE_BYTES

    def checked(data: bytes, checksum: bytes) -> bool:
        return checksum == struct.pack("<I", masked_checksum(data))

    with open_at(path, at, "record") as file:
        while head := file.read(12):
            length = int.from_bytes(head[:8], "little")
            right = checked(head[:8], head[8:]) and at.offset + length <= left
            data = file.read(length) if right else b""
            if not right or not checked(data, file.read(4)):
                raise ValueError(f"{path}, record {at.line + 1}: damaged, or not a TFRecord file")
            at.offset += 16 + length
            at.line += 1
            yield at.line, data


def masked_checksum(data: Any) -> int:
    """CRC-32C under LevelDB's mask, which is for checksums stored beside what they cover."""
    checksum = google_crc32c.value(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def as_json(value: Any) -> Any:
    """A value of Arrow's `to_pylist` as JSON has it; dates and decimals as they are written."""
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, dict):
        return {name: as_json(item) for name, item in value.items()}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def _json_rows(
    path: Path | str, wanted: Sequence[Column], list_columns: Collection[Column]
) -> Iterator[tuple[int, list]]:
    """Yields (line number, the requested values as strings) of a file of objects."""
    for line, values in read_cells(path, wanted, None):
        cells = []
        for column, value in zip(wanted, values, strict=True):
            may_be_list = column in list_columns and isinstance(value, list)
            try:
                cells.append([*map(plain_text, value)] if may_be_list else plain_text(value))
            except ValueError:
                expected = "strings or numbers" if may_be_list else "a string or a number"
                raise ValueError(
                    f"{path}, line {line}: key {column!r}: expected {expected}, got {value!r:.80}"
                ) from None
        yield line, cells


def grouped(items: Iterable, size_of: Callable, most: int, count: int = 1 << 62) -> Iterator[list]:
    """Yields lists of items: one ends when their sizes add up to `most`, or it has `count`."""
    group, size = [], 0
    for item in items:
        group.append(item)
        size += size_of(item)
        if size >= most or len(group) == count:
            yield group
            group, size = [], 0
    if group:
        yield group


def _short(cells: Sequence[str]) -> list[str]:
    """Cells shortened for an error message."""
    return [cell if len(cell) <= 40 else cell[:37] + "..." for cell in cells]
