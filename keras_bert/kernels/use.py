"""Where the kernels are used: in functions that XLA compiles for a GPU that passed a test."""

import contextlib
import functools
import hashlib
import importlib.metadata
import logging
import threading
from pathlib import Path

import keras
import numpy as np
from keras import ops

from keras_bert import compile_cache
from keras_bert.kernels.fused_attention import attend
from keras_bert.kernels.gelu import add_and_gelu
from keras_bert.kernels.residual_norm import add_and_normalize

logger = logging.getLogger("keras_bert")
_state = threading.local()
MOST_OFF = 0.02  # relative error due to bfloat16
GPU = "GPU:0"  # of the test
CAPABILITY = (8, 0)  # compute capability of Ampere, the first with bfloat16


@contextlib.contextmanager
def scope(used: bool):
    """A scope whose layers may use the kernels; layers called outside do not.

    Args:
        used: whether they may.
    """
    before = in_use()
    _state.used = used
    try:
        yield
    finally:
        _state.used = before


def in_use() -> bool:
    """Whether layers called here may use the kernels."""
    return getattr(_state, "used", False)


def chosen(wanted: bool | str, possible: bool) -> bool:
    """Decides whether a model uses the kernels.

    Args:
        wanted: "auto", True or False.
        possible: whether XLA compiles the model's steps for GPUs.

    Returns:
        True or False.

    Raises:
        ValueError: if `wanted` is True and they cannot be used.
    """
    used = bool(wanted) and possible and ready()
    if wanted is True and not used:
        reason = "they do not work here" if possible else "XLA does not compile for NVIDIA GPUs"
        raise ValueError(f"use_kernels=True: {reason}")
    return used


@functools.cache
def ready() -> bool:
    """Whether the kernels work here, tested once on the first GPU.

    Another version of XLA may reject the IR or compile it differently; layers are then computed
    without the kernels, which is slower. A passed test is noted beside the compiled programs.
    """
    if not _gpu():
        return False
    if compile_cache.noted(passed := f"kernels-{_digest()}"):
        return True
    try:
        off = largest_error()
    except Exception as error:  # any error of the compiler
        reason = f"{type(error).__name__}: {error}"
    else:
        if off < MOST_OFF:
            compile_cache.note(passed)
            return True
        reason = f"their results are off by {off:.3g}"
    logger.warning("training continues without the GPU kernels: %.400s", reason)
    return False


def _digest() -> str:
    """A checksum of all files of this folder, and of the XLA that compiles them, if JAX's.

    That of TensorFlow is in the name of the folder of compiled programs.
    """
    found = hashlib.blake2b(digest_size=12)
    if keras.config.backend() == "jax":
        found.update(f"jaxlib {importlib.metadata.version('jaxlib')}".encode())
    for path in sorted(Path(__file__).parent.rglob("*.*")):
        if path.suffix in (".py", ".mlir"):
            found.update(path.read_bytes())
    return found.hexdigest()


def _gpu() -> bool:
    """Whether there is an NVIDIA GPU that supports bfloat16."""
    if keras.config.backend() == "jax":
        import jax

        device = jax.devices()[0]
        found = str(getattr(device, "compute_capability", "")) if device.platform == "gpu" else ""
        capability = tuple(int(part) for part in found.split(".") if part.isdigit())
    elif keras.config.backend() == "tensorflow":
        import tensorflow as tf

        devices = tf.config.list_physical_devices("GPU")
        if not devices or not tf.config.list_logical_devices("GPU"):
            return False
        details = tf.config.experimental.get_device_details(devices[0])
        capability = details.get("compute_capability", ())
    else:
        return False
    return len(capability) == 2 and capability >= CAPABILITY


def largest_error() -> float:
    """The largest relative error of the kernels' results and gradients in a small test."""
    rng = np.random.default_rng(0)
    batch, length, heads, head_dim = 2, 83, 2, 64  # not a multiple of any kernel's tile
    hidden = heads * head_dim
    qkv = rng.normal(size=(batch, length, 3 * hidden))
    groups = np.zeros((batch, 2, length), "int32")
    groups[0, 1, 60:] = -1
    wanted = rng.normal(size=(batch, length, hidden))
    x, y = rng.normal(size=(2, batch * length, hidden))
    bias, gamma, beta = rng.normal(size=(3, hidden))

    def by_kernels(qkv, x, y, bias, gamma, beta):
        half = [ops.cast(value, "bfloat16") for value in (qkv, x, y, bias)]
        results = (
            attend(half[0], groups, heads),
            add_and_normalize(*half[1:], gamma, beta, 1e-12),
            add_and_gelu(half[2], half[3], approximate=False),
            add_and_gelu(half[2], half[3], approximate=True),
        )
        return [ops.cast(result, "float32") for result in results]

    def plainly(qkv, x, y, bias, gamma, beta):
        q, k, v = ops.unstack(ops.reshape(qkv, (batch, length, 3, heads, head_dim)), axis=2)
        scores = ops.einsum("btnd,bsnd->bnts", q, k) / head_dim**0.5
        seen = groups[:, 0, :, None] == groups[:, 1, None, :]
        scores = scores + np.where(seen, 0.0, -1e9)[:, None].astype("float32")
        attended = ops.einsum("bnts,bsnd->btnd", ops.softmax(scores), v)
        total = x + y + bias
        total = total - ops.mean(total, -1, keepdims=True)
        normal = total / ops.sqrt(ops.mean(total * total, -1, keepdims=True) + 1e-12)
        attended = ops.reshape(attended, (batch, length, hidden))
        gelus = [ops.gelu(y + bias, approximate=approximate) for approximate in (False, True)]
        return [attended, normal * gamma + beta, *gelus]

    arguments = [np.asarray(v, "float32") for v in (qkv, x, y, bias, gamma, beta)]
    wanted = [np.asarray(v, "float32") for v in (wanted, y, x, x)]
    found = _compiled(by_kernels, arguments, wanted)
    expected = _on_cpu(plainly, arguments, wanted)
    errors = [
        np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in zip(found, expected, strict=True)
    ]
    return float(np.max(errors)) if np.all(np.isfinite(errors)) else float("inf")


def _compiled(function, arguments, upstream) -> list[np.ndarray]:
    """The results of a function and its gradients, compiled by XLA on the first GPU."""
    if keras.config.backend() == "jax":
        import jax

        with_gradients = jax.jit(functools.partial(_with_gradients, function, upstream))
        return [np.asarray(value) for value in with_gradients(*arguments)]
    import tensorflow as tf

    @tf.function(jit_compile=True, autograph=False)
    def with_gradients(*arguments):
        return _with_gradients(function, upstream, *arguments)

    with tf.device(GPU):
        return [value.numpy() for value in with_gradients(*map(tf.constant, arguments))]


def _on_cpu(function, arguments, upstream) -> list[np.ndarray]:
    """The same, not compiled, which would take seconds."""
    if keras.config.backend() == "jax":
        import jax

        with jax.default_device(jax.devices("cpu")[0]):
            found = _with_gradients(function, upstream, *map(jax.numpy.asarray, arguments))
    else:
        import tensorflow as tf

        with tf.device("CPU:0"):
            found = _with_gradients(function, upstream, *map(tf.constant, arguments))
    return [np.asarray(value) for value in found]


def _with_gradients(function, upstream, *arguments) -> list:
    """The results of a function and its gradients, for gradients of its results."""
    if keras.config.backend() == "jax":
        import jax

        results, pull = jax.vjp(function, *arguments)
        return [*results, *pull(list(upstream))]
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(arguments)
        results = function(*arguments)
    return [*results, *tape.gradient(results, arguments, output_gradients=upstream)]
