"""Words to rows, against hand-worked examples and a walk in plain Python."""

import functools
import random

import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertTokenClassifierPreprocessor, BertTokenizer
from keras_bert.text.tag_paths import scores_of_words
from keras_bert.text.token_classifier_preprocessor import labels_of_rows

# As in google-research/bert's tests, [CLS] 2, [SEP] 3, cat 7.
VOCAB = "[PAD] [UNK] [CLS] [SEP] the sat . cat ##s 人 京 e ##n".split()
VOCAB += [f"[unused{i}]" for i in range(48 - len(VOCAB))] + ["un", "##aff", "##able"]


@functools.cache
def tokenizer():
    return BertTokenizer(VOCAB)


def preprocessor(length=16, **kwargs):
    return BertTokenClassifierPreprocessor(tokenizer(), length, **kwargs)


def words(*sentences):
    return tf.ragged.constant(sentences, tf.string, ragged_rank=1)


def numbers(*rows):
    return tf.ragged.constant(rows, tf.int32, ragged_rank=1)


def test_first_pieces_have_the_labels():
    rows = preprocessor().rows(words(["unaffable", "cat"]))
    assert rows.ids["token_ids"][0, :6].numpy().tolist() == [2, 48, 49, 50, 7, 3]
    labels = labels_of_rows(rows, numbers([5, 0]))
    assert labels[0, :6].numpy().tolist() == [-1, 5, -1, -1, 0, -1]
    assert (labels[0, 6:] == -1).numpy().all()  # padding is no label 0
    assert rows.ids["padding_mask"][0].numpy().tolist() == [1] * 6 + [0] * 10


def test_no_word_is_lost():
    sentences = [["cat", "\u0001", "sat"], [], ["\u0301", "cats"], ["dog", "the cat"]]
    rows = preprocessor().rows(words(*sentences))
    assert rows.counts.numpy().tolist() == [3, 0, 2, 2]
    assert rows.ids["token_ids"][:, :6].numpy().tolist() == [
        [2, 7, 1, 5, 3, 0],
        [2, 3, 0, 0, 0, 0],
        [2, 1, 7, 8, 3, 0],
        [2, 1, 4, 7, 3, 0],  # an unknown word; a word with a space in it
    ]
    assert rows.word[:, 1:5].numpy().tolist() == [
        [0, 1, 2, -1],
        [-1, -1, -1, -1],
        [0, 1, -1, -1],
        [0, 1, -1, -1],
    ]


def test_words_of_a_text_and_where_they_stand():
    texts = ["The unaffable Cats.", "", " \u4eac\u4ebae\u0301n 😀cat", "I\u0307 cat"]
    rows = preprocessor().rows(tf.constant(texts))
    found = [
        [text[a:b] for a, b in zip(starts, ends, strict=True)]
        for text, starts, ends in zip(
            texts, rows.starts.to_list(), rows.ends.to_list(), strict=True
        )
    ]
    assert found == [
        ["The", "unaffable", "Cats", "."],
        [],
        ["京", "人", "e\u0301n", "😀cat"],
        ["I\u0307", "cat"],
    ]
    assert rows.counts.numpy().tolist() == [4, 0, 4, 2]
    first, third = rows.ids["token_ids"].numpy()[[0, 2], :9].tolist()
    assert first == [2, 4, 48, 49, 50, 7, 8, 6, 3] and third[:5] == [2, 10, 9, 11, 12]
    assert rows.word[0, :9].numpy().tolist() == [-1, 0, 1, -1, -1, 2, -1, 3, -1]


def walk(sentence, tokenize, length, stride):
    """Windows and the word at each first piece, one piece at a time; numbers by best context."""
    pieces, first = [], []
    for number, word in enumerate(sentence):
        ids = tokenize(word) or [1]
        pieces += ids
        first += [number] + [-1] * (len(ids) - 1)
    room, start, spans = length - 2, 0, []
    while True:
        size = min(room, len(pieces) - start)
        spans.append((start, size))
        if start + size == len(pieces):
            break
        start += min(size, stride)
    rows = []
    for number, (start, size) in enumerate(spans):
        row = [-1]
        for place in range(start, start + size):

            def score(span, place=place):
                begin, count = span
                if not begin <= place < begin + count:
                    return -1
                return min(place - begin, begin + count - 1 - place) + 0.01 * count

            scores = [score(span) for span in spans]
            row.append(first[place] if scores.index(max(scores)) == number else -1)
        rows.append(([2, *pieces[start : start + size], 3], row))
    return rows


@pytest.mark.parametrize(("length", "stride"), [(5, None), (7, 2), (11, 9), (16, None)])
def test_windows_against_a_walk(length, stride):
    rng = random.Random(length)
    every = ["cat", "cats", "unaffable", "\u0001", "dog", "the", "en"]
    sentences = [rng.choices(every, k=rng.randint(0, 30)) for _ in range(37)]
    text_side = preprocessor(length, stride=stride)
    rows = text_side.rows(words(*sentences))
    tokenize = {word: text_side.tokenizer([word]).to_list()[0] for word in every}
    expected = [
        (i, *row)
        for i, sentence in enumerate(sentences)
        for row in walk(sentence, tokenize.get, length, stride or (length - 1) // 2)
    ]
    assert rows.sentence.numpy().tolist() == [i for i, _, _ in expected]
    for ids, word, (_, pieces, numbers) in zip(
        rows.ids["token_ids"].numpy().tolist(), rows.word.numpy().tolist(), expected, strict=True
    ):
        assert [i for i in ids if i] == pieces
        assert word == numbers + [-1] * (len(word) - len(numbers))


def test_each_word_has_one_answer():
    sentence = ["unaffable", "cat", "sat"] * 50
    text_side = preprocessor(16)
    rows = text_side.rows(words(["cat"], sentence, []))
    assert len(rows.sentence) > 20 and rows.counts.numpy().tolist() == [1, 150, 0]
    # Scores that say which row and column they come from.
    where = np.arange(rows.word.shape[0] * rows.word.shape[1]).reshape(*rows.word.shape, 1)
    scores = scores_of_words(tf.constant(where, tf.float32), rows)
    assert [len(row) for row in scores.to_list()] == [1, 150, 0]
    found = scores.flat_values.numpy()[:, 0].astype(int)
    assert rows.word.numpy().ravel()[found].tolist() == [0, *range(150)]
    labels = np.arange(150) % 7
    by_row = labels_of_rows(rows, numbers([3], labels.tolist(), [])).numpy()
    assert sorted(by_row[by_row >= 0]) == sorted([3, *labels])


@pytest.mark.thorough
def test_the_same_in_a_graph_of_any_batch():
    text_side = preprocessor(7)
    spec = tf.RaggedTensorSpec([None, None], tf.string)
    of_words = tf.function(text_side.rows, input_signature=[spec])
    of_texts = tf.function(text_side.rows, input_signature=[tf.TensorSpec([None], tf.string)])
    for sentences in ([["cat"] * 9, ["unaffable"]], [["the"]], [[], ["cats", "sat", "."]]):
        texts = tf.constant([" ".join(sentence) for sentence in sentences])
        for graph, x in ((of_words, words(*sentences)), (of_texts, texts)):
            both = graph(x), text_side.rows(x)
            for found, expected in zip(*map(tensors, both), strict=True):
                assert found.numpy().tolist() == expected.numpy().tolist()


def tensors(rows):
    flat = tf.nest.flatten(rows, expand_composites=True)
    return [value for value in flat if value is not None]


def test_settings():
    text_side = preprocessor(12, stride=3, padding="full")
    config = text_side.get_config()
    assert (config["sequence_length"], config["padding"], config["stride"]) == (12, "full", 3)
    assert text_side(["cat sat"])["token_ids"].shape == (1, 12)
    for stride in (0, 11):
        with pytest.raises(ValueError, match=f"stride={stride}: expected 1 to 10"):
            preprocessor(12, stride=stride)
    with pytest.raises(ValueError, match="make_rows"):
        text_side(["cat"], y=[[1]])
