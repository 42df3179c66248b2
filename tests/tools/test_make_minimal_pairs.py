"""Minimal pairs made from a vocabulary."""

import json
from collections import Counter
from pathlib import Path

import pytest

import keras_bert
from tools import make_minimal_pairs

VOCABULARY = (
    Path(keras_bert.__file__).parent
    / "presets/bert_mini_en_public_domain/assets/tokenizer/vocab.txt"
)


def test_pairs_of_the_shipped_vocabulary(tmp_path):
    output = tmp_path / "pairs.jsonl"
    arguments = ["--vocabulary", str(VOCABULARY), "--output", str(output)]
    make_minimal_pairs.main(arguments)
    pairs = [json.loads(line) for line in output.read_text().splitlines()]
    counts = Counter(pair["paradigm"] for pair in pairs)
    assert len(counts) == 24 and set(counts.values()) == {250}
    assert {pair["field"] for pair in pairs} == set(make_minimal_pairs.PARADIGMS)
    assert len({(pair["good"], pair["paradigm"]) for pair in pairs}) == len(pairs), "no pair twice"
    known = set(VOCABULARY.read_text(encoding="utf-8").split("\n"))
    for pair in pairs:
        good, bad = pair["good"].split(), pair["bad"].split()
        assert good != bad and {*good, *bad} <= known
        assert len(good) == len(bad), "as many tokens on both sides"
    make_minimal_pairs.main([*arguments[:3], str(tmp_path / "again")])
    assert (tmp_path / "again").read_text() == output.read_text()
    make_minimal_pairs.main([*arguments[:3], str(tmp_path / "other"), "--seed", "1"])
    assert (tmp_path / "other").read_text() != output.read_text()


def test_pairs_by_hand():
    words = "the man men garden old sleep sleeps slept in . is are"
    tokens = words.split()
    drawn = {
        make_minimal_pairs.subject_verb(make_minimal_pairs.Words(tokens, str(i))) for i in range(9)
    }
    assert drawn == {
        ("the old man sleeps in the garden .", "the old man sleep in the garden ."),
        ("the old men sleep in the garden .", "the old men sleeps in the garden ."),
    }


def test_a_vocabulary_with_too_few_words():
    with pytest.raises(ValueError, match="no words of the vocabulary"):
        make_minimal_pairs.make_pairs(["the", "man"])
    tokens = "the man men garden old sleep sleeps slept in .".split()
    with pytest.raises(ValueError, match="count=3: the vocabulary allows 2 pairs of subject_verb"):
        make_minimal_pairs.make_pairs(tokens, count=3)
