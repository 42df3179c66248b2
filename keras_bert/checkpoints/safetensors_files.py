"""safetensors files, read with distrust of every number in them, and written.

Format (huggingface/safetensors, README): 8 bytes with the length of the header, unsigned and
little-endian; the header, JSON of {name: {"dtype", "shape", "data_offsets": [begin, end]}} and
perhaps "__metadata__"; then the numbers, little-endian, every byte of them some tensor's.
"""

import json
import os
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

from keras_bert.checkpoints.checks import DTYPES, check_name, short

# safetensors' own limit; the header of BERT-Large takes 50 kB.
_LONGEST_HEADER = 100_000_000
_MOST_AXES = 8
_FLOATS = {"F32": ("float32", "<f4"), "F16": ("float16", "<f2"), "BF16": ("bfloat16", None)}
_BYTES = {name: 1 for name in ("BOOL", "I8", "U8", "F8_E4M3", "F8_E5M2", "F8_E8M0")}
_BYTES |= {name: 2 for name in ("I16", "U16", "F16", "BF16")}
_BYTES |= {name: 4 for name in ("I32", "U32", "F32")} | {name: 8 for name in ("I64", "U64", "F64")}


class StoredTensor(NamedTuple):
    """Where a tensor lies; its numbers are not read yet.

    Attributes:
        path: the file.
        name: in the file.
        kind: safetensors' name of the type, such as "F32" or "I64".
        shape: sizes of the axes; they agree with the number of bytes.
        begin: the first byte in the file.
    """

    path: Path
    name: str
    kind: str
    shape: tuple[int, ...]
    begin: int

    @property
    def dtype(self) -> str | None:
        """ "float32", "float16" or "bfloat16"; None for a type that weights don't have."""
        return _FLOATS[self.kind][0] if self.kind in _FLOATS else None

    def load(self) -> np.ndarray:
        """Reads the numbers, as float32, which holds the narrower types exactly.

        Raises:
            ValueError: if they are of another type, or the file has become shorter.
        """
        if self.dtype is None:
            raise ValueError(f"{self.path}: {self.name} is of the type {self.kind}")
        kind = np.dtype(_FLOATS[self.kind][1] or ml_dtypes.bfloat16)
        count = prod(self.shape)
        with open(self.path, "rb") as file:
            file.seek(self.begin)
            values = np.fromfile(file, kind, count)
        if values.size != count:
            raise ValueError(f"{self.path} ends inside {self.name}")
        return values.reshape(self.shape).astype("float32", copy=False)


def read_headers(paths: Iterable[Path]) -> dict[str, StoredTensor]:
    """Reads what tensors some files hold, without reading the tensors.

    Raises:
        ValueError: if a file is damaged, or two tensors share a name.
    """
    found: dict[str, StoredTensor] = {}
    for path in paths:
        for name, tensor in _read_header(path).items():
            if name in found:
                raise ValueError(f"{path}: a tensor {name} lies in {found[name].path} too")
            found[name] = tensor
    return found


def _read_header(path: Path) -> dict[str, StoredTensor]:
    try:
        entries, start, size = _header(path)
        tensors = {name: _tensor(path, name, entry, start) for name, entry in entries.items()}
        _check_places([(*entry["data_offsets"], name) for name, entry in entries.items()], size)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a whole safetensors file: {error}") from error
    return tensors


def _header(path: Path) -> tuple[dict[str, Any], int, int]:
    """Gives the header without its metadata, the place of the first number, and their bytes."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or not 2 <= length <= min(size - 8, _LONGEST_HEADER):
            raise ValueError(f"its header claims {length:,} bytes, of {size:,} in the file")
        text = file.read(length).decode("utf-8")
    header = json.loads(text, object_pairs_hook=_object)
    if not isinstance(header, dict):
        raise ValueError(f"its header is a {type(header).__name__}; expected a JSON object")
    header.pop("__metadata__", None)
    return header, 8 + length, size - 8 - length


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes a JSON object, in which no key may stand twice."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"its header has the key {short(name)} twice")
        found[name] = value
    return found


def _tensor(path: Path, name: str, entry: Any, start: int) -> StoredTensor:
    check_name(name)
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"of {name} it does not say dtype, shape and data_offsets alone")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in _BYTES:
        raise ValueError(f"{name} is of the unknown type {short(kind)}")
    if not _is_counts(shape) or len(shape) > _MOST_AXES:
        raise ValueError(f"{name} has the shape {short(shape)}")
    if not _is_counts(offsets) or len(offsets) != 2:
        raise ValueError(f"{name} has the data_offsets {short(offsets)}")
    length = offsets[1] - offsets[0]
    if prod(shape) * _BYTES[kind] != length:
        raise ValueError(f"{name}, {kind} of the shape {short(shape)}, takes up {length:,} bytes")
    return StoredTensor(path, name, kind, tuple(shape), start + offsets[0])


def _is_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**63 for n in value)


def _check_places(places: list[tuple[int, int, str]], size: int) -> None:
    """Raises a ValueError unless tensors lie one after the other, to the end."""
    end = 0
    for begin, after, name in sorted(places):
        if begin != end:
            raise ValueError(f"{name} begins at byte {begin:,} of the numbers; expected {end:,}")
        end = after
    if end != size:
        raise ValueError(f"its tensors take up {end:,} bytes, and the file has {size:,} for them")


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], dtype: str) -> int:
    """Writes tensors in one type.

    Args:
        path: the file to make.
        tensors: float32 arrays by name.
        dtype: "float32", "float16" or "bfloat16"; numbers are rounded to the nearest, ties to even.

    Returns:
        How many tensors were changed by the rounding.

    Raises:
        ValueError: if a number is too large for the type.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r}: expected {', '.join(DTYPES)}")
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    narrow, changed = {}, 0
    for name, value in tensors.items():
        value = np.ascontiguousarray(value, "float32")
        with np.errstate(over="ignore", under="ignore"):
            narrow[name] = value.astype(kind)
        again = narrow[name].astype("float32")
        if not np.array_equal(np.isfinite(again), np.isfinite(value)):
            raise ValueError(f"{path}: {name} has numbers too large for {dtype}")
        changed += not np.array_equal(again, value, equal_nan=True)
    # transformers refuses a file without this entry.
    save_file(narrow, path, metadata={"format": "pt"})
    os.chmod(path, 0o644)  # its own mode shuts other users out
    return changed
