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
            `packed_from` [R, P].

    Returns:
        A dict of int tensors [R, P]: `token_ids`, `segment_ids`, `padding_mask`, `position_ids`
        and `sequence_ids`.

    Raises:
        ValueError: if an input is passed together with `packed_from` that packing sets itself or
            cannot pack.
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
    """Returns to each text the hidden states of its tokens.

    Args:
        x: float [R, P, H].
        padding_mask: int [N, T] of the texts, 1 for tokens and 0 for padding.
        packed_from: int [R, P].

    Returns:
        float [N, T, H], zeros where `padding_mask` is 0.
    """
    rows, width, hidden_dim = ops.shape(x)[0], ops.shape(x)[1], x.shape[-1]
    length = ops.shape(padding_mask)[1]
    begins = _begins(x, padding_mask, packed_from)
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


def unpack_first(x, padding_mask, packed_from, training=None):
    """Returns to each text the hidden state of its first token.

    Args:
        x: float [R, P, H].
        padding_mask: int [N, T] of the texts.
        packed_from: int [R, P].
        training: whether a gradient will be computed.

    Returns:
        float [N, H]; arbitrary for a text without tokens.
    """
    begins = _begins(x, padding_mask, packed_from)
    if training:
        # A product, whose gradient is a product; that of a gather is a scatter-add.
        first = ops.matmul(ops.cast(begins, x.dtype), x)  # [R, S, H]
    else:
        at = ops.cast(ops.argmax(begins, axis=-1), "int32")  # [R, S]
        first = ops.take_along_axis(x, at[:, :, None], axis=1)
    return ops.reshape(first, (-1, x.shape[-1]))


def _begins(x, padding_mask, packed_from):
    """The cell in which each text of a row begins, bool [R, S, P]."""
    slots = ops.shape(padding_mask)[0] // ops.shape(x)[0]
    first_cells = ops.arange(slots, dtype="int32")[None, :, None] * ops.shape(padding_mask)[1]
    return packed_from[:, None, :] == first_cells
