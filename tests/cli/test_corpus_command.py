import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from keras_bert.data.records import read_index
from keras_bert_cli.main import run

pytest.importorskip("apache_beam")
WORDS = [a + b + c for a in "bcdfghklmnprst" for b in "aeiou" for c in "lmnrst"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "The", "the", "e", "é", *WORDS]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def vocabulary(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
    return str(tmp_path / "vocab.txt")


def write_text(path, megabytes):
    """Documents of about 10 kB, 20 words a line."""
    rng = np.random.default_rng(0)
    lines = [" ".join(words) for words in rng.choice(WORDS, (5003, 20))]
    with open(path, "w") as file:
        while file.tell() < megabytes * 1e6:
            for document in np.split(rng.permutation(lines), range(0, 5003, 130)):
                file.write("\n".join(document) + "\n\n")


def start(tmp_path, vocabulary, folder, *options):
    command = [sys.executable, "-m", "keras_bert_cli", "corpus", tmp_path / "a.txt"]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    command += ["--vocabulary", vocabulary, "--output", folder, *options]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def test_options_arrive(vocabulary, tmp_path, capsys):
    (tmp_path / "a.txt").write_text("The the\n\x07\n\né\n", encoding="utf-8")
    folder = str(tmp_path / "c")
    command = ["corpus", str(tmp_path / "a.*"), "--output", folder, "--vocabulary", vocabulary]
    command += ["--cased", "--no-strip_accents", "--shards", "1", "--seed", "5", "--workers", "1"]
    assert run([*command, "--beam=--direct_running_mode=multi_threading", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    expected = {"documents": 2, "sentences": 2, "tokens": 3, "shards": 1, "output": folder}
    assert said | expected | {"sentences_without_tokens": 1} == said
    index = read_index(folder)
    assert (index.seed, len(index.shards), index.documents) == (5, 1, 2)
    assert not index.tokenizer["lowercase"] and index.tokenizer["strip_accents"] is False
    # Once more: it is there already, and other settings are refused.
    assert run([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == said
    assert run([option for option in command if option != "--no-strip_accents"]) == 1
    assert "with strip_accents False, not None" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ([], dict(tokenizer=(True, None), format="sentences", shards=8, seed=0, beam_options=[])),
        (["--cased", "--strip_accents", "--overwrite"], dict(tokenizer=(False, True))),
        (["--format", "paragraphs", "--language", "de"], dict(format="paragraphs", language="de")),
        (["--tfds_data_dir", "d", "--workers", "3"], dict(data_dir="d", workers=3)),
        (["--beam=--runner=A", "--beam=--b=c"], dict(beam_options=["--runner=A", "--b=c"])),
    ],
)
def test_each_option_has_its_argument(vocabulary, monkeypatch, call, expected):
    asked = {}

    def record(files, folder, tokenizer, **arguments):
        settings = (tokenizer.lowercase, tokenizer.strip_accents)
        asked.update(arguments, files=files, folder=folder, tokenizer=settings)
        raise InterruptedError

    monkeypatch.setattr("keras_bert.data.prepare_corpus", record)
    command = ["corpus", "a", "tfds:b", "--vocabulary", vocabulary, "--output", "c", *call]
    assert run(command) == 1
    assert asked["overwrite"] == ("--overwrite" in call)
    assert asked | expected | dict(files=["a", "tfds:b"], folder=Path("c")) == asked


def test_mistyped_options_are_refused(vocabulary, capsys):
    assert run(["corpus", "a", "--vocabulary", vocabulary, "--output", "c", "--shard", "4"]) == 2
    assert "--shard" in capsys.readouterr().err


@pytest.mark.slow
def test_killed_among_the_shards(vocabulary, tmp_path):
    write_text(tmp_path / "a.txt", 10)
    options = ["--shards", "30", "--workers", "1"]
    start(tmp_path, vocabulary, tmp_path / "whole", *options).communicate()
    folder = tmp_path / "killed"
    process = start(tmp_path, vocabulary, folder, *options)
    while len(list(folder.glob("_work/shard-*.json"))) < 4:
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    finished = [path.stem for path in folder.glob("_work/shard-*.json")]
    assert len(finished) < 30 and not (folder / "index.json").exists()
    inodes = {name: (folder / f"{name}.tfrecord").stat().st_ino for name in finished}
    start(tmp_path, vocabulary, folder, *options).communicate()
    assert inodes == {name: (folder / f"{name}.tfrecord").stat().st_ino for name in finished}
    made = [{f.name: f.read_bytes() for f in f.iterdir()} for f in (folder, tmp_path / "whole")]
    assert made[0] == made[1]


@pytest.mark.slow
def test_memory_is_bounded(vocabulary, tmp_path):
    """100 MB of text: TensorFlow and Beam take 1.0 GB before the first line is read."""
    write_text(tmp_path / "a.txt", 100)
    process, most = start(tmp_path, vocabulary, tmp_path / "c"), 0
    while process.poll() is None:
        # Not `ru_maxrss`, which begins with that of the process that started it.
        found = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        most = int(found[1]) * 1024 if found else most  # a process that has ended has none
        time.sleep(0.02)
    process.stdout.close()
    assert process.returncode == 0 and read_index(tmp_path / "c").tokens > 20e6
    assert 0 < most < 1.5e9
