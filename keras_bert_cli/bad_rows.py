"""Rows that cannot be read, left out of any file that `keras-bert train` reads."""

import csv
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from keras_bert.data.rows import parse_json, read_lines, read_objects
from keras_bert_cli.terminal import Progress

Found = TypeVar("Found")
_TABLES = (".csv", ".tsv")
_NUMBER = re.compile(r", (?:record at )?line (\d+)\b")
_SLOW = 20  # bad rows from which progress is shown


def read_without_bad_rows(
    read: Callable[[Path], Found], path: Path, blocks: bool
) -> tuple[Found, list[tuple[int, str]]]:
    """Reads a file, and where that fails, reads it again without the row that the error names.

    Rows are blanked in a copy, so that all others keep their line numbers.

    Args:
        read: reads a file; its errors begin with the path and a line, ", line 3".
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
        message = str(error)
    lines, name = _lines(path)
    header = Path(name).suffix in _TABLES
    left_out: list[tuple[int, str]] = []
    bar = None
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / name
        while True:
            found = message.startswith(str(path)) and _NUMBER.match(message[len(str(path)) :])
            number = int(found[1]) if found else 0
            if not 1 + header <= number <= len(lines) or not lines[number - 1].strip():
                raise ValueError(message)
            left_out.append((number, message[len(str(path)) + found.end() :].lstrip(": ")))
            for line in range(*_row(lines, number, blocks, name)):
                lines[line] = b"\n"
            if len(left_out) == _SLOW:
                bar = Progress(len(lines), "leaving out bad rows")
            if bar is not None:
                bar.to(number)
            copy.write_bytes(b"".join(lines))
            try:
                result = read(copy)
            except ValueError as error:
                message = str(error).replace(str(copy), str(path))
                continue
            if bar is not None:
                bar.close()
            return result, sorted(left_out)


def _lines(path: Path) -> tuple[list[bytes], str]:
    """The lines of a file, and the name of a copy that holds them as they are."""
    name = path.name.removesuffix(".gz")
    if path.suffix == ".parquet":
        rows = [json.dumps(row, ensure_ascii=False).encode() for _, row in read_objects(path)]
        return [row + b"\n" for row in rows], f"{path.stem}.jsonl"
    # Latin-1 keeps every byte as it is, and `read_lines` unpacks no gzip bomb.
    lines = [line.encode("latin-1") for _, line in read_lines(path, "latin-1")]
    if Path(name).suffix == ".json" and b"".join(lines[:9]).lstrip()[:1] == b"[":
        rows = parse_json(b"".join(lines).decode(), path)  # a list of objects
        return [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows], f"{name}l"
    return lines, name


def _row(lines: list[bytes], number: int, blocks: bool, name: str) -> tuple[int, int]:
    """The lines, from 0, of the row that line `number`, from 1, is in."""
    first, last = number - 1, number
    if blocks:
        while first and lines[first - 1].strip():
            first -= 1
        while last < len(lines) and lines[last].strip():
            last += 1
    elif name.endswith(".csv"):  # a cell may hold line ends
        text = (line.decode("utf-8", "replace") for line in lines[first:])
        reader = csv.reader(text, strict=True)
        try:
            next(reader, None)
            last = first + max(reader.line_num, 1)
        except csv.Error:  # a quotation mark that is not closed, as far as its own line
            pass
    return first, last
