"""`fit` on the JAX backend, which has Keras's own steps; in a process of its own."""

import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("train_on_jax.py")
slow = pytest.mark.slow  # a minute, most of it compilation

# Trains the same model on the backend that KERAS_BACKEND names; prints its losses. On JAX it does
# so a second time, with the weights divided among two devices and the rows among four such pairs.
FIT = """
import json, keras, numpy as np
from keras_bert import BertBackbone, BertClassifier, training
from keras_bert.data import Table
from tests.tasks import tiny
rng = np.random.default_rng(3)
ids = rng.integers(0, 31, (12, 7), "int32")
x = {"token_ids": ids, "segment_ids": ids % 2, "padding_mask": np.ones_like(ids)}
y = rng.integers(0, 3, 12)

def fit():
    shape = dict(max_sequence_length=11, hidden_dropout=0.0, attention_dropout=0.0)
    model = BertClassifier(BertBackbone(31, 2, 2, 12, 24, **shape), num_classes=3, dropout=0.0)
    rng = np.random.default_rng(5)
    model.set_weights([rng.normal(0, 0.1, w.shape).astype(w.dtype) for w in model.get_weights()])
    model.compile(learning_rate=1e-3)
    return model, model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history["loss"]

model, losses = fit()
found = {"whole": [losses, model.evaluate(x, y, verbose=0), model.predict(x).tolist()]}
if keras.config.backend() == "jax":
    kd = keras.distribution
    mesh = kd.DeviceMesh((4, 2), ("batch", "model"), kd.list_devices())
    layouts = training.layout_map(mesh)
    kd.set_distribution(kd.ModelParallel(layout_map=layouts, auto_shard_dataset=False))
    model, losses = fit()
    every = {v.path: v for v in [*model.variables, *model.optimizer.variables]}.values()
    parts = [v.path for v in every if not v.value.sharding.is_fully_replicated]
    found |= {"divided": losses, "replicas": model.step.replica_count, "parts": parts}
    outputs = model.predict({name: value[:11] for name, value in x.items()}, batch_size=5)
    found["outputs"] = outputs.tolist()
    model = BertClassifier(**tiny.made(BertClassifier))
    texts = ["the cat sat", "a dog", "it ran"]
    rows = Table(iter([{"text": text} for text in texts]))
    found["table"] = model.predict(rows, batch_size=2, verbose=0).tolist()
    found["texts"] = [model.predict(text, verbose=0).tolist() for text in texts]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def fitted():
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KERAS_BACKEND": "jax"}
    environment |= {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    environment["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    command = [sys.executable, "-c", FIT]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600)
    assert run.returncode == 0, run.stderr[-3000:]
    with contextlib.redirect_stdout(io.StringIO()) as printed:  # on TensorFlow, in this process
        exec(FIT, {})
    outputs = {"jax": run.stdout, "tensorflow": printed.getvalue()}
    return {backend: json.loads(text.splitlines()[-1]) for backend, text in outputs.items()}


@pytest.mark.thorough
def test_fit_on_one_cpu_is_that_of_tensorflow(fitted):
    parts = [[np.array(part) for part in fitted[backend]["whole"]] for backend in fitted]
    assert parts[0][0][1] < parts[0][0][0]
    for jax, tensorflow in zip(*parts, strict=True):
        # Adam makes steps of nearly one size of gradients that are rounding alone.
        np.testing.assert_allclose(jax, tensorflow, rtol=1e-4, atol=2e-4)


def test_weights_divided_among_devices_give_what_one_device_gives(fitted):
    found = fitted["jax"]
    np.testing.assert_allclose(found["divided"], found["whole"][0], rtol=1e-5)
    # No batch of 5 or 3 rows is that of four devices.
    np.testing.assert_allclose(found["outputs"], found["whole"][2][:11], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["table"], found["texts"], rtol=1e-4, atol=1e-6)
    assert found["replicas"] == 4
    # The word embeddings and ten weights of each block, and both moments of each.
    assert len(found["parts"]) == 3 * (1 + 2 * 10)
    assert "block_1/feedforward_output/kernel" in found["parts"]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    folder = tmp_path_factory.mktemp("jax")
    out = folder / "found.npz"
    command = [sys.executable, str(SCRIPT), str(out), str(folder / "checkpoints")]
    run = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return dict(np.load(out))


def weights(found, name):
    return [value for key, value in sorted(found.items()) if key.startswith(f"{name}.weight")]


@slow
def test_the_loss_falls_and_the_model_answers(found):
    losses = found["whole.losses"]
    assert losses[-1] < losses[0]
    assert np.isfinite(found["evaluated"]).all()
    assert found["predicted"].shape == (22, 3)


@slow
def test_a_resumed_run_ends_at_the_bits_of_an_unbroken_one(found):
    for whole, resumed in zip(weights(found, "whole"), weights(found, "resumed"), strict=True):
        np.testing.assert_array_equal(whole, resumed)


@slow
def test_two_devices_give_what_one_gives(found):
    assert found["devices"] == 2
    np.testing.assert_allclose(found["shared_out.losses"], found["whole.losses"], rtol=1e-5)
    for one, two in zip(weights(found, "whole"), weights(found, "shared_out"), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


@slow
def test_layers_of_berts_large_size_divided_in_several_ways(tmp_path):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    out = tmp_path / "found.npz"
    command = [sys.executable, str(SCRIPT.with_name("train_on_eight.py")), str(out)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600)
    assert run.returncode == 0, run.stderr[-3000:]
    found = dict(np.load(out))
    for name, replicas in (("data", 8), ("2x4", 2), ("1x8", 1)):
        assert found[f"{name}.replicas"] == replicas
        np.testing.assert_allclose(found[f"{name}.losses"], found["one.losses"], rtol=1e-5)
        np.testing.assert_allclose(found[f"{name}.predicted"], found["one.predicted"], atol=1e-4)
        for one, other in zip(weights(found, "one"), weights(found, name), strict=True):
            # Adam makes steps of nearly one size of gradients that are rounding alone.
            np.testing.assert_allclose(other, one, atol=2e-4)
