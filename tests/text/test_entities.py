"""Tags to entities and characters to words, against hand-worked examples and seqeval."""

import itertools
import random

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.text.entities import (
    character_offsets,
    find_entities,
    join_words,
    tag_places,
)
from keras_bert.text.tag_paths import best_tags

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "E-PER", "S-PER", "E-LOC", "S-LOC"]


def found_in(sentences, labels=LABELS, probabilities=None):
    tags = tf.ragged.constant([[labels.index(t) for t in tags] for tags in sentences], tf.int32)
    if probabilities is None:
        probabilities = [[0.5] * len(tags) for tags in sentences]
    return find_entities(tags, tf.ragged.constant(probabilities, tf.float32, ragged_rank=1), labels)


def as_tuples(entities):
    rows = zip(*(v.numpy().tolist() for v in entities[:4]), strict=True)
    return [(sentence, label.decode(), start, end) for sentence, label, start, end in rows]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-PER I-PER O B-LOC O", [("PER", 0, 2), ("LOC", 3, 4)]),
        ("I-PER I-PER O I-LOC B-LOC", [("PER", 0, 2), ("LOC", 3, 4), ("LOC", 4, 5)]),  # IOB1
        ("I-PER I-LOC I-LOC", [("PER", 0, 1), ("LOC", 1, 3)]),
        ("B-PER B-PER I-PER", [("PER", 0, 1), ("PER", 1, 3)]),
        ("B-PER I-LOC", [("PER", 0, 1), ("LOC", 1, 2)]),
        ("S-PER B-PER I-PER E-PER S-LOC", [("PER", 0, 1), ("PER", 1, 4), ("LOC", 4, 5)]),
        ("B-PER E-PER I-PER O E-LOC E-LOC", [("PER", 0, 2), ("PER", 2, 3), ("LOC", 4, 5)]),
        ("O O", []),
    ],
)
def test_entities_by_hand(tags, expected):
    if tags.endswith("E-LOC E-LOC"):
        expected = [*expected, ("LOC", 5, 6)]
    entities = as_tuples(found_in([[], tags.split(), ["B-LOC"]]))
    assert entities == [(1, *entity) for entity in expected] + [(2, "LOC", 0, 1)]


def test_random_tags_against_seqeval():
    chunks = pytest.importorskip("seqeval.metrics.sequence_labeling").get_entities
    rng = random.Random(0)
    sentences = [rng.choices(LABELS, k=rng.randint(0, 9)) for _ in range(400)]
    expected = [
        (i, label, start, end + 1)
        for i, tags in enumerate(sentences)
        for label, start, end in chunks(tags)
    ]
    assert as_tuples(found_in(sentences)) == expected and len(expected) > 500


def test_the_score_is_the_mean_over_the_words():
    sentences = ["O B-PER I-PER I-PER B-LOC".split(), ["B-LOC"]]
    entities = found_in(sentences, probabilities=[[0.1, 0.9, 0.6, 0.3, 0.25], [0.75]])
    np.testing.assert_allclose(entities.score, [0.6, 0.25, 0.75], rtol=1e-6)


def test_offsets_into_a_text_and_a_function_of_any_batch():
    starts = tf.ragged.constant([[0, 4, 9], [], [2]], dtype=tf.int32)
    ends = tf.ragged.constant([[3, 8, 10], [], [5]], dtype=tf.int32)

    @tf.function(
        input_signature=[
            tf.RaggedTensorSpec([None, None], tf.int32),
            tf.RaggedTensorSpec([None, None], tf.float32),
        ]
    )
    def locate(tags, probabilities):
        return character_offsets(find_entities(tags, probabilities, LABELS), starts, ends)

    tags = tf.ragged.constant([[1, 2, 0], [], [3]], tf.int32)
    first, last = locate(tags, tf.cast(tags, tf.float32))
    assert first.numpy().tolist() == [0, 2] and last.numpy().tolist() == [8, 5]


def test_labels_of_other_schemes():
    places, types = tag_places(["O", "B-A-B", "M-X", "L-X", "U-X"])
    assert places == [0, 1, 2, 3, 4] and types == ["", "A-B", "X", "X", "X"]
    with pytest.raises(ValueError, match="label 'NN': expected O, B-TYPE.*predict_tags"):
        tag_places(["O", "NN"])


def by_enumeration(scores, transitions, start, end):
    """The best path, and the probability of each tag at each word, by all paths."""
    length, count = scores.shape
    paths = np.array(list(itertools.product(range(count), repeat=length)))
    total = start[paths[:, 0]] + end[paths[:, -1]] + scores[np.arange(length), paths].sum(1)
    total += transitions[paths[:, :-1], paths[:, 1:]].sum(1)
    share = np.exp(total - np.logaddexp.reduce(total))
    marginals = [[share[paths[:, t] == k].sum() for k in range(count)] for t in range(length)]
    return paths[total.argmax()].tolist(), np.array(marginals)


def test_the_best_path_and_its_probabilities_by_all_paths():
    rng = np.random.default_rng(0)
    chain = [rng.normal(0, 1.5, shape).astype("float32") for shape in ((3, 3), 3, 3)]
    lengths = [5, 0, 1, 3, 2, 4]
    rows = [rng.normal(0, 1, (n, 3)).astype("float32") for n in lengths]
    scores = tf.RaggedTensor.from_row_lengths(np.concatenate(rows), lengths)
    spec = tf.RaggedTensorSpec([None, None, 3], tf.float32, ragged_rank=1)
    decode = tf.function(lambda scores: best_tags(scores, chain), input_signature=[spec])
    tags, probabilities = decode(scores)
    greedy = 0
    for row, found, known in zip(rows, tags.to_list(), probabilities.to_list(), strict=True):
        assert len(found) == len(row)
        if not len(row):
            continue
        path, marginals = by_enumeration(row, *chain)
        assert found == path
        greedy += found == row.argmax(1).tolist()
        np.testing.assert_allclose(known, marginals[np.arange(len(path)), path], rtol=1e-5)
    assert greedy < 5  # the chain has a say
    nothing = tf.RaggedTensor.from_row_lengths(np.zeros((0, 3), "float32"), [0, 0])
    assert decode(nothing)[0].to_list() == [[], []]


def test_without_a_chain_words_stand_alone():
    scores = tf.RaggedTensor.from_row_lengths(
        tf.constant([[0.0, 0.0, 1.0], [2.0, 0.0, 0.0]]), [0, 2]
    )
    tags, probabilities = best_tags(scores)
    assert tags.to_list() == [[], [2, 0]]
    e = np.e
    np.testing.assert_allclose(probabilities.values, [e / (2 + e), e * e / (2 + e * e)], rtol=1e-6)


def test_words_of_characters():
    assert join_words(["New", "York"]) == "New York" and join_words(list("北京")) == "北京"
    assert join_words(["I", "A"]) == "I A"
