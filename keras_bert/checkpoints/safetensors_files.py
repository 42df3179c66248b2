"""safetensors files: read by the library, which checks the header against the file, and written."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from keras_bert.checkpoints.checks import DTYPES, check_name

_FLOATS = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


class StoredTensor(NamedTuple):
    """The location of a tensor whose values are not read yet.

    Attributes:
        path: the file.
        name: in the file.
        kind: safetensors' name of the type, such as "F32" or "I64".
        shape: sizes of the axes; they agree with the number of bytes.
    """

    path: Path
    name: str
    kind: str
    shape: tuple[int, ...]

    @property
    def dtype(self) -> str | None:
        """ "float32", "float16" or "bfloat16"; None for types that weights do not have."""
        return _FLOATS.get(self.kind)

    def load(self) -> np.ndarray:
        """Reads the values as float32, which represents the narrower types exactly.

        Raises:
            ValueError: if they are of another type, or the file has changed.
        """
        if self.dtype is None:
            raise ValueError(f"{self.path}: {self.name} is of the type {self.kind}")
        try:
            with safe_open(self.path, "numpy") as file:
                return file.get_tensor(self.name).astype("float32", copy=False)
        except SafetensorError as error:
            raise _broken(self.path, error) from error


def read_headers(paths: Iterable[Path]) -> dict[str, StoredTensor]:
    """Lists the tensors of some files, without reading their values.

    Raises:
        ValueError: if a file is damaged, or two tensors share a name.
    """
    found: dict[str, StoredTensor] = {}
    for path in paths:
        for tensor in _read_header(path):
            if tensor.name in found:
                other = found[tensor.name].path
                raise ValueError(f"{path}: a tensor {tensor.name} lies in {other} too")
            found[tensor.name] = tensor
    return found


def _read_header(path: Path) -> list[StoredTensor]:
    try:
        with safe_open(path, "numpy") as file:
            tensors = []
            for name in file.keys():
                check_name(name)
                part = file.get_slice(name)
                kind, shape = part.get_dtype(), tuple(part.get_shape())
                tensors.append(StoredTensor(path, name, kind, shape))
            return tensors
    except (SafetensorError, ValueError) as error:
        raise _broken(path, error) from error


def _broken(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path} is not a whole safetensors file: {error!s:.300}")


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], dtype: str) -> int:
    """Writes tensors in a single dtype.

    Args:
        path: the file to make.
        tensors: float32 arrays by name.
        dtype: "float32", "float16" or "bfloat16"; numbers are rounded to the nearest, ties to even.

    Returns:
        The number of tensors changed by rounding.

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
    os.chmod(path, 0o644)  # the library's mode excludes other users
    return changed
