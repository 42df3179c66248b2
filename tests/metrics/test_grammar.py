"""Accuracy over minimal pairs, with a model whose scores are known."""

import json
from types import SimpleNamespace

import pytest

from keras_bert.metrics import minimal_pairs


class Lengths:
    """Finds a text the more likely, the shorter it is; counts the texts that it scores."""

    def __init__(self):
        self.scored = []

    def score(self, texts, batch_size):
        self.scored += texts
        return [SimpleNamespace(total=-float(len(text))) for text in texts]


PAIRS = [
    {"good": "a", "bad": "bb", "paradigm": "x"},
    {"good": "a", "bad": "b", "paradigm": "x"},  # equal, which is wrong
    {"good": "ccc", "bad": "bb", "paradigm": "x", "field": "more"},
    {"good": "a", "bad": "ccc", "paradigm": "w"},
]


def test_by_paradigm_and_over_all():
    model = Lengths()
    found = minimal_pairs(model, PAIRS)
    assert found["by_paradigm"] == {
        "w": {"accuracy": 1.0, "pairs": 1},
        "x": {"accuracy": pytest.approx(1 / 3), "pairs": 3},
    }
    assert list(found["by_paradigm"]) == ["w", "x"]
    assert found["accuracy"] == 0.5 and found["pairs"] == 4
    assert found["macro_accuracy"] == pytest.approx(2 / 3)
    assert sorted(model.scored) == ["a", "b", "bb", "ccc"], "each sentence once"


def test_files_and_blimp_names(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, PAIRS)) + "\n\n")
    assert minimal_pairs(Lengths(), path) == minimal_pairs(Lengths(), PAIRS)
    names = {"good": "sentence_good", "bad": "sentence_bad", "paradigm": "UID"}
    blimp = [{names.get(k, k): v for k, v in pair.items()} for pair in PAIRS]
    assert minimal_pairs(Lengths(), str(path)) == minimal_pairs(Lengths(), iter(blimp))


def test_what_is_no_pair(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(PAIRS[0]) + "\nnonsense\n")
    with pytest.raises(ValueError, match="pairs.jsonl, line 2: not JSON"):
        minimal_pairs(Lengths(), path)
    for pairs, message in (
        ([], "expected at least one pair, got none"),
        ([PAIRS[0], {"good": "a", "paradigm": "x"}], "pairs, pair 1: .*the string 'bad'"),
        ([{**PAIRS[0], "good": 3}], "pairs, pair 0: .*the string 'good'"),
        (["a"], "pairs, pair 0: expected an object"),
    ):
        with pytest.raises(ValueError, match=message):
            minimal_pairs(Lengths(), pairs)
