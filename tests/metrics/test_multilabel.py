import numpy as np
import pytest
from sklearn.metrics import f1_score

from keras_bert.metrics import evaluate, predicted_labels, tune_thresholds

NAMES = ["micro_f1", "macro_f1", "samples_f1"]
LABELS = [[1, 0, 1], [0, 0, 1], [1, 0, 0], [0, 0, 0], [1, 1, 0]]
PROBABILITIES = [
    [0.9, 0.2, 0.5],
    [0.6, 0.1, 0.7],
    [0.4, 0.3, 0.2],
    [0.1, 0.2, 0.3],
    [0.8, 0.4, 0.9],
]


def test_values_by_hand():
    scores = evaluate(NAMES, LABELS, PROBABILITIES)
    # classes: 2 right of 3 predicted and 3 labels; 0 of 0 and 1; 2 of 3 and 2
    # examples: 2 of 2 and 2; 1 of 2 and 1; 0 of 0 and 1; 0 of 0 and 0; 1 of 2 and 2
    assert scores == pytest.approx(
        {
            "micro_f1": 2 * 4 / (6 + 6),
            "macro_f1": (4 / 6 + 0 + 4 / 5) / 3,
            "samples_f1": (1 + 2 / 3 + 0 + 0 + 2 / 4) / 5,
        }
    )


def test_thresholds_of_one_and_of_each_class():
    low = evaluate(["micro_f1"], LABELS, PROBABILITIES, thresholds=0.4)
    assert low == pytest.approx({"micro_f1": 2 * 6 / (8 + 6)})
    each = evaluate(["micro_f1"], LABELS, PROBABILITIES, thresholds=[0.5, 0.4, 0.95])
    assert each == pytest.approx({"micro_f1": 2 * 3 / (4 + 6)})
    assert predicted_labels(np.array(PROBABILITIES), [0.5, 0.4, 0.95]).tolist() == [
        [True, False, False],
        [True, False, False],
        [False, False, False],
        [False, False, False],
        [True, True, False],
    ]


def test_tuned_thresholds_by_hand():
    found = tune_thresholds(LABELS, PROBABILITIES)
    # class 0: 0.4 gives 3 of 4 (F1 6/7); class 1: 0.4 alone; class 2: 0.5 gives 2 of 3 (4/5)
    assert found.tolist() == [0.4, 0.4, 0.5] and found.dtype == "float64"
    tuned = evaluate(["macro_f1"], LABELS, PROBABILITIES, found)["macro_f1"]
    assert tuned == pytest.approx((6 / 7 + 1 + 4 / 5) / 3)


@pytest.mark.parametrize(
    ("labels", "probabilities", "right"),
    [
        ([1, 0], [0.9, 0.1], 0.5),  # 0.5 and 0.9 are as good: the one at 0.5
        ([1, 1, 0, 0], [0.75, 0.25, 0.7, 0.1], 0.25),  # 2 of 3, better than 1 of 1
        ([1, 0, 1, 0, 0], [0.75, 0.6, 0.25, 0.2, 0.1], 0.25),
        # 0.75 (1 of 1) and 0.25 (2 of 4) have F1 2/3, and are equally near: the greater
        ([1, 0, 0, 1, 0], [0.75, 0.7, 0.6, 0.25, 0.1], 0.75),
    ],
)
def test_ties(labels, probabilities, right):
    columns = np.array(labels)[:, None], np.array(probabilities)[:, None]
    assert tune_thresholds(*columns).tolist() == [right]


def test_no_threshold_is_better_than_the_tuned_ones():
    rng = np.random.default_rng(0)
    labels = (rng.random((83, 5)) < [0.5, 0.1, 0.3, 0.9, 0.02]).astype(int)
    labels[0] = 1
    probabilities = np.clip(0.3 * labels + rng.normal(0.3, 0.2, labels.shape), 0, 1)
    probabilities = probabilities.round(2).astype("float32")  # with equal ones
    found = tune_thresholds(labels, probabilities)
    for c in range(5):
        tried = [f1_score(labels[:, c], probabilities[:, c] >= t) for t in np.unique(probabilities)]
        best = f1_score(labels[:, c], probabilities[:, c].astype("float64") >= found[c])
        assert best == pytest.approx(max(tried))
    order = rng.permutation(83)
    assert tune_thresholds(labels[order], probabilities[order]).tolist() == found.tolist()


def test_a_class_without_a_positive_label_keeps_a_half():
    with pytest.warns(UserWarning, match=r"Classes \[1\] have no positive label") as caught:
        found = tune_thresholds([[1, 0], [0, 0]], [[0.3, 0.9], [0.2, 0.1]])
    assert found.tolist() == [0.3, 0.5] and caught[0].filename == __file__


@pytest.mark.parametrize(
    ("labels", "probabilities", "message"),
    [
        (
            np.zeros((2, 3)),
            np.zeros((2, 2)),
            r"of shape \[2, 3\] and .* of shape \[2, 2\]: expected",
        ),
        (np.zeros((0, 3)), np.zeros((0, 3)), "Nothing to score"),
        ([[0, 2]], [[0.1, 0.2]], "label 2 of example 0, class 1: expected 0 or 1"),
        ([[0, 1]], [[0.1, 1.2]], "probability 1.2 of example 0, class 1: expected from 0 to 1"),
        ([[0, 1]], [[np.nan, 0.2]], "probability nan of example 0, class 0"),
    ],
)
def test_inputs_that_cannot_be_scored(labels, probabilities, message):
    with pytest.raises(ValueError, match=message):
        evaluate(["micro_f1"], labels, probabilities)
    with pytest.raises(ValueError, match=message):
        tune_thresholds(labels, probabilities)


@pytest.mark.parametrize("thresholds", [[0.5, 0.5], np.nan, [[0.5] * 3]])
def test_thresholds_that_fit_no_class(thresholds):
    with pytest.raises(
        ValueError, match="thresholds=.*: expected one, or one for each of 3 classes"
    ):
        evaluate(["micro_f1"], LABELS, PROBABILITIES, thresholds)
