import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import erf

from keras_bert.layers.activations import get_activation, in_training

X = np.concatenate([np.linspace(-8, 8, 4001), [-30.0, 30.0]])


def exact_slope(x):
    return 0.5 * (1 + erf(x / np.sqrt(2))) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def tanh_slope(x):
    """By differences of the formula in float64."""

    def value(x):
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    return (value(x + 1e-6) - value(x - 1e-6)) / 2e-6


SLOPES = {"gelu_exact": exact_slope, "gelu_tanh": tanh_slope}


@pytest.mark.parametrize("name", SLOPES)
@pytest.mark.parametrize("dtype, error", [("float32", 5e-6), ("bfloat16", 1e-2)])
@pytest.mark.parametrize("jit", [None, True])
def test_slopes_match_float64(name, dtype, error, jit):
    activation = in_training(get_activation(name))
    x = tf.constant(X, dtype)

    @tf.function(jit_compile=jit)
    def values_and_slopes(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = activation(x)
        return y, tape.gradient(y, x, output_gradients=3 * tf.ones_like(y))

    y, slope = values_and_slopes(x)
    rounded = x.numpy().astype("float64")
    plain = get_activation(name)(x).numpy().astype("float64")
    np.testing.assert_allclose(y.numpy().astype("float64"), plain, rtol=error, atol=error)
    assert slope.dtype == dtype
    assert np.abs(slope.numpy().astype("float64") / 3 - SLOPES[name](rounded)).max() < error


def test_other_activations_stay():
    assert in_training(get_activation("relu")) is keras.activations.relu
