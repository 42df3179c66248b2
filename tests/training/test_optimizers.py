"""The optimizer and its schedule against their published rules in float64."""

import keras
import numpy as np
import pytest

from keras_bert import BertBackbone, BertClassifier
from keras_bert.training import AdamW, WarmupLinear


def test_schedule_reaches_its_peak_and_zero_without_a_drop():
    schedule = WarmupLinear(2.0, total_steps=20, warmup_steps=4)
    rates = [float(schedule(step)) for step in range(22)]
    np.testing.assert_allclose(rates[:4], [0.5, 1.0, 1.5, 2.0])
    np.testing.assert_allclose(rates[4:], [*(2.0 * (20 - t) / 16 for t in range(4, 20)), 0, 0])
    assert float(WarmupLinear(2.0, None, 2)(1000)) == 2.0
    again = WarmupLinear.from_config(schedule.get_config())
    assert float(again(7)) == rates[7]
    with pytest.raises(ValueError, match="warmup_steps=5, total_steps=5"):
        WarmupLinear(1.0, 5, 5)


def test_decay_spares_biases_and_layer_norm():  # B56
    model = BertClassifier(BertBackbone(31, 2, 3, 21, 11, max_sequence_length=13), num_classes=3)
    before = {w.path: np.asarray(w).copy() for w in model.trainable_weights}
    optimizer = AdamW(0.1, weight_decay=0.01)
    optimizer.build(model.trainable_variables)
    spared = optimizer.undecayed(model.trainable_variables)
    assert spared and all(p.endswith(("bias", "gamma", "beta")) for p in spared)
    assert {p.rsplit("/", 1)[1] for p in before if p not in spared} == {
        "kernel",
        "embeddings",
        "position_table",
        "segment_table",
    }
    zeros = [np.zeros(w.shape, "float32") for w in model.trainable_variables]
    optimizer.apply(zeros, model.trainable_variables)
    for weight in model.trainable_weights:
        factor = 1.0 if weight.path in spared else 0.999
        np.testing.assert_allclose(weight, before[weight.path] * factor, rtol=1e-6)


def test_updates_match_float64():
    """Adam with bias correction, decay before the step, gradients clipped by their global norm."""
    rng = np.random.default_rng(0)
    kernel, bias = rng.normal(size=(5, 3)), rng.normal(size=3)
    weights = [keras.Variable(kernel), keras.Variable(bias)]
    optimizer = AdamW(WarmupLinear(0.1, 30, 5), weight_decay=0.2, epsilon=1e-3)
    values, m, v = [kernel, bias], [0.0, 0.0], [0.0, 0.0]
    for t in range(20):
        gradients = [rng.normal(size=w.shape) for w in values]
        optimizer.apply([g.astype("float32") for g in gradients], weights)
        norm = np.sqrt(sum((g**2).sum() for g in gradients))
        rate = 0.1 * ((t + 1) / 5 if t < 5 else (30 - t) / 25)
        for i, g in enumerate(gradients):
            g = g * min(1.0, 1.0 / norm)
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] = 0.999 * v[i] + 0.001 * g**2
            if i == 0:
                values[i] = values[i] * (1 - 0.2 * rate)
            c1, c2 = 1 - 0.9 ** (t + 1), 1 - 0.999 ** (t + 1)
            values[i] = values[i] - rate * np.sqrt(c2) / c1 * m[i] / (np.sqrt(v[i]) + 1e-3)
    np.testing.assert_allclose(weights[0], values[0], rtol=0, atol=1e-5)
    np.testing.assert_allclose(weights[1], values[1], rtol=0, atol=1e-5)


def test_optimizer_travels_through_its_config():
    optimizer = AdamW(WarmupLinear(0.1, 30, 5), weight_decay=0.2, epsilon=1e-5)
    config = keras.saving.serialize_keras_object(optimizer)
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is AdamW and again.get_config() == optimizer.get_config()
