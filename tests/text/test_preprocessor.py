"""Packing: truncation, special tokens, padding (cases SEQ of the users' log)."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertClassifierPreprocessor, BertTokenizer
from keras_bert.text.padding import bucket_length, pair_lengths

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the a cat sat on mat".split()


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(WORDS)


def pop_longest(first, second, budget):
    """The original's rule, one piece at a time."""
    while first + second > budget:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


def test_pair_lengths_are_the_originals():
    grid = [(a, b, n) for a in range(13) for b in range(13) for n in range(1, 24)]
    first, second, budget = (tf.constant(column) for column in zip(*grid, strict=True))
    kept = np.stack(pair_lengths(first, second, budget), axis=1)
    np.testing.assert_array_equal(kept, [pop_longest(*case) for case in grid])


@pytest.mark.parametrize(
    ("lengths", "budget", "expected"),
    [((10, 3), 9, (6, 3)), ((5, 5), 8, (4, 4)), ((5, 5), 7, (4, 3))],
)
def test_longest_first_truncation(lengths, budget, expected):
    assert tuple(int(n) for n in pair_lengths(*map(tf.constant, lengths), budget)) == expected


def test_a_batch_of_pairs_is_cut_row_by_row(tokenizer):
    preprocessor = BertClassifierPreprocessor(tokenizer, sequence_length=11)
    pairs = [("the " * a, "cat " * b) for a, b in ((5, 9), (2, 20), (9, 3))]
    firsts, seconds = map(list, zip(*pairs, strict=True))
    batch = preprocessor((firsts, seconds))
    for row, (a, b) in enumerate(((4, 4), (2, 6), (5, 3))):
        ids = [2, *[5] * a, 3, *[7] * b, 3]
        np.testing.assert_array_equal(batch["token_ids"][row], ids)
        np.testing.assert_array_equal(batch["segment_ids"][row], [0] * (a + 2) + [1] * (b + 1))
        alone = preprocessor(([firsts[row]], [seconds[row]]))
        for name in batch:
            np.testing.assert_array_equal(alone[name][0], batch[name][row])


def test_sequence_length_is_kept(tokenizer):
    preprocessor = BertClassifierPreprocessor(tokenizer, sequence_length=16)
    batch = preprocessor("the cat")
    np.testing.assert_array_equal(batch["token_ids"], [2, 5, 7, 3, *[0] * 12])
    assert preprocessor.get_config()["sequence_length"] == 16


def test_blank_texts(tokenizer):
    preprocessor = BertClassifierPreprocessor(tokenizer, sequence_length=6)
    texts = ["", " \t\n", "the cat"]
    direct = preprocessor(texts)
    np.testing.assert_array_equal(direct["token_ids"][:2], [[2, 3, 0, 0, 0, 0]] * 2)
    np.testing.assert_array_equal(direct["padding_mask"][:2], [[1, 1, 0, 0, 0, 0]] * 2)
    np.testing.assert_array_equal(direct["token_ids"][2], [2, 5, 7, 3, 0, 0])
    alone = preprocessor([""])
    np.testing.assert_array_equal(alone["token_ids"], [[2, 3, 0, 0, 0, 0]])
    mapped = tf.data.Dataset.from_tensor_slices(texts).batch(3).map(preprocessor)
    for name, value in next(iter(mapped)).items():
        np.testing.assert_array_equal(value, direct[name])


def test_one_string_and_a_list(tokenizer):
    preprocessor = BertClassifierPreprocessor(tokenizer, sequence_length=7)
    assert preprocessor("the cat")["token_ids"].shape == (7,)
    assert preprocessor(["the cat"])["token_ids"].shape == (1, 7)
    assert preprocessor(("the cat", "a mat"))["token_ids"].shape == (7,)


def test_shapes_are_static_when_asked(tokenizer):
    texts = tf.data.Dataset.from_tensor_slices(["a cat"] * 8).batch(4, drop_remainder=True)
    full = texts.map(BertClassifierPreprocessor(tokenizer, 128))
    assert {spec.shape for spec in full.element_spec.values()} == {(4, 128)}
    bucket = texts.map(BertClassifierPreprocessor(tokenizer, 128, padding="bucket"))
    assert next(iter(bucket))["token_ids"].shape == (4, 16)


def test_buckets():
    lengths = [1, 16, 17, 32, 33, 64, 65, 100]
    found = [int(bucket_length(n, 100)) for n in lengths]
    assert found == [16, 16, 32, 32, 64, 64, 100, 100]
    assert int(bucket_length(5, 12)) == 12


def test_labels_and_weights_pass_through(tokenizer):
    preprocessor = BertClassifierPreprocessor(tokenizer, sequence_length=8)
    x, y, weight = preprocessor(["a cat", "a mat"], tf.constant([0, 1]), tf.constant([0.5, 2.0]))
    assert x["token_ids"].shape == (2, 8)
    np.testing.assert_array_equal(y, [0, 1])
    np.testing.assert_array_equal(weight, [0.5, 2.0])


def test_only_numbers_leave_the_pipeline(tokenizer):
    dataset = tf.data.Dataset.from_tensor_slices((["a cat"] * 4, [0, 1, 0, 1])).batch(2)
    dataset = dataset.map(BertClassifierPreprocessor(tokenizer, 8))
    assert all(spec.dtype == tf.int32 for spec in tf.nest.flatten(dataset.element_spec))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sequence_length": 3}, "sequence_length=3: expected a whole number, 4 or more"),
        ({"padding": "longest"}, "padding='longest': expected one of full, bucket"),
    ],
)
def test_wrong_settings(tokenizer, arguments, message):
    with pytest.raises(ValueError, match=message):
        BertClassifierPreprocessor(tokenizer, **arguments)


def test_three_texts_raise(tokenizer):
    with pytest.raises(
        ValueError, match="expected a text or a pair .first, second., got 3 columns"
    ):
        BertClassifierPreprocessor(tokenizer, 8)((["a"], ["a"], ["a"]))


def test_rows_match_tokenizers_of_hugging_face():
    """An independent implementation packs the same ids, single texts and pairs."""
    tokenizers = pytest.importorskip("tokenizers")
    vocab = Path(__file__).parents[1] / "golden" / "tiny_hf" / "vocab.txt"
    peer = tokenizers.BertWordPieceTokenizer(str(vocab), lowercase=True)
    peer.enable_truncation(9, strategy="longest_first")
    peer.enable_padding(length=9)
    ours = BertClassifierPreprocessor(BertTokenizer(str(vocab)), sequence_length=9)
    texts = ["Rain froze the boats", "a RED boat", "wind wind wind wind wind wind wind wind wind"]
    wanted = peer.encode_batch(texts)
    batch = ours(texts)
    np.testing.assert_array_equal(batch["token_ids"], [e.ids for e in wanted])
    np.testing.assert_array_equal(batch["padding_mask"], [e.attention_mask for e in wanted])
    wanted = peer.encode_batch(list(zip(texts, ["a", "the harbour", "rain"], strict=True)))
    batch = ours((texts, ["a", "the harbour", "rain"]))
    np.testing.assert_array_equal(batch["token_ids"], [e.ids for e in wanted])
    np.testing.assert_array_equal(batch["segment_ids"], [e.type_ids for e in wanted])
