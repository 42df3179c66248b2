import math
import warnings

import numpy as np
import pytest

from keras_bert.metrics.classification import METRICS, evaluate, evaluate_splits

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


def test_macro_f1_is_over_the_classes_that_occur():
    # class 0: 1 right of 1 and 1; 1: 2 of 3 and 2; 2: 1 of 1 and 2; classes 3 and 4: nowhere
    scores = evaluate(["macro_f1"], [0, 1, 2, 2, 1], logits_for([0, 1, 2, 1, 1], 5))
    assert scores == pytest.approx({"macro_f1": (1 + 4 / 5 + 2 / 3) / 3})
    assert evaluate(["macro_f1"], [0, 0], logits_for([0, 0])) == {"macro_f1": 1}


def test_matched_and_mismatched():
    splits = {
        "m": ([0, 1, 2], logits_for([0, 1, 1], 3)),
        "mm": ([2, 2, 2, 0], logits_for([2, 0, 1, 1], 3)),
    }
    scores = evaluate_splits(["accuracy"], splits)
    assert scores == pytest.approx({"accuracy_m": 2 / 3, "accuracy_mm": 1 / 4})
    splits["mm"] = ([], np.zeros((0, 3)))
    with pytest.raises(ValueError, match="^mm: Nothing to score"):
        evaluate_splits(["accuracy"], splits)


@pytest.mark.parametrize(
    ("names", "labels", "outputs", "message"),
    [
        (["accuracy", "pearson"], [0, 1], np.zeros((2, 2)), r"do not fit labels of shape \[2\]"),
        (["micro_f1"], [0, 1], np.zeros((2, 2)), "do not fit labels of shape"),
        (["micro_f1", "accuracy"], [[0, 1]], np.zeros((1, 2)), r"labels of shape \[1, 2\]"),
    ],
)
def test_names_of_several_kinds(names, labels, outputs, message):
    with pytest.raises(ValueError, match=message):
        evaluate(names, labels, outputs)


def test_thresholds_where_none_apply():
    for names, outputs in ((["accuracy"], np.zeros((2, 2))), (["pearson"], [0.5, 0.7])):
        with pytest.raises(ValueError, match="thresholds: expected None for .*several labels"):
            evaluate(names, [0, 1], outputs, thresholds=0.5)


def test_all_names_are_listed_once():
    assert len(set(METRICS)) == len(METRICS) and {"accuracy", "spearman", "samples_f1"} < set(
        METRICS
    )


@pytest.mark.parametrize(
    ("labels", "logits", "message"),
    [
        ([0, 1, 1], np.zeros((2, 2)), r"of shape \[3\] and .* of shape \[2, 2\]: expected"),
        ([[0], [1]], np.zeros((2, 2)), r"of shape \[2, 1\] and .* of shape \[2, 2\]: expected"),
        ([0, 1], np.zeros((2, 1)), "expected 2 classes or more, not 1"),
        ([0, 1], np.zeros(2), r"of shape \[2\] and .* of shape \[2\]: expected"),
        ([], np.zeros((0, 2)), "Nothing to score"),
        ([0.0, 1.0], np.zeros((2, 2)), "label 0.0 of example 0: expected an integer from 0 to 1"),
        (["0", "1"], np.zeros((2, 2)), "^<U1 label 0 of example 0: expected an integer"),
        ([0, 2], np.zeros((2, 2)), "label 2 of example 1: expected an integer from 0 to 1"),
        ([0, -1], np.zeros((2, 2)), "label -1 of example 1"),
        (
            [0, 1],
            np.array([[0.0, 1.0], [np.nan, 0.0]]),
            "logit nan of example 1, class 0: expected",
        ),
    ],
)
def test_inputs_that_cannot_be_scored(labels, logits, message):
    with pytest.raises(ValueError, match=message):
        evaluate(["accuracy"], labels, logits)


def test_unknown_metric_and_f1_of_three_classes():
    with pytest.raises(ValueError, match=r"metric_names=\['F1'\]: expected some of \['accuracy'"):
        evaluate(["F1"], [0], np.zeros((1, 2)))
    with pytest.raises(ValueError, match="expected 2 classes, not 3"):
        evaluate(["f1"], [0], np.zeros((1, 3)))
