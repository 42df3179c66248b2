"""The heads of pre-training against float64 forms in NumPy, at odd and unequal sizes."""

import keras
import numpy as np
import pytest
import scipy.special
import tensorflow as tf

from keras_bert.layers.embeddings import BertEmbeddings
from keras_bert.layers.heads import MaskedLMHead, NextSentenceHead

BATCH, TOKENS, SLOTS, HIDDEN, WORDS = 3, 7, 5, 11, 13


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def head(rng, dtype=None, **kwargs):
    """A head with random weights on embeddings with a random table."""
    embeddings = BertEmbeddings(WORDS, HIDDEN, TOKENS, dtype=dtype)
    embeddings.build((None, TOKENS))
    layer = MaskedLMHead(embeddings, dtype=dtype, **kwargs)
    layer.build((None, TOKENS, HIDDEN))
    for weight in (embeddings.word.embeddings, *layer.weights):
        weight.assign(rng.normal(0, 0.5, weight.shape))
    return layer, embeddings


def batch(rng):
    x = rng.normal(size=(BATCH, TOKENS, HIDDEN))
    positions = rng.integers(0, TOKENS, (BATCH, SLOTS)).astype("int32")
    positions[0, :2] = 0, TOKENS - 1
    return x, positions


@pytest.mark.parametrize("activation", ["gelu_exact", "relu"])
def test_masked_lm_head_matches_float64(rng, activation):
    layer, embeddings = head(rng, activation=activation)
    x, positions = batch(rng)
    w = {v.path.split("/", 1)[1]: np.asarray(v, "float64") for v in layer.weights}
    assert set(w) == {
        "dense/kernel",
        "dense/bias",
        "layer_norm/gamma",
        "layer_norm/beta",
        "output_bias",
    }
    table = np.asarray(embeddings.word.embeddings, "float64")
    expected = np.zeros((BATCH, SLOTS, WORDS))
    for b in range(BATCH):
        for p in range(SLOTS):  # one position at a time
            y = x[b, positions[b, p]] @ w["dense/kernel"] + w["dense/bias"]
            if activation == "relu":
                y = np.maximum(y, 0)
            else:
                y = 0.5 * y * (1 + scipy.special.erf(y / np.sqrt(2)))
            y = (y - y.mean()) / np.sqrt(y.var() + 1e-12)
            y = y * w["layer_norm/gamma"] + w["layer_norm/beta"]
            expected[b, p] = [y @ table[v] + w["output_bias"][v] for v in range(WORDS)]
    np.testing.assert_allclose(layer(x, positions), expected, atol=3e-5)


def test_a_new_head_has_bert_constants():
    embeddings = BertEmbeddings(WORDS, 64, TOKENS)
    embeddings.build((None, TOKENS))
    layer = MaskedLMHead(embeddings)
    layer.build((None, TOKENS, 64))
    assert abs(np.asarray(layer.dense.kernel)).max() <= 0.04
    assert np.asarray(layer.dense.kernel).std() == pytest.approx(0.0176, abs=1e-3)
    assert not np.asarray(layer.output_bias).any() and layer.layer_norm.epsilon == 1e-12


def test_gradient_is_that_of_a_gather(rng):
    layer, embeddings = head(rng)
    x, positions = batch(rng)
    positions[1] = positions[1, 0]  # one position five times
    x = tf.constant(x, "float32")
    weights = tf.constant(rng.normal(size=(BATCH, SLOTS, WORDS)), "float32")
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        got = tf.reduce_sum(layer(x, positions) * weights)
        gathered = tf.gather(x, positions, batch_dims=1)
        own = tf.tile(tf.range(SLOTS)[None], (BATCH, 1))
        wanted = tf.reduce_sum(layer(gathered, own) * weights)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)
    table = embeddings.word.embeddings.value
    for source in (x, table, layer.dense.kernel.value):
        gradient = tape.gradient(got, source)
        np.testing.assert_allclose(gradient, tape.gradient(wanted, source), atol=2e-4)
        assert abs(np.asarray(gradient)).max() > 0


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_logits_come_in_the_compute_type(rng, dtype):
    layer, _ = head(rng, dtype)
    exact, _ = head(np.random.default_rng(7))
    x, positions = batch(rng)
    logits = layer(x, positions)
    assert logits.dtype == dtype.removeprefix("mixed_")
    symbolic = layer(keras.KerasTensor((None, TOKENS, HIDDEN)), keras.KerasTensor((None, SLOTS)))
    assert symbolic.dtype == dtype.removeprefix("mixed_")
    assert symbolic.shape == (None, SLOTS, WORDS)
    assert all(weight.dtype == "float32" for weight in layer.weights)
    np.testing.assert_allclose(tf.cast(logits, "float32"), exact(x, positions), atol=0.15)


def test_masked_lm_head_refuses_another_width(rng):
    layer, embeddings = head(rng)
    with pytest.raises(ValueError, match="'other' got x of width 10: expected 11"):
        MaskedLMHead(embeddings, name="other").build((None, TOKENS, 10))


def test_next_sentence_head_matches_float64(rng):
    layer = NextSentenceHead()
    pooled = rng.normal(size=(BATCH, HIDDEN))
    assert layer(keras.KerasTensor((None, HIDDEN), "bfloat16")).dtype == "float32"
    kernel, bias = layer.weights
    assert kernel.shape == (HIDDEN, 2) and not np.asarray(bias).any()
    assert 0 < abs(np.asarray(kernel)).max() <= 0.04
    bias.assign([0.25, -1.0])
    expected = pooled @ np.asarray(kernel, "float64") + [0.25, -1.0]
    np.testing.assert_allclose(layer(pooled), expected, atol=1e-6)
    assert layer(tf.cast(pooled, "bfloat16")).dtype == "float32"


def test_next_sentence_head_travels_through_its_config():
    layer = NextSentenceHead(0.3, name="nsp")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(again) is NextSentenceHead and again.get_config() == layer.get_config()
