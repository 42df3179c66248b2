"""A task of a user's own, whose examples have lists of texts."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert
from keras_bert.tasks import BertTask, Column, Examples, Rows
from tests.tasks.tiny import made

MISSING = -1e9
QUESTIONS = ["who slept ?", "who ran ?", "who sat on the mat ?", "a dog ran ."]
PASSAGES = [["the cat slept", "a dog ran"], ["the dog ran", "it sat", "the mat"], ["a cat"]]
PASSAGES += [["it slept .", "the cat sat", "a mat", "it"]]
LABELS = [0, 2, 0, 1]


@keras.saving.register_keras_serializable(package="test_own_task")
def reciprocal_rank(labels, scores):
    labels = keras.ops.cast(keras.ops.reshape(labels, (-1, 1)), "int32")
    right = keras.ops.take_along_axis(scores, labels, axis=-1)
    return 1 / keras.ops.sum(keras.ops.cast(scores >= right, "float32"), axis=-1)


@keras.saving.register_keras_serializable(package="test_own_task")
class MRR(keras.metrics.MeanMetricWrapper):
    def __init__(self, name="mrr", dtype=None):
        super().__init__(reciprocal_rank, name=name, dtype=dtype)

    def get_config(self):
        return {"name": self.name}


@keras.saving.register_keras_serializable(package="test_own_task")
class Ranker(BertTask):
    backbone_cls = keras_bert.BertBackbone
    preprocessor_cls = keras_bert.BertMultipleChoicePreprocessor
    asks = {"question": Column(), "passages": Column(shape=(None, None))}
    example = {"question": ["who slept ?"], "passages": [["a cat slept", "a dog ran"]]}
    output_kind = "choices"
    reads_several = True
    pads = True

    def __init__(self, backbone, preprocessor=None, **kwargs):
        self.backbone, self.preprocessor = backbone, preprocessor
        pooled = self.encode(backbone.input)["pooled_output"]
        score = keras.layers.Dense(1, name="score", dtype="float32")(pooled)[:, 0]
        filled = keras.ops.any(backbone.input["padding_mask"] > 0, axis=-1)
        outputs = keras.ops.where(filled, score, MISSING)
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    def default_loss(self):
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def default_metrics(self):
        return [MRR()]

    def examples(self, x, y=None):
        if isinstance(x, Examples):
            return x
        labels = None if y is None else self.encode_labels(y)
        return Examples((x[0], padded(x[1]) if self.pads else x[1]), labels)

    def encode_labels(self, y):
        return np.asarray(y, "int32")

    def rows(self, question, passages):
        return Rows(self.preprocessor.pack((question, passages)))

    def answers(self, outputs, rows, question, passages):
        return {"score": outputs}


class Stars(BertTask):
    """Numbers for texts, with an attribute `labels` of its own."""

    preprocessor_cls = keras_bert.BertClassifierPreprocessor
    output_kind = "numbers"
    labels = None

    def __init__(self, backbone, preprocessor=None, **kwargs):
        self.backbone, self.preprocessor = backbone, preprocessor
        pooled = self.encode(backbone.input)["pooled_output"]
        super().__init__(inputs=backbone.input, outputs=keras.layers.Dense(1)(pooled), **kwargs)

    def default_loss(self):
        return keras.losses.MeanSquaredError()

    def default_metrics(self):
        return []

    def encode_labels(self, y):
        return np.asarray(y, "float32")


def test_labels_of_ones_own_are_read_from_a_table(eager, tmp_path):
    rows = [{"text": "the cat sat", "label": 3.5}, {"text": "a dog ran", "label": 1}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = Stars(**made(Stars))
    texts, labels = ([row[name] for row in rows] for name in ("text", "label"))
    in_memory = task.evaluate(texts, labels, verbose=0)
    assert task.evaluate(tmp_path / "rows.jsonl", verbose=0) == pytest.approx(in_memory, rel=1e-5)


def padded(passages, more=0):
    most = max(map(len, passages)) + more
    return [texts + [""] * (most - len(texts)) for texts in passages]


@pytest.fixture(scope="module")
def ranker():
    keras.utils.set_random_seed(1)
    return Ranker(**made(Ranker))


@pytest.fixture(scope="module")
def by_hand(ranker):
    """(loss, MRR) in float64, of each list by itself."""
    losses, ranks = [], []
    for question, texts, label in zip(QUESTIONS, PASSAGES, LABELS, strict=True):
        rows = ranker.preprocessor.pack(([question] * len(texts), [[text] for text in texts]))
        scores = ranker({name: value[:, 0] for name, value in rows.items()})
        scores = np.asarray(scores, "float64")
        losses.append(np.log(np.exp(scores - scores[label]).sum()))
        ranks.append(1 + np.flatnonzero(np.argsort(-scores) == label)[0])
    return np.mean(losses), np.mean(1 / np.array(ranks))


@pytest.mark.thorough
def test_loss_and_metric_are_those_of_each_list_by_itself(ranker, by_hand):
    found = ranker.evaluate((QUESTIONS, PASSAGES), LABELS, return_dict=True, verbose=0)
    np.testing.assert_allclose([found["loss"], found["mrr"]], by_hand, rtol=1e-5)
    for passages in (padded(PASSAGES, more=2), tf.ragged.constant(PASSAGES)):
        data = tf.data.Dataset.from_tensor_slices(((QUESTIONS, passages), LABELS)).batch(2)
        found = ranker.evaluate(data, return_dict=True, verbose=0)
        np.testing.assert_allclose([found["loss"], found["mrr"]], by_hand, rtol=1e-5)


def test_a_task_that_reads_several_texts_is_not_packed(by_hand):
    """The default of a GPU, where packing is automatic."""
    keras.utils.set_random_seed(1)
    ranker = Ranker(**made(Ranker))
    ranker.compiles_for_accelerator = True
    found = ranker.evaluate((QUESTIONS, PASSAGES), LABELS, return_dict=True, verbose=0)
    np.testing.assert_allclose([found["loss"], found["mrr"]], by_hand, rtol=1e-5)
    ranker.compile(packing=True)
    with pytest.raises(ValueError, match="packing=True: a Ranker has batches of its own"):
        ranker.evaluate((QUESTIONS, PASSAGES), LABELS, verbose=0)


def test_lists_of_different_lengths_are_named():
    ranker = Ranker(**made(Ranker), compile=False)
    ranker.pads = False
    with pytest.raises(ValueError, match="passages: row 1 has 3 values and row 0 2"):
        ranker.predict((QUESTIONS, PASSAGES))


@pytest.mark.one_quick
@pytest.mark.parametrize("compiled", [True, False])
def test_it_is_saved_compiled_or_not(ranker, tmp_path, compiled):
    task = ranker
    if not compiled:
        task = Ranker(**made(Ranker), compile=False)
        task.copy_state(ranker)
    expected = ranker.predict((QUESTIONS, PASSAGES))
    task.save(tmp_path / "task.keras")
    task.save_to_preset(tmp_path / "preset")
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    assert loaded.compiled == compiled
    preset = Ranker.from_preset(tmp_path / "preset", compile=compiled)
    assert preset.compiled == compiled
    for again in (loaded, preset):
        np.testing.assert_allclose(again.predict((QUESTIONS, PASSAGES)), expected, atol=1e-6)
    assert Ranker.from_preset(tmp_path / "preset").compiled


@pytest.mark.thorough
def test_a_dataset_trains_as_lists_do(ranker):
    task = Ranker(**made(Ranker))
    losses = []
    for data in (
        ((QUESTIONS, PASSAGES), LABELS),
        (tf.data.Dataset.from_tensor_slices(((QUESTIONS, padded(PASSAGES)), LABELS)).batch(2),),
    ):
        task.copy_state(ranker)
        task.compile(learning_rate=1e-2)
        size = {"batch_size": 2} if len(data) == 2 else {}
        history = task.fit(*data, epochs=3, shuffle=False, verbose=0, **size).history
        losses.append(history["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-5)
    assert losses[0][2] < losses[0][0]
