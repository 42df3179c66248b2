"""Puts a kernel into the program that XLA compiles, on TensorFlow and on JAX."""

import functools
import string
import struct
from pathlib import Path
from typing import NamedTuple

import keras

FOLDER = Path(__file__).parent / "ir"
TARGET = "__gpu$xla.gpu.triton"  # XLA's own name for a call whose text is Triton's IR
FLOATS = {"bfloat16": "bf16"}  # types in which the kernels were tried, as MLIR names them


class Kernel(NamedTuple):
    """A file of IR and how it is run.

    Attributes:
        file: name in `ir`, without the ending.
        function: name of the function in it.
        warps: 32 threads each, that work on one program.
        stages: turns of a loop whose loads are under way at once.
    """

    file: str
    function: str
    warps: int
    stages: int = 2


def run(kernel: Kernel, inputs: list, outputs: list, numbers: dict, grid: tuple):
    """Runs a kernel inside of a function that XLA compiles for a GPU.

    Args:
        kernel: which.
        inputs: tensors, of which the first has the float type of the kernel.
        outputs: (shape, dtype) of each result.
        numbers: the kernel's constants, int or float, by name.
        grid: programs along three axes.

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
    """A file's text with its constants in place."""
    template = string.Template((FOLDER / f"{file}.mlir").read_text("utf-8"))
    return template.substitute({name: _literal(v) for name, v in numbers}, float=float_type)


def _literal(number: int | float) -> str:
    if isinstance(number, float):
        return f"0x{struct.unpack('<I', struct.pack('<f', number))[0]:08X}"  # its very bits
    return str(number - 2**32 if number >= 2**31 else number)  # MLIR reads these as signed


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\0A")


def dropout_numbers(rate: float) -> dict:
    """Constants of dropout by the hash of `keras_bert.layers.dropout`."""
    return {"threshold": round(rate * 2**32), "factor": 1 / (1 - rate)}
