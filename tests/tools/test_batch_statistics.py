import json
import logging

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.data.masking import Masker
from keras_bert.text.tokenizer import BertTokenizer
from tools.batch_statistics import BatchStatistics, draw_lengths, unmasked

PAD, UNK, CLS, SEP, MASK = range(5)
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"the cat sat it slept".split()]
MASK_KEYS = ["mask_positions", "mask_ids", "mask_weights"]


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(VOCABULARY)


def pairs(tokenizer, rows=61, length=23, slots=5, seed=0):
    """Masked pairs of random lengths; random tokens may be special ones, as in the original."""
    generator = np.random.default_rng(seed)
    ids = np.zeros([rows, length], "int32")
    segment_ids = np.zeros_like(ids)
    for row, segments in zip(ids, segment_ids, strict=True):
        first, second = generator.integers(1, length // 2 - 1, 2)
        tokens = generator.integers(MASK + 1, len(VOCABULARY), first + second)
        row[: first + second + 3] = [CLS, *tokens[:first], SEP, *tokens[first:], SEP]
        segments[first + 2 : first + second + 3] = 1
    padding_mask = (ids != PAD).astype("int32")
    masked = Masker(tokenizer, slots, 0.4)(ids, padding_mask, [0, seed])
    labels = generator.integers(0, 2, rows).astype("int32")
    batch = {"segment_ids": segment_ids, "padding_mask": padding_mask}
    return batch | {k: v.numpy() for k, v in masked.items()} | {"next_sentence_labels": labels}, ids


def test_masks_are_put_back(tokenizer):
    batch, ids = pairs(tokenizer)
    masked = batch["token_ids"].copy()
    np.testing.assert_array_equal(unmasked(batch), ids)
    np.testing.assert_array_equal(batch["token_ids"], masked)  # the batch stays as it is
    bare = {name: value for name, value in batch.items() if name not in MASK_KEYS}
    np.testing.assert_array_equal(unmasked(bare), masked)


def test_a_report_is_what_plain_counting_gives(tokenizer):
    statistics = BatchStatistics(tokenizer)
    lengths, kinds, slots, labels = [], [], 0, []
    for seed in range(3):
        batch, ids = pairs(tokenizer, rows=61 + seed, seed=seed)
        if seed == 1:
            statistics.add({name: tf.constant(value) for name, value in batch.items()})
        else:
            statistics.add(batch)
        labels.extend(batch["next_sentence_labels"].tolist())
        slots += batch["mask_ids"].size
        for row, before in enumerate(ids.tolist()):
            first = before.index(SEP) - 1
            total = len(before) - before.count(PAD)
            weights = batch["mask_weights"][row]
            lengths.append((first, total - first - 3, total, int(weights.sum())))
            for position, was in zip(
                batch["mask_positions"][row], batch["mask_ids"][row], strict=True
            ):
                if position:
                    now = batch["token_ids"][row, position]
                    kinds.append("mask" if now == MASK else "same" if now == was else "other")
    report = statistics.report()
    assert json.loads(json.dumps(report)) == report
    first, second, total, masked = np.array(lengths).T
    assert report["rows"] == len(lengths) == 186 and report["sequence_length"] == 23
    assert report["padding_share"] == pytest.approx(1 - total.sum() / (23 * 186))
    for name, values in (
        ("length_a", first),
        ("length_b", second),
        ("length_total", total),
        ("masked_per_row", masked),
    ):
        assert report[name]["mean"] == pytest.approx(values.mean())
        quantiles = {str(p): np.percentile(values, p) for p in (1, 5, 10, 25, 50, 75, 90, 95, 99)}
        assert report[name]["quantiles"] == pytest.approx(quantiles)
    assert report["length_total"]["share_full"] == np.mean(total == 23)
    assert report["masked_share"] == pytest.approx(masked.sum() / total.sum())
    assert report["free_slot_share"] == pytest.approx(1 - masked.sum() / slots)
    shares = {kind: kinds.count(kind) / len(kinds) for kind in ("mask", "same", "other")}
    assert report["masked_as"] == pytest.approx(shares)
    assert report["label_1_share"] == pytest.approx(np.mean(labels))


def test_what_batches_do_not_have_is_left_out(tokenizer):
    batch, ids = pairs(tokenizer)
    alone = {"token_ids": ids, "segment_ids": ids * 0, "padding_mask": batch["padding_mask"]}
    statistics = BatchStatistics(tokenizer)
    statistics.add(alone)
    report = statistics.report()
    assert set(report) == {"rows", "sequence_length", "padding_share", "length_a", "length_total"}
    # [CLS] and two [SEP] are no words, whatever the segment.
    assert report["length_a"]["mean"] == pytest.approx(report["length_total"]["mean"] - 3)


def test_errors_say_what_is_wrong(tokenizer):
    batch, _ = pairs(tokenizer)
    statistics = BatchStatistics(tokenizer)
    with pytest.raises(ValueError, match="no batch had a row"):
        statistics.report()
    with pytest.raises(ValueError, match="missing.*mask_ids"):
        statistics.add({name: value for name, value in batch.items() if name != "mask_ids"})
    statistics.add(batch)
    with pytest.raises(ValueError, match="others of the stream had more or fewer"):
        statistics.add({k: v for k, v in batch.items() if k != "next_sentence_labels"})
    assert statistics.report()["rows"] == 61  # what was refused is not counted


def test_lengths_are_drawn(tokenizer, tmp_path):
    pytest.importorskip("matplotlib")
    statistics = BatchStatistics(tokenizer)
    statistics.add(pairs(tokenizer)[0])
    contents = []
    for name in ("one.png", "folder/two.png"):
        assert draw_lengths(statistics, tmp_path / name)
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1] and contents[0].startswith(b"\x89PNG")
    assert len(contents[0]) > 5000


def test_without_matplotlib_a_warning_says_so(tokenizer, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with caplog.at_level(logging.WARNING):
        assert not draw_lengths(BatchStatistics(tokenizer), tmp_path / "none.png")
    assert "matplotlib" in caplog.text and not list(tmp_path.iterdir())
