"""A linear-chain CRF over the labels of a sentence (Lafferty et al. 2001; Lample et al. 2016, 2.2).

The score of a label sequence is the sum of its emissions, of the transitions between neighbours,
and of a start and an end score. Its probability is exp(score) / Z, where Z sums over all sequences.

Shapes: B sentences, T positions, K labels.
"""

import keras
from keras import ops

from keras_bert.layers.initializers import truncated_normal

IGNORED = -1  # the label of a position outside the chain


@keras.saving.register_keras_serializable(package="keras_bert")
class CRF(keras.layers.Layer):
    """Holds the weights of a linear-chain CRF and computes the loss of label sequences.

    A call returns the emissions unchanged: training needs the true labels, and decoding a search.

    Args:
        num_labels: K.
        initializer_range: stddev of the truncated normal initializer of the scores.

    Call arguments:
        emissions: float [B, T, K].

    Returns:
        The emissions, unchanged.
    """

    def __init__(self, num_labels: int, initializer_range: float = 0.02, **kwargs):
        super().__init__(**kwargs)
        self.num_labels = num_labels
        self.initializer_range = initializer_range
        # A function, so that the cell does not track the scores as its own weights.
        cell = _Cell(num_labels, lambda: self.scores, dtype=self.dtype_policy)
        self.recurrence = keras.layers.RNN(cell, return_sequences=True, dtype=self.dtype_policy)

    def build(self, emissions_shape):
        count = self.num_labels
        shapes = {"transitions": (count, count), "start": (count,), "end": (count,)}
        self.transitions, self.start, self.end = (
            self.add_weight(shape, truncated_normal(self.initializer_range), name=name)
            for name, shape in shapes.items()
        )
        self.recurrence.build((*emissions_shape[:2], 2 * count + 1))

    @property
    def scores(self) -> tuple:
        """(transitions [K, K] from row to column, start [K], end [K])."""
        return tuple(map(ops.convert_to_tensor, (self.transitions, self.start, self.end)))

    def call(self, emissions):
        return emissions

    def compute_output_shape(self, emissions_shape):
        return emissions_shape

    def token_losses(self, labels, emissions):
        """Splits the negative log likelihood of each sentence's labels among its positions.

        A position's part is the growth of the loss when the sentence gets one word longer. It can
        be negative; the parts of a sentence add up to -log p(labels).

        Args:
            labels: int [B, T]; positions with -1 are left out of the chain, which connects
                their neighbours.
            emissions: float [B, T, K].

        Returns:
            float [B, T], 0 at positions left out.
        """
        valid = ops.cast(ops.not_equal(labels, IGNORED), emissions.dtype)  # [B, T]
        tags = ops.one_hot(ops.maximum(labels, 0), self.num_labels, dtype=emissions.dtype)
        columns = [emissions, tags, ops.expand_dims(valid, -1)]
        return ops.squeeze(self.recurrence(ops.concatenate(columns, axis=-1)), -1)

    def get_config(self):
        return super().get_config() | {
            "num_labels": self.num_labels,
            "initializer_range": self.initializer_range,
        }


class _Cell(keras.layers.Layer):
    """One step of the forward algorithm, as a cell of `keras.layers.RNN` for all backends.

    States: alpha [B, K], log-sum-exp over all sequences that end in a label; the one-hot label of
    the last position of the chain [B, K], zeros before the first; the score of the true sequence
    [B, 1]; the loss if the sentence ended there [B, 1].
    """

    def __init__(self, num_labels: int, scores, **kwargs):
        super().__init__(**kwargs)
        self.num_labels = num_labels
        self._scores = scores
        self.state_size = (num_labels, num_labels, 1, 1)
        self.output_size = 1

    def build(self, inputs_shape):
        """Nothing to build: the weights belong to the CRF."""

    def get_initial_state(self, batch_size=None):
        return [ops.zeros((batch_size, size), self.compute_dtype) for size in self.state_size]

    def call(self, inputs, states):
        count = self.num_labels
        emission, tag, valid = inputs[:, :count], inputs[:, count:-1], inputs[:, -1:] > 0
        alpha, last, score, loss = states
        transitions, start, end = self._scores()
        begun = ops.any(last > 0, axis=1, keepdims=True)  # [B, 1]
        paths = ops.expand_dims(alpha, 2) + transitions  # [B, K, K]
        into = ops.where(begun, ops.logsumexp(paths, axis=1), start)  # [B, K]
        right_into = ops.where(begun, ops.matmul(last, transitions), start)
        new_alpha = into + emission
        new_score = score + ops.sum((right_into + emission) * tag, axis=1, keepdims=True)
        right = new_score + ops.sum(end * tag, axis=1, keepdims=True)
        new_loss = ops.logsumexp(new_alpha + end, axis=1, keepdims=True) - right
        share = ops.where(valid, new_loss - loss, 0.0)
        new = (new_alpha, tag, new_score, new_loss)
        return share, [ops.where(valid, a, b) for a, b in zip(new, states, strict=True)]


class CRFLoss(keras.losses.Loss):
    """`CRF.token_losses` as a loss; the mean over labelled positions.

    It reads the CRF's weights inside the train step, so it is recreated with the model and never
    saved.

    Args:
        crf: the layer, part of the model.
    """

    def __init__(self, crf: CRF, reduction="mean_with_sample_weight", name="crf_loss"):
        super().__init__(name=name, reduction=reduction)
        # A function, because a loss must not own layers.
        self._crf = lambda: crf

    def call(self, y_true, y_pred):
        return self._crf().token_losses(y_true, y_pred)
