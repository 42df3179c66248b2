"""Features against the backbone's own hidden states."""

import keras
import numpy as np
import pytest

from keras_bert import BertBackbone, BertClassifierPreprocessor, BertMaskedLM, BertTokenizer
from keras_bert.tasks.features import extract_features

VOCAB = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat ##s sat . 人".split()
TEXTS = ["The cats sat.", "", "cat" + " sat cats" * 9, "人 dog"]


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(3)
    backbone = BertBackbone(len(VOCAB), 3, 2, 12, 20, 64, output_hidden_states=True)
    return BertMaskedLM(backbone, BertClassifierPreprocessor(BertTokenizer(VOCAB), 64))


def states_of(model, texts=TEXTS):
    """All hidden states of each text's pieces, [layers, pieces, H], one text at a time."""
    found = []
    for text in texts:
        ids = model.preprocessor.tokenizer([text]).to_list()[0]
        row = np.array([[2, *ids, 3]])
        output = model.backbone(
            {"token_ids": row, "segment_ids": 0 * row, "padding_mask": 0 * row + 1}
        )
        found.append(np.stack([np.asarray(state)[0, 1:-1] for state in output["hidden_states"]]))
    return found


def close(found, expected):
    assert len(found) == len(expected)
    for mine, other in zip(found, expected, strict=True):
        assert mine.shape == other.shape and mine.dtype == np.float32
        np.testing.assert_allclose(mine, other, atol=1e-5)


@pytest.mark.slow
def test_layers_are_combined(model):
    states = states_of(model)
    close(extract_features(model, TEXTS), [s[3] for s in states])
    both = extract_features(model, TEXTS, layers=(-1, 0))
    close(both, [np.concatenate([s[3], s[0]], axis=-1) for s in states])
    close(extract_features(model, TEXTS, (1, -2), "sum"), [s[1] + s[2] for s in states])
    close(extract_features(model, TEXTS, (1, 2), "mean"), [(s[1] + s[2]) / 2 for s in states])
    assert not np.allclose(states[0][2], states[0][3], atol=0.01)


@pytest.mark.one_quick
@pytest.mark.parametrize("words", [False, True])
def test_pairs_are_read_together(model, words):
    """Against the backbone on rows written by hand, each side's own pieces."""
    firsts, seconds = ["The cats sat.", "", "人 dog"], ["cat", "the cats", ""]
    pairs, per = (firsts, seconds), "token"
    if words:
        pairs, per = (
            tuple([text.replace(".", " .").split() for text in side] for side in pairs),
            "word",
        )
    for row, (first, second) in enumerate(zip(firsts, seconds, strict=True)):
        a, b = (model.preprocessor.tokenizer([text]).to_list()[0] for text in (first, second))
        ids = np.array([[2, *a, 3, *b, 3]])
        segments = np.array([[0] * (len(a) + 2) + [1] * (len(b) + 1)])
        states = np.asarray(
            model.backbone(
                {"token_ids": ids, "segment_ids": segments, "padding_mask": 0 * ids + 1}
            )["sequence_output"]
        )[0]
        sides = [states[1 : 1 + len(a)], states[2 + len(a) : 2 + len(a) + len(b)]]
        if words:
            sides = [
                side[[VOCAB[i] != "##s" for i in pieces]]
                for side, pieces in zip(sides, (a, b), strict=True)
            ]
        found = extract_features(model, pairs, per=per)
        close([found[0][row], found[1][row]], sides)
        means = extract_features(model, (firsts, seconds), per="text")
        if not words and len(a) and len(b):
            np.testing.assert_allclose(
                np.stack([m[row] for m in means]), [s.mean(axis=0) for s in sides], atol=1e-5
            )


def test_pairs_that_do_not_fit_are_named(model):
    with pytest.raises(ValueError, match="pair in row 1 has more than 8 tokens"):
        extract_features(model, (["cat", "cat cat"], ["sat", "the cat sat ."]), sequence_length=8)
    with pytest.raises(ValueError, match="pair in row 0 has more than 8"):
        extract_features(model, (["cat " * 20], ["sat"]), sequence_length=8)
    with pytest.raises(ValueError, match="2 first texts but 1 second"):
        extract_features(model, (["cat", "cat"], ["sat"]))


@pytest.mark.thorough
def test_units_of_text(model):
    states = [s[3] for s in states_of(model)]
    texts = [s.mean(axis=0) if len(s) else np.zeros(12) for s in states]
    found = extract_features(model, TEXTS, per="text")
    assert found.shape == (4, 12)
    np.testing.assert_allclose(found, texts, atol=1e-5)
    words = [[0, 1, 3, 4], [], [0, *(1 + i for n in range(9) for i in (3 * n, 3 * n + 1))], [0, 1]]
    by_word = [s[i] for s, i in zip(states, words, strict=True)]
    close(extract_features(model, TEXTS, per="word"), by_word)
    split = [["The", "cats", "sat."], ["人", "\u0001"]]
    in_words = extract_features(model, split, per="word")
    np.testing.assert_allclose(in_words[0], states[0][[0, 1, 3]], atol=1e-5)
    assert [len(row) for row in in_words] == [3, 2]


def test_long_texts_are_read_in_windows(model):
    text = TEXTS[2]  # 28 pieces
    bare = model.backbone
    (found,) = extract_features(
        bare, [text], tokenizer=model.preprocessor.tokenizer, sequence_length=9, batch_size=2
    )
    assert found.shape == (28, 12)
    ids = model.preprocessor.tokenizer([text]).to_list()[0]
    # Windows of 7 begin 4 apart; piece 10 has 2 of its window from 8 before it, and 4 after.
    row = np.array([[2, *ids[8:15], 3]])
    output = bare({"token_ids": row, "segment_ids": 0 * row, "padding_mask": 0 * row + 1})
    np.testing.assert_allclose(found[10], output["sequence_output"][0, 3], atol=1e-5)


def test_options_that_are_wrong(model):
    with pytest.raises(ValueError, match=r"layers=\(4,\): expected numbers from -4 to 3"):
        extract_features(model, TEXTS, (4,))
    with pytest.raises(ValueError, match="combine='max': expected one of concatenate"):
        extract_features(model, TEXTS, combine="max")
    with pytest.raises(ValueError, match="per='line'"):
        extract_features(model, TEXTS, per="line")
    with pytest.raises(ValueError, match="has no tokenizer"):
        extract_features(model.backbone, TEXTS)
    with pytest.raises(TypeError, match=r"sentences\[1\]=nan"):
        extract_features(model, ["cat", float("nan")])
