"""Keras's .weights.h5 files, read as untrusted data.

Layout (keras/src/saving/saving_lib.py, H5IOStore): one dataset for each weight, its numbers in one
piece, under the path of attributes that leads to it: "layers/dense/vars/0". A model's layers are
named by class, and numbered from the second of a class on: dense, dense_1.

h5py reads whatever HDF5 allows, in C. What Keras never writes is refused before any number is read:
links, numbers in other files or made up of other datasets, chunks and compression, other types.
Listing a damaged group can crash HDF5 1.14.6 (it frees a table of links that it has half filled);
looking one name up did not, in some ten thousand damaged files. So groups are listed last, when all
names that must be there were found.
"""

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import product
from math import prod
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from keras_bert.checkpoints.checks import shown
from keras_bert.checkpoints.shapes import few

_TYPES = {"float32": "<f4", "float16": "<f2", "bfloat16": "<u2"}
_LAYOUTS = (h5py.h5d.CONTIGUOUS, h5py.h5d.COMPACT)
# Marks a dataset that stands in for a weight that there was none of.
_NEW = "keras_bert_new"
# Parts of names that tell no weight of a layer: the optimizer's, and the state of random numbers.
_STATE = {"optimizer", "seed_generator"}


class WeightFile(NamedTuple):
    """The contents of a file.

    Attributes:
        tensors: float32 arrays by the names that were asked for; there is none for a name that the
            file lacks, or that `overwrite` marked as new.
        dtypes: the types of these in the file, of "float32", "float16" and "bfloat16".
        others: names of the other datasets, but for optimizers' and states of random numbers.
    """

    tensors: dict[str, np.ndarray]
    dtypes: set[str]
    others: list[str]


def read_weights(
    path: Path, shapes: Mapping[str, tuple[int, ...]], optional: Collection[str] = ()
) -> WeightFile:
    """Reads the tensors with some names; checks all of them before it reads a number.

    Names are Keras's of today; "_0" may stand for the first of a class. Older spellings are found
    as well. The `optional` names may be missing.

    Raises:
        ValueError: if the file is damaged or no such file, a name is missing, or a tensor has
            another shape or type.
    """
    with _opened(path) as file:
        return _read(path, file, shapes, optional)


def check_whole(path: Path) -> dict[str, tuple[int, ...]]:
    """Gives the shapes of all datasets of a file that others will read, when each may be read.

    All numbers lie in the file, in one piece, and nothing is a link. Keras refuses links, external
    and virtual datasets itself, but unpacks up to a thousand times the file's size.

    Raises:
        ValueError: if the file is damaged or no such file, or holds anything else.
    """
    with _opened(path) as file:
        return _shapes(file, path.stat().st_size)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    """A file of Keras to read; whatever is wrong with it is a ValueError that names it."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except _Fault as fault:
        raise ValueError(f"{path} {fault}") from None
    # h5py passes on whatever HDF5 trips over, and trips over names and types itself: OSError,
    # KeyError, RuntimeError, TypeError, AttributeError, UnicodeDecodeError, NotImplementedError.
    except Exception as error:
        raise ValueError(f"{path} is not a whole .weights.h5 file: {error!s:.300}") from error


class _Fault(Exception):
    """A fault of a file, as the rest of a sentence that begins with its path."""


def _read(path, file, shapes, optional) -> WeightFile:
    size, found, faults, used = path.stat().st_size, {}, [], set()
    for name, shape in shapes.items():
        try:
            spelling, dataset = _find(file, name)
            if dataset is None:
                if name not in optional:
                    faults.append(f"{_spellings(name)[0]} is missing")
                continue
            used.add(spelling)
            dtype = _check(dataset, spelling, shape, size)
            if _NEW not in dataset.attrs:
                found[name] = dataset, dtype
        except _Fault as fault:
            faults.append(str(fault))
    if faults:
        raise _Fault(f"does not fit its configuration: {few(faults, 5)}")
    tensors = {name: _load(dataset, dtype) for name, (dataset, dtype) in found.items()}
    others = [name for name in _list(file) if name not in used]
    others = [name for name in others if not _STATE.intersection(name.split("/"))]
    return WeightFile(tensors, {dtype for _, dtype in found.values()}, sorted(others))


def _spellings(name: str) -> list[str]:
    """A name as Keras 3 writes it, then as it might have in older versions.

    Those had the layers of Keras 2.13 in another group (see `H5IOStore.get`), and came to the parts
    of an attention layer by their private names.
    """
    name = name.replace("_0/", "/")
    private = re.sub(r"/(query|key|value|output)_dense/", r"/_\1_dense/", name)
    roots = ("layers/", "_layer_checkpoint_dependencies/")
    names = [n.replace("layers/", root, 1) for root, n in product(roots, (name, private))]
    return list(dict.fromkeys(names))


def _find(file: h5py.File, name: str) -> tuple[str, h5py.Dataset | None]:
    for spelling in _spellings(name):
        item = file
        for step in spelling.split("/"):
            item = _child(item, step, spelling)
            if item is None:
                break
        else:
            return spelling, item
    return name, None


def _child(group: h5py.Group, step: str, name: str):
    """The member of a group by name, without following links (`in` would open other files)."""
    if not isinstance(group, h5py.Group):
        raise _Fault(f"{name} lies in something that is no group")
    links, key = group.id.links, step.encode()
    if not links.exists(key):
        return None
    if links.get_info(key).type != h5py.h5l.TYPE_HARD:
        raise _Fault(f"{name} is a link to somewhere else")
    return group[step]


def _check(dataset, name: str, shape: tuple[int, ...], size: int) -> str:
    """Returns the type of a dataset of floats that is contiguous in the file."""
    _check_place(dataset, name, size)
    dtype = _dtype(dataset.id.get_type())
    if dataset.shape != shape:
        raise _Fault(f"{name} has shape {dataset.shape}, expected {shape}")
    if dtype is None:
        raise _Fault(f"{name} is of type {dataset.dtype}, expected {', '.join(_TYPES)}")
    return dtype


def _check_place(dataset: h5py.Dataset, name: str, size: int) -> int:
    """Returns the number of bytes of a dataset that is contiguous in a file of `size` bytes."""
    if not isinstance(dataset, h5py.Dataset) or dataset.shape is None:
        raise _Fault(f"{name} is no dataset")
    plan = dataset.id.get_create_plist()
    if plan.get_layout() not in _LAYOUTS or plan.get_external_count() or plan.get_nfilters():
        raise _Fault(f"{name} is in chunks, compressed or outside of the file")
    need, there = prod(dataset.shape) * dataset.dtype.itemsize, dataset.id.get_storage_size()
    begin = dataset.id.get_offset() or 0  # None for a dataset in its own header
    if there != need or begin + need > size:
        raise _Fault(
            f"{name} needs {need:,} bytes; {there:,} are said to lie at byte {begin:,} of {size:,}"
        )
    return need


def _shapes(file: h5py.File, size: int) -> dict[str, tuple[int, ...]]:
    shapes, claimed = {}, 0
    for name in _list(file):
        *parents, last = name.split("/")
        dataset = _child(file["/".join(parents)] if parents else file, last, name)
        claimed += _check_place(dataset, name, size)
        if dataset.dtype.kind not in "biufV" or dataset.dtype.hasobject or dataset.dtype.names:
            raise _Fault(f"{name} is of type {dataset.dtype}, expected numbers")
        shapes[name] = dataset.shape
        if claimed > size:  # datasets may lie over each other
            raise _Fault(f"has {size:,} bytes and, up to {name}, claims {claimed:,}")
    return shapes


def _dtype(kind: h5py.h5t.TypeID) -> str | None:
    if kind.equal(h5py.h5t.IEEE_F32LE):
        return "float32"
    if kind.equal(h5py.h5t.IEEE_F16LE):
        return "float16"
    # Keras gives h5py the bare two bytes of a bfloat16.
    if kind.get_class() == h5py.h5t.OPAQUE and kind.get_size() == 2:
        return "bfloat16"
    return None


def _load(dataset: h5py.Dataset, dtype: str) -> np.ndarray:
    values = np.empty(dataset.shape, _TYPES[dtype])
    # In the file's own type: nothing for HDF5 to convert.
    dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, values, dataset.id.get_type())
    if dtype == "bfloat16":
        return (values.astype("<u4") << 16).view("<f4")
    return values.astype("float32", copy=False)


def _list(file: h5py.File) -> Iterator[str]:
    """Names of all datasets, and of what leads elsewhere; no link is followed."""
    waiting, seen = [("", file)], set()
    while waiting:
        prefix, group = waiting.pop()
        place = h5py.h5o.get_info(group.id).addr
        if place in seen:  # groups may hold each other
            continue
        seen.add(place)
        for key in group.id:
            name = prefix + shown(key.decode(errors="backslashreplace"))
            hard = group.id.links.get_info(key).type == h5py.h5l.TYPE_HARD
            item = group[key] if hard else None
            if isinstance(item, h5py.Group):
                waiting.append((f"{name}/", item))
            else:
                yield name


def overwrite(path: Path, tensors: Mapping[str, np.ndarray], new: Collection[str] = ()) -> None:
    """Overwrites all weights of the layers in a file that Keras wrote.

    Names are those that `read_weights` takes; the numbers of the `new` ones mean nothing, and it is
    to pass over them.

    Raises:
        ValueError: if the names or shapes are not those of the file.
    """
    with h5py.File(path, "r+") as file:
        names = {_spellings(name)[0]: name for name in tensors}
        there = {n: file[n].shape for n in _list(file) if n.startswith("layers/")}
        shapes = {spelling: tensors[name].shape for spelling, name in names.items()}
        if there != shapes:
            raise ValueError(f"{path}: expected {shapes!r:.500}, found {there!r:.500}")
        for spelling, name in names.items():
            file[spelling][...] = tensors[name]
            if name in new:
                file[spelling].attrs[_NEW] = True
