"""Two worker processes on files end with the weights of one, and each reads its own part."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.training.local_workers import configurations

ROOT = Path(__file__).resolve().parents[2]
ROWS = 203


def start(out, files, packing, **environment):
    script = Path(__file__).with_name("train_on_table.py")
    return subprocess.Popen(
        [sys.executable, str(script), str(out), str(files), packing],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process, out):
    output, _ = process.communicate(timeout=3600)
    assert process.returncode == 0, output[-4000:]
    with np.load(out) as arrays:
        return dict(arrays)


@pytest.mark.slow
@pytest.mark.parametrize("packing", ["none", "packing"])
def test_two_workers_are_one(tmp_path, packing):
    rng = np.random.default_rng(1)
    words = "the a cat sat on mat dog slept it ran".split()
    rows = [
        {"text": " ".join(rng.choice(words, rng.integers(2, 12))), "label": "ab"[i % 2]}
        for i in range(ROWS)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = tmp_path / "*.jsonl"
    one = finish(start(tmp_path / "one.npz", files, packing), tmp_path / "one.npz")
    assert len(one["read"]) == ROWS // 10 + 1
    outs, processes = [tmp_path / "0.npz", tmp_path / "1.npz"], []
    for config, out in zip(configurations(2), outs, strict=True):
        processes.append(start(out, files, packing, TF_CONFIG=config))
    for process, out in zip(processes, outs, strict=True):
        worker = finish(process, out)
        np.testing.assert_allclose(worker["losses"], one["losses"], rtol=0, atol=1e-6)
        weights = [name for name in one if name.startswith("weight")]
        assert len(weights) > 20 and worker["steps"] == one["steps"]
        for name in weights:
            np.testing.assert_allclose(worker[name], one[name], rtol=0, atol=1e-5, err_msg=name)
