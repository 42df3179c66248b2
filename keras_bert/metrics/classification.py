"""Metrics of classification as GLUE reports them (Wang et al. 2018, arXiv:1804.07461, table 1).

The arithmetic is scikit-learn's; what is added here is that inputs which would give a wrong number
in silence (a broadcast shape, NaN logits, swapped arguments) raise instead.
"""

from collections.abc import Callable, Sequence

import numpy as np


def _accuracy(labels: np.ndarray, predictions: np.ndarray) -> float:
    from sklearn.metrics import accuracy_score

    return accuracy_score(labels, predictions)


def _f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    from sklearn.metrics import f1_score

    # zero_division is what scikit-learn does by default, said aloud so that it does not warn.
    return f1_score(labels, predictions, pos_label=1, zero_division=0.0)


def _matthews(labels: np.ndarray, predictions: np.ndarray) -> float:
    from sklearn.metrics import matthews_corrcoef

    if len(np.union1d(labels, predictions)) == 1:
        return 0.0  # scikit-learn says 0 as well, but warns
    return matthews_corrcoef(labels, predictions)


METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "matthews": _matthews,
}


def evaluate(
    metric_names: Sequence[str], labels: Sequence[int] | np.ndarray, logits: np.ndarray
) -> dict[str, float]:
    """Scores logits against labels; the prediction is the class of the greatest logit.

    Args:
        metric_names: any of "accuracy", "f1" (of class 1, two classes only; 0 if there is no
            positive label and no positive prediction) and "matthews" (Matthews correlation; 0 if
            all labels or all predictions are of one class).
        labels: N class ids.
        logits: N rows of one score for each class, shape [N, C] with C at least 2; probabilities
            give the same result.

    Returns:
        Metric name to value: fractions from 0 to 1, Matthews from -1 to 1.

    Raises:
        ValueError: for an unknown metric, shapes other than [N] and [N, C], nothing to score,
            labels that are not whole numbers from 0 to C-1, or NaN among the logits.
    """
    unknown = [name for name in metric_names if name not in METRICS]
    if unknown:
        raise ValueError(f"Unknown metrics {unknown}; known are {list(METRICS)}.")
    labels, logits = np.asarray(labels), np.asarray(logits)
    if labels.ndim != 1 or logits.ndim != 2 or len(labels) != len(logits) or logits.shape[1] < 2:
        raise ValueError(
            "Expected labels of shape [N] and logits of shape [N, C] with C at least 2, got "
            f"{list(labels.shape)} and {list(logits.shape)}."
        )
    if not len(labels):
        raise ValueError("Nothing to score: labels and logits are empty.")
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"Labels should be class ids (integers), got dtype {labels.dtype}.")
    classes = logits.shape[1]
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(wrong):
        raise ValueError(
            f"Label {labels[wrong[0]]} of example {wrong[0]} is not from 0 to {classes - 1}, the "
            f"classes of the logits ({len(wrong)} such)."
        )
    bad = np.flatnonzero(np.isnan(logits).any(axis=1))
    if len(bad):
        raise ValueError(f"NaN in the logits of {len(bad)} examples, the first is {bad[0]}.")
    if "f1" in metric_names and classes != 2:
        raise ValueError(f"f1 is that of class 1 against class 0, but there are {classes} classes.")
    predictions = logits.argmax(axis=1)
    return {name: float(METRICS[name](labels, predictions)) for name in metric_names}
