"""A model that was trained and dropped leaves nothing behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("train_and_forget.py")
TASKS = [
    "BertClassifier",
    "BertTokenClassifier",
    "BertQuestionAnswerer",
    "BertMultipleChoice",
    "BertRelationClassifier",
    "BertTextEmbedder",
    "BertMaskedLM",
    "BertPretrainer",
]
VARIANTS = (
    "again lora adapters+bitfit packing checkpointing checkpointing+xla xla+packing "
    "accumulation accumulation+checkpointing eager+checkpointing again+xla"
).split()


def trained(*cases):
    """What `train_and_forget.py` found for each case."""
    run = subprocess.run(
        [sys.executable, SCRIPT, *cases],
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    assert [one["case"] for one in found] == list(cases)
    return found


def check_nothing_stays(*cases):
    for found in trained(*cases):
        assert found["last"] == found["first"], found


@pytest.mark.thorough
def test_nothing_stays_of_models_that_were_trained():
    check_nothing_stays("BertClassifier-plain-2", "BertClassifier-checkpointing+packing-2")


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_nothing_stays_of_any_task(task):
    check_nothing_stays(*(f"{task}-{variant}-3" for variant in ("plain", "xla", "checkpointing")))


@pytest.mark.slow
def test_nothing_stays_however_a_model_is_trained():
    check_nothing_stays(*(f"BertClassifier-{variant}-3" for variant in VARIANTS))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc, which Linux has")
def test_twenty_models_take_the_memory_of_one():
    (found,) = trained("BertClassifier-large-20")  # 11 M weights: 130 MB with the optimizer's
    assert found["last"] == found["first"]
    assert found["grown"] < 400e6, found
