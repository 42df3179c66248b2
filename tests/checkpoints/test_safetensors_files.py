"""safetensors files, whole and in shards, and PyTorch's files by way of them."""

import importlib.util
import json
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert.checkpoints import huggingface, torch_file
from keras_bert.checkpoints.safetensors_files import read_headers, write_tensors
from keras_bert.checkpoints.source import Source

from .huggingface_folders import make_folder

NEEDS_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")


def whole(path: Path) -> bytes:
    save_file({"a": np.ones((3, 5), "float32"), "b": np.arange(7)}, path, {"format": "pt"})
    return path.read_bytes()


def with_header(content: bytes, header: dict | list | str) -> bytes:
    """A file with another header before the same numbers."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    length = int.from_bytes(content[:8], "little")
    return len(text).to_bytes(8, "little") + text + content[8 + length :]


def entry(shape=(3, 5), offsets=(56, 116), kind="F32"):
    return {"dtype": kind, "shape": shape, "data_offsets": offsets}


B = {"b": entry([7], [0, 56], "I64")}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_every_number_of_a_type_comes_back(dtype, tmp_path):
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    # All 65,536 bit patterns of the narrow types, infinities and NaNs included.
    bits = np.arange(65536, dtype="uint16")
    narrow = bits.view(kind) if dtype != "float32" else bits.astype("float32") * np.float32(np.pi)
    save_file({"x": narrow.reshape(256, 256)}, tmp_path / "a.safetensors")
    stored = read_headers([tmp_path / "a.safetensors"])["x"]
    values = stored.load()
    assert stored.dtype == dtype and values.dtype == "float32" and values.shape == (256, 256)
    np.testing.assert_array_equal(values, narrow.astype("float32").reshape(256, 256))
    finite = {"x": np.where(np.isfinite(values), values, 0)}
    assert write_tensors(tmp_path / "b.safetensors", finite, dtype) == 0
    again = read_headers([tmp_path / "b.safetensors"])["x"]
    assert again.dtype == dtype
    np.testing.assert_array_equal(again.load(), finite["x"])


def test_rounding_is_to_the_nearest_and_counted(tmp_path):
    tensors = {"x": np.array([1 + 2**-9, 1 + 3 * 2**-9], "float32"), "y": np.ones(3, "float32")}
    assert write_tensors(tmp_path / "a.safetensors", tensors, "bfloat16") == 1
    found = read_headers([tmp_path / "a.safetensors"])["x"].load()
    np.testing.assert_array_equal(found, np.array([1, 1 + 2**-7], "float32"))  # ties: 2^-8 apart
    with pytest.raises(ValueError, match="x has numbers too large for float16"):
        write_tensors(tmp_path / "b.safetensors", {"x": np.array([70000.0])}, "float16")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ([1], "invalid JSON in header: invalid type: sequence"),
        ('{"', "EOF while parsing"),
        ("[" * 100_000, "invalid JSON"),
        ('{"b":%s' % ('{"b":' * 100_000), "invalid JSON"),
        ('{"a": {"dtype": "F32"}, "a": {}}', "missing field `shape`"),
        (B | {"a": [1]}, "invalid JSON"),
        (B | {"a": entry(kind="F128")}, "unknown variant `F128`"),
        (B | {"a": entry(kind=["F32"])}, "invalid type: sequence"),
        (B | {"a": entry([3, -5])}, "invalid value: integer `-5`"),
        (B | {"a": entry([15.0])}, "invalid type: floating point `15.0`"),
        (B | {"a": entry([10**9, 10**9, 10**9])}, "overflow computing buffer size"),
        (B | {"a": entry([10**6, 10**6])}, "invalid shape, data type, or offset for tensor"),
        (B | {"a": entry(offsets=[56, 112])}, "invalid shape, data type, or offset for tensor"),
        (B | {"a": entry(offsets=[116, 56])}, "invalid"),
        (B | {"a": entry(offsets=[56, None])}, "invalid type: null"),
        (B | {"a": entry(offsets=[60, 120])}, "invalid offset for tensor `a`"),
        (B | {"a": entry(offsets=[52, 112])}, "invalid offset for tensor `a`"),
        (B | {"a\x1b[2J": entry()}, "expected printable characters"),
        (B, "file not fully covered"),
    ],
)
def test_headers_that_lie(header, message, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(with_header(whole(path), header))
    with pytest.raises(ValueError, match=message) as error:
        read_headers([path])
    assert str(error.value).startswith(f"{path} is not a whole safetensors file: ")


@pytest.mark.parametrize("length", [0, 7, 8, 40, -1])
def test_cut_off(length, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(whole(path)[:length])
    with pytest.raises(ValueError, match="model.safetensors is not a whole safetensors file"):
        read_headers([path])


def test_a_header_of_exabytes(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"\xff" * 7 + b"\x7f" + whole(path)[8:])
    with pytest.raises(ValueError, match="is not a whole safetensors file: .*header too large"):
        read_headers([path])


# Shards.


def split(folder: Path, pattern: str = "model-{}.safetensors") -> dict[str, str]:
    """Cuts model.safetensors into two shards; gives the index's weight_map."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names, files = sorted(tensors), {}
    for i in range(2):
        file = pattern.format(i)
        save_file({name: tensors[name] for name in names[i::2]}, folder / file)
        files |= dict.fromkeys(names[i::2], file)
    return files


def index(folder: Path, files) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))


def test_shards(tmp_path):
    folder = make_folder(tmp_path / "hf")
    wanted = huggingface.read(Source(folder)).tensors
    files = split(folder)
    index(folder, files)
    found = huggingface.read(Source(folder)).tensors
    assert all((found[name] == value).all() for name, value in wanted.items())
    index(folder, files | {"bert.lost": "model-0.safetensors"})
    with pytest.raises(
        ValueError, match="lists 1 tensors that are in none of its files: bert.lost"
    ):
        huggingface.read(Source(folder))
    index(folder, files)
    (folder / "model-1.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="has no model-1.safetensors; found: config.json"):
        huggingface.read(Source(folder))
    one = load_file(folder / "model-0.safetensors")
    save_file(one, folder / "model-1.safetensors")
    with pytest.raises(ValueError, match="lies in .*model-0.safetensors too"):
        huggingface.read(Source(folder))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "has no weight_map"),
        (["a"], "has no weight_map"),
        ({"x": "../../etc/passwd"}, "leads out of the checkpoint"),
        ({"x": "/etc/passwd"}, "leads out of the checkpoint"),
        ({"x": 3}, "has no weight_map"),
        ({"x": "a\0b"}, "is no name of a file"),
        ({"x": "\ud800"}, "is no name of a file"),
        ({"x": "x" * 5000}, "is no name of a file"),
    ],
)
def test_an_index_that_lies(files, message, tmp_path):
    folder = make_folder(tmp_path / "hf")
    index(folder, files)
    with pytest.raises(ValueError, match=message):
        huggingface.read(Source(folder))


def test_no_weights(tmp_path):
    folder = make_folder(tmp_path / "hf")
    (folder / "model.safetensors").unlink()
    message = "no model.safetensors; found: config.json; expected model.safetensors or pytorch_"
    with pytest.raises(FileNotFoundError, match=message):
        huggingface.read(Source(folder))


# PyTorch's files.


class Evil:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def evil_files(folder: Path, target: Path) -> None:
    """Writes one pickle as PyTorch's files of today and of 2019 hold it, and alone."""
    state = pickle.dumps({"bert.pooler.dense.bias": Evil(target)}, 2)
    with zipfile.ZipFile(folder / "zip.bin", "w") as file:
        file.writestr("archive/data.pkl", state)
        file.writestr("archive/version", "3\n")
        file.writestr("archive/byteorder", "little")
    legacy = [0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True}]
    (folder / "old.bin").write_bytes(b"".join(pickle.dumps(x, 2) for x in legacy) + state)
    (folder / "plain.bin").write_bytes(state)


@pytest.mark.interop
@NEEDS_TORCH
@pytest.mark.parametrize(
    "name",
    [
        "zip.bin",
        *(pytest.param(f"{name}.bin", marks=pytest.mark.slow) for name in ("old", "plain")),
    ],
)
def test_a_pickle_that_would_act_is_refused(name, tmp_path):
    target = tmp_path / "made"
    pickle.loads(pickle.dumps(Evil(target))).close()
    assert target.exists()  # the trap works
    target.unlink()
    evil_files(tmp_path, target)
    with pytest.raises(
        ValueError, match=f"{name} can't be read .*Unpickling.*: Unsupported global"
    ):
        torch_file.torch_to_safetensors(tmp_path / name, tmp_path / "out")
    assert not target.exists() and not (tmp_path / "out").exists()


def test_without_torch_nothing_is_unpickled(tmp_path, monkeypatch):
    folder = make_folder(tmp_path / "hf")
    (folder / "model.safetensors").unlink()
    target = tmp_path / "made"
    evil_files(tmp_path, target)
    (tmp_path / "plain.bin").rename(folder / "pytorch_model.bin")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        ValueError, match="pytorch_model.bin is a pickle.*pip install torch.*safe_ser"
    ):
        huggingface.read(Source(folder))
    assert not target.exists()


MAKE = """
import json, sys, torch
from safetensors.torch import load_file
folder = sys.argv[1]
state = load_file(folder + "/model.safetensors")
state["cls.predictions.decoder.weight"] = state["bert.embeddings.word_embeddings.weight"]
state["cls.predictions.decoder.bias"] = state["cls.predictions.bias"]
state["bert.embeddings.position_ids"] = torch.arange(13)[None]
state["bert.pooler.dense.weight"] = state["bert.pooler.dense.weight"].T.contiguous().T
torch.save(state, folder + "/pytorch_model.bin")
torch.save(state, folder + "/old.bin", _use_new_zipfile_serialization=False)
halves = {n: v.bfloat16() if v.is_floating_point() else v for n, v in state.items()}
names = sorted(halves)
for i in range(2):
    torch.save({n: halves[n] for n in names[i::2]}, folder + f"/half-{i}.bin")
listed = {name: f"half-{i % 2}.bin" for i, name in enumerate(names)}
json.dump({"weight_map": listed}, open(folder + "/halves.json", "w"))
torch.save([1], folder + "/list.bin")
torch.save({"a": 1}, folder + "/number.bin")
torch.save({"a": torch.zeros(1).expand(10**6, 10**6)}, folder + "/huge.bin")
torch.save({"a": torch.eye(3).to_sparse()}, folder + "/sparse.bin")
"""


@pytest.mark.interop
@NEEDS_TORCH
@pytest.mark.slow
def test_files_of_pytorch(tmp_path):
    folder = make_folder(tmp_path / "hf")
    wanted = huggingface.read(Source(folder))
    subprocess.run([sys.executable, "-c", MAKE, str(folder)], check=True)
    (folder / "model.safetensors").unlink()
    for name in ("pytorch_model.bin", "old.bin"):
        (folder / name).replace(folder / "pytorch_model.bin")
        found = huggingface.read(Source(folder))
        assert found.left_over == [] and found.tensors.keys() == wanted.tensors.keys()
        assert all((found.tensors[n] == value).all() for n, value in wanted.tensors.items())
    (folder / "pytorch_model.bin").unlink()
    (folder / "halves.json").rename(folder / "pytorch_model.bin.index.json")
    found = huggingface.read(Source(folder))
    assert found.dtype == "bfloat16"
    for name, value in wanted.tensors.items():
        narrow = value.astype(ml_dtypes.bfloat16).astype("float32")
        np.testing.assert_array_equal(found.tensors[name], narrow)
    for name, message in {
        "list.bin": "it holds a list; expected a dict",
        "number.bin": "under 'a' it holds a int, no tensor",
        "huge.bin": "a claims 4,000,000,000,000 bytes",
        "sparse.bin": "a is a tensor of an unusual kind: torch.sparse_coo",
    }.items():
        with pytest.raises(ValueError, match=f"{name} can't be read as .*({message})"):
            torch_file.torch_to_safetensors(folder / name, tmp_path / "out")
    (folder / "half-0.bin").write_bytes((folder / "half-0.bin").read_bytes()[:-500])
    with pytest.raises(ValueError, match="half-0.bin can't be read as a PyTorch file"):
        huggingface.read(Source(folder))
