"""SavedModels, asked in a fresh process from another folder (cases EXP of the users' log)."""

import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_bert import BertClassifier
from tests.serving.asked import SERVE, serve

pytestmark = pytest.mark.optimized

TINY = Path(__file__).parents[1] / "golden" / "tiny_one_block"
TEXTS = ["rain wind", "", "The HARBOUR froze boats boats boats boats", "Straße é 中 😀", "[MASK]"]


@pytest.fixture(scope="module")
def model():
    return BertClassifier.from_preset(TINY, padding="bucket")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A SavedModel that was moved away and whose vocabulary's source is gone."""
    root = tmp_path_factory.mktemp("export")
    source = root / "source"
    BertClassifier.from_preset(TINY).save_to_preset(source)
    model = BertClassifier.from_preset(source)
    ops = model.export(root / "here" / "model")
    for path in sorted(source.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (root / "there").mkdir()
    (root / "here" / "model").rename(root / "there" / "moved")
    return root / "there" / "moved", ops


@pytest.mark.slow
def test_strings_in_answers_out(exported, model, tmp_path):
    folder, ops = exported
    assert "FastWordpieceTokenizeWithOffsets" in ops
    requests = [["serving_default", {"text": [text]}] for text in TEXTS]
    requests.append(["serving_default", {"text": TEXTS}])
    requests.append(["pair", {"text": TEXTS, "text_pair": TEXTS[::-1]}])
    replies = serve(folder, requests, cwd=tmp_path)
    logits = model.predict(TEXTS, verbose=0)
    labels, probabilities = model.classify(TEXTS, verbose=0)
    np.testing.assert_allclose(replies[-2]["logits"], logits, atol=1e-5)
    np.testing.assert_allclose(replies[-2]["probability"], probabilities, atol=1e-5)
    assert replies[-2]["label"] == labels
    for row, reply in enumerate(replies[: len(TEXTS)]):
        np.testing.assert_allclose(reply["logits"][0], logits[row], atol=1e-5)
    pairs = model.predict((TEXTS, TEXTS[::-1]), verbose=0)
    np.testing.assert_allclose(replies[-1]["logits"], pairs, atol=1e-5)


@pytest.mark.slow
def test_ids_of_any_length(exported, model):
    rng = np.random.default_rng(0)
    requests, expected = [], []
    for length in (1, 5, 13):
        ids = rng.integers(5, 15, (2, length))
        inputs = {"token_ids": ids, "segment_ids": ids * 0, "padding_mask": ids * 0 + 1}
        expected.append(model.predict(inputs, verbose=0))
        requests.append(["tokens", {k: v.tolist() for k, v in inputs.items()}])
    too_long = {k: [[1] * 14] for k in ("token_ids", "segment_ids", "padding_mask")}
    replies = serve(exported[0], [*requests, ["tokens", too_long]])
    for reply, logits in zip(replies, expected, strict=False):
        np.testing.assert_allclose(reply["logits"], logits, atol=1e-5)
    assert "longer than 13, the positions of the model" in replies[-1]["error"]


@pytest.mark.slow
def test_ids_alone_need_plain_tensorflow(model, tmp_path):
    assert model.export(tmp_path / "ids", text=False) == []
    inputs = {"token_ids": [[2, 5, 3]], "segment_ids": [[0] * 3], "padding_mask": [[1] * 3]}
    (reply,) = serve(tmp_path / "ids", [["serving_default", inputs]], ops="plain")
    logits = model.predict({k: np.array(v) for k, v in inputs.items()}, verbose=0)
    np.testing.assert_allclose(reply["logits"], logits, atol=1e-5)


@pytest.mark.slow
def test_string_signatures_name_the_ops_they_need(exported):
    command = [sys.executable, "-c", SERVE, "plain", str(exported[0])]
    done = subprocess.run(command, capture_output=True, text=True, input="")
    assert done.returncode != 0
    assert any(op in done.stderr for op in exported[1])


@pytest.mark.slow
def test_mixed_precision_serves_float32(tmp_path):
    texts, labels = ["rain wind", "the harbour froze", "a boat"] * 4, [0, 1, 2] * 4
    model = BertClassifier.from_preset(TINY, dtype="mixed_float16")
    model.compile(learning_rate=1e-3)
    model.fit(texts, labels, verbose=0)
    model.export(tmp_path / "half")
    full = BertClassifier.from_preset(TINY)
    for weight, value in zip(full.weights, model.weights, strict=True):
        weight.assign(value)
    inputs = {"token_ids": [[2, 5, 3]], "segment_ids": [[0] * 3], "padding_mask": [[1] * 3]}
    requests = [["serving_default", {"text": texts[:3]}], ["tokens", inputs]]
    text_reply, ids_reply = serve(tmp_path / "half", requests)
    np.testing.assert_allclose(text_reply["logits"], full.predict(texts[:3], verbose=0), atol=1e-2)
    ids = {k: np.array(v) for k, v in inputs.items()}
    np.testing.assert_allclose(ids_reply["logits"], full.predict(ids, verbose=0), atol=1e-2)


def test_no_preprocessor(model):
    bare = BertClassifier(model.backbone, 3)
    with pytest.raises(ValueError, match="no preprocessor.*export.text=False. is for ids"):
        bare.export("anywhere")


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["multi_label", "regression"])
def test_other_problems_answer_as_predict_does(problem, tmp_path):
    model = BertClassifier.from_preset(TINY, problem=problem, num_classes=3, skip_mismatch=True)
    if problem == "multi_label":
        model.labels, model.thresholds = ["a", "b", "c"], [0.5, 0.49, 0.1]
    model.export(tmp_path / "model")
    (reply,) = serve(tmp_path / "model", [["serving_default", {"text": TEXTS}]])
    outputs = model.predict(TEXTS, verbose=0)
    if problem == "regression":
        assert set(reply) == {"values"}
        np.testing.assert_allclose(reply["values"], outputs, atol=1e-5)
        return
    labels, probabilities = model.classify(TEXTS, verbose=0)
    np.testing.assert_allclose(reply["probabilities"], probabilities, atol=1e-5)
    np.testing.assert_allclose(reply["logits"], outputs, atol=1e-5)
    given = [
        [name for name, yes in zip(*row, strict=True) if yes]
        for row in zip(reply["labels"], reply["given"], strict=True)
    ]
    assert given == labels


@pytest.mark.parametrize("kind", ["export", "litert", "onnx"])
def test_a_path_that_cannot_be_made_fails_before_the_work(kind, tmp_path, monkeypatch):
    from keras_bert.serving.other_runtimes import to_litert, to_onnx

    model = BertClassifier.from_preset(TINY)
    write = {
        "export": model.export,
        "litert": lambda path: to_litert(model, path),
        "onnx": lambda path: to_onnx(model, path),
    }[kind]
    (tmp_path / "file").touch()

    def traced(*_):
        raise AssertionError("the model was traced")

    monkeypatch.setattr(type(model), "call", traced)
    for path in (tmp_path / "file" / "model", "/proc/self/nothing/model"):
        with pytest.raises(OSError):
            write(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.thorough
def test_an_export_says_what_it_does_and_leaves_the_logs_alone(tmp_path, capsys, caplog):
    handlers = logging.root.handlers[:]
    with caplog.at_level(logging.INFO):
        BertClassifier.from_preset(TINY).export(tmp_path / "model")
    said = capsys.readouterr().err
    assert f"tracing BertClassifier and writing {tmp_path / 'model'}" in said
    assert logging.root.handlers == handlers
    lines = [record.getMessage() for record in caplog.records if "ritten" in record.getMessage()]
    assert lines == [f"SavedModel written to: {tmp_path / 'model'}"]
    BertClassifier.from_preset(TINY).export(tmp_path / "model", verbose=0)
    assert "tracing" not in capsys.readouterr().err
