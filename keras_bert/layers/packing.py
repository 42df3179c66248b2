"""Several short texts in one row of the encoder, so that little is computed on padding.

Shapes: N texts of T tokens come in, R rows of P tokens go through the encoder, S = N / R texts to
a row: row r holds texts r * S to r * S + S - 1. Which cell of a row holds which token is said by
`packed_from`, int [R, P]: the number s * T + t for token t of the row's text s, or -1 for padding.
A text lies in one piece in its row. `keras_bert.data.packing` makes such rows.
"""

import keras
from keras import ops

from keras_bert.kernels.gradients import custom_gradient


@keras.saving.register_keras_serializable(package="keras_bert")
class PackTexts(keras.layers.Layer):
    """Lays the tokens of texts into rows; the encoder then sees rows where it saw texts.

    Positions start at 0 in each text, and tokens see their own text alone, so that each state is
    what it would be in a row of its own.

    Call arguments:
        inputs: a dict of int tensors: `token_ids`, `segment_ids`, `padding_mask` [N, T];
            `packed_from` [R, P], or None for texts that are rows already; `position_ids` and
            `sequence_ids` [N, T], or None, which they must be with `packed_from`.

    Returns:
        A dict of the same without `packed_from`, [R, P].

    Raises:
        ValueError: if `position_ids` or `sequence_ids` come with `packed_from`.
    """

    def call(self, inputs):
        packed_from = inputs["packed_from"]
        rows = {name: value for name, value in inputs.items() if name != "packed_from"}
        if packed_from is None:
            return rows
        for name in ("position_ids", "sequence_ids"):
            if inputs[name] is not None:
                raise ValueError(f"got {name} beside packed_from, which sets them")
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

    def compute_output_spec(self, inputs):
        given = inputs["packed_from"]
        names = [name for name in inputs if name != "packed_from"]
        if given is None:
            return {name: inputs[name] for name in names}
        return {name: keras.KerasTensor(given.shape, dtype="int32") for name in names}


@keras.saving.register_keras_serializable(package="keras_bert")
class UnpackTexts(keras.layers.Layer):
    """Gives back to each text the states of its tokens, or of its first token.

    Args:
        first_only: whether to give the first token's alone.

    Call arguments:
        x: float [R, P, H].
        padding_mask: int [N, T] of the texts, 1 for tokens and 0 for padding.
        packed_from: int [R, P], or None for rows that are texts.

    Returns:
        float [N, T, H], zeros where `padding_mask` is 0; or, `first_only`, float [N, H], of a
        text without tokens some other's, or zeros.
    """

    def __init__(self, first_only: bool = False, **kwargs):
        super().__init__(**kwargs)
        self.first_only = first_only

    def call(self, x, padding_mask, packed_from=None, training=None):
        if packed_from is None:
            return x[:, 0, :] if self.first_only else x
        rows, width, hidden_dim = ops.shape(x)[0], ops.shape(x)[1], x.shape[-1]
        texts, length = ops.shape(padding_mask)[0], ops.shape(padding_mask)[1]
        slots = texts // rows
        first_cells = ops.arange(slots, dtype="int32")[None, :, None] * length  # [1, S, 1]
        begins = packed_from[:, None, :] == first_cells  # [R, S, P]
        if self.first_only and training:
            # A product, whose gradient is a product: that of a gather adds into scattered rows.
            first = ops.matmul(ops.cast(begins, x.dtype), x)  # [R, S, H]
            return ops.reshape(first, (-1, hidden_dim))
        at = ops.cast(ops.argmax(begins, axis=-1), "int32")  # [R, S]
        at = at + ops.arange(rows, dtype="int32")[:, None] * width
        x = ops.reshape(x, (-1, hidden_dim))  # [R * P, H]
        if self.first_only:
            return ops.take(x, ops.reshape(at, (-1,)), axis=0)
        place = ops.reshape(at, (-1, 1)) + ops.arange(length, dtype="int32")  # [N, T]
        real = padding_mask != 0
        place = ops.where(real, place, 0)
        # The other way around, for the gradient: the cell of the texts that each cell came from.
        cells = ops.arange(rows, dtype="int32")[:, None] * (slots * length)
        origin = ops.reshape(cells + ops.maximum(packed_from, 0), (-1,))
        held = ops.reshape(packed_from >= 0, (-1, 1))

        @custom_gradient
        def unpack(x):
            y = ops.where(real[:, :, None], ops.take(x, place, axis=0), 0)

            def gradient(*args, upstream=None):
                (upstream,) = args if upstream is None else (upstream,)
                # A gather again; that of a gather by itself would be a sum into scattered rows.
                upstream = ops.reshape(upstream, (-1, hidden_dim))
                return ops.where(held, ops.take(upstream, origin, axis=0), 0)

            return y, gradient

        return unpack(x)

    def compute_output_spec(self, x, padding_mask, packed_from=None, training=None):
        inner = () if self.first_only else (padding_mask.shape[1],)
        shape = (padding_mask.shape[0], *inner, x.shape[-1])
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    def get_config(self):
        return super().get_config() | {"first_only": self.first_only}
