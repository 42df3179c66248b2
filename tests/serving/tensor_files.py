"""The files of tools/serving/answer.c, the program compiled, and a run of it."""

import os
import shutil
import struct
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).parents[2] / "tools" / "serving" / "answer.c"
FAILED = 0xFFFFFFFF

# TF_DataType of tensorflow/c/tf_datatype.h; strings are arrays of objects.
DTYPES = {
    1: np.float32,
    2: np.float64,
    3: np.int32,
    4: np.uint8,
    5: np.int16,
    6: np.int8,
    7: np.object_,
    9: np.int64,
    10: np.bool_,
    17: np.uint16,
    19: np.float16,
    22: np.uint32,
    23: np.uint64,
}
NUMBERS = {np.dtype(dtype): number for number, dtype in DTYPES.items()}


class Refusal(Exception):
    """A reply's error record: a TF_Code and a message."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code, self.message = code, message


def pack(requests: list[dict]) -> bytes:
    """Puts requests into bytes; values are arrays, or lists of strings or bytes."""
    parts = []
    for request in requests:
        parts.append(struct.pack("<4sI", b"KBT1", len(request)))
        for name, value in request.items():
            parts.append(pack_tensor(name, value))
    return b"".join(parts)


def pack_tensor(name: str, value) -> bytes:
    array = np.asarray(value) if isinstance(value, np.ndarray) else np.array(value, object)
    encoded = name.encode()
    head = struct.pack("<I", len(encoded)) + encoded
    head += struct.pack("<ii", NUMBERS[array.dtype], array.ndim)
    head += struct.pack(f"<{array.ndim}q", *array.shape)
    if array.dtype != np.object_:
        return head + array.tobytes()
    texts = [t.encode() if isinstance(t, str) else t for t in array.ravel()]
    return head + b"".join(struct.pack("<Q", len(text)) + text for text in texts)


def unpack(content: bytes) -> list:
    """Reads replies: for each a dict of arrays, or a `Refusal`."""
    replies, at = [], 0

    def take(form):
        nonlocal at
        values = struct.unpack_from("<" + form, content, at)
        at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    while at < len(content):
        assert take("4s") == b"KBT1"
        count = take("I")
        if count == FAILED:
            code, size = take("iI")
            replies.append(Refusal(code, take(f"{size}s").decode()))
            continue
        reply = {}
        for _ in range(count):
            name = take(f"{take('I')}s").decode()
            dtype, rank = take("ii")
            shape = struct.unpack_from(f"<{rank}q", content, at)
            at += 8 * rank
            elements = int(np.prod(shape, dtype=np.int64))
            if dtype == 7:
                value = np.empty(elements, object)
                for i in range(elements):
                    size = take("Q")
                    value[i] = take(f"{size}s")
            else:
                value = np.frombuffer(content, DTYPES[dtype], elements, at)
                at += value.nbytes
            reply[name] = value.reshape(shape)
        replies.append(reply)
    return replies


def compiled(folder: Path) -> Path:
    """Compiles the program into a folder; skips where gcc or TensorFlow's headers are missing."""
    tensorflow = Path(find_spec("tensorflow").origin).parent
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    for part in ("include/tensorflow/c/c_api.h", "libtensorflow_cc.so.2"):
        if not (tensorflow / part).exists():
            pytest.skip(f"the installed TensorFlow has no {part}")
    libraries = ["-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"]
    command = ["gcc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{tensorflow}/include"]
    if shutil.which("ld.gold"):
        command.append("-fuse-ld=gold")  # reads the gigabyte of TensorFlow four times as fast
    command += [SOURCE, "-o", folder / "answer", f"-L{tensorflow}", *libraries]
    done = subprocess.run([*command, f"-Wl,-rpath,{tensorflow}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "answer"


def op_libraries() -> list[Path]:
    """The libraries of TensorFlow Text that hold FastBertNormalize and FastWordpiece..."""
    ops = Path(find_spec("tensorflow_text").origin).parent / "python" / "ops"
    return [ops / "_fast_bert_normalizer.so", ops / "_fast_wordpiece_tokenizer.so"]


def ask(
    program: Path,
    folder: Path,
    signature: str,
    requests: list[dict] | bytes,
    scratch: Path,
    libraries: list[Path] | None = None,
) -> tuple[list | None, str]:
    """Has the program answer: (replies, what it said), replies None if its status was not 0."""
    (scratch / "request").write_bytes(requests if isinstance(requests, bytes) else pack(requests))
    reply = scratch / "reply"
    reply.unlink(missing_ok=True)
    libraries = op_libraries() if libraries is None else libraries
    command = [program, folder, signature, scratch / "request", reply, *libraries]
    # No Python of any kind is beside it: an environment with nothing but the log level.
    environment = {"TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2")}
    done = subprocess.run(command, capture_output=True, cwd=scratch, env=environment)
    said = done.stderr.decode(errors="replace")
    assert done.returncode in (0, 1), said
    assert reply.exists() == (done.returncode == 0)
    assert not Path(f"{reply}.part").exists()
    return (unpack(reply.read_bytes()) if done.returncode == 0 else None), said
