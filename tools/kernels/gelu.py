"""GELU of a product of matrices and its bias, forward and backward, in one pass each.

Source of the IR in `keras_bert/kernels`, made by `tools/make_kernels.py`. Shapes: R rows (tokens)
of F units.
"""

import triton
import triton.language as tl


@triton.jit
def share_and_density(x, TANH: tl.constexpr):
    """(what GELU multiplies x with, its derivative), float32."""
    if TANH:
        # (1 + tanh(u)) / 2 is the logistic function of 2 u.
        near = tl.minimum(tl.maximum(x, -30.0), 30.0)  # further out the cube would overflow
        square = near * near
        inner = 1.5957691216057308 * near * (1.0 + 0.044715 * square)  # 2 * sqrt(2 / pi)
        share = 1.0 / (1.0 + tl.exp2(inner * -1.4426950408889634))
        slope = 1.5957691216057308 * (1.0 + 3 * 0.044715 * square)
        return share, share * (1.0 - share) * slope
    # The normal distribution by Abramowitz and Stegun 1964, 7.1.26, off by 7.5e-8 at most.
    bell = tl.exp2(x * x * -0.7213475204444817)  # e^(-x^2 / 2)
    t = 1.0 / (1.0 + 0.23164189 * tl.abs(x))
    tail = (
        0.5
        * t
        * bell
        * (
            0.254829592
            + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
        )
    )
    return tl.where(x < 0, tail, 1.0 - tail), bell * 0.3989422804014327


@triton.jit
def gelu_forward(
    x,  # bfloat16 [R, F]
    bias,  # bfloat16 [F]
    out,  # bfloat16 [R, F]
    rows,  # R
    hidden,  # F
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    TANH: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    unit = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)[None, :]
    held = (row < rows) & (unit < hidden)
    at = row.to(tl.int64) * hidden + unit
    value = tl.load(x + at, mask=held, other=0).to(tl.float32)
    value += tl.load(bias + unit, mask=unit < hidden, other=0).to(tl.float32)
    share, _ = share_and_density(value, TANH)
    tl.store(out + at, (value * share).to(out.dtype.element_ty), mask=held)


@triton.jit
def gelu_backward(
    d_out,  # bfloat16 [R, F]
    x,
    bias,
    d_x,  # bfloat16 [R, F]
    sums,  # float32 [programs, F]: of each program's rows the gradient of the bias
    rows,
    hidden,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    TANH: tl.constexpr,
):
    program, programs = tl.program_id(0), tl.num_programs(0)
    unit = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)[None, :]
    added = tl.load(bias + unit, mask=unit < hidden, other=0).to(tl.float32)
    total = tl.zeros([ROWS, WIDTH], tl.float32)
    for start in range(program * ROWS, rows, programs * ROWS):
        row = start + tl.arange(0, ROWS)[:, None]
        held = (row < rows) & (unit < hidden)
        at = row.to(tl.int64) * hidden + unit
        value = tl.load(x + at, mask=held, other=0).to(tl.float32) + added
        share, density = share_and_density(value, TANH)
        d = tl.load(d_out + at, mask=held, other=0).to(tl.float32)
        d = (d * (share + value * density)).to(d_x.dtype.element_ty)
        tl.store(d_x + at, d, mask=held)
        total += tl.where(held, d.to(tl.float32), 0.0)
    units = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    tl.store(sums + program * hidden + units, tl.sum(total, 0), mask=units < hidden)
