"""Attention of one head at a time, forward and backward, without a stored table of probabilities.

Source of the IR in `keras_bert/kernels`, made by `tools/make_kernels.py`. Algorithm: Dao 2023,
"FlashAttention-2". Shapes: B texts, T tokens, N heads, D units a head, H = N * D. Queries, keys and
values of a token stand in one row of 3 * H. Dropout by the hash of `keras_bert.layers.dropout`, on
the same places of [B, N, T, T].

Logarithms are to base 2, so that a power of two gives the probability. What is done for each score
decides about the speed, more than the products: scales are applied to the sums, not to the scores.
"""

import triton
import triton.language as tl

LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)
FORBIDDEN: tl.constexpr = tl.constexpr(-1e9)
NO_GROUP: tl.constexpr = tl.constexpr(-(2**31))  # which no query has


@triton.jit
def mixed(x):
    x = (x ^ (x >> 16)) * 0x21F0AAAD
    x = (x ^ (x >> 15)) * 0xD35A2D97
    return x ^ (x >> 15)


@triton.jit
def dropout_key(seed):
    return mixed(mixed(tl.load(seed).to(tl.uint32)) + tl.load(seed + 1).to(tl.uint32))


@triton.jit
def row_numbers(places, key):
    return hashed(places, key + 1) | 1


@triton.jit
def column_numbers(places, key):
    return hashed(places, key + 2)


@triton.jit
def hashed(places, key):
    x = (tl.cast(places, tl.uint32) + mixed(key)) * 0x21F0AAAD
    return x ^ (x >> 15)


@triton.jit
def kept(rows, columns, threshold):
    """Of numbers of rows and of columns, broadcast, say [R, 1] and [1, C]."""
    return rows * columns >= tl.cast(threshold, tl.uint32)


@triton.jit
def forward(
    qkv,  # bfloat16 [B, T, 3, N, D]
    groups,  # int32 [B, 2, T]: a query sees the keys whose number (second row) is its own (first)
    seed,  # uint32 [2]
    out,  # bfloat16 [B, T, N, D]
    log_sums,  # float32 [B, N, T], log2 of the sums of e^score
    length,  # T
    heads,  # N
    scale,  # float32
    threshold,  # hashes below are dropped, int32 with the bits of an unsigned number
    factor,  # float32, of what is kept
    D: tl.constexpr,
    BLOCK: tl.constexpr,
    DROP: tl.constexpr,
):
    block, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    hidden = heads * D
    units = tl.arange(0, D)
    rows = block * BLOCK + tl.arange(0, BLOCK)
    there = rows[:, None] < length
    first = qkv + batch * length * (3 * hidden) + head * D
    groups += batch * 2 * length
    q = tl.load(first + rows[:, None] * (3 * hidden) + units[None, :], mask=there, other=0)
    row_groups = tl.load(groups + rows, mask=rows < length, other=0)
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    context = tl.zeros([BLOCK, D], tl.float32)
    to_log2 = scale * LOG2_E
    if DROP:
        key = dropout_key(seed)
        row_places = (batch.to(tl.int32) * heads + head) * length + rows
        row_number = row_numbers(row_places, key)[:, None]
    for start in range(0, length, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        at = columns[:, None] * (3 * hidden) + units[None, :]
        held = columns[:, None] < length
        k = tl.load(first + hidden + at, mask=held, other=0)
        v = tl.load(first + 2 * hidden + at, mask=held, other=0)
        # A column that is not there is in no query's group. Only a row that sees nothing counts it.
        column_groups = tl.load(groups + length + columns, mask=columns < length, other=NO_GROUP)
        s = tl.dot(q, tl.trans(k))
        s = tl.where(row_groups[:, None] == column_groups[None, :], s, FORBIDDEN)
        new_top = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s * to_log2 - (new_top * to_log2)[:, None])
        shrink = tl.exp2((top - new_top) * to_log2)
        total = total * shrink + tl.sum(p, 1)
        if DROP:
            p = tl.where(kept(row_number, column_numbers(columns, key)[None, :], threshold), p, 0.0)
        context = context * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        top = new_top
    counted = tl.cdiv(length, BLOCK) * BLOCK
    total = tl.where(top > 0.5 * FORBIDDEN, total, total * (length / counted))
    if DROP:
        context = context * (factor / total)[:, None]
    else:
        context = context / total[:, None]
    out += batch * length * hidden + head * D
    tl.store(out + rows[:, None] * hidden + units[None, :], context.to(q.dtype), mask=there)
    log_sums += (batch * heads + head) * length
    tl.store(log_sums + rows, top * to_log2 + tl.log2(total), rows < length)


@triton.jit
def row_sums(log_sums, deltas, groups, rows, length, scale):
    """What a gradient needs of its rows: (log_sum, log2 of the probability of what they do not
    see, delta, group). A row that sees nothing attends to all; of one that is not there all
    probabilities are zero."""
    there = rows < length
    log_sum = tl.load(log_sums + rows, mask=there, other=float("inf"))
    sees_nothing = log_sum < 0.5 * FORBIDDEN * scale * LOG2_E
    unseen = tl.where(sees_nothing, -tl.log2(length * 1.0), FORBIDDEN)
    delta = tl.load(deltas + rows, mask=there, other=0)
    return log_sum, unseen, delta, tl.load(groups + rows, mask=there, other=0)


@triton.jit
def backward(
    qkv,
    groups,
    seed,
    log_sums,
    deltas,  # float32 [B, N, T], sums of out * d_out over a head's units
    d_out,  # bfloat16 [B, T, N, D]
    d_qkv,  # bfloat16 [B, T, 3, N, D]
    length,
    heads,
    scale,
    threshold,
    factor,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
):
    block, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    hidden = heads * D
    units = tl.arange(0, D)
    first = qkv + batch * length * (3 * hidden) + head * D
    d_first = d_qkv + batch * length * (3 * hidden) + head * D
    d_out += batch * length * hidden + head * D
    log_sums += (batch * heads + head) * length
    deltas += (batch * heads + head) * length
    groups += batch * 2 * length
    places_first = (batch.to(tl.int32) * heads + head) * length
    key = dropout_key(seed)
    to_log2 = scale * LOG2_E

    # Keys and values of one block, over all queries; scores as [columns, rows].
    columns = block * BLOCK + tl.arange(0, BLOCK)
    held = columns[:, None] < length
    column_at = columns[:, None] * (3 * hidden) + units[None, :]
    k = tl.load(first + hidden + column_at, mask=held, other=0)
    v = tl.load(first + 2 * hidden + column_at, mask=held, other=0)
    column_groups = tl.load(groups + length + columns, mask=columns < length, other=NO_GROUP)
    column_number = column_numbers(columns, key)[:, None]
    d_k = tl.zeros([BLOCK, D], tl.float32)
    d_v = tl.zeros([BLOCK, D], tl.float32)
    for start in range(0, length, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        there = rows[:, None] < length
        q = tl.load(first + rows[:, None] * (3 * hidden) + units[None, :], mask=there, other=0)
        d_o = tl.load(d_out + rows[:, None] * hidden + units[None, :], mask=there, other=0)
        log_sum, unseen, delta, row_groups = row_sums(log_sums, deltas, groups, rows, length, scale)
        s = tl.dot(k, tl.trans(q)) * to_log2 - log_sum[None, :]
        p = tl.exp2(tl.where(row_groups[None, :] == column_groups[:, None], s, unseen[None, :]))
        d_p = tl.dot(v, tl.trans(d_o))
        row_number = row_numbers(places_first + rows, key)[None, :]
        keep = kept(row_number, column_number, threshold)
        d_s = p * (tl.where(keep, d_p, 0.0) * factor - delta[None, :])
        d_v += tl.dot(tl.where(keep, p, 0.0).to(q.dtype), d_o)
        d_k += tl.dot(d_s.to(q.dtype), q)
    tl.store(d_first + hidden + column_at, (d_k * scale).to(k.dtype), mask=held)
    tl.store(d_first + 2 * hidden + column_at, (d_v * factor).to(k.dtype), mask=held)

    # Queries of the same block, over all keys; scores as [rows, columns].
    rows = block * BLOCK + tl.arange(0, BLOCK)
    there = rows[:, None] < length
    row_at = rows[:, None] * (3 * hidden) + units[None, :]
    q = tl.load(first + row_at, mask=there, other=0)
    d_o = tl.load(d_out + rows[:, None] * hidden + units[None, :], mask=there, other=0)
    log_sum, unseen, delta, row_groups = row_sums(log_sums, deltas, groups, rows, length, scale)
    row_number = row_numbers(places_first + rows, key)[:, None]
    d_q = tl.zeros([BLOCK, D], tl.float32)
    for start in range(0, length, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        held = columns[:, None] < length
        column_at = columns[:, None] * (3 * hidden) + units[None, :]
        k = tl.load(first + hidden + column_at, mask=held, other=0)
        v = tl.load(first + 2 * hidden + column_at, mask=held, other=0)
        column_groups = tl.load(groups + length + columns, mask=columns < length, other=NO_GROUP)
        s = tl.dot(q, tl.trans(k)) * to_log2 - log_sum[:, None]
        p = tl.exp2(tl.where(row_groups[:, None] == column_groups[None, :], s, unseen[:, None]))
        d_p = tl.dot(d_o, tl.trans(v))
        keep = kept(row_number, column_numbers(columns, key)[None, :], threshold)
        d_s = p * (tl.where(keep, d_p, 0.0) * factor - delta[:, None])
        d_q += tl.dot(d_s.to(q.dtype), k)
    tl.store(d_first + row_at, (d_q * scale).to(q.dtype), mask=there)
