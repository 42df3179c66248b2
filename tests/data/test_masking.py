"""Dynamic masking against plain-Python forms of the original's rule, and of its odds.

All draws have fixed seeds, so the statistical tests give the same numbers every time.
"""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from keras_bert.data.contract import check_batch
from keras_bert.data.masking import Masker
from keras_bert.text.tokenizer import BertTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)
UNUSED = ["[unused0]", "[unused12]"]
VOCABULARY = [*SPECIAL, *UNUSED, *(f"w{i}" for i in range(20)), *(f"##s{i}" for i in range(10))]
FIRST_WORD, FIRST_SUFFIX = 7, 27
UNMASKABLE = (PAD, CLS, SEP, MASK)


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(VOCABULARY)


def random_rows(rows, length, seed=0, suffixes=0.0):
    """Pairs [CLS] A [SEP] B [SEP] of any length from 3, then padding; some tokens are specials."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(FIRST_WORD, FIRST_SUFFIX, [rows, length])
    suffix = generator.random([rows, length]) < suffixes
    ids[suffix] = generator.integers(FIRST_SUFFIX, len(VOCABULARY), suffix.sum())
    ids[generator.random([rows, length]) < 0.05] = UNK
    ids[generator.random([rows, length]) < 0.02] = MASK
    lengths = generator.integers(3, length + 1, rows)
    lengths[0] = length
    for row, end in zip(ids, lengths, strict=True):
        row[0] = CLS
        row[generator.integers(1, end)] = SEP
        row[end - 1] = SEP
        row[end:] = PAD
    padding_mask = np.arange(length) < lengths[:, None]
    return ids.astype("int32"), padding_mask.astype("int32")


def apply(masker, ids, padding_mask=None, seed=(0, 0)):
    """Masks eagerly, which spares the tracing; returns NumPy arrays."""
    ids = np.asarray(ids, "int32")
    padding_mask = np.ones_like(ids) if padding_mask is None else padding_mask
    outputs = masker(ids, np.asarray(padding_mask, "int32"), seed)
    return {name: value.numpy() for name, value in outputs.items()}


def repeat(masker, row, times, seed=(0, 0)):
    """Masks one row many times."""
    return apply(masker, np.tile(np.asarray([row], "int32"), [times, 1]), seed=seed)


def chosen(outputs):
    """The positions masked in each row, as tuples."""
    pairs = zip(outputs["mask_positions"], outputs["mask_weights"], strict=True)
    return [tuple(positions[weights == 1].tolist()) for positions, weights in pairs]


def units(row, whole_words):
    """Plain Python: lists of positions that are masked together, in order."""
    found = []
    for position, token in enumerate(row):
        if token in UNMASKABLE:
            continue
        suffix = whole_words and token >= FIRST_SUFFIX
        if suffix and found and found[-1][-1] == position - 1:
            found[-1].append(position)
        else:
            found.append([position])
    return found


def odds(row, count, whole_words, max_ngram=1):
    """Plain Python: the probability of each set of masked positions, worked out exactly.

    Follows every order of the units and every length of the spans.
    """
    every = units(row, whole_words)
    weights = np.array([1 / n for n in range(1, max_ngram + 1)])
    weights /= weights.sum()

    @functools.cache
    def go_on(waiting, taken):
        left = count - sum(len(every[unit]) for unit in taken)
        if not waiting or not left:
            return {taken: 1.0}
        found = {}
        for first, (length, weight) in itertools.product(waiting, enumerate(weights, 1)):
            span, room = [], left
            for unit in range(first, min(first + length, len(every))):
                apart = span and every[unit][0] != every[unit - 1][-1] + 1
                if apart or unit in taken or len(every[unit]) > room:
                    break
                span.append(unit)
                room -= len(every[unit])
            for end, share in go_on(waiting - {first}, taken | set(span)).items():
                found[end] = found.get(end, 0) + share * weight / len(waiting)
        return found

    ends = go_on(frozenset(range(len(every))), frozenset())
    return {
        tuple(sorted(position for unit in taken for position in every[unit])): share
        for taken, share in ends.items()
    }


def assert_follow(seen, expected):
    """Checks draws against the probability of each outcome by a chi-square test."""
    assert set(seen) <= set(expected)
    counts = [seen.count(outcome) for outcome in expected]
    if len(expected) > 1:
        shares = np.array(list(expected.values()))
        assert stats.chisquare(counts, len(seen) * shares / shares.sum()).pvalue > 1e-3


SETTINGS = [
    {},
    {"max_ngram": 3},
    {"unit": "word"},
    {"unit": "word", "replace": "word", "max_ngram": 3, "random_from": "words"},
]


@pytest.mark.one_quick
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("length, most, rate", [(11, 3, 0.15), (37, 7, 0.15), (61, 13, 0.5)])
def test_rows_are_masked_as_the_contract_says(tokenizer, settings, length, most, rate):
    ids, padding_mask = random_rows(101, length, suffixes=0.3)
    masker = Masker(tokenizer, most, rate, **settings)
    outputs = apply(masker, ids, padding_mask)
    check_batch(outputs | {"segment_ids": ids, "padding_mask": padding_mask})
    restored = outputs["token_ids"].copy()
    for row, positions in enumerate(chosen(outputs)):
        count = len(positions)
        length = padding_mask[row].sum()
        assert list(positions) == sorted(set(positions))  # in order, none twice
        assert not np.isin(ids[row, list(positions)], UNMASKABLE).any()
        for name in ("mask_positions", "mask_ids", "mask_weights"):
            assert not outputs[name][row, count:].any()
        restored[row, list(positions)] = outputs["mask_ids"][row, :count]
        expected = min(most, max(1, round(length * rate)))  # as the original writes it
        candidates = (~np.isin(ids[row], UNMASKABLE)).sum()
        whole_words = settings.get("unit") == "word"
        assert count <= expected
        if not whole_words:
            assert count == min(expected, candidates)
        for unit in units(ids[row], whole_words):
            assert len(set(unit) & set(positions)) in (0, len(unit))
            if not set(unit) & set(positions):  # skipped: it did not fit
                assert len(unit) > expected - count
    np.testing.assert_array_equal(restored, ids)


@pytest.mark.parametrize("rate", [0.1, 0.15, 0.25, 0.5, 1.0])
def test_counts_round_as_python_does(tokenizer, rate):
    length = 53
    ids = np.full([length, length], FIRST_WORD, "int32")
    padding_mask = np.tri(length, dtype="int32")  # rows of 1, 2, ... tokens
    outputs = apply(Masker(tokenizer, length, rate), ids * padding_mask, padding_mask)
    expected = [max(1, round(n * rate)) for n in range(1, length + 1)]
    assert outputs["mask_weights"].sum(axis=1).tolist() == expected


def test_special_tokens_are_never_masked(tokenizer):
    """The other positions are masked uniformly."""
    row = [CLS, 9, 7, 8, SEP, 10, 7, SEP]
    seen = chosen(repeat(Masker(tokenizer, 3), row, 10_000))
    assert_follow(seen, {(position,): 1 for position in (1, 2, 3, 5, 6)})


def test_short_rows_have_one_mask_and_bare_ones_none(tokenizer):
    """Rows of 3, 4, 5 and 8 ids; a row without a candidate weighs nothing."""
    for length in (3, 4, 5, 8):
        row = [CLS, *range(FIRST_WORD, FIRST_WORD + length - 2), SEP]
        assert repeat(Masker(tokenizer, 2), row, 1)["mask_weights"].tolist() == [[1, 0]]
    bare = [[CLS, SEP, SEP, PAD, PAD], [PAD] * 5, [CLS, MASK, SEP, MASK, SEP]]
    for settings in SETTINGS:
        outputs = apply(Masker(tokenizer, 2, **settings), bare, np.sign(bare))
        np.testing.assert_array_equal(outputs["token_ids"], bare)
        for name in ("mask_positions", "mask_ids", "mask_weights"):
            assert not outputs[name].any()


def test_shares_of_mask_random_and_same():
    """A million masked tokens of a large vocabulary, all three kinds with their labels."""
    size = 20_000
    tokenizer = BertTokenizer([*SPECIAL, *(f"w{i}" for i in range(size - 5))])
    ids = np.random.default_rng(0).integers(5, size, [8000, 128], "int32")
    kinds = np.zeros(3)
    for call in range(7):
        outputs = apply(Masker(tokenizer, 20), ids, seed=(0, call))
        rows = np.arange(len(ids))[:, None]
        before = ids[rows, outputs["mask_positions"]]
        after = outputs["token_ids"][rows, outputs["mask_positions"]]
        weighed = outputs["mask_weights"] == 1
        np.testing.assert_array_equal(outputs["mask_ids"], np.where(weighed, before, 0))
        before, after = before[weighed], after[weighed]
        kinds += [(after == MASK).sum(), ((after != MASK) & (after != before)).sum(), 0]
        kinds[2] += (after == before).sum()
    assert kinds.sum() > 1_000_000
    np.testing.assert_allclose(kinds / kinds.sum(), [0.8, 0.1, 0.1], atol=0.002)


@pytest.mark.parametrize("shares", [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0)], ids=str)
def test_shares_of_all_and_none(tokenizer, shares):
    masker = Masker(tokenizer, 9, 1.0, *shares, random_from="words")
    outputs = repeat(masker, [FIRST_WORD] * 9, 2000)
    if shares[0]:
        assert (outputs["token_ids"] == MASK).all()
    elif shares[1]:
        words, counts = np.unique(outputs["token_ids"], return_counts=True)
        assert words.tolist() == list(range(FIRST_WORD, len(VOCABULARY)))
        assert stats.chisquare(counts).pvalue > 1e-3
    else:
        assert (outputs["token_ids"] == FIRST_WORD).all()


def test_random_tokens_come_from_the_whole_vocabulary(tokenizer):
    outputs = repeat(Masker(tokenizer, 9, 1.0, 0.0, 1.0), [FIRST_WORD] * 9, 2000)
    tokens, counts = np.unique(outputs["token_ids"], return_counts=True)
    assert tokens.tolist() == list(range(len(VOCABULARY)))
    assert stats.chisquare(counts).pvalue > 1e-3


W, S = FIRST_WORD, FIRST_SUFFIX
ROWS = {
    "words": [CLS, W, W, W, SEP, W, W, SEP],
    "pieces": [CLS, W, S, W, SEP, W, S, S, W, SEP],
    "suffix after [SEP]": [CLS, W, W, SEP, S, S, W, SEP],
    "suffix after [CLS]": [CLS, S, W, S, SEP, W, SEP],
    "too long": [CLS, W, S, S, S, S, SEP, W, SEP],
}


@pytest.mark.one_quick
@pytest.mark.parametrize("max_ngram", [1, 3])
@pytest.mark.parametrize("unit", ["piece", "word"])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_sets_of_positions_have_the_odds_of_the_rule(tokenizer, row, unit, max_ngram):
    """Every set of three positions, whole words or spans, against all orders worked out."""
    expected = odds(tuple(row), 3, unit == "word", max_ngram)
    assert abs(sum(expected.values()) - 1) < 1e-9
    masker = Masker(tokenizer, 3, 3 / len(row), unit=unit, max_ngram=max_ngram)
    # Half of the rows begin at 0, half at 1: the same wherever a row lies in the batch.
    begins = np.arange(8000) % 2
    ids = np.array([[*row, PAD], [PAD, *row]], "int32")[begins]
    outputs = apply(masker, ids, ids != PAD, seed=(1, 2))
    outputs["mask_positions"] -= begins[:, None].astype("int32")
    seen = chosen(outputs)
    assert_follow(seen[::2], expected)
    assert_follow(seen[1::2], expected)


def test_a_row_of_words_too_long_is_left_as_it_is(tokenizer):
    row = [CLS, W, S, S, S, SEP, W, S, SEP]
    outputs = repeat(Masker(tokenizer, 3, unit="word"), row, 3)
    assert not outputs["mask_weights"].any()
    np.testing.assert_array_equal(outputs["token_ids"], [row] * 3)


@pytest.mark.parametrize("max_ngram", [1, 2])
@pytest.mark.parametrize("replace", ["piece", "word"])
def test_pieces_of_a_word_are_replaced_alone_or_together(tokenizer, replace, max_ngram):
    row = [CLS, W, S, S, W, S, S, SEP]
    masker = Masker(tokenizer, 6, 1.0, 0.5, 0.0, unit="word", replace=replace, max_ngram=max_ngram)
    masked = repeat(masker, row, 4000)["token_ids"] == MASK
    first, second = (masked[:, begin : begin + 3].sum(axis=1) for begin in (1, 4))
    expected = {0: 1, 3: 1} if replace == "word" else {0: 1, 1: 3, 2: 3, 3: 1}
    assert_follow(first.tolist(), expected)
    assert_follow(second.tolist(), expected)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.05  # words do not share a draw


@pytest.mark.one_quick
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_masks_are_a_function_of_seed_and_row(tokenizer, settings):
    ids, padding_mask = random_rows(37, 41, suffixes=0.3)
    masker = Masker(tokenizer, 7, **settings)
    first = apply(masker, ids, padding_mask, (3, 5))
    for seed in ((3, 6), (4, 5), (5, 3)):
        other = apply(masker, ids, padding_mask, seed)
        assert (first["mask_positions"] != other["mask_positions"]).any(axis=1).mean() > 0.5
    dataset = tf.data.Dataset.from_tensors((ids, padding_mask))
    dataset = dataset.map(lambda *row: masker(*row, tf.constant([3, 5], tf.int64)))
    for again in (
        apply(masker, ids, padding_mask, (3, 5)),
        tf.function(masker)(ids, padding_mask, tf.constant([3, 5])),
        next(dataset.as_numpy_iterator()),
    ):
        tf.nest.map_structure(np.testing.assert_array_equal, first, dict(again))
    fewer = apply(masker, ids[:13], padding_mask[:13], (3, 5))  # rows do not know those after
    start = {name: value[:13] for name, value in first.items()}
    tf.nest.map_structure(np.testing.assert_array_equal, start, fewer)


@pytest.mark.one_quick
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_shapes_are_static(tokenizer, settings):
    for rows in (5, None):
        spec = tf.TensorSpec([rows, 19], tf.int32)
        masker = tf.function(Masker(tokenizer, 3, **settings))
        graph = masker.get_concrete_function(spec, spec, tf.TensorSpec([2], tf.int64))
        shapes = {name: shape.as_list() for name, shape in graph.output_shapes.items()}
        slots = dict.fromkeys(["mask_positions", "mask_ids", "mask_weights"], [rows, 3])
        assert shapes == {"token_ids": [rows, 19]} | slots
        outputs = masker(np.zeros([0, 19], "int32"), np.zeros([0, 19], "int32"), [0, 0])
        assert outputs["mask_ids"].shape == (0, 3)  # no rows, no failure


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"max_predictions": 0}, "max_predictions=0: expected a whole number, 1 or more"),
        ({"max_predictions": 2.5}, "max_predictions=2.5: expected a whole number, 1 or more"),
        ({"max_ngram": 0}, "max_ngram=0: expected a whole number, 1 or more"),
        ({"rate": 0.0}, "rate=0.0: expected a number above 0"),
        ({"rate": 1.5}, "rate=1.5: expected a number above 0 and up to 1"),
        ({"rate": float("nan")}, "rate=nan: expected a number above 0"),
        (
            {"mask_share": 0.8, "random_share": 0.3},
            "mask_share=0.8, random_share=0.3: expected .*at most 1",
        ),
        ({"random_share": -0.1}, "mask_share=0.8, random_share=-0.1: expected 0 or more"),
        ({"unit": "token"}, "unit='token': expected one of piece, word"),
        ({"unit": "word", "replace": "span"}, "replace='span': expected one of piece, word"),
        ({"replace": "word"}, "replace='word': expected 'piece' with unit='piece'"),
        ({"random_from": "none"}, "random_from='none': expected one of all, words"),
    ],
    ids=str,
)
def test_bad_settings_are_named(tokenizer, settings, message):
    with pytest.raises(ValueError, match=message):
        Masker(tokenizer, **{"max_predictions": 3} | settings)


def test_a_vocabulary_needs_a_mask_and_words():
    with pytest.raises(ValueError, match=r"vocabulary of 5 tokens has no \[MASK\]"):
        Masker(BertTokenizer([*SPECIAL[:4], "word"]), 3)
    with pytest.raises(ValueError, match="no words"):
        Masker(BertTokenizer([*SPECIAL, *UNUSED]), 3, random_from="words")
    with pytest.raises(ValueError, match="has no vocabulary yet"):
        Masker(BertTokenizer(), 3)


def test_rows_must_fit(tokenizer):
    ids = np.zeros([2, 5], "int32")
    with pytest.raises(ValueError, match="rows of 5 tokens: expected at least max_predictions=6"):
        Masker(tokenizer, 6)(ids, ids, [0, 0])
    spec = tf.TensorSpec([None, None], tf.int32)
    with pytest.raises(ValueError, match="rows of an unknown number of tokens"):
        tf.function(Masker(tokenizer, 3)).get_concrete_function(
            spec, spec, tf.TensorSpec([2], tf.int32)
        )
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
        Masker(tokenizer, 3)(ids + len(VOCABULARY), ids + 1, [0, 0])
