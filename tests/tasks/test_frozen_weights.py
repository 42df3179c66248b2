"""What is frozen or tuned in part stays so in files, and the optimizer's state with it."""

import keras
import numpy as np
import pytest

from keras_bert import BertBackbone, BertClassifier, BertMaskedLM, BertTokenClassifier

# The subject is what files keep; training.test_second_fit compiles steps of frozen weights.
pytestmark = pytest.mark.usefixtures("eager")

V, T, N = 31, 6, 8
TASKS = {
    "classifier": lambda b: BertClassifier(b, 3, dropout=0.0),
    "tagger": lambda b: BertTokenClassifier(b, 3, dropout=0.0),
    "masked": BertMaskedLM,
}
WAYS = {
    "blocks": lambda model: model.backbone.freeze(1),
    "backbone": lambda model: model.backbone.freeze(),
    "heads": lambda model: [
        setattr(weight, "trainable", False)
        for weight in model.weights
        if weight.path.startswith(("head", "masked_lm_head"))
    ],
    **{kind: lambda model, kind=kind: model.tune(kind) for kind in ("head", "bitfit", "lora")},
    "adapters": lambda model: model.tune("adapters"),
}


def make(task="classifier", adapters=None):
    keras.utils.set_random_seed(3)
    settings = {"hidden_dropout": 0.0, "attention_dropout": 0.0, "adapter_dim": adapters}
    backbone = BertBackbone(V, 2, 2, 8, 12, T, initializer_range=0.3, **settings)
    return TASKS[task](backbone)


def inputs(task="classifier"):
    rng = np.random.default_rng(0)
    ones = np.ones((N, T), "int32")
    x = {
        "token_ids": rng.integers(0, V, (N, T)).astype("int32"),
        "segment_ids": 0 * ones,
        "padding_mask": ones,
    }
    if task == "masked":
        import tensorflow as tf

        x |= {"mask_positions": ones[:, :2], "mask_ids": ones[:, :2]}
        return tf.data.Dataset.from_tensor_slices(
            x | {"mask_weights": ones[:, :2].astype("float32")}
        ).batch(4)
    return x, rng.integers(0, 3, (N, T) if task == "tagger" else N).astype("int32")


def train(model, task="classifier"):
    data = inputs(task)
    if task == "masked":
        return model.fit(data, shuffle=False, verbose=0).history["loss"]
    return model.fit(*data, batch_size=4, shuffle=False, verbose=0).history["loss"]


def paths(model):
    return [weight.path for weight in model.trainable_weights]


def assert_equal(model, other):
    for one, two in zip(model.weights, other.weights, strict=True):
        assert one.path == two.path
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=0, atol=1e-6, err_msg=one.path)


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("task", "way"),
    [("classifier", way) for way in WAYS] + [("tagger", "lora"), ("masked", "heads")],
)
def test_a_keras_file_keeps_what_is_frozen_and_goes_on(task, way, tmp_path):
    model = make(task, adapters=4 if way == "adapters" else None)
    WAYS[way](model)
    model.compile(keras.optimizers.Adam(1e-2))
    train(model, task)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert paths(loaded) == paths(model)
    assert 0 < len(paths(loaded)) < len(model.weights)
    assert int(loaded.optimizer.iterations) == 2
    assert_equal(model, loaded)
    assert train(loaded, task) == pytest.approx(train(model, task), rel=1e-5)
    assert_equal(model, loaded)  # moments and updates of the optimizer were there too


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("task", "way"),
    [("classifier", way) for way in WAYS] + [("tagger", "lora"), ("masked", "heads")],
)
def test_a_preset_keeps_what_is_frozen(task, way, tmp_path):
    model = make(task, adapters=4 if way == "adapters" else None)
    WAYS[way](model)
    model.compile(keras.optimizers.Adam(1e-2))
    train(model, task)
    model.save_to_preset(tmp_path / "preset")
    loaded = type(model).from_preset(tmp_path / "preset")
    assert paths(loaded) == paths(model)
    assert_equal(model, loaded)
    if way != "heads":
        other = {"tagger": BertClassifier}.get(task, BertTokenClassifier)
        other = other.from_preset(tmp_path / "preset", num_classes=2, skip_mismatch=True)
        in_backbone = {weight.path for weight in model.backbone.trainable_weights}
        assert {w.path for w in other.backbone.trainable_weights} == in_backbone


@pytest.mark.one_quick
@pytest.mark.parametrize("way", ["blocks", "bitfit", "lora"])
def test_a_file_of_weights_brings_the_optimizer(way, tmp_path):
    model, other = make(), make()
    for one in (model, other):
        WAYS[way](one)
        one.compile(keras.optimizers.Adam(1e-2))
    train(model)
    model.save_weights(tmp_path / "model.weights.h5")
    other.load_weights(tmp_path / "model.weights.h5")
    assert int(other.optimizer.iterations) == 2
    assert train(other) == pytest.approx(train(model), rel=1e-5)
    assert_equal(model, other)


@pytest.mark.thorough
def test_a_file_of_low_rank_updates_loads_into_a_plain_model(tmp_path):
    model, plain = make(), make()
    model.tune("lora")
    model.compile(keras.optimizers.Adam(1e-2))
    train(model)
    model.save_weights(tmp_path / "model.weights.h5")
    with pytest.warns(UserWarning, match="Skipping variable loading for optimizer"):
        plain.load_weights(tmp_path / "model.weights.h5")
    model.merge_lora()
    x, _ = inputs()
    found = plain.predict(x, verbose=0)
    np.testing.assert_allclose(found, model.predict(x, verbose=0), rtol=0, atol=1e-6)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")
def test_low_rank_updates_merge_into_int8_kernels():
    model = make()
    model.tune("lora")
    model.compile(keras.optimizers.Adam(3e-2))
    for _ in range(5):
        train(model)
    x, _ = inputs()
    whole = model.predict(x, verbose=0)
    model.quantize("int8")
    before = model.predict(x, verbose=0)
    assert model.merge_lora() == 4
    after = model.predict(x, verbose=0)
    rounding = max(np.abs(before - whole).max(), 0.01)
    assert np.abs(after - before).max() < 3 * rounding
    kernel = model.backbone.blocks[0].attention.query_dense.kernel
    assert kernel.dtype == "int8"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")
def test_low_rank_updates_do_not_merge_into_int4_kernels():
    model = make()
    model.tune("lora")
    model.quantize("int4")
    x, _ = inputs()
    before = model.predict(x, verbose=0)
    with pytest.raises(ValueError, match="quantized to int4"):
        model.merge_lora()
    np.testing.assert_array_equal(model.predict(x, verbose=0), before)


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"frozen": "all"}, "frozen is 'all'; expected paths of weights"),
        ({"lora": {"rank": 10**6, "alpha": 1, "layers": ["query"]}}, "rank"),
        (
            {"lora": {"rank": 2, "layers": ["query"]}},
            "a rank up to hidden_dim, alpha and names",
        ),
    ],
)
def test_wrong_settings_of_what_is_frozen_are_named(setting, message, tmp_path):
    import json

    make().save_to_preset(tmp_path / "preset")
    path = tmp_path / "preset" / "config.json"
    content = json.loads(path.read_text())
    content["config"] |= setting
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        BertClassifier.from_preset(tmp_path / "preset")
