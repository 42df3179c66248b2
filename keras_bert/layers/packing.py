"""Sequence packing: several short texts share a row of the encoder, to avoid padding.

Shapes: N texts of T tokens are packed into R rows of P tokens, with S = N / R texts in each row:
row r holds texts r * S to r * S + S - 1. `packed_from`, int [R, P], says which token is in which
cell: s * T + t for token t of the row's text s, or -1 for padding. The tokens of a text are
contiguous. `keras_bert.data.packed_rows` computes such rows.
"""

from keras import ops

from keras_bert.kernels.gradients import custom_gradient


def pack_texts(inputs: dict) -> dict:
    """Packs the tokens of texts into rows, which replace the texts as the encoder's input.

    Positions start at 0 in each text, and tokens attend only to their own text, so each hidden
    state is the same as in a row of its own.

    Args:
        inputs: a dict of int tensors: `token_ids`, `segment_ids`, `padding_mask` [N, T];
            `packed_from` [R, P]. Packing sets or cannot pack other inputs, which are an error.

    Returns:
        A dict of int tensors [R, P]: `token_ids`, `segment_ids`, `padding_mask`, `position_ids`
        and `sequence_ids`.
    """
    packed_from = inputs["packed_from"]
    for name in ("position_ids", "sequence_ids", "token_embeddings"):
        if inputs.get(name) is not None:
            raise ValueError(f"got {name} together with packed_from: expected only one of them")
    count, length = ops.shape(packed_from)[0], ops.shape(inputs["token_ids"])[1]
    held = packed_from >= 0
    cell = ops.maximum(packed_from, 0)

    def lay(ids):
        by_row = ops.reshape(ids, (count, -1))  # [R, S * T]
        return ops.where(held, ops.take_along_axis(by_row, cell, axis=1), 0)

    return {
        "token_ids": lay(inputs["token_ids"]),
        "segment_ids": lay(inputs["segment_ids"]),
        "padding_mask": ops.cast(held, inputs["padding_mask"].dtype),
        "position_ids": cell % length,
        "sequence_ids": cell // length,
    }


def unpack_texts(x, padding_mask, packed_from):
    """Returns to each text the hidden states of its tokens, from [R, P, H] to [N, T, H].

    They are zeros where the texts' `padding_mask`, int [N, T], is 0.
    """
    rows, width, hidden_dim = ops.shape(x)[0], ops.shape(x)[1], x.shape[-1]
    length = ops.shape(padding_mask)[1]
    begins = _cells(x, padding_mask, packed_from)
    slots = ops.shape(begins)[1]
    at = ops.cast(ops.argmax(begins, axis=-1), "int32")  # [R, S]
    at = at + ops.arange(rows, dtype="int32")[:, None] * width
    x = ops.reshape(x, (-1, hidden_dim))  # [R * P, H]
    place = ops.reshape(at, (-1, 1)) + ops.arange(length, dtype="int32")  # [N, T]
    real = padding_mask != 0
    place = ops.where(real, place, 0)
    # The inverse, for the gradient: the cell of the texts that each packed cell came from.
    cells = ops.arange(rows, dtype="int32")[:, None] * (slots * length)
    origin = ops.reshape(cells + ops.maximum(packed_from, 0), (-1,))
    held = ops.reshape(packed_from >= 0, (-1, 1))

    @custom_gradient
    def unpack(x):
        y = ops.where(real[:, :, None], ops.take(x, place, axis=0), 0)

        def gradient(*args, upstream=None):
            (upstream,) = args if upstream is None else (upstream,)
            # A gather too; automatic differentiation would make it a scatter-add.
            upstream = ops.reshape(upstream, (-1, hidden_dim))
            return ops.where(held, ops.take(upstream, origin, axis=0), 0)

        return y, gradient

    return unpack(x)


def unpack_one(x, padding_mask, packed_from, last: bool = False, training=None):
    """Returns to each text the hidden state of its first or last token, from [R, P, H] to [N, H].

    It is arbitrary for a text without tokens. In `training` a gradient will be computed.
    """
    cells = _cells(x, padding_mask, packed_from, last_tokens(padding_mask) if last else 0)
    if training:
        # A product, whose gradient is a product; that of a gather is a scatter-add.
        one = ops.matmul(ops.cast(cells, x.dtype), x)  # [R, S, H]
    else:
        at = ops.cast(ops.argmax(cells, axis=-1), "int32")  # [R, S]
        one = ops.take_along_axis(x, at[:, :, None], axis=1)
    return ops.reshape(one, (-1, x.shape[-1]))


def last_tokens(padding_mask):
    """The index of the last token of each text, int32 [N]; 0 for a text without tokens."""
    held = ops.cast(ops.not_equal(padding_mask, 0), "int32")
    place = ops.cumsum(ops.ones_like(held), axis=1) - 1  # `arange` needs a known length
    return ops.max(held * place, axis=1)


def state_of(x, token):
    """The hidden state [B, H] of one token of each row, at the index `token`, int32 [B]."""
    place = ops.cumsum(ops.ones_like(x[:, :, :1], dtype="int32"), axis=1) - 1  # [B, T, 1]
    chosen = ops.cast(ops.equal(place, token[:, None, None]), x.dtype)
    # A product, whose gradient is a product; that of a gather is a scatter-add.
    return ops.matmul(ops.transpose(chosen, (0, 2, 1)), x)[:, 0, :]


def _cells(x, padding_mask, packed_from, token=0):
    """The cell of a token, an integer or int32 [N], of each text of a row, bool [R, S, P]."""
    rows = ops.shape(x)[0]
    slots = ops.shape(padding_mask)[0] // rows
    cells = ops.arange(slots, dtype="int32")[None, :] * ops.shape(padding_mask)[1]  # [1, S]
    if not isinstance(token, int):
        cells = cells + ops.reshape(token, (rows, slots))
    return packed_from[:, None, :] == cells[:, :, None]
