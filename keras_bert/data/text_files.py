"""Plain or gzipped UTF-8 text, found by names and globs, read as whole lines from any position.

Files are opened through TensorFlow, so any file system that it supports works: local, gs://, ...
"""

import contextlib
import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple

import numpy as np

BYTE_ORDER_MARK = "\ufeff"
CHUNK_BYTES = 1 << 20
LINE_BYTES = 1 << 22  # a longer line is neither a sentence nor a paragraph


class Lines(NamedTuple):
    """Consecutive lines of a file.

    Attributes:
        starts: int64 [L], the first byte of each in the (unpacked) file.
        lines: L strings, without the line feed.
    """

    starts: np.ndarray
    lines: list[str]


def find_files(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Finds files by names and globs.

    Args:
        files: a name or glob (`*`, `?`, `[...]`), or several.

    Returns:
        Absolute paths, sorted.

    Raises:
        FileNotFoundError: if a file does not exist, or a glob matches nothing.
        IsADirectoryError: if a name is that of a folder.
        ValueError: if there are no names, or a file is named twice.
    """
    import tensorflow as tf

    named = [files] if isinstance(files, str | os.PathLike) else list(files)
    if not named:
        raise ValueError("files: expected names or globs of text files, got none")
    found: dict[str, str] = {}  # path: the name that matched it
    for name in map(os.fspath, named):
        if tf.io.gfile.exists(name):
            if tf.io.gfile.isdir(name):
                raise IsADirectoryError(
                    f"{name} is a folder: expected files, such as {os.path.join(name, '*.txt.gz')}"
                )
            paths = [name]
        else:
            paths = tf.io.gfile.glob(name) if any(mark in name for mark in "*?[") else []
            paths = [path for path in paths if not tf.io.gfile.isdir(path)]
            if not paths:
                raise FileNotFoundError(f"{name}: no such file, and no match as a glob")
        for path in paths:
            path = path if "://" in path else os.path.realpath(path)
            if path in found:
                raise ValueError(
                    f"{path} is named twice, by {found[path]!r} and by {name!r}: its text would "
                    "be counted twice"
                )
            found[path] = name
    return sorted(found)


def read_lines(path: str, start: int = 0) -> Iterator[Lines]:
    """Reads a file as lines, about a megabyte at a time.

    Lines end only at a line feed, as in the original; a byte order mark is dropped.

    Args:
        path: the file; gzipped if its name ends with `.gz`.
        start: the byte to start at; the rest of a line that began before is skipped.

    Raises:
        ValueError: with file and line, if bytes are not UTF-8, a line has more than 4 MiB, or the
            gzip file is damaged.
    """
    with _open(path) as file:
        if start:
            file.seek(start - 1)
        begin = max(start - 1, 0)
        for place, data in _whole_lines(file, path, begin):
            if start and place == begin:
                cut = data.index(b"\n") + 1 if b"\n" in data else len(data)
                place, data = place + cut, data[cut:]
            if data:
                yield _decode(path, place, data)


def _whole_lines(file: IO[bytes], path: str, place: int) -> Iterator[tuple[int, bytes]]:
    """Yields (place, bytes) of whole lines."""
    rest = b""
    try:
        while data := file.read(CHUNK_BYTES):
            data = rest + data
            cut = data.rfind(b"\n") + 1
            if cut:
                yield place, data[:cut]
            place, rest = place + cut, data[cut:]
            if len(rest) > LINE_BYTES:
                raise ValueError(
                    f"{path}, line {_line_number(path, place)}: more than {LINE_BYTES >> 20} MiB "
                    "without a line feed; expected text with one sentence or paragraph per line"
                )
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}, after byte {place}: damaged gzip file: {error}") from error
    if rest:
        yield place, rest


def _decode(path: str, place: int, data: bytes) -> Lines:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        begin = data.rfind(b"\n", 0, error.start) + 1
        line = _line_number(path, place) + data.count(b"\n", 0, begin)
        packed = " (it is gzipped: give it a name that ends with .gz)"
        hint = packed if place == 0 and data.startswith(b"\x1f\x8b") else ""
        raise ValueError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} at position "
            f"{error.start - begin} of the line is not UTF-8; convert the file to UTF-8{hint}"
        ) from error
    lines = (text if place else text.removeprefix(BYTE_ORDER_MARK)).split("\n")
    if not lines[-1]:
        lines.pop()  # the text after the last line feed is empty
    sizes = np.fromiter(map(len, data.split(b"\n")), np.int64)[: len(lines)] + 1
    return Lines(place + np.cumsum(sizes) - sizes, lines)


def _line_number(path: str, place: int) -> int:
    """The number, from 1, of the line that starts at a byte."""
    count = 1
    with _open(path) as file:
        while place > 0 and (data := file.read(min(CHUNK_BYTES, place))):
            count += data.count(b"\n")
            place -= len(data)
    return count


@contextlib.contextmanager
def _open(path: str) -> Iterator[IO[bytes]]:
    import tensorflow as tf

    with tf.io.gfile.GFile(path, "rb") as file:
        if path.endswith(".gz"):
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked
        else:
            yield file
