"""What each kernel is to compute, said plainly in Keras operations: for `kernels.call.run`."""

import functools
import math

import numpy as np
from keras import ops

from keras_bert.kernels import gelu
from keras_bert.layers.dropout import kept_units


def run(kernel, inputs, outputs, numbers, grid):
    """As `keras_bert.kernels.call.run`, without a GPU."""
    compute = KERNELS[kernel.function]
    if kernel.function.startswith("gelu"):
        compute = functools.partial(compute, approximate=kernel.file.endswith("_tanh"))
    results = compute(numbers, *inputs)
    assert len(results) == len(outputs)
    for result, (shape, _) in zip(results, outputs, strict=True):
        assert tuple(result.shape) == tuple(shape)
    assert all(isinstance(size, int) and size > 0 for size in grid)
    return [ops.cast(v, dtype) for v, (_, dtype) in zip(results, outputs, strict=True)]


def _probabilities(numbers, qkv, groups, seed):
    """(q, k, v [B, N, T, D]; probabilities, their factors [B, N, T, T]; log2 of the sums)."""
    batch, length, width = qkv.shape
    heads = numbers["heads"]
    assert numbers["length"] == length
    parts = ops.reshape(ops.cast(qkv, "float32"), (batch, length, 3, heads, width // heads // 3))
    q, k, v = (ops.transpose(part, (0, 2, 1, 3)) for part in ops.unstack(parts, axis=2))
    scores = ops.matmul(q, ops.transpose(k, (0, 1, 3, 2))) * numbers["scale"]
    seen = groups[:, 0, :, None] == groups[:, 1, None, :]
    scores = scores + ops.where(seen, 0.0, -1e9)[:, None]
    log_sums = ops.logsumexp(scores, axis=-1)
    p = ops.exp(scores - log_sums[..., None])
    factors = _factors((batch, heads, length, length), numbers, seed)
    return q, k, v, p, factors, log_sums / np.log(2)


def _factors(shape, numbers, seed):
    if not numbers["threshold"]:
        return ops.full(shape, numbers["factor"])
    return ops.where(kept_units(shape, numbers["threshold"] / 2**32, seed), numbers["factor"], 0.0)


def _joined(x):
    """[B, N, T, D] to [B, T, H]."""
    x = ops.transpose(x, (0, 2, 1, 3))
    return ops.reshape(x, (*x.shape[:2], -1))


def _forward(numbers, qkv, groups, seed):
    _, _, v, p, factors, log_sums = _probabilities(numbers, qkv, groups, seed)
    return _joined(ops.matmul(p * factors, v)), log_sums


def _backward(numbers, qkv, groups, seed, log_sums, deltas, d_out):
    q, k, v, p, factors, _ = _probabilities(numbers, qkv, groups, seed)
    batch, heads, length, units = q.shape

    def split(x):
        x = ops.reshape(ops.cast(x, "float32"), (batch, length, heads, units))
        return ops.transpose(x, (0, 2, 1, 3))

    d_out = split(d_out)
    d_p = ops.matmul(d_out, ops.transpose(v, (0, 1, 3, 2))) * factors
    d_s = p * (d_p - deltas[..., None]) * numbers["scale"]
    turned = ops.transpose(d_s, (0, 1, 3, 2))
    d_v = ops.matmul(ops.transpose(p * factors, (0, 1, 3, 2)), d_out)
    changes = [_joined(v) for v in (ops.matmul(d_s, k), ops.matmul(turned, q), d_v)]
    return (ops.concatenate(changes, -1),)


def _norm_forward(numbers, x, y, bias, gamma, beta, seed):
    x, y, bias = (ops.cast(v, "float32") for v in (x, y, bias))
    assert numbers["hidden"] == x.shape[1]
    total = x + (y + bias) * _factors(x.shape, numbers, seed)
    mean = ops.mean(total, -1)
    slope = 1 / ops.sqrt(ops.var(total, -1) + numbers["epsilon"])
    return (total - mean[:, None]) * slope[:, None] * gamma + beta, total, mean, slope


def _norm_backward(numbers, d_out, total, means, slopes, gamma, seed):
    d_out, total = (ops.cast(v, "float32") for v in (d_out, total))
    normal = (total - means[:, None]) * slopes[:, None]
    d = d_out * gamma
    d_z = d - ops.mean(d, -1, keepdims=True) - normal * ops.mean(d * normal, -1, keepdims=True)
    d_z = d_z * slopes[:, None]
    d_y = d_z * _factors(d_z.shape, numbers, seed)
    sums = ops.stack([ops.sum(v, 0) for v in (d_out * normal, d_out, d_y)])
    programs = min(numbers["rows"], 1056)
    rest = ops.zeros((programs - 1, *sums.shape))
    return d_z, d_y, ops.concatenate([sums[None], rest])


def _gelu_forward(numbers, x, bias, approximate):
    assert numbers == {"rows": x.shape[0], "hidden": x.shape[1]}
    return (_gelu(x, bias, approximate),)


def _gelu(x, bias, approximate):
    return ops.gelu(ops.cast(x, "float32") + ops.cast(bias, "float32"), approximate=approximate)


def _gelu_backward(numbers, d_out, x, bias, approximate):
    """By the difference of values on both sides: independent of any formula of the slope."""
    step = 2.0**-8
    x = ops.cast(x, "float32")
    slope = _gelu(x + step, bias, approximate) - _gelu(x - step, bias, approximate)
    d_x = ops.cast(d_out, "float32") * slope / (2 * step)
    sums = ops.sum(d_x, 0)[None]
    programs = min(math.ceil(x.shape[0] / gelu.ROWS), gelu.PROGRAMS)
    return d_x, ops.concatenate([sums, ops.zeros((programs - 1, x.shape[1]))])


KERNELS = {
    "forward": _forward,
    "backward": _backward,
    "norm_forward": _norm_forward,
    "norm_backward": _norm_backward,
    "gelu_forward": _gelu_forward,
    "gelu_backward": _gelu_backward,
}
