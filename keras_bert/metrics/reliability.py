"""Calibration: whether probabilities are as often right as they say."""

from typing import NamedTuple

import numpy as np


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
    if not np.all((confidence >= 0) & (confidence <= 1 + 1e-6)):
        raise ValueError("confidence: expected probabilities from 0 to 1")
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
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    logits, labels = np.asarray(logits, "float64"), np.asarray(labels)
    shapes = (logits.shape, logits.shape[:1])
    if logits.ndim != 2 or labels.shape not in shapes or not labels.size:
        raise ValueError(
            f"logits of shape {logits.shape} and labels of shape {labels.shape}: expected [N, K] "
            "with [N] or [N, K]"
        )
    if not np.isfinite(logits).all():
        raise ValueError("logits: expected finite numbers")
    if labels.ndim == 1:
        right = np.take_along_axis(logits, labels[:, None].astype(int), 1)[:, 0]

    def loss(log_temperature):
        beta = np.exp(-log_temperature)
        if labels.ndim == 1:
            return np.mean(logsumexp(beta * logits, axis=1) - beta * right)
        if labels.dtype.kind == "f":
            return np.mean(logsumexp(beta * logits, axis=1) - beta * (labels * logits).sum(axis=1))
        return np.mean(np.logaddexp(0, np.where(labels.astype(bool), -1, 1) * beta * logits))

    bounds = (np.log(0.01), np.log(100))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))
