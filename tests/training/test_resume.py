"""A run that is stopped at any step and started again ends as an unbroken one, to the bit."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertClassifier, BertClassifierPreprocessor, BertTokenizer
from keras_bert.training import Resume

ROOT = Path(__file__).resolve().parents[2]
PRESET = ROOT / "tests" / "golden" / "tiny_one_block"
STEPS = 24  # 3 epochs of 8


def train(out, *arguments):
    """Runs train_and_resume.py; gives the exit status and what it printed."""
    process = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("train_and_resume.py")), str(PRESET)]
        + [str(out), *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=3600,
    )
    return process.returncode, process.stdout


def finished(out, *arguments):
    status, output = train(out, *arguments)
    assert status == 0, output[-4000:]
    with np.load(out) as arrays:
        return dict(arrays)


def assert_same_bits(a, b):
    assert int(a["updates"]) == int(b["updates"]) == STEPS
    for name in a:
        if name.startswith("weight"):
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)
    # The last epoch's loss too: its metrics were saved half-way.
    assert a["losses"][-1] == b["losses"][-1]


def kill_and_compare(tmp_path, kills):
    unbroken = finished(tmp_path / "unbroken.npz")
    for step in kills:
        status, output = train(
            tmp_path / "never.npz", "--checkpoints", tmp_path / "run", "--kill_at", step
        )
        assert status == -signal.SIGKILL, output[-4000:]
    assert not (tmp_path / "never.npz").exists()
    assert_same_bits(finished(tmp_path / "broken.npz", "--checkpoints", tmp_path / "run"), unbroken)


@pytest.mark.slow
def test_killed_in_an_epoch_and_resumed(tmp_path):
    kill_and_compare(tmp_path, [13])


@pytest.mark.slow
def test_killed_at_five_random_steps_and_resumed(tmp_path):
    steps = sorted(np.random.default_rng(7).choice(np.arange(1, STEPS), 5, replace=False))
    print("killed after steps", steps)
    kill_and_compare(tmp_path, steps)


@pytest.mark.slow
def test_sigterm_saves_the_step_and_exits(tmp_path):
    folder = tmp_path / "run"
    status, output = train(tmp_path / "out.npz", "--checkpoints", folder, "--terminate_at", 5)
    assert status == 143, output[-4000:]
    assert "SIGTERM: saved step" in output
    newest = max(p.name for p in folder.iterdir())
    assert newest in ("step-000000005", "step-000000006")
    assert json.loads((folder / newest / "state.json").read_text())["done"] == int(newest[-3:])


# === In this process ===

ROWS = 22


def tiny_model(units=11):
    keras.utils.set_random_seed(1)
    backbone = BertBackbone(31, 1, 3, 21, units, max_sequence_length=13)
    model = BertClassifier(backbone, num_classes=3)
    model.compile(learning_rate=1e-2)
    return model


def ids(seed=0):
    rng = np.random.default_rng(seed)
    x = {
        "token_ids": rng.integers(0, 31, (ROWS, 5)),
        "segment_ids": np.zeros((ROWS, 5), "int32"),
        "padding_mask": np.ones((ROWS, 5), "int32"),
    }
    return x, rng.integers(0, 3, ROWS)


class StopAt(keras.callbacks.Callback):
    def __init__(self, step):
        super().__init__()
        self.step = step

    def on_train_batch_end(self, batch, logs=None):
        if self.model.run.done == self.step:
            raise KeyboardInterrupt


def stopped(model, folder, step, data, every=2, **kwargs):
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data, callbacks=[Resume(folder, every), StopAt(step)], verbose=0, **kwargs)


def resumed(model, folder, data, **kwargs):
    model.fit(*data, callbacks=[Resume(folder, 2)], verbose=0, **kwargs)
    return model.get_weights()


@pytest.mark.slow
def test_truncated_checkpoint_falls_back_to_the_one_before(tmp_path, caplog):
    settings = {"batch_size": 4, "epochs": 2}
    unbroken = tiny_model()
    unbroken.fit(*ids(), verbose=0, **settings)
    stopped(tiny_model(), tmp_path, 9, ids(), **settings)
    newest = tmp_path / "step-000000008" / "state.safetensors"
    newest.write_bytes(newest.read_bytes()[:-100])
    model = tiny_model()
    with caplog.at_level(logging.INFO, "keras_bert"):
        weights = resumed(model, tmp_path, ids(), **settings)
    assert "step-000000008 is damaged" in caplog.text
    assert "going on from" in caplog.text and "step-000000006" in caplog.text
    for ours, theirs in zip(weights, unbroken.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert int(model.optimizer.iterations) == 12


@pytest.mark.slow
def test_all_checkpoints_damaged_starts_anew(tmp_path, caplog):
    stopped(tiny_model(), tmp_path, 3, ids(), batch_size=4)
    for path in tmp_path.glob("step-*/state.json"):
        path.write_text("{")
    model = tiny_model()
    resumed(model, tmp_path, ids(), batch_size=4)
    assert int(model.optimizer.iterations) == 6 and "damaged" in caplog.text


@pytest.mark.parametrize("stop", [3, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_dataset_of_unknown_length(tmp_path, stop):
    x, y = ids()
    spec = (
        {k: tf.TensorSpec(v.shape[1:], tf.int32) for k, v in x.items()},
        tf.TensorSpec((), tf.int32),
    )

    def rows():
        for i in range(ROWS):
            yield {name: value[i] for name, value in x.items()}, y[i]

    def dataset():
        data = tf.data.Dataset.from_generator(rows, output_signature=spec).batch(4)
        assert data.cardinality() == tf.data.UNKNOWN_CARDINALITY
        return (data,)

    unbroken = tiny_model()
    unbroken.fit(*dataset(), epochs=2, verbose=0)
    stopped(tiny_model(), tmp_path, stop, dataset(), epochs=2)
    model = tiny_model()
    weights = resumed(model, tmp_path, dataset(), epochs=2)
    assert int(model.optimizer.iterations) == 12
    for ours, theirs in zip(weights, unbroken.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_dataset_of_unknown_length_with_steps_per_epoch(tmp_path):
    x, y = ids()
    whole = tf.data.Dataset.from_tensor_slices((x, y.astype("int32"))).batch(4)

    def dataset():
        return (whole.filter(lambda *_: True),)  # a filter's size is not known

    settings = {"epochs": 4, "steps_per_epoch": 3}
    unbroken = tiny_model()
    unbroken.fit(*dataset(), verbose=0, **settings)
    stopped(tiny_model(), tmp_path, 5, dataset(), **settings)
    model = tiny_model()
    weights = resumed(model, tmp_path, dataset(), **settings)
    assert int(model.optimizer.iterations) == 12
    for ours, theirs in zip(weights, unbroken.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_damaged_checkpoints_do_not_push_out_whole_ones(tmp_path):
    stopped(tiny_model(), tmp_path, 5, ids(), every=2, batch_size=4)
    newest = tmp_path / "step-000000004"
    (newest / "state.json").write_text("{")
    with pytest.raises(KeyboardInterrupt):
        keep = Resume(tmp_path, every_steps=1, keep=1)
        tiny_model().fit(*ids(), batch_size=4, callbacks=[keep, StopAt(3)], verbose=0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["step-000000003", newest.name]


@pytest.mark.usefixtures("eager")
def test_checkpoint_of_another_model_is_refused_before_training(tmp_path):
    stopped(tiny_model(), tmp_path, 3, ids(), batch_size=4)
    other = tiny_model(units=17)
    before = other.get_weights()
    with pytest.raises(ValueError, match="another model.*shape"):
        resumed(other, tmp_path, ids(), batch_size=4)
    for old, new in zip(before, other.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    foreign = tiny_model()
    foreign.compile(optimizer=keras.optimizers.SGD(0.1))
    with pytest.raises(ValueError, match="another model or optimizer"):
        resumed(foreign, tmp_path, ids(), batch_size=4)


@pytest.mark.slow
def test_keeps_the_last_and_the_best(tmp_path):
    model = tiny_model()
    keep = Resume(tmp_path, every_steps=1, keep=2, monitor="val_accuracy")
    values = iter([0.5, 0.9, 0.1, 0.2])

    class Pretend(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            logs["val_accuracy"] = next(values)

    model.fit(*ids(), batch_size=4, epochs=4, callbacks=[Pretend(), keep], verbose=0)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "step-000000012",  # the best, after the second epoch
        "step-000000023",
        "step-000000024",
    ]
    facts = json.loads((tmp_path / "step-000000024" / "state.json").read_text())
    assert facts["best"] == 0.9 and facts["best_step"] == 12


@pytest.mark.thorough
def test_a_finished_run_stays_finished(tmp_path):
    model = tiny_model()
    model.fit(*ids(), batch_size=4, callbacks=[Resume(tmp_path)], verbose=0)
    again = tiny_model()
    again.fit(*ids(), batch_size=4, callbacks=[Resume(tmp_path)], verbose=0)
    for ours, theirs in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"every_steps": 0}, "every_steps=0"), ({"keep": 0}, "keep=0"), ({"mode": "top"}, "mode")],
)
def test_wrong_settings(tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        Resume(tmp_path, **settings)


TEXTS = [f"{first} {second}" for first in ("the cat", "a dog") for second in "abcdef"]
LABELS = [0, 1, 2] * 4
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "a", "cat", "dog"]


def text_model(length=8, rate=1e-3):
    keras.utils.set_random_seed(1)
    preprocessor = BertClassifierPreprocessor(BertTokenizer(WORDS), length)
    backbone = BertBackbone(9, 1, 2, 8, 8, max_sequence_length=16)
    model = BertClassifier(backbone, 3, preprocessor=preprocessor)
    model.compile(learning_rate=rate)
    return model


def go_on(folder, x=TEXTS, y=LABELS, model=None, on_change="error", **kwargs):
    kwargs = {"batch_size": 4, "epochs": 3} | kwargs
    resume = Resume(folder, on_change=on_change)
    return (model or text_model()).fit(x, y, callbacks=[resume], verbose=0, **kwargs)


CHANGES = {
    "texts": ({"x": [*TEXTS[:-1], "another"]}, "other texts, labels and weights"),
    "labels": ({"y": [*LABELS[:-1], 0]}, "other texts, labels and weights"),
    "weights": ({"sample_weight": [1.0] * 11 + [2.0]}, "other texts, labels and weights"),
    "rows": ({"x": TEXTS[:-1], "y": LABELS[:-1]}, "rows was 12, now 11"),
    "pairs": ({"x": (TEXTS, TEXTS)}, "other texts, labels and weights"),
    "batch size": ({"batch_size": 3}, "batch_size was 4, now 3"),
    "class weights": ({"class_weight": [1, 1, 3]}, "class_weight"),
    "seed": ({"seed": 5}, "seed was 0, now 5"),
    "order": ({"shuffle": False}, "shuffle was True, now False"),
    "length": ({"model": 16}, "sequence_length was 8, now 16"),
    "case": ({"model": "cased"}, "lowercase was True, now False"),
    "words": ({"model": "words"}, "other vocabulary"),
    "rate": ({"model": 0.5}, "schedule was .*0.001.* now .*0.5"),
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Checkpoints of a run of one epoch; nobody writes to them."""
    folder = tmp_path_factory.mktemp("begun")
    go_on(folder, epochs=1)
    return folder


@pytest.mark.one_quick
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", CHANGES)
def test_other_data_or_settings_are_refused(name, begun, tmp_path, caplog):
    """A run that was stopped goes on with what it began with, or says what differs."""
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    change, message = CHANGES[name]
    change = dict(change)
    other = change.pop("model", None)
    model = text_model(length=16) if other == 16 else text_model()
    if other == "cased":
        model.preprocessor.tokenizer.lowercase = False
    elif other == "words":
        model.preprocessor.tokenizer.set_vocabulary([*WORDS[:-1], "ox"])
    elif other == 0.5:
        model = text_model(rate=0.5)
    before = model.get_weights()
    with pytest.raises(ValueError, match=f"other data or settings: .*{message}"):
        go_on(tmp_path, model=model, **change)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    if name == "labels":
        caplog.clear()
        history = go_on(tmp_path, model=model, on_change="warn", **change)
        assert history.epoch == [1, 2]
        assert any("other texts, labels" in record.getMessage() for record in caplog.records)


@pytest.mark.thorough
@pytest.mark.usefixtures("eager")
def test_class_weights_are_compared_in_any_form(tmp_path):
    go_on(tmp_path, epochs=1, class_weight=np.array([1, 2, 3]))
    assert go_on(tmp_path, epochs=2, class_weight={0: 1, 1: 2, 2: 3}).epoch == [1]
    for other in (None, "balanced", {0: 1, 1: 2, 2: 4}):
        with pytest.raises(ValueError, match="other data or settings: class_weight"):
            go_on(tmp_path, epochs=3, class_weight=other)


@pytest.mark.thorough
@pytest.mark.usefixtures("eager")
def test_more_epochs_are_no_change(begun, tmp_path):
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    assert go_on(tmp_path, epochs=2).epoch == [1]
    # Written before checkpoints kept a fingerprint.
    for path in tmp_path.glob("step-*/state.json"):
        facts = json.loads(path.read_text())
        del facts["fingerprint"]
        path.write_text(json.dumps(facts))
    assert go_on(tmp_path, y=LABELS[::-1], epochs=3).epoch == [2]


@pytest.mark.thorough
@pytest.mark.usefixtures("eager")
def test_a_dataset_of_another_size_is_refused(tmp_path):
    data = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(4)
    go_on(tmp_path, data, None, epochs=1, batch_size=None)
    with pytest.raises(ValueError, match="batches of the dataset was 3, now 2"):
        go_on(tmp_path, data.take(2), None, batch_size=None)
    assert go_on(tmp_path, data, None, batch_size=None).epoch == [1, 2]


@pytest.mark.thorough
@pytest.mark.usefixtures("eager")
def test_a_run_past_its_epochs_says_so(tmp_path, caplog):
    go_on(tmp_path, epochs=2)
    caplog.clear()
    assert go_on(tmp_path, epochs=2).history == {}
    (line,) = [r.getMessage() for r in caplog.records if "nothing is left to train" in r.message]
    assert "has made 6 steps, and this fit asks for 6" in line and str(tmp_path) in line
    caplog.clear()
    go_on(tmp_path, epochs=1)
    assert any("made 6 steps, and this fit asks for 3" in r.getMessage() for r in caplog.records)


def test_on_change():
    with pytest.raises(ValueError, match="on_change='never': expected"):
        Resume("run", on_change="never")
