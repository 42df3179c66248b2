"""A second `fit` and a second `compile`: what is traced and compiled again, and what is not."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_bert import BertBackbone, BertClassifier
from keras_bert.training import AdamW, WarmupDecay

LENGTH, VOCABULARY = 5, 31


class Counting(BertClassifier):
    """Counts how often its steps are traced."""

    def train_step(self, data):
        self.traced = getattr(self, "traced", 0) + 1
        return super().train_step(data)

    def test_step(self, data):
        self.tested = getattr(self, "tested", 0) + 1
        return super().test_step(data)


class Rates(keras.callbacks.Callback):
    """The rate of each step."""

    def __init__(self):
        super().__init__()
        self.found = []

    def on_train_batch_begin(self, batch, logs=None):
        self.found.append(float(self.model.optimizer.learning_rate))


def rows(count, seed=0):
    rng = np.random.default_rng(seed)
    x = {
        "token_ids": rng.integers(0, VOCABULARY, (count, LENGTH)).astype("int32"),
        "segment_ids": np.zeros((count, LENGTH), "int32"),
        "padding_mask": np.ones((count, LENGTH), "int32"),
    }
    return x, rng.integers(0, 3, count)


def model(**kwargs):
    keras.utils.set_random_seed(3)
    kwargs = {"attention_dropout": 0.0} | kwargs
    backbone = BertBackbone(VOCABULARY, 1, 3, 21, 11, max_sequence_length=13, **kwargs)
    return Counting(backbone, num_classes=3)


def rates_of(made, data, **kwargs):
    seen = Rates()
    made.fit(*data, batch_size=4, verbose=0, callbacks=[seen], **kwargs)
    return seen.found


def expected_rates(peak, steps, warmup):
    """Warm-up and linear decay, in plain Python."""
    up = int(warmup * steps)
    return [peak * ((t + 1) / up if t < up else (steps - t) / (steps - up)) for t in range(steps)]


@pytest.mark.thorough
def test_another_fit_and_another_rate_trace_nothing():
    made = model()
    made.compile(learning_rate=1e-2)
    start = made.get_weights()
    data = rows(12)
    rates_of(made, data, epochs=2, validation_data=rows(8, 1))
    optimizer = made.optimizer
    made.set_weights(start)

    # Another length, another amount of other data.
    found = rates_of(made, rows(40, 2), epochs=3, validation_data=rows(16, 1))
    np.testing.assert_allclose(found, expected_rates(1e-2, 30, 0.1), rtol=1e-5)

    # Another rate and warm-up.
    made.compile(learning_rate=3e-3, warmup=0.5)
    assert int(made.optimizer.iterations) == 0
    made.set_weights(start)
    found = rates_of(made, data, epochs=2)
    np.testing.assert_allclose(found, expected_rates(3e-3, 6, 0.5), rtol=1e-5)
    assert made.traced == made.tested == 1 and made.optimizer is optimizer
    settings = made.get_compile_config()["optimizer"]["task_settings"]
    assert (settings["learning_rate"], settings["warmup"]) == (3e-3, 0.5)

    # As a new model, which never knew other rates.
    fresh = model(hidden_dropout=0.0, attention_dropout=0.0)
    kept = model(hidden_dropout=0.0, attention_dropout=0.0)
    kept.head_dropout.rate = fresh.head_dropout.rate = 0.0
    kept.compile(learning_rate=1e-2)
    start = kept.get_weights()
    rates_of(kept, rows(40, 2), epochs=1)
    kept.compile(learning_rate=3e-3, warmup=0.5)
    kept.set_weights(start)
    fresh.compile(learning_rate=3e-3, warmup=0.5)
    losses = [
        m.fit(*data, batch_size=4, epochs=2, verbose=0).history["loss"] for m in (kept, fresh)
    ]
    assert losses[0] == losses[1] and kept.traced == 1
    for ours, theirs in zip(kept.get_weights(), fresh.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.thorough
def test_a_change_of_the_network_or_another_setting_is_heeded():
    made, data = model(), rows(8)

    def traced(**settings):
        made.compile(**{"learning_rate": 1e-2} | settings)
        made.fit(*data, batch_size=4, verbose=0)
        return made.traced

    assert traced() == 1
    made.backbone.blocks[0].attention_drop.rate = 0.4
    assert traced() == 2
    assert traced(weight_decay=0.0) == 3
    assert traced(weight_decay=0.0, metrics=None) == 4
    assert traced(weight_decay=0.0, metrics=None, learning_rate=1e-3) == 4
    made.backbone.freeze()
    assert traced(weight_decay=0.0, metrics=None, learning_rate=1e-3) == 5
    before = made.backbone.get_weights()
    assert traced(weight_decay=0.0, metrics=None) == 5
    for ours, theirs in zip(made.backbone.get_weights(), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_a_loss_scale_starts_over():
    made, data = model(dtype="mixed_float16"), rows(8)
    made.compile(learning_rate=1e-2)
    made.fit(*data, batch_size=4, verbose=0)
    first = float(made.optimizer.initial_scale)
    made.optimizer.dynamic_scale.assign(8.0)
    made.fit(*data, batch_size=4, epochs=2, verbose=0)
    assert float(made.optimizer.dynamic_scale) == first and made.traced == 1
    assert int(made.optimizer.inner_optimizer.iterations) == 4


def test_an_adjusted_schedule_reaches_a_traced_function():
    import tensorflow as tf

    schedule = WarmupDecay(2.0, None)
    schedule.make_adjustable()
    optimizer = AdamW(schedule)
    read = tf.function(lambda: tf.convert_to_tensor(optimizer.learning_rate))
    assert float(read()) == 2.0
    schedule.adjust(WarmupDecay(3.0, 8, 3))
    assert float(read()) == pytest.approx(1.0)
    assert read.experimental_get_tracing_count() == 1
    assert schedule.get_config() == WarmupDecay(3.0, 8, 3).get_config()


PROGRAM = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from test_second_fit import model, rows
def modules():
    return len(list(pathlib.Path(sys.argv[2]).glob("*before_optimizations.txt")))
made = model()
made.compile(learning_rate=1e-2, jit_compile=True)
made.fit(*rows(12), batch_size=4, epochs=2, verbose=0)
first = modules()
made.fit(*rows(40, 2), batch_size=4, epochs=3, verbose=0)
made.compile(learning_rate=3e-3, warmup=0.5, jit_compile=True)
made.fit(*rows(12), batch_size=4, epochs=1, verbose=0)
print(first, modules())
"""


@pytest.mark.thorough
def test_xla_compiles_nothing_for_another_fit(tmp_path):
    """Counted by the programs that XLA writes down as it compiles them."""
    environment = os.environ | {"XLA_FLAGS": f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_text"}
    command = [sys.executable, "-c", PROGRAM, os.path.dirname(__file__), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    first, last = map(int, done.stdout.split())
    assert first == last > 0
