"""Calls a kernel from a program that XLA compiles, on TensorFlow and on JAX."""

import functools
import string
import struct
from pathlib import Path
from typing import NamedTuple

import keras

FOLDER = Path(__file__).parent / "ir"
TARGET = "__gpu$xla.gpu.triton"  # XLA's target for a custom call that contains Triton IR
FLOATS = {"bfloat16": "bf16"}  # dtypes for which the kernels were tested, with MLIR's names


class Kernel(NamedTuple):
    """A file of IR and its launch parameters.

    Attributes:
        file: name in `ir`, without the extension.
        function: name of the function in the file.
        warps: number of warps (32 threads each) per program.
        stages: number of software pipelining stages.
    """

    file: str
    function: str
    warps: int
    stages: int = 2


def run(kernel: Kernel, inputs: list, outputs: list, numbers: dict, grid: tuple):
    """Runs a kernel inside a function that XLA compiles for a GPU.

    Args:
        kernel: the kernel.
        inputs: tensors; the first has the kernel's float dtype.
        outputs: (shape, dtype) of each result.
        numbers: the kernel's constants, int or float, by name.
        grid: number of programs along three axes.

    Returns:
        The list of results.
    """
    dtype = keras.backend.standardize_dtype(inputs[0].dtype)
    call = {
        "name": kernel.function,
        "ir": _ir(kernel.file, FLOATS[dtype], tuple(sorted(numbers.items()))),
        "num_stages": kernel.stages,
        "num_warps": kernel.warps,
        **dict(zip(("grid_x", "grid_y", "grid_z"), grid, strict=True)),
    }
    if keras.config.backend() == "jax":
        return _run_on_jax(inputs, outputs, call)
    return _run_on_tensorflow(inputs, outputs, call)


def _run_on_tensorflow(inputs, outputs, call):
    import tensorflow as tf
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    attributes = [
        f'{name} = "{_escaped(value)}"' if isinstance(value, str) else f"{name} = {value} : i32"
        for name, value in call.items()
    ]
    return gen_xla_ops.xla_custom_call_v2(
        operands=inputs,
        call_target_name=TARGET,
        backend_config="{" + ", ".join([*attributes, "debug = false"]) + "}",
        has_side_effect=False,
        result_dtypes=[tf.as_dtype(dtype) for _, dtype in outputs],
        result_shapes=[tf.TensorShape(shape) for shape, _ in outputs],
    )


def _run_on_jax(inputs, outputs, call):
    import jax
    import numpy as np

    attributes = {name: v if isinstance(v, str) else np.int32(v) for name, v in call.items()}
    results = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in outputs]
    return jax.ffi.ffi_call(TARGET, results)(*inputs, **attributes, debug=False)


@functools.lru_cache(maxsize=64)
def _ir(file: str, float_type: str, numbers: tuple) -> str:
    """The text of a file with its constants substituted."""
    template = string.Template((FOLDER / f"{file}.mlir").read_text("utf-8"))
    return template.substitute({name: _literal(v) for name, v in numbers}, float=float_type)


def _literal(number: int | float) -> str:
    if isinstance(number, float):
        return f"0x{struct.unpack('<I', struct.pack('<f', number))[0]:08X}"  # bitwise exact
    return str(number - 2**32 if number >= 2**31 else number)  # MLIR reads these as signed


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\0A")


def dropout_numbers(rate: float) -> dict:
    """The constants of the dropout hash of `keras_bert.layers.dropout`."""
    return {"threshold": round(rate * 2**32), "factor": 1 / (1 - rate)}
