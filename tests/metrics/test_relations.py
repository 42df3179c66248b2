import gzip
import random

import numpy as np
import pytest
from sklearn.metrics import f1_score

from keras_bert.metrics.semeval import relation_scores

LABELS = [
    *["Cause-Effect(e1,e2)"] * 4,
    *["Cause-Effect(e2,e1)"] * 2,
    *["Entity-Origin(e1,e2)"] * 3,
    *["Other"] * 3,
]
PREDICTIONS = [
    "Cause-Effect(e1,e2)",
    "Cause-Effect(e1,e2)",
    "Cause-Effect(e2,e1)",  # wrong direction
    "Other",
    "Cause-Effect(e2,e1)",
    "Entity-Origin(e2,e1)",
    "Entity-Origin(e1,e2)",
    "Entity-Origin(e2,e1)",  # wrong direction
    "Other",
    "Cause-Effect(e1,e2)",
    "Other",
    "Other",
]


def test_by_hand():
    scores = relation_scores(LABELS, PREDICTIONS)
    # Cause-Effect: 3 right, 5 predicted in any direction, 6 in the labels; Entity-Origin: 1, 3, 3
    cause, origin, other = 2 * 3 / 11, 2 * 1 / 6, 2 * 2 / 7
    assert scores.f1 == pytest.approx(100 * (cause + origin) / 2)
    assert scores.precision == pytest.approx(100 * (3 / 5 + 1 / 3) / 2)
    assert scores.recall == pytest.approx(100 * (3 / 6 + 1 / 3) / 2)
    assert scores.accuracy == pytest.approx(100 * 6 / 12)
    assert {name: row["f1"] for name, row in scores.by_relation.items()} == pytest.approx(
        {"Cause-Effect": 100 * cause, "Entity-Origin": 100 * origin, "Other": 100 * other}
    )
    assert {name: row["support"] for name, row in scores.by_relation.items()} == {
        "Cause-Effect": 6,
        "Entity-Origin": 3,
        "Other": 3,
    }
    assert scores.names == ("Cause-Effect", "Entity-Origin", "Other")
    assert scores.confusion.tolist() == [[3, 1, 1], [0, 1, 1], [1, 0, 2]]
    assert scores.wrong_direction.tolist() == [1, 1, 0]
    assert (scores.confusion.sum(axis=1) + scores.wrong_direction).tolist() == [6, 3, 3]


def test_the_mean_of_f1_and_not_the_f1_of_the_means():
    labels = ["A-B(e1,e2)"] * 3 + ["C-D(e1,e2)"] * 3
    scores = relation_scores(labels, ["A-B(e1,e2)"] * 5 + ["C-D(e1,e2)"])
    assert scores.f1 == pytest.approx(100 * (6 / 8 + 2 / 4) / 2)
    assert scores.f1 != pytest.approx(
        2 * scores.precision * scores.recall / (scores.precision + scores.recall), abs=0.1
    )


def test_relations_that_no_label_has_are_named_and_not_averaged():
    with pytest.warns(UserWarning, match="not among the labels: E-F, G-H") as caught:
        scores = relation_scores(
            ["A-B(e1,e2)", "A-B(e2,e1)", "Other"], ["A-B(e1,e2)", "G-H(e1,e2)", "E-F(e2,e1)"]
        )
    assert caught[0].filename == __file__
    assert scores.f1 == pytest.approx(100 * 2 / 3) and set(scores.by_relation) == {"A-B", "Other"}
    assert scores.names == ("A-B", "E-F", "G-H", "Other") and scores.confusion.sum() == 3


def test_another_name_of_no_relation():
    scores = relation_scores(["A(e1,e2)", "none"], ["A(e1,e2)", "A(e1,e2)"], other="none")
    assert scores.f1 == pytest.approx(200 / 3) and scores.by_relation["none"]["f1"] == 0


@pytest.mark.parametrize(
    ("labels", "predictions", "message"),
    [
        ([], [], "empty"),
        (["Other"], [], r"labels of shape \[1\] and predictions of shape \[0\]"),
        (["Other"], ["Other"], "all 1 labels are 'Other'"),
        (["A(e1,e2)", "A"], ["Other"] * 2, "The label of example 1 is 'A'; expected RELATION"),
        (["A(e1,e2)"], ["A(e1,e3)"], "The prediction of example 0 is 'A.e1,e3.'"),
        (["A(e1,e2)"], ["other"], "The prediction of example 0 is 'other'"),
        (["A(e1,e2)", ["B"]], ["Other"] * 2, r"The label of example 1 is \['B'\]; expected"),
        (["A(e1,e2)"], [3], "The prediction of example 0 is 3"),
        (["Other(e1,e2)"], ["Other"], "The label of example 0 is 'Other.e1,e2.'"),
    ],
)
def test_what_cannot_be_scored(labels, predictions, message):
    with pytest.raises(ValueError, match=message):
        relation_scores(labels, predictions)


def test_semeval_labels(shared_dir):
    path = shared_dir / "data" / "relation" / "semeval2010_task8" / "TEST_FILE_FULL.TXT.gz"
    labels = gzip.decompress(path.read_bytes()).decode().splitlines()[1::4]
    right = relation_scores(labels, labels)
    assert right.f1 == right.accuracy == 100 and right.confusion.sum() == len(labels) == 2717
    assert len(right.names) == 10 and right.by_relation["Other"]["support"] == 454
    rng = random.Random(0)
    noisy = [label if rng.random() < 0.7 else rng.choice(labels) for label in labels]
    scores = relation_scores(labels, noisy)

    # scikit-learn has no such averaging; where the direction is wrong, the prediction becomes a
    # class of its own, which costs recall, and the relation's precision is made up for by hand.
    relations = [name for name in scores.names if name != "Other"]
    for name in relations:
        of = [label.split("(")[0] == name for label in labels]
        found = [label.split("(")[0] == name for label in noisy]
        hit = np.array([a == b for a, b in zip(labels, noisy, strict=True)]) & of
        assert scores.by_relation[name]["f1"] == pytest.approx(
            200 * hit.sum() / (sum(of) + sum(found))
        )
    # Where directions are never wrong it is scikit-learn's macro F1 over the nine relations.
    plain = [label.split("(")[0] for label in labels]
    swapped = [rng.choice(plain) for _ in plain]
    directed = relation_scores(
        [f"{label}(e1,e2)" if label != "Other" else label for label in plain],
        [f"{label}(e1,e2)" if label != "Other" else label for label in swapped],
    )
    expected = 100 * f1_score(plain, swapped, labels=relations, average="macro")
    assert directed.f1 == pytest.approx(expected)
