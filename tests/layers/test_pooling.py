"""Pooling of token states, beside plain Python loops."""

import keras
import numpy as np
import pytest

from keras_bert.layers.pooling import TextPooling, UnitLength


@pytest.fixture
def states():
    rng = np.random.default_rng(0)
    mask = np.array([[1] * 7, [1, 1, 1, 0, 0, 0, 0], [1] + [0] * 6], "int32")
    return rng.normal(size=(2, 3, 7, 5)).astype("float32"), mask


def by_hand(x, mask, pooling):
    rows = []
    for row, length in zip(x, mask.sum(axis=1), strict=True):
        tokens = row[:length]
        rows.append({"cls": tokens[0], "mean": tokens.mean(0), "max": tokens.max(0)}[pooling])
    return np.stack(rows)


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_padding_counts_nowhere(states, pooling):
    x, mask = states
    layer = TextPooling(pooling)
    np.testing.assert_allclose(layer([x[0]], mask), by_hand(x[0], mask, pooling), rtol=1e-5)
    both = layer([x[0], x[1]], mask)
    np.testing.assert_allclose(both, by_hand(x.mean(0), mask, pooling), rtol=1e-5, atol=1e-6)
    # Neither what lies in padding nor how much of it there is.
    filled = np.where(mask[..., None], x[0], np.nan)
    np.testing.assert_array_equal(layer([filled], mask), layer([x[0]], mask))
    longer = np.pad(x[0], [(0, 0), (0, 4), (0, 0)], constant_values=99)
    wider = layer([longer], np.pad(mask, [(0, 0), (0, 4)]))
    np.testing.assert_allclose(wider, layer([x[0]], mask), rtol=1e-6)


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_rows_without_tokens_are_zeros(states, pooling):
    found = TextPooling(pooling)([states[0][0]], np.zeros((3, 7), "int32"))
    np.testing.assert_array_equal(found, np.zeros((3, 5)))


def test_bfloat16_states_are_pooled_in_float32(states):
    x, mask = states
    found = TextPooling("mean")([keras.ops.cast(x[0], "bfloat16")], mask)
    assert keras.backend.standardize_dtype(found.dtype) == "float32"
    np.testing.assert_allclose(found, by_hand(x[0], mask, "mean"), atol=1e-2)


def test_unit_length(states):
    import tensorflow as tf

    x = tf.constant(np.concatenate([states[0][0, :, 0], np.zeros((1, 5), "float32")]))
    with tf.GradientTape() as tape:
        tape.watch(x)
        units = UnitLength()(x)
    assert np.isfinite(tape.gradient(units, x)).all()
    expected = x[:3] / np.linalg.norm(x[:3], axis=1, keepdims=True)
    np.testing.assert_allclose(units[:3], expected, rtol=1e-6)
    assert not np.asarray(units[3]).any()


def test_unknown_pooling():
    with pytest.raises(ValueError, match="pooling='sum': expected one of cls, mean, max"):
        TextPooling("sum")
