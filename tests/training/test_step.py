"""The train step beside what stands in test_replicas.py: weights, memory, fallbacks, errors."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertClassifier
from keras_bert.training import AdamW, Resume

ROWS, LENGTH, VOCABULARY = 8, 5, 31


def ids(rows=ROWS):
    rng = np.random.default_rng(0)
    x = {
        "token_ids": rng.integers(0, VOCABULARY, (rows, LENGTH)).astype("int32"),
        "segment_ids": np.zeros((rows, LENGTH), "int32"),
        "padding_mask": np.ones((rows, LENGTH), "int32"),
    }
    return x, rng.integers(0, 3, rows)


def model(dropout=0.0, **kwargs):
    keras.utils.set_random_seed(3)
    backbone = BertBackbone(
        VOCABULARY,
        1,
        3,
        21,
        11,
        max_sequence_length=13,
        hidden_dropout=dropout,
        attention_dropout=dropout,
        **kwargs,
    )
    return BertClassifier(backbone, num_classes=3, dropout=dropout)


class Around(keras.Model):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def call(self, x, training=None):
        return self.inner(x, training=training)


def trained(made, **kwargs):
    made.compile(learning_rate=1e-2, **kwargs)
    made.fit(*ids(), batch_size=4, epochs=2, verbose=0)
    return made.get_weights()


@pytest.mark.parametrize("dropout", [pytest.param(0.0, marks=pytest.mark.slow), 0.3])
@pytest.mark.slow
def test_recomputation_changes_no_update(dropout):
    plain = trained(model(dropout))
    recomputed = trained(model(dropout, gradient_checkpointing=True))
    start = model(dropout).get_weights()
    for ours, theirs, before in zip(recomputed, plain, start, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
        if ours.ndim > 1:
            assert np.abs(ours - before).max() > 1e-4  # no weight without a gradient


@pytest.mark.thorough
def test_weight_zero_rows_change_nothing_even_if_their_loss_is_not_finite():
    x, y = ids()
    weights = np.ones(ROWS, "float32")
    weights[5:] = 0
    made = model()
    made.compile(keras.optimizers.SGD(0.1))
    made.fit(x, y, sample_weight=weights, batch_size=ROWS, verbose=0)
    fewer = model()
    fewer.compile(keras.optimizers.SGD(0.1))
    fewer.fit({k: v[:5] for k, v in x.items()}, y[:5], batch_size=5, verbose=0)
    for ours, theirs in zip(made.get_weights(), fewer.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


def test_batch_without_any_weight_changes_nothing():
    x, y = ids()
    made = model()
    made.compile(keras.optimizers.SGD(0.1))
    before = made.get_weights()
    history = made.fit(x, y, sample_weight=np.zeros(ROWS), batch_size=ROWS, verbose=0)
    assert history.history["loss"] == [0.0]
    for ours, theirs in zip(made.get_weights(), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_float16_overflow_skips_the_step_and_the_schedule():
    made = model(dtype="mixed_float16")
    made.compile(AdamW(1e-3))
    made.fit(*ids(), batch_size=4, steps=6, verbose=0)
    optimizer = made.optimizer
    assert isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    made_updates, scale = int(optimizer.iterations), float(optimizer.dynamic_scale)
    before = made.get_weights()

    class Overflow(keras.callbacks.Callback):
        """The loss is scaled beyond all numbers in the first of two steps."""

        def on_train_batch_begin(self, batch, logs=None):
            if batch == 0:
                optimizer.dynamic_scale.assign(np.inf)
                self.before = self.model.get_weights()
            else:
                self.after = self.model.get_weights()
                self.updates = int(optimizer.iterations)
                optimizer.dynamic_scale.assign(scale)

    overflow = Overflow()
    keras.Model.fit(
        made,
        made.source(*ids(), batch_size=4).one_pass(),
        shuffle=False,
        verbose=0,
        callbacks=[overflow],
    )
    for ours, theirs in zip(overflow.before, overflow.after, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert overflow.updates == made_updates
    assert int(optimizer.iterations) == made_updates + 1  # the second step, counted once
    assert any((a != b).any() for a, b in zip(made.get_weights(), before, strict=True))


@pytest.mark.thorough
def test_loss_scale_halves_and_doubles():
    made = model(dtype="mixed_float16")
    inner = AdamW(1e-3)
    made.compile(keras.optimizers.LossScaleOptimizer(inner, 1024.0, dynamic_growth_steps=2))
    made.fit(*ids(), batch_size=4, steps=4, verbose=0)
    assert float(made.optimizer.dynamic_scale) == 4096.0
    made.optimizer.dynamic_scale.assign(2.0**40)  # float16 ends at 65,504
    made.fit(*ids(), batch_size=4, steps=1, verbose=0)
    assert float(made.optimizer.dynamic_scale) == 2.0**39
    assert int(inner.iterations) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: keras.optimizers.SGD(0.1, momentum=0.9),  # Keras squares sparse rows in Adam
        pytest.param(lambda: AdamW(1e-2, use_ema=True, ema_momentum=0.5), marks=pytest.mark.slow),
        pytest.param(lambda: AdamW(1e-2, gradient_accumulation_steps=2), marks=pytest.mark.slow),
    ],
)
def test_optimizers_in_keras_own_way(optimizer):
    """The weights are those of Keras's own step with the same optimizer."""
    ours, theirs = model(), model()
    x, y = ids()
    ours.compile(optimizer())
    ours.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    peer = Around(theirs)  # has Keras's own step
    peer.compile(optimizer(), loss, jit_compile=False)
    rows = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
    peer.fit(rows, epochs=2, shuffle=False, verbose=0)
    for a, b in zip(ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_regularization_losses_count_once():
    def regularized():
        made = model()
        made.head.kernel.regularizer = keras.regularizers.L2(0.5)
        return made

    whole, parts = regularized(), regularized()
    for made, accumulation in ((whole, 1), (parts, 2)):
        made.compile(keras.optimizers.SGD(0.1), accumulation_steps=accumulation)
        made.fit(*ids(), batch_size=4, verbose=0)
    plain = model()
    plain.compile(keras.optimizers.SGD(0.1))
    plain.fit(*ids(), batch_size=4, verbose=0)
    kernels = [np.asarray(m.head.kernel) for m in (whole, parts, plain)]
    np.testing.assert_allclose(kernels[0], kernels[1], rtol=0, atol=1e-6)
    assert np.abs(kernels[0] - kernels[2]).max() > 1e-4


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("settings", "fit", "message"),
    [
        ({"accumulation_steps": 3}, {"batch_size": 4}, "batch_size=4.*expected a multiple of 3"),
        ({"accumulation_steps": 0}, {}, "accumulation_steps=0"),
        ({}, {"steps": 3, "epochs": 2}, "steps=3 and epochs=2"),
        ({}, {"examples": 3, "steps": 2}, "exactly one"),
        ({"bogus": 1}, {}, "bogus"),
        ({}, {"bogus": 1}, "bogus"),
        ({"decay": "square"}, {}, "decay='square'"),
        ({"loss": {"logits": "mse"}}, {}, "logits"),
    ],
)
def test_wrong_settings_are_named_before_training(settings, fit, message):
    made = model()
    before = made.get_weights()
    with pytest.raises((ValueError, TypeError), match=message):
        made.compile(**settings)
        made.fit(*ids(), verbose=0, **fit)
    for ours, theirs in zip(made.get_weights(), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_durations_make_so_many_updates():
    made = model()
    made.compile(learning_rate=1e-2)
    for duration, updates in (
        ({"steps": 5}, 5),
        ({"examples": 9}, 3),
        ({"epochs": 1.5}, 3),
        ({}, 2),
    ):
        made.fit(*ids(), batch_size=4, verbose=0, **duration)
        assert int(made.optimizer.iterations) == updates
        schedule = made.optimizer.get_config()["learning_rate"]["config"]
        assert schedule["total_steps"] == updates


@pytest.mark.slow
def test_changing_what_is_trained_traces_the_step_anew():
    made = model()
    made.compile(learning_rate=1e-2)
    made.fit(*ids(), batch_size=4, verbose=0)
    made.backbone.freeze(1)
    before = [np.asarray(w) for w in made.backbone.blocks[0].weights]
    made.compile(learning_rate=1e-2)
    made.fit(*ids(), batch_size=4, verbose=0)
    for ours, theirs in zip(made.backbone.blocks[0].weights, before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.thorough
def test_a_subclass_may_override_train_step():
    class Own(BertClassifier):
        def train_step(self, data):
            logs = super().train_step(data)
            return logs | {"twice": 2 * logs["loss"]}

    plain, own = model(), Own(model().backbone, num_classes=3, dropout=0.0)
    own.set_weights(plain.get_weights())
    for made in (plain, own):
        made.compile(learning_rate=1e-2)
    expected = plain.fit(*ids(), batch_size=ROWS, epochs=2, verbose=0).history
    history = own.fit(*ids(), batch_size=ROWS, epochs=2, verbose=0).history
    assert history["loss"] == expected["loss"]
    assert history["twice"] == [2 * loss for loss in expected["loss"]]
    for a, b in zip(plain.get_weights(), own.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_train_on_batch_and_eager_steps():
    made, eager = model(), model()
    x, y = ids()
    made.compile(AdamW(1e-2))
    eager.compile(AdamW(1e-2), run_eagerly=True)
    for each in (made, eager):
        each.train_on_batch(x, y)
    for ours, theirs in zip(made.get_weights(), eager.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.one_quick
@pytest.mark.parametrize("optimizer", [None, "sgd"])
@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_batch_that_never_came_is_not_counted(optimizer, jit):
    """Of a dataset that does not know its end, with batches of a fixed size and no weights."""
    x, y = ids()
    rows = tf.data.Dataset.from_tensor_slices((x, y)).batch(4, drop_remainder=True)
    unknown, made = rows.filter(lambda x, y: True), model()
    made.compile(AdamW(1e-2) if optimizer is None else optimizer, jit_compile=jit)
    before = made.evaluate(rows, verbose=0, return_dict=True)
    assert made.evaluate(unknown, verbose=0, return_dict=True) == pytest.approx(before, rel=1e-6)
    made.fit(unknown, epochs=2, verbose=0)
    steps = 2 * (len(y) // 4)
    assert int(made.optimizer.iterations) == made.counters.read()["steps"] == steps


@pytest.mark.slow
def test_all_steps_follow_a_new_number_of_steps_an_execution():
    x, y = ids()
    made = model()
    made.compile(learning_rate=1e-2, steps_per_execution=4)
    few = {name: value[:5] for name, value in x.items()}
    made.fit(few, y[:5], batch_size=1, validation_data=(few, y[:5]), verbose=0)  # by ones
    assert made.predict(few, batch_size=1, verbose=0).shape[0] == 5
    count = 4 * (len(y) // 4)
    many = {name: value[:count] for name, value in x.items()}
    made.fit(many, y[:count], batch_size=1, validation_data=(many, y[:count]), verbose=0)
    assert made.predict(many, batch_size=1, verbose=0).shape[0] == count


@pytest.mark.slow
def test_executions_of_several_steps_end_with_the_epochs(caplog):
    made, single = model(), model()
    made.compile(learning_rate=1e-2, steps_per_execution=4)
    single.compile(learning_rate=1e-2)
    for each in (made, single):
        each.fit(*ids(), batch_size=1, epochs=2, steps_per_epoch=6, verbose=0)
        assert int(each.optimizer.iterations) == 12 and each.run.done == 12
    assert "steps_per_execution=4 does not divide the 6 steps of an epoch: using 3" in caplog.text
    for ours, theirs in zip(made.get_weights(), single.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_a_stop_in_the_first_epoch_after_a_resume_is_kept(tmp_path):
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = True

    made = model()
    made.compile(AdamW(1e-2))
    made.fit(*ids(), batch_size=1, steps=3, callbacks=[Resume(tmp_path, 1)], verbose=0)
    again = model()
    again.compile(AdamW(1e-2))
    again.fit(*ids(), batch_size=1, epochs=3, callbacks=[Resume(tmp_path, 1), Stop()], verbose=0)
    assert again.run.done == 4
