"""`fit` on the JAX backend, which has Keras's own steps; in a process of its own."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("train_on_jax.py")
pytestmark = pytest.mark.slow  # a minute, most of it compilation


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
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return dict(np.load(out))


def weights(found, name):
    return [value for key, value in sorted(found.items()) if key.startswith(f"{name}.weight")]


def test_the_loss_falls_and_the_model_answers(found):
    losses = found["whole.losses"]
    assert losses[-1] < losses[0]
    assert np.isfinite(found["evaluated"]).all()
    assert found["predicted"].shape == (22, 3)


def test_a_resumed_run_ends_at_the_bits_of_an_unbroken_one(found):
    for whole, resumed in zip(weights(found, "whole"), weights(found, "resumed"), strict=True):
        np.testing.assert_array_equal(whole, resumed)


def test_two_devices_give_what_one_gives(found):
    assert found["devices"] == 2
    np.testing.assert_allclose(found["shared_out.losses"], found["whole.losses"], rtol=1e-5)
    for one, two in zip(weights(found, "whole"), weights(found, "shared_out"), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)
