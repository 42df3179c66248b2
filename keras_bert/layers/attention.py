"""Multi-head self-attention and its mask.

Shapes: B rows in a batch, T tokens, N heads, D units per head, H = N * D hidden units.
"""

import math

import keras
from keras import ops

from keras_bert import kernels
from keras_bert.kernels.fused_attention import can_attend
from keras_bert.layers.dense import Dense, plain, product
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.initializers import truncated_normal

# Added to the score of a masked pair: its exponential is zero in float32, but the softmax stays
# finite, so a row without any token to attend to does not give NaN.
FORBIDDEN = -1e9
# The group of padding keys; no text of a row has it.
NO_GROUP = -1


@keras.saving.register_keras_serializable(package="keras_bert")
class AttentionMask(keras.layers.Layer):
    """Computes which tokens may attend to which, once for all blocks.

    Args:
        causal: whether tokens attend only to themselves and to tokens before them in their row, as
            in a language model that reads from left to right (Radford et al. 2018). The attention
            kernel has no such mask and is then not used.

    Call arguments:
        padding_mask: int or bool [B, T], 1 for a token and 0 for padding.
        sequence_ids: int [B, T] or None. If several texts are packed into a row, tokens attend only
            to tokens with the same id.

    Returns:
        bool [B, 1, 1, T], or [B, 1, T, T] with `sequence_ids` or `causal`: True where attention is
        allowed. With kernels in use and not `causal`, int32 [B, 2, T], see
        `keras_bert.kernels.attend`.
    """

    def __init__(self, causal: bool = False, **kwargs):
        super().__init__(**kwargs)
        self.causal = causal

    def call(self, padding_mask, sequence_ids=None):
        if kernels.in_use() and not self.causal:
            ids = ops.zeros_like(padding_mask) if sequence_ids is None else sequence_ids
            ids = ops.cast(ids, "int32")
            seen = ops.where(ops.cast(padding_mask, "bool"), ids, NO_GROUP)
            return ops.stack([ids, seen], axis=1)
        # Not [:, None, None, :]: LiteRT has no op that slices and adds axes at once.
        allowed = ops.expand_dims(ops.cast(padding_mask, "bool"), (1, 2))  # [B, 1, 1, T]
        if sequence_ids is not None:
            same = sequence_ids[:, :, None] == sequence_ids[:, None, :]  # [B, T, T]
            allowed = ops.logical_and(allowed, same[:, None])  # [B, 1, T, T]
        if self.causal:
            place = ops.arange(ops.shape(padding_mask)[1])
            before = place[:, None] >= place[None, :]  # [T, T], queries by keys
            allowed = ops.logical_and(allowed, before[None, None])  # [B, 1, T, T]
        return allowed

    def compute_output_spec(self, padding_mask, sequence_ids=None):
        batch, length = padding_mask.shape
        queries = 1 if sequence_ids is None and not self.causal else length
        return keras.KerasTensor((batch, 1, queries, length), dtype="bool")

    def get_config(self):
        return super().get_config() | {"causal": self.causal}


@keras.saving.register_keras_serializable(package="keras_bert")
class SelfAttention(keras.layers.Layer):
    """softmax(Q K^T / sqrt(D)) V over the allowed pairs, then a dense layer on the joined heads.

    Reference: google-research/bert `modeling.py`, `attention_layer` and the scope
    `attention/output`, without its dropout, residual and normalization (see `EncoderBlock`). The
    softmax runs in float32 under every dtype policy.

    Args:
        num_heads: N, a divisor of the input width.
        dropout: dropout rate of the attention probabilities.
        initializer_range: stddev of the truncated normal initializer of the kernels.
        output_attentions: whether to return the attention probabilities. If False and kernels are
            in use, they are never materialized.

    Call arguments:
        x: float [B, T, H].
        mask: from `AttentionMask`; or any bool that broadcasts to [B, N, T, T], True where
            attention is allowed; or a float32 of such a shape that is added to the scores, with
            `FORBIDDEN` where there is no attention; or None.
        training: whether to apply dropout.
        seed: a seed from `dropout.draw`, or None to draw one.

    Returns:
        (float [B, T, H], attention probabilities before dropout, float [B, N, T, T], or None).

    Raises:
        ValueError: if H is not divisible by `num_heads`.
    """

    def __init__(
        self,
        num_heads: int,
        dropout: float = 0.1,
        initializer_range: float = 0.02,
        output_attentions: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.output_attentions = output_attentions
        self.initializer_range = initializer_range
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, x_shape, mask_shape=None):
        hidden_dim = x_shape[-1]
        if hidden_dim % self.num_heads:
            raise ValueError(
                f"hidden_dim={hidden_dim}: expected a multiple of num_heads={self.num_heads}"
            )
        self.head_dim = hidden_dim // self.num_heads
        for name in ("query", "key", "value", "output"):
            dense = Dense(
                hidden_dim,
                kernel_initializer=truncated_normal(self.initializer_range),
                dtype=self.dtype_policy,
                name=name,
            )
            dense.build(x_shape)
            # `output` is already a property of every Keras layer.
            setattr(self, f"{name}_dense", dense)

    def call(self, x, mask=None, training=None, seed=None):
        context, probabilities = self.contexts(x, mask, training, seed)
        return ops.reshape(self.output_dense(context), ops.shape(x)), probabilities

    def contexts(self, x, mask=None, training=None, seed=None):
        """Computes the joined heads: `call` without its last dense layer.

        Args:
            x: as in `call`.
            mask: as in `call`.
            training: as in `call`.
            seed: as in `call`.

        Returns:
            (the joined heads, float [B * T, H]; attention probabilities, or None).
        """
        batch, length, hidden_dim = ops.shape(x)[0], ops.shape(x)[1], x.shape[-1]
        # With two axes TensorFlow can fuse the matrix product with the following ops.
        tokens = ops.reshape(x, (-1, hidden_dim))
        if self._uses_kernel(mask, batch, length):
            qkv = ops.reshape(self._projected(tokens), (batch, length, 3 * hidden_dim))
            if training and self.dropout.rate and seed is None:
                seed = self.dropout.draw(training)
            rate = self.dropout.rate if training else 0.0
            context = kernels.attend(qkv, mask, self.num_heads, rate, seed)
            return ops.reshape(context, (-1, hidden_dim)), None
        if mask is not None and len(mask.shape) == 3:  # groups, which only the kernel reads
            mask = (mask[:, 0, :, None] == mask[:, 1, None, :])[:, None]

        def split(x):  # [B * T, H] -> [B, N, T, D]
            x = ops.reshape(x, (batch, length, self.num_heads, self.head_dim))
            return ops.transpose(x, (0, 2, 1, 3))

        query = split(self.query_dense(tokens) * (1.0 / math.sqrt(self.head_dim)))
        key = split(self.key_dense(tokens))
        value = split(self.value_dense(tokens))
        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))  # [B, N, T, T]
        scores = ops.cast(scores, "float32")
        if mask is not None:
            if not keras.backend.is_float_dtype(keras.backend.standardize_dtype(mask.dtype)):
                # Added instead of selected: the gradient then does not need the mask.
                mask = (1.0 - ops.cast(mask, "float32")) * FORBIDDEN
            scores = scores + ops.cast(mask, "float32")
        # Keras warns about a softmax over a single score, which a row of one token has.
        single = scores.shape[-1] == 1
        probabilities = ops.ones_like(scores) if single else ops.softmax(scores, axis=-1)
        probabilities = ops.cast(probabilities, self.compute_dtype)
        dropped = self.dropout(probabilities, training=training, seed=seed)
        context = ops.transpose(ops.matmul(dropped, value), (0, 2, 1, 3))  # [B, T, N, D]
        return ops.reshape(context, (-1, hidden_dim)), probabilities

    def _uses_kernel(self, mask, batch, length) -> bool:
        return (
            kernels.in_use()
            and not self.output_attentions
            and mask is not None
            and len(mask.shape) == 3
            and can_attend(self.compute_dtype, batch, length, self.head_dim)
        )

    def _projected(self, tokens):
        """Queries, keys and values of [B * T, H] side by side: [B * T, 3 * H]."""
        layers = (self.query_dense, self.key_dense, self.value_dense)
        if all(map(plain, layers)):  # one product for three
            bias = ops.concatenate([ops.convert_to_tensor(layer.bias) for layer in layers])
            return product(tokens, *layers) + ops.cast(bias, self.compute_dtype)
        return ops.concatenate([layer(tokens) for layer in layers], axis=-1)

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
            "output_attentions": self.output_attentions,
        }
