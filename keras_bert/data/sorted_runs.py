"""Shuffles documents on disk, by merging runs sorted by random keys.

A run is as large as fits in memory: the serialized documents in the order of their keys,
concatenated in one file, and an entry for each in another. A range of keys is then read from all
runs in parallel, each sequentially.
"""

import hashlib
import struct
from collections.abc import Iterator, Sequence

import numpy as np

from keras_bert.data.whole_files import read_whole, write_whole

RUN_BYTES = 1 << 25
MERGE_BYTES = 1 << 27  # read-ahead, over all runs
LEAST_READ = 1 << 16
ENTRY = np.dtype(
    [
        ("key", "<i8"),
        ("source", "<u4"),
        ("place", "<u8"),
        ("part", "<u4"),
        ("bytes", "<u8"),
        ("sentences", "<u8"),
        ("tokens", "<u8"),
    ]
)


def shuffle_key(seed: int, source: int, place: int, part: int) -> int:
    """The sort key in the shuffled corpus of a part of the document at a place of a source: a hash
    of 63 bits."""
    message = struct.pack("<qqqq", seed, source, place, part)
    digest = hashlib.blake2b(message, digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1  # Beam's runners support signed integers


class RunWriter:
    """Collects documents and writes them as `runs`, whose names begin with a prefix."""

    def __init__(self, prefix: str):
        self.prefix = prefix
        self.runs: list[str] = []
        self._rows: list[tuple[tuple[int, ...], bytes]] = []
        self._size = 0

    def add(self, entry: tuple[int, ...], example: bytes) -> None:
        """Adds a serialized document with the fields of its `ENTRY`."""
        self._rows.append((entry, example))
        self._size += len(example)
        if self._size >= RUN_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes the collected documents as one run."""
        if not self._rows:
            return
        self._rows.sort(key=lambda row: row[0])
        run = f"{self.prefix}-{len(self.runs):04d}"
        write_whole(f"{run}.examples", b"".join(example for _, example in self._rows))
        entries = np.array([entry for entry, _ in self._rows], ENTRY)
        write_whole(f"{run}.entries", entries.tobytes())
        self.runs.append(run)
        self._rows, self._size = [], 0


def read_entries(run: str) -> np.ndarray:
    """Reads the entries of a run, an array of `ENTRY`."""
    return np.frombuffer(read_whole(f"{run}.entries"), ENTRY)


def merge_runs(
    runs: Sequence[str], lower: int, upper: int | None
) -> tuple[np.ndarray, Iterator[bytes]]:
    """Entries and serialized documents of runs with keys from `lower` to below `upper`, in order.

    None is for the end.
    """
    parts, owners, readers = [], [], []
    buffer = min(max(MERGE_BYTES // max(len(runs), 1), LEAST_READ), 1 << 22)
    for number, run in enumerate(runs):
        entries = read_entries(run)
        first = int(np.searchsorted(entries["key"], np.int64(lower)))
        last = len(entries)
        if upper is not None:
            last = int(np.searchsorted(entries["key"], np.int64(upper)))
        place = int(entries["bytes"][:first].sum())
        end = place + int(entries["bytes"][first:last].sum())
        readers.append(_Reader(f"{run}.examples", place, end, buffer))
        parts.append(entries[first:last].copy())  # otherwise all entries of the run stay in memory
        owners.append(np.full(last - first, number))
    entries, owner = np.concatenate(parts), np.concatenate(owners)
    order = np.lexsort([entries[name] for name in ("part", "place", "source", "key")])
    entries, owner = entries[order], owner[order]
    examples = (
        readers[run].take(size)
        for run, size in zip(owner.tolist(), entries["bytes"].tolist(), strict=True)
    )
    return entries, examples


class _Reader:
    """Reads a part of a file sequentially. The file is opened for each read only, because a corpus
    can have more runs than a process may open files."""

    def __init__(self, path: str, place: int, end: int, buffer: int):
        self.path, self.place, self.end, self.buffer = path, place, end, buffer
        self._data, self._used = b"", 0

    def take(self, size: int) -> bytes:
        if self._used + size > len(self._data):
            self._fill(size)
        self._used += size
        return self._data[self._used - size : self._used]

    def _fill(self, size: int) -> None:
        import tensorflow as tf

        rest = self._data[self._used :]
        wanted = min(max(size - len(rest), self.buffer), self.end - self.place)
        with tf.io.gfile.GFile(self.path, "rb") as file:
            file.seek(self.place)
            more = file.read(wanted)
        self.place += len(more)
        self._data, self._used = rest + more, 0
        if len(self._data) < size:
            raise ValueError(f"{self.path} is truncated: prepare the corpus again with `overwrite`")
