"""Calibration: whether probabilities are as often right as they say."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from keras_bert.metrics.score_inputs import check_shapes, check_values

_AT_ONCE = 1 << 22  # logits in float64
_MOST = 30.0  # cross-entropy of an answer, e^-30 from certain


class Calibration(NamedTuple):
    """Accuracy by confidence, in bins of equal width.

    Attributes:
        confidence: mean confidence of the predictions of each bin, [bins]; NaN for empty bins.
        accuracy: fraction of correct predictions, [bins]; NaN for empty bins.
        count: number of predictions in each bin, [bins].
        expected_error: mean of |confidence - accuracy| over predictions (Guo et al. 2017,
            arXiv:1706.04599, expected calibration error).
    """

    confidence: np.ndarray
    accuracy: np.ndarray
    count: np.ndarray
    expected_error: float


def calibration(confidence, correct, bins: int = 10) -> Calibration:
    """Groups predictions by their confidence.

    Args:
        confidence: probability of each prediction, [N], from 0 to 1.
        correct: whether it is correct, bool [N]; or how far, float from 0 to 1.
        bins: number of bins, of equal width from 0 to 1; a confidence of 1 is in the last.

    Returns:
        The `Calibration`.

    Raises:
        ValueError: if the arrays differ in length, or a confidence is out of range.
    """
    confidence = np.asarray(confidence, "float64")
    correct = np.asarray(correct, "float64")
    if confidence.ndim != 1 or confidence.shape != correct.shape:
        raise ValueError(
            f"confidence of shape {confidence.shape} and correct of shape {correct.shape}: "
            "expected [N] each"
        )
    known = (confidence >= 0) & (confidence <= 1 + 1e-6)
    check_values("confidence", confidence, known, "a probability, from 0 to 1")
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    count = np.bincount(place, minlength=bins)
    sums = [np.bincount(place, weights=v, minlength=bins) for v in (confidence, correct)]
    with np.errstate(invalid="ignore"):
        means = [total / count for total in sums]
    error = np.abs(sums[0] - sums[1]).sum() / max(len(confidence), 1)
    return Calibration(*means, count, float(error))


def best_temperature(logits, labels) -> float:
    """Finds the temperature that minimizes the negative log-likelihood of labels.

    Probabilities are those of the logits divided by it: above 1 they are less confident, below 1
    more; the order of the classes stays. Reference: Guo et al. 2017 (arXiv:1706.04599), section
    4.2.

    Args:
        logits: float [N, K].
        labels: ids of classes, int [N], or their probabilities, float [N, K], for a softmax; 0 and
            1, int or bool [N, K], for a sigmoid each.

    Returns:
        The temperature, from 0.01 to 100.

    Raises:
        ValueError: if shapes differ, there are no labels, or a number is not finite.
    """
    logits, labels = np.asarray(logits), np.asarray(labels)
    check_shapes(logits=(logits, "NK"), labels=(labels, "N" if labels.ndim == 1 else "NK"))
    check_values("logit", logits, np.isfinite(logits), "a finite number")
    at_once = max(_AT_ONCE // logits.shape[1], 1)  # in float64, which is wide for a vocabulary
    parts = [
        (logits[i : i + at_once], labels[i : i + at_once]) for i in range(0, len(logits), at_once)
    ]

    def loss(temperature):
        return sum(_loss(values.astype("float64") / temperature, of) for values, of in parts)

    return _least(loss)


def best_answer_temperature(logits, chosen, grades) -> float:
    """Finds the temperature at which the probability of answers fits how right they are.

    For answers whose right one need not be among the candidates: minimizes the binary cross-entropy
    of the probability of the answer that was given, a softmax over the candidates.

    Args:
        logits: float [N, C], of C candidates; -inf for those that are none.
        chosen: int [N], index of the answer given.
        grades: float [N], how right it is, 0 to 1, such as its F1.

    Returns:
        The temperature, from 0.01 to 100.

    Raises:
        ValueError: if shapes differ, or there are no answers.
    """
    from scipy.special import logsumexp

    logits, chosen = np.asarray(logits, "float64"), np.asarray(chosen, int)
    grades = np.asarray(grades, "float64")
    check_shapes(logits=(logits, "NC"), chosen=(chosen, "N"), grades=(grades, "N"))
    own = np.arange(logits.shape[1]) == chosen[:, None]

    def loss(temperature):
        scaled = logits / temperature
        total = logsumexp(scaled, axis=1)
        # Bounded, so that a single candidate, whose probability is 1, counts as much as others.
        right = np.maximum(logsumexp(np.where(own, scaled, -np.inf), axis=1) - total, -_MOST)
        wrong = np.maximum(logsumexp(np.where(own, -np.inf, scaled), axis=1) - total, -_MOST)
        return -(grades * right + (1 - grades) * wrong).sum()

    return _least(loss)


def _loss(logits: np.ndarray, labels: np.ndarray) -> float:
    """The negative log-likelihood of labels, as `best_temperature` takes them."""
    from scipy.special import logsumexp

    if labels.ndim == 1:
        right = np.take_along_axis(logits, labels[:, None].astype(int), 1)[:, 0]
        return np.sum(logsumexp(logits, axis=1) - right)
    if labels.dtype.kind == "f":
        return np.sum(logsumexp(logits, axis=1) - (labels * logits).sum(axis=1))
    return np.sum(np.logaddexp(0, np.where(labels.astype(bool), -1, 1) * logits))


def _least(loss: Callable[[float], float]) -> float:
    """The temperature of the least loss."""
    from scipy.optimize import minimize_scalar

    bounds = (np.log(0.01), np.log(100))
    found = minimize_scalar(lambda log: loss(np.exp(log)), bounds=bounds, method="bounded")
    return float(np.exp(found.x))
