"""Adapters alone, in a block, and through every form of checkpoint."""

import json
from pathlib import Path

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertClassifier
from keras_bert.checkpoints import open_checkpoint
from keras_bert.layers import Adapter, EncoderBlock

TINY = Path(__file__).parents[1] / "golden" / "tiny_hf"
BATCH, TOKENS, HEADS, HIDDEN, WIDE, NARROW = 3, 5, 7, 21, 11, 4
MASK = np.ones((BATCH, 1, 1, TOKENS), bool)


@pytest.fixture
def x():
    return np.random.default_rng(7).normal(size=(BATCH, TOKENS, HIDDEN)).astype("float32")


def paths(adapters):
    return [weight.path for adapter in adapters for weight in adapter.weights]


def test_adapter_matches_float64(x):
    layer, rng = Adapter(NARROW), np.random.default_rng(3)
    layer(x)
    for weight in layer.weights:
        weight.assign(rng.normal(0, 0.5, weight.shape))
    down, down_bias, up, up_bias = (np.asarray(w, "float64") for w in layer.weights)
    z = x @ down + down_bias
    z = 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))
    np.testing.assert_allclose(layer(x), x + z @ up + up_bias, atol=1e-5)


def test_a_new_adapter_is_nearly_the_identity(x):
    layer = Adapter(NARROW)
    change = np.asarray(layer(x)) - x
    assert 0 < abs(change).max() < 1e-4
    kernels = [np.asarray(layer.down.kernel), np.asarray(layer.up.kernel)]
    assert all(0 < abs(kernel).max() <= 2e-3 for kernel in kernels)


@pytest.mark.parametrize("wrong", [0, -1, 2.0, "16"])
def test_wrong_width(wrong):
    with pytest.raises(ValueError, match="bottleneck_dim=.*expected a whole number, 1 or more"):
        Adapter(wrong)


@pytest.mark.parametrize("layer", [Adapter(5), EncoderBlock(HEADS, WIDE, adapter_dim=5)])
def test_travels_through_its_config(layer):
    config = keras.saving.serialize_keras_object(layer)
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is type(layer) and again.get_config() == layer.get_config()


def shifts(block, rng):
    """Makes both adapters add a vector and nothing else; gives the two vectors."""
    vectors = []
    for adapter in (block.attention_adapter, block.feedforward_adapter):
        vectors.append(rng.normal(size=HIDDEN))
        for weight in adapter.weights:
            weight.assign(np.zeros(weight.shape))
        adapter.up.bias.assign(vectors[-1])
    return vectors


def test_adapters_stand_on_what_each_half_gives(x):
    """A shift in the adapter is a shift in the bias of the dense layer before it."""
    plain, block = EncoderBlock(HEADS, WIDE), EncoderBlock(HEADS, WIDE, adapter_dim=NARROW)
    plain(x, MASK), block(x, MASK)
    own = {w.path.split("/", 1)[1]: w for w in block.weights}
    for weight in plain.weights:
        weight.assign(own[weight.path.split("/", 1)[1]])
    first, second = shifts(block, np.random.default_rng(5))
    plain.attention.output_dense.bias.assign_add(first)
    plain.feedforward_output.bias.assign_add(second)
    np.testing.assert_allclose(block(x, MASK)[0], plain(x, MASK)[0], atol=1e-5)


def test_adapters_stand_after_the_dropout(x):
    """Where everything is dropped, the adapters' shifts are all that is left."""
    block = EncoderBlock(HEADS, WIDE, hidden_dropout=1 - 1e-6, adapter_dim=NARROW)
    block(x, MASK)
    first, second = shifts(block, np.random.default_rng(5))
    expected = block.feedforward_norm(block.attention_norm(x + first) + second)
    np.testing.assert_allclose(block(x, MASK, training=True)[0], expected, atol=1e-5)


def test_without_a_width_nothing_is_made(x):
    block = EncoderBlock(HEADS, WIDE)
    block(x, MASK)
    assert len(block.weights) == 16 and not [w for w in block.weights if "adapter" in w.path]
    backbone = BertBackbone(31, 2, 3, 21, 11, max_sequence_length=13)
    assert backbone.adapters == [] and backbone.get_config()["adapter_dim"] is None


@pytest.mark.thorough
def test_gradient_checkpointing_changes_no_gradient():
    ids = np.random.default_rng(0).integers(0, 31, (3, 11))
    inputs = {"token_ids": ids, "segment_ids": ids * 0, "padding_mask": ids * 0 + 1}
    gradients = []
    for checkpointing in (False, True):
        keras.utils.set_random_seed(3)
        model = BertBackbone(
            31, 2, 3, 21, 11, 13, adapter_dim=4, gradient_checkpointing=checkpointing
        )
        for adapter in model.adapters:
            adapter.up.kernel.assign(adapter.up.kernel * 100)
        weights = [w.value for adapter in model.adapters for w in adapter.weights]

        @tf.function
        def step(model=model, weights=weights):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(inputs, training=True)["sequence_output"] ** 3)
            return tape.gradient(loss, weights)

        gradients.append([np.asarray(value) for value in step()])
    assert all(abs(gradient).max() > 0 for gradient in gradients[0])
    for without, with_checkpointing in zip(*gradients, strict=True):
        np.testing.assert_allclose(with_checkpointing, without, rtol=1e-3, atol=1e-6)


# Checkpoints.


@pytest.fixture
def batch():
    golden = np.load(TINY.with_suffix(".npz"))
    return {name: golden[name] for name in ("token_ids", "segment_ids", "padding_mask")}


@pytest.mark.thorough
def test_adapters_on_a_hugging_face_directory_are_new(batch, caplog):
    plain = BertClassifier.from_preset(TINY)
    model = BertClassifier.from_preset(TINY, adapter_dim=16)
    adapters = model.backbone.adapters
    assert len(adapters) == 2 * model.backbone.num_layers
    assert model.loading_report.new == paths(adapters)
    assert sorted(model.loading_report.loaded) == sorted(plain.loading_report.loaded)
    assert f"newly initialised: {paths(adapters)[0]}" in caplog.text
    expected = plain.predict(batch, verbose=0)
    np.testing.assert_allclose(model.predict(batch, verbose=0), expected, atol=1e-3)


def test_adapters_on_a_kerashub_preset_are_new(tmp_path):
    keras_hub.models.BertBackbone(17, 2, 5, 20, 28, max_sequence_length=13).save_to_preset(
        str(tmp_path)
    )
    checkpoint = open_checkpoint(tmp_path)
    backbone = checkpoint.backbone(adapter_dim=3)
    assert len(backbone.adapters) == 4
    assert checkpoint.report.new == paths(backbone.adapters)


def test_adapters_on_a_preset_of_ours_are_new(tmp_path, batch):
    plain = BertClassifier.from_preset(TINY)
    plain.save_to_preset(tmp_path / "ours")
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    del config["config"]["adapter_dim"]  # as presets of before adapters are
    (tmp_path / "ours" / "config.json").write_text(json.dumps(config))
    model = BertClassifier.from_preset(tmp_path / "ours", adapter_dim=16)
    adapters = model.backbone.adapters
    assert model.loading_report.new == paths(adapters)
    assert len(model.loading_report.loaded) == len(plain.weights)
    added = {id(weight) for adapter in adapters for weight in adapter.weights}
    kept = [weight for weight in model.weights if id(weight) not in added]
    for mine, theirs in zip(kept, plain.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    expected = plain.predict(batch, verbose=0)
    np.testing.assert_allclose(model.predict(batch, verbose=0), expected, atol=1e-3)


@pytest.mark.thorough
def test_a_preset_with_adapters_is_read_back(tmp_path):
    model, rng = BertClassifier.from_preset(TINY, adapter_dim=5), np.random.default_rng(0)
    for adapter in model.backbone.adapters:
        for weight in adapter.weights:
            weight.assign(rng.normal(size=weight.shape))
    model.save_to_preset(tmp_path / "ours")
    again = BertClassifier.from_preset(tmp_path / "ours")
    assert again.backbone.adapter_dim == 5 and again.loading_report.new == []
    assert len(again.loading_report.loaded) == len(again.weights)
    for mine, theirs in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for other in (None, 7):
        with pytest.raises(ValueError, match=f"of adapter_dim=5.*got adapter_dim={other}"):
            BertClassifier.from_preset(tmp_path / "ours", adapter_dim=other)
    new = BertClassifier.from_preset(tmp_path / "ours", adapter_dim=7, load_weights=False)
    assert len(new.loading_report.new) == len(new.weights)
