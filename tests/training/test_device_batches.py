"""Batches that come to the device ahead: the CPU stands in for a GPU."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert
from keras_bert.training.device_batches import on_device

ROWS = 10


def batches(size=4):
    x = {"ids": np.arange(ROWS, dtype="int32"), "share": np.linspace(0, 1, ROWS, dtype="float32")}
    return tf.data.Dataset.from_tensor_slices((x, np.arange(ROWS))).batch(size)


def test_batches_are_the_same():
    found, wanted = list(on_device(batches(), "CPU:0")), list(batches())
    assert len(found) == len(wanted) == 3
    for mine, other in zip(found, wanted, strict=True):
        keras.tree.assert_same_structure(mine, other)
        for a, b in zip(tf.nest.flatten(mine), tf.nest.flatten(other), strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype != tf.int32


@pytest.mark.parametrize("element", [(1, 2), ((1, 2),), {"a": 1}, 1])
def test_the_structure_stays(element):
    """A pair by itself would be taken for x and y."""
    dataset = tf.data.Dataset.from_tensors(tf.nest.map_structure(tf.constant, element))
    (found,) = on_device(dataset, "CPU:0")
    tf.nest.assert_same_structure(found, element)
    assert isinstance(found, tuple) == isinstance(element, tuple)


def test_an_endless_dataset_stays_one():
    iterator = iter(on_device(batches(5).repeat(), "CPU:0"))
    firsts = [int(next(iterator)[1][0]) for _ in range(5)]
    assert firsts == [0, 5, 0, 5, 0]


def test_what_no_gpu_takes_is_left_alone():
    texts = tf.data.Dataset.from_tensor_slices(["a", "b"]).batch(1)
    arrays = [np.zeros(2)]
    assert on_device(texts, "CPU:0") is texts
    assert on_device(arrays, "CPU:0") is arrays


@pytest.mark.thorough
@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_training_and_prediction_are_the_same(monkeypatch, jit_compile):
    rng = np.random.default_rng(0)
    shape = (ROWS, 6)
    x = {
        "token_ids": rng.integers(1, 20, shape, "int32"),
        "segment_ids": np.zeros(shape, "int32"),
        "padding_mask": np.ones(shape, "int32"),
    }
    y = rng.integers(0, 2, ROWS)
    found = []
    for ahead in (True, False):
        keras.utils.set_random_seed(0)
        backbone = keras_bert.BertBackbone(
            20, num_layers=1, num_heads=1, hidden_dim=8, intermediate_dim=8
        )
        model = keras_bert.BertClassifier(backbone, num_classes=2)
        model.compile(learning_rate=1e-2, jit_compile=jit_compile)
        used = []

        def to_cpu(dataset, training=False, used=used):
            used.append(dataset)
            return on_device(dataset, "CPU:0")

        if ahead:
            monkeypatch.setattr(model.step, "ahead", to_cpu)
        data = {"batch_size": 4, "verbose": 0}
        history = model.fit(x, y, epochs=3, validation_data=(x, y), **data).history
        scores = model.evaluate(x, y, **data)
        found.append([*history["loss"], *history["val_loss"], *scores, model.predict(x, **data)])
        assert len(used) == 3 * ahead  # training, validation, evaluate
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.thorough
def test_another_batch_size_is_compiled_for_its_own_shape():
    """Of a size that is not known, kernels for GPUs could not be used."""
    shapes = []

    class Watched(keras_bert.BertClassifier):
        def call(self, inputs, training=None, mask=None):
            shapes.append(tuple(inputs["token_ids"].shape))
            return super().call(inputs, training=training, mask=mask)

    x = {name: np.ones((24, 6), "int32") for name in ("token_ids", "segment_ids", "padding_mask")}
    backbone = keras_bert.BertBackbone(
        20, num_layers=1, num_heads=1, hidden_dim=8, intermediate_dim=8
    )
    model = Watched(backbone, num_classes=2)
    model.compile(keras.optimizers.SGD(0.1), jit_compile=True)
    for batch_size in (4, 8):
        model.fit(x, np.zeros(24), batch_size=batch_size, verbose=0)
        model.evaluate(x, np.zeros(24), batch_size=batch_size, verbose=0)
    assert set(shapes) == {(4, 6), (8, 6)}
