"""Labels predicted for multi-label classification, and their thresholds."""

import warnings
from collections.abc import Sequence

import numpy as np

from keras_bert.metrics.score_inputs import check_shapes, check_values


def multilabel_values(labels, probabilities) -> tuple[np.ndarray, np.ndarray]:
    """Checks and returns labels as bool, and probabilities, both [N, C]."""
    labels, probabilities = np.asarray(labels), np.asarray(probabilities)
    check_shapes(labels=(labels, "NC"), probabilities=(probabilities, "NC"))
    check_values("label", labels, (labels == 0) | (labels == 1), "0 or 1")
    chances = (probabilities >= 0) & (probabilities <= 1)
    check_values("probability", probabilities, chances, "from 0 to 1 (the sigmoid of a logit)")
    return labels == 1, probabilities


def predicted_labels(
    probabilities: np.ndarray, thresholds: float | Sequence[float] | np.ndarray
) -> np.ndarray:
    """Predicts the labels whose probability reaches the threshold.

    Args:
        probabilities: float [N, C].
        thresholds: one for all classes, or [C].

    Returns:
        bool [N, C].

    Raises:
        ValueError: if thresholds have another shape or are NaN.
    """
    thresholds = np.asarray(thresholds, "float64")
    if thresholds.shape not in ((), probabilities.shape[1:]) or np.isnan(thresholds).any():
        raise ValueError(
            f"thresholds={thresholds.tolist()}: expected one, or one for each of "
            f"{probabilities.shape[1]} classes"
        )
    return probabilities >= thresholds


def tune_thresholds(
    labels: Sequence[Sequence[int]] | np.ndarray, probabilities: np.ndarray
) -> np.ndarray:
    """Finds the threshold with the highest F1 for each class; use held-out data.

    Candidates are 0.5 and all probabilities that occur. Ties go to the threshold closest to 0.5,
    then to the larger.

    Args:
        labels: 0 or 1, [N, C].
        probabilities: float [N, C], from 0 to 1.

    Returns:
        float64 thresholds [C], for `predicted_labels`. A class without a positive label keeps
        0.5, and a warning names it.

    Raises:
        ValueError: as in `multilabel_values`.
    """
    labels, probabilities = multilabel_values(labels, probabilities)
    bare = np.flatnonzero(~labels.any(axis=0))
    if len(bare):
        warnings.warn(
            f"Classes {bare.tolist()} have no positive label: their threshold stays 0.5.",
            stacklevel=2,
        )
    columns = zip(labels.T, probabilities.T.astype("float64"), strict=True)
    return np.array([_best_threshold(*column) for column in columns])


def _best_threshold(labels: np.ndarray, probabilities: np.ndarray) -> float:
    tried = np.union1d(probabilities, 0.5)
    # Number of all examples, and of positive ones, whose probability reaches each threshold.
    reached = len(labels) - np.searchsorted(np.sort(probabilities), tried)
    positives = np.sort(probabilities[labels])
    hits = len(positives) - np.searchsorted(positives, tried)
    f1 = 2 * hits / np.maximum(reached + len(positives), 1)
    best = tried[f1 == f1.max()]  # equal fractions are equal floats: division is correctly rounded
    return float(min(best, key=lambda threshold: (abs(threshold - 0.5), -threshold)))
