"""Metrics of regression, as reported by GLUE for STS-B."""

import warnings

import numpy as np


def regression_values(labels, predictions) -> tuple[np.ndarray, np.ndarray]:
    """Checks and returns labels and predictions as two float64 vectors of equal length.

    Args:
        labels: numbers [N] or [N, 1].
        predictions: numbers [N] or [N, 1]; the shapes may differ, because a model with one output
            returns a column.

    Raises:
        ValueError: if shapes do not match, there is nothing to score, or values are not finite.
    """
    found = []
    shapes = [list(np.shape(labels)), list(np.shape(predictions))]
    for what, values in (("labels", labels), ("predictions", predictions)):
        values = np.asarray(values, "float64")
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise ValueError(
                f"labels of shape {shapes[0]} and predictions of shape {shapes[1]}: expected [N] "
                "or [N, 1]"
            )
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise ValueError(
                f"{what} of {len(bad)} examples: expected finite numbers; the first is "
                f"{values[bad[0]]} of example {bad[0]}"
            )
        found.append(values)
    if len(found[0]) != len(found[1]):
        raise ValueError(
            f"got {len(found[0])} labels and {len(found[1])} predictions: expected as many of both"
        )
    if not len(found[0]):
        raise ValueError("Nothing to score: labels and predictions are empty.")
    return found[0], found[1]


def pearson(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Pearson correlation; see `_correlation` for undefined cases."""
    from scipy.stats import pearsonr

    return _correlation(pearsonr, labels, predictions)


def spearman(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Spearman's rank correlation; ties get their mean rank."""
    from scipy.stats import spearmanr

    return _correlation(spearmanr, labels, predictions)


def mean_squared_error(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Mean of the squared differences."""
    from sklearn.metrics import mean_squared_error

    return mean_squared_error(labels, predictions)


def _correlation(function, labels, predictions):
    """A correlation; 0 with a warning instead of NaN if all predictions are equal.

    Labels that are all equal are an error, because nothing can be measured on them.
    """
    if labels.min() == labels.max():
        raise ValueError(
            f"labels, {len(labels)} times {labels[0]}: expected different values for a correlation"
        )
    if predictions.min() == predictions.max():
        warnings.warn(
            f"All predictions are {predictions[0]}: the correlation is undefined and counts as 0.",
            stacklevel=4,
        )
        return 0.0
    return function(labels, predictions).statistic


REGRESSION_METRICS = {
    "pearson": pearson,
    "spearman": spearman,
    "mean_squared_error": mean_squared_error,
}
