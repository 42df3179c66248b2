"""Attention of one head at a time, forward and backward, without a stored table of probabilities.

Source of the IR in `keras_bert/kernels`, made by `tools/make_kernels.py`. Algorithm: Dao 2023,
"FlashAttention-2". Shapes: B texts, T tokens, N heads, D units a head, H = N * D. Queries, keys and
values of a token stand in one row of 3 * H. Dropout by the hash of `keras_bert.layers.dropout`, on
the same places of [B, N, T, T].

Scores are kept times log2(e), so that a power of two gives the probability.
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
def kept(row_places, column_places, key, threshold):
    """Of places of rows and of columns, broadcast, say [R, 1] and [1, C]."""
    row_hash = mixed(tl.cast(row_places, tl.uint32) + mixed(key + 1))
    column_hash = mixed(column_places.to(tl.uint32) + mixed(key + 2))
    place = (row_hash ^ column_hash) * 0x21F0AAAD
    place = (place ^ (place >> 15)) * 0xD35A2D97
    return place >= tl.cast(threshold, tl.uint32)


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
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    context = tl.zeros([BLOCK, D], tl.float32)
    row_places = (batch.to(tl.int32) * heads + head) * length + rows
    if DROP:
        key = dropout_key(seed)
    for start in range(0, length, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        at = columns[:, None] * (3 * hidden) + units[None, :]
        held = columns[:, None] < length
        k = tl.load(first + hidden + at, mask=held, other=0)
        v = tl.load(first + 2 * hidden + at, mask=held, other=0)
        s = tl.dot(q, tl.trans(k)) * (scale * LOG2_E)
        row_groups = tl.load(groups + rows, mask=rows < length, other=0)
        column_groups = tl.load(groups + length + columns, mask=columns < length, other=0)
        s += tl.where(row_groups[:, None] == column_groups[None, :], 0.0, FORBIDDEN)
        s = tl.where((columns < length)[None, :], s, float("-inf"))
        new_top = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(p, 1)
        if DROP:
            p = tl.where(kept(row_places[:, None], columns[None, :], key, threshold), p, 0.0)
        context = context * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        top = new_top
    if DROP:
        context = context * (factor / total)[:, None]
    else:
        context = context / total[:, None]
    out += batch * length * hidden + head * D
    tl.store(out + rows[:, None] * hidden + units[None, :], context.to(q.dtype), mask=there)
    log_sums += (batch * heads + head) * length
    tl.store(log_sums + rows, top + tl.log2(total), rows < length)


@triton.jit
def score_gradient(
    q, k, v, d_out, log_sum, delta, groups, rows, columns, row_places, key,
    length, scale, threshold, factor,
):  # fmt: skip
    """(probabilities after dropout, gradient of the scores), in the type of q, [C, R].

    Of a row that is not there both are zero. Of a column that is not there they are finite, also
    where the row sees no column: its key is zero, and its own gradients are not stored.
    """
    s = tl.dot(k, tl.trans(q)) * (scale * LOG2_E)
    row_groups = tl.load(groups + rows, mask=rows < length, other=0)
    column_groups = tl.load(groups + length + columns, mask=columns < length, other=NO_GROUP)
    s += tl.where(row_groups[None, :] == column_groups[:, None], 0.0, FORBIDDEN)
    p = tl.exp2(s - log_sum[None, :])
    d_p = tl.dot(v, tl.trans(d_out))
    keep = kept(row_places[None, :], columns[:, None], key, threshold)
    dropped = tl.where(keep, p * factor, 0.0)
    d_p = tl.where(keep, d_p * factor, 0.0)
    d_s = p * (d_p - delta[None, :]) * scale
    return dropped.to(q.dtype), d_s.to(q.dtype)


@triton.jit
def backward(
    qkv,
    groups,
    seed,
    out,
    log_sums,
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
    out += batch * length * hidden + head * D
    d_out += batch * length * hidden + head * D
    log_sums += (batch * heads + head) * length
    groups += batch * 2 * length
    places_first = (batch.to(tl.int32) * heads + head) * length
    key = dropout_key(seed)

    # Keys and values of one block, over all queries.
    columns = block * BLOCK + tl.arange(0, BLOCK)
    held = columns[:, None] < length
    column_at = columns[:, None] * (3 * hidden) + units[None, :]
    k = tl.load(first + hidden + column_at, mask=held, other=0)
    v = tl.load(first + 2 * hidden + column_at, mask=held, other=0)
    d_k = tl.zeros([BLOCK, D], tl.float32)
    d_v = tl.zeros([BLOCK, D], tl.float32)
    for start in range(0, length, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        there = rows[:, None] < length
        row_at = rows[:, None] * (3 * hidden) + units[None, :]
        out_at = rows[:, None] * hidden + units[None, :]
        q = tl.load(first + row_at, mask=there, other=0)
        o = tl.load(out + out_at, mask=there, other=0)
        d_o = tl.load(d_out + out_at, mask=there, other=0)
        log_sum = tl.load(log_sums + rows, mask=rows < length, other=float("inf"))
        delta = tl.sum(o.to(tl.float32) * d_o.to(tl.float32), 1)
        dropped, d_s = score_gradient(
            q, k, v, d_o, log_sum, delta, groups, rows, columns, places_first + rows, key,
            length, scale, threshold, factor,
        )  # fmt: skip
        d_v += tl.dot(dropped, d_o)
        d_k += tl.dot(d_s, q)
    tl.store(d_first + hidden + column_at, d_k.to(k.dtype), mask=held)
    tl.store(d_first + 2 * hidden + column_at, d_v.to(k.dtype), mask=held)

    # Queries of the same block, over all keys.
    rows = block * BLOCK + tl.arange(0, BLOCK)
    there = rows[:, None] < length
    row_at = rows[:, None] * (3 * hidden) + units[None, :]
    out_at = rows[:, None] * hidden + units[None, :]
    q = tl.load(first + row_at, mask=there, other=0)
    o = tl.load(out + out_at, mask=there, other=0)
    d_o = tl.load(d_out + out_at, mask=there, other=0)
    log_sum = tl.load(log_sums + rows, mask=rows < length, other=float("inf"))
    delta = tl.sum(o.to(tl.float32) * d_o.to(tl.float32), 1)
    d_q = tl.zeros([BLOCK, D], tl.float32)
    for start in range(0, length, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        held = columns[:, None] < length
        column_at = columns[:, None] * (3 * hidden) + units[None, :]
        k = tl.load(first + hidden + column_at, mask=held, other=0)
        v = tl.load(first + 2 * hidden + column_at, mask=held, other=0)
        _, d_s = score_gradient(
            q, k, v, d_o, log_sum, delta, groups, rows, columns, places_first + rows, key,
            length, scale, threshold, factor,
        )  # fmt: skip
        d_q += tl.dot(tl.trans(d_s), k)
    tl.store(d_first + row_at, d_q.to(q.dtype), mask=there)
