"""Pairing held against the original's loops, written here in plain Python, and its statistics."""

import gzip
import json
import random

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.data import pairing
from keras_bert.data.masking import Masker
from keras_bert.text.tokenizer import BertTokenizer

SEED = tf.constant([3, 4], tf.int64)
LARGER_RUNS = ("long128", "long512", "short128")
QUANTILES = [1, 5, 10, 25, 50, 75, 90, 95, 99]


def original(documents, sequence_length, max_predictions, passes, rng, vocabulary_size):
    """The original's pairs by its rules (reference.md, 1.1), with its draws in their order.

    Args:
        documents: lists of sentences, which are lists of ids.
        rng: a `random.Random`.

    Returns:
        The documents in the order drawn; the target length of each, for each pass; and int [N, 4]:
        tokens of A, tokens of B, label, masked tokens.
    """
    documents = list(documents)
    rng.shuffle(documents)
    budget, targets, rows = sequence_length - 3, [], []
    for _ in range(passes):
        targets.append([])
        for number, document in enumerate(documents):
            target = rng.randint(2, budget) if rng.random() < 0.1 else budget
            targets[-1].append(target)
            begin = 0
            while begin < len(document):
                end, size = begin, 0
                while end < len(document) and size < target:
                    size += len(document[end])
                    end += 1
                split = begin + (1 if end - begin == 1 else rng.randint(1, end - begin - 1))
                first = sum(document[begin:split], [])
                is_random = end - begin == 1 or rng.random() < 0.5
                if is_random:
                    for _ in range(10):
                        other = rng.randrange(len(documents))
                        if other != number:
                            break
                    start, second = rng.randrange(len(documents[other])), []
                    for sentence in documents[other][start:]:
                        second = second + sentence
                        if len(second) >= target - len(first):
                            break
                    begin = split
                else:
                    second = sum(document[split:end], [])
                    begin = end
                while len(first) + len(second) > budget:
                    longer = first if len(first) > len(second) else second
                    longer.pop(0 if rng.random() < 0.5 else -1)
                # Masks, for the draws that they use up.
                rng.shuffle(list(range(len(first) + len(second))))
                length = len(first) + len(second)
                masked = min(max_predictions, max(1, round(0.15 * (length + 3))), length)
                for _ in range(masked):
                    if rng.random() >= 0.8 and rng.random() >= 0.5:
                        rng.randrange(vocabulary_size)
                rows.append((len(first), len(second), int(is_random), masked))
    return documents, targets, np.array(rows)


def lengths_of(documents):
    """`sentence_lengths` [S] and `sentences` [D]."""
    sentences = tf.constant([len(document) for document in documents], tf.int32)
    return tf.constant([len(s) for document in documents for s in document], tf.int32), sentences


def generate(rng, documents, most_sentences, most_tokens):
    """Documents of numbered tokens, so that a token tells its place."""
    result, token = [], 0
    for _ in range(documents):
        document = []
        for _ in range(rng.randint(1, most_sentences)):
            size = rng.randint(1, most_tokens)
            document.append(list(range(token, token + size)))
            token += size
        result.append(document)
    return result


# What is held against each other: random share, masked tokens, and the mean and QUANTILES of the
# lengths of A, of B and of the row; and how far they may lie apart.
TOLERANCES = np.array([0.01, 0.1, *3 * [1, *len(QUANTILES) * [2]]])


def statistics(rows):
    """Of int [N, 4]: tokens of A, tokens of B, label, masked tokens."""
    a, b, label, masked = rows.T
    lengths = [[x.mean(), *np.percentile(x, QUANTILES)] for x in (a, b, a + b + 3)]
    return np.array([label.mean(), masked.mean(), *sum(lengths, [])])


def graph_rows(spans, max_predictions):
    a, length = spans.first_length.numpy(), spans.length.numpy()
    masked = np.minimum(np.clip(np.round(0.15 * length), 1, max_predictions), length - 3)
    return np.stack([a, length - a - 3, spans.labels.numpy(), masked], axis=1)


def give_targets(monkeypatch, targets):
    monkeypatch.setattr(pairing, "_targets", lambda *_: tf.constant(targets, tf.int32))


def check_statistics(monkeypatch, documents, targets, sequence_length, max_predictions, expected):
    """Holds four runs with the given target lengths, averaged, against expected statistics."""
    runs = []
    for run in range(4):
        rows = []
        for number, of_pass in enumerate(targets):
            give_targets(monkeypatch, of_pass)
            numbers = tf.constant([run, number], tf.int64)
            spans = pairing.next_sentence_spans(
                *lengths_of(documents), sequence_length, 0.1, numbers
            )
            rows.append(graph_rows(spans, max_predictions))
        runs.append(statistics(np.concatenate(rows)))
    # Where few long rows leave more noise than that, in what is expected too, 3 deviations.
    tolerances = np.maximum(TOLERANCES, 3 * np.std(runs, axis=0, ddof=1))
    difference = np.mean(runs, axis=0) - expected
    assert (abs(difference) <= tolerances).all(), difference


def test_same_statistics_as_the_loops(monkeypatch):
    rng = random.Random(1)
    documents, targets, rows = original(generate(rng, 800, 20, 25), 64, 9, 5, rng, 1000)
    assert len(rows) > 10_000
    check_statistics(monkeypatch, documents, targets, 64, 9, statistics(rows))


# The golden statistics are of some 500 draws of a target length (a document, a pass), and a
# document with a short one gives many short pairs: another seed of the original moves the random
# share of "long512" by 0.04, one standard deviation. So the graph gets the lengths that were drawn
# there; the loops, which reproduce the golden runs to the last row, say which.
@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["wiki128", *(pytest.param(x, marks=pytest.mark.slow) for x in LARGER_RUNS)]
)
def test_statistics_of_the_original(name, shared_dir, monkeypatch):
    golden = json.loads((shared_dir / "golden" / "pairing_reference.json").read_text())
    golden = golden["runs"][name]
    length, slots = golden["max_seq_length"], golden["max_predictions_per_seq"]
    expected = [golden["random_next_share"], golden["masked_per_instance"]["mean"]]
    for key in ("length_a", "length_b", "length_total"):  # the last counts special tokens too
        expected += [golden[key]["mean"], *golden[key]["quantiles"].values()]
    tokenizer = BertTokenizer(shared_dir / "data" / "vocab" / "bert-base-uncased-vocab.txt")
    documents, targets, rows = original(
        golden_corpus(name, shared_dir, tokenizer),
        length,
        slots,
        golden["dupe_factor"],
        random.Random(12345),
        tokenizer.vocabulary_size(),
    )
    assert len(rows) == golden["instances"]
    np.testing.assert_allclose(statistics(rows), expected, atol=6e-4)
    check_statistics(monkeypatch, documents, targets, length, slots, expected)

    # From tokens to masks, for the rows of one pass.
    tokens = tf.constant([t for d in documents for s in d for t in s], tf.int32)
    give_targets(monkeypatch, targets[0])
    spans = pairing.next_sentence_spans(*lengths_of(documents), length, 0.1, SEED)
    token_ids = pairing.rows(tokens, spans, length, tokenizer)
    _, padding_mask = pairing.row_masks(spans.first_length, spans.length, length)
    batch = Masker(tokenizer, slots)(token_ids, padding_mask, SEED)
    masked = graph_rows(spans, slots)[:, 3]
    np.testing.assert_array_equal(batch["mask_weights"].numpy().sum(axis=1), masked)
    used = batch["mask_weights"].numpy() > 0
    after = tf.gather(batch["token_ids"], batch["mask_positions"], batch_dims=1).numpy()[used]
    same = after == batch["mask_ids"].numpy()[used]
    assert abs(np.mean(after == tokenizer.mask_token_id) - golden["masked_as"]["mask"]) < 0.005
    assert abs(np.mean(same) - golden["masked_as"]["same"]) < 0.005


def golden_corpus(name, shared_dir, tokenizer):
    text = "wikipedia_from_squad_dev" if name == "wiki128" else "gutenberg_novels"
    path = shared_dir / "data" / "text" / "en" / f"{text}.txt.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    lines = [line.strip() for line in (lines if name == "wiki128" else lines[:30_000])]
    ids = tokenizer(lines).to_list()
    documents, sentences = [[]], 0
    for line, pieces in zip(lines, ids, strict=True):
        if not line:
            documents.append([])
        elif pieces:
            documents[-1].append(pieces)
        sentences += bool(line)
        if name == "short128" and line and sentences % 4 == 0:
            documents.append([])
    return [document for document in documents if document]


def text_of(documents):
    """The places of sentences: token offsets [S + 1], document of each, first and end of each."""
    lengths, sentences = (value.numpy() for value in lengths_of(documents))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    document = np.repeat(np.arange(len(sentences)), sentences)
    ends = np.cumsum(sentences)
    return offsets, document, ends - sentences, ends


def segments(spans):
    """Rows as (first token of A, end of A, first token of B, end of B, label)."""
    a, size, b, length, label = (value.numpy() for value in spans)
    return list(zip(a, a + size, b, b + length - 3 - size, label, strict=True))


def record_draws(monkeypatch):
    draws, draw = [], pairing._integers

    def recorded(*args):
        draws.append(draw(*args))
        return draws[-1]

    monkeypatch.setattr(pairing, "_integers", recorded)
    return draws


@pytest.mark.parametrize(("documents", "most_sentences", "most_tokens"), [(7, 11, 5), (40, 3, 13)])
def test_pairs_are_those_of_a_walk(monkeypatch, documents, most_sentences, most_tokens):
    """The walk of the loops, with the draws of the sentence at which a chunk begins."""
    rng = random.Random(documents)
    documents = generate(rng, documents, most_sentences, most_tokens)
    offsets, document, begins, ends = text_of(documents)
    targets = [rng.randint(2, 30) for _ in documents]
    give_targets(monkeypatch, targets)
    draws = record_draws(monkeypatch)
    # Rows are long enough to cut nothing.
    spans = pairing.next_sentence_spans(*lengths_of(documents), 101, 0.1, SEED)
    split_draws, coins = (value.numpy() for value in draws[:2])
    chunks = {}  # first token of A: the sentences at which A begins, B begins and the chunk ends
    for number, end_of_document in enumerate(ends):
        begin = begins[number]
        while begin < end_of_document:
            end = begin + 1
            while end < end_of_document and offsets[end] - offsets[begin] < targets[number]:
                end += 1
            split = begin + 1
            if end - begin > 1:
                split += split_draws[begin] % (end - begin - 1)
            is_random = end - begin == 1 or coins[begin] % 2 == 1
            chunks[offsets[begin]] = (number, split, end, is_random)
            begin = split if is_random else end
    rows = segments(spans)
    assert sorted(row[0] for row in rows) == sorted(chunks)
    assert [row[0] for row in rows] != sorted(chunks)  # in random order
    for a, a_end, b, b_end, label in rows:
        number, split, end, is_random = chunks[a]
        assert (a_end, label) == (offsets[split], is_random)
        if not is_random:
            assert b == a_end, "a true next segment must begin where the first one ends"
            assert b_end == offsets[end]
            continue
        sentence = np.searchsorted(offsets, b)
        other = document[sentence]
        assert other != number, "a random segment must be of another document"
        assert b == offsets[sentence], "a random segment must begin with a sentence"
        while sentence < ends[other]:
            sentence += 1
            if offsets[sentence] - b >= targets[number] - (a_end - a):
                break
        assert b_end == offsets[sentence]


def test_random_segments_are_drawn_evenly(monkeypatch):
    """Any other document, and any of its sentences."""
    documents = generate(random.Random(5), 5, 6, 4)
    offsets, document, _, _ = text_of(documents)
    lengths = lengths_of(documents)
    draw = tf.function(lambda seed: pairing.next_sentence_spans(*lengths, 101, 0.0, seed))
    counts = np.zeros((5, len(document)))
    for number in range(400):
        for a, _, b, _, label in segments(draw(tf.constant([7, number], tf.int64))):
            if label:
                counts[document[np.searchsorted(offsets, a)], np.searchsorted(offsets, b)] += 1
    sizes = np.bincount(document)
    shares = 1 / (4 * sizes[document]) * (np.arange(5)[:, None] != document)
    expected = counts.sum(axis=1, keepdims=True) * shares
    assert (counts[shares == 0] == 0).all() and expected[shares > 0].min() > 5
    free = (shares > 0).sum() - 5
    chi_square = ((counts - expected)[shares > 0] ** 2 / expected[shares > 0]).sum()
    assert abs(chi_square - free) < 4 * np.sqrt(2 * free)


def test_longer_side_is_cut_front_or_back(monkeypatch):
    documents = generate(random.Random(2), 60, 9, 30)
    give_targets(monkeypatch, [40] * 60)
    uncut, cut = (
        pairing.next_sentence_spans(*lengths_of(documents), length, 0.1, SEED)
        for length in (201, 43)
    )
    gone, in_front = 0, 0
    for before, after in zip(segments(uncut), segments(cut), strict=True):
        a, b = before[1] - before[0], before[3] - before[2]
        while a + b > 40:
            a, b = (a - 1, b) if a > b else (a, b - 1)
        assert (after[1] - after[0], after[3] - after[2]) == (a, b)
        for side in (0, 2):
            assert before[side] <= after[side] and after[side + 1] <= before[side + 1]
            in_front += after[side] - before[side]
            gone += before[side + 1] - before[side] - after[side + 1] + after[side]
    assert gone > 1000 and abs(in_front / gone - 0.5) < 4 * 0.5 / np.sqrt(gone)


def test_target_lengths():
    targets = pairing._targets([200_000], 9, 0.2, SEED).numpy()
    expected = np.full(10, 0.2 / 8) * (np.arange(10) > 1)
    expected[9] += 0.8
    np.testing.assert_allclose(np.bincount(targets) / 200_000, expected, atol=0.003)
    assert (pairing._targets([50], 9, 0.0, SEED).numpy() == 9).all()
    assert set(pairing._targets([50], 2, 1.0, SEED).numpy()) == {2}


def test_documents_of_one_sentence_are_all_random():
    documents = generate(random.Random(6), 6, 1, 8)
    spans = pairing.next_sentence_spans(*lengths_of(documents), 64, 0.1, SEED)
    assert spans.labels.numpy().tolist() == 6 * [1]
    offsets, document, _, _ = text_of(documents)
    for a, _, b, _, _ in segments(spans):
        assert document[np.searchsorted(offsets, a)] != document[np.searchsorted(offsets, b)]


@pytest.mark.one_quick
@pytest.mark.parametrize("sizes", [[4, 6, 3], [5, 5], [30, 7], [3] * 13, [40, 2, 40, 2, 9, 8, 7]])
def test_one_document_alone(sizes):
    """No random pair in which B truly follows A, and none in which they overlap."""
    lengths, sentences = tf.constant(sizes, tf.int32), tf.constant([len(sizes)], tf.int32)
    draw = tf.function(
        lambda seed: pairing.next_sentence_spans(lengths, sentences, 203, 0.5, seed, alone=True)
    )
    labels, starts = [], set()
    for number in range(300):
        rows = segments(draw(tf.constant([1, number], tf.int64)))
        assert len(rows) > 0
        for a, a_end, b, b_end, label in rows:
            assert b < b_end
            if label:
                assert (b_end <= a or b > a_end) and b != a_end
                starts.add(b)
            else:
                assert b == a_end
        labels += [row[4] for row in rows]
    if len(sizes) > 2:
        assert {0, 1} == set(labels) and len(starts) > 1


def test_a_block_of_one_document_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least 2 documents"):
        pairing.next_sentence_spans(tf.constant([3, 4]), tf.constant([2]), 64, 0.1, SEED)


def test_sentence_order():
    documents = generate(random.Random(8), 300, 7, 9)
    offsets, document, begins, ends = text_of(documents)
    spans = pairing.sentence_order_spans(*lengths_of(documents), 203, 0.5, SEED)
    covered = np.zeros(offsets[-1], int)
    for a, a_end, b, b_end, swapped in segments(spans):
        first, second = ((b, b_end), (a, a_end)) if swapped else ((a, a_end), (b, b_end))
        assert first[1] == second[0]  # neighbours
        covered[first[0] : second[1]] += 1
        number = document[np.searchsorted(offsets, first[0], side="right") - 1]
        assert offsets[begins[number]] <= first[0] and second[1] <= offsets[ends[number]]
        if ends[number] - begins[number] == 1:  # cut in the middle
            assert 0 <= (first[1] - first[0]) - (second[1] - second[0]) <= 1
        else:
            assert {first[0], first[1], second[1]} <= set(offsets) and second[0] < second[1]
    # A sentence left alone takes the one before it along, which has its own pair too.
    assert covered.min() == 1 and covered.max() == 2
    labels = spans.labels.numpy()
    assert abs(labels.mean() - 0.5) < 4 * 0.5 / np.sqrt(labels.size)


def test_packing_loses_nothing():
    documents = generate(random.Random(9), 50, 20, 9)
    offsets, _, begins, ends = text_of(documents)
    spans = pairing.packed_spans(*lengths_of(documents), 21, 0.3, SEED)
    assert spans.labels is None
    start, size = spans.first_start.numpy(), spans.first_length.numpy()
    assert (spans.length.numpy() == size + 2).all() and (np.diff(start) < 0).any()
    order = np.argsort(start)
    start, end = start[order], (start + size)[order]
    np.testing.assert_array_equal(start[1:], end[:-1])
    assert start[0] == 0 and end[-1] == offsets[-1]
    of_document = np.searchsorted(offsets[begins], start, side="right") - 1
    assert (end <= offsets[ends][of_document]).all()
    for number in range(50):  # all windows of a document but the last are of one size
        sizes = (end - start)[of_document == number]
        assert len(set(sizes[:-1])) <= 1 and sizes[-1] <= max(sizes[0], 2) <= 19
    assert 0.2 < (size < 19).mean() < 0.9


@pytest.mark.parametrize("short_seq_prob", [0.0, 0.4])
def test_joining_loses_nothing(short_seq_prob):
    documents = generate(random.Random(10), 50, 9, 9)
    lengths = lengths_of(documents)
    tokens = tf.range(tf.reduce_sum(lengths[0]))
    joined = pairing.join_documents(tokens, *lengths, sep_id=-3).numpy()
    expected = [[t for sentence in document for t in sentence] + [-3] for document in documents]
    assert joined.tolist() == sum(expected, [])[:-1]
    spans = pairing.joined_spans(*lengths, 21, short_seq_prob, SEED)
    start, size = spans.first_start.numpy(), spans.first_length.numpy()
    order = np.argsort(start)
    np.testing.assert_array_equal(start[order], [0, *np.cumsum(size[order])[:-1]])
    assert size.sum() == joined.size and size.max() == 19 and size.min() >= 1
    assert (size < 19).sum() == 1 if not short_seq_prob else (size < 19).mean() > 0.2


def test_rows_hold_what_spans_say():
    tokenizer = BertTokenizer(["[SEP]", "x", "[PAD]", "[CLS]", "[UNK]", "[MASK]", "a", "b"])
    tokens = tf.range(100, 120)
    spans = pairing.Spans(
        first_start=tf.constant([0, 4, 19]),
        first_length=tf.constant([5, 1, 1]),
        second_start=tf.constant([16, 3, 0]),
        length=tf.constant([11, 6, 3]),  # the last has no second segment
        labels=None,
    )
    token_ids = pairing.rows(tokens, spans, 11, tokenizer)
    assert token_ids.dtype == tf.int32
    assert token_ids.numpy().tolist() == [
        [3, 100, 101, 102, 103, 104, 0, 116, 117, 118, 0],
        [3, 104, 0, 103, 104, 0, 2, 2, 2, 2, 2],
        [3, 119, 0, 2, 2, 2, 2, 2, 2, 2, 2],
    ]
    segment_ids, padding_mask = pairing.row_masks(spans.first_length, spans.length, 11)
    assert segment_ids.numpy().tolist() == [
        [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1],
        [0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0],
        [0] * 11,
    ]
    assert padding_mask.numpy().sum(axis=1).tolist() == [11, 6, 3]
    assert segment_ids.dtype == padding_mask.dtype == tf.int32


def test_same_seed_same_pairs():
    lengths = lengths_of(generate(random.Random(11), 20, 9, 9))
    for make in (
        pairing.next_sentence_spans,
        pairing.sentence_order_spans,
        pairing.packed_spans,
        pairing.joined_spans,
    ):
        once, again = (make(*lengths, 32, 0.5, SEED) for _ in range(2))
        other = make(*lengths, 32, 0.5, SEED + 1)
        for x, y in zip(once, again, strict=True):
            assert x is None or (x.dtype == tf.int32 and (x.numpy() == y.numpy()).all())
        assert once.first_start.numpy().tolist() != other.first_start.numpy().tolist()
