"""Arguments that are wrong are refused by every task, at once and by name."""

import inspect
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert
from tests.serving import made

# The subject is checks before a step.
pytestmark = pytest.mark.usefixtures("eager")

TEXTS = ["rain wind", "ice", "boats the rain", "a wind"]
SPANS = [[[0, 4], [5, 9]], [[0, 1], [1, 3]], [[0, 5], [10, 14]], [[0, 1], [2, 6]]]
LEARNT = {
    "classifier": (TEXTS, [0, 1, 0, 1]),
    "tagger": ([t.split() for t in TEXTS], [["O"] * len(t.split()) for t in TEXTS]),
    "answerer": ((TEXTS, TEXTS), [(t.split()[0], 0) for t in TEXTS]),
    "chooser": ((TEXTS, [["ice", "wind"]] * 4), [0, 1, 0, 1]),
    "relator": ((TEXTS, SPANS), ["x", "y", "x", "y"]),
    "embedder": ((TEXTS, TEXTS), None),
    "pretrainer": (TEXTS, None),
}
VERBS = {
    "classifier": lambda m, **k: m.classify(TEXTS, **k),
    "tagger": lambda m, **k: m.predict_tags(TEXTS, **k),
    "answerer": lambda m, **k: m.answer(TEXTS, TEXTS, **k),
    "chooser": lambda m, **k: m.choose(*LEARNT["chooser"][0], **k),
    "relator": lambda m, **k: m.relate(*LEARNT["relator"][0], **k),
    "embedder": lambda m, **k: m.embed(TEXTS, **k),
    "pretrainer": lambda m, **k: m.fill(["[MASK] rain"], **k),
}
KINDS = [*LEARNT]
LABELLED = [kind for kind in KINDS if LEARNT[kind][1] is not None]


def make(kind):
    if kind == "pretrainer":
        keras.utils.set_random_seed(7)
        return keras_bert.BertMaskedLM.from_preset(made.TINY)
    return made.make(kind)


@pytest.fixture(scope="module")
def models():
    return {kind: make(kind) for kind in KINDS}


@pytest.mark.one_quick
@pytest.mark.parametrize("batch_size", [0, -1, 1.5, "8", True])
@pytest.mark.parametrize("kind", KINDS)
def test_batch_size(kind, batch_size, models):
    model, (x, y) = models[kind], LEARNT[kind]
    message = f"batch_size={batch_size!r}: expected a whole number, 1 or more"
    for ask in (
        lambda: model.fit(x, y, batch_size=batch_size, verbose=0),
        lambda: model.evaluate(x, y, batch_size=batch_size, verbose=0),
        lambda: VERBS[kind](model, batch_size=batch_size),
        lambda: kind == "pretrainer" or model.predict(x, batch_size=batch_size, verbose=0),
        lambda: keras_bert.extract_features(model, TEXTS, batch_size=batch_size),
    ):
        try:
            assert ask() is True  # where the task has no such method for texts
        except ValueError as error:
            assert str(error) == message


COMPILE = {
    "learning_rate": ["2e-5", float("nan"), -1.0, True, None],
    "weight_decay": ["0.1", -0.1],
    "warmup": [1.5, -0.1, "0.1"],
    "epsilon": [-1e-6, "1e-6"],
    "layer_decay": ["0.9", -1.0],
    "accumulation_steps": [0, -1, 2.0, "2"],
    "steps_per_execution": [0, "auto!", 1.5],
    "packing": ["yes", 1],
    "use_kernels": ["on", 0],
    "decay": ["steps"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in COMPILE.items() for value in values]
)
def test_compile(name, value, models):
    model = models["classifier"]
    with pytest.raises(ValueError, match=f"{name}={value!r}"):
        model.compile(**{name: value})


def test_compile_takes_numbers_of_numpy(models):
    models["classifier"].compile(
        learning_rate=np.float32(1e-4), warmup=0, accumulation_steps=np.int64(1), layer_decay=1
    )
    models["classifier"].compile()


@pytest.mark.one_quick
@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="needs no GPU")
@pytest.mark.parametrize("kind", KINDS)
def test_kernels_are_refused_where_there_is_no_gpu(kind, models, tmp_path):
    model = make(kind)
    with pytest.raises(ValueError, match="use_kernels=True: XLA does not compile for NVIDIA"):
        model.compile(use_kernels=True)
    # As a file from a machine with GPUs has it.
    model = make(kind)
    model._kernels_choice = True
    model.save(tmp_path / "m.keras")
    loaded = keras.saving.load_model(tmp_path / "m.keras")
    settings = loaded.get_compile_config()["optimizer"]["task_settings"]
    assert settings["use_kernels"] == "auto"


FIT = {
    "epochs": [0, -1, "3", float("nan")],
    "steps": [0, -2, "7", 2.5],
    "examples": [0, "7"],
    "steps_per_epoch": [0, -1, "2", 1.5],
    "initial_epoch": [-1, 0.5, "1"],
    "validation_split": [-0.1, 1.5, "0.1"],
    "validation_steps": [0, -1, "1"],
    "seed": ["a", 1.5],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in FIT.items() for value in values]
)
@pytest.mark.parametrize("kind", ["classifier", "answerer"])
def test_fit(kind, name, value, models):
    x, y = LEARNT[kind]
    with pytest.raises(ValueError, match=f"{name}={value!r}"):
        models[kind].fit(x, y, verbose=0, **{name: value})


@pytest.mark.one_quick
@pytest.mark.parametrize("kind", LABELLED)
def test_validation_data_is_rows_with_labels(kind, models):
    model, (x, y) = models[kind], LEARNT[kind]
    expected = "(validation_data=|y is missing: validation_data|validation_data: )"
    for data in (TEXTS, (), "rain", 5, (x, y, None, None), (x, None), (x,), ([], [])):
        with pytest.raises((ValueError, TypeError), match=expected):
            model.fit(x, y, validation_data=data, verbose=0)
    with pytest.raises(ValueError, match="y is missing: evaluate needs the labels"):
        model.evaluate(x, verbose=0)
    assert "val_loss" in model.fit(x, y, validation_data=[x, y], verbose=0).history


def datasets(kind, model):
    """Batches of ids and labels, once."""
    x, y = LEARNT[kind]
    batches = model.source(x, y).one_pass()
    return batches


@pytest.mark.one_quick
@pytest.mark.parametrize("kind", LABELLED)
def test_an_endless_dataset_needs_a_number_of_steps(kind, models):
    model, (x, y) = models[kind], LEARNT[kind]
    endless = datasets(kind, model).repeat()
    with pytest.raises(ValueError, match="the dataset has no end: pass validation_steps"):
        model.fit(x, y, validation_data=endless, verbose=0)
    with pytest.raises(ValueError, match="the dataset has no end: pass steps"):
        model.evaluate(endless, verbose=0)
    model.evaluate(endless, steps=2, verbose=0)
    history = model.fit(x, y, validation_data=endless, validation_steps=2, verbose=0).history
    assert "val_loss" in history


@pytest.mark.thorough
def test_an_endless_dataset_of_texts(models):
    texts = tf.data.Dataset.from_tensors(TEXTS).repeat()
    model, masked = models["classifier"], models["pretrainer"]
    with pytest.raises(ValueError, match="the dataset has no end: pass steps"):
        model.predict(texts, verbose=0)
    assert model.predict(texts, steps=2, verbose=0).shape == (8, 3)
    with pytest.raises(ValueError, match="no end: pass validation_steps"):
        masked.fit(TEXTS, validation_data=texts, verbose=0)
    with pytest.raises(ValueError, match="no end: pass steps"):
        masked.evaluate(texts, verbose=0)


def test_zero_shot_needs_a_classifier(models):
    for kind in ("embedder", "tagger", "answerer"):
        name = type(models[kind]).__name__
        with pytest.raises(TypeError, match=f"classifier is a {name}: expected a BertClassifier"):
            keras_bert.zero_shot(models[kind], TEXTS, ["a", "b"])
    assert next(iter(inspect.signature(keras_bert.zero_shot).parameters)) == "classifier"


@pytest.mark.parametrize("other", ["BertTokenClassifier", "BertRelationClassifier"])
def test_another_task_s_head_is_named(other, models, tmp_path):
    models["classifier"].save_to_preset(tmp_path / "p")
    with pytest.raises(ValueError, match="the head of a BertClassifier, .*pass num_classes"):
        getattr(keras_bert, other).from_preset(tmp_path / "p")
    with pytest.raises(ValueError, match="the head of a classifier, .*pass num_classes"):
        getattr(keras_bert, other).from_preset(made.TINY)


@pytest.mark.parametrize("kind", ["BertClassifier", "BertMaskedLM", "BertTextEmbedder"])
def test_a_folder_without_a_vocabulary_says_so(kind, tmp_path, caplog):
    for name in ("config.json", "model.safetensors"):
        shutil.copy(made.TINY / name, tmp_path / name)
    model = getattr(keras_bert, kind).from_preset(tmp_path)
    assert model.preprocessor is None
    assert any("has no vocabulary (vocab.txt" in record.getMessage() for record in caplog.records)


SIZES = {
    "vocabulary_size": 8,
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
    "max_sequence_length": 16,
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("value", [-1, "8", 1.5, True, None])
def test_sizes_of_a_backbone(name, value):
    with pytest.raises(ValueError, match=f"{name}={value!r}: expected a whole number"):
        keras_bert.BertBackbone(**SIZES | {name: value})


def test_numbers_of_constructors():
    backbone = keras_bert.BertBackbone(**SIZES)
    tokenizer = keras_bert.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    for value in ("0.1", None, -0.1, 1.0, float("nan"), True):
        with pytest.raises(ValueError, match=f"rate={value!r}: expected"):
            keras_bert.BertClassifier(backbone, 2, dropout=value)
    for value in ("2", 2.0, True):
        with pytest.raises(ValueError, match=f"num_classes={value!r}"):
            keras_bert.BertClassifier(backbone, value)
    for value in ("8", 8.0, -1, 3):
        with pytest.raises(ValueError, match=f"sequence_length={value!r}: expected"):
            keras_bert.BertClassifierPreprocessor(tokenizer, value)
    for value in ("8", 1.5, 0):
        with pytest.raises(ValueError, match=f"stride={value!r}: expected"):
            keras_bert.BertTokenClassifierPreprocessor(tokenizer, 16, stride=value)
        with pytest.raises(ValueError, match=f"stride={value!r}: expected"):
            keras_bert.BertQuestionAnswererPreprocessor(tokenizer, stride=value)


@pytest.mark.parametrize("value", [0, -1, "3", 1.5])
def test_numbers_of_verbs(value, models):
    answerer, embedder = models["answerer"], models["embedder"]
    for name in ("top_k", "n_best", "max_answer_length"):
        with pytest.raises(ValueError, match=f"{name}={value!r}"):
            answerer.answer("rain", "the rain", **{name: value})
    with pytest.raises(ValueError, match=f"top_k={value!r}"):
        embedder.search("rain", TEXTS, top_k=value)
    if value != 0:
        with pytest.raises(ValueError, match=f"overlap={value!r}"):
            models["classifier"].predict(TEXTS, overlap=value)
    with pytest.raises(ValueError, match="null_threshold='1'"):
        answerer.answer("rain", "the rain", null_threshold="1")
