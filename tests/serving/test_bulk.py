"""Answers for files: as `classify`, `tag` and `answer` give them, in order, also after a stop."""

import csv
import functools
import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertClassifier, BertTokenizer
from keras_bert.serving import bulk
from keras_bert.serving.bulk import answer_file
from keras_bert.serving.bulk_rows import RowReader, find_files
from keras_bert.tasks.masked_lm import BertMaskedLM
from keras_bert.tasks.multiple_choice import BertMultipleChoice
from keras_bert.tasks.question_answerer import BertQuestionAnswerer
from keras_bert.tasks.relation_classifier import BertRelationClassifier
from keras_bert.tasks.token_classifier import BertTokenClassifier
from keras_bert.text.masked_lm_preprocessor import BertMaskedLMPreprocessor
from keras_bert.text.multiple_choice_preprocessor import BertMultipleChoicePreprocessor
from keras_bert.text.question_answering_preprocessor import BertQuestionAnswererPreprocessor
from keras_bert.text.relation_preprocessor import BertRelationPreprocessor
from keras_bert.text.token_classifier_preprocessor import BertTokenClassifierPreprocessor
from keras_bert_cli.main import run

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "golden" / "tiny_one_block"
WORDS = 'rain wind the a harbour froze boat red boats "red" Straße é 中 😀 [MASK] a,b'.split()


def some_texts(count):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(0, 25))) for _ in range(count)]
    return ["x\u2028y\u0085z\rboat", *texts[1:]]


TEXTS = some_texts(80)


@pytest.fixture(scope="module")
def model():
    return BertClassifier.from_preset(TINY, padding="bucket")


@pytest.fixture(scope="module")
def export(model, tmp_path_factory):
    """An export, which is loaded once: that takes much longer than its answers here."""
    folder = tmp_path_factory.mktemp("export") / "model"
    model.export(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tf.saved_model, "load", functools.cache(tf.saved_model.load))
        yield folder


@pytest.fixture(scope="module")
def expected(model):
    """Labels, probabilities and logits of `TEXTS`."""
    return *model.classify(TEXTS, verbose=0), model.predict(TEXTS, verbose=0)


@pytest.fixture
def small_windows(monkeypatch):
    monkeypatch.setattr(bulk, "WINDOW_ROWS", 16)


def write(path, content):
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def answers(path):
    return [json.loads(line) for line in path.read_bytes().decode().splitlines()]


def read(path, inputs=None, columns=None):
    inputs = inputs or {"text": {"dtype": "string", "shape": [None]}}
    return list(RowReader(find_files(path), inputs, columns))


def as_csv(rows):
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\r\n").writerows(rows)
    return file.getvalue()


def check(found, expected, rows=range(len(TEXTS))):  # noqa: B008
    """Answers of a classifier against those of its verbs, for some of the texts."""
    labels, probabilities, logits = expected
    rows = list(rows)
    assert [answer["row"] for answer in found] == list(range(len(rows)))
    assert [answer["label"] for answer in found] == [labels[i] for i in rows]
    np.testing.assert_allclose([a["probability"] for a in found], probabilities[rows], atol=1e-5)
    np.testing.assert_allclose([a["logits"] for a in found], logits[rows], atol=1e-5)


def formats(tmp_path, pairs):
    """Files of ids, firsts under the name `a`, and seconds."""
    rows = [[f"n\u2028é{i}", b, a] for i, (a, b) in enumerate(pairs)]
    rows = [["id", "text_pair", "a"], *rows]
    objects = [{"a": a, "text_pair": b, "id": i} for i, (a, b) in enumerate(pairs)]
    lines = [
        json.dumps(o, ensure_ascii=i % 2 > 0) + "\n" * (1 + i % 2) for i, o in enumerate(objects)
    ]
    return [
        write(tmp_path / "a.csv", as_csv(rows)),
        write(tmp_path / "a.jsonl", "\ufeff" + "".join(lines)),
        write(tmp_path / "a.tsv.gz", "\n".join("\t".join(row) for row in rows) + "\n"),
    ]


@pytest.mark.thorough
def test_a_task_answers_as_its_export_does(model, export, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[:7]))
    found = []
    for number, source in enumerate((model, export)):
        answer_file(source, path, tmp_path / f"{number}.jsonl", verbose=False)
        lines = (tmp_path / f"{number}.jsonl").read_text().splitlines()
        found.append([json.loads(line) for line in lines])
    assert len(found[0]) == 7
    for one, other in zip(*found, strict=True):
        assert one["label"] == other["label"]
        assert one["probability"] == pytest.approx(other["probability"], rel=1e-4)


def test_every_format_gives_what_classify_gives(export, expected, tmp_path, small_windows, capsys):
    for path in formats(tmp_path, list(zip(TEXTS, TEXTS[::-1], strict=True))):
        output = tmp_path / f"{path.name}.out"
        count = answer_file(
            export, path, output, columns={"text": "a"}, batch_size=5, verbose=False
        )
        assert count == len(TEXTS)
        found = answers(output)
        check(found, expected)
        ids = [i if ".jsonl" in path.name else f"n\u2028é{i}" for i in range(len(TEXTS))]
        assert [answer["row_id"] for answer in found] == ids
        assert json.loads(Path(f"{output}.state.json").read_text())["done"] is True
    # Texts alone, from the command line.
    path = write(tmp_path / "a.txt.gz", "\n".join(TEXTS))
    command = ["predict", str(export), str(path), "-o", str(tmp_path / "out"), "--batch_size=7"]
    assert run(command) == 0
    check(answers(tmp_path / "out"), expected)
    assert set(answers(tmp_path / "out")[0]) == {"row", "label", "logits", "probability"}
    assert f"{len(TEXTS)} rows are answered" in capsys.readouterr().out


@pytest.mark.slow
def test_pairs_of_every_format(export, model, tmp_path, small_windows):
    pairs = (TEXTS, TEXTS[::-1])
    expected = *model.classify(pairs, verbose=0), model.predict(pairs, verbose=0)
    for path in formats(tmp_path, list(zip(*pairs, strict=True))):
        output = f"{path}.out"
        command = ["predict", str(export), str(path), "--signature=pair", "--column", "text=a"]
        assert run([*command, "--output", output]) == 0
        check(answers(Path(output)), expected)


class Stop(Exception):
    pass


def stopping(at):
    def stop(done, total):
        if done >= at:
            raise Stop

    return stop


def test_a_stopped_run_goes_on_with_the_same_bytes(export, tmp_path, small_windows):
    path = write(tmp_path / "a.txt", "\n".join(TEXTS) + "\n")
    whole, output = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    answer_file(export, path, whole, batch_size=4, verbose=False)
    said = []
    for at in (20, 45, 46):
        with pytest.raises(Stop):
            answer_file(export, path, output, batch_size=4, verbose=False, on_progress=stopping(at))
        said.append(len(output.read_bytes().splitlines()))
        assert said[-1] == at // 16 * 16
    answer_file(
        export, path, output, batch_size=4, verbose=False, on_progress=lambda *a: said.append(a)
    )
    assert said[3:] == [(done, 80) for done in range(36, 81, 4)]
    assert output.read_bytes() == whole.read_bytes()
    # What is whole is left alone.
    stamp = output.stat().st_mtime_ns
    answer_file(export, path, output, verbose=False, on_progress=stopping(0))
    assert output.stat().st_mtime_ns == stamp


def test_a_torn_line_is_cut_off(export, tmp_path, small_windows):
    path = write(tmp_path / "a.txt", "\n".join(TEXTS) + "\n")
    output = tmp_path / "out.jsonl"
    answer_file(export, path, output, batch_size=4, verbose=False)
    whole = output.read_bytes()
    lines = whole.splitlines(keepends=True)
    for size in (len(b"".join(lines[:37])) + 9, len(whole) - 1, 3):
        output.write_bytes(whole[:size])
        answer_file(export, path, output, batch_size=4, verbose=False)
        assert output.read_bytes() == whole
    # Lines that are no answers of this run.
    for wrong, line in (
        (lines[1:], 1),
        ([*lines[:5], b"\0" * 40 + b"\n"], 6),
        ([*lines, *lines], 81),
    ):
        output.write_bytes(b"".join(wrong))
        with pytest.raises(FileExistsError, match=f"out.jsonl, line {line}: expected the"):
            answer_file(export, path, output, verbose=False)
        assert output.read_bytes() == b"".join(wrong)


def test_another_model_or_input_is_refused(export, tmp_path):
    path = write(tmp_path / "a.txt", "rain\nwind\n")
    output = tmp_path / "out.jsonl"
    answer_file(export, path, output, verbose=False)
    before = output.read_bytes()

    def refused(match, *args, **kwargs):
        with pytest.raises(FileExistsError, match=match):
            answer_file(*args, verbose=False, **kwargs)
        assert output.read_bytes() == before

    other = tmp_path / "other"
    shutil.copytree(export, other)
    answer_file(other, path, output, verbose=False)  # the same, elsewhere
    assert output.read_bytes() == before
    # The checksum of a weight is all that training changes.
    index = other / "variables" / "variables.index"
    index.write_bytes(index.read_bytes()[:-1] + b"\1")
    refused("answers with another model; choose another output", other, path, output)
    refused("another signature: 'serving_default'", export, path, output, "tokenize")
    os.utime(path, ns=(1, 1))
    refused("another inputs: .*'a.txt', 10, 1]", export, path, output)
    Path(f"{output}.state.json").write_text("{}")
    refused("is no state of answers", export, path, output)
    Path(f"{output}.state.json").unlink()
    refused("is there, without out.jsonl.state.json", export, path, output)
    answer_file(export, path, output, "tokenize", resume=False, verbose=False)
    pieces = [{"row": 0, "token_ids": [5], "start": [0], "end": [4]}]
    pieces += [{"row": 1, "token_ids": [6], "start": [0], "end": [4]}]
    assert answers(output) == pieces


def test_another_task_is_refused(model, tmp_path):
    path, output = write(tmp_path / "a.txt", "rain\n"), tmp_path / "out.jsonl"
    first = bulk.TaskModel(model, "serving_default", {}).fingerprint()
    kernel = model.trainable_variables[-1]
    value = kernel.numpy()
    try:
        kernel.assign(value + 1e-3)
        assert bulk.TaskModel(model, "serving_default", {}).fingerprint() != first
    finally:
        kernel.assign(value)
    assert bulk.TaskModel(model, "serving_default", {}).fingerprint() == first
    with pytest.raises(
        ValueError, match="has no signature 'answers'; it has serving_default, pair"
    ):
        answer_file(model, path, output, "answers")


def test_no_rows(export, tmp_path):
    output = tmp_path / "out.jsonl"
    for name, content in (("a.txt", ""), ("a.csv", "text\r\n"), ("a.jsonl", ""), ("a.tsv.gz", "")):
        path = write(tmp_path / name, content)
        for _ in range(2):
            assert answer_file(export, path, output, verbose=False) == 0
        assert output.read_bytes() == b""
        output.unlink()
        Path(f"{output}.state.json").unlink()


def test_bad_rows_name_file_and_line(export, tmp_path, capsys):
    output = tmp_path / "out.jsonl"
    cases = {
        "column.csv": ("id,b\n1,2\n", "line 1: no column 'text' for the input 'text'"),
        "cells.tsv": ("id\ttext\n1\train\n2\n", "line 3: 1 columns ['2'], but expected 2"),
        "bytes.txt": (b"rain\nwind\n\xff\n", "line 3: byte 0xff at position 0 of the line is not"),
        "bytes.csv": (b"text\nrain\nwi\xe9nd\n", "line 3: byte 0xe9"),
        "quote.csv": ('text\n"rain\n', "record at line 2: not valid CSV"),
        "json.jsonl": ('{"text": "a"}\n{"text": \n', "line 2: not JSON"),
        "key.jsonl": ('{"text": "a"}\n\n{"txt": "a"}\n', "line 3: no column 'text'"),
        "null.jsonl": ('{"text": null}\n', "line 1: 'text': expected a string or a number, got No"),
        "half.jsonl": ('{"text": "\\ud800"}\n', "line 1: 'text': can't be written as UTF-8"),
        "list.jsonl": ('{"text": ["a"]}\n', "line 1: 'text': expected a string or a number"),
        "cut.csv.gz": (b"", "damaged gzip file"),
    }
    for name, (content, message) in cases.items():
        path = write(tmp_path / name, content)
        if name == "cut.csv.gz":
            path.write_bytes(gzip.compress(b"text\nrain\n" * 100)[:-9])
        with pytest.raises(ValueError) as caught:
            answer_file(export, path, output, verbose=False)
        assert str(caught.value).startswith(str(path)), name
        assert message in str(caught.value), name
        assert not output.exists()
    assert run(["predict", str(export), str(tmp_path / "cells.tsv"), "-o", str(output)]) == 1
    assert "cells.tsv, line 3: 1 columns" in capsys.readouterr().err
    with pytest.raises(ValueError, match="columns for txt, but the inputs are text"):
        answer_file(export, tmp_path / "key.jsonl", output, columns={"txt": "text"})


def test_what_a_graph_refuses_is_named(export, tmp_path):
    """Ids that no vocabulary has; nothing but the graph knows that."""
    rows = [{"token_ids": ids, "segment_ids": [0] * 3, "padding_mask": [1] * 3}
            for ids in ([2, 5, 3], [2, 6, 3], [2, 999, 3])]  # fmt: skip
    path = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match=r"a\.jsonl, line 3: .*token_ids lie outside of 0 to"):
        answer_file(export, path, tmp_path / "out", "tokens", verbose=False)
    rows[2] = {"token_ids": [2, 3], "segment_ids": [0] * 2, "padding_mask": [1] * 2}
    path = write(tmp_path / "b.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert answer_file(export, path, tmp_path / "out", "tokens", verbose=False) == 3


def test_a_folder_is_read_in_order(export, expected, tmp_path, caplog):
    folder = tmp_path / "in"
    (folder / "below").mkdir(parents=True)
    write(folder / "b.txt.gz", "\n".join(TEXTS[:5]) + "\n")
    write(folder / "a.csv", as_csv([["text"], *([text] for text in TEXTS[5:9])]))
    write(folder / "notes.md", "no texts")
    write(folder / "a.csv-old", as_csv([["text"], ["rain"]]))
    output = tmp_path / "out.jsonl"
    answer_file(export, folder, output, verbose=False)
    assert "left out, for their endings: a.csv-old, notes.md" in caplog.text
    found = answers(output)
    check(found, expected, [5, 6, 7, 8, 0, 1, 2, 3, 4])
    assert [answer["file"] for answer in found] == ["a.csv"] * 4 + ["b.txt.gz"] * 5
    with pytest.raises(ValueError, match="would lie in a folder of inputs"):
        answer_file(export, folder, folder / "out.jsonl")
    with pytest.raises(ValueError, match="is an input too"):
        answer_file(export, folder / "a.csv", folder / "a.csv", resume=False)
    with pytest.raises(ValueError, match="a.csv is named twice"):
        answer_file(export, [folder, folder / "a.csv"], output)
    with pytest.raises(FileNotFoundError, match="in/below holds no .jsonl"):
        answer_file(export, folder / "below", output)
    with pytest.raises(ValueError, match="extension '.md': expected .jsonl"):
        answer_file(export, folder / "notes.md", output)


def test_lists_are_json_or_columns(tmp_path):
    texts = {"dtype": "string", "shape": [None]}
    choices = {"context": texts, "choices": {"dtype": "string", "shape": [None, None]}}
    expected = [("it", ["a", "b,c"]), ("is", ["d", ""])]
    numbered = [["ending1", "context", "ending0"], ["b,c", "it", "a"], ["", "is", "d"]]
    plain = [["context", "choices"], ["it", '["a", "b,c"]'], ["is", '["d", ""]']]
    objects = [{"context": "it", "choices": ["a", "b,c"]}, {"context": "is", "choices": ["d", ""]}]
    for path, columns in (
        (write(tmp_path / "a.csv", as_csv(numbered)), {"choices": "endings"}),
        (write(tmp_path / "b.csv", as_csv(plain)), None),
        (write(tmp_path / "c.jsonl", "\n".join(map(json.dumps, objects))), None),
    ):
        rows = read(path, choices, columns)
        assert [(row.values["context"], row.values["choices"]) for row in rows] == expected
        assert [row.shape for row in rows] == [(2,), (2,)]
    with pytest.raises(ValueError, match="no column 'choices', nor choice0, choice1 and so on"):
        read(tmp_path / "a.csv", choices)

    spans = {"text": texts, "spans": {"dtype": "int32", "shape": [None, 2, 2]}}
    path = write(tmp_path / "d.csv", as_csv([["text", "spans"], ["a", "[[0, 1], [2, 3]]"]]))
    assert read(path, spans)[0].values["spans"] == [[0, 1], [2, 3]]
    for wrong, message in (
        ([[0, 1]], r"expected a list of 2, got \[\[0, 1\]\]"),
        ([[0, 1], [2, 3.5]], "expected a whole number of 32 bits, got 3.5"),
        ([[0, 1], [2, True]], "expected a whole number of 32 bits, got True"),
        ("x", "expected JSON, got 'x'"),
    ):
        path = write(tmp_path / "e.jsonl", "\n" + json.dumps({"text": "a", "spans": wrong}))
        with pytest.raises(ValueError, match=r"e\.jsonl, line 2: 'spans': " + message):
            read(path, spans)

    counted = {"words": choices["choices"], "count": {"dtype": "int32", "shape": [None]}}
    path = write(tmp_path / "f.jsonl", '{"words": ["a", "b"]}\n{"words": []}\n{"words": ["c"]}\n')
    reader = RowReader(find_files(path), counted, None)
    batch = {"words": [["a", "b"], ["", ""], ["c", ""]], "count": [2, 0, 1]}
    assert reader.columns(list(reader)) == batch


def test_floats_are_read_back_as_they_were():
    values = np.random.default_rng(0).normal(size=(50, 3)).astype("float32")
    back = json.loads(json.dumps(bulk._plain(values)))
    np.testing.assert_array_equal(np.array(back, "float32"), values)
    assert max(len(repr(number)) for row in back for number in row) < 17
    assert bulk._plain(values[0]) == [float(str(number)) for number in values[0]]
    odd = np.array([np.nan, np.inf, 0.1], "float32")
    assert bulk._plain(odd) == [None, None, 0.1]


# Tasks that give several things a row, or take lists; each makes graphs of some seconds.

SIGNS = "[PAD] [UNK] [CLS] [SEP] [MASK] $ # who where is ada grace hopper in paris met . 京".split()
NAMES = "ada grace hopper in paris met 京 zuse .".split()


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(SIGNS)


def made(cls, preprocessor, *args, **kwargs):
    """A task of random weights that are large enough for its answers to differ."""
    keras.utils.set_random_seed(3)
    backbone = BertBackbone(len(SIGNS), 1, 2, 16, 24, 64, hidden_dropout=0, attention_dropout=0)
    task = cls(backbone, *args, preprocessor=preprocessor, **kwargs)
    rng = np.random.default_rng(3)
    for weight in task.trainable_weights:
        if weight.path.endswith(("kernel", "embeddings")):
            weight.assign(rng.normal(0, 0.5, weight.shape))
    return task


def sentences(count, seed=1):
    rng = np.random.default_rng(seed)
    return ["  ".join(rng.choice(NAMES, rng.integers(1, 12))) for _ in range(count)]


def asked(task, tmp_path, rows, signature="serving_default"):
    """Answers to rows of JSON lines, in batches that mix them."""
    path = write(tmp_path / "in.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    output = tmp_path / f"{signature}.jsonl"
    assert answer_file(task, path, output, signature, batch_size=7, verbose=False) == len(rows)
    found = answers(output)
    assert [answer.pop("row") for answer in found] == list(range(len(rows)))
    return found


@pytest.mark.slow
def test_entities_and_tags_of_words(tokenizer, tmp_path, small_windows):
    labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    text_side = BertTokenClassifierPreprocessor(tokenizer, 16)
    task = made(BertTokenClassifier, text_side, labels=labels)
    texts = [*sentences(40), ""]
    found = asked(task, tmp_path, [{"text": text} for text in texts])
    counts = set()
    for answer, entities in zip(found, task.tag(texts, verbose=0), strict=True):
        counts.add(len(entities))
        assert set(answer) == {"entity", "label", "start", "end", "score"}
        assert answer["entity"] == [entity.text for entity in entities]
        for name in ("label", "start", "end"):
            assert answer[name] == [getattr(entity, name) for entity in entities]
        np.testing.assert_allclose(answer["score"], [e.score for e in entities], atol=1e-5)
    assert len(counts) > 3
    words = [text.split() for text in texts[:-1]]
    found = asked(task, tmp_path, [{"words": row} for row in words], "words")
    tags = task.predict_tags(words, verbose=0)
    assert [answer["tag"] for answer in found] == [list(row) for row in tags]


@pytest.mark.slow
def test_answers_to_questions(tokenizer, tmp_path, small_windows):
    text_side = BertQuestionAnswererPreprocessor(tokenizer, 14, stride=4, max_question_length=4)
    task = made(BertQuestionAnswerer, text_side, null_threshold=0.0)
    contexts = sentences(40)
    questions = ["who is", "where is"] * 20
    rows = [{"question": q, "context": c} for q, c in zip(questions, contexts, strict=True)]
    expected = task.answer(questions, contexts, top_k=5)
    found = asked(task, tmp_path, rows)
    assert [answer["answer"] for answer in found] == [one.text for one in expected]
    assert len({one.text for one in expected}) > 5
    for name in ("score", "null_score"):
        numbers = [getattr(one, name) for one in expected]
        np.testing.assert_allclose([answer[name] for answer in found], numbers, atol=1e-5)
    for answer, one in zip(asked(task, tmp_path, rows, "candidates"), expected, strict=True):
        assert answer["answer"] == [candidate.text for candidate in one.candidates]
        assert answer["start"] == [candidate.start for candidate in one.candidates]


@pytest.mark.slow
def test_choices_of_different_numbers(tokenizer, tmp_path, small_windows):
    text_side = BertMultipleChoicePreprocessor(tokenizer, 24)
    task = made(BertMultipleChoice, text_side)
    contexts, rng = sentences(40), np.random.default_rng(5)
    choices = [sentences(rng.integers(2, 5), seed) for seed in range(40)]
    rows = [{"context": c, "choices": some} for c, some in zip(contexts, choices, strict=True)]
    found = asked(task, tmp_path, rows)
    for row, answer in enumerate(found):
        logits = task.predict(([contexts[row]], [choices[row]]), verbose=0)[0]
        np.testing.assert_allclose(answer["logits"], logits, atol=1e-5)
        assert answer["text"] == choices[row][logits.argmax()]


@pytest.mark.slow
def test_relations_of_spans(tokenizer, tmp_path, small_windows):
    text_side = BertRelationPreprocessor(tokenizer, 24)
    task = made(BertRelationClassifier, text_side, labels=["born", "met", "none"])
    texts = [f"ada {text} paris" for text in sentences(40)]
    spans = [[[0, 3], [len(text) - 5, len(text)]] for text in texts]
    rows = [{"text": text, "spans": pair} for text, pair in zip(texts, spans, strict=True)]
    found = asked(task, tmp_path, rows)
    logits = task.predict((texts, [[tuple(s) for s in pair] for pair in spans]), verbose=0)
    np.testing.assert_allclose([answer["logits"] for answer in found], logits, atol=1e-5)
    names = [task.labels[i] for i in logits.argmax(axis=1)]
    assert [answer["label"] for answer in found] == names and len(set(names)) > 1
    rows[9]["spans"] = [[0, 3], [3, 999]]
    path = write(tmp_path / "wrong.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match=r"wrong\.jsonl, line 10: "):
        answer_file(task, path, tmp_path / "wrong.out", verbose=False)


@pytest.mark.slow
def test_fills_of_masks(tokenizer, tmp_path, small_windows):
    task = made(BertMaskedLM, BertMaskedLMPreprocessor(tokenizer, 24))
    texts = [f"{text} [MASK] in" + " [MASK]" * (i % 3) for i, text in enumerate(sentences(40))]
    found = asked(task, tmp_path, [{"text": text} for text in [*texts, "ada"]])
    assert found.pop() == {"id": [], "token": [], "score": []}
    for answer, masks in zip(found, task.fill(texts), strict=True):
        assert answer["token"] == [[one.token for one in mask] for mask in masks]
        assert answer["id"] == [[one.id for one in mask] for mask in masks]
        scores = [[one.score for one in mask] for mask in masks]
        np.testing.assert_allclose(answer["score"], scores, atol=1e-5)


@pytest.mark.slow
def test_a_killed_process_goes_on_with_the_same_bytes(export, tmp_path):
    path = write(tmp_path / "a.txt.gz", "\n".join(TEXTS * 250) + "\n")
    whole, output = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "keras_bert_cli", "predict", export, path]
    command += ["--output", output, "--batch_size", "16"]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    sizes = []
    for _ in range(2):
        before = output.stat().st_size if output.exists() else 0
        process = subprocess.Popen([*map(str, command)], env=env, stderr=subprocess.DEVNULL)
        while not output.exists() or output.stat().st_size <= before:
            assert process.poll() is None, "ended before it was killed"
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        sizes.append(len(output.read_bytes().splitlines()))
    assert 0 < sizes[0] < sizes[1] < len(TEXTS) * 250
    with open(output, "ab") as file:
        file.write(b'{"row": ')  # a kill within a write is rarer than this test can wait for
    done = subprocess.run([*map(str, command)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answer_file(export, path, whole, batch_size=16, verbose=False)
    assert output.read_bytes() == whole.read_bytes()
    assert len(whole.read_bytes().splitlines()) == len(TEXTS) * 250
