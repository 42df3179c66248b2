"""Temperature scaling of tasks: kept in presets, checkpoints and exports; answers stay the same."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401, registers the ops of exports

import keras_bert
from keras_bert.metrics import best_temperature
from tests.tasks.tiny import backbone_settings, made

TEXTS = ["the cat sat", "a dog slept on the mat", "it ran .", "the dog ran", "a mat", "who slept ?"]
SPANS = [((0, 1), (2, 4))] * 6


def make(cls, **kwargs):
    keras.utils.set_random_seed(0)
    backbone = keras_bert.BertBackbone(**backbone_settings() | {"initializer_range": 0.4})
    return cls(**made(cls) | {"backbone": backbone} | kwargs)


def sure(logits):
    return np.exp(logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)).max(axis=-1)


def test_a_classifier(tmp_path):
    model = make(keras_bert.BertClassifier, labels=["a", "b"])
    labels = ["a", "b", "b", "a", "b", "a"]
    before, _ = model.classify(TEXTS)
    logits = model.predict(TEXTS, verbose=0)
    ids = [["a", "b"].index(label) for label in labels]
    found = model.calibrate(TEXTS, labels)
    assert found == model.temperature == best_temperature(logits, ids) != 1
    after, chances = model.classify(TEXTS)
    assert after == before
    np.testing.assert_allclose(chances, sure(logits / found), atol=1e-5)
    np.testing.assert_allclose(model.predict(TEXTS, verbose=0), logits, atol=1e-6)
    largest = [max(row.values()) for row in model.classify(TEXTS, top_k="all")]
    np.testing.assert_allclose(largest, chances, atol=1e-5)

    model.save_to_preset(tmp_path / "preset")
    again = keras_bert.BertClassifier.from_preset(tmp_path / "preset")
    assert again.temperature == found
    np.testing.assert_allclose(again.classify(TEXTS)[1], chances, atol=1e-5)
    other = keras_bert.BertClassifier.from_preset(
        tmp_path / "preset", labels=["x", "y"], skip_mismatch=True
    )
    assert other.temperature == 1  # of another head
    keras_bert.save_checkpoint(model, tmp_path / "hf", "huggingface")
    assert keras_bert.BertClassifier.from_preset(tmp_path / "hf").temperature == found
    model.export(tmp_path / "served", verbose=0)
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["serving_default"]
    answer = served(text=tf.constant(TEXTS))
    np.testing.assert_allclose(answer["probability"], chances, atol=1e-5)


def test_relations_and_tags():
    relater = make(keras_bert.BertRelationClassifier)
    relater.calibrate((TEXTS, SPANS), [0, 1, 1, 0, 1, 0])
    logits = relater.predict((TEXTS, SPANS), verbose=0)
    found = relater.relate(TEXTS, SPANS)[1]
    np.testing.assert_allclose(found, sure(logits / relater.temperature), atol=1e-5)
    tagger = make(keras_bert.BertTokenClassifier, labels=["O", "B-X"])
    tags = [["O", "B-X"] * 4] * 6
    tags = [row[: len(words)] for row, words in zip(tags, tagger.words(TEXTS), strict=True)]
    tagger.calibrate(TEXTS, tags)
    logits = np.concatenate(tagger.predict(TEXTS, verbose=0))
    ids = [["O", "B-X"].index(tag) for row in tags for tag in row]
    assert tagger.temperature == best_temperature(logits, ids) != 1
    with pytest.raises(ValueError, match="crf=True"):
        make(keras_bert.BertTokenClassifier, crf=True).calibrate(TEXTS, tags)


def test_decisions_of_several_labels_stay():
    model = make(
        keras_bert.BertClassifier, problem="multi_label", num_classes=3, thresholds=[0.3, 0.5, 0.8]
    )
    before = model.classify(TEXTS)[0]
    labels = np.random.default_rng(0).integers(0, 2, (6, 3))
    found = model.calibrate(TEXTS, labels)
    after, chances = model.classify(TEXTS)
    assert after == before and found != 1
    wanted = 1 / (1 + np.exp(-model.predict(TEXTS, verbose=0) / found))
    np.testing.assert_allclose(chances, wanted, atol=1e-5)


def test_what_has_no_temperature():
    with pytest.raises(ValueError, match="temperature=0"):
        make(keras_bert.BertClassifier, temperature=0)
    with pytest.raises(ValueError, match="regression has no probabilities"):
        make(keras_bert.BertClassifier, problem="regression", num_classes=1).calibrate(
            TEXTS, [0] * 6
        )
