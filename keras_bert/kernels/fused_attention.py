"""Multi-head self-attention that does not store the attention probabilities.

Shapes: B rows, T tokens, N heads, D units per head, H = N * D.
"""

import math

from keras import ops

from keras_bert.kernels.call import FLOATS, Kernel, dropout_numbers, run
from keras_bert.kernels.gradients import custom_gradient

HEAD_DIMS = (32, 64)  # those with IR
BLOCK = 64  # queries, and keys, per tile of a program
WARPS = 4
FORWARD_STAGES, BACKWARD_STAGES = 1, 3  # the fastest of 1 to 4 for 512 tokens, on an H200


def attend(qkv, groups, heads: int, rate: float = 0.0, seed=None):
    """softmax(Q K^T / sqrt(D)) V of each head, with dropout on the probabilities.

    Algorithm: Dao 2023, "FlashAttention-2": probabilities are computed block by block, and again in
    the backward pass. Sums and the softmax run in float32. The dropout mask is that of
    `keras_bert.layers.dropout.kept_units` for [B, N, T, T].

    Args:
        qkv: bfloat16 [B, T, 3 * H]; queries, keys and values, each with its heads concatenated.
        groups: int32 [B, 2, T]: the group of each query, then that of each key. A query attends to
            the keys of its group; if there are none, to all keys uniformly.
        heads: number of heads N.
        rate: dropout rate of the probabilities.
        seed: uint32 [2], or None if nothing is dropped.

    Returns:
        [B, T, H], with the dtype of `qkv`.
    """
    batch, length, width = qkv.shape
    head_dim = width // (3 * heads)
    numbers = {"length": length, "heads": heads, "scale": 1 / math.sqrt(head_dim)}
    drops = seed is not None and rate > 0
    forward = Kernel(
        f"attention_forward_{head_dim}{'_dropout' * drops}", "forward", WARPS, FORWARD_STAGES
    )
    backward = Kernel(f"attention_backward_{head_dim}", "backward", WARPS, BACKWARD_STAGES)
    grid = (math.ceil(length / BLOCK), heads, batch)
    dropout = dropout_numbers(rate if drops else 0.0)
    seed = ops.zeros((2,), "uint32") if seed is None else ops.cast(seed, "uint32")

    @custom_gradient
    def attended(qkv):
        out, log_sums = run(
            forward,
            [qkv, groups, seed],
            [((batch, length, width // 3), qkv.dtype), ((batch, heads, length), "float32")],
            numbers | dropout,
            grid,
        )

        def gradient(*args, upstream=None):
            (upstream,) = args if upstream is None else (upstream,)
            upstream = ops.cast(upstream, qkv.dtype)
            products = ops.cast(out, "float32") * ops.cast(upstream, "float32")
            deltas = ops.sum(ops.reshape(products, (batch, length, heads, head_dim)), axis=-1)
            (change,) = run(
                backward,
                [qkv, groups, seed, log_sums, ops.transpose(deltas, (0, 2, 1)), upstream],
                [((batch, length, width), qkv.dtype)],
                numbers | dropout,
                grid,
            )
            return change

        return out, gradient

    return attended(qkv)


def can_attend(qkv_dtype, batch, length, head_dim: int) -> bool:
    """Whether a kernel exists: sizes must be static, because they are compiled in."""
    known = isinstance(batch, int) and isinstance(length, int)
    # The third axis of a CUDA grid, that of the rows, is limited to 65,535.
    fits = known and 0 < batch < 2**16 and length > 0
    return fits and head_dim in HEAD_DIMS and qkv_dtype in FLOATS
