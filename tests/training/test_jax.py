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

# Trains the same model on the backend that KERAS_BACKEND names; prints its losses.
FIT = """
import json, numpy as np
from keras_bert import BertBackbone, BertClassifier
shape = dict(max_sequence_length=11, hidden_dropout=0.0, attention_dropout=0.0)
backbone = BertBackbone(31, 1, 2, 12, 24, **shape)
model = BertClassifier(backbone, num_classes=3, dropout=0.0)
rng = np.random.default_rng(3)
model.set_weights([rng.normal(0, 0.1, w.shape).astype(w.dtype) for w in model.get_weights()])
ids = rng.integers(0, 31, (12, 7), "int32")
x = {"token_ids": ids, "segment_ids": ids % 2, "padding_mask": np.ones_like(ids)}
model.compile(learning_rate=1e-3)
y = rng.integers(0, 3, 12)
history = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history
print(json.dumps([history["loss"], model.evaluate(x, y, verbose=0), model.predict(x).tolist()]))
"""


def test_fit_on_one_cpu_is_that_of_tensorflow():
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KERAS_BACKEND": "jax"}
    environment |= {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", FIT]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600)
    assert run.returncode == 0, run.stderr[-3000:]
    with contextlib.redirect_stdout(io.StringIO()) as printed:  # on TensorFlow, in this process
        exec(FIT, {})
    outputs = [text.splitlines()[-1] for text in (run.stdout, printed.getvalue())]
    found = [[np.array(part) for part in json.loads(output)] for output in outputs]
    assert found[0][0][1] < found[0][0][0]
    for jax, tensorflow in zip(*found, strict=True):
        # Adam makes steps of nearly one size of gradients that are rounding alone.
        np.testing.assert_allclose(jax, tensorflow, rtol=1e-4, atol=2e-4)


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
