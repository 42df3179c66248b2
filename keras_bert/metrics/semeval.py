"""Scores of directed relations, as computed by the official scorer of SemEval-2010 Task 8.

Hendrickx et al. 2010, aclanthology.org/S10-1006, section 5, and semeval2010_task8_scorer-v1.2.pl:
"(9+1)-way evaluation with directionality taken into account". A prediction of the correct
relation in the wrong direction counts as a prediction of that relation, and as wrong.
"""

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_bert.metrics.score_inputs import check_shapes

_DIRECTED = re.compile(r"(.+)\((?:e1,e2|e2,e1)\)")


@dataclass(frozen=True)
class RelationScores:
    """Scores in percent, and the counts behind them.

    Attributes:
        f1: the official score, the mean F1 of the relations without `other`.
        precision: their mean precision.
        recall: their mean recall.
        by_relation: precision, recall, F1 and number of labels ("support") of each relation in
            the labels, and of `other`.
        accuracy: fraction of correct predictions, including direction and `other`.
        names: the relations in labels or predictions, sorted, `other` last.
        confusion: int64 [N, N], by label and prediction in the order of `names`. The diagonal
            counts only predictions with the correct direction.
        wrong_direction: int64 [N], by label: the correct relation in the wrong direction. Together
            with the row of `confusion` it sums to the number of labels.
    """

    f1: float
    precision: float
    recall: float
    by_relation: dict[str, dict[str, float]]
    accuracy: float
    names: tuple[str, ...]
    confusion: np.ndarray
    wrong_direction: np.ndarray


def relation_scores(
    labels: Sequence[str], predictions: Sequence[str], other: str = "Other"
) -> RelationScores:
    """Scores predicted relations.

    Args:
        labels: the true relations, such as "Cause-Effect(e2,e1)", or `other`.
        predictions: the predictions, of the same form. Use `other` for a skipped example, as the
            official scorer does.
        other: the label for no relation, without direction.

    Returns:
        `RelationScores`. The means are over the relations in the labels; predictions of others
        only lower recall, as in the official scorer, and a warning names them.

    Raises:
        ValueError: if the numbers differ or are 0, a label has another form, or no label is a
            relation.
    """
    # Their numbers alone: what is no label is named below, with its place.
    check_shapes(labels=(range(len(labels)), "N"), predictions=(range(len(predictions)), "N"))
    right = [_relation(label, i, "label", other) for i, label in enumerate(labels)]
    found = [_relation(label, i, "prediction", other) for i, label in enumerate(predictions)]
    scored = sorted(set(right) - {other})
    if not scored:
        raise ValueError(f"Nothing to score: all {len(labels)} labels are {other!r}")
    strays = sorted(set(found) - set(right) - {other})
    if strays:
        warnings.warn(
            f"Predicted relations that are not among the labels: {', '.join(strays)}.", stacklevel=2
        )
    names = (*sorted({*scored, *strays}), other)
    place = {name: i for i, name in enumerate(names)}
    confusion = np.zeros((len(names), len(names)), "int64")
    wrong_direction = np.zeros(len(names), "int64")
    for label, prediction, row, column in zip(labels, predictions, right, found, strict=True):
        if row == column and label != prediction:
            wrong_direction[place[row]] += 1
        else:
            confusion[place[row], place[column]] += 1
    correct = {name: int(confusion[place[name], place[name]]) for name in names}
    in_labels, in_predictions = Counter(right), Counter(found)
    by_relation = {
        name: _scores(correct[name], in_predictions[name], in_labels[name])
        for name in (*scored, other)
    }
    means = {
        key: sum(by_relation[name][key] for name in scored) / len(scored)
        for key in ("f1", "precision", "recall")
    }
    return RelationScores(
        **means,
        by_relation=by_relation,
        accuracy=100.0 * sum(correct.values()) / len(labels),
        names=names,
        confusion=confusion,
        wrong_direction=wrong_direction,
    )


def is_relation(label: str, other: str = "Other") -> bool:
    """Whether a label is a directed relation, or `other`."""
    return label == other or _DIRECTED.fullmatch(label) is not None


def _relation(label: str, place: int, what: str, other: str) -> str:
    if label == other:
        return other
    parts = _DIRECTED.fullmatch(label) if isinstance(label, str) else None
    if not parts or parts[1] == other:
        raise ValueError(
            f"The {what} of example {place} is {label!r}; expected RELATION(e1,e2), "
            f"RELATION(e2,e1) or {other}"
        )
    return parts[1]


def _scores(correct: int, predicted: int, labelled: int) -> dict[str, float]:
    return {
        "precision": 100.0 * correct / predicted if predicted else 0.0,
        "recall": 100.0 * correct / labelled if labelled else 0.0,
        "f1": 200.0 * correct / (predicted + labelled) if correct else 0.0,
        "support": labelled,
    }
