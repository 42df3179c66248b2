import hashlib
import json
import re

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.data.records import (
    CorpusIndex,
    Shard,
    document_example,
    index_content,
    vocabulary_content,
)
from tools import show_batches

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIAL, *(f"w{i}" for i in range(20)), *(f"##s{i}" for i in range(5))]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A prepared corpus of random sentences."""
    folder = tmp_path_factory.mktemp("corpus")
    generator = np.random.default_rng(0)
    documents = [generator.integers(3, 9, generator.integers(5, 30)).tolist() for _ in range(31)]
    file = folder / "shard-00000-of-00001.tfrecord"
    with tf.io.TFRecordWriter(str(file)) as writer:
        for lengths in documents:
            tokens = generator.integers(len(SPECIAL), len(VOCABULARY), sum(lengths))
            writer.write(document_example(tokens.tolist(), lengths))
    vocabulary = vocabulary_content(VOCABULARY)
    (folder / "vocab.txt").write_bytes(vocabulary)
    shard = Shard(
        file.name,
        documents=len(documents),
        sentences=sum(map(len, documents)),
        tokens=sum(map(sum, documents)),
        bytes=file.stat().st_size,
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
    )
    index = CorpusIndex(
        str(folder),
        tokenizer={},
        vocabulary_size=len(VOCABULARY),
        vocabulary_sha256=hashlib.sha256(vocabulary).hexdigest(),
        seed=0,
        shards=(shard,),
        left_out={},
        source={},
    )
    (folder / "index.json").write_bytes(index_content(index))
    return str(folder)


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")


def run(capsys, *arguments):
    show_batches.main([*arguments])
    return capsys.readouterr().out


SETTINGS = ["--sequence_length", "37", "--batch_size", "7"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "objective, labels",
    [
        ("nsp", {"next", "random"}),
        pytest.param("sop", {"in order", "swapped"}, marks=pytest.mark.slow),
        pytest.param("nsp_sop", {"next", "random or swapped"}, marks=pytest.mark.slow),
        pytest.param("mlm", set(), marks=pytest.mark.slow),
    ],
)
def test_rows_are_shown(corpus, capsys, objective, labels):
    text = run(capsys, corpus, *SETTINGS, "--rows", "16", "--objective", objective)
    titles = re.findall(
        r"^(\d+)\. (?:[01]: ([a-z ]+), )?(\d+) tokens, (\d+) to predict$", text, re.M
    )
    assert [int(number) for number, *_ in titles] == list(range(16))
    assert {label for _, label, *_ in titles} - {""} == labels
    assert len(re.findall(r"^A \[CLS\] ", text, re.M)) == 16
    assert len(re.findall(r"^B ", text, re.M)) == 16 * (objective != "mlm")
    # As many signs of masked tokens as the titles say; [SEP] and the like are not among them.
    rows = text.split("\n\n", 1)[1]
    signs = re.findall(r"\[(?:w|##s)\d+\]|\{\S+\|\S+\}|\(\S+\)", rows)
    assert len(signs) == sum(int(masked) for *_, masked in titles)
    assert run(capsys, corpus, *SETTINGS, "--rows", "16", "--objective", objective) == text


@pytest.mark.thorough
def test_rows_are_written_as_a_page(corpus, capsys, tmp_path):
    page = tmp_path / "new" / "rows.html"
    arguments = ["--unit", "word", "--replace", "word", "--max_ngram", "2", "--rows", "3"]
    assert str(page) in run(capsys, corpus, *SETTINGS, *arguments, "--html", str(page))
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and text.count("<h2>") == 3
    assert text.count(' class="mask"') > 3


@pytest.mark.thorough
def test_a_report_is_written(corpus, capsys, tmp_path):
    text = run(capsys, corpus, *SETTINGS, "--report", str(tmp_path), "--batches", "5")
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["rows"] == 35 and report["sequence_length"] == 37
    assert report["length_a"]["mean"] + report["length_b"]["mean"] + 3 == pytest.approx(
        report["length_total"]["mean"]
    )
    assert 0.3 < report["label_1_share"] < 0.8 and report["masked_as"]["mask"] > 0.6
    for name in ("masked per row", "padding share", "masked as other", "label 1 share"):
        assert name in text
    assert (tmp_path / "lengths.png").exists() == ("lengths.png" in text)


@pytest.mark.slow
def test_start_goes_on_where_earlier_batches_end(corpus, capsys):
    both = run(capsys, corpus, *SETTINGS, "--rows", "14")
    later = run(capsys, corpus, *SETTINGS, "--rows", "7", "--start", "1")
    without_numbers = [re.sub(r"^\d+\. ", "", part, flags=re.M) for part in (both, later)]
    assert without_numbers[0].endswith(without_numbers[1].split("\n", 2)[2])


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--rows", "0"], "--rows must be 1 or more"),
        (["--html", "a.html", "--report", "b"], "--html is of rows"),
        (["--seqence_length", "3"], "unrecognized arguments"),
    ],
    ids=str,
)
def test_bad_options_are_named(corpus, capsys, arguments, message):
    with pytest.raises(SystemExit):
        show_batches.main([corpus, *arguments])
    assert message in capsys.readouterr().err
