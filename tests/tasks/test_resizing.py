"""Other numbers of positions and words, and nothing else changed."""

import numpy as np
import pytest

from keras_bert import (
    BertBackbone,
    BertClassifier,
    BertClassifierPreprocessor,
    BertMaskedLMPreprocessor,
    BertPretrainer,
    BertTokenizer,
    resize,
)
from keras_bert.checkpoints.names import weights_by_name

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s"]
POSITIONS, WORDS = "embeddings/position_table", "embeddings/word/embeddings"


def backbone(rows=8):
    return BertBackbone(rows, 1, 2, 8, 16, max_sequence_length=6)


def pretrainer(rows=8):
    model = BertPretrainer(
        backbone(rows), preprocessor=BertMaskedLMPreprocessor(BertTokenizer(VOCABULARY), 6)
    )
    rng = np.random.default_rng(0)
    for weight in model.weights:
        if "seed" not in weight.name:
            weight.assign(rng.normal(size=weight.shape))
    return model


def values(model):
    return {name: np.asarray(weight) for name, weight in weights_by_name(model).items()}


def same_but(old, new, *changed):
    assert old.keys() == new.keys()
    for name in old.keys() - {*changed}:
        np.testing.assert_array_equal(old[name], new[name], err_msg=name)


@pytest.mark.parametrize("method", ["tile", "interpolate", "new"])
def test_more_positions(method):
    model = pretrainer()
    bigger = resize(model, max_sequence_length=11, positions=method)
    old, new = values(model), values(bigger)
    same_but(old, new, POSITIONS)
    table, found = old[POSITIONS], new[POSITIONS]
    assert found.shape == (11, 8)
    if method == "interpolate":
        np.testing.assert_allclose(found[::2], table, atol=1e-6)
        np.testing.assert_allclose(found[1], (table[0] + table[1]) / 2, atol=1e-6)
    else:
        np.testing.assert_array_equal(found[:6], table)
    if method == "tile":
        np.testing.assert_array_equal(found[6:], table[:5])
    if method == "new":
        assert 0 < np.abs(found[6:]).max() <= 0.04
        again = resize(model, max_sequence_length=11, positions="new")
        np.testing.assert_array_equal(values(again)[POSITIONS], found)
    assert bigger.preprocessor.sequence_length == 11
    assert f"6 to 11 rows by positions='{method}'" in str(bigger.loading_report)


def test_fewer_positions_give_the_same_answers_to_short_texts():
    model = BertClassifier(
        backbone(),
        num_classes=2,
        preprocessor=BertClassifierPreprocessor(BertTokenizer(VOCABULARY), 5),
    )
    smaller = resize(model, max_sequence_length=5, positions="cut")
    same_but(values(model), values(smaller), POSITIONS)
    texts = ["the cat", "cats"]
    np.testing.assert_array_equal(
        model.predict(texts, verbose=0), smaller.predict(texts, verbose=0)
    )


@pytest.mark.parametrize("rows", [8, 9, 12])
def test_new_tokens_are_read_and_can_be_filled_in(rows):
    model = pretrainer(rows)
    bigger = resize(model, new_tokens=["dog", "mat"])
    old, new = values(model), values(bigger)
    same_but(old, new, WORDS, "masked_lm_head/output_bias")
    assert new[WORDS].shape == (max(rows, 10), 8)
    np.testing.assert_array_equal(new[WORDS][:8], old[WORDS][:8])
    np.testing.assert_allclose(new[WORDS][8:10], [old[WORDS][:8].mean(0)] * 2, atol=1e-6)
    np.testing.assert_array_equal(new[WORDS][10:], old[WORDS][10:])
    assert bigger.preprocessor.tokenizer("the dog").numpy().tolist() == [5, 8]
    tokens = {candidate.token for candidate in bigger.fill("the [MASK]", top_k=10)[0]}
    assert {"dog", "mat"} <= tokens


def test_a_backbone_alone():
    model = backbone()
    assert resize(model, max_sequence_length=4, positions="cut").max_sequence_length == 4
    assert model.max_sequence_length == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "nothing to do"),
        ({"max_sequence_length": 9}, "positions=None: from 6 to 9 positions, expected one of new"),
        ({"max_sequence_length": 9, "positions": "cut"}, "positions='cut': from 6 to 9"),
        ({"max_sequence_length": 4, "positions": "tile"}, "expected one of cut"),
        ({"max_sequence_length": 0, "positions": "cut"}, "expected 1 or more"),
        ({"new_tokens": ["dog"], "tokens": "zero"}, "tokens='zero': expected one of mean, new"),
        ({"new_tokens": ["dog", "cat", "dog"]}, "'cat', 'dog' are there already"),
    ],
)
def test_bad_settings(arguments, message):
    with pytest.raises(ValueError, match=message):
        resize(pretrainer(), **arguments)


def test_new_tokens_need_a_preprocessor():
    with pytest.raises(ValueError, match="for a task with a preprocessor"):
        resize(backbone(), new_tokens=["dog"])
