"""Which weights move in training, and what becomes of low-rank updates."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertClassifier
from keras_bert.models import merge_lora, tune
from keras_bert.models.tuning import KINDS

LABELS = np.array([0, 1, 1, 0, 1])


def classifier(**kwargs):
    # Large weights, so that an update shows in the logits.
    kwargs = {"max_sequence_length": 13, "initializer_range": 0.3, **kwargs}
    backbone = BertBackbone(31, 2, 3, 21, 11, **kwargs)
    return BertClassifier(backbone, 2)


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    mask = (np.arange(11) < np.array([[11], [7], [3], [9], [5]])).astype("int32")
    return {
        "token_ids": rng.integers(0, 31, (5, 11)) * mask,
        "segment_ids": rng.integers(0, 2, (5, 11)) * mask,
        "padding_mask": mask,
    }


def train(model, batch):
    """Three real steps: the first leaves LoRA's first factor alone, whose second is zero."""
    model.compile(keras.optimizers.Adam(0.01), run_eagerly=True)  # tracing would take longer
    model.fit(batch, LABELS, batch_size=5, epochs=3, verbose=0)


def values(model):
    return {w.path: keras.ops.convert_to_numpy(w).copy() for w in model.weights}


def moved(model, before):
    return {path for path, value in values(model).items() if (value != before[path]).any()}


def belongs(what, path):
    """Whether a kind trains a weight, said a second time and by paths alone."""
    name = path.split("/")[-1]
    return (
        path.startswith("head/")
        or {
            "all": True,
            "head": False,
            "bitfit": name in ("bias", "beta"),
            "adapters": "_adapter/" in path or name in ("gamma", "beta"),
            "lora": "lora" in name,
        }[what]
    )


@pytest.mark.one_quick
@pytest.mark.parametrize("what", KINDS)
def test_only_the_chosen_weights_move(batch, what):
    model = classifier(adapter_dim=4 if what == "adapters" else None)
    tuned = tune(model, what, lora_rank=2)
    before = values(model)
    chosen = {path for path in before if belongs(what, path)}
    assert set(tuned.paths) == chosen == {w.path for w in model.trainable_weights}
    assert tuned.trained == sum(before[path].size for path in chosen)
    assert tuned.total == model.count_params()
    train(model, batch)
    found = moved(model, before)
    # A bias of the keys adds the same to all scores of a row, and so changes nothing.
    assert found <= chosen and all(path.endswith("key/bias") for path in chosen - found)


def test_the_first_blocks_are_frozen_as_ever(batch):
    model = classifier()
    tune(model, "bitfit")
    model.backbone.freeze(1)
    before = values(model)
    train(model, batch)
    found = moved(model, before)
    assert {path.split("/")[0] for path in found} == {"block_1", "pooler", "head"}
    assert {path.split("/")[-1] for path in found if path[:4] != "head"} == {"bias", "beta"}


def test_each_call_replaces_the_last():
    model = classifier(adapter_dim=4)
    everything = tune(model, "all").paths
    for what in ("head", "adapters", "bitfit", "all"):
        paths = tune(model, what).paths
        assert set(paths) == {path for path in everything if belongs(what, path)}
    model.backbone.freeze()
    assert tune(model, "all").paths == everything


def test_it_says_the_share():
    tuned = tune(classifier(), "head")
    assert (tuned.paths, tuned.trained) == (["head/kernel", "head/bias"], 44)
    assert str(tuned) == f"44 of {tuned.total:,} parameters are trained (0.691 %)"


@pytest.mark.slow
def test_the_automatic_optimizer_needs_no_new_compile(batch):
    model = classifier()
    model.fit(batch, LABELS, verbose=0)
    tune(model, "lora", lora_rank=2)
    before = values(model)
    model.fit(batch, LABELS, epochs=3, verbose=0)
    found = moved(model, before)
    assert found and all(belongs("lora", path) for path in found)


def test_what_was_compiled_before_is_forgotten(batch):
    """A traced predict would go on without the updates, and with them after the merge."""
    model = classifier()
    before = model.predict(batch, verbose=0)
    update(model)
    updated = model.predict(batch, verbose=0)
    assert abs(updated - before).max() > 0.1
    np.testing.assert_allclose(updated, model(batch), atol=1e-5)
    assert merge_lora(model) == 4
    np.testing.assert_allclose(model.predict(batch, verbose=0), updated, atol=1e-5)


def test_gradient_checkpointing_with_updates(batch):
    model = classifier(gradient_checkpointing=True)
    tune(model, "lora", lora_rank=2)
    before = values(model)
    train(model, batch)
    assert moved(model, before) == {path for path in before if belongs("lora", path)}


# Low-rank updates.


def update(model):
    rng = np.random.default_rng(1)
    tune(model, "lora", lora_rank=2)
    for weight in model.weights:
        if "lora" in weight.name:
            weight.assign(rng.normal(0, 0.3, weight.shape))
    return model


def test_a_merged_model_is_plain(batch, tmp_path):
    model, plain = update(classifier()), classifier()
    expected = np.asarray(model(batch))
    assert merge_lora(model) == 4 and merge_lora(model) == 0
    assert [w.path for w in model.weights] == [w.path for w in plain.weights]
    np.testing.assert_allclose(model(batch), expected, atol=1e-5)
    plain.set_weights(model.get_weights())
    np.testing.assert_allclose(plain(batch), expected, atol=1e-5)
    query, first = (m.backbone.blocks[0].attention.query_dense for m in (model, plain))
    mine, theirs = query.get_config(), first.get_config()
    assert {*mine} == {*theirs} and mine["units"] == theirs["units"]
    model.save(tmp_path / "merged.keras")
    again = keras.models.load_model(tmp_path / "merged.keras", compile=False)
    np.testing.assert_allclose(again(batch), expected, atol=1e-5)


def test_a_merged_model_takes_new_updates(batch):
    model = update(classifier())
    merge_lora(model)
    expected = np.asarray(model(batch))
    tuned = tune(model, "lora", lora_rank=3)
    assert [p for p in tuned.paths if "block_0/attention/query" in p] == [
        "block_0/attention/query/lora_kernel_a",
        "block_0/attention/query/lora_kernel_b",
    ]
    np.testing.assert_allclose(model(batch), expected, atol=1e-6)


def test_updates_lie_where_the_model_does(batch):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        model = classifier()
    update(model)
    factors = [w.value for w in model.weights if "lora" in w.name]
    assert len(factors) == 8 and all(
        isinstance(f, tf.distribute.DistributedValues) for f in factors
    )
    expected = np.asarray(model(batch))
    merge_lora(model)
    np.testing.assert_allclose(model(batch), expected, atol=1e-5)


def test_a_merge_keeps_all_digits_under_mixed_precision():
    model = update(classifier(dtype="mixed_bfloat16"))
    dense = model.backbone.blocks[1].attention.value_dense
    kernel, a, b = (np.asarray(w, "float64") for w in dense.weights if w.name != "bias")
    merge_lora(model)
    np.testing.assert_allclose(dense.kernel, kernel + a @ b, rtol=0, atol=1e-6)


def test_a_merge_scales_by_alpha(batch):
    model = classifier()
    dense = model.backbone.blocks[0].attention.query_dense
    dense.enable_lora(2, lora_alpha=6)
    dense.lora_kernel_b.assign(np.random.default_rng(0).normal(size=(2, 21)))
    expected = np.asarray(model(batch))
    assert merge_lora(model) == 1
    np.testing.assert_allclose(model(batch), expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("merged", [pytest.param(False, marks=pytest.mark.slow), True])
def test_an_exported_model_answers_the_same(batch, tmp_path, merged):
    model = update(classifier())
    expected = model.predict(batch, verbose=0)
    if merged:
        merge_lora(model)
    model.export(tmp_path / "served", text=False)
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["serving_default"]
    output = served(**{name: tf.constant(value, tf.int32) for name, value in batch.items()})
    np.testing.assert_allclose(output["logits"], expected, atol=1e-5)


def test_a_preset_holds_the_updates_beside_merged_kernels(batch, tmp_path):
    model = update(classifier())
    model.save_to_preset(tmp_path / "tuned")
    again = BertClassifier.from_preset(tmp_path / "tuned")
    assert [w.path for w in again.trainable_weights] == [w.path for w in model.trainable_weights]
    np.testing.assert_allclose(again(batch), model(batch), atol=1e-5)
    again.merge_lora()
    np.testing.assert_allclose(again(batch), model(batch), atol=1e-5)


# Refused.


def test_unknown_words():
    with pytest.raises(ValueError, match="what='biases': expected .*all, head, bitfit, adapters"):
        tune(classifier(), "biases")
    with pytest.raises(ValueError, match="what='adapters': expected a backbone with adapter_dim"):
        tune(classifier(), "adapters")
    for wrong in (0, 2.0):
        with pytest.raises(ValueError, match="lora_rank=.*expected a whole number, 1 or more"):
            tune(classifier(), "lora", lora_rank=wrong)


def test_updates_are_not_left_behind():
    model = update(classifier())
    kept = {w.path for w in model.trainable_weights}
    for what, rank in (("all", 2), ("head", 2), ("bitfit", 2), ("lora", 3)):
        with pytest.raises(ValueError, match="updates of rank 2; call merge_lora"):
            tune(model, what, rank)
    assert set(tune(model, "lora", 2).paths) == kept


@pytest.mark.thorough
def test_only_updates_of_dense_layers_are_merged():
    model = classifier()
    model.backbone.enable_lora(2, ["query", "word"])
    with pytest.raises(ValueError, match="word is of type Embedding, .*: expected a Dense layer"):
        merge_lora(model)
    assert model.backbone.blocks[0].attention.query_dense.lora_enabled
