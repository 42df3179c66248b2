"""TensorFlow's checkpoint files, V2: read without TensorFlow's reader, written with it.

Under the prefix `model.ckpt` lie `model.ckpt.index`, a LevelDB table of one entry per variable, and
`model.ckpt.data-00000-of-00001` and so on, which hold the numbers. The reader follows
tensorflow/core/protobuf/tensor_bundle.proto and LevelDB's doc/table_format.md. It compares all
values in a file with the sizes of the files before using them, and checks every checksum, so that a
damaged checkpoint raises an error, without a crash, a huge allocation or wrong values; TensorFlow's
own reader ends the process on some (a failed CHECK in checkpoint_reader.cc).
"""

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_bert.checkpoints.checks import check_name, listed
from keras_bert.data.rows import masked_checksum

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48  # bytes: two handles, padding, the magic number
_TRAILER = 5  # bytes after each block: kind of compression, checksum
# BERT-Large with optimizer slots has an index of 0.1 MB and names of 80 bytes. The limits keep an
# index, whose names are prefix-compressed, from unfolding into gigabytes.
_LARGEST_INDEX = 4 << 20
_LONGEST_NAME = 300
_MOST_AXES = 254  # TensorFlow's limit
_FLOATS = {1: "float32", 14: "bfloat16", 19: "float16"}  # numbers of types.proto
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"  # in checkpoints that are saved by objects
_STEP = re.compile(r"-(\d{1,18})$")


class Variable(NamedTuple):
    """The index entry of one variable.

    Attributes:
        dtype: "float32", "float16", "bfloat16", or "type 9" and the like for all others.
        shape: as the file says, not yet compared with anything.
        shard: last part of the data file's name, such as "data-00000-of-00001".
        offset, size: bytes in that file.
        checksum: masked CRC-32C of these bytes.
        sliced: whether the numbers lie in slices under other keys.
    """

    dtype: str
    shape: tuple[int, ...]
    shard: str
    offset: int
    size: int
    checksum: int
    sliced: bool


def find_prefix(folder: Path) -> str:
    """Finds the checkpoint in a folder.

    Returns:
        What its files' names begin with: "bert_model.ckpt" if it is there; else the one that the
        text file `checkpoint` names, which TensorFlow keeps while training; else the one of the
        greatest step, such as "model.ckpt-1234".

    Raises:
        FileNotFoundError: if there is none; the message lists the folder's files.
    """
    folder = Path(folder)
    found = {p.name.removesuffix(".index") for p in folder.glob("*.index") if p.is_file()}
    if not found:
        raise FileNotFoundError(
            f"{folder} holds no TensorFlow checkpoint; expected bert_model.ckpt.index, or another "
            f"name that ends in .index; found: {listed(folder)}"
        )
    if "bert_model.ckpt" in found:
        return "bert_model.ckpt"
    if (folder / "checkpoint").is_file():
        with open(folder / "checkpoint", encoding="utf-8", errors="replace") as file:
            text = file.read(1 << 16)
        named = re.search(r'^model_checkpoint_path:\s*"([^"]*)"', text, re.MULTILINE)
        last = re.split(r"[/\\]", named[1])[-1] if named else None
        if last in found:
            return last

    steps = {name: _STEP.search(name) for name in found}
    return max(found, key=lambda name: (int(steps[name][1]) if steps[name] else -1, name))


def read_index(path: Path) -> dict[str, Variable]:
    """Reads the variables by name from a checkpoint's file that ends in .index.

    Raises:
        ValueError: if the file is damaged, or of a kind that no BERT has; the message names it.
    """
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto

    if path.stat().st_size > _LARGEST_INDEX:
        raise ValueError(
            f"{path} has {path.stat().st_size} bytes; expected the index of a TensorFlow "
            f"checkpoint, at most {_LARGEST_INDEX}"
        )
    try:
        entries = _table(path.read_bytes())
        key, value = next(entries, (None, b""))
        header = BundleHeaderProto.FromString(value)
        if key != b"" or header.endianness != BundleHeaderProto.LITTLE:
            problem = "its numbers are big-endian" if key == b"" else ""
            raise ValueError(problem or "its first entry is not the header")
        # Keys that begin with a zero byte name slices of a variable that has an entry of its own.
        variables = {
            key.decode("utf-8"): _variable(BundleEntryProto.FromString(value), header.num_shards)
            for key, value in entries
            if not key.startswith(b"\0")
        }
        for name in variables:
            check_name(name)
        return variables
    except (ValueError, DecodeError) as error:
        raise ValueError(
            f"{path} is not the whole index of a TensorFlow checkpoint: {error}"
        ) from None


def read_tensors(
    prefix: str, index: Mapping[str, Variable], names: Iterable[str], find: Callable[[str], Path]
) -> dict[str, np.ndarray]:
    """Reads variables from the data files.

    Args:
        prefix: prefix of the files' names.
        index: all variables, from `read_index`.
        names: which of them to read.
        find: gives the path of a file by its name, or raises FileNotFoundError.

    Returns:
        float32 arrays by name; float16 and bfloat16 become float32 exactly.

    Raises:
        FileNotFoundError: if a data file is missing.
        ValueError: if one is shorter than the index says, its numbers do not fit their checksum,
            or a variable is not of floats.
    """
    wanted = {name: index[name] for name in names}
    shards = sorted({variable.shard for variable in wanted.values()})
    paths = {shard: find(f"{prefix}.{shard}") for shard in shards}
    sizes = {shard: path.stat().st_size for shard, path in paths.items()}
    for name, variable in wanted.items():
        _check(name, variable, paths[variable.shard])
    for name, variable in index.items():  # those that are not read too: a cut file is refused
        end = variable.offset + variable.size
        if variable.shard in paths and end > sizes[variable.shard]:
            raise ValueError(
                f"{paths[variable.shard]} has {sizes[variable.shard]} bytes; expected {end} at "
                f"least, for {name} of {variable.dtype}{list(variable.shape)}"
            )
    # So that variables that lie over each other do not make more of the files than is in them.
    total = sum(variable.size for variable in wanted.values())
    if total > sum(sizes.values()):
        raise ValueError(
            f"{paths[shards[0]]}: {len(wanted)} variables are said to have {total} bytes, but "
            f"the data files have {sum(sizes.values())}"
        )
    return {name: _read(name, v, paths[v.shard]) for name, v in wanted.items()}


def write_tensors(prefix: Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes float32 variables, in one data file; the prefix holds the folder too."""
    import tensorflow as tf

    names = sorted(tensors)
    with tf.device("CPU:0"):
        tf.raw_ops.SaveV2(
            prefix=str(prefix),
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[tf.constant(tensors[name], tf.float32) for name in names],
        )


def _table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Entries of a LevelDB table in the order of their keys."""
    footer = data[-_FOOTER:]
    if len(data) < _FOOTER or struct.unpack("<Q", footer[40:])[0] != _MAGIC:
        raise ValueError(f"its {len(data)} bytes do not end in the mark of such a table")
    numbers, position = [], 0
    for _ in range(4):
        number, position = _varint(footer, position)
        numbers.append(number)
    last, done = None, 0
    for _, handle in _entries(_block(data, *numbers[2:])):
        offset, position = _varint(handle, 0)
        size, _ = _varint(handle, position)
        if offset < done:  # else a short file could ask for the same block a million times
            raise ValueError("its blocks are not in order")
        done = offset + size
        for key, value in _entries(_block(data, offset, size)):
            if last is not None and key <= last:
                raise ValueError("its names are not in order")
            yield key, value
            last = key


def _block(data: bytes, offset: int, size: int) -> bytes:
    inside = offset + size + _TRAILER <= len(data) - _FOOTER
    content = data[offset : offset + size + 1]
    checksum = struct.unpack_from("<I", data, offset + size + 1)[0] if inside else 0
    if not inside or masked_checksum(content) != checksum:
        problem = "has another checksum" if inside else f"lies outside of its {len(data)}"
        raise ValueError(f"a block of {size} bytes at {offset} {problem}")
    if content[-1]:
        raise ValueError(
            f"its blocks are compressed (kind {content[-1]}; 1 is Snappy); expected an index as "
            "TensorFlow writes it, uncompressed"
        )
    return content[:-1]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Entries of a block: each key repeats so many bytes of the one before."""
    restarts = struct.unpack_from("<I", block, len(block) - 4)[0] if len(block) >= 4 else -1
    end = len(block) - 4 * (restarts + 1)
    if restarts < 0 or end < 0:
        raise ValueError("a block is too short")
    key, position = b"", 0
    while position < end:
        shared, position = _varint(block, position)
        added, position = _varint(block, position)
        length, position = _varint(block, position)
        if shared > len(key) or position + added + length > end or shared + added > _LONGEST_NAME:
            raise ValueError("an entry does not fit its block")
        key = key[:shared] + block[position : position + added]
        position += added
        yield key, block[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A number of up to 64 bits, seven a byte, and the position after it."""
    number = 0
    for i in range(10):
        if position + i >= len(data):
            break
        byte = data[position + i]
        number |= (byte & 127) << 7 * i
        if byte < 128:
            return number, position + i + 1
    raise ValueError("a number has no end")


def _variable(entry, shards: int) -> Variable:
    shape = tuple(dim.size % (1 << 64) for dim in entry.shape.dim)
    if not entry.dtype or not 0 <= entry.shard_id < shards or len(shape) > _MOST_AXES:
        raise ValueError(
            f"a variable of type {entry.dtype} has {len(shape)} axes and lies in data file "
            f"{entry.shard_id} of {shards}"
        )
    return Variable(
        _FLOATS.get(entry.dtype, f"type {entry.dtype}"),
        shape,
        f"data-{entry.shard_id:05d}-of-{shards:05d}",
        entry.offset % (1 << 64),
        entry.size % (1 << 64),
        entry.crc32c,
        sliced=bool(entry.slices),
    )


def _check(name: str, variable: Variable, path: Path) -> None:
    if variable.sliced or variable.dtype not in _FLOATS.values():
        kind = "slices" if variable.sliced else variable.dtype
        raise ValueError(
            f"{path}: {name} is stored as {kind}; expected whole float32, float16 or bfloat16"
        )
    expected = 4 if variable.dtype == "float32" else 2
    for axis in variable.shape:
        expected *= axis
    if variable.size != expected:
        raise ValueError(
            f"{path}: {name} of {variable.dtype}{list(variable.shape)} is said to have "
            f"{variable.size} bytes, expected {expected}"
        )


def _read(name: str, variable: Variable, path: Path) -> np.ndarray:
    data = np.fromfile(path, np.uint8, variable.size, offset=variable.offset)
    if data.size != variable.size or masked_checksum(data) != variable.checksum:
        raise ValueError(f"{path} is damaged: the numbers of {name} do not fit their checksum")
    if variable.dtype == "bfloat16":  # the upper half of a float32
        value = (data.view("<u2").astype(np.uint32) << 16).view(np.float32)
    else:
        value = data.view("<f4" if variable.dtype == "float32" else "<f2")
    return value.astype(np.float32, copy=False).reshape(variable.shape)
