"""The train step gives the same numbers on one device, on several, and in micro-batches.

The cases run in processes of their own, since logical devices are made only once in each.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.training.local_workers import configurations

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("train_cases.py")
# task-devices-microbatches, see train_cases.py; the first is what the others are compared with.
SHORT = ["classifier-1-1", "classifier-2-3", "classifier-1-1-Adam", "classifier-2-3-Adam"]
OPTIMIZERS = ["Adadelta", "Adagrad", "Adamax", "AdamW", "Ftrl", "Lamb", "Muon", "Nadam"]
OPTIMIZERS += ["RMSprop", "SGD"]  # Lion goes by signs, and Adafactor by roots of tiny means
CLASSIFIER = ["1-1", "2-1", "3-1", "1-3", "2-3", "3-2"]
PRETRAINER = ["1-1", "2-1", "3-1", "1-3", "2-3"]
COMPILED = ["1-1-xla", "2-1-xla", "1-3-xla"]


def start(folder, cases, **environment):
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), *cases],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process, folder, cases):
    output, _ = process.communicate(timeout=3600)
    assert process.returncode == 0, output[-4000:]
    results = {}
    for case in cases:
        with np.load(folder / f"{case}.npz") as arrays:
            results[case] = dict(arrays)
    return results


def run_all(folder, cases):
    found = {}
    for devices in "123":  # collective ops of one process know one number of devices
        group = [case for case in cases if case.split("-")[1] == devices]
        if group:
            found |= finish(start(folder, group), folder, group)
    return found


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return run_all(tmp_path_factory.mktemp("few"), SHORT)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    cases = [f"classifier-{c}" for c in CLASSIFIER + COMPILED]
    cases += [f"pretrainer-{c}" for c in PRETRAINER]
    cases += [f"classifier-{devices}-1-{name}" for name in OPTIMIZERS for devices in "12"]
    return run_all(tmp_path_factory.mktemp("cases"), cases)


def assert_same(a, b):
    weights = [name for name in a if name.startswith("weight")]
    assert len(weights) > 20
    for name in weights:
        np.testing.assert_allclose(a[name], b[name], rtol=0, atol=1e-5, err_msg=name)
    moved = max(np.abs(a[name] - a["start." + name]).max() for name in weights)
    assert moved > 2e-3, "nothing was trained"
    assert len(a["losses"]) == 10 and np.isfinite(a["losses"]).all()
    for name in ("losses", "step_losses"):
        np.testing.assert_allclose(a[name], b[name], rtol=0, atol=1e-6, err_msg=name)
    # Metrics such as a perplexity of 20 are no better than float32 is.
    np.testing.assert_allclose(a["evaluated"], b["evaluated"], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(a["predicted"], b["predicted"], rtol=0, atol=1e-5)
    np.testing.assert_array_equal(a["counts"], b["counts"])


@pytest.mark.thorough
def test_two_devices_with_three_micro_batches_are_one_device(few):
    assert_same(few["classifier-1-1"], few["classifier-2-3"])


def test_keras_adam_and_metrics_on_two_devices_are_those_on_one(few):
    assert_same(few["classifier-1-1-Adam"], few["classifier-2-3-Adam"])


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_keras_optimizers_on_two_devices_are_those_on_one(results, name):
    assert_same(*(results[f"classifier-{devices}-1-{name}"] for devices in "12"))


@pytest.mark.slow
@pytest.mark.parametrize("case", CLASSIFIER[1:])
def test_classifier_is_that_of_one_device(results, case):
    assert_same(results["classifier-1-1"], results[f"classifier-{case}"])


@pytest.mark.slow
@pytest.mark.parametrize("case", COMPILED[1:])
def test_compiled_classifier_is_that_of_one_device(results, case):
    assert_same(results["classifier-1-1-xla"], results[f"classifier-{case}"])


@pytest.mark.slow
def test_compiled_losses_are_those_not_compiled(results):
    plain, compiled = (results[f"classifier-{case}"] for case in ("1-1", "1-1-xla"))
    # XLA adds up in another order, and Adam makes much of small differences.
    np.testing.assert_allclose(compiled["losses"], plain["losses"], rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("case", PRETRAINER[1:])
def test_pretrainer_is_that_of_one_device(results, case):
    assert_same(results["pretrainer-1-1"], results[f"pretrainer-{case}"])


def test_counts_leave_out_rows_without_weight(few):
    one = few["classifier-1-1"]
    # Keras logs the mean so far of an epoch; the first is that of the first batch alone.
    assert one["losses"][0] == pytest.approx(one["step_losses"][0], abs=1e-7)
    rows, tokens, steps = one["counts"]
    assert steps == 10 and 0 < rows < 10 * 12 and rows < tokens


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["", "-Adam"])
def test_two_worker_processes_are_one_device(few, tmp_path, optimizer):
    case = f"classifier-workers-1{optimizer}"
    folders, processes = [tmp_path / "0", tmp_path / "1"], []
    for config, folder in zip(configurations(2), folders, strict=True):
        folder.mkdir()
        processes.append(start(folder, [case], TF_CONFIG=config))
    seen = []
    for process, folder in zip(processes, folders, strict=True):
        worker = finish(process, folder, [case])[case]
        assert_same(few[f"classifier-1-1{optimizer}"], worker)
        seen += worker["seen"].tolist()
    # Each row is seen once an epoch over all workers.
    assert sorted(seen) == list(range(29))


@pytest.mark.parametrize("bucket_bytes", [None, 0, 20, 60, 1000])
def test_tensors_come_back_from_pieces_of_any_size(monkeypatch, bucket_bytes):
    import tensorflow as tf

    from keras_bert.training import replicas

    monkeypatch.setattr(replicas, "count", lambda: 2)
    shapes = [(3, 5), (7,), (), (2, 1), (1,)]
    tensors = [tf.random.normal(shape, seed=i) for i, shape in enumerate(shapes)]
    packed = replicas.pack(tensors, bucket_bytes)
    sizes = [4 * len(vector) for vector in packed]
    assert sum(sizes) == 4 * (15 + 7 + 1 + 2 + 1)
    if bucket_bytes is None:
        assert len(packed) == 1
    else:
        assert all(size >= bucket_bytes for size in sizes[:-1])
    # The last tensors, whose gradients are known first, are in the first piece.
    assert packed[0][0] == tensors[-1][0] and packed[-1][-1] == tensors[0][-1, -1]
    found = replicas.unpack(packed, [t.shape for t in tensors], bucket_bytes)
    for ours, theirs in zip(found, tensors, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.thorough
def test_steps_that_run_ahead_give_the_logs_and_weights_of_one_device(tmp_path):
    paths = [tmp_path / "one.npz", tmp_path / "two.npz"]
    command = [sys.executable, str(SCRIPT.with_name("train_ahead.py")), *map(str, paths)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr[-4000:]
    one, two = map(np.load, paths)
    assert one["logs"].shape == (9, 3) and len(one.files) > 20
    for name in one.files:
        np.testing.assert_allclose(two[name], one[name], rtol=0, atol=1e-6, err_msg=name)
