import numpy as np
import pytest
import scipy.stats

from keras_bert.metrics import evaluate

NAMES = ["pearson", "spearman", "mean_squared_error"]
LABELS = [0.0, 1.0, 2.5, 2.5, 5.0]
PREDICTED = [0.5, 0.4, 3.0, 2.0, 4.0]


def test_values_by_hand():
    scores = evaluate(NAMES, LABELS, PREDICTED)
    x, y = np.array(LABELS) - np.mean(LABELS), np.array(PREDICTED) - np.mean(PREDICTED)
    ranks, found = np.array([1, 2, 3.5, 3.5, 5]) - 3, np.array([2, 1, 4, 3, 5]) - 3
    assert scores == pytest.approx(
        {
            "pearson": x @ y / np.sqrt(x @ x * (y @ y)),
            "spearman": ranks @ found / np.sqrt(ranks @ ranks * (found @ found)),
            "mean_squared_error": (0.25 + 0.36 + 0.25 + 0.25 + 1) / 5,
        }
    )
    assert list(scores) == NAMES and all(type(value) is float for value in scores.values())


def test_order_without_size():
    cubes = [x**3 for x in LABELS]
    scores = evaluate(["pearson", "spearman"], LABELS, cubes)
    assert scores["spearman"] == pytest.approx(1) and scores["pearson"] < 0.95
    assert evaluate(["spearman"], LABELS, [-x for x in LABELS])["spearman"] == pytest.approx(-1)


def test_a_column_and_a_vector_do_not_broadcast():
    assert evaluate(["mean_squared_error"], [1, 2], [[1], [2]]) == {"mean_squared_error": 0.0}
    column = np.array(PREDICTED, "float32")[:, None]
    flat = evaluate(NAMES, LABELS, PREDICTED)
    assert evaluate(NAMES, LABELS, column) == pytest.approx(flat, rel=1e-6)
    assert evaluate(NAMES, np.array(LABELS)[:, None], column) == pytest.approx(flat, rel=1e-6)


def test_float32_is_scored_as_scipy_scores_float64():
    rng = np.random.default_rng(0)
    labels = rng.uniform(0, 5, 1501).astype("float32")
    predictions = (labels + rng.normal(size=1501)).astype("float32")
    scores = evaluate(["pearson", "spearman"], labels, predictions)
    double = labels.astype("float64"), predictions.astype("float64")
    assert scores["pearson"] == pytest.approx(scipy.stats.pearsonr(*double).statistic, abs=1e-12)
    assert scores["spearman"] == pytest.approx(scipy.stats.spearmanr(*double).statistic, abs=1e-12)


def test_equal_predictions_have_no_correlation_and_equal_labels_cannot_be_scored():
    with pytest.warns(UserWarning, match="All predictions are 2.5: the correlation is undefined"):
        assert evaluate(["pearson"], LABELS, [2.5] * 5) == {"pearson": 0.0}
    with pytest.raises(ValueError, match="labels, 3 times 2.0: expected different values"):
        evaluate(["spearman"], [2, 2, 2], [1, 2, 3])
    assert evaluate(["mean_squared_error"], [2, 2], [1, 2]) == {"mean_squared_error": 0.5}


@pytest.mark.parametrize(
    ("labels", "predictions", "message"),
    [
        ([], [], "Nothing to score"),
        ([1.0, 2.0], [1.0], r"of shape \[2\] and .* of shape \[1\]: expected"),
        ([1.0, 2.0], [[1.0, 2.0]], r"of shape \[2\] and .* of shape \[1, 2\]: expected"),
        ([1.0, 2.0], 1.0, r"of shape \[2\] and .* of shape \[\]: expected"),
        (
            [1.0, 2.0],
            [1.0, np.nan],
            "prediction nan of example 1: expected a finite number",
        ),
        ([np.inf, 2.0], [1.0, 2.0], "label inf of example 0: expected a finite number"),
    ],
)
def test_inputs_that_cannot_be_scored(labels, predictions, message):
    with pytest.raises(ValueError, match=message):
        evaluate(["pearson"], labels, predictions)
