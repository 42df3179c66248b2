"""Weight files a quarter as large: matrices as int8 with a scale for each row.

A matrix W [R, ...] is stored as round(W / s), int8 from -127 to 127, with s = max|W| / 127 over
each row, float32 [R], so that no number is off by more than s / 2. Vectors stay float32. In the
file, the dataset `0` of a Keras weight file becomes `0.int8` and `0.scale`: a reader that does not
know the form fails, where it would otherwise take the integers for weights.
"""

import io
from pathlib import Path

import h5py
import numpy as np

from keras_bert.atomic import write_file

MARK = "keras_bert_int8"  # attribute of the file
_INT8, _SCALE = ".int8", ".scale"


def is_int8(path: str | Path) -> bool:
    """Whether a file is a weight file in this form; False for what is no HDF5 file too."""
    try:
        with h5py.File(path) as file:
            return MARK in file.attrs
    except OSError:
        return False


def to_int8(source: str | Path, target: str | Path) -> float:
    """Rewrites a Keras weight file in this form.

    Args:
        source: a `.weights.h5` file.
        target: the file to make or replace; it may be the same.

    Returns:
        The largest difference between a weight and what will be read for it, as a share of the
        largest weight of its row: 1/254 at most.

    Raises:
        ValueError: if the file is in this form already, or a weight is not finite.
    """
    if is_int8(source):
        raise ValueError(f"{source} holds int8 weights already")
    content, worst = io.BytesIO(), 0.0
    with h5py.File(source) as old, h5py.File(content, "w") as new:
        new.attrs[MARK] = 1
        for name, value in _datasets(old):
            if not np.isfinite(value).all():
                raise ValueError(f"{source}: {name} has numbers that are not finite")
            if value.ndim < 2:
                new[name] = value.astype("float32")
                continue
            rows = value.reshape(len(value), -1).astype("float64")
            largest = np.abs(rows).max(axis=1)
            scale = (np.where(largest > 0, largest, 1.0) / 127.0).astype("float32")
            found = np.clip(np.rint(rows / scale[:, None]), -127, 127).astype("int8")
            error = np.abs(found * scale[:, None] - rows).max(axis=1)
            worst = max(worst, float((error / (127.0 * scale)).max()))
            new.create_dataset(name + _INT8, data=found.reshape(value.shape), compression="gzip")
            new[name + _SCALE] = scale
    write_file(target, content.getvalue())
    return worst


def from_int8(source: str | Path, target: str | Path) -> None:
    """Writes the Keras weight file, float32, that a file in this form stands for.

    Args:
        source: the file.
        target: the file to make.

    Raises:
        ValueError: if a matrix lacks its scales, or a dataset leads out of the file.
    """
    with h5py.File(source) as old, h5py.File(target, "w") as new:
        for name, value in _datasets(old):
            if name.endswith(_SCALE):
                continue
            if name.endswith(_INT8):
                name = name.removesuffix(_INT8)
                scale = old.get(name + _SCALE)
                if not isinstance(scale, h5py.Dataset) or scale.shape != value.shape[:1]:
                    raise ValueError(f"{source}: {name} lacks a scale for each of its rows")
                value = value * scale[()].reshape([-1] + [1] * (value.ndim - 1))
            new[name] = value.astype("float32")


def _datasets(file: h5py.File) -> list[tuple[str, np.ndarray]]:
    """Names and contents of all datasets of the file; links that lead out are not followed."""
    found = []

    def take(name, item):
        if not isinstance(item, h5py.Dataset):
            return
        if item.external or item.is_virtual:
            raise ValueError(f"{file.filename}: {name} lies in another file")
        found.append((name, item[()]))

    file.visititems(take)
    return found
