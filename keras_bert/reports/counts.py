"""The numbers behind a report's pictures."""

from typing import NamedTuple

import numpy as np


class ClassScores(NamedTuple):
    """Scores of each class, [K].

    Attributes:
        precision: share of the predictions of a class that are right; 0 without predictions.
        recall: share of the examples of a class that are found; 0 without examples.
        f1: their harmonic mean; 0 where both are.
        support: examples of a class.
    """

    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray
    support: np.ndarray


class Calibration(NamedTuple):
    """How often predictions of like confidence are right, by bins of equal width.

    Attributes:
        confidence: mean probability of the predicted class in each bin, [bins]; NaN where empty.
        accuracy: share that is right, [bins]; NaN where empty.
        count: predictions in each bin, [bins].
        expected_error: mean of |confidence - accuracy| over predictions (Guo et al. 2017, ECE).
    """

    confidence: np.ndarray
    accuracy: np.ndarray
    count: np.ndarray
    expected_error: float


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities [N, K] of logits [N, K], in float64."""
    logits = np.asarray(logits, "float64")
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponents / exponents.sum(axis=1, keepdims=True)


def confusion(labels: np.ndarray, predictions: np.ndarray, num_classes: int) -> np.ndarray:
    """int64 [K, K]: how many examples of a class, by row, were given a class, by column."""
    cells = np.asarray(labels) * num_classes + np.asarray(predictions)
    return np.bincount(cells, minlength=num_classes**2).reshape(num_classes, num_classes)


def class_scores(matrix: np.ndarray) -> ClassScores:
    """Scores of each class of a confusion matrix [K, K]."""
    right, given, support = np.diag(matrix), matrix.sum(axis=0), matrix.sum(axis=1)
    precision = right / np.maximum(given, 1)
    recall = right / np.maximum(support, 1)
    f1 = 2 * right / np.maximum(given + support, 1)
    return ClassScores(precision, recall, f1, support)


def calibration(labels: np.ndarray, probabilities: np.ndarray, bins: int = 10) -> Calibration:
    """Groups predictions by the probability of the predicted class.

    Args:
        labels: class ids [N].
        probabilities: [N, K].
        bins: how many, of equal width over 0 to 1; a probability of 1 is in the last.
    """
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == np.asarray(labels)
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    count = np.bincount(place, minlength=bins)
    sums = [np.bincount(place, weights=v, minlength=bins) for v in (confidence, right)]
    with np.errstate(invalid="ignore"):
        mean_confidence, accuracy = (total / count for total in sums)
    error = np.abs(sums[0] - sums[1]).sum() / max(len(confidence), 1)
    return Calibration(mean_confidence, accuracy, count, float(error))
