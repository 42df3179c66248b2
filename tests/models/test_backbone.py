import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import SIZES, BertBackbone


def small(**kwargs):
    arguments = {"max_sequence_length": 13, "num_segments": 3, **kwargs}
    return BertBackbone(31, 3, 5, 20, 28, **arguments)


@pytest.fixture
def inputs():
    rng = np.random.default_rng(0)
    mask = (np.arange(11) < np.array([[11], [7], [3]])).astype("int32")
    return {
        "token_ids": rng.integers(0, 31, (3, 11)) * mask,
        "segment_ids": rng.integers(0, 3, (3, 11)) * mask,
        "padding_mask": mask,
    }


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("size", "count"),
    [("base", 109_482_240), pytest.param("large", 335_141_888, marks=pytest.mark.slow)],
)
def test_published_parameter_counts(size, count):
    assert BertBackbone.from_size(size).count_params() == count


def test_all_published_sizes_are_there():
    grid = [(n, h) for n in (2, 4, 6, 8, 10, 12) for h in (128, 256, 512, 768)]
    found = {(s["num_layers"], s["hidden_dim"]) for s in SIZES.values()}
    assert found == {*grid, (24, 1024)}
    assert all(s["num_heads"] * 64 == s["hidden_dim"] for s in SIZES.values())
    assert all(s["intermediate_dim"] == 4 * s["hidden_dim"] for s in SIZES.values())
    with pytest.raises(ValueError, match="size='huge': expected one of .*tiny"):
        BertBackbone.from_size("huge")
    assert BertBackbone.from_size("L3_H64", vocabulary_size=31).num_layers == 3
    for wrong in ("L0_H64", "L3_H100", "L3_H0", "XL3_H64"):
        with pytest.raises(ValueError, match=f"size='{wrong}': expected"):
            BertBackbone.from_size(wrong)


def test_outputs_and_what_comes_on_request(inputs):
    output = small(output_hidden_states=True, output_attentions=True)(inputs)
    assert output["sequence_output"].shape == (3, 11, 20)
    assert output["pooled_output"].shape == (3, 20)
    assert [h.shape for h in output["hidden_states"]] == [(3, 11, 20)] * 4
    assert [a.shape for a in output["attention_probabilities"]] == [(3, 5, 11, 11)] * 3
    np.testing.assert_array_equal(output["hidden_states"][-1], output["sequence_output"])
    assert sorted(small()(inputs)) == ["pooled_output", "sequence_output"]


def test_padding_changes_no_token(inputs):
    model = small()
    whole = np.asarray(model(inputs)["sequence_output"])
    for row, length in enumerate((11, 7, 3)):
        alone = model({k: v[row : row + 1, :length] for k, v in inputs.items()})
        np.testing.assert_allclose(
            alone["sequence_output"][0], whole[row, :length], rtol=0, atol=2e-6
        )


def test_texts_packed_in_one_row_match_themselves_alone(inputs):
    """Rows of 7 and 3 tokens in one row of 11, by position ids and sequence ids."""
    model = small()
    alone = np.asarray(model(inputs)["sequence_output"])
    row = {k: np.concatenate([v[1, :7], v[2, :3], [0]])[None] for k, v in inputs.items()}
    row["position_ids"] = np.array([[*range(7), *range(3), 0]])
    row["sequence_ids"] = np.array([[0] * 7 + [1] * 3 + [2]])
    packed = np.asarray(model(row)["sequence_output"])[0]
    np.testing.assert_allclose(packed[:7], alone[1, :7], rtol=0, atol=2e-6)
    np.testing.assert_allclose(packed[7:10], alone[2, :3], rtol=0, atol=2e-6)


@pytest.mark.parametrize("graph", [False, True])
def test_input_past_the_position_table_raises(graph):
    model = small(max_sequence_length=512)
    batch = {k: np.ones((1, 513), "int32") for k in ("token_ids", "segment_ids", "padding_mask")}
    call = tf.function(model) if graph else model
    with pytest.raises(ValueError, match="513 tokens: expected at most 512"):
        call(batch)


def test_input_past_the_position_table_fails_with_unknown_length():  # no static shape
    model = small(max_sequence_length=512)
    spec = tf.TensorSpec([None, None], tf.int32)
    call = tf.function(
        lambda i: model({"token_ids": i, "segment_ids": i, "padding_mask": i}),
        input_signature=[spec],
    )
    assert call(tf.ones([1, 512], tf.int32))["sequence_output"].shape == (1, 512, 20)
    with pytest.raises(tf.errors.InvalidArgumentError):
        call(tf.ones([1, 513], tf.int32))


def test_one_text_without_a_batch_axis_raises(inputs):
    with pytest.raises(ValueError, match=r"Expected shape \(None, None\).* shape \(11,\)"):
        small()({k: v[0] for k, v in inputs.items()})


@pytest.mark.one_quick
@pytest.mark.parametrize("mask_dtype", ["int32", "bool"])
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision_builds_and_stays_finite(inputs, policy, mask_dtype):
    mask = inputs["padding_mask"].astype(mask_dtype)
    model = small(dtype=policy)
    output = model({**inputs, "padding_mask": mask})
    assert np.isfinite(np.asarray(output["sequence_output"], "float32")).all()
    assert all(weight.dtype == "float32" for weight in model.weights)
    reference = small()
    reference.set_weights(model.get_weights())
    np.testing.assert_allclose(
        np.asarray(output["sequence_output"], "float32"),
        reference(inputs)["sequence_output"],
        atol=0.1 if policy == "mixed_bfloat16" else 0.02,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_gradient_checkpointing_changes_no_gradient(inputs, compiled):
    """With dropout on: the recomputed block must drop what the forward pass dropped."""
    gradients = []
    for checkpointing in (False, True):
        keras.utils.set_random_seed(3)
        model = small(gradient_checkpointing=checkpointing)
        weights = [w.value for w in model.trainable_weights if "pooler" not in w.path]

        @tf.function(jit_compile=compiled)
        def step(model=model, weights=weights):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(inputs, training=True)["sequence_output"] ** 3)
            return [loss, *map(tf.convert_to_tensor, tape.gradient(loss, weights))]

        gradients.append([np.asarray(value) for value in step()])
    assert gradients[0][0] != 0
    for without, with_checkpointing in zip(*gradients, strict=True):
        np.testing.assert_allclose(with_checkpointing, without, rtol=1e-4, atol=1e-6)


def test_a_misspelt_argument_raises():
    with pytest.raises(TypeError, match="unknown argument hiden_dropout"):
        BertBackbone.from_size("tiny", hiden_dropout=0.2)


def test_freezing():
    model = small()
    model.freeze(2)
    names = {weight.path.split("/")[0] for weight in model.trainable_weights}
    assert names == {"block_2", "pooler"}
    model.freeze()
    assert model.trainable_weights == []
    with pytest.raises(ValueError, match="expected 0 to 3"):
        model.freeze(4)


def test_lora_trains_queries_and_values_alone(inputs):
    model = small()
    before = np.asarray(model(inputs)["sequence_output"])
    model.enable_lora(rank=2)
    names = {tuple(weight.path.split("/")[2:]) for weight in model.trainable_weights}
    parts = ("bias", "lora_kernel_a", "lora_kernel_b")
    assert names == {(dense, part) for dense in ("query", "value") for part in parts}
    np.testing.assert_allclose(model(inputs)["sequence_output"], before, atol=1e-6)


@pytest.mark.slow
def test_keras_file_loads_in_a_fresh_process(tmp_path, inputs):
    model = small(activation="gelu_tanh")
    model.save(tmp_path / "backbone.keras")
    np.savez(tmp_path / "inputs.npz", **inputs)
    script = (
        "import sys, numpy as np, keras, keras_bert\n"
        "model = keras.models.load_model(sys.argv[1] + '/backbone.keras')\n"
        "output = model(dict(np.load(sys.argv[1] + '/inputs.npz')))['sequence_output']\n"
        "np.save(sys.argv[1] + '/output.npy', np.asarray(output))\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    np.testing.assert_allclose(
        np.load(tmp_path / "output.npy"), model(inputs)["sequence_output"], rtol=0, atol=1e-6
    )


def test_a_causal_token_sees_nothing_that_follows(inputs):
    model = small(causal=True)
    whole = model(inputs)
    for length in (1, 4, 10):
        part = model({name: value[:, :length] for name, value in inputs.items()})
        np.testing.assert_allclose(
            part["sequence_output"], whole["sequence_output"][:, :length], rtol=0, atol=2e-6
        )
    changed = dict(inputs, token_ids=inputs["token_ids"].copy())
    changed["token_ids"][0, 6] = (changed["token_ids"][0, 6] + 1) % 31
    moved = np.abs(model(changed)["sequence_output"][0] - whole["sequence_output"][0]).max(-1)
    assert moved[:6].max() == 0 and moved[6:].min() > 0
    # The pooled output is that of the last token, by the pooler's own weights in float64.
    kernel, bias = (np.asarray(weight, "float64") for weight in model.pooler.weights)
    for row, length in enumerate((11, 7, 3)):
        last = np.asarray(whole["sequence_output"], "float64")[row, length - 1]
        pooled = np.tanh(last @ kernel + bias)
        np.testing.assert_allclose(whole["pooled_output"][row], pooled, rtol=0, atol=1e-6)


@pytest.mark.parametrize("training", [False, True])
def test_causal_texts_packed_in_one_row_match_themselves_alone(inputs, training):
    """Rows of 7 and 3 tokens, in the second and first place of a row of 13."""
    model = small(causal=True, hidden_dropout=0.0, attention_dropout=0.0)
    texts = {name: value[[2, 1]] for name, value in inputs.items()}
    alone = model(texts)
    cells = np.array([[*range(3), *range(11, 18), -1, -1, -1]])
    packed = model(texts | {"packed_from": cells}, training=training)
    mask = texts["padding_mask"].astype(bool)
    np.testing.assert_allclose(
        packed["sequence_output"][mask], alone["sequence_output"][mask], rtol=0, atol=2e-6
    )
    np.testing.assert_allclose(packed["pooled_output"], alone["pooled_output"], rtol=0, atol=2e-6)


def test_causal_is_kept_and_off_by_default():
    assert small().get_config()["causal"] is False
    again = BertBackbone.from_config(small(causal=True).get_config())
    assert again.causal and again.attention_mask.causal
    with pytest.raises(TypeError, match="causal=1: expected True or False"):
        small(causal=1)
