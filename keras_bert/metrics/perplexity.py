"""How many ids a language model hesitates between."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class Perplexity(keras.metrics.Metric):
    """e to the mean cross-entropy of logits: 1 for certainty, V for an even guess among V ids.

    Loss and weight are summed over all batches (and replicas) before the division, so that a
    token counts the same in every batch.

    Args:
        name: the metric's name.
        dtype: in which it is computed; Keras's float type by default.
    """

    def __init__(self, name: str = "perplexity", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_variable((), "zeros", name="total")
        self.weight = self.add_variable((), "zeros", name="weight")

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch.

        Args:
            y_true: int ids [B, P].
            y_pred: float logits [B, P, V].
            sample_weight: float [B, P], or None for 1 everywhere.
        """
        losses = keras.losses.sparse_categorical_crossentropy(
            y_true, ops.cast(y_pred, self.dtype), from_logits=True
        )  # [B, P]
        weights = ops.ones_like(losses) if sample_weight is None else sample_weight
        weights = ops.cast(weights, self.dtype)
        self.total.assign_add(ops.sum(losses * weights))
        self.weight.assign_add(ops.sum(weights))

    def result(self):
        """The perplexity; 0, which no model can have, if nothing of weight was added."""
        mean = ops.divide_no_nan(self.total, self.weight)
        return ops.where(self.weight > 0, ops.exp(mean), 0.0)
