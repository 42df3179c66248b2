import math
import warnings

import numpy as np
import pytest

from keras_bert.metrics.classification import evaluate

# 3 true positives, 1 false positive, 2 false negatives, 5 true negatives
LABELS = [1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0]
PREDICTED = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]


def logits_for(predictions, classes=2):
    return 3.0 * np.eye(classes, dtype="float32")[predictions] - 5.0


def test_values_by_hand():
    scores = evaluate(["accuracy", "f1", "matthews"], LABELS, logits_for(PREDICTED))
    assert scores == pytest.approx(
        {
            "accuracy": 8 / 11,
            "f1": 2 * 3 / (2 * 3 + 1 + 2),
            "matthews": (3 * 5 - 1 * 2) / math.sqrt((3 + 1) * (3 + 2) * (5 + 1) * (5 + 2)),
        }
    )
    assert list(scores) == ["accuracy", "f1", "matthews"]
    assert all(type(value) is float for value in scores.values())


def test_f1_is_of_class_one():
    """Labels and predictions turned round: other F1, same accuracy and Matthews."""
    turned = [1 - label for label in LABELS]
    scores = evaluate(["accuracy", "f1"], turned, logits_for([1 - p for p in PREDICTED]))
    assert scores == pytest.approx({"accuracy": 8 / 11, "f1": 2 * 5 / (2 * 5 + 2 + 1)})


def test_perfect_opposite_and_constant():
    names = ["accuracy", "f1", "matthews"]
    assert evaluate(names, LABELS, logits_for(LABELS)) == {"accuracy": 1, "f1": 1, "matthews": 1}
    opposite = evaluate(names, LABELS, logits_for([1 - label for label in LABELS]))
    assert opposite == {"accuracy": 0, "f1": 0, "matthews": -1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluate(names, LABELS, logits_for([0] * 11)) == pytest.approx(
            {"accuracy": 6 / 11, "f1": 0, "matthews": 0}
        )
        assert evaluate(names, [0, 0], logits_for([0, 0])) == {
            "accuracy": 1,
            "f1": 0,
            "matthews": 0,
        }


def test_three_classes():
    scores = evaluate(["accuracy", "matthews"], [0, 1, 2, 2, 1], logits_for([0, 1, 2, 1, 1], 3))
    # R_K = (c s - sum p t) / sqrt((s^2 - sum p^2)(s^2 - sum t^2)), c right of s
    matthews = (4 * 5 - (1 * 1 + 3 * 2 + 1 * 2)) / math.sqrt((25 - 11) * (25 - 9))
    assert scores == pytest.approx({"accuracy": 0.8, "matthews": matthews})


@pytest.mark.parametrize(
    ("labels", "logits", "message"),
    [
        ([0, 1, 1], np.zeros((2, 2)), r"got \[3\] and \[2, 2\]"),
        ([[0], [1]], np.zeros((2, 2)), r"got \[2, 1\] and \[2, 2\]"),
        ([0, 1], np.zeros((2, 1)), "C at least 2"),
        ([0, 1], np.zeros(2), r"got \[2\] and \[2\]"),
        ([], np.zeros((0, 2)), "Nothing to score"),
        ([0.0, 1.0], np.zeros((2, 2)), "dtype float64"),
        ([0, 2], np.zeros((2, 2)), "Label 2 of example 1 is not from 0 to 1"),
        ([0, -1], np.zeros((2, 2)), "Label -1 of example 1"),
        ([0, 1], np.array([[0.0, 1.0], [np.nan, 0.0]]), "NaN in the logits of 1 examples"),
    ],
)
def test_inputs_that_cannot_be_scored(labels, logits, message):
    with pytest.raises(ValueError, match=message):
        evaluate(["accuracy"], labels, logits)


def test_unknown_metric_and_f1_of_three_classes():
    with pytest.raises(ValueError, match=r"Unknown metrics \['F1'\]; known are \['accuracy'"):
        evaluate(["F1"], [0], np.zeros((1, 2)))
    with pytest.raises(ValueError, match="there are 3 classes"):
        evaluate(["f1"], [0], np.zeros((1, 3)))
