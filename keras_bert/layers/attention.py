"""Multi-head self-attention and its mask.

Shapes: B texts in a batch, T tokens, N heads, D units a head, H = N * D hidden units.
"""

import math

import keras
from keras import ops

from keras_bert.layers.dropout import Dropout
from keras_bert.layers.initializers import truncated_normal

# Added to the score of a forbidden pair: e to this power is zero in float32, and the softmax stays
# finite, so that a row with nothing to look at does not give NaN.
FORBIDDEN = -1e9


@keras.saving.register_keras_serializable(package="keras_bert")
class AttentionMask(keras.layers.Layer):
    """Says which token may look at which, once for all blocks.

    Call arguments:
        padding_mask: int or bool [B, T], 1 for a token and 0 for padding.
        sequence_ids: int [B, T] or None. Where several texts share a row, tokens see only those
            with their own id.

    Returns:
        bool [B, 1, 1, T], or [B, 1, T, T] with `sequence_ids`: True where attention is allowed.
    """

    def call(self, padding_mask, sequence_ids=None):
        # Not by [:, None, None, :]: LiteRT has no op that slices and adds axes at once.
        allowed = ops.expand_dims(ops.cast(padding_mask, "bool"), (1, 2))  # [B, 1, 1, T]
        if sequence_ids is not None:
            same = sequence_ids[:, :, None] == sequence_ids[:, None, :]  # [B, T, T]
            allowed = ops.logical_and(allowed, same[:, None])  # [B, 1, T, T]
        return allowed

    def compute_output_spec(self, padding_mask, sequence_ids=None):
        batch, length = padding_mask.shape
        queries = 1 if sequence_ids is None else length
        return keras.KerasTensor((batch, 1, queries, length), dtype="bool")


@keras.saving.register_keras_serializable(package="keras_bert")
class SelfAttention(keras.layers.Layer):
    """softmax(Q K^T / sqrt(D)) V over the allowed pairs, then one dense layer on the joined heads.

    Rule: google-research/bert `modeling.py`, `attention_layer` and the `attention/output` scope
    (without its dropout, residual and normalization, which `EncoderBlock` holds). The softmax
    runs in float32 whatever the compute type.

    Args:
        num_heads: N, a divisor of the input width.
        dropout: share of attention probabilities dropped.
        initializer_range: deviation of the truncated normal law of the kernels.

    Call arguments:
        x: float [B, T, H].
        mask: bool, broadcast to [B, N, T, T], True where attention is allowed; or None.
        training: whether to drop out.
        seed: a seed from `dropout.draw`, or None to draw one.

    Returns:
        (float [B, T, H], attention probabilities before dropout, float [B, N, T, T]).

    Raises:
        ValueError: if H does not divide by `num_heads`.
    """

    def __init__(
        self, num_heads: int, dropout: float = 0.1, initializer_range: float = 0.02, **kwargs
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.initializer_range = initializer_range
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, x_shape, mask_shape=None):
        hidden_dim = x_shape[-1]
        if hidden_dim % self.num_heads:
            raise ValueError(
                f"hidden_dim={hidden_dim} does not divide by num_heads={self.num_heads}"
            )
        self.head_dim = hidden_dim // self.num_heads
        for name in ("query", "key", "value", "output"):
            dense = keras.layers.Dense(
                hidden_dim,
                kernel_initializer=truncated_normal(self.initializer_range),
                dtype=self.dtype_policy,
                name=name,
            )
            dense.build(x_shape)
            # `output` is a property of every Keras layer already.
            setattr(self, f"{name}_dense", dense)

    def call(self, x, mask=None, training=None, seed=None):
        batch, length, hidden_dim = ops.shape(x)[0], ops.shape(x)[1], x.shape[-1]

        def split(x):  # [B * T, H] -> [B, N, T, D]
            x = ops.reshape(x, (batch, length, self.num_heads, self.head_dim))
            return ops.transpose(x, (0, 2, 1, 3))

        # Two axes: TensorFlow joins a product of matrices with what follows it.
        tokens = ops.reshape(x, (-1, hidden_dim))
        query = split(self.query_dense(tokens) * (1.0 / math.sqrt(self.head_dim)))
        key = split(self.key_dense(tokens))
        value = split(self.value_dense(tokens))
        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))  # [B, N, T, T]
        scores = ops.cast(scores, "float32")
        if mask is not None:
            # Added, not put in its place: the gradient then needs no mask.
            scores = scores + (1.0 - ops.cast(mask, "float32")) * FORBIDDEN
        # Keras warns of a softmax over one score, which a text of one token asks for.
        single = scores.shape[-1] == 1
        probabilities = ops.ones_like(scores) if single else ops.softmax(scores, axis=-1)
        probabilities = ops.cast(probabilities, self.compute_dtype)
        dropped = self.dropout(probabilities, training=training, seed=seed)
        context = ops.transpose(ops.matmul(dropped, value), (0, 2, 1, 3))  # [B, T, N, D]
        output = self.output_dense(ops.reshape(context, (-1, hidden_dim)))
        return ops.reshape(output, (batch, length, hidden_dim)), probabilities

    def compute_output_spec(self, x, mask=None, training=None, seed=None):
        batch, length, _ = x.shape
        return (
            keras.KerasTensor(x.shape, dtype=self.compute_dtype),
            keras.KerasTensor((batch, self.num_heads, length, length), dtype=self.compute_dtype),
        )

    def get_config(self):
        return super().get_config() | {
            "num_heads": self.num_heads,
            "dropout": self.dropout.rate,
            "initializer_range": self.initializer_range,
        }
