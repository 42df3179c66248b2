"""What every preprocessor takes for texts, and refuses."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert import (
    BertClassifierPreprocessor,
    BertMaskedLMPreprocessor,
    BertMultipleChoicePreprocessor,
    BertQuestionAnswererPreprocessor,
    BertRelationPreprocessor,
    BertTextEmbedderPreprocessor,
    BertTokenClassifierPreprocessor,
    BertTokenizer,
)

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] one two three four $ #".split()
OF_TEXTS = (BertClassifierPreprocessor, BertMaskedLMPreprocessor, BertTextEmbedderPreprocessor)
OF_PAIRS = (*OF_TEXTS, BertQuestionAnswererPreprocessor)
OF_TUPLES = (
    BertQuestionAnswererPreprocessor,
    BertMultipleChoicePreprocessor,
    BertRelationPreprocessor,
)
PAIRS = [["one", "two"], ["three", "four"]]


def make(kind):
    return kind(BertTokenizer(WORDS), 80)


@pytest.mark.parametrize("kind", OF_TEXTS + OF_TUPLES)
@pytest.mark.parametrize(
    "x",
    [
        PAIRS,
        [("one", "two"), ("three", "four")],
        [["one", "two"], ["three"]],
        np.array(PAIRS),
        np.array([PAIRS]),
        tf.constant(PAIRS),
        tf.ragged.constant(PAIRS),
        (PAIRS, PAIRS, PAIRS),
    ],
    ids=["lists", "tuples", "unequal", "array", "rank 3", "tensor", "ragged", "three"],
)
def test_pairs_are_a_tuple_of_two_batches(kind, x):
    with pytest.raises(ValueError, match="expected (one|a text|a tuple|.questions)"):
        make(kind)(x)


@pytest.mark.parametrize("kind", OF_PAIRS)
@pytest.mark.parametrize(
    ("x", "message"),
    [
        ((PAIRS, PAIRS), "texts of shape .2, 2.: expected one text or a batch"),
        (
            (["one", "two"], ["three"]),
            r"texts of shapes \(2,\) and \(1,\): expected the same shape",
        ),
        (("one", ["two", "three"]), r"texts of shapes \(\) and \(2,\): expected the same shape"),
    ],
)
def test_columns_are_of_one_length(kind, x, message):
    with pytest.raises(ValueError, match=message):
        make(kind)(x)


@pytest.mark.parametrize("kind", OF_TEXTS)
def test_a_dataset_of_pairs_in_one_tensor(kind):
    dataset = tf.data.Dataset.from_tensors(PAIRS)
    with pytest.raises(ValueError, match="texts of shape .2, 2.: expected one text"):
        dataset.map(make(kind))


@pytest.mark.one_quick
@pytest.mark.parametrize("kind", OF_PAIRS)
def test_a_pair_is_a_row_with_two_segments(kind):
    rows = make(kind)((["one", "three"], ["two", "four"]))
    if kind is BertTextEmbedderPreprocessor:
        assert rows["token_ids"].shape[:2] == (2, 2)
    else:
        assert rows["segment_ids"].numpy().sum(axis=1).tolist() == [2, 2]


def test_negatives_are_columns_of_an_example():
    embedder = make(BertTextEmbedderPreprocessor)
    firsts, seconds = ["one", "three"], ["two", "four"]
    apart = embedder((firsts, seconds, ["two", "one"], ["four", "two"]))["token_ids"]
    together = embedder((firsts, seconds, [["two", "four"], ["one", "two"]]))["token_ids"]
    assert together.shape[:2] == (2, 4)
    np.testing.assert_array_equal(together, apart)
    for wrong in ([["two"], ["one", "two"]], [["two", "one"]]):
        with pytest.raises(ValueError, match="texts of shape"):
            embedder((firsts, seconds, wrong))


def test_choices_and_spans_stand_beside_their_texts():
    chooser, relator = make(BertMultipleChoicePreprocessor), make(BertRelationPreprocessor)
    with pytest.raises(ValueError, match=r"choices of shape \(1, 2\).*expected.*\[2, choices"):
        chooser((["one", "two"], [["three", "four"]]))
    with pytest.raises(ValueError, match="spans are string"):
        relator((["one two"], ["three"]))
    with pytest.raises(ValueError, match=r"spans are int32 of shape \(2, 2, 2\)"):
        relator((["one two"], [[[0, 3], [4, 7]]] * 2))
    with pytest.raises(ValueError, match="spans are float32"):
        relator((["one two"], [[[0.0, 3.0], [4.0, 7.0]]]))


def test_a_tagger_takes_lists_of_words():
    preprocessor = make(BertTokenClassifierPreprocessor)
    words = preprocessor([["one", "two"], ["three"]])["token_ids"].numpy().tolist()
    ragged = tf.ragged.constant([["one", "two"], ["three"]])
    assert words == preprocessor(ragged)["token_ids"].numpy().tolist()
    for x in (([["one"]], [["two"]]), np.array([PAIRS]), "one"):
        with pytest.raises(ValueError, match="expected a batch of texts"):
            preprocessor(x)


def test_numbers_of_numpy_are_settings():
    """As Python's: in a graph their width would differ from that of ids, and no JSON holds them."""
    tokenizer, eighty = BertTokenizer(WORDS), np.int64(80)
    spans = [[[0, 3], [4, 7]]]
    for kind, x, settings in (
        (BertClassifierPreprocessor, ["one two"], {}),
        (BertRelationPreprocessor, (["one two"], spans), {}),
        (BertTokenClassifierPreprocessor, ["one two"], {"stride": np.int32(3)}),
        (
            BertQuestionAnswererPreprocessor,
            (["one"], ["two"]),
            {"stride": np.int32(3), "max_question_length": np.uint8(5)},
        ),
    ):
        made = kind(tokenizer, eighty, **settings)
        assert made(x)["token_ids"].shape == (1, 80 if made.padding == "full" else 16)
        config = made.get_config()
        assert all(type(config[name]) is int for name in ("sequence_length", *settings))
