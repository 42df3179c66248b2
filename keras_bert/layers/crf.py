"""A linear chain over the labels of a sentence (Lafferty et al. 2001; Lample et al. 2016, 2.2).

The score of a path of labels is the sum of its emissions, of a transition between neighbours, and
of a start and an end score. Its probability is exp(score) / Z, with Z the sum over all paths.

Shapes: B sentences, T positions, K labels.
"""

import keras
from keras import ops

from keras_bert.layers.initializers import truncated_normal

IGNORED = -1  # the label of a position that is no part of the chain


@keras.saving.register_keras_serializable(package="keras_bert")
class CRF(keras.layers.Layer):
    """Holds the scores of a chain, and gives the loss of labels under it.

    A call hands the emissions on as they are: the chain needs the right labels in training, and a
    search in decoding.

    Args:
        num_labels: K.
        initializer_range: deviation of the truncated normal law that the scores start from.

    Call arguments:
        emissions: float [B, T, K].

    Returns:
        The same.
    """

    def __init__(self, num_labels: int, initializer_range: float = 0.02, **kwargs):
        super().__init__(**kwargs)
        self.num_labels = num_labels
        self.initializer_range = initializer_range
        # Behind a function, so that the scores are weights of this layer alone.
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
        """Shares the negative log probability of each sentence's labels out to its positions.

        A position's share is what the sum grows by when the sentence gets one word longer. A share
        may be negative; the sum of a sentence's is -log of the probability of its labels.

        Args:
            labels: int [B, T]; positions of -1 are left out of the chain, which joins their
                neighbours.
            emissions: float [B, T, K].

        Returns:
            float [B, T], 0 at positions that are left out.
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
    """One step of the forward algorithm; a cell of `keras.layers.RNN`, which loops everywhere.

    States: alpha [B, K], the log of the sum over all paths that end in a label; the one-hot label
    of the last position of the chain [B, K], zeros before the first; the score of the right path
    [B, 1]; -log of its probability, had the sentence ended there [B, 1].
    """

    def __init__(self, num_labels: int, scores, **kwargs):
        super().__init__(**kwargs)
        self.num_labels = num_labels
        self._scores = scores
        self.state_size = (num_labels, num_labels, 1, 1)
        self.output_size = 1

    def build(self, inputs_shape):
        """Nothing to build: the scores are the CRF's."""

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

    It reads the chain's scores where the step computes gradients, so it is made anew with the model
    and never saved.

    Args:
        crf: the layer, one of the model's.
    """

    def __init__(self, crf: CRF, reduction="mean_with_sample_weight", name="crf_loss"):
        super().__init__(name=name, reduction=reduction)
        # Behind a function: a loss owns no layers.
        self._crf = lambda: crf

    def call(self, y_true, y_pred):
        return self._crf().token_losses(y_true, y_pred)
