import itertools
import random

import pytest

from keras_bert.metrics.entity_f1 import entity_scores, tagging_scores
from keras_bert.metrics.tag_schemes import to_iobes

pytest.importorskip("seqeval")

RIGHT = ["B-PER I-PER O B-LOC O".split(), "B-ORG B-ORG I-ORG".split(), ["O"]]
FOUND = ["B-PER I-PER O I-LOC O".split(), "B-ORG I-ORG I-ORG".split(), ["B-LOC"]]


def row(right, predicted, labelled):
    precision, recall = right / predicted if predicted else 0.0, right / labelled if labelled else 0
    f1 = 2 * right / (predicted + labelled) if right else 0.0
    return {"precision": precision, "recall": recall, "f1": f1, "support": labelled}


def approximately(scores):
    plain = {k: pytest.approx(v) for k, v in scores.items() if k != "types"}
    types = {k: pytest.approx(v) for k, v in scores.get("types", {}).items()}
    return plain | {"types": types}


def test_by_hand_in_both_modes():
    """I-LOC after O is no entity in strict mode; conlleval takes it for one."""
    assert entity_scores(RIGHT, FOUND) == approximately(
        row(1, 3, 4) | {"types": {"LOC": row(0, 1, 1), "ORG": row(0, 1, 2), "PER": row(1, 1, 1)}}
    )
    assert entity_scores(RIGHT, FOUND, mode="conlleval") == approximately(
        row(2, 4, 4) | {"types": {"LOC": row(1, 2, 1), "ORG": row(0, 1, 2), "PER": row(1, 1, 1)}}
    )


def test_iobes_by_hand():
    right = ["B-PER E-PER O S-LOC S-LOC".split()]
    found = ["B-PER I-PER O S-LOC E-LOC".split()]
    assert entity_scores(right, found, "IOBES") == approximately(
        row(1, 1, 3) | {"types": {"LOC": row(1, 1, 2), "PER": row(0, 0, 1)}}
    )
    assert entity_scores(right, found, "IOBES", "conlleval") == approximately(
        row(3, 3, 3) | {"types": {"LOC": row(2, 2, 2), "PER": row(1, 1, 1)}}
    )


def test_perfect_in_every_scheme_and_mode():
    whole = row(4, 4, 4) | {
        "types": {"LOC": row(1, 1, 1), "ORG": row(2, 2, 2), "PER": row(1, 1, 1)}
    }
    for mode in ("strict", "conlleval"):
        assert entity_scores(RIGHT, RIGHT, mode=mode) == whole
        tags = to_iobes(RIGHT, "IOB2")
        assert entity_scores(tags, tags, "IOBES", mode) == whole


def strict_iob2(tags):
    """Entities found in another way: a B and all the I of its type that follow at once."""
    found = set()
    for i, tag in enumerate(tags):
        if tag[0] == "B":
            rest = itertools.takewhile(lambda t, kind=tag[1:]: t == f"I{kind}", tags[i + 1 :])
            found.add((tag[2:], i, i + 1 + len(list(rest))))
    return found


def test_random_predictions_against_sets_of_entities():
    rng = random.Random(0)
    every = ["O", "O", "B-X", "I-X", "B-Y", "I-Y"]
    found = [[rng.choice(every) for _ in range(rng.randint(1, 9))] for _ in range(300)]
    right = [[rng.choice(["O", "B-X", "B-Y"]) for _ in tags] for tags in found]
    hits = sum(len(strict_iob2(a) & strict_iob2(b)) for a, b in zip(right, found, strict=True))
    sizes = [sum(len(strict_iob2(tags)) for tags in part) for part in (found, right)]
    strict, lenient = (entity_scores(right, found, mode=m) for m in ("strict", "conlleval"))
    del strict["types"]
    assert strict == pytest.approx(row(hits, *sizes)) and hits > 50
    assert lenient["recall"] > strict["recall"]


@pytest.mark.parametrize("letters", ["BI", "BIES", "BMES", "BILU"])
def test_random_predictions_are_counted_as_seqeval_does(letters):
    from seqeval.metrics.sequence_labeling import precision_recall_fscore_support

    rng = random.Random(0)
    every = ["O", "O", *(f"{letter}-{kind}" for letter in letters for kind in "XY")]
    right, found = ([[rng.choice(every) for _ in range(n)] for n in range(1, 60)] for _ in "ab")
    same = str.maketrans("MLU", "IES")  # the letters that seqeval knows
    columns = [[[tag[0].translate(same) + tag[1:] for tag in tags] for tags in part]
               for part in (right, found)]  # fmt: skip
    expected = precision_recall_fscore_support(*columns, average="micro", zero_division=0)
    scores = tagging_scores(right, found)
    assert [scores[n] for n in ("precision", "recall", "f1")] == pytest.approx(expected[:3])
    assert 0 < scores["f1"] < 1
    if letters in ("BI", "BIES"):
        scheme = "IOB2" if letters == "BI" else "IOBES"
        by_type = precision_recall_fscore_support(*columns, average=None, zero_division=0)
        with pytest.raises(ValueError, match="invalid"):  # strict mode wants right labels
            entity_scores(right, found, scheme)
        types = entity_scores(right, found, scheme, "conlleval")["types"]
        values = [[types[k][n] for k in "XY"] for n in ("precision", "recall", "f1", "support")]
        assert values == [pytest.approx(list(v)) for v in by_type]


def test_tags_that_mark_no_entity_are_refused():
    with pytest.raises(
        ValueError, match="tag 'NOUN': expected an entity tag, or pass entities=False"
    ):
        tagging_scores([["NOUN"]], [["O"]])
    assert tagging_scores([["NOUN"]], [["O"]], entities=False) == {"accuracy": 0.0}


@pytest.mark.parametrize("mode", ["strict", "conlleval"])
def test_without_entities_all_is_zero(mode):
    nothing = row(0, 0, 0)
    assert entity_scores([["O", "O"]], [["O", "O"]], mode=mode) == nothing | {"types": {}}
    assert entity_scores([["O"]], [["B-PER"]], mode=mode) == nothing | {"types": {"PER": nothing}}
    missed = row(0, 0, 1)
    assert entity_scores([["B-PER"]], [["O"]], mode=mode) == missed | {"types": {"PER": missed}}


def test_labels_in_iob1_are_refused_and_not_half_counted():
    tags = ["I-PER I-PER O I-LOC B-LOC".split()]
    with pytest.raises(ValueError, match="Sentence 0, position 0: I-PER at the beginning"):
        entity_scores(tags, tags)
    with pytest.raises(ValueError, match="scheme='IOB1': expected .*convert with to_iob2"):
        entity_scores(tags, tags, "IOB1")
    assert entity_scores(tags, tags, mode="conlleval")["support"] == 3  # conlleval reads both


def test_words_that_were_not_seen_do_not_leave_the_score():
    with pytest.raises(ValueError, match="Sentence 1 has 3 tags, but 2 predicted"):
        entity_scores(RIGHT, [FOUND[0], FOUND[1][:2], FOUND[2]])
    with pytest.raises(ValueError, match="3 sentences, but predictions for 2"):
        entity_scores(RIGHT, FOUND[:2])


@pytest.mark.parametrize(
    ("labels", "predictions", "options", "message"),
    [
        ([], [], {}, "no sentences"),
        ([["O"]], [["O"]], {"mode": "lenient"}, r"mode='lenient': expected one of"),
        ([["O"], ["O"]], [["O"], ["E-PER"]], {}, "Sentence 1, position 0: 'E-PER' is not in IOB2"),
        ([["O"]], [[1]], {}, "Sentence 0, position 0: 1 is not in IOB2"),
        (
            [["B-X", "O"]],
            [["O", "O"]],
            {"scheme": "IOBES"},
            "position 1: O after B-X is invalid",
        ),
    ],
)
def test_what_cannot_be_scored(labels, predictions, options, message):
    with pytest.raises(ValueError, match=message):
        entity_scores(labels, predictions, **options)
