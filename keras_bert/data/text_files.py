"""Plain or gzipped UTF-8 text, found by names and globs, read as whole lines from any position.

Files with a scheme, such as gs://, are opened through TensorFlow.
"""

import os
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple

import numpy as np

from keras_bert.data.rows import Place, is_remote, open_at, undecoded
from keras_bert.data.table_rows import find_paths

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
    for name in map(os.fspath, named):
        if tf.io.gfile.isdir(name):
            raise IsADirectoryError(
                f"{name} is a folder: expected files, such as {os.path.join(name, '*.txt.gz')}"
            )
    found = find_paths([os.fspath(name) for name in named])
    # A pattern's matches in a file system of TensorFlow may be folders.
    found = [path for path in found if not is_remote(path) or not tf.io.gfile.isdir(path)]
    if not found:
        raise FileNotFoundError(f"{', '.join(map(str, named))}: no files, only folders")
    return sorted(str(path) if is_remote(path) else os.path.realpath(path) for path in found)


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
    at = Place(max(start - 1, 0))
    with open_at(path, at, "byte") as file:
        for place, data in _whole_lines(file, path, at):
            if start and place == start - 1:
                cut = data.index(b"\n") + 1 if b"\n" in data else len(data)
                place, data = place + cut, data[cut:]
            if data:
                yield _decode(path, place, data)


def _whole_lines(file: IO[bytes], path: str, at: Place) -> Iterator[tuple[int, bytes]]:
    """Yields (place, bytes) of whole lines."""
    rest = b""
    while data := file.read(CHUNK_BYTES):
        data = rest + data
        cut = data.rfind(b"\n") + 1
        if cut:
            yield at.offset, data[:cut]
        at.offset, rest = at.offset + cut, data[cut:]
        if len(rest) > LINE_BYTES:
            raise ValueError(
                f"{path}, line {_line_number(path, at.offset)}: more than {LINE_BYTES >> 20} MiB "
                "without a line feed; expected text with one sentence or paragraph per line"
            )
    if rest:
        yield at.offset, rest


def _decode(path: str, place: int, data: bytes) -> Lines:
    found = data.split(b"\n")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        for number, line in enumerate(found, _line_number(path, place)):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {number}: {undecoded(error)}") from error
    lines = (text if place else text.removeprefix(BYTE_ORDER_MARK)).split("\n")
    if not lines[-1]:
        lines.pop()  # the text after the last line feed is empty
    sizes = np.fromiter(map(len, found), np.int64)[: len(lines)] + 1
    return Lines(place + np.cumsum(sizes) - sizes, lines)


def _line_number(path: str, place: int) -> int:
    """The number, from 1, of the line that starts at a byte."""
    count = 1
    with open_at(path, Place()) as file:
        while place > 0 and (data := file.read(min(CHUNK_BYTES, place))):
            count += data.count(b"\n")
            place -= len(data)
    return count
