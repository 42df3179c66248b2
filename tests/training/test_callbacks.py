"""The callbacks in runs of a tiny model: what they report, save, restore and stop."""

import json
import logging
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertClassifier, BertPretrainer
from keras_bert.training import (
    AdamW,
    JsonLines,
    Resume,
    ShareSchedule,
    StopOnNaN,
    Throughput,
    TimeBudget,
    budget,
    strategy,
    throughput,
    training_flops,
)
from keras_bert.training.callbacks import BestWeights

ROOT = Path(__file__).resolve().parents[2]
ROWS, BATCH, STEPS, T = 22, 4, 6, 5  # the last of the 6 batches has 2 rows


def tiny_model(optimizer="auto"):
    keras.utils.set_random_seed(1)
    backbone = BertBackbone(31, 1, 3, 21, 11, 13, hidden_dropout=0.0, attention_dropout=0.0)
    model = BertClassifier(backbone, num_classes=3)
    model.compile(optimizer, learning_rate=1e-2)
    return model


def rows(seed=0):
    rng = np.random.default_rng(seed)
    x = {
        "token_ids": rng.integers(0, 31, (ROWS, T)),
        "segment_ids": np.zeros((ROWS, T), "int32"),
        "padding_mask": (np.arange(T) < rng.integers(1, T + 1, ROWS)[:, None]).astype("int32"),
    }
    return x, rng.integers(0, 3, ROWS)


def fit(model, *callbacks, epochs=2, data=None, **kwargs):
    x, y = data or rows()
    settings = {"batch_size": BATCH, "epochs": epochs, "verbose": 0, **kwargs}
    return model.fit(x, y, callbacks=list(callbacks), **settings).history


class Do(keras.callbacks.Callback):
    """Calls functions of the number of steps made."""

    def __init__(self, begin=None, step=None, epoch=None):
        super().__init__()
        self.begin, self.step, self.epoch = begin, step, epoch

    def on_train_begin(self, logs=None):
        if self.begin:
            self.begin()

    def after_step(self, logs):
        if self.step:
            self.step(self.model.run.done)

    def on_epoch_end(self, epoch, logs=None):
        if self.epoch:
            self.epoch(logs)


def interrupt_at(step):
    def stop(done):
        if done == step:
            raise KeyboardInterrupt

    return Do(step=stop)


# === StopOnNaN ===


def order_of_pass(number, seed=0):
    """The order of the rows, by what `RowSource` promises."""
    pair = tf.constant([seed, number], tf.int64)
    return tf.random.experimental.stateless_shuffle(tf.range(ROWS), seed=pair).numpy()


def weights_with_bad_row(place):
    """Weights whose sum makes the loss of the batch at some place of the first pass NaN."""
    weights = np.linspace(0.5, 1.5, ROWS).astype("float32")
    first = place - place % BATCH
    weights[order_of_pass(0)[first : first + BATCH]] = 3e38  # two of them are infinite
    return weights


def assert_holds_batch(path, step, weights):
    x, y = rows()
    batch = order_of_pass(0)[step * BATCH : (step + 1) * BATCH]
    with np.load(path) as found:
        assert sorted(found) == ["sample_weight", *(f"x.{name}" for name in sorted(x)), "y"]
        for name, value in x.items():
            np.testing.assert_array_equal(found[f"x.{name}"], value[batch])
        np.testing.assert_array_equal(found["y"], y[batch])
        np.testing.assert_array_equal(found["sample_weight"], weights[batch])
        assert (found["sample_weight"] > 1e38).any()


@pytest.mark.thorough
def test_nan_stops_and_saves_its_batch(tmp_path, caplog):
    model = tiny_model()
    start = model.get_weights()
    weights = weights_with_bad_row(2 * BATCH + 1)
    stop = StopOnNaN(tmp_path / "bad", every_steps=4)
    fit(model, stop, sample_weight=weights)
    assert stop.bad_step == 2 and model.run.done == 4
    assert_holds_batch(tmp_path / "bad" / "bad-step-2.npz", 2, weights)
    assert [p.name for p in (tmp_path / "bad").iterdir()] == ["bad-step-2.npz"]
    assert "not finite at step 2" in caplog.text and "bad-step-2.npz" in caplog.text

    # A look at the end of the epoch, and a good run after it, with the same model.
    model.set_weights(start)
    late = StopOnNaN(tmp_path / "late", every_steps=100)
    fit(model, late, sample_weight=weights)
    assert late.bad_step == 2 and model.run.done == STEPS
    model.set_weights(start)
    fit(model, late, sample_weight=np.ones(ROWS))
    assert late.bad_step is None and model.run.done == 2 * STEPS


@pytest.mark.slow
def test_nan_in_a_resumed_run(tmp_path):
    weights = weights_with_bad_row(4 * BATCH)
    callbacks = [StopOnNaN(tmp_path / "bad", 1), Resume(tmp_path / "run", 2)]
    with pytest.raises(KeyboardInterrupt):
        fit(tiny_model(), *callbacks, interrupt_at(3), sample_weight=weights)
    stop = StopOnNaN(tmp_path / "bad", every_steps=5)
    model = tiny_model()
    fit(model, Resume(tmp_path / "run", 100), stop, sample_weight=weights)
    assert stop.bad_step == 4 and model.run.done == 5
    assert_holds_batch(tmp_path / "bad" / "bad-step-4.npz", 4, weights)


# === TimeBudget ===


class Clock:
    """A clock that goes on by so many seconds a step; put its callback before what it times."""

    def __init__(self, seconds):
        self.now, self.seconds = 1000.0, seconds
        self.callback = Do(step=self)

    def __call__(self, done=None):
        if done is None:
            return self.now
        self.now += self.seconds


@pytest.mark.thorough
@pytest.mark.usefixtures("eager")
def test_time_budget_stops_and_drives_the_schedule(tmp_path, monkeypatch):
    clock = Clock(10)
    monkeypatch.setattr(budget, "monotonic", clock)
    schedule = ShareSchedule(1e-2, warmup=0.5)
    model = tiny_model(AdamW(schedule))
    shares, rates = [], []

    def record(done=None):
        shares.append(float(schedule.share))
        rates.append(float(model.optimizer.learning_rate))

    time = TimeBudget(45, schedule)
    fit(model, clock.callback, time, Do(record, record))
    assert model.run.done == 5 and time.elapsed() == 50
    # Without the first step, of 10 s: compilation takes nothing of the warm-up.
    np.testing.assert_allclose(shares, [0, 0, 10 / 35, 20 / 35, 30 / 35, 1], rtol=1e-6)
    want = [1e-5, 1e-5, 1e-2 * 20 / 35, 1e-2 * 30 / 35, 1e-2 * 10 / 35, 0]
    np.testing.assert_allclose(rates, want, rtol=1e-5)

    # A second fit has a budget of its own; stopped and resumed, it has what is left.
    with pytest.raises(KeyboardInterrupt):
        fit(model, clock.callback, time, Resume(tmp_path, 2), interrupt_at(3))
    clock.now += 1e6
    shares.clear()
    again = TimeBudget(45, schedule)
    fit(model, clock.callback, again, Resume(tmp_path, 100), Do(record, record))
    assert model.run.done == 2 + 3 and again.elapsed() == 50
    np.testing.assert_allclose(shares, [10 / 35, 20 / 35, 30 / 35, 1], rtol=1e-6)

    other = ShareSchedule(1e-2, warmup=0.5)
    with pytest.raises(ValueError, match="does not run by the schedule.*rate is 0, expected 0.01"):
        fit(model, TimeBudget(45, other))


@pytest.mark.thorough
def test_time_budget_drives_a_schedule_made_under_one_device(monkeypatch):
    clock = Clock(10)
    monkeypatch.setattr(budget, "monotonic", clock)
    with strategy("one").scope():
        schedule = ShareSchedule(1e-2, warmup=0.5)
        optimizer = AdamW(schedule)
        model = tiny_model(optimizer)
    assert model.optimizer is optimizer
    rates = []
    time = TimeBudget(45, schedule)
    fit(
        model, clock.callback, time, Do(step=lambda _: rates.append(float(optimizer.learning_rate)))
    )
    want = [1e-5, 1e-2 * 20 / 35, 1e-2 * 30 / 35, 1e-2 * 10 / 35, 0]
    np.testing.assert_allclose(rates, want, rtol=1e-5)


# === Throughput ===


@pytest.mark.slow
def test_throughput(monkeypatch):
    clock = Clock(0.5)
    monkeypatch.setattr(throughput, "perf_counter", clock)
    x, y = rows()
    weights = np.ones(ROWS, "float32")
    weights[[1, 9, 13]] = 0
    reports = []

    class Validation(keras.callbacks.Callback):
        def on_test_end(self, logs=None):
            clock.now += 100

    model = tiny_model()
    speed = Throughput(every_steps=4, peak_flops=1e9, log=reports.append)
    history = fit(
        model,
        clock.callback,
        speed,
        Validation(),
        data=(x, y),
        sample_weight=weights,
        shuffle=False,
        validation_data=(x, y),
    )
    # The first step is left out of the first epoch.
    for epoch, first in enumerate((1, 0)):
        part = slice(first * BATCH, ROWS)
        seconds = 0.5 * (STEPS - first)
        real = weights[part] != 0
        tokens = x["padding_mask"][part][real].sum()
        slots = T * (ROWS - first * BATCH)
        found = {name: values[epoch] for name, values in history.items()}
        assert found["sequences_per_second"] == pytest.approx(real.sum() / seconds)
        assert found["tokens_per_second"] == pytest.approx(tokens / seconds)
        assert found["padding_share"] == pytest.approx(1 - tokens / slots)
        assert found["step_ms"] == pytest.approx(500)
        flops = training_flops(model, real.sum(), slots) / seconds
        assert found["model_tflops"] == pytest.approx(flops / 1e12)
        assert found["mfu"] == pytest.approx(flops / 1e9)
    assert [report["step"] for report in reports] == [4, 8, 12]
    # Steps 1 to 3; steps 6 and 7 of the next epoch.
    assert reports[0]["sequences_per_second"] == (3 * BATCH - 2) / 1.5
    assert reports[1]["sequences_per_second"] == (2 * BATCH - 1) / 1.0

    # No GPU, no peak; a frozen part, no count of operations; one step, no rates.
    history = fit(model, clock.callback, Throughput(), data=(x, y), sample_weight=weights)
    assert "model_tflops" in history and "mfu" not in history
    model.backbone.freeze(1)
    model.compile(optimizer="sgd")
    history = fit(model, clock.callback, Throughput(), data=(x, y), sample_weight=weights)
    assert "model_tflops" not in history and len(history["sequences_per_second"]) == 2
    history = fit(model, Throughput(), data=(x, y), sample_weight=weights, epochs=None, steps=1)
    assert set(history) == {"loss", "accuracy"}


@pytest.mark.parametrize("blocks", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_flops_of_bert_base_by_hand(blocks):
    backbone = BertBackbone.from_size("base", vocabulary_size=31, num_layers=blocks)
    model = BertClassifier(backbone, num_classes=2)
    # 84,934,656 in twelve blocks; with biases and normalizations they are 85,054,464.
    weights = blocks * (4 * 768 * 768 + 2 * 768 * 3072)
    row = 768 * 768 + 768 * 2
    length = 128
    forward = 2 * length * weights + 2 * row  # two operations for a weight
    forward += blocks * 2 * (2 * length * length * 768)  # scores, and products with the values
    assert training_flops(model, 1, length) == 3 * forward
    assert training_flops(model, 32, 32 * length) == 32 * 3 * forward
    if blocks == 12:
        assert 3 * forward == 67_045_303_296


@pytest.mark.thorough
def test_flops_of_a_pretrainer_by_hand():
    model = BertPretrainer(BertBackbone(31, 2, 3, 21, 11, max_sequence_length=13))
    blocks = 2 * (4 * 21 * 21 + 2 * 21 * 11)
    row = 21 * 21 + 21 * 2
    masked = 21 * 21 + 31 * 21
    length, positions, batch = 7, 3, 5
    forward = 2 * (length * blocks + row + positions * masked) + 2 * 4 * length * length * 21
    found = training_flops(model, batch, batch * length, batch * positions)
    assert found == pytest.approx(batch * 3 * forward)

    data = {"token_ids": np.ones((batch, length), "int32")}
    data |= {name: data["token_ids"] for name in ("segment_ids", "padding_mask")}
    data["mask_positions"] = np.ones((batch, positions), "int32")
    data |= {"mask_ids": data["mask_positions"], "mask_weights": np.ones((batch, positions))}
    data["mask_weights"] = data["mask_weights"].astype("float32")
    data["next_sentence_labels"] = np.ones(batch, "int32")
    model.fit(tf.data.Dataset.from_tensors(data), verbose=0)
    assert throughput._masked_positions(model) == positions
    assert throughput._masked_positions(tiny_model()) == 0


# === JsonLines ===


@pytest.mark.thorough
@pytest.mark.usefixtures("eager")
def test_json_lines(tmp_path):
    path = tmp_path / "new" / "log.jsonl"

    def read():
        def refuse(name):
            raise AssertionError(f"{name} is not JSON")

        return [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]

    model = tiny_model()
    bad = Do(epoch=lambda logs: logs.update(a=math.nan, b=-math.inf, c=np.float32(0.5)))
    log = JsonLines(path, every_steps=4)
    history = fit(model, bad, log)
    lines = read()
    assert [line["step"] for line in lines] == [4, 6, 8, 12, 12]
    assert [line.get("epoch") for line in lines] == [None, 0, None, None, 1]
    ends = [line for line in lines if "epoch" in line]
    for line, loss, accuracy in zip(ends, history["loss"], history["accuracy"], strict=True):
        assert (line["loss"], line["accuracy"]) == (loss, accuracy)
        assert (line["a"], line["b"], line["c"]) == (None, None, 0.5)
    assert all(line["loss"] > 0 and line["time"] > 1e9 for line in lines)
    log.write({"step": 12, "mfu": 0.5})
    fit(model, JsonLines(path), epochs=1)
    assert [line["step"] for line in read()] == [4, 6, 8, 12, 12, 12, 6]


# === All of them ===

ON_TWO_DEVICES = """
import sys
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
sys.path.insert(0, sys.argv[1])
import test_callbacks as t
from keras_bert import training

strategy = training.strategy("mirrored", devices=["CPU:0", "CPU:1"])
clock = t.Clock(10)
t.budget.monotonic = clock
schedule = training.ShareSchedule(1e-2, warmup=0.5)  # made outside of the strategy
with strategy.scope():
    model = t.tiny_model(training.AdamW(schedule))
read = tf.function(lambda: tf.convert_to_tensor(model.optimizer.learning_rate))
rates = []


def record(done):
    found = strategy.experimental_local_results(strategy.run(read))
    rates.append([float(rate) for rate in found])


speed = training.Throughput()
history = t.fit(
    model,
    clock.callback,
    training.TimeBudget(75, schedule),
    speed,
    t.Do(step=record),
)
assert model.run.done == 8
assert int(t.keras.ops.convert_to_numpy(model.optimizer.iterations)) == 8
want = [1e-2 * min(1, max(1e-3, 2 * s), 2 - 2 * s) for s in (min(1, 10 * i / 65) for i in range(8))]
t.np.testing.assert_allclose(rates, [[rate] * 2 for rate in want], rtol=1e-5, atol=1e-9)
assert abs(speed._counters.read()["rows"] - 22 - 8) < 1, speed._counters.read()
assert len(history["sequences_per_second"]) == 2

weights = t.weights_with_bad_row(9)
stop = training.StopOnNaN(sys.argv[2], every_steps=3)
t.fit(model, stop, sample_weight=weights)
t.assert_holds_batch(sys.argv[2] + "/bad-step-2.npz", 2, weights)
print("passed")
"""


@pytest.mark.slow
def test_on_two_devices(tmp_path):
    process = subprocess.run(
        [sys.executable, "-c", ON_TWO_DEVICES, str(Path(__file__).parent), str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=3600,
    )
    assert process.returncode == 0 and process.stdout.endswith("passed\n"), process.stdout[-4000:]


@pytest.mark.parametrize("make", [Throughput, lambda: StopOnNaN("bad")])
def test_a_step_that_does_not_count_is_refused(make):
    callback = make()
    callback.set_model(SimpleNamespace())
    with pytest.raises(ValueError, match="reads the counters.*TensorFlow backend"):
        callback.on_train_begin()


def test_several_workers_have_several_clocks():
    callback = TimeBudget(1)
    extended = SimpleNamespace(_num_workers=2)
    callback.set_model(SimpleNamespace(distribute_strategy=SimpleNamespace(extended=extended)))
    with pytest.raises(ValueError, match="several worker processes"):
        callback.on_train_begin()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Throughput(every_steps=0), "every_steps=0"),
        (lambda: Throughput(peak_flops=-1.0), "peak_flops=-1.0"),
        (lambda: StopOnNaN("bad", every_steps=-3), "every_steps=-3"),
        (lambda: TimeBudget(0), "seconds=0"),
        (lambda: TimeBudget(math.nan), "seconds=nan"),
        (lambda: JsonLines("log", every_steps=0), "every_steps=0"),
    ],
)
def test_wrong_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_rates_are_logged_as_a_line(caplog):
    with caplog.at_level(logging.INFO, "keras_bert"):
        throughput._log_line({"step": 5, "step_ms": 12.34567})
    assert "step 5, step_ms 12.346" in caplog.text


def test_a_run_that_goes_on_remembers_the_best_epoch(tmp_path):
    path = tmp_path / "best.weights.h5"
    first = BestWeights(path, "val_accuracy")
    first.set_model(tiny_model())
    first.on_epoch_end(0, {"val_accuracy": 0.9})
    assert path.is_file()
    path.unlink()
    again = BestWeights(path, "val_accuracy")
    again.set_state(json.loads(json.dumps(first.get_state())))
    again.set_model(tiny_model())
    again.on_epoch_end(1, {"val_accuracy": 0.8})
    assert not path.exists()
    again.on_epoch_end(2, {"val_accuracy": 0.95})
    assert path.is_file()
