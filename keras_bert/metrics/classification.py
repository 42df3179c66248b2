"""GLUE's metrics for classification and regression, and metrics for multi-label problems.

GLUE: Wang et al. 2018, arXiv:1804.07461, table 1. Computed by scikit-learn and scipy, with
added checks: input that would silently give a wrong number (a broadcast shape, NaN logits, swapped
arguments) raises an error.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keras_bert.metrics.multilabel import MULTILABEL_METRICS, multilabel_values, predicted_labels
from keras_bert.metrics.regression import REGRESSION_METRICS, regression_values


def _accuracy(labels: np.ndarray, predictions: np.ndarray) -> float:
    from sklearn.metrics import accuracy_score

    return accuracy_score(labels, predictions)


def _f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    from sklearn.metrics import f1_score

    # zero_division is scikit-learn's default, made explicit to suppress its warning.
    return f1_score(labels, predictions, pos_label=1, zero_division=0.0)


def _macro_f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    from sklearn.metrics import f1_score

    return f1_score(labels, predictions, average="macro", zero_division=0.0)


def _matthews(labels: np.ndarray, predictions: np.ndarray) -> float:
    from sklearn.metrics import matthews_corrcoef

    if len(np.union1d(labels, predictions)) == 1:
        return 0.0  # as in scikit-learn, but without its warning
    return matthews_corrcoef(labels, predictions)


CLASS_METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "matthews": _matthews,
    "macro_f1": _macro_f1,
}

METRICS = tuple(dict.fromkeys([*CLASS_METRICS, *REGRESSION_METRICS, *MULTILABEL_METRICS]))
"""All names that `evaluate` knows."""


def evaluate(
    metric_names: Sequence[str],
    labels: Sequence | np.ndarray,
    outputs: Sequence | np.ndarray,
    thresholds: float | Sequence[float] | np.ndarray | None = None,
) -> dict[str, float]:
    """Scores a model's outputs against labels.

    The names and the shape of the labels determine the kind of problem:

    - single-label, C classes: "accuracy", "f1" (of class 1, two classes only; 0 if there is no
      positive label and no positive prediction), "macro_f1" (the mean over the classes that
      occur among labels or predictions) and "matthews" (Matthews correlation; 0 if all labels or
      all predictions are of the same class). The prediction is the class with the largest output.
    - regression: "pearson", "spearman" (0, with a warning, if all predictions are equal) and
      "mean_squared_error".
    - multi-label, C labels: "micro_f1", "macro_f1" and "samples_f1". A label is predicted if its
      probability reaches its threshold. F1 is 0 without any labels and predictions.

    Args:
        metric_names: names of one of the three kinds.
        labels: N class ids; N numbers, [N] or [N, 1]; or 0 and 1, [N, C].
        outputs: a score for each class, [N, C] with C at least 2 (probabilities give the same
            result as logits); N numbers, [N] or [N, 1]; or probabilities [N, C].
        thresholds: for multi-label: one, or one per class (`tune_thresholds`); 0.5 by default.

    Returns:
        Metric name to value: fractions from 0 to 1, correlations from -1 to 1.

    Raises:
        ValueError: if names are unknown or of several kinds, shapes or lengths do not match, there
            is nothing to score, labels are not integers from 0 to C-1 (or 0 and 1), labels of a
            correlation are all equal, values are NaN, thresholds do not apply, or outputs of a
            multi-label problem are not probabilities.
    """
    unknown = [name for name in metric_names if name not in METRICS]
    if unknown:
        raise ValueError(f"metric_names={unknown}: expected some of {list(METRICS)}")
    labels, outputs = np.asarray(labels), np.asarray(outputs)
    if metric_names and all(name in REGRESSION_METRICS for name in metric_names):
        table, inputs = REGRESSION_METRICS, regression_values(labels, outputs)
    elif labels.ndim == 2 and all(name in MULTILABEL_METRICS for name in metric_names):
        labels, probabilities = multilabel_values(labels, outputs)
        predictions = predicted_labels(probabilities, 0.5 if thresholds is None else thresholds)
        table, inputs = MULTILABEL_METRICS, (labels, predictions)
    elif all(name in CLASS_METRICS for name in metric_names):
        table, inputs = CLASS_METRICS, (labels, _predicted_classes(metric_names, labels, outputs))
    else:
        raise ValueError(
            f"Metrics {list(metric_names)} do not fit labels of shape {list(labels.shape)}: "
            f"expected {list(CLASS_METRICS)} for one class, {list(REGRESSION_METRICS)} for "
            f"numbers, {list(MULTILABEL_METRICS)} for several labels [N, C]"
        )
    if thresholds is not None and table is not MULTILABEL_METRICS:
        raise ValueError(
            f"thresholds: expected None for {list(metric_names)}; they are for several labels"
        )
    return {name: float(table[name](*inputs)) for name in metric_names}


def evaluate_splits(
    metric_names: Sequence[str], splits: Mapping[str, tuple[Sequence, np.ndarray]]
) -> dict[str, float]:
    """`evaluate` on several splits of a data set, such as MNLI's matched and mismatched dev sets.

    Args:
        metric_names: as in `evaluate`.
        splits: (labels, outputs) by name of the split, such as "m" and "mm".

    Returns:
        Values by "METRIC_SPLIT", such as "accuracy_mm".

    Raises:
        ValueError: as in `evaluate`; the message names the split.
    """
    found = {}
    for split, (labels, outputs) in splits.items():
        try:
            scores = evaluate(metric_names, labels, outputs)
        except ValueError as error:
            raise ValueError(f"{split}: {error}") from error
        found |= {f"{name}_{split}": value for name, value in scores.items()}
    return found


def _predicted_classes(metric_names, labels: np.ndarray, logits: np.ndarray) -> np.ndarray:
    if labels.ndim != 1 or logits.ndim != 2 or len(labels) != len(logits) or logits.shape[1] < 2:
        raise ValueError(
            f"labels of shape {list(labels.shape)} and logits of shape {list(logits.shape)}: "
            "expected [N] and [N, C] with C at least 2"
        )
    if not len(labels):
        raise ValueError("Nothing to score: labels and logits are empty.")
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"labels of dtype {labels.dtype}: expected class ids (integers)")
    classes = logits.shape[1]
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(wrong):
        raise ValueError(
            f"label {labels[wrong[0]]} of example {wrong[0]}: expected 0 to {classes - 1}, the "
            f"classes of the logits ({len(wrong)} such)"
        )
    bad = np.flatnonzero(np.isnan(logits).any(axis=1))
    if len(bad):
        raise ValueError(f"NaN in the logits of {len(bad)} examples, the first is {bad[0]}.")
    if "f1" in metric_names and classes != 2:
        raise ValueError(f"metric f1: expected 2 classes, not {classes}; it is that of class 1")
    return logits.argmax(axis=1)
