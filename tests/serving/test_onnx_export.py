"""Exports whose network runs in ONNX Runtime: the answers of the task, rows without TensorFlow."""

import keras
import numpy as np
import pytest

from keras_bert import BertClassifier
from keras_bert.layers.normalization import LayerNorm
from keras_bert.serving.bulk_model import ExportedModel
from keras_bert.serving.export_contract import read_contract
from keras_bert.text.ascii_rows import AsciiRows
from keras_bert.text.tokenizer import BertTokenizer
from tests.server.live import Gate, in_thread, live
from tests.serving.made import KINDS, TEXTS, TINY, asked, check, make, said

ASCII = [text for text in TEXTS if text.isascii()] * 3  # more than a chunk, of unequal lengths


@pytest.fixture(scope="module")
def model():
    for package in ("onnx", "tf2onnx", "onnxruntime"):
        pytest.importorskip(package)
    return BertClassifier.from_preset(TINY)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("onnx") / "int8"
    model.export(folder, format="onnx", weights="int8", verbose=0)
    return folder


def loaded(folder, signature="serving_default"):
    found = ExportedModel(folder, signature)
    found.load()
    return found


@pytest.mark.thorough
def test_answers_of_both_forms(model, tmp_path):
    model.export(tmp_path / "float32", format="onnx", verbose=0)
    found = loaded(tmp_path / "float32")
    for texts in (ASCII, TEXTS, TEXTS[:1], ["é"]):
        labels, probabilities = model.classify(texts, verbose=0)
        answers = found({"text": texts})
        assert [label.decode() for label in answers["label"]] == labels
        np.testing.assert_allclose(answers["probability"], probabilities, atol=1e-5)
        np.testing.assert_allclose(answers["logits"], model.predict(texts, verbose=0), atol=1e-5)
    assert found({"text": []})["logits"].shape == (0, model.num_classes)


@pytest.mark.thorough
def test_int8_arithmetic(model, folder):
    import onnx

    graph = onnx.load(folder / "network.onnx").graph
    ops = [node.op_type for node in graph.node]
    blocks = model.backbone.num_layers
    assert ops.count("LayerNormalization") == 2 * blocks + 1 and ops.count("Gelu") == blocks
    assert ops.count("MatMulInteger") >= 6 * blocks and "Erf" not in ops
    answers, logits = loaded(folder)({"text": TEXTS}), model.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(answers["logits"], logits, atol=0.2)
    weights = read_contract(folder)["weights"]
    assert weights["stored"] == "int8" and 0 < weights["difference"]["largest"] < 0.2


def test_ascii_texts_need_no_tensorflow(folder, monkeypatch):
    import tensorflow as tf

    found = loaded(folder)
    expected = found({"text": [*ASCII, "é"]})["logits"][:-1]  # through the graph

    def refuse(*_, **__):
        raise AssertionError("a tensor was made")

    monkeypatch.setattr(tf, "constant", refuse)
    np.testing.assert_allclose(found({"text": ASCII})["logits"], expected, atol=1e-5)


def test_a_text_that_is_not_utf8_is_refused_with_its_row(folder):
    import tensorflow as tf

    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"text.* is no valid UTF-8, in text\] \[1\]"
    ):
        loaded(folder)({"text": [b"rain", b"\xff"]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "tflite"}, "format='tflite': expected one of savedmodel, onnx"),
        ({"format": "onnx", "weights": "float16"}, "weights='float16': expected float32 or int8"),
        ({"format": "onnx", "text": False}, "text=False"),
        ({"weights": "int8"}, "weights='int8': expected float32 or float16"),
    ],
)
def test_wrong_settings(model, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        model.export(tmp_path / "no", **options, verbose=0)
    assert not (tmp_path / "no").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_task_answers_as_its_verbs_do(kind, tmp_path):
    task = make(kind)
    task.export(tmp_path / "onnx", format="onnx", verbose=0)
    for signature, inputs in asked(kind, TEXTS).items():
        reply = loaded(tmp_path / "onnx", signature)(inputs)
        reply = {name: _plain(value.tolist()) for name, value in reply.items()}
        check(reply, said(kind, task, signature, inputs), f"{kind}: {signature}")


def _plain(value):
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


@pytest.mark.parametrize("lowercase", [True, False])
def test_rows_of_ascii_texts_are_those_of_the_tokenizer(lowercase):
    tokens = "[PAD] [UNK] [CLS] [SEP] [MASK] a b ab ##a ##b ##ab A B aB # ##! ! 1 11 ##1 . [ ]"
    tokens = [*tokens.split(), "ab"]  # of duplicates the last counts
    tokenizer = BertTokenizer(tokens, lowercase=lowercase, max_word_length=5)
    rows = AsciiRows(tokens, lowercase, 5, 9, first=2, last=3, padding=0)
    rng = np.random.default_rng(3)
    letters = [*"aabbABB11#!.[] ", *map(chr, range(128))]
    texts = ["".join(rng.choice(letters, rng.integers(0, 15))) for _ in range(2000)]
    found = rows([text.encode() for text in texts])
    expected = tokenizer(texts).to_list()
    for row, mask, ids in zip(found["token_ids"], found["padding_mask"], expected, strict=True):
        ids = [2, *ids[:7], 3]
        assert row.tolist() == ids + [0] * (len(row) - len(ids))
        assert mask.tolist() == [1] * len(ids) + [0] * (len(row) - len(ids))
    assert rows(["a", "é"]) is None


def test_layer_norm_is_bitwise_that_of_keras():
    rng = np.random.default_rng(0)
    x = rng.normal(1, 3, (2, 5, 11)).astype("float32")
    own, theirs = LayerNorm(epsilon=1e-12), keras.layers.LayerNormalization(epsilon=1e-12)
    for layer in (own, theirs):
        layer.build(x.shape)
        layer.gamma.assign(np.linspace(-1, 2, 11))
        layer.beta.assign(np.linspace(3, -3, 11))
    np.testing.assert_array_equal(own(x), theirs(x))


@pytest.mark.parametrize(("threads", "together"), [(None, 1), (2, 2)])
def test_the_server_runs_one_batch_at_a_time_unless_asked(folder, monkeypatch, threads, together):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1}, raising=False)
    with live({"model": folder}, threads=threads) as server:
        gate, ask = Gate(monkeypatch), {"instances": ["rain"]}
        first = in_thread(server.predict, ask)
        gate.entered.acquire()
        second = in_thread(server.predict, ask)
        while len(gate.calls) < 2 and not server.metric("keras_bert_queue_rows"):
            pass
        found = len(gate.calls)
        gate.open.set()
        for thread, results in (first, second):
            thread.join()
            assert results[0][0] == 200
    assert found == together
