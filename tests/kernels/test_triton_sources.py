"""The Triton kernels that the IR is made of. Triton and torch run in processes of their own."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def run(*command, **environment):
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]


@pytest.mark.skipif(not version("triton").startswith("3.8."), reason="needs Triton 3.8")
def test_the_kept_ir_is_what_the_tool_makes():
    run("tools/make_kernels.py", "--check")


@pytest.mark.skipif(not (version("triton") and version("torch")), reason="needs Triton and torch")
def test_kernels_in_the_interpreter():
    run("tests/kernels/interpret.py", TRITON_INTERPRET="1")
