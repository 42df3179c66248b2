"""Perplexity of a language model."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class Perplexity(keras.metrics.Metric):
    """exp of the mean cross-entropy of logits: 1 for certainty, V for a uniform guess among V ids.

    Losses and weights are summed over all batches (and replicas) before the division, so every
    token has the same weight.

    Args:
        name: the metric's name.
        dtype: dtype of the computation; Keras's float dtype by default.
    """

    def __init__(self, name: str = "perplexity", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_variable((), "zeros", name="total")
        self.weight = self.add_variable((), "zeros", name="weight")

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch: int ids [B, P], float logits [B, P, V], and weights [B, P] or None."""
        losses = keras.losses.sparse_categorical_crossentropy(
            y_true, ops.cast(y_pred, self.dtype), from_logits=True
        )  # [B, P]
        weights = ops.ones_like(losses) if sample_weight is None else sample_weight
        weights = ops.cast(weights, self.dtype)
        self.total.assign_add(ops.sum(losses * weights))
        self.weight.assign_add(ops.sum(weights))

    def result(self):
        """The perplexity; 0, an impossible value, if the weights sum to 0."""
        mean = ops.divide_no_nan(self.total, self.weight)
        return ops.where(self.weight > 0, ops.exp(mean), 0.0)
