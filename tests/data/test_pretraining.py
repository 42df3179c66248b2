"""The stream, on corpora in which every token has an id of its own and so tells its place."""

import hashlib
import json
import random
import warnings

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.data.contract import check_batch
from keras_bert.data.pretraining import (
    _check_documents,
    _documents_in_a_block,
    _warn_of_cap,
    pretraining_dataset,
)
from keras_bert.data.records import CorpusIndex, Shard, document_example, index_content, read_index
from keras_bert.data.sources import DatasetSource
from keras_bert.text.tokenizer import BertTokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
FIRST = len(SPECIALS)  # id of the corpus's first token
# Rows of 32 tokens; a batch of 40 neither divides nor is divided by the 512 masked together.
SETTINGS = {"sequence_length": 32, "max_predictions": 5, "batch_size": 40, "seed": 3}
SMALL_BLOCKS = {"block_tokens": 3000}


def documents(count, most_sentences=12, most_tokens=9):
    """Lengths of sentences."""
    rng = random.Random(count)
    return [
        [rng.randint(1, most_tokens) for _ in range(rng.randint(1, most_sentences))]
        for _ in range(count)
    ]


def write_corpus(folder, documents, shards=1, specials=SPECIALS):
    """A corpus whose tokens are numbered through, document after document."""
    size = sum(map(sum, documents))
    vocabulary = "".join(f"{t}\n" for t in [*specials, *(f"t{i}" for i in range(size))]).encode()
    (folder / "vocab.txt").write_bytes(vocabulary)
    files, token = [[] for _ in range(shards)], FIRST
    for number, lengths in enumerate(documents):
        ids = list(range(token, token + sum(lengths)))
        files[number % shards].append((ids, lengths))
        token += len(ids)
    listed = []
    for number, records in enumerate(files):
        path = folder / f"shard-{number:05}-of-{shards:05}.tfrecord"
        with tf.io.TFRecordWriter(str(path)) as writer:
            for record in records:
                writer.write(document_example(*record))
        sentences = [length for _, lengths in records for length in lengths]
        counts = (len(records), len(sentences), sum(sentences))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        listed.append(Shard(path.name, *counts, path.stat().st_size, digest))
    index = CorpusIndex(
        folder=str(folder),
        tokenizer={},
        vocabulary_size=len(specials) + size,
        vocabulary_sha256=hashlib.sha256(vocabulary).hexdigest(),
        seed=0,
        shards=tuple(listed),
        left_out={},
        source={},
    )
    (folder / "index.json").write_bytes(index_content(index))
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """200 documents in 3 shards: about 1,300 sentences, 6,500 tokens, 300 rows, 2 or 3 blocks."""
    return write_corpus(tmp_path_factory.mktemp("corpus"), documents(200), shards=3)


@pytest.fixture(scope="module")
def stream(corpus):
    tokenizer = BertTokenizer(corpus / "vocab.txt")  # the corpus's own is let through
    return pretraining_dataset(corpus, tokenizer=tokenizer, **SETTINGS, **SMALL_BLOCKS)


@pytest.fixture(scope="module")
def batches(stream):
    """30 batches, which are several epochs, as NumPy arrays."""
    return list(stream.take(30).as_numpy_iterator())


def unmasked(batch):
    """`token_ids` as they were before masking."""
    token_ids = batch["token_ids"].copy()
    rows, slots = np.nonzero(batch["mask_weights"])
    token_ids[rows, batch["mask_positions"][rows, slots]] = batch["mask_ids"][rows, slots]
    return token_ids


def segments(batch):
    """The tokens of A and of B of each row, from 0 on, without special tokens."""
    token_ids = unmasked(batch)
    for ids, second, real in zip(
        token_ids, batch["segment_ids"] == 1, batch["padding_mask"] == 1, strict=True
    ):
        assert ids[0] == 2 and ids[real][-1] == 3 and (ids[~real] == 0).all()
        a, b = ids[real & ~second][1:-1], ids[second][:-1]
        yield a - FIRST, b - FIRST


def places(documents):
    """Document of each token, and whether it is the first of a sentence."""
    of_token = np.repeat(np.arange(len(documents)), [sum(lengths) for lengths in documents])
    starts = np.cumsum([0, *(length for lengths in documents for length in lengths)])[:-1]
    return of_token, np.isin(np.arange(of_token.size), starts)


def assert_same(batches, others):
    assert len(batches) == len(others) > 0
    for one, other in zip(batches, others, strict=True):
        assert one.keys() == other.keys()
        for key in one:
            np.testing.assert_array_equal(one[key], other[key], err_msg=key)


def rows_of(batches):
    return {key: np.concatenate([batch[key] for batch in batches]) for key in batches[0]}


@pytest.mark.thorough
def test_batches_keep_the_contract(stream, batches):
    shapes = {key: (tuple(spec.shape), spec.dtype) for key, spec in stream.element_spec.items()}
    wide, slots = ((40, 32), tf.int32), ((40, 5), tf.int32)
    assert shapes == {
        "token_ids": wide,
        "segment_ids": wide,
        "padding_mask": wide,
        "mask_positions": slots,
        "mask_ids": slots,
        "mask_weights": ((40, 5), tf.float32),
        "next_sentence_labels": ((40,), tf.int32),
    }
    for batch in batches:
        check_batch(batch, require=shapes)
    assert stream.cardinality() == tf.data.INFINITE_CARDINALITY


def test_labels_say_the_truth(batches):
    """0 if B follows A in its document, 1 if it comes from another."""
    of_token, begins_sentence = places(documents(200))
    labels, together = [], 0
    for batch in batches:
        for (a, b), label in zip(segments(batch), batch["next_sentence_labels"], strict=True):
            assert (np.diff(a) == 1).all() and (np.diff(b) == 1).all() and a.size and b.size
            full = a.size + b.size == 29
            if label == 0:
                assert of_token[a[0]] == of_token[b[0]] and b[0] > a[-1]
                assert full or b[0] == a[-1] + 1
            else:
                assert of_token[a[0]] != of_token[b[0]]
                assert full or begins_sentence[b[0]]
                # The corpus is in the order of its numbers: neighbours are as likely as others.
                together += abs(of_token[a[0]] - of_token[b[0]]) == 1
            labels.append(label)
    assert 0.5 < np.mean(labels) < 0.75
    assert together < 0.1 * sum(labels)


@pytest.mark.thorough
def test_every_epoch_has_everything_in_new_pairs_and_masks(corpus, batches):
    """Nothing is lost between epochs."""
    one_pass = pretraining_dataset(corpus, repeat=False, **SETTINGS, **SMALL_BLOCKS)
    epoch = list(one_pass.as_numpy_iterator())
    assert_same(epoch, list(one_pass.as_numpy_iterator()))  # with the same masks
    size = sum(len(batch["token_ids"]) for batch in epoch)
    assert 0 < len(epoch[-1]["token_ids"]) < 40 and size > 200
    rows = rows_of(batches)
    assert_same([rows_of(epoch)], [{key: value[:size] for key, value in rows.items()}])

    of_token, _ = places(documents(200))
    firsts = [a[0] for a, _ in segments(rows)]
    # A document begins with the A of one row, unless tokens were cut in front of it.
    assert set(of_token[firsts[:size]]) == set(range(200))
    second = slice(size, 2 * size)
    pairs = [(a[0], a.size, b[0], b.size) for a, b in segments(rows)]
    assert len(set(pairs[:size]) & set(pairs[second])) < 0.1 * size


@pytest.mark.one_quick
@pytest.mark.parametrize("first", [1, 26])
def test_starting_anywhere(stream, batches, first):
    found = list(stream.starting_at(first).take(30 - first).as_numpy_iterator())
    assert_same(found, batches[first:])


@pytest.mark.thorough
def test_starting_again_and_start(corpus, batches):
    dataset = pretraining_dataset(corpus, start=9, **SETTINGS, **SMALL_BLOCKS)
    again = dataset.starting_at(11)
    assert_same(list(again.take(3).as_numpy_iterator()), batches[20:23])
    assert again.element_spec == dataset.element_spec


@pytest.mark.thorough
def test_training_starts_where_it_stopped(stream, batches):
    source = DatasetSource(stream, lambda batch: batch)
    assert source.endless and source.steps is None
    assert_same(list(source.stream(21).take(2).as_numpy_iterator()), batches[21:23])
    assert_same(list(source.stream().take(2).as_numpy_iterator()), batches[:2])


@pytest.mark.thorough
def test_same_rows_at_any_parallelism_and_batch_size(corpus, batches):
    settings = SETTINGS | SMALL_BLOCKS | {"batch_size": 1200, "num_parallel_calls": 1}
    (found,) = pretraining_dataset(corpus, **settings).take(1).as_numpy_iterator()
    assert_same([found], [rows_of(batches)])


@pytest.mark.thorough
def test_other_seed_other_rows(corpus, batches):
    settings = SETTINGS | SMALL_BLOCKS | {"seed": 4}
    (found,) = pretraining_dataset(corpus, **settings).take(1).as_numpy_iterator()
    assert (found["token_ids"] != batches[0]["token_ids"]).any(axis=1).mean() > 0.9


@pytest.mark.thorough
def test_sentence_order(corpus):
    dataset = pretraining_dataset(corpus, objective="sop", repeat=False, **SETTINGS)
    rows = rows_of(list(dataset.as_numpy_iterator()))
    check_batch(rows)
    of_token, _ = places(documents(200))
    for (a, b), swapped in zip(segments(rows), rows["next_sentence_labels"], strict=True):
        if a.size and b.size:  # a document of one token has but one half
            assert of_token[a[0]] == of_token[b[0]] and (a[0] > b[0]) == swapped
    assert 0.4 < rows["next_sentence_labels"].mean() < 0.6


@pytest.mark.thorough
def test_next_sentences_and_their_order(tmp_path):
    """A quarter of the pairs is random and a quarter swapped, and labels say which follow."""
    lengths = [[4] * 60] * 50
    write_corpus(tmp_path, lengths)
    settings = SETTINGS | {"short_seq_prob": 0.0}  # a few documents would make half of the rows
    dataset = pretraining_dataset(tmp_path, objective="nsp_sop", repeat=False, **settings)
    rows = rows_of(list(dataset.as_numpy_iterator()))
    check_batch(rows)
    of_token, _ = places(lengths)
    kinds = {"follows": 0, "random": 0, "swapped": 0}
    for (a, b), label in zip(segments(rows), rows["next_sentence_labels"], strict=True):
        same = of_token[a[0]] == of_token[b[0]] if a.size and b.size else True
        kind = "follows" if not label else "swapped" if same else "random"
        kinds[kind] += 1
        if a.size and b.size and same:
            assert (a[0] > b[0]) == label
    shares = {kind: count / len(rows["token_ids"]) for kind, count in kinds.items()}
    assert shares == pytest.approx({"follows": 0.5, "random": 0.25, "swapped": 0.25}, abs=0.07)


@pytest.mark.parametrize(("cross", "shards"), [(False, 4), (True, 1)])
def test_packed_rows_hold_every_token_once(tmp_path, cross, shards):
    """Without next sentence prediction there are no labels and no second segment."""
    lengths = documents(30)
    write_corpus(tmp_path, lengths, shards)
    dataset = pretraining_dataset(
        tmp_path, objective="mlm", repeat=False, cross_documents=cross, **SETTINGS, block_tokens=400
    )
    rows = rows_of(list(dataset.as_numpy_iterator()))
    check_batch(rows)
    assert "next_sentence_labels" not in rows and not rows["segment_ids"].any()
    of_token, _ = places(lengths)
    real = rows["padding_mask"] == 1
    inside = [ids[used][1:-1] for ids, used in zip(unmasked(rows), real, strict=True)]
    tokens = [row[row != 3] - FIRST for row in inside]  # without the [SEP] between documents
    assert sorted(np.concatenate(tokens)) == list(range(of_token.size))
    assert any(np.unique(of_token[row]).size > 1 for row in tokens) == cross
    assert any(3 in row for row in inside) == cross


@pytest.mark.thorough
def test_one_document(tmp_path):
    write_corpus(tmp_path, [[5, 4, 6, 3, 5, 7, 6, 4, 3, 2, 6, 5]])
    with pytest.warns(UserWarning, match="the corpus is one document"):
        dataset = pretraining_dataset(tmp_path, **SETTINGS)
    labels = []
    for batch in dataset.take(10).as_numpy_iterator():
        for (a, b), label in zip(segments(batch), batch["next_sentence_labels"], strict=True):
            assert not label or (b[0] != a[-1] + 1 and not set(a) & set(b))
            labels.append(label)
    assert {0, 1} == set(labels)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([[5]] * 6, "6 documents have 6 sentences.*blank line after every sentence"),
        ([[40, 50], [60, 40]], "47 tokens on average.*one sentence per line"),
    ],
)
def test_corpora_with_next_to_no_true_pairs(tmp_path, lengths, message):
    index = read_index(write_corpus(tmp_path, lengths))
    with pytest.warns(UserWarning, match=message):
        _check_documents(index, sequence_length=32)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "rtd"}, "objective='rtd': expected one of nsp, sop, nsp_sop, mlm"),
        (
            {"sequence_length": 4},
            "sequence_length=4: expected at least 5, for 3 special",
        ),
        ({"sequence_length": 3, "objective": "mlm"}, "at least 4, for 2 special"),
        ({"max_predictions": 30}, "max_predictions=30: expected at most 29"),
        ({"max_predictions": 0}, "max_predictions=0: expected a whole number, 1 or more"),
        ({"batch_size": 0}, "batch_size=0: expected a whole number, 1 or more"),
        ({"block_tokens": 0}, "block_tokens=0: expected a whole number, 1 or more"),
        ({"start": -1}, "start=-1: expected a whole number, 0 or more"),
        ({"short_seq_prob": 1.5}, "short_seq_prob=1.5: expected a number from 0 to 1"),
        ({"cross_documents": True}, "expected objective='mlm', not 'nsp'"),
        ({"unit": "sentence"}, "unit='sentence': expected one of piece, word"),
        (
            {"tokenizer": BertTokenizer(SPECIALS)},
            r"vocabulary of \d+ tokens.* a different one, of 5",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:max_predictions=0")
def test_wrong_settings(corpus, settings, message):
    with pytest.raises(ValueError, match=message):
        pretraining_dataset(corpus, **SETTINGS | settings)


@pytest.mark.parametrize(
    ("length", "cap", "rate", "effect"),
    [
        (128, 20, 0.15, None),  # the paper's
        (128, 19, 0.15, None),
        (512, 76, 0.15, None),  # the Model Garden's, of 76.8
        (512, 80, 0.15, None),
        (128, 51, 0.4, None),
        (512, 20, 0.15, "rows get fewer masks"),
        (128, 18, 0.15, "rows get fewer masks"),
        (128, 20, 0.4, "rows get fewer masks"),
        (128, 80, 0.15, "most slots are unused"),
    ],
)
def test_cap_and_length_that_do_not_match(length, cap, rate, effect):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _warn_of_cap(cap, length, rate)
    assert [effect in str(warning.message) for warning in caught] == ([True] if effect else [])


def test_vocabulary_without_mask(tmp_path):
    write_corpus(tmp_path, documents(5), specials=SPECIALS[:4])
    with pytest.raises(ValueError, match=r"has no \[MASK\]") as raised:
        pretraining_dataset(tmp_path, **SETTINGS)
    assert str(tmp_path) in str(raised.value)


def test_corpora_that_are_none(tmp_path, corpus):
    with pytest.raises(FileNotFoundError, match="is not a prepared corpus"):
        pretraining_dataset(tmp_path, **SETTINGS)
    write_corpus(tmp_path, [])
    with pytest.raises(ValueError, match="the corpus is empty"):
        pretraining_dataset(tmp_path, **SETTINGS)
    write_corpus(tmp_path, [[3]])
    with pytest.raises(ValueError, match="at least 2 sentences.*one document of one sentence"):
        pretraining_dataset(tmp_path, **SETTINGS)
    write_corpus(tmp_path, documents(9))
    (shard,) = tmp_path.glob("*.tfrecord")
    shard.write_bytes(shard.read_bytes()[:-7])
    with pytest.raises(ValueError, match="truncated") as raised:
        pretraining_dataset(tmp_path, **SETTINGS)
    assert shard.name in str(raised.value)


@pytest.mark.thorough
def test_record_of_another_vocabulary(tmp_path):
    write_corpus(tmp_path, documents(9))
    path = tmp_path / "index.json"
    index = json.loads(path.read_text())
    path.write_text(json.dumps(index | {"vocabulary_size": 50}))
    dataset = pretraining_dataset(tmp_path, **SETTINGS)
    with pytest.raises(tf.errors.InvalidArgumentError, match="record of another vocabulary"):
        next(iter(dataset))


@pytest.mark.parametrize(("count", "block_tokens"), [(7, 1), (200, 500), (200, 1000), (5, 10**6)])
def test_no_block_is_small(tmp_path, count, block_tokens):
    index = read_index(write_corpus(tmp_path, documents(count)))
    size = _documents_in_a_block(index, block_tokens)
    rest = count % size
    assert size >= 2 and (rest == 0 or size > count or rest >= max(2, size / 2))
    assert size <= 2 * max(2, block_tokens * count / index.tokens + 1)


@pytest.mark.thorough
def test_benchmark(corpus, capsys):
    from tools.benchmark_stream import main

    arguments = "--sequence_length 32 --max_predictions 5 --rows 300 --parts 2".split()
    result = main([str(corpus), *arguments])
    assert result == json.loads(capsys.readouterr().out)
    assert len(result["rows_per_second"]) == 2 and result["best"] >= result["median"] > 0


# === Next tokens, and masking rates ===


@pytest.mark.thorough
def test_next_tokens_are_those_that_follow(corpus):
    settings = SETTINGS | {"objective": "lm", "max_predictions": 31}
    batches = list(pretraining_dataset(corpus, repeat=False, **settings).as_numpy_iterator())
    plain = SETTINGS | {"objective": "mlm"}
    for batch in batches:
        check_batch(batch, require=["mask_positions", "mask_ids", "mask_weights"])
        assert "next_sentence_labels" not in batch
        ids, lengths = batch["token_ids"], batch["padding_mask"].sum(1)
        assert not np.isin(ids, [SPECIALS.index("[MASK]")]).any()
        for row, length in enumerate(lengths):
            used = batch["mask_weights"][row] == 1
            assert used.sum() == length - 1  # all but the last token, which nothing follows
            positions = batch["mask_positions"][row][used]
            assert positions.tolist() == list(range(length - 1))
            assert batch["mask_ids"][row][used].tolist() == ids[row, 1:length].tolist()
            assert not batch["mask_ids"][row][~used].any()
    # The same rows as for masks, before masking.
    masked = next(pretraining_dataset(corpus, repeat=False, **plain).as_numpy_iterator())
    np.testing.assert_array_equal(unmasked(masked), batches[0]["token_ids"])


def test_some_next_tokens_of_a_row_are_drawn(corpus):
    settings = SETTINGS | {"objective": "lm", "max_predictions": 5}
    first, second = pretraining_dataset(corpus, **settings).take(2).as_numpy_iterator()
    long = first["padding_mask"].sum(1) == 32
    assert long.any() and (first["mask_weights"][long] == 1).all()
    positions = first["mask_positions"][long]
    assert (np.diff(positions, axis=1) > 0).all() and len(np.unique(positions)) > 10
    follows = np.take_along_axis(first["token_ids"][long], positions + 1, axis=1)
    np.testing.assert_array_equal(follows, first["mask_ids"][long])


@pytest.mark.thorough
def test_masking_rate_falls_with_the_rows_and_goes_on_where_it_stopped(corpus):
    settings = SETTINGS | {"objective": "mlm", "max_predictions": 16, "short_seq_prob": 0.0}
    stream = pretraining_dataset(corpus, rate=0.5, final_rate=0.1, rate_steps=64, **settings)
    batches = list(stream.take(100).as_numpy_iterator())
    weights = np.concatenate([batch["mask_weights"].sum(1) for batch in batches])
    lengths = np.concatenate([batch["padding_mask"].sum(1) for batch in batches])
    chunks = np.arange(len(weights)) // 512 * 512  # those that are masked together
    rates = 0.5 - 0.4 * np.minimum(chunks / (64 * 40), 1)
    # Candidates are all tokens but [CLS] and [SEP]; halves round to even, as Python's do.
    wanted = np.array(
        [min(16, n - 2, max(1, round(float(r) * n))) for r, n in zip(rates, lengths, strict=True)]
    )
    assert np.abs(weights - wanted).max() <= 1 and np.mean(weights != wanted) < 0.02  # float32
    for first in (7, 70):
        again = next(stream.starting_at(first).as_numpy_iterator())
        for name, value in again.items():
            np.testing.assert_array_equal(value, batches[first][name])
    # Held-out rows have the first rate, wherever they stand.
    kept = pretraining_dataset(corpus, repeat=False, rate=0.1, **settings | {"max_predictions": 5})
    batch = next(kept.as_numpy_iterator())
    assert batch["mask_weights"].sum(1).max() == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"final_rate": 0.1}, "final_rate=0.1, rate_steps=None: expected both or neither"),
        ({"final_rate": 1.5, "rate_steps": 3}, "final_rate=1.5: expected a number above 0"),
        ({"final_rate": 0.1, "rate_steps": 0}, "rate_steps=0: expected a whole number, 1 or more"),
        ({"objective": "lm", "rate": 0.2}, "objective='lm' masks nothing: expected no rate"),
        ({"objective": "lm", "max_predictions": 32}, "max_predictions=32: expected at most 31"),
        ({"objective": "lm", "max_predictions": 0}, "max_predictions=0: expected a whole number"),
    ],
)
def test_rates_and_next_tokens_that_cannot_be(corpus, settings, message):
    with pytest.raises(ValueError, match=message):
        pretraining_dataset(corpus, **SETTINGS | settings)
