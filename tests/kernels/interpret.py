"""Runs the Triton kernels in Triton's interpreter against plain arithmetic in float64.

A process of its own: torch and TensorFlow do not live in one. Prints each result's error.
Run: TRITON_INTERPRET=1 python tests/kernels/interpret.py
"""

import math
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from kernels import attention, gelu, residual_norm  # noqa: E402

RATE = 0.3
DROPOUT = {"threshold": round(RATE * 2**32) - 2**32, "factor": 1 / (1 - RATE)}  # as int32 bits
MOST = 0.008  # of bfloat16, which the interpreter cuts off instead of rounding


def hashed(x):
    x = np.asarray(x, "uint64")
    for shift, factor in ((16, 0x21F0AAAD), (15, 0xD35A2D97)):
        x = ((x ^ (x >> np.uint64(shift))) * np.uint64(factor)) % np.uint64(2**32)
    return x ^ (x >> np.uint64(15))


def kept(rows: int, columns: int, seed) -> torch.Tensor:
    """What `keras_bert.layers.dropout.kept_units` says, once more."""
    wrap = np.uint64(2**32)
    key = hashed((hashed(seed[0]) + np.uint64(seed[1])) % wrap)
    numbers = []
    for count, which in ((rows, 1), (columns, 2)):
        start = hashed((key + np.uint64(which)) % wrap)
        x = (np.arange(count).astype("uint64") + start) * np.uint64(0x21F0AAAD) % wrap
        numbers.append(x ^ (x >> np.uint64(15)))
    x = ((numbers[0][:, None] | np.uint64(1)) * numbers[1]) % wrap
    return torch.tensor(x >= round(RATE * 2**32))


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


def compare(name, found, wanted):
    found, wanted = found.double(), wanted.detach().double()
    error = float(torch.linalg.norm(found - wanted) / torch.linalg.norm(wanted))
    print(f"{name}: {error:.5f}")
    if not error < MOST:
        sys.exit(f"{name} is off by {error}")


def check_gelu(rows=37, hidden=600, programs=2):
    x, bias, d_out = (
        normal(rows, hidden, seed=0),
        normal(hidden, seed=1),
        normal(rows, hidden, seed=2),
    )
    for tanh in (False, True):
        tile = {"ROWS": 16, "WIDTH": 512, "TANH": tanh}
        out, d_x, sums = torch.zeros_like(x), torch.zeros_like(x), torch.zeros(programs, hidden)
        gelu.gelu_forward[(3, 2, 1)](x, bias, out, rows, hidden, **tile)
        gelu.gelu_backward[(programs, 2, 1)](d_out, x, bias, d_x, sums, rows, hidden, **tile)
        z = (x.double() + bias.double()).requires_grad_(True)
        wanted = torch.nn.functional.gelu(z, approximate="tanh" if tanh else "none")
        wanted.backward(d_out.double())
        name = "gelu, tanh" if tanh else "gelu"
        compare(name, out, wanted)
        compare(f"{name}, gradient", d_x, z.grad)
        compare(f"{name}, gradient of the bias", sums.sum(0), z.grad.sum(0))


def check_norm(rows=11, hidden=100, programs=3):
    seed = np.array([5, 7])
    x, y, d_out = (normal(rows, hidden, seed=i) for i in range(3))
    bias, gamma, beta = (normal(hidden, seed=i) for i in (3, 4, 5))
    given = [gamma.float(), beta.float(), torch.tensor(seed, dtype=torch.int32)]
    out, z, d_x, d_y = (torch.zeros_like(x) for _ in range(4))
    means, slopes, sums = torch.zeros(rows), torch.zeros(rows), torch.zeros(programs, 3, hidden)
    residual_norm.norm_forward[(rows, 1, 1)](
        x, y, bias, *given, out, z, means, slopes, hidden, 1e-12, **DROPOUT, WIDTH=128, DROP=True
    )
    residual_norm.norm_backward[(programs, 1, 1)](
        d_out, z, means, slopes, given[0], given[2], d_x, d_y, sums, rows, hidden, **DROPOUT,
        WIDTH=128,
    )  # fmt: skip
    leaves = [v.double().requires_grad_(True) for v in (x, y, gamma, beta, bias)]
    drop = kept(rows, hidden, seed) * DROPOUT["factor"]
    total = leaves[0] + (leaves[1] + leaves[4]) * drop
    wanted = torch.nn.functional.layer_norm(total, (hidden,), leaves[2], leaves[3], 1e-12)
    wanted.backward(d_out.double())
    compare("norm", out, wanted)
    found = (d_x, d_y, *sums.sum(0))
    names = ("x", "y", "gamma", "beta", "bias")
    for name, value, leaf in zip(names, found, leaves, strict=True):
        compare(f"norm, gradient of {name}", value, leaf.grad)


def check_attention(batch=3, length=70, heads=2, units=32):
    seed, hidden = np.array([9, 2]), heads * units
    # In float16: the interpreter takes products of bfloat16 for products of their bits.
    qkv = normal(batch, length, 3 * hidden, seed=0).half()
    d_out = normal(batch, length, hidden, seed=1).half()
    groups = torch.zeros(batch, 2, length, dtype=torch.int32)
    groups[0, 1, 50:] = -1  # padding
    groups[1, :, 30:] = 1  # two texts
    groups[2, 1] = -1  # nothing: a row that fills a batch
    seeds = torch.tensor(seed, dtype=torch.int32)
    out, log_sums = torch.zeros(batch, length, hidden).half(), torch.zeros(batch, heads, length)
    d_qkv = torch.zeros_like(qkv)
    numbers = {"length": length, "heads": heads, "scale": 1 / math.sqrt(units), **DROPOUT}
    grid, sizes = (2, heads, batch), {"D": units, "BLOCK": 64}
    attention.forward[grid](qkv, groups, seeds, out, log_sums, **numbers, **sizes, DROP=True)
    deltas = (out.float() * d_out.float()).reshape(batch, length, heads, units).sum(-1)
    deltas = deltas.transpose(1, 2).contiguous()
    given = qkv, groups, seeds, log_sums, deltas, d_out
    attention.backward[grid](*given, d_qkv, **numbers, **sizes)
    leaf = qkv.double().requires_grad_(True)
    q, k, v = leaf.reshape(batch, length, 3, heads, units).permute(2, 0, 3, 1, 4)
    seen = groups[:, 0, :, None] == groups[:, 1, None, :]
    scores = q @ k.transpose(-1, -2) / math.sqrt(units)
    # As in float32, in which -1e9 + score is -1e9, and has the gradient of the score.
    unseen = scores - scores.detach() - 1e9
    p = torch.softmax(torch.where(seen[:, None], scores, unseen), -1)
    drop = kept(batch * heads * length, length, seed).reshape(p.shape) * DROPOUT["factor"]
    wanted = ((p * drop) @ v).transpose(1, 2).reshape(batch, length, hidden)
    wanted.backward(d_out.double())
    compare("attention", out, wanted)
    compare("attention, gradient", d_qkv, leaf.grad)


if __name__ == "__main__":
    check_gelu()
    check_norm()
    check_attention()
