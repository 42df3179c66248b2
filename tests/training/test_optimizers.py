"""The optimizers against their published rules in float64, through Keras and as pure functions."""

import contextlib
import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertClassifier
from keras_bert.training.optimizers import AdamW, Lamb, Muon, orthogonalized
from keras_bert.training.rate_scales import layerwise_rate_scales
from keras_bert.training.schedules import ShareSchedule, WarmupDecay

STEPS, PEAK, DECAY, CLIP, EPSILON = 20, 0.02, 0.2, 1.5, 1e-4


def classifier(num_layers=2):
    backbone = BertBackbone(31, num_layers, 3, 21, 11, max_sequence_length=13)
    return BertClassifier(backbone, num_classes=3)


def weights_and_gradients():
    """A kernel and a bias of order 1, and gradients some of which are over the limit."""
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=(5, 3)), rng.normal(size=3)]
    sizes = np.resize([0.1, 0.5, 3.0], STEPS)
    return weights, [[s * rng.normal(size=w.shape) for w in weights] for s in sizes]


def expected(rule, corrected):
    """The published rules, written out in float64."""
    values, all_gradients = weights_and_gradients()
    m, v, norms = [0.0, 0.0], [0.0, 0.0], []
    for t, gradients in enumerate(all_gradients, start=1):
        norms.append(np.sqrt(sum((g**2).sum() for g in gradients)))
        rate = PEAK * (t / 5 if t <= 5 else (31 - t) / 25)
        for i, g in enumerate(gradients):
            g = g * CLIP / max(norms[-1], CLIP)
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] = 0.999 * v[i] + 0.001 * g**2
            c1, c2 = (1 - 0.9**t, 1 - 0.999**t) if corrected else (1.0, 1.0)
            change = m[i] / c1 / (np.sqrt(v[i] / c2) + EPSILON)
            if i == 0:
                change = change + DECAY * values[i]
                if rule is Lamb:
                    change *= np.linalg.norm(values[i]) / np.linalg.norm(change)
            values[i] = values[i] - rate * change
    assert min(norms) < CLIP < max(norms)
    return values, m, v


@pytest.mark.one_quick
@pytest.mark.parametrize("way", ["keras", "pure"])
@pytest.mark.parametrize(
    ("rule", "corrected"), [(AdamW, True), (AdamW, False), (Lamb, True), (Lamb, False)]
)
def test_updates_match_float64(rule, corrected, way):
    initial, all_gradients = weights_and_gradients()
    variables = [keras.Variable(value) for value in initial]
    optimizer = rule(
        WarmupDecay(PEAK, 30, 5),
        DECAY,
        epsilon=EPSILON,
        bias_correction=corrected,
        global_clipnorm=CLIP,
    )
    optimizer.build(variables)

    @tf.function(jit_compile=True)
    def update(gradients, values, slots, step, rate):
        gradients, norm = optimizer.clipped(gradients)
        return *optimizer.updated(gradients, values, slots, step, rate), norm

    values = [v.value for v in variables]
    slots = [[s.value for s in pair] for pair in optimizer.slot_variables()]
    for t, gradients in enumerate(all_gradients):
        gradients = [tf.constant(g, "float32") for g in gradients]
        if way == "keras":
            optimizer.apply(gradients, variables)
            continue
        rate = optimizer._learning_rate(t)
        values, slots, norm = update(gradients, values, slots, tf.constant(t, tf.int64), rate)
        np.testing.assert_allclose(norm, tf.linalg.global_norm(gradients), rtol=1e-6)
    if way == "keras":
        values, slots = variables, optimizer.slot_variables()
        assert int(optimizer.iterations) == STEPS
    want, m, v = expected(rule, corrected)
    for i in range(2):
        np.testing.assert_allclose(values[i], want[i], rtol=0, atol=1e-6)
        np.testing.assert_allclose(slots[i][0], m[i], rtol=0, atol=1e-6)
        np.testing.assert_allclose(slots[i][1], v[i], rtol=0, atol=1e-6)


def test_bias_correction_is_exact_at_every_step():
    optimizer = AdamW(1.0, 0.0, epsilon=0.0, global_clipnorm=None)
    optimizer.build([keras.Variable([0.0])])
    for step in (0, 1, 10, 1000, 100_000, 1_000_000):
        m, v = 0.3, 0.5
        _, [(new_m, new_v)] = optimizer.updated([[0.0]], [tf.zeros(1)], [[[m], [v]]], step, 0.0)
        [value], _ = optimizer.updated([[0.0]], [tf.zeros(1)], [[[m], [v]]], step, 1.0)
        c1, c2 = 1 - 0.9 ** (step + 1), 1 - 0.999 ** (step + 1)
        want = -0.9 * m / c1 / np.sqrt(0.999 * v / c2)
        np.testing.assert_allclose(value, [want], rtol=1e-6)
        np.testing.assert_allclose([new_m[0], new_v[0]], [0.9 * m, 0.999 * v], rtol=1e-6)


def test_the_original_starts_with_larger_updates():
    """Without the correction the first update is 0.1 / sqrt(0.001) as large, whatever g is."""
    changes = []
    for corrected in (True, False):
        optimizer = AdamW(1.0, 0.0, bias_correction=corrected, global_clipnorm=None)
        variable = keras.Variable([0.0])
        optimizer.apply([np.float32([5.0])], [variable])
        changes.append(float(variable[0]))
    np.testing.assert_allclose(changes, [-1.0, -0.1 / np.sqrt(0.001)], rtol=1e-5)


@pytest.mark.parametrize("rule", [AdamW, Lamb])
def test_decay_spares_biases_and_layer_norm(rule):
    model = classifier()
    before = {w.path: np.asarray(w).copy() for w in model.trainable_weights}
    optimizer = rule(0.1, weight_decay=0.01)
    optimizer.build(model.trainable_variables)
    spared = optimizer.undecayed(model.trainable_variables)
    ends = ("bias", "gamma", "beta")
    assert spared and spared == [path for path in before if path.endswith(ends)]
    assert {p.rsplit("/", 1)[1] for p in before if p not in spared} == {
        "kernel",
        "embeddings",
        "position_table",
        "segment_table",
    }
    zeros = [np.zeros(w.shape, "float32") for w in model.trainable_variables]
    optimizer.apply(zeros, model.trainable_variables)
    # LAMB takes a change as large as the weights themselves, times the rate.
    factor = 0.999 if rule is AdamW else 0.9
    for weight in model.trainable_weights:
        want = before[weight.path] * (1.0 if weight.path in spared else factor)
        np.testing.assert_allclose(weight, want, rtol=1e-5, atol=1e-9)


def test_more_can_be_excluded_from_decay_until_build(caplog):
    kernel, table, bias = (keras.Variable(np.ones(shape)) for shape in ((2, 3), (5, 2), (3,)))
    optimizer = AdamW(0.1, 0.01)
    optimizer.exclude_from_weight_decay(var_list=[table])
    with caplog.at_level(logging.DEBUG, "keras_bert"):
        optimizer.build([kernel, table, bias])
    assert optimizer.undecayed([kernel, table, bias]) == [table.path, bias.path]
    assert f"no weight decay on: {table.path}, {bias.path}" in caplog.text
    optimizer.apply([np.zeros(v.shape, "float32") for v in (kernel, table, bias)])
    np.testing.assert_allclose(kernel, np.full((2, 3), 0.999), rtol=1e-6)
    assert np.all(np.asarray(table) == 1) and np.all(np.asarray(bias) == 1)
    with pytest.raises(ValueError, match="expected a call before build"):
        optimizer.exclude_from_weight_decay(var_names=["kernel"])


def test_lamb_takes_ratio_1_where_a_norm_is_0():
    zero, some = keras.Variable(np.zeros((2, 3))), keras.Variable(np.ones((2, 3)))
    optimizer = Lamb(0.1, 0.0, global_clipnorm=None)
    optimizer.apply([np.ones((2, 3), "float32"), np.zeros((2, 3), "float32")], [zero, some])
    np.testing.assert_allclose(zero, np.full((2, 3), -0.1), rtol=1e-5)  # direction 1, ratio 1
    np.testing.assert_allclose(some, np.ones((2, 3)))


@pytest.mark.parametrize("limit", ["global_clipnorm", "clipnorm", "clipvalue"])
@pytest.mark.parametrize("compiled", [False, True])
def test_clipping(limit, compiled):
    optimizer = AdamW(0.1, **{"global_clipnorm": None, limit: 0.5})
    gradients = [tf.constant([[3.0, -4.0]]), tf.constant([0.1])]
    clip = tf.function(optimizer.clipped, jit_compile=True) if compiled else optimizer.clipped
    found, norm = clip(gradients)
    assert float(norm) == pytest.approx(np.sqrt(25.01))
    want = {
        "global_clipnorm": tf.clip_by_global_norm(gradients, 0.5)[0],
        "clipnorm": [tf.clip_by_norm(g, 0.5) for g in gradients],
        "clipvalue": [tf.clip_by_value(g, -0.5, 0.5) for g in gradients],
    }[limit]
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    found, _ = clip([g * 0.01 for g in gradients])
    for a, b in zip(found, gradients, strict=True):
        np.testing.assert_allclose(a, b * 0.01, rtol=1e-6)
    for bad in (np.inf, -np.inf, np.nan, 1e30):  # the square of the last overflows
        found, norm = clip([tf.constant([[bad, 1.0]]), tf.constant([0.1])])
        assert not np.isfinite(norm)
        assert not any(np.isfinite(g).any() for g in found)


def test_gradients_stay_as_they_are_without_a_limit():
    gradients, norm = AdamW(0.1, global_clipnorm=None).clipped([np.float32([300, 400])])
    np.testing.assert_array_equal(gradients[0], [300, 400])
    assert float(norm) == 500


def test_slots_and_arithmetic_are_float32_for_bfloat16_variables():
    variables = [keras.Variable([[1.0, 2.0]], dtype="bfloat16"), keras.Variable([3.0])]
    optimizer = AdamW(0.1)
    optimizer.build(variables)
    slots = optimizer.slot_variables()
    assert [[s.dtype for s in pair] for pair in slots] == [["float32"] * 2] * 2
    assert [[s.path.rsplit("_", 1)[1] for s in pair] for pair in slots] == [
        ["momentum", "velocity"]
    ] * 2
    gradients = [tf.constant([[0.1, 0.3]], tf.bfloat16), tf.constant([0.2])]
    values, new = optimizer.updated(
        gradients, [v.value for v in variables], [[s.value for s in p] for p in slots], 0, 0.1
    )
    assert [v.dtype for v in values] == [tf.bfloat16, tf.float32]
    exact = np.asarray(tf.cast(gradients[0], tf.float32))
    np.testing.assert_allclose(new[0][1], 0.001 * exact**2, rtol=1e-6)
    optimizer.apply(gradients, variables)
    for a, b in zip(values, variables, strict=True):
        np.testing.assert_array_equal(tf.cast(a, tf.float32), tf.cast(b.value, tf.float32))


def test_sparse_gradients_count_as_their_sums():
    """The gradient of a gather has a row for each use of a word."""
    sparse = tf.IndexedSlices(tf.constant([[1.0, 2.0], [3.0, 4.0]]), [2, 2], [3, 2])
    found = []
    for gradient in (sparse, tf.convert_to_tensor(sparse)):
        table = keras.Variable(np.ones((3, 2)))
        optimizer = AdamW(0.1)
        optimizer.apply([gradient], [table])
        found.append([np.asarray(v) for v in (table, *optimizer.slot_variables()[0])])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(found[0][1][2], 0.1 * np.array([4, 6]) / np.sqrt(52), rtol=1e-6)


@pytest.mark.parametrize("rule", [AdamW, Lamb])
def test_loss_scale_optimizer(rule):
    initial, all_gradients = weights_and_gradients()
    plain, scaled = ([keras.Variable(value) for value in initial] for _ in range(2))
    alone = rule(WarmupDecay(PEAK, 30, 5))
    wrapped = keras.optimizers.LossScaleOptimizer(rule(WarmupDecay(PEAK, 30, 5)), 2.0**7)
    for gradients in all_gradients[:3]:
        gradients = [tf.constant(g, "float32") for g in gradients]
        alone.apply(gradients, plain)
        wrapped.apply([g * 2.0**7 for g in gradients], scaled)
        wrapped.apply([g * np.inf for g in gradients], scaled)  # is left out, the scale halves
        wrapped.dynamic_scale.assign(2.0**7)
    for a, b in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    config = keras.saving.serialize_keras_object(wrapped)
    again = keras.saving.deserialize_keras_object(config)
    assert type(again.inner_optimizer) is rule


def test_moving_averages_pass_through_to_keras():
    variable = keras.Variable([[1.0]])
    optimizer = AdamW(0.1, use_ema=True, ema_momentum=0.5)
    for _ in range(2):
        optimizer.apply([np.float32([[1.0]])], [variable])
    first, last = 1.0 - 0.1 * 1.01, float(variable[0, 0])
    optimizer.finalize_variable_values([variable])
    assert float(variable[0, 0]) == pytest.approx((first + last) / 2, rel=1e-5)


def test_rate_scales():
    slow, usual, still = variables = [keras.Variable(np.ones((2, 2)), name=n) for n in "abc"]
    optimizer = AdamW(0.1, 0.0, rate_scales={slow.path: 0.25, still.path: 0.0})
    gradients = [np.ones((2, 2), "float32")] * 3
    optimizer.build(variables)
    slots = [[s.value for s in pair] for pair in optimizer.slot_variables()]
    values, _ = optimizer.updated(gradients, [v.value for v in variables], slots, 0, 0.1)
    optimizer.apply(gradients, variables)
    for variable, value, want in zip(variables, values, (0.975, 0.9, 1.0), strict=True):
        np.testing.assert_allclose(variable, np.full((2, 2), want), rtol=1e-5)
        np.testing.assert_allclose(variable, value, rtol=1e-6)
    with pytest.raises(ValueError, match="rate_scales names head/d, which no.*such as a, b, c"):
        AdamW(0.1, rate_scales={slow.path: 1.0, "head/d": 0.5}).build(variables)


def test_layerwise_rate_scales():
    model = classifier(num_layers=3)
    scales = layerwise_rate_scales(model, 0.5)
    assert set(scales) == {w.path for w in model.trainable_weights}
    found = {}
    parts = {"embeddings": 1 / 16, "block_0": 1 / 8, "block_1": 1 / 4, "block_2": 1 / 2}
    for path, factor in scales.items():
        part = next((p for p in (*parts, "pooler", "head") if p in path.split("/")), path)
        found.setdefault(part, set()).add(factor)
    assert found == {part: {f} for part, f in {**parts, "pooler": 1.0, "head": 1.0}.items()}
    AdamW(0.1, rate_scales=scales).build(model.trainable_variables)
    model.backbone.freeze(1)
    left = layerwise_rate_scales(model, 0.5)
    assert set(left) == {w.path for w in model.trainable_weights} < set(scales)
    for decay in (0.0, 1.1):
        with pytest.raises(
            ValueError, match=f"decay={decay}: expected a number above 0 and up to 1"
        ):
            layerwise_rate_scales(model, decay)


@pytest.mark.parametrize("rule", [AdamW, Lamb, Muon])
@pytest.mark.parametrize("rate", [WarmupDecay(0.1, 30, 5, "cosine"), ShareSchedule(0.1, 0.2), 0.5])
def test_optimizers_travel_through_their_config(rule, rate):
    optimizer = rule(
        rate,
        0.2,
        beta_1=0.8,
        beta_2=0.98,
        epsilon=1e-5,
        bias_correction=False,
        global_clipnorm=None,
        clipnorm=2.0,
        rate_scales={"a/kernel": 0.5},
        use_ema=True,
        name="mine",
    )
    config = keras.saving.serialize_keras_object(optimizer)
    assert config["config"]["weight_decay"] == 0.2
    again = keras.saving.deserialize_keras_object(config)
    assert type(again) is rule and again.get_config() == optimizer.get_config()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"beta_1": 1.0}, "beta_1=1.0: expected 0 < beta_1 < 1"),
        ({"weight_decay": -0.1}, "weight_decay=-0.1: expected a number from 0 on"),
        ({"epsilon": float("nan")}, "epsilon=nan"),
        ({"rate_scales": {"a": -1.0}}, r"rate_scales\['a'\]=-1.0"),
        ({"global_clipnorm": 0.0}, "global_clipnorm=0.0: expected a number above 0"),
        ({"global_clipnorm": None, "clipvalue": -1.0}, "clipvalue=-1.0"),
    ],
)
def test_settings_out_of_range(setting, message):
    with pytest.raises(ValueError, match=message):
        AdamW(0.1, **setting)


# === Muon ===

SHAPES = {
    "block_0/query/kernel": (7, 5),
    "block_1/query/kernel": (7, 5),
    "block_0/intermediate/kernel": (5, 7),
    "embeddings/word/embeddings": (11, 5),
    "masked_lm_head/dense/kernel": (5, 5),
    "block_0/query/bias": (5,),
    "block_1/query/bias": (5,),
}


def named_variables():
    rng = np.random.default_rng(3)
    made = []
    for path, shape in SHAPES.items():
        *scopes, name = path.split("/")
        with contextlib.ExitStack() as stack:
            for scope in scopes:
                stack.enter_context(keras.name_scope(scope))
            made.append(keras.Variable(rng.normal(size=shape).astype("float32"), name=name))
    assert [variable.path for variable in made] == [*SHAPES]
    return made


def some_gradients(steps=6):
    rng = np.random.default_rng(4)
    return [[rng.normal(size=s).astype("float32") for s in SHAPES.values()] for _ in range(steps)]


@pytest.mark.one_quick
@pytest.mark.parametrize("way", ["keras", "pure"])
def test_muon_on_matrices_is_that_of_keras_and_adamw_on_the_rest(way):
    """Keras's is another implementation, one matrix at a time."""
    found, by_keras, by_adamw = named_variables(), named_variables(), named_variables()
    muon = Muon(0.02, DECAY, global_clipnorm=None)
    other = keras.optimizers.Muon(0.02, weight_decay=DECAY)
    adamw = AdamW(0.02, DECAY, global_clipnorm=None)
    muon.build(found)
    values = [tf.constant(variable.numpy()) for variable in found]
    slots = [[tf.zeros_like(value)] * 2 for value in values]
    for step, gradients in enumerate(some_gradients()):
        gradients = [tf.constant(gradient) for gradient in gradients]
        if way == "keras":
            muon.apply(gradients, found)
        else:
            values, slots = tf.function(muon.updated)(
                gradients, values, slots, tf.constant(step), tf.constant(0.02)
            )
        other.apply(gradients, by_keras)
        adamw.apply(gradients, by_adamw)
    values = [variable.numpy() for variable in found] if way == "keras" else values
    for i, path in enumerate(SHAPES):
        wanted = by_keras if path.startswith("block") and path.endswith("kernel") else by_adamw
        np.testing.assert_allclose(values[i], wanted[i].numpy(), rtol=0, atol=3e-5, err_msg=path)
    assert np.abs(by_keras[0].numpy() - by_adamw[0].numpy()).max() > 0.01


def test_orthogonalized_matrices_match_float64_and_have_singular_values_near_one():
    rng = np.random.default_rng(0)
    for shape in ((3, 6, 4), (2, 5, 9), (8, 8)):
        x = rng.normal(size=shape)
        found = np.asarray(orthogonalized(tf.constant(x, tf.float32)))
        for matrix, result in zip(
            x.reshape(-1, *shape[-2:]), found.reshape(-1, *shape[-2:]), strict=True
        ):
            u, s, v = np.linalg.svd(matrix, full_matrices=False)
            s = s / np.linalg.norm(s)
            for _ in range(5):  # the polynomial acts on the singular values alone
                s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
            np.testing.assert_allclose(result, u @ np.diag(s) @ v, rtol=0, atol=2e-4)
    singular = np.linalg.svd(
        np.asarray(orthogonalized(tf.constant(rng.normal(size=(4, 9)), tf.float32)))
    )[1]
    assert 0.5 < singular.min() and singular.max() < 1.3
    assert not np.asarray(orthogonalized(tf.zeros((3, 2)))).any()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"momentum": 1.0}, "momentum=1.0: expected a number from 0 to below 1"),
        ({"newton_schulz_steps": 0}, "newton_schulz_steps=0: expected a whole number, 1 or more"),
        ({"rms": 0.0}, "rms=0.0: expected a number above 0"),
    ],
)
def test_settings_of_muon_that_do_not_fit(setting, message):
    with pytest.raises(ValueError, match=message):
        Muon(**setting)


@pytest.mark.thorough
def test_muon_trains_a_model_and_matches_itself_in_one_piece():
    model = classifier()
    model.compile(Muon(1e-2))
    model.optimizer.build(model.trainable_variables)
    chosen = [
        variable.path
        for variable, orthogonal in zip(
            model.trainable_variables, model.optimizer.orthogonal, strict=True
        )
        if orthogonal
    ]
    assert len(chosen) == 2 * 6 + 1  # six kernels a block, and the pooler's
    assert not any("embeddings" in path or "head" in path for path in chosen)
    rng = np.random.default_rng(0)
    tokens = rng.integers(1, 31, (24, 9)).astype("int32")
    x = {"token_ids": tokens, "segment_ids": tokens * 0, "padding_mask": tokens * 0 + 1}
    losses = model.fit(x, tokens[:, 1] % 3, epochs=12, batch_size=8, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]
