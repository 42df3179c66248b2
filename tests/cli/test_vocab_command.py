import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_bert.data import build_vocabulary
from keras_bert_cli.main import run

pytest.importorskip("tokenizers")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def text(tmp_path):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice([*"abcdefÉ"], rng.integers(1, 7))) for _ in range(500)]
    (tmp_path / "a.txt").write_text(" ".join(rng.choice(words, 3000)))
    return tmp_path / "a.txt"


@pytest.mark.slow
def test_another_process_makes_the_same_file(text, tmp_path):
    """Also with other threads and hash seeds; ties are many in random words."""
    options = ["--size", "300", "--cased", "--unused", "2", "--min_frequency", "1"]
    assert run(["vocab", str(text), *options, "--output", str(tmp_path / "here.txt")]) == 0
    env = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "PYTHONHASHSEED": "3"}
    command = [sys.executable, "-m", "keras_bert_cli", "vocab", text, *options]
    command += ["--output", tmp_path / "there.txt"]
    env = os.environ | env | {"PYTHONPATH": str(ROOT)}
    subprocess.run(command, check=True, env=env, cwd=tmp_path, stderr=subprocess.PIPE)
    expected = build_vocabulary(
        text, 300, lowercase=False, unused=2, min_frequency=1, verbose=False
    )
    assert len(expected) == 300 and "[unused1]" in expected and "É" in expected
    for name in ("here.txt", "there.txt"):
        assert (tmp_path / name).read_text().splitlines() == expected


def test_a_vocabulary_that_is_there_stays(text, tmp_path, capsys):
    (tmp_path / "vocab.txt").write_text("mine")
    assert run(["vocab", str(text), "--size", "99", "-o", str(tmp_path / "vocab.txt")]) == 1
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / "vocab.txt").read_text() == "mine"
