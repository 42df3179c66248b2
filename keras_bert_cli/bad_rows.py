"""Rows that cannot be read, left out of any file that `keras-bert train` reads."""

import csv
import json
import re
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from keras_bert.data.rows import parse_json, read_lines, read_objects
from keras_bert_cli.terminal import Progress

Found = TypeVar("Found")
_TABLES = (".csv", ".tsv")
_NUMBER = re.compile(r", (?:record at )?line (\d+)\b")
_PIECE = 64  # rows read at once
Row = tuple[int, int]  # its lines: the first, from 0, and the one behind the last


class WrongRowsError(ValueError):
    """Several wrong rows of a file, which only all of its rows together show to be wrong.

    Args:
        message: as if the first row were the only one.
        lines: of all.
    """

    def __init__(self, message: str, lines: list[int]):
        super().__init__(message)
        self.lines = lines


def read_without_bad_rows(
    read: Callable[[Path], Found],
    check: Callable[[Path], object] | None,
    path: Path,
    blocks: bool,
) -> tuple[Found, list[tuple[int, str]]]:
    """Reads a file; if that fails, finds the bad rows piece by piece and reads it without them.

    Each row is read a few times, however many are bad. Rows are blanked in a copy, so that all
    others keep their line numbers.

    Args:
        read: reads a file; its errors begin with the path and a line, ", line 3".
        check: reads a part of the file, whose first row is a good one; its errors are those of
            `read` in single rows. None for files that cannot be divided.
        path: the file: text, plain or gzipped, or Parquet, whose "lines" are rows.
        blocks: whether an example is a block of lines between blank ones, as in CoNLL's format.

    Returns:
        (what `read` returns; (line, problem) of each row that is left out, in order).

    Raises:
        ValueError: that of `read`, if it names no line, or the header of a table; or if a gzip file
            unpacks to far more than text would.
    """
    try:
        return read(path), []
    except ValueError as error:
        failed = error
    with tempfile.TemporaryDirectory() as folder:
        rows = _Rows(path, Path(folder), blocks)
        if not rows.left_out:
            rows.first(failed)
        before = -1
        while True:
            # Again if bad rows hid others, such as lines that are no JSON those without a label.
            if check is not None and before < len(rows.left_out):
                before = len(rows.left_out)
                rows.leave_out_by_pieces(check)
            try:
                return read(rows.copy()), sorted(rows.left_out)
            except ValueError as error:
                rows.first(error)


class _Rows:
    """The rows of a file, some of them left out.

    Args:
        path: the file.
        folder: for copies.
        blocks: as `read_without_bad_rows`.
    """

    def __init__(self, path: Path, folder: Path, blocks: bool):
        self._path, self._blocks = path, blocks
        self.left_out: list[tuple[int, str]] = []
        self._lines, name = self._read()
        self._copy = folder / name
        self._header = self._copy.suffix in _TABLES
        self._rows = list(self._divided())

    def _read(self) -> tuple[list[bytes], str]:
        """The lines of the file, and the name of a copy that holds them as they are."""
        path, name = self._path, self._path.name.removesuffix(".gz")
        if path.suffix == ".parquet":

            def bad(line, message):
                self.left_out.append((line, message.partition(": ")[2]))

            found = {line: row for line, row in read_objects(path, bad=bad)}
            count = max([*found, *(line for line, _ in self.left_out)], default=0)
            rows = [found.get(line) for line in range(1, count + 1)]
            encoded = [b"" if row is None else json.dumps(row).encode() for row in rows]
            return [row + b"\n" for row in encoded], f"{path.stem}.jsonl"
        # Latin-1 keeps every byte as it is, and `read_lines` unpacks no gzip bomb.
        lines = [line.encode("latin-1") for _, line in read_lines(path, "latin-1")]
        if Path(name).suffix == ".json" and b"".join(lines[:9]).lstrip()[:1] == b"[":
            rows = parse_json(b"".join(lines).decode(), path)  # a list of objects
            return [json.dumps(row).encode() + b"\n" for row in rows], f"{name}l"
        return lines, name

    def _divided(self) -> Iterator[Row]:
        """The rows behind the header; one for blank lines too."""
        lines, at = self._lines, int(self._header)
        while at < len(lines):
            end = at + 1
            if self._blocks and lines[at].strip():
                while end < len(lines) and lines[end].strip():
                    end += 1
            elif self._copy.suffix == ".csv" and b'"' in lines[at]:  # a cell may hold line ends
                text = (lines[i].decode("utf-8", "replace") for i in range(at, len(lines)))
                reader = csv.reader(text, strict=True)
                try:
                    next(reader, None)
                    end = at + max(reader.line_num, 1)
                except csv.Error:  # a quotation mark that is not closed, as far as its own line
                    pass
            yield at, end
            at = end

    def first(self, error: ValueError) -> None:
        """Leaves out the rows that an error of the whole file or its copy names.

        Raises:
            ValueError: the error, if it names none.
        """
        message = str(error).replace(str(self._copy), str(self._path))
        number, problem = _named(message, self._path)
        for line in getattr(error, "lines", [number]):
            place = bisect_right(self._rows, (line - 1, len(self._lines))) - 1
            if place < 0 or line > len(self._lines) or not self._lines[line - 1].strip():
                raise ValueError(message)
            self._leave_out(self._rows[place], line, problem)

    def _leave_out(self, row: Row, line: int, problem: str) -> None:
        self.left_out.append((line, problem))
        for number in range(*row):
            self._lines[number] = b"\n"

    def leave_out_by_pieces(self, check: Callable[[Path], object]) -> None:
        """Leaves out the rows in which `check` finds errors."""
        rows = [row for row in self._rows if any(self._lines[i].strip() for i in range(*row))]
        bar = Progress(len(rows), "leaving out bad rows")
        good: list[Row] = []  # one before all others, which say by their first row how to be read
        at = 0
        while at < len(rows):
            piece = rows[at : at + _PIECE]
            line, problem = self._checked(check, [*good, *piece])
            wrong = next((i for i, row in enumerate(piece) if row[0] < line <= row[1]), None)
            if wrong is not None:
                self._leave_out(piece[wrong], line, problem)
                piece = piece[:wrong]
            at += len(piece) + (wrong is not None)
            good = good or piece[:1]
            bar.to(at)
        bar.close()

    def _checked(self, check, rows: list[Row]) -> tuple[int, str]:
        """The line of the first error in some rows, and the problem; or line 0."""
        numbers = [0] if self._header else []
        for start, end in rows:
            numbers += range(start, end)
            if self._blocks:
                numbers.append(-1)
        content = [b"\n" if i < 0 else self._lines[i].rstrip(b"\n") + b"\n" for i in numbers]
        self._copy.write_bytes(b"".join(content))
        try:
            check(self._copy)
        except ValueError as error:
            number, problem = _named(str(error), self._copy)
            return (numbers[number - 1] + 1, problem) if 0 < number <= len(numbers) else (0, "")
        return 0, ""

    def copy(self) -> Path:
        """Writes the rows that are not left out."""
        self._copy.write_bytes(b"".join(self._lines))
        return self._copy


def _named(message: str, path: Path) -> tuple[int, str]:
    """The line that a message names after the path, and the rest of it; or 0."""
    found = message.startswith(str(path)) and _NUMBER.match(message[len(str(path)) :])
    if not found:
        return 0, ""
    return int(found[1]), message[len(str(path)) + found.end() :].lstrip(": ")
