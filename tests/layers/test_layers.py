"""Layers against float64 forms written out in NumPy, at odd sizes that hide no swapped axis."""

import keras
import numpy as np
import pytest
import scipy.special

from keras_bert.layers import AttentionMask, BertEmbeddings, Dropout, EncoderBlock, SelfAttention
from keras_bert.layers.activations import gelu_exact, gelu_tanh, get_activation
from keras_bert.layers.attention import FORBIDDEN

BATCH, TOKENS, HEADS, HIDDEN, WIDE = 3, 5, 7, 21, 11


def randomize(layer, rng):
    for weight in layer.weights:
        weight.assign(rng.normal(0, 0.5, weight.shape))
    return {w.path.split("/", 1)[-1]: np.asarray(w, "float64") for w in layer.weights}


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, gamma, beta):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12) * gamma + beta


def attention(x, w, mask):
    """One head and one text at a time."""
    dense = {n: x @ w[f"{n}/kernel"] + w[f"{n}/bias"] for n in ("query", "key", "value")}
    size = HIDDEN // HEADS
    context, maps = np.zeros_like(x), np.zeros((BATCH, HEADS, TOKENS, TOKENS))
    for b in range(BATCH):
        for n in range(HEADS):
            part = slice(n * size, (n + 1) * size)
            q, k, v = (dense[name][b, :, part] for name in ("query", "key", "value"))
            scores = np.where(mask[b, 0], q @ k.T / np.sqrt(size), -np.inf)
            maps[b, n] = softmax(scores)
            context[b, :, part] = maps[b, n] @ v
    return context @ w["output/kernel"] + w["output/bias"], maps


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def mask(rng):
    return (rng.random((BATCH, 1, TOKENS, TOKENS)) < 0.6) | np.eye(TOKENS, dtype=bool)


def test_self_attention_matches_float64(rng, mask):
    layer = SelfAttention(HEADS)
    x = rng.normal(size=(BATCH, TOKENS, HIDDEN))
    layer(x, mask)
    expected = attention(x, randomize(layer, rng), mask)
    for value, wanted in zip(layer(x, mask), expected, strict=True):
        np.testing.assert_allclose(value, wanted, atol=2e-5)


def test_a_float_mask_is_added_to_the_scores(rng, mask):
    layer = SelfAttention(HEADS)
    x = rng.normal(size=(BATCH, TOKENS, HIDDEN))
    layer(x, mask)
    w = randomize(layer, rng)
    bias = rng.normal(size=(1, HEADS, TOKENS, TOKENS)).astype("float32")
    _, plain = attention(x, w, mask)
    expected = plain * np.exp(bias.astype("float64"))  # softmax(s + b) ~ softmax(s) exp(b)
    expected /= expected.sum(-1, keepdims=True)
    _, found = layer(x, np.where(mask, bias, np.float32(FORBIDDEN)))
    np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.parametrize("activation", ["gelu_exact", "gelu_tanh"])
def test_encoder_block_matches_float64(rng, mask, activation):
    layer = EncoderBlock(HEADS, WIDE, activation)
    x = rng.normal(size=(BATCH, TOKENS, HIDDEN))
    layer(x, mask)
    w = randomize(layer, rng)
    inner = {k.removeprefix("attention/"): v for k, v in w.items() if k.startswith("attention/")}
    y, maps = attention(x, inner, mask)
    y = layer_norm(x + y, w["attention_norm/gamma"], w["attention_norm/beta"])
    z = y @ w["intermediate/kernel"] + w["intermediate/bias"]
    if activation == "gelu_exact":
        z = 0.5 * z * (1 + scipy.special.erf(z / np.sqrt(2)))
    else:
        z = 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))
    z = z @ w["feedforward_output/kernel"] + w["feedforward_output/bias"]
    z = layer_norm(y + z, w["feedforward_norm/gamma"], w["feedforward_norm/beta"])
    value, probabilities = layer(x, mask)
    np.testing.assert_allclose(value, z, atol=5e-5)
    np.testing.assert_allclose(probabilities, maps, atol=1e-5)


def test_embeddings_match_float64(rng):
    layer = BertEmbeddings(13, HIDDEN, max_sequence_length=11, num_segments=3)
    ids = rng.integers(0, 13, (BATCH, TOKENS))
    segments = rng.integers(0, 3, (BATCH, TOKENS))
    layer(ids, segments)
    w = randomize(layer, rng)
    words = w["word/embeddings"][ids] + w["segment_table"][segments]
    norm = w["layer_norm/gamma"], w["layer_norm/beta"]
    expected = layer_norm(words + w["position_table"][:TOKENS], *norm)
    np.testing.assert_allclose(layer(ids, segments), expected, atol=1e-5)
    positions = rng.integers(0, 11, (BATCH, TOKENS))
    expected = layer_norm(words + w["position_table"][positions], *norm)
    np.testing.assert_allclose(layer(ids, segments, positions), expected, atol=1e-5)


def test_attention_mask_joins_padding_and_sequences():
    padding = np.array([[1, 1, 1, 0]])
    sequences = np.array([[0, 0, 1, 1]])
    mask = np.asarray(AttentionMask()(padding, sequences))[0, 0]
    allowed = [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]]
    np.testing.assert_array_equal(mask, np.array(allowed, bool))
    assert np.asarray(AttentionMask()(padding)).shape == (1, 1, 1, 4)


def test_a_row_with_nothing_to_see_stays_finite(rng):
    mask = AttentionMask()(np.zeros((BATCH, TOKENS), int))
    value, _ = SelfAttention(HEADS)(rng.normal(size=(BATCH, TOKENS, HIDDEN)), mask)
    assert np.isfinite(value).all()


def test_initial_law_is_cut_at_two_deviations():
    layer = BertEmbeddings(2000, 64)
    layer.build((None, 7))
    table = np.asarray(layer.word.embeddings)
    assert abs(table).max() <= 0.04
    # A normal law of deviation 0.02 cut at +-0.04 has deviation 0.0176.
    assert table.std() == pytest.approx(0.0176, abs=2e-4)
    assert len({float(np.asarray(w).ravel()[0]) for w in layer.weights[:3]}) == 3


def test_gelu_forms_part_by_the_known_gap():
    x = np.linspace(-5, 5, 100_001).astype("float32")
    gap = abs(np.asarray(gelu_exact(x)) - np.asarray(gelu_tanh(x)))
    assert gap.max() == pytest.approx(4.7e-4, abs=1e-5)
    with pytest.raises(ValueError, match="ambiguous"):
        get_activation("gelu")


def test_dropout_repeats_with_a_drawn_seed():
    layer, x = Dropout(0.5), np.ones((11, 13), "float32")
    seed = layer.draw(training=True)
    first, again = layer(x, training=True, seed=seed), layer(x, training=True, seed=seed)
    np.testing.assert_array_equal(first, again)
    assert (np.asarray(layer(x, training=True)) != np.asarray(first)).any()
    assert layer.draw(training=False) is None


@pytest.mark.parametrize("layer", [SelfAttention(HEADS), EncoderBlock(HEADS, WIDE)])
def test_hidden_size_must_divide_by_heads(layer):
    with pytest.raises(ValueError, match="hidden_dim=20: expected a multiple of num_heads=7"):
        layer(np.zeros((1, 3, 20), "float32"))


@pytest.mark.parametrize(
    "layer",
    [
        BertEmbeddings(13, HIDDEN, 11, 3, 0.2, 1e-7, 0.3),
        AttentionMask(),
        SelfAttention(HEADS, 0.2, 0.3),
        EncoderBlock(HEADS, WIDE, "relu", 0.2, 0.3, 1e-7, 0.3, True),
    ],
)
def test_layers_travel_through_their_config(layer):
    config = keras.saving.serialize_keras_object(layer)
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is type(layer) and again.get_config() == layer.get_config()
