"""Rows of tables that stay where they are: in files, or in tables of other libraries.

A table is read in pieces of about a thousand rows. `TableReader.index` reads it once, checks every
row and notes where each piece begins; `TableReader.read` then reads any piece again. Memory holds
the list of the pieces, not the rows.
"""

import copy
import glob
import json
import logging
import math
import shutil
import sys
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import google_crc32c
import numpy as np
from tqdm import tqdm

from keras_bert.data.rows import (
    DELIMITERS,
    OBJECTS,
    RECORDS,
    Bad,
    Place,
    column_names,
    extension,
    file_size,
    find_delimiter,
    header_delimiter,
    is_gzip,
    is_remote,
    name_lines,
    parquet_groups,
    parse_json,
    read_cells,
)
from keras_bert.data.tables import NUMBER

logger = logging.getLogger("keras_bert")

PIECE_ROWS = 1000
TOGETHER = 16  # pieces checked at the same time
PIECE_CHARACTERS = 1 << 20  # pieces of long texts have fewer rows
SILENT_SECONDS = 5  # longer passes show their progress
# Kinds of cells; see `Cell`.
WORDS, CLASS, NUMERIC, LIST, SEVERAL, ANY = "text", "class", "number", "list", "several", "any"


class Cell(NamedTuple):
    """A column that a task asks of a table.

    Attributes:
        kind: "text", a string; "class", a label, of any type of JSON; "number"; "list", which text
            files hold as JSON; "several", a list of labels, which text files hold as JSON or with
            separators; or "any", which the task checks.
        required: whether a table must have it. Others are read if they are named.
        blank: whether a text may be empty.
    """

    kind: str = WORDS
    required: bool = True
    blank: bool = False


class Table:
    """A table for `fit`, `evaluate` and `predict` that is read in pieces, not loaded.

    `task.fit("reviews/*.jsonl.gz", text="review", label="stars")` makes one from its arguments.
    Make it yourself for validation data with other columns, or to pass the further settings.

    Args:
        source: a file, a folder, a pattern such as "data/*.csv", or a list of these: `.csv` and
            `.tsv` with a header line, `.jsonl` and `.tfrecord` (of `tf.train.Example`), each also
            with `.gz`, and `.parquet` (needs pyarrow); local, or any address that `tf.io.gfile`
            opens. Or a Hugging Face `Dataset`, a pandas or Polars `DataFrame`, a pyarrow `Table`.
            Or an iterator over rows, dicts or tuples (text, label), which is first written to a
            temporary file.
        skip_bad_rows: whether to leave out rows that cannot be read; the log has their number,
            lines and the first reason, and `bad_rows` all lines. By default the first one raises
            an error.
        delimiter: the field separator of files, if it does not follow from their names.
        label_separator: separator between several labels of an example in text files.
        **columns: the table's column for each of the task's, such as text="review"; by default
            the one of the same name. A list of names combines columns to a list.

    Raises:
        FileNotFoundError: if there is no such file.
        TypeError: if the source is of another type.
        ValueError: if the extension of a file is unknown, or a file is listed twice.

    Attributes:
        columns: as passed.
        parts: the files, or the one table in memory.
        bad_rows: lines of rows that were left out, by the name of their file; None before the
            table was read.
    """

    def __init__(
        self,
        source: Any,
        *,
        skip_bad_rows: bool = False,
        delimiter: str | None = None,
        label_separator: str = ",",
        **columns: str | Sequence[str],
    ):
        for name, column in columns.items():
            names = column if isinstance(column, list | tuple) else [column]
            if not names or not all(isinstance(n, str) for n in names):
                raise ValueError(f"{name}={column!r}: expected the name of a column, or a list")
        self.columns = columns
        self.skip_bad_rows, self.label_separator = skip_bad_rows, label_separator
        self.bad_rows: dict[str, list[int]] | None = None
        if hasattr(source, "__next__"):
            self.parts: list = [self._written(source)]
        elif is_frame(source):
            self.parts = [FramePart(source)]
        else:
            self.parts = [FilePart(path, delimiter) for path in find_paths(source)]
        self._indexes: dict = {}

    def with_defaults(self, source: Any) -> "Table":
        """Another table with the columns and settings of this one.

        Args:
            source: as `Table`; a `Table` is returned as it is.

        Returns:
            The table.
        """
        if isinstance(source, Table):
            return source
        return Table(
            source,
            skip_bad_rows=self.skip_bad_rows,
            label_separator=self.label_separator,
            **self.columns,
        )

    def kept(self, key: Any, make: Callable) -> Any:
        """Keeps what takes long to make.

        Args:
            key: of it.
            make: makes it.

        Returns:
            What `make` returned when it was first called for this key.
        """
        if key not in self._indexes:
            self._indexes[key] = make()
        return self._indexes[key]

    def _written(self, rows: Iterator) -> "FilePart":
        """Writes the rows of an iterator to a temporary file."""
        folder = tempfile.mkdtemp(prefix="keras_bert_rows_")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        path = Path(folder) / "rows.jsonl"
        with open(path, "w", encoding="utf-8") as file:
            for number, row in enumerate(progress(rows, "read"), 1):
                if isinstance(row, tuple) and len(row) == 2 and not self.columns:
                    texts = row[0] if isinstance(row[0], tuple) else (row[0],)
                    row = dict(zip(("text", "text_pair"), texts, strict=False)) | {"label": row[1]}
                if not isinstance(row, dict):
                    raise TypeError(
                        f"row {number} of the iterator: expected a dict from columns to values, "
                        f"got {row!r:.80}"
                    )
                file.write(json.dumps(row, default=_plain) + "\n")
        return FilePart(path, None, "iterator")


def is_table(x: Any) -> bool:
    """Whether `fit` reads x in pieces: files, a table of another library, or an iterator.

    A string is the name of files if it has an extension of theirs, a scheme or a wildcard, or if
    there is such a file or folder.
    """
    if isinstance(x, Table | Path) or hasattr(x, "__next__") or is_frame(x):
        return True
    if isinstance(x, str):
        return _is_known(x) or is_remote(x) or any(c in x for c in "*?[") or Path(x).exists()
    return isinstance(x, list) and bool(x) and all(isinstance(path, Path) for path in x)


def is_file_name(text: str) -> bool:
    """Whether a text has no blank and ends as the names of files that `fit` reads."""
    return _is_known(text) and not any(map(str.isspace, text))


def is_frame(x: Any) -> bool:
    """Whether x is a table of another library: of Hugging Face, pandas, Polars or pyarrow."""
    if hasattr(x, "element_spec") or isinstance(x, dict | Table):
        return False
    names = hasattr(x, "column_names") or (hasattr(x, "columns") and hasattr(x, "shape"))
    return names and hasattr(x, "__len__")


def find_paths(source: Any, known: Collection[str] = (*DELIMITERS, *OBJECTS)) -> list[Path | str]:
    """Lists files; those of folders, whose extension has to be known, and of patterns by name.

    Args:
        source: a file, folder, pattern or address, or a list of these.
        known: extensions; the log names other files of a folder.

    Raises:
        FileNotFoundError: if one does not exist, or a folder or pattern has no files.
        TypeError: if `source` is of another type.
        ValueError: if there are no files, or one is named twice.
    """
    found: list[Path | str] = []
    for name in source if isinstance(source, list | tuple) else [source]:
        if not isinstance(name, str | Path):
            raise TypeError(
                f"{name!r:.80} of type {type(name).__name__}: expected files, a Hugging Face "
                "Dataset, a pandas or Polars DataFrame, a pyarrow Table, or an iterator over rows"
            )
        folder, inside = _remote_files(str(name)) if is_remote(name) else _local_files(name)
        kept = [path for path in inside if not folder or extension(path) in known]
        if not kept:
            problem = f"holds no {', '.join(known)} file" if folder else "is not there"
            raise FileNotFoundError(f"{name or repr(name)} {problem}")
        if len(kept) < len(inside):
            others = [PurePosixPath(p).name for p in inside if extension(p) not in known]
            logger.warning("%s: left out, for their endings: %s", name, ", ".join(others[:5]))
        found += kept
    places: dict[Path | str, int] = {}
    for place, path in enumerate(found):
        first = places.setdefault(path if is_remote(path) else path.resolve(), place)
        if first < place:
            other = f", also as {path}" if path != found[first] else ""
            raise ValueError(f"{found[first]} is named twice{other}")
    if not found:
        raise ValueError("no files were given")
    return found


def _local_files(name: Path | str) -> tuple[bool, list[Path]]:
    """(whether this is a folder, the files in it, or those of a name or pattern)."""
    path = Path(name)
    if name and path.is_dir():  # the path of "" is the working directory
        return True, sorted(p for p in path.iterdir() if p.is_file() and p.name[0] != ".")
    named = [path] if path.is_file() else map(Path, glob.glob(str(name)))
    return False, sorted(p for p in named if p.is_file())


def _remote_files(address: str) -> tuple[bool, list[str]]:
    import tensorflow as tf

    try:
        folder = tf.io.gfile.isdir(address)
        if not folder and tf.io.gfile.exists(address):  # its name may look like a pattern
            return False, [address]
        pattern = address.rstrip("/") + "/*" if folder else address
        return folder, sorted(tf.io.gfile.glob(pattern))
    except tf.errors.OpError as error:
        raise OSError(f"{address}: {error.message}") from error


def _is_known(path: Path | str) -> bool:
    return extension(path) in (*DELIMITERS, *OBJECTS)


class FilePart:
    """A file of a table; `name` is for messages, by default the path.

    Attributes:
        textual: whether all cells are strings.
        sequential: whether reading from the middle reads what is in front of it too.
    """

    def __init__(self, path: Path | str, delimiter: str | None, name: str | None = None):
        self._path, self._delimiter = path, delimiter
        self.name = name or str(path)
        self._renamed = name is not None
        self.textual = find_delimiter(path, delimiter) is not None
        self.sequential = is_gzip(path)
        self._wraps = extension(path) in RECORDS  # whose lists of one value look like that value
        self._names: list[str] | None = None
        self._begin: Place | None = None

    def facts(self) -> list:
        """What a resumed run compares besides the rows."""
        return [self.name if self._renamed else Path(self.name).name, file_size(self._path)]

    def begin(self) -> Place:
        """The place of the first row, behind a header line."""
        if self._begin is None:
            self._begin = Place()
            if self.textual:
                self._delimiter = header_delimiter(self._path, self._delimiter)
                self._names = column_names(self._path, self._delimiter, self._begin)
        return Place(self._begin.offset, self._begin.line)

    def groups(self) -> list[int] | None:
        """Lines at which parts end that are each read from their beginning; None for none."""
        if extension(self._path) != ".parquet":
            return None
        return np.cumsum(parquet_groups(self._path)).tolist()

    def cells(self, columns: list[str], at: Place, bad: Bad | None) -> Iterator[tuple[int, list]]:
        """As `keras_bert.data.rows.read_cells`."""
        self.begin()  # for the names
        rows = read_cells(self._path, columns, self._names, self._delimiter, at, bad)
        return rows if not self._renamed else self._with_name(rows)

    def _with_name(self, rows: Iterator) -> Iterator:
        try:
            yield from rows
        except ValueError as error:
            raise ValueError(
                str(error).replace(f"{self._path}, line", f"{self.name}, row")
            ) from error

    def where(self, line: int) -> str:
        """A row's place in messages."""
        return f"{self.name}, {'row' if self._renamed else 'line'} {line}"

    def as_list(self, value: Any) -> Any:
        """A cell of a column of lists."""
        return [value] if self._wraps and not isinstance(value, list) else value


class FramePart:
    """A table of another library, read through its own slices; otherwise as `FilePart`."""

    textual = sequential = False

    def __init__(self, frame: Any):
        self._frame = frame
        self.name = type(frame).__name__
        self._names = list(frame.column_names if hasattr(frame, "column_names") else frame.columns)

    def facts(self) -> list:
        return [self.name, len(self._frame)]

    def begin(self) -> Place:
        return Place()

    def groups(self) -> None:
        return None

    def cells(self, columns: list[str], at: Place, bad: Bad | None) -> Iterator[tuple[int, list]]:
        for column in columns:
            if (count := self._names.count(column)) != 1:
                problem = f"{count} columns" if count else "no column"
                raise ValueError(
                    f"{self.name}: {problem} {column!r}; the columns are {self._names}"
                )
        while at.offset < len(self._frame):
            end = min(at.offset + PIECE_ROWS, len(self._frame))
            values = _frame_slice(self._frame, columns, at.offset, end)
            for row in zip(*values, strict=True):
                at.offset = at.line = at.offset + 1
                yield at.line, list(row)

    def where(self, line: int) -> str:
        return f"{self.name}, row {line - 1}"

    def as_list(self, value: Any) -> Any:
        return value


def _frame_slice(frame: Any, columns: list[str], begin: int, end: int) -> list[list]:
    """Values of rows [begin, end) of a table of another library, a list for each column."""
    if hasattr(frame, "iloc"):  # pandas
        values = [frame[name].iloc[begin:end].tolist() for name in columns]
        return [[None if _is_missing(v) else v for v in column] for column in values]
    if hasattr(frame, "get_column"):  # Polars
        return [frame.get_column(name).slice(begin, end - begin).to_list() for name in columns]
    if hasattr(frame, "to_pydict"):  # pyarrow
        return [frame.column(name).slice(begin, end - begin).to_pylist() for name in columns]
    chosen = frame.select_columns(columns) if hasattr(frame, "select_columns") else frame
    rows = chosen[begin:end]  # Hugging Face
    return [list(rows[name]) for name in columns]


def _is_missing(value: Any) -> bool:
    """Whether a value is pandas' NA or NaT, which compare as no other value of Python does."""
    return type(value).__name__ in ("NAType", "NaTType")


@dataclass
class Index:
    """The pieces of a table, in its order.

    Attributes:
        part: int [P], the part of each piece.
        offset: int [P], see `Place`.
        line: int [P], see `Place`.
        examples: int [P], rows of the table to read, those that are left out not counted.
        rows: int [P], rows of the network that they make.
        segment: int [P], ascending; pieces of one segment are read in order.
        bad: lines that are left out, by part.
        characters: in all cells, about.
        checksum: of all cells.
        sums: of the further numbers that `TableReader.index` was given.
    """

    part: Any = field(default_factory=list)
    offset: Any = field(default_factory=list)
    line: Any = field(default_factory=list)
    examples: Any = field(default_factory=list)
    rows: Any = field(default_factory=list)
    segment: Any = field(default_factory=list)
    bad: dict[int, list[int]] = field(default_factory=dict)
    characters: int = 0
    checksum: int = 0
    sums: Any = 0
    _last: Any = None

    @property
    def size(self) -> int:
        """Rows of the network in all pieces."""
        return int(self.rows.sum())

    def add(self, part: int, place: Place, chunk: list, made: Any, group: int | None) -> None:
        """Adds a piece of rows (line, values); `made` is what `count` of `TableReader.index` says.

        Pieces of a part with the same group form a segment; with None each is one of its own.
        """
        if not chunk:
            return
        data = repr([values for _, values in chunk]).encode("utf-8", "backslashreplace")
        self.checksum = google_crc32c.extend(self.checksum, data)
        self.characters += sum(_characters(values) for _, values in chunk)
        same = group is not None and self._last == (part, group)
        segment = self.segment[-1] + (not same) if self.segment else 0
        self._last = part, group
        rows, *further = np.ravel(made).tolist()
        self.sums = self.sums + np.array(further, "int64")
        row = (part, place.offset, place.line, len(chunk), rows, segment)
        for name, value in zip(_BY_PIECE, row, strict=True):
            getattr(self, name).append(value)


_BY_PIECE = ("part", "offset", "line", "examples", "rows", "segment")


class Stop(Exception):
    """Ends `TableReader.scan` early."""


class TableReader:
    """Reads pieces of a table as the columns `cells` that a task asks for.

    A table may have those in `unread` too, such as labels for predictions. `names` are those of the
    columns that are read.

    Raises:
        ValueError: if the table's `columns` names one that the task does not have.
    """

    def __init__(self, table: Table, cells: dict[str, Cell], unread: Sequence[str] = ()):
        self.table = table
        given = table.columns
        if unknown := [name for name in given if name not in cells and name not in unread]:
            raise ValueError(
                f"{unknown[0]}={given[unknown[0]]!r}: expected columns for {', '.join(cells)}"
            )
        self._cells = {n: c for n, c in cells.items() if c.required or n in given}
        self.names = tuple(self._cells)
        self._asked = {n: given.get(n, n) for n in self._cells}
        self._flat = list(
            dict.fromkeys(
                column
                for asked in self._asked.values()
                for column in ([asked] if isinstance(asked, str) else asked)
            )
        )

    def facts(self) -> dict:
        """What a resumed run compares besides the rows."""
        return {"columns": self._asked, "parts": [part.facts() for part in self.table.parts]}

    def only(self, names: Sequence[str]) -> "TableReader":
        """A reader of some of the columns."""
        table = copy.copy(self.table)
        table.columns = {n: c for n, c in self.table.columns.items() if n in names}
        return TableReader(table, {n: c for n, c in self._cells.items() if n in names})

    def head(self, rows: int, count: Callable[[dict[str, list]], int]) -> dict[str, list]:
        """Reads about so many right rows, checked by `count` as in `index`, of several files."""
        parts = self.table.parts
        parts = parts[:: -(-len(parts) // 8)]
        found: list = []
        for part in parts:
            chunk = list(islice(self._rows(part, part.begin(), _pass_over), rows // len(parts)))
            wrong, _ = self._counted(chunk, part, count) if chunk else ({}, 0)
            found += [row for row in chunk if row[0] not in wrong]
        return self._columns(found)

    def scan(self, take: Callable[[dict[str, list]], Any], what: str) -> None:
        """Gives `take` columns of rows, piece by piece, until it raises `Stop`; `what` is shown.

        Rows that cannot be read are passed over.
        """
        try:
            with progress(None, what) as bar:
                for part in self.table.parts:
                    rows = self._rows(part, part.begin(), _pass_over)
                    while chunk := list(islice(rows, PIECE_ROWS)):
                        take(self._columns(chunk))
                        bar.update(len(chunk))
        except Stop:
            return

    def index(self, count: Callable[[dict[str, list]], Any]) -> Index:
        """Reads and checks the table once.

        Args:
            count: checks some rows, as columns by name, and returns the number of rows of the
                network that they make, perhaps followed by further numbers to add up, int
                [1 + K]; raises a TypeError or ValueError for a wrong row. Rows beside a wrong one
                are passed to it again.

        Raises:
            ValueError: with file and line, if a row is wrong and not to be left out; or if there
                are no rows.
        """
        found = Index()
        reasons: dict[int, str] = {}
        with progress(None, "checked") as bar, ThreadPoolExecutor(8) as pool:
            for number, part in enumerate(self.table.parts):
                wrong: list[int] = []

                def bad(line, message, wrong=wrong, number=number, part=part):
                    if not self.table.skip_bad_rows:
                        raise ValueError(
                            f"{message}. Pass skip_bad_rows=True to leave such rows out"
                        )
                    wrong.append(line)
                    reasons.setdefault(number, message)

                for chunks in batched(self._chunks(part, bad), TOGETHER):
                    counted = pool.map(lambda c, p=part: self._counted(c[0], p, count), chunks)
                    for (chunk, place, group), (wrong_ones, made) in zip(
                        chunks, counted, strict=True
                    ):
                        for line, message in wrong_ones.items():
                            bad(line, message)
                        bar.update(len(chunk))
                        kept = [row for row in chunk if row[0] not in wrong_ones]
                        found.add(number, place, kept, made, group)
                if wrong:
                    found.bad[number] = sorted(wrong)
        if not found.rows:
            left = sum(map(len, found.bad.values()))
            rest = f"; {left} rows were left out: {reasons[min(reasons)]}" if left else ""
            raise ValueError(f"{self.table.parts[0].name}: no rows{rest}")
        for number, lines in found.bad.items():
            logger.warning(
                "%s: %d row%s left out, %s; the first: %s",
                self.table.parts[number].name,
                len(lines),
                "s" if len(lines) > 1 else "",
                name_lines(lines),
                reasons[number],
            )
        self.table.bad_rows = {self.table.parts[i].name: lines for i, lines in found.bad.items()}
        for name in _BY_PIECE:
            setattr(found, name, np.array(getattr(found, name), "int64"))
        return found

    def _chunks(self, part, bad: Bad) -> Iterator[tuple[list, Place, int | None]]:
        """Yields (rows of a piece, its place, the number of its group or None)."""
        at, ends = part.begin(), part.groups()
        rows = self._rows(part, at, bad)
        group, end = 0, False
        while not end:
            place = Place(at.offset, at.line)
            while ends and ends[group] <= place.line < ends[-1]:
                group += 1
            limit = min(PIECE_ROWS, ends[group] - place.line) if ends else PIECE_ROWS
            chunk: list = []
            characters = 0
            while len(chunk) < max(limit, 1) and characters < PIECE_CHARACTERS:
                if end := (row := next(rows, None)) is None:
                    break
                chunk.append(row)
                characters += _characters(row[1])
            if chunk:
                yield chunk, place, 0 if part.sequential else group if ends else None

    def _counted(self, chunk: list, part, count: Callable) -> tuple[dict[int, str], Any]:
        """(messages of wrong rows by line, what `count` returns for the others)."""
        try:
            return {}, count(self._columns(chunk))
        except (TypeError, ValueError) as error:
            whole = error
        wrong = {}
        for line, values in chunk:
            try:
                count(self._columns([(line, values)]))
            except (TypeError, ValueError) as error:
                wrong[line] = f"{part.where(line)}: {_of_one(error)}"
        if not wrong:
            raise ValueError(f"{part.where(chunk[0][0])} to {chunk[-1][0]}: {whole}") from whole
        kept = [row for row in chunk if row[0] not in wrong]
        return wrong, count(self._columns(kept)) if kept else 0

    def read(self, index: Index, piece: int, opened: dict | None = None) -> dict[str, list]:
        """Reads a piece, as lists by column; raises a ValueError if the table has changed.

        The dict `opened` keeps a file open from call to call, so that pieces of a segment are read
        without beginning again.
        """
        number, line = int(index.part[piece]), int(index.line[piece])
        part, opened = self.table.parts[number], {} if opened is None else opened
        goes_on = opened.get("next") == (number, piece)
        if not goes_on:
            at = Place(int(index.offset[piece]), line)
            bad = _pass_over if self.table.skip_bad_rows else None
            opened["rows"] = self._rows(part, at, bad)
        rows = opened["rows"]
        if wrong := index.bad.get(number):
            last = piece + 1 == len(index.part) or index.part[piece + 1] != number
            until = None if last else bisect_right(wrong, index.line[piece + 1])
            # Those at the end of the piece before were not read yet.
            first = index.line[piece - 1] if goes_on else line
            drop = set(wrong[bisect_right(wrong, first) : until])
            rows = (row for row in rows if row[0] not in drop)
        chunk = list(islice(rows, int(index.examples[piece])))
        if len(chunk) < index.examples[piece]:
            raise ValueError(
                f"{part.name}: {len(chunk)} rows from line {line + 1} on, expected "
                f"{index.examples[piece]}: the file has changed since training began"
            )
        opened["next"] = (number, piece + 1)
        if piece + 1 == len(index.part) or index.segment[piece + 1] != index.segment[piece]:
            opened.clear()
        return self._columns(chunk)

    def _rows(self, part, at: Place, bad: Bad | None) -> Iterator[tuple[int, list]]:
        """Yields (line, a value for each of the task's columns), checked by kind."""
        makers = [self._maker(name, part) for name in self._cells]
        for line, cells in part.cells(self._flat, at, bad):
            try:
                yield line, [make(cells) for make in makers]
            except ValueError as error:
                message = f"{part.where(line)}: {error}"
                if bad is None:
                    raise ValueError(message) from error
                bad(line, message)

    def _maker(self, name: str, part) -> Callable[[list], Any]:
        """A function from the cells of a row to the value of a column."""
        asked, cell = self._asked[name], self._cells[name]
        if not isinstance(asked, str):
            places = [self._flat.index(column) for column in asked]
            return lambda cells: [cells[i] for i in places]
        place = self._flat.index(asked)
        if cell.kind in (LIST, SEVERAL):
            separator = self.table.label_separator if cell.kind == SEVERAL else None

            def convert(value):
                value = part.as_list(value)
                return _from_text(value, separator) if part.textual else _listed(value)
        else:
            convert = {WORDS: _as_text, CLASS: _as_label, NUMERIC: _as_number, ANY: _listed}
            convert = convert[cell.kind]

        def make(cells):
            value = cells[place]
            if cell.kind == WORDS and type(value) is str and value and not value.isspace():
                return value
            try:
                found = convert(value)
                problem = "" if _is_right(found, cell) else f", got {value!r:.80}"
            except ValueError as error:
                problem = f", got {value!r:.80}: {error}"
            if problem:
                raise ValueError(f"column {asked!r}: expected {_EXPECTED[cell.kind]}{problem}")
            return found

        return make

    def _columns(self, chunk: list) -> dict[str, list]:
        if not chunk:
            return {name: [] for name in self._cells}
        columns = zip(*(values for _, values in chunk), strict=True)
        return dict(zip(self._cells, map(list, columns), strict=True))


def batched(items: Iterable, size: int) -> Iterator[list]:
    """Yields lists of `size` items; the last may be shorter."""
    items = iter(items)
    while chunk := list(islice(items, size)):
        yield chunk


def _characters(values: list) -> int:
    return 8 + sum(len(value) for value in values if isinstance(value, str))


def progress(rows: Iterator | None, what: str) -> tqdm:
    """A progress bar of rows on the standard error, if it takes long."""
    seconds = 0.2 if sys.stderr.isatty() else 10.0
    return tqdm(rows, what, unit=" rows", mininterval=seconds, delay=SILENT_SECONDS, leave=False)


def _pass_over(line: int, message: str) -> None:
    pass


def _of_one(error: Exception) -> str:
    """The message of a check of one row, without that row's number."""
    return str(error).replace(" in row 0", "").replace(" of row 0", "").replace("[0]=", "=")


_EXPECTED = {
    WORDS: "a text",
    CLASS: "a label",
    NUMERIC: "a number",
    LIST: "JSON",
    SEVERAL: "a list of labels",
}


def _is_right(value: Any, cell: Cell) -> bool:
    """Whether a converted value is one of its kind."""
    if cell.kind == WORDS:
        return isinstance(value, str) and (cell.blank or bool(value.strip()))
    if cell.kind == CLASS:
        return value not in (None, "") and not _is_infinite(value)
    if cell.kind == NUMERIC:
        if isinstance(value, list):
            return all(_is_right(item, cell) for item in value)
        return type(value) in (int, float) and not _is_infinite(value)
    return cell.kind != SEVERAL or isinstance(value, list)


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _as_text(value: Any) -> Any:
    value = value.decode() if isinstance(value, bytes) else value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return json.dumps(value) if number and math.isfinite(value) else value


def _as_label(value: Any) -> Any:
    value = value.decode() if isinstance(value, bytes) else _listed(value)
    return value.strip() if isinstance(value, str) else value


def _as_number(value: Any) -> Any:
    value = _listed(value)
    if isinstance(value, list):
        return [_as_number(item) for item in value]
    if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
        value = float(value)
        value = int(value) if value.is_integer() else value
    return value


def _from_text(value: str, separator: str | None) -> Any:
    """A list of a text file: JSON or, with a separator, labels between such; None for blank."""
    if separator is not None and not value.lstrip().startswith("["):
        return [part.strip() for part in value.split(separator)] if value.strip() else []
    return parse_json(value, "the cell") if value.strip() else None


def _listed(value: Any) -> Any:
    """A value with lists for tuples and arrays, and numbers of Python for those of NumPy."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_listed(item) for item in value]
    return value


def _plain(value: Any) -> Any:
    """A value for JSON."""
    if isinstance(value, bytes):
        return value.decode()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r:.80} of type {type(value).__name__}: expected a value of JSON")
