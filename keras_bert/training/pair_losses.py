"""Losses of embeddings of pairs of texts (Reimers and Gurevych 2019, arXiv:1908.10084)."""

import keras
from keras import ops

from keras_bert.layers.pooling import unit_length
from keras_bert.metrics import PearsonCorrelation


@keras.saving.register_keras_serializable(package="keras_bert")
class CosineSquaredError(keras.losses.Loss):
    """The squared error of the cosine of two embeddings.

    Reference: Sentence-BERT, section 3, "regression objective function".

    Call arguments:
        y_true: float [B], the target cosines, from -1 to 1.
        y_pred: float [B, 2, H], embeddings of both texts.

    Returns:
        float32 [B] before reduction.
    """

    def __init__(self, reduction="mean_with_sample_weight", name="cosine_squared_error", **kwargs):
        super().__init__(reduction=reduction, name=name, **kwargs)

    def call(self, y_true, y_pred):
        return ops.square(cosines(y_pred) - ops.reshape(ops.cast(y_true, "float32"), (-1,)))


@keras.saving.register_keras_serializable(package="keras_bert")
class InBatchNegatives(keras.losses.Loss):
    """The cross-entropy of finding an anchor's positive among the texts of the whole batch.

    These are all positives, and all hard negatives if examples have them. The logits are cosines
    times `scale`. Reference: Henderson et al. 2017 (arXiv:1705.00652), section 4.4, with the cosine
    as in sentence-transformers' MultipleNegativesRankingLoss. The negatives are the other rows of
    the batch that the loss receives: those of the same replica and micro-batch.

    Args:
        scale: factor of the cosines, 20 by default.

    Call arguments:
        y_true: int [B], an index for each pair. A row with the index of another is a copy that
            fills up the batch, and is not a negative.
        y_pred: float [B, C, H], embeddings of anchors, positives, and C - 2 negatives.

    Returns:
        float32 [B] before reduction.
    """

    def __init__(
        self,
        scale: float = 20.0,
        reduction="mean_with_sample_weight",
        name="in_batch_negatives",
        **kwargs,
    ):
        super().__init__(reduction=reduction, name=name, **kwargs)
        self.scale = scale

    def call(self, y_true, y_pred):
        units = unit_length(_texts(y_pred))
        others = ops.shape(units)[1] - 1
        # [B, (C - 1) * B], the positives first
        candidates = ops.reshape(ops.swapaxes(units[:, 1:], 0, 1), (-1, units.shape[2]))
        cosine = ops.matmul(units[:, 0], ops.transpose(candidates))
        number = ops.reshape(y_true, (-1,))
        same = number[:, None] == number[None, :]
        place = ops.arange(ops.shape(number)[0])
        own = place[:, None] == place[None, :]
        first = ops.argmax(ops.cast(same, "int32"), axis=0) == ops.cast(place, "int32")
        counted = ops.tile(own | (first[None, :] & ~same), (1, others))
        logits = ops.where(counted, cosine * self.scale, -1e9)
        positive = ops.sum(units[:, 0] * units[:, 1], axis=-1) * self.scale
        return ops.logsumexp(logits, axis=1) - positive

    def get_config(self):
        return super().get_config() | {"scale": self.scale}


@keras.saving.register_keras_serializable(package="keras_bert")
class CosinePearson(PearsonCorrelation):
    """Pearson's correlation of cosines of embeddings [B, 2, H] with target cosines [B]."""

    def __init__(self, name="pearson", **kwargs):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(y_true, cosines(y_pred), sample_weight)


def cosines(embeddings):
    """The cosine of the two embeddings of each pair: float32 [B, 2, H] to [B]."""
    units = unit_length(_texts(embeddings, 2))
    return ops.sum(units[:, 0] * units[:, 1], axis=-1)


def _texts(embeddings, most: int | None = None):
    shape = tuple(embeddings.shape)
    # Data with another number of texts than those before are traced for any number, None.
    count = (shape[1] or 2) if len(shape) == 3 else 0
    if count < 2 or count > (most or count):
        raise ValueError(f"embeddings have shape {shape}; expected those of pairs, [batch, 2, H]")
    return ops.cast(embeddings, "float32")
