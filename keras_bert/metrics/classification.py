"""GLUE's metrics for classification and regression, and metrics for multi-label problems.

GLUE: Wang et al. 2018, arXiv:1804.07461, table 1. Computed by scikit-learn and scipy, with
added checks: input that would silently give a wrong number (a broadcast shape, NaN logits, swapped
arguments) raises an error.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keras_bert.metrics.multilabel import multilabel_values, predicted_labels
from keras_bert.metrics.score_inputs import check_shapes, check_values

Score = Callable[[np.ndarray, np.ndarray], float]


def _scikit(name: str, **options) -> Score:
    def score(labels, predictions):
        import sklearn.metrics

        return getattr(sklearn.metrics, name)(labels, predictions, **options)

    return score


def _f1(**options) -> Score:
    # zero_division is scikit-learn's default, made explicit to suppress its warning.
    return _scikit("f1_score", zero_division=0.0, **options)


def _matthews(labels: np.ndarray, predictions: np.ndarray) -> float:
    if len(np.union1d(labels, predictions)) == 1:
        return 0.0  # as in scikit-learn, but without its warning
    return _scikit("matthews_corrcoef")(labels, predictions)


def _correlation(name: str) -> Score:
    """A correlation of scipy's; 0 with a warning instead of NaN if all predictions are equal.

    Labels that are all equal are an error, because nothing can be measured on them.
    """

    def score(labels, predictions):
        import scipy.stats

        if labels.min() == labels.max():
            raise ValueError(
                f"labels, {len(labels)} times {labels[0]}: expected different values for a "
                "correlation"
            )
        if predictions.min() == predictions.max():
            warnings.warn(
                f"All predictions are {predictions[0]}: the correlation is undefined and counts as "
                "0.",
                stacklevel=4,
            )
            return 0.0
        return getattr(scipy.stats, name)(labels, predictions).statistic

    return score


CLASS_METRICS = {
    "accuracy": _scikit("accuracy_score"),
    "f1": _f1(pos_label=1),
    "matthews": _matthews,
    "macro_f1": _f1(average="macro"),
}
REGRESSION_METRICS = {
    "pearson": _correlation("pearsonr"),
    "spearman": _correlation("spearmanr"),
    "mean_squared_error": _scikit("mean_squared_error"),
}
MULTILABEL_METRICS = {f"{name}_f1": _f1(average=name) for name in ("micro", "macro", "samples")}
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
      probability reaches its threshold. As in scikit-learn, F1 of a class (or, averaged over
      samples, of an example) without labels and predictions is 0.

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
        table, inputs = REGRESSION_METRICS, _numbers(labels, outputs)
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


def _numbers(labels: np.ndarray, predictions: np.ndarray) -> list[np.ndarray]:
    """Labels and predictions as float64 [N]; a model with one output returns a column."""
    found = [
        values[:, 0] if values.shape[1:] == (1,) else values
        for values in (labels.astype("float64"), predictions.astype("float64"))
    ]
    check_shapes(labels=(found[0], "N"), predictions=(found[1], "N"))
    for name, values in zip(("label", "prediction"), found, strict=True):
        check_values(name, values, np.isfinite(values), "a finite number")
    return found


def _predicted_classes(metric_names, labels: np.ndarray, logits: np.ndarray) -> np.ndarray:
    check_shapes(labels=(labels, "N"), logits=(logits, "NC"))
    classes = logits.shape[1]
    if classes < 2 or ("f1" in metric_names and classes != 2):
        many = "2 classes" if "f1" in metric_names else "2 classes or more"
        raise ValueError(f"metrics {list(metric_names)}: expected {many}, not {classes}")
    integers = np.issubdtype(labels.dtype, np.integer)
    known = (labels >= 0) & (labels < classes) if integers else np.zeros(len(labels), bool)
    ids = f"an integer from 0 to {classes - 1}, a class of the logits"
    check_values("label" if integers else f"{labels.dtype} label", labels, known, ids)
    check_values("logit", logits, ~np.isnan(logits), "a number")
    return logits.argmax(axis=1)
