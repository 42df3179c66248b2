"""The encoder with its kernels against the encoder without, on what the kernels are to compute."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert
from keras_bert import kernels
from keras_bert.kernels import use
from keras_bert.layers import EncoderBlock
from keras_bert.layers.attention import AttentionMask
from keras_bert.training.iterator_functions import shapes_known
from tests.kernels import contract

TEXTS, TOKENS, HEADS, HIDDEN = 3, 20, 2, 64
MODULES = ("fused_attention", "gelu", "residual_norm")


@pytest.fixture
def without_gpu(monkeypatch):
    for module in MODULES:
        monkeypatch.setattr(f"keras_bert.kernels.{module}.run", contract.run)


def ids(rng, sequence_ids=False):
    lengths = np.array([[20], [13], [1]])
    found = {
        "token_ids": rng.integers(1, 50, (TEXTS, TOKENS)).astype("int32"),
        "segment_ids": rng.integers(0, 2, (TEXTS, TOKENS)).astype("int32"),
        "padding_mask": (np.arange(TOKENS) < lengths).astype("int32"),
    }
    if sequence_ids:
        found["sequence_ids"] = np.broadcast_to(np.arange(TOKENS) // 6, (TEXTS, TOKENS))
    return found


def run(model, inputs, used, training=False):
    """(outputs, gradients of a sum of outputs) with kernels or without."""
    keras.utils.set_random_seed(5)
    for layer in model._flatten_layers():
        if hasattr(layer, "seed_generator"):
            layer.seed_generator.state.assign([5, 0])
    variables = model.trainable_variables
    values = [tf.convert_to_tensor(variable.value) for variable in variables]
    scope = keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True)))
    with tf.GradientTape() as tape, kernels.scope(used), scope:  # as a train step does
        tape.watch(values)
        outputs = model(inputs, training=training)["sequence_output"]
        mask = inputs["padding_mask"][..., None]
        ramp = np.linspace(-1, 1, HIDDEN, dtype="float32")
        total = tf.reduce_sum(tf.cast(outputs, "float32") * ramp * mask)
    gradients = tape.gradient(total, values)
    return outputs * tf.cast(mask, outputs.dtype), gradients


def backbone(**kwargs):
    settings = {"num_layers": 2, "num_heads": HEADS, "hidden_dim": HIDDEN, "intermediate_dim": 96}
    settings |= {"dtype": "mixed_bfloat16"} | kwargs
    return keras_bert.BertBackbone(50, **settings)


@pytest.mark.one_quick
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "packed, activation", [(False, "gelu_exact"), (True, "gelu_tanh"), (True, "relu")]
)
def test_encoder_with_kernels(without_gpu, monkeypatch, training, packed, activation):
    # In float32, so that the comparison can be close; real kernels take half the width.
    for module in MODULES:
        monkeypatch.setattr(f"keras_bert.kernels.{module}.FLOATS", {"float32": "f32"})
    dropout = {"hidden_dropout": 0.2, "attention_dropout": 0.2}
    model = backbone(dtype="float32", activation=activation, **dropout)
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:  # biases and norms that do something
        variable.assign(variable + 0.1 * rng.normal(size=variable.shape))
    inputs = ids(rng, packed)
    found, found_changes = run(model, inputs, True, training)
    wanted, wanted_changes = run(model, inputs, False, training)
    np.testing.assert_allclose(found, wanted, atol=2e-5)
    for variable, a, b in zip(
        model.trainable_variables, found_changes, wanted_changes, strict=True
    ):
        if b is None:
            assert a is None
            continue
        a, b = tf.convert_to_tensor(a), tf.convert_to_tensor(b)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-4, err_msg=variable.path)


def counted(monkeypatch):
    calls = []

    def run(kernel, *args):
        calls.append(kernel.function)
        return contract.run(kernel, *args)

    for module in MODULES:
        monkeypatch.setattr(f"keras_bert.kernels.{module}.run", run)
    return calls


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "settings, attention, norms, gelus",
    [
        ({}, 2, 4, 2),
        ({"dtype": "float32"}, 0, 0, 0),  # no kernel for the type
        ({"output_attentions": True}, 0, 4, 2),  # probabilities are wanted
        ({"adapter_dim": 4}, 2, 0, 2),  # something stands between
        ({"num_heads": 4}, 0, 4, 2),  # heads of 16 units
        ({"causal": True}, 0, 4, 2),  # the kernel has no such mask
        ({"activation": "relu"}, 2, 4, 0),
    ],
)
def test_where_kernels_are_used(monkeypatch, settings, attention, norms, gelus):
    calls = counted(monkeypatch)
    run(backbone(**settings), ids(np.random.default_rng(0)), True)
    assert calls.count("forward") == calls.count("backward") == attention
    assert calls.count("norm_forward") == calls.count("norm_backward") == norms
    assert calls.count("gelu_forward") == calls.count("gelu_backward") == gelus


def test_not_for_dense_layers_with_lora(monkeypatch):
    calls = counted(monkeypatch)
    model = backbone()
    for block in model.blocks:
        block.attention.query_dense.enable_lora(2)
        block.intermediate.enable_lora(2)
        block.feedforward_output.enable_lora(2)
    found, _ = run(model, ids(np.random.default_rng(0)), True)
    wanted, _ = run(model, ids(np.random.default_rng(0)), False)
    np.testing.assert_allclose(tf.cast(found, "float32"), tf.cast(wanted, "float32"), atol=0.1)
    assert calls.count("forward") == 2 and calls.count("norm_forward") == 2
    assert not calls.count("gelu_forward")


@pytest.mark.thorough
def test_gradient_checkpointing(monkeypatch):
    calls = counted(monkeypatch)
    inputs = ids(np.random.default_rng(0))
    models = [backbone(gradient_checkpointing=kept, hidden_dropout=0.2) for kept in (True, False)]
    for mine, other in zip(*(model.variables for model in models), strict=True):
        mine.assign(other)
    found, a = run(models[0], inputs, True, training=True)
    assert calls.count("norm_forward") == 4 + 4, "once more for the gradients"
    wanted, b = run(models[1], inputs, True, training=True)
    np.testing.assert_array_equal(tf.cast(found, "float32"), tf.cast(wanted, "float32"))
    for mine, other in zip(a, b, strict=True):
        if other is not None:
            mine, other = tf.convert_to_tensor(mine), tf.convert_to_tensor(other)
            np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-5)


def test_unknown_sizes_do_without(monkeypatch):
    calls = counted(monkeypatch)
    model = backbone()
    inputs = ids(np.random.default_rng(0))
    spec = {name: tf.TensorSpec([None, None], "int32") for name in inputs}

    @tf.function(input_signature=[spec])
    def unknown(inputs):
        with kernels.scope(True):
            return model(inputs)["pooled_output"]

    found = unknown({name: tf.constant(value) for name, value in inputs.items()})
    assert not calls
    wanted = model(inputs)["pooled_output"]
    np.testing.assert_allclose(tf.cast(found, "float32"), tf.cast(wanted, "float32"), atol=0.02)


def test_scope_ends():
    assert not kernels.in_use()
    with contextlib.suppress(RuntimeError), kernels.scope(True):
        assert kernels.in_use()
        with kernels.scope(False):
            assert not kernels.in_use()
        raise RuntimeError
    assert not kernels.in_use()


WITHOUT_GPU = pytest.mark.skipif(
    bool(tf.config.list_physical_devices("GPU")), reason="for machines without a GPU"
)


@WITHOUT_GPU
def test_not_ready_without_gpu():
    assert not kernels.ready()


@WITHOUT_GPU
def test_what_was_asked_for_is_not_left_out_silently():
    assert not kernels.chosen("auto", possible=True) and not kernels.chosen(False, possible=True)
    with pytest.raises(ValueError, match="do not work"):
        kernels.chosen(True, possible=True)
    with pytest.raises(ValueError, match="XLA does not"):
        kernels.chosen(True, possible=False)
    model = keras_bert.BertClassifier(backbone(), num_classes=2)
    with pytest.raises(ValueError, match="use_kernels='off'"):
        model.compile(use_kernels="off")


def test_shapes_of_replicas_are_read_part_by_part():
    inputs = {"known": np.zeros((8, 4), "int32"), "also": np.zeros(8)}
    for whole in (True, False):
        batches = tf.data.Dataset.from_tensor_slices(inputs).batch(4, drop_remainder=whole)
        strategy = tf.distribute.MirroredStrategy(["CPU:0"])
        for found in (batches, strategy.experimental_distribute_dataset(batches)):
            assert shapes_known(iter(found).element_spec) == whole


def test_a_block_by_itself_gives_its_probabilities():
    block = EncoderBlock(HEADS, 96, dtype="mixed_bfloat16")
    x = np.random.default_rng(0).normal(size=(TEXTS, TOKENS, HIDDEN)).astype("float32")
    with kernels.scope(True):
        mask = AttentionMask()(np.ones((TEXTS, TOKENS), "int32"))
        assert mask.shape == (TEXTS, 2, TOKENS)
    _, probabilities = block(x, mask)
    np.testing.assert_allclose(np.sum(tf.cast(probabilities, "float32"), -1), 1, atol=0.02)


@pytest.mark.thorough
def test_the_trial_tells_right_from_wrong(monkeypatch):
    monkeypatch.setattr("keras_bert.kernels.use.GPU", "CPU:0")
    for module in MODULES:
        monkeypatch.setattr(f"keras_bert.kernels.{module}.run", contract.run)
    assert use.largest_error() < use.MOST_OFF

    def wrong(kernel, inputs, outputs, numbers, grid):
        results = contract.run(kernel, inputs, outputs, numbers, grid)
        return [results[0] * 1.1, *results[1:]] if kernel.function == "norm_backward" else results

    monkeypatch.setattr("keras_bert.kernels.residual_norm.run", wrong)
    assert use.largest_error() > use.MOST_OFF


def test_a_causal_encoder_is_the_same_with_kernels(without_gpu, monkeypatch):
    for module in MODULES:
        monkeypatch.setattr(f"keras_bert.kernels.{module}.FLOATS", {"float32": "f32"})
    model = backbone(dtype="float32", causal=True)
    for packed in (False, True):
        inputs = ids(np.random.default_rng(0), packed)
        found, wanted = (run(model, inputs, used)[0] for used in (True, False))
        np.testing.assert_allclose(found, wanted, atol=2e-5)
