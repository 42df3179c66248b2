"""TensorFlow's checkpoint files: checksums, tables that lead astray, mutated files."""

import random
import struct

import numpy as np
import pytest

from keras_bert.checkpoints import google
from keras_bert.checkpoints.source import Source
from keras_bert.checkpoints.tensorflow_files import read_index, read_tensors
from keras_bert.data.rows import masked_checksum
from tests.checkpoints.test_google import contents, numbers, save


def test_the_checksum_is_that_of_leveldb():
    # The check value of RFC 3720's polynomial, 0xE3069283, under the mask of LevelDB's crc32c.h.
    expected = ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert masked_checksum(b"123456789") == expected
    assert masked_checksum(np.frombuffer(b"123456789", np.uint8)) == expected


def varint(number):
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


def block(entries, kind=0):
    """A block of a LevelDB table, with its trailer: (bytes shared, rest of the key, value)."""
    body = b"".join(
        varint(shared) + varint(len(key)) + varint(len(value)) + key + value
        for shared, key, value in entries
    )
    body += struct.pack("<II", 0, 1) + bytes([kind])
    return body + struct.pack("<I", masked_checksum(body))


def table(entries, kind=0, repeat=1):
    data = block(entries, kind)
    handles = [(0, b"z", varint(0) + varint(len(data) - 5))] * repeat
    index = block(handles)
    footer = varint(0) + varint(0) + varint(len(data)) + varint(len(index) - 5)
    return data + index + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


HEADER = (0, b"", field(1, 1))


def entry(name, shape, offset=0, size=None, shard=0, extra=b""):
    size = 4 * int(np.prod(shape, dtype=object)) if size is None else size
    dims = b"".join(field(2, field(1, n)) for n in shape)
    value = field(1, 1) + field(2, dims) + field(3, shard) + field(4, offset) + field(5, size)
    return (0, name, value + extra)


def test_the_tables_made_here_are_tensorflows(tmp_path):
    save(tmp_path / "m", {"b": numbers((2, 3))})
    index = read_index(tmp_path / "m.index")
    (tmp_path / "m.index").write_bytes(table([HEADER, entry(b"b", (2, 3))]))
    assert read_index(tmp_path / "m.index")["b"]._replace(checksum=0) == index["b"]._replace(
        checksum=0
    )


@pytest.mark.parametrize(
    "content, expected",
    [
        (table([HEADER], kind=1), "compressed (kind 1; 1 is Snappy)"),
        (table([(0, b"", field(1, 1) + field(2, 1))]), "big-endian"),
        (table([entry(b"b", (2,))]), "its first entry is not the header"),
        (table([HEADER, entry(b"b", (2,)), entry(b"a", (2,))]), "its names are not in order"),
        (table([HEADER, HEADER]), "its names are not in order"),
        (table([HEADER], repeat=10_000), "its blocks are not in order"),
        (table([HEADER, entry(b"n" * 301, ())]), "an entry does not fit its block"),
        (table([HEADER, entry(b"b", (1,) * 300)]), "has 300 axes"),
        (table([HEADER, entry(b"b", (2,), shard=1)]), "lies in data file 1 of 1"),
        (table([HEADER, entry(b"\xff", (2,))]), "can't decode byte"),
        (table([HEADER, (0, b"b", b"\x0b")]), "Error parsing message"),
        (table([HEADER, (0, b"b", b"\x12\x09\x00")]), "Error parsing message"),
        (table([HEADER, (0, b"b", b"\x08" + b"\xff" * 11)]), "Error parsing message"),
    ],
)
def test_an_index_that_leads_astray(tmp_path, content, expected):
    path = tmp_path / "bert_model.ckpt.index"
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        read_index(path)
    assert expected in str(caught.value) and str(path) in str(caught.value)


@pytest.mark.parametrize(
    "made, expected",
    [
        (entry(b"b", (1 << 62, 1 << 62), size=0), "is said to have 0 bytes"),  # 0 of 64 bits
        (entry(b"b", (1 << 40,)), "has 24 bytes; expected 4398046511104 at least, for b of"),
        (entry(b"b", (2, 3), offset=4), "has 24 bytes; expected 28 at least"),
        (entry(b"b", (2, 3), offset=(1 << 64) - 8), "expected 18446744073709551632 at least"),
        (entry(b"b", (2, 3), size=20), "is said to have 20 bytes, expected 24"),
        (entry(b"b", (2, 3), extra=field(7, b"")), "b is stored as slices"),
        (entry(b"b", (2, 3), extra=field(6, 5)), "b do not fit their checksum"),
    ],
)
def test_a_variable_that_leads_astray(tmp_path, made, expected):
    save(tmp_path / "m", {"b": numbers((2, 3))})
    (tmp_path / "m.index").write_bytes(table([HEADER, made]))
    with pytest.raises(ValueError) as caught:
        index = read_index(tmp_path / "m.index")
        read_tensors("m", index, index, tmp_path.joinpath)
    assert expected in str(caught.value) and str(tmp_path) in str(caught.value)


def test_a_short_file_is_not_read_a_hundred_times(tmp_path):
    save(tmp_path / "m", {"b": numbers((2, 3))})
    entries = [entry(f"{i:03}".encode(), (2, 3)) for i in range(100)]
    (tmp_path / "m.index").write_bytes(table([HEADER, *entries]))
    with pytest.raises(ValueError, match="are said to have 2400 bytes, but the data files have 24"):
        index = read_index(tmp_path / "m.index")
        read_tensors("m", index, index, tmp_path.joinpath)


def mutated(content, rng):
    """One change of a file: bits, bytes, a cut, a hole, something in between."""
    at = rng.randrange(len(content))
    length = rng.choice([1, 4, 16, 200])
    before, after = content[:at], content[at + length :]
    flipped = bytes([content[at] ^ 1 << rng.randrange(8)])
    return rng.choice(
        [
            before + flipped + content[at + 1 :],
            before,
            before + after,
            before + bytes(length) + after,
            before + b"\xff" * length + after,
            before + rng.randbytes(length) + content[at:],
        ]
    )


@pytest.mark.parametrize("count", [250, pytest.param(8_000, marks=pytest.mark.slow)])
def test_mutated_files_are_refused_or_harmless(tmp_path, count):
    google.write(contents("classifier", labels=["a", "b", "c"]), tmp_path)
    source, rng = Source(tmp_path), random.Random(0)
    whole = google.read(source)
    files = {path: path.read_bytes() for path in sorted(tmp_path.iterdir())}
    refused = 0
    for _ in range(count):
        path = rng.choice(list(files))
        path.write_bytes(mutated(files[path], rng))
        try:
            found = google.read(source)
        except (ValueError, FileNotFoundError) as error:
            assert str(tmp_path) in str(error)
            refused += 1
        else:
            # The checksums leave no changed number through.
            for name, value in whole.tensors.items():
                np.testing.assert_array_equal(found.tensors[name], value)
        path.write_bytes(files[path])
    assert refused > count // 2
