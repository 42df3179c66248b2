"""Pooling of token states into one vector per text."""

import keras
from keras import ops

from keras_bert.arguments import check_choice

POOLINGS = ("cls", "mean", "max", "pooler")


@keras.saving.register_keras_serializable(package="keras_bert")
class TextPooling(keras.layers.Layer):
    """Pools the hidden states of a row into one vector, in float32.

    Reference: Reimers and Gurevych 2019 (Sentence-BERT, arXiv:1908.10084), section 3. Padding is
    ignored; [CLS] and [SEP] count as tokens.

    Args:
        pooling: "cls", the state of position 0; "mean", the mean over tokens; "max", the maximum
            of each unit.

    Call arguments:
        states: a list of float tensors [B, T, H], which are averaged first.
        padding_mask: int [B, T], 1 for tokens and 0 for padding.

    Returns:
        float32 [B, H]; zeros for a row without tokens with "mean" and "max".

    Raises:
        ValueError: if `pooling` is none of these.
    """

    def __init__(self, pooling: str = "mean", dtype="float32", **kwargs):
        super().__init__(dtype=dtype, **kwargs)
        known = POOLINGS[:3]
        check_choice("pooling", pooling, known)
        self.pooling = pooling

    def call(self, states, padding_mask):
        x = sum(states) / len(states) if len(states) > 1 else states[0]  # [B, T, H]
        if self.pooling == "cls":
            return x[:, 0]
        real = ops.expand_dims(padding_mask, -1) != 0  # [B, T, 1]
        if self.pooling == "max":
            x = ops.max(ops.where(real, x, -float("inf")), axis=1)
            return ops.where(ops.any(real, axis=1), x, 0.0)
        # `where`, not a product: padding may hold NaN.
        total = ops.sum(ops.where(real, x, 0.0), axis=1)  # [B, H]
        count = ops.sum(ops.cast(real, x.dtype), axis=1)  # [B, 1]
        return total / ops.maximum(count, 1.0)

    def compute_output_spec(self, states, padding_mask):
        shape = (states[0].shape[0], states[0].shape[2])
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    def get_config(self):
        return super().get_config() | {"pooling": self.pooling}


@keras.saving.register_keras_serializable(package="keras_bert")
class UnitLength(keras.layers.Layer):
    """Divides vectors by their Euclidean length, in float32; zeros stay zeros.

    Call arguments:
        x: float [..., H].

    Returns:
        float32 [..., H].
    """

    def __init__(self, dtype="float32", **kwargs):
        super().__init__(dtype=dtype, **kwargs)

    def call(self, x):
        return unit_length(x)

    def compute_output_shape(self, shape):
        return shape


def unit_length(x):
    """Divides vectors by their Euclidean length; zeros stay zeros, with gradients of zero."""
    square = ops.sum(ops.square(x), axis=-1, keepdims=True)
    # Of lengths below 1e-12, as torch.nn.functional.normalize; no square root of zero, whose
    # gradient is infinite.
    return x * ops.rsqrt(ops.maximum(square, 1e-24))
