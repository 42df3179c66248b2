"""Bias, dropout, residual sum and layer normalization in one pass, forward and backward.

Source of the IR in `keras_bert/kernels`, made by `tools/make_kernels.py`. Shapes: R rows (tokens)
of H units. Dropout by the hash of `keras_bert.layers.dropout`, on the same places of [R, H].
"""

import triton
import triton.language as tl
from kernels.attention import column_numbers, dropout_key, kept, row_numbers


@triton.jit
def norm_forward(
    x,  # bfloat16 [R, H], the residual
    y,  # bfloat16 [R, H], a product of matrices
    bias,  # bfloat16 [H], added to y
    gamma,  # float32 [H]
    beta,  # float32 [H]
    seed,  # uint32 [2]
    out,  # bfloat16 [R, H]
    z,  # bfloat16 [R, H], the sum before normalization
    means,  # float32 [R]
    slopes,  # float32 [R], 1 / sqrt(variance + epsilon)
    hidden,  # H
    epsilon,  # float32
    threshold,  # hashes below are dropped, int32 with the bits of an unsigned number
    factor,  # float32, of what is kept
    WIDTH: tl.constexpr,  # a power of two, H or more
    DROP: tl.constexpr,
):
    units = tl.arange(0, WIDTH)
    held = units < hidden
    row = tl.program_id(0)
    at = row.to(tl.int64) * hidden + units
    total = tl.load(y + at, mask=held, other=0).to(tl.float32)
    total += tl.load(bias + units, mask=held, other=0).to(tl.float32)
    if DROP:
        key = dropout_key(seed)
        keep = kept(row_numbers(row, key), column_numbers(units, key), threshold)
        total = tl.where(keep, total * factor, 0.0)
    total += tl.load(x + at, mask=held, other=0).to(tl.float32)
    rounded = total.to(z.dtype.element_ty)
    tl.store(z + at, rounded, mask=held)
    total = rounded.to(tl.float32)  # what the backward pass will see
    mean = tl.sum(total, 0) / hidden
    centered = tl.where(held, total - mean, 0.0)
    slope = 1.0 / tl.sqrt_rn(tl.sum(centered * centered, 0) / hidden + epsilon)
    result = centered * slope * tl.load(gamma + units, mask=held, other=0)
    result += tl.load(beta + units, mask=held, other=0)
    tl.store(out + at, result.to(out.dtype.element_ty), mask=held)
    tl.store(means + row, mean)
    tl.store(slopes + row, slope)


@triton.jit
def norm_backward(
    d_out,  # bfloat16 [R, H]
    z,
    means,
    slopes,
    gamma,
    seed,
    d_x,  # bfloat16 [R, H]
    d_y,  # bfloat16 [R, H]
    sums,  # float32 [programs, 3, H]: of each program's rows the gradients of gamma, beta and bias
    rows,  # R
    hidden,
    threshold,
    factor,
    WIDTH: tl.constexpr,
):
    units = tl.arange(0, WIDTH)
    held = units < hidden
    program, programs = tl.program_id(0), tl.num_programs(0)
    weight = tl.load(gamma + units, mask=held, other=0)
    key = dropout_key(seed)
    column = column_numbers(units, key)
    d_gamma = tl.zeros([WIDTH], tl.float32)
    d_beta = tl.zeros([WIDTH], tl.float32)
    d_bias = tl.zeros([WIDTH], tl.float32)
    for row in range(program, rows, programs):
        at = tl.cast(row, tl.int64) * hidden + units
        d = tl.load(d_out + at, mask=held, other=0).to(tl.float32)
        total = tl.load(z + at, mask=held, other=0).to(tl.float32)
        slope = tl.load(slopes + row)
        normal = tl.where(held, (total - tl.load(means + row)) * slope, 0.0)
        d_gamma += d * normal
        d_beta += d
        d = d * weight
        d_z = (d - tl.sum(d, 0) / hidden - normal * (tl.sum(d * normal, 0) / hidden)) * slope
        tl.store(d_x + at, d_z.to(d_x.dtype.element_ty), mask=held)
        keep = kept(row_numbers(row, key), column, threshold)
        d_kept = tl.where(keep, d_z * factor, 0.0).to(d_y.dtype.element_ty)
        tl.store(d_y + at, d_kept, mask=held)
        d_bias += tl.where(held, d_kept.to(tl.float32), 0.0)
    at = program * 3 * hidden + units
    tl.store(sums + at, d_gamma, mask=held)
    tl.store(sums + at + hidden, d_beta, mask=held)
    tl.store(sums + at + 2 * hidden, d_bias, mask=held)
