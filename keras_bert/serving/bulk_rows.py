"""Rows of files as inputs of a signature, read sequentially."""

import json
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert.data.rows import (
    column_names,
    extension,
    is_gzip,
    is_remote,
    parse_json,
    plain_text,
    read_lines,
    read_objects,
    read_rows,
)
from keras_bert.data.table_rows import find_paths

ENDINGS = (".jsonl", ".csv", ".tsv", ".txt", ".parquet")
ID = "id"
COUNT = "count"


class InputFile(NamedTuple):
    """A file to read.

    Attributes:
        path: the path as passed; a string for file systems other than the local one.
        name: path relative to the common folder of all files of a run.
        ending: file name extension, one of `ENDINGS`.
        of_folder: whether its folder was passed.
    """

    path: Path | str
    name: str
    ending: str
    of_folder: bool


class Row(NamedTuple):
    """One input row of a signature.

    Attributes:
        number: index from 0, over all files.
        file: the file that holds it.
        line: its line in the file, from 1.
        id: the value of the file's column `id`, or None.
        values: by input: a string, a number or nested lists of these.
        shape: lengths of the lists; equal for all rows of a batch, unless they are padded.
        size: number of characters and of numbers in lists.
    """

    number: int
    file: InputFile
    line: int
    id: Any
    values: dict[str, Any]
    shape: tuple[int, ...]
    size: int

    def error(self, problem: str) -> ValueError:
        """An error that names file and line."""
        return ValueError(f"{self.file.path}, line {self.line}: {problem}")


def find_files(names: str | os.PathLike | Sequence[str | os.PathLike]) -> list[InputFile]:
    """Lists files of known types, those of folders and globs sorted by name.

    Args:
        names: a file, folder or glob, or several. Folders are not searched recursively.

    Raises:
        FileNotFoundError: if one does not exist, or a folder has no such files.
        ValueError: if the type of a file is unknown, or a file is named twice.
    """
    names = [Path(n) for n in ([names] if isinstance(names, str | os.PathLike) else names)]
    folders = {name for name in names if name.is_dir()}
    return name_files(find_paths(names, ENDINGS), folders)


def name_files(paths: list, folders: Collection[Path] = ()) -> list[InputFile]:
    """Names files relative to their common folder; `folders` are those that were passed.

    Raises:
        ValueError: if the type of a file is unknown.
    """
    whole = [str(path) if is_remote(path) else Path(path).resolve().as_posix() for path in paths]
    root = os.path.commonprefix([os.path.dirname(path) + "/" for path in whole])
    root = root[: root.rindex("/") + 1]
    files = []
    for path, place in zip(paths, whole, strict=True):
        ending = extension(path)
        if ending not in ENDINGS or (ending == ".parquet" and is_gzip(path)):
            raise ValueError(
                f"{path}: extension {ending!r}: expected {', '.join(ENDINGS)}, text also with .gz"
            )
        of_folder = isinstance(path, Path) and path.parent in folders
        files.append(InputFile(path, place.removeprefix(root), ending, of_folder))
    return files


class RowReader:
    """Reads files as rows of a signature's inputs.

    An input with one axis is read from the column of its name. For one with more axes, a cell holds
    a JSON list, or there are columns such as choice0, choice1 and so on for `choices`. `count` of
    lists is their length, not a column.

    Args:
        files: files to read, in this order.
        inputs: "dtype" and "shape" by name, as in a contract.
        columns: the file's column names by input name, where they differ; also for `id`.

    Raises:
        ValueError: if `columns` names an unknown input, or there are no inputs.

    Attributes:
        files: the files, as passed.
        id_column: the column of a row's `id`; None if the signature has an input of that name.
        padded: whether lists of different lengths are padded into one batch, with `count`.
    """

    def __init__(
        self, files: list[InputFile], inputs: dict[str, dict], columns: dict[str, str] | None
    ):
        columns = dict(columns or {})
        shapes = {name: spec["shape"][1:] for name, spec in inputs.items()}
        self.padded = COUNT in shapes and any(shapes.values())
        if self.padded:
            del shapes[COUNT]
        if not shapes:
            raise ValueError("the signature takes no rows")
        if unknown := set(columns) - {*shapes, ID}:
            raise ValueError(
                f"columns for {', '.join(sorted(unknown))}, but the inputs are {', '.join(shapes)}"
            )
        self.files = files
        self._shapes = shapes
        self._lists = [name for name, shape in shapes.items() if shape]
        self._numbers = {n for n in shapes if inputs[n]["dtype"] != "string"}
        self._columns = {name: columns.get(name, name) for name in shapes}
        self.id_column, self._id_asked = columns.get(ID, ID), ID in columns
        if ID in shapes:
            self.id_column = None

    def __iter__(self) -> Iterator[Row]:
        """Rows in order.

        Raises:
            ValueError: with file and line, if a column is missing, a cell does not hold a valid
                value of the input, or the file is damaged.
        """
        rows = ((file, *found) for file in self.files for found in self._read(file))
        for number, (file, line, found) in enumerate(rows):
            yield self.row_of(number, file, line, found)

    def text_input(self, file: InputFile) -> str:
        """The input that a file of one text per line fills.

        Raises:
            ValueError: if the signature has other inputs than one string.
        """
        name, *others = self._shapes
        if others or self._shapes[name] or self._numbers:
            raise ValueError(
                f"{file.path}: a file of one text per line has no columns for "
                f"{', '.join(self._shapes)}; expected .jsonl, .csv, .tsv or .parquet"
            )
        return name

    def row_of(self, number: int, file: InputFile, line: int, found: str | dict) -> Row:
        """A row of one text, or of values by column; see `Row` for the arguments.

        Raises:
            ValueError: with file and line, if a column is missing or has no value of its input.
        """
        if isinstance(found, str):
            return self._row(number, file, line, None, {self.text_input(file): found})
        return self._row(number, file, line, *self._of_object(file, line, found))

    def check_columns(self, file: InputFile, names: list[str]) -> list[str]:
        """The columns of a table that hold inputs or the `id`.

        Raises:
            ValueError: if a column is missing.
        """
        row_id, cells = self._of_object(file, 1, dict(zip(names, names, strict=True)))
        wanted = [n for cell in cells.values() for n in ([cell] if isinstance(cell, str) else cell)]
        return wanted + [row_id] * (row_id is not None and row_id not in wanted)

    def columns(self, rows: list[Row]) -> dict[str, list]:
        """The inputs of a signature, from rows of the same `shape`."""
        columns = {name: [row.values[name] for row in rows] for name in self._shapes}
        if self.padded:
            counts = self.counts(rows)
            for name in self._lists:
                blank = [0 if name in self._numbers else ""]
                columns[name] = [cell + blank * (max(counts) - len(cell)) for cell in columns[name]]
            columns[COUNT] = counts
        return columns

    def counts(self, rows: list[Row]) -> list[int]:
        """Lengths of the rows' lists."""
        return [len(row.values[self._lists[0]]) for row in rows]

    def _read(self, file: InputFile) -> Iterator[tuple[int, str | dict]]:
        """Yields (line, its text, even an empty one, or its values by column)."""
        if file.ending == ".txt":
            self.text_input(file)
            for line, text in read_lines(file.path):
                yield line, text.removesuffix("\n").removesuffix("\r")
            return
        names = column_names(file.path) if file.ending != ".jsonl" else []
        wanted = self.check_columns(file, names) if names else []
        if file.ending in (".csv", ".tsv"):
            for line, cells in read_rows(file.path, wanted):
                yield line, dict(zip(wanted, cells, strict=True))
        else:
            yield from read_objects(file.path, columns=wanted or None)

    def _of_object(self, file: InputFile, line: int, found: dict) -> tuple[Any, dict]:
        """The value of the column `id`, and the cells of each input."""
        places = self._places(file, line, found)
        if self._id_asked and self.id_column not in found:
            raise ValueError(
                f"{file.path}, line {line}: no key {self.id_column!r}; the keys are {[*found]}"
            )
        return found.get(self.id_column), _cells(places, found)

    def _places(self, file: InputFile, line: int, names) -> dict[str, str | list[str]]:
        """The column of each input, or its columns."""
        places: dict[str, str | list[str]] = {}
        for name, column in self._columns.items():
            places[name] = column
            if column in names:
                continue
            stems = (column, column.removesuffix("s")) if len(self._shapes[name]) == 1 else ()
            several = next((found for stem in stems if (found := _numbered(stem, names))), None)
            if several is None:
                tried = f", nor {stems[-1]}0, {stems[-1]}1 and so on" if stems else ""
                raise ValueError(
                    f"{file.path}, line {line}: no column {column!r}{tried} for the input "
                    f"{name!r}; the columns are {[*names]}: name it by columns={{{name!r}: ...}}, "
                    f"or --column {name}=... of the command"
                )
            places[name] = several
        return places

    def _row(self, number: int, file: InputFile, line: int, row_id, cells: dict) -> Row:
        values, lengths, size = {}, [], 0
        row = Row(number, file, line, row_id, values, (), 0)
        try:  # as it will be encoded
            json.dumps(row_id, ensure_ascii=False, allow_nan=False).encode()
        except ValueError as error:
            problem = f"{self.id_column!r}: {row_id!r:.80} can't be written: {error}"
            raise row.error(problem) from error
        for name, cell in cells.items():
            shape = self._shapes[name]
            try:
                if (shape or name in self._numbers) and isinstance(cell, str):
                    cell = _json(cell)
                values[name], more = self._checked(name, cell, shape, lengths)
            except ValueError as error:
                raise row.error(f"{name!r}: {error}") from error
            size += more
        if self.padded and len(set(lengths)) > 1:
            raise row.error(f"lists of different lengths: {lengths}")
        return row._replace(shape=() if self.padded else tuple(lengths), size=size)

    def _checked(self, name: str, cell, shape: list, lengths: list) -> tuple[Any, int]:
        """A checked cell and its size; appends the lengths of lists to `lengths`."""
        if shape:
            if not isinstance(cell, list) or shape[0] not in (None, len(cell)):
                count = "" if shape[0] is None else f" of {shape[0]}"
                raise ValueError(f"expected a list{count}, got {cell!r:.80}")
            lengths.append(len(cell))
            inner: list[list[int]] = [[] for _ in cell]
            found = [
                self._checked(name, item, shape[1:], below)
                for item, below in zip(cell, inner, strict=True)
            ]
            if any(below != inner[0] for below in inner):
                raise ValueError(f"lists of different lengths in {cell!r:.80}")
            lengths += inner[0] if inner else []
            return [value for value, _ in found], sum(size for _, size in found)
        if name in self._numbers:
            if not isinstance(cell, int) or isinstance(cell, bool) or not -(2**31) <= cell < 2**31:
                raise ValueError(f"expected a whole number of 32 bits, got {cell!r:.80}")
            return cell, 1
        text = plain_text(cell)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"can't be written as UTF-8: {error}") from error
        return text, len(text)


def _numbered(stem: str, names) -> list[str] | None:
    """Columns stem0, stem1 and so on, or from 1 on."""
    first = 0 if f"{stem}0" in names else 1
    found = []
    while (name := f"{stem}{first + len(found)}") in names:
        found.append(name)
    return found or None


def _cells(places: dict, found: dict) -> dict:
    return {
        name: found[place] if isinstance(place, str) else [found[column] for column in place]
        for name, place in places.items()
    }


def _json(cell: str):
    try:
        return parse_json(cell, "the cell")
    except ValueError as error:
        raise ValueError(f"expected JSON, got {cell!r:.80}: {error}") from error
