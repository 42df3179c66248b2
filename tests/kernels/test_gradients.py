"""Gradients that go with their graph are found from wherever TensorFlow differentiates."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.kernels.gradients import custom_gradient, recomputed


@custom_gradient
def cube(x):
    return x**3, lambda upstream: 5 * upstream * x**2  # 5 for 3, to know it by


def twice(function, x):
    def body(i, x):
        return i + 1, function(x)

    return tf.while_loop(lambda i, _: i < 2, body, (0, x), maximum_iterations=2)[1]


def nested(function, x):
    return tf.function(function)(x)


WAYS = {"plain": lambda function, x: function(x), "while": twice, "call": nested}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inside, jit", [(True, None), (False, None), (True, True), (False, True)])
def test_gradients_are_found(way, inside, jit):
    if way == "while" and not inside:
        jit = None  # TensorFlow takes the steps' values out of no function that XLA compiled
    x = tf.constant([0.5, 0.75])
    value = tf.function(lambda x: WAYS[way](cube, x), jit_compile=jit)

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = value(x)
        return tape.gradient(y, x)

    found = tf.function(slope, jit_compile=jit)(x) if inside else slope(x)
    expected = 5 * x**2
    if way == "while":
        expected *= 5 * (x**3) ** 2
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("jit", [None, True])
@pytest.mark.parametrize("inside", [True, False])
def test_recomputing_changes_no_gradient(inside, jit):
    rng = np.random.default_rng(0)
    x, w, v = (tf.constant(rng.normal(size=shape), "float32") for shape in [(5, 3), (3, 7), (2,)])

    def function(x, w, unused):
        y = tf.sin(x @ w)
        return y, tf.reduce_sum(y * y, axis=1)

    def slopes(function):
        value = tf.function(function, jit_compile=jit)

        def of(x, w, v):
            with tf.GradientTape() as tape:
                tape.watch([x, w, v])
                loss = tf.add_n([tf.reduce_sum(part**2) for part in value(x, w, v)])
            return tape.gradient(loss, [x, w, v], unconnected_gradients="zero")

        return (tf.function(of, jit_compile=jit) if inside else of)(x, w, v)

    for found, expected in zip(slopes(recomputed(function)), slopes(function), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_nothing_of_a_graph_stays_when_it_goes():
    def slope(x):
        return tf.gradients(cube(recomputed(lambda x: (x + 1,))(x)[0]), x)

    function = tf.function(slope, autograph=False)
    reference = weakref.ref(function.get_concrete_function(tf.TensorSpec([3])).graph)
    assert reference() is not None
    del function
    gc.collect()
    assert reference() is None
