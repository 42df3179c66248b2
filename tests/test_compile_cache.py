"""Compiled programs kept across processes: what is loaded, refused, repaired and removed."""

import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import keras
import pytest

from keras_bert import compile_cache
from keras_bert.kernels import use

CARDS = ["a card", "driver 1"]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The store in a cache of its own, and no folder in use."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("TF_XLA_FLAGS", "")
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.delenv(compile_cache.SWITCH, raising=False)
    monkeypatch.setattr(compile_cache, "_used", None)
    return tmp_path / "keras_bert" / "compiled"


@pytest.fixture
def process(monkeypatch):
    """Does what a process does: starts with the store, compiles, and ends."""

    def run(programs=(), cards=CARDS, **environment):
        with monkeypatch.context() as patch:
            patch.setattr(compile_cache, "_used", None)
            patch.setenv("TF_XLA_FLAGS", "")
            patch.setenv("XLA_FLAGS", "")
            for name, value in environment.items():
                patch.setenv(name, value)
            folder = compile_cache.enable(cards=cards)
            if folder is None:
                return None
            compile_cache.wait()
            flags = os.environ["TF_XLA_FLAGS"]
            assert f"--tf_xla_persistent_cache_directory={folder}" in flags
            found = {path.name: path.read_bytes() for path in folder.iterdir()}
            for name, content in dict(programs).items():
                (folder / name).write_bytes(content)
            compile_cache.keep()
            compile_cache._used.close()
            assert not folder.exists()
            return found

    return run


def kept(cache: Path) -> list[Path]:
    return sorted(cache.glob("[!.]*/*"))


def test_programs_reach_the_next_process(cache, process):
    assert process({"a.pb": b"one", "b.pb": b"two"}) == {}
    assert process({"c.pb": b"three"}) == {"a.pb": b"one", "b.pb": b"two"}
    assert process() == {"a.pb": b"one", "b.pb": b"two", "c.pb": b"three"}
    assert len(kept(cache)) == 3
    for folder in (cache.parent, cache, *cache.iterdir()):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_passed_trial_of_the_kernels_is_noted(cache, monkeypatch):
    trials = []
    monkeypatch.setattr(use, "_gpu", lambda: True)

    def starts(error, cards=CARDS):
        """Whether a process with this error of the kernels uses them, and whether it tried."""
        monkeypatch.setattr(use, "largest_error", lambda: trials.append(error) or error)
        monkeypatch.setattr(compile_cache, "_used", None)
        monkeypatch.setenv("TF_XLA_FLAGS", "")
        compile_cache.enable(cards=cards)
        before = len(trials)
        ready = use.ready.__wrapped__()
        compile_cache._used.close()
        return ready, len(trials) > before

    assert starts(0.5) == (False, True)
    assert starts(0.001) == (True, True)  # a failure is not noted
    assert starts(0.5) == (True, False)
    assert starts(0.5, cards=["a card", "driver 2"]) == (False, True)
    with monkeypatch.context() as other:  # JAX has an XLA of its own, in any of its versions
        other.setattr(keras.config, "backend", lambda: "jax")
        versions = {"jaxlib": "1.0"}
        found = importlib.metadata.version
        other.setattr(importlib.metadata, "version", lambda n: versions.get(n) or found(n))
        assert starts(0.001) == (True, True)
        assert starts(0.5) == (True, False)
        versions["jaxlib"] = "1.1"
        assert starts(0.5) == (False, True)
    monkeypatch.setattr(use, "_digest", lambda: "other-kernels")
    assert starts(0.5) == (False, True)


def test_products_are_left_to_cublas_where_there_is_a_card(cache, monkeypatch):
    off = "--xla_gpu_enable_triton_gemm=false"
    compile_cache.enable(cards=[])
    assert os.environ["XLA_FLAGS"] == ""
    monkeypatch.setenv(compile_cache.SWITCH, "0")  # that is of the programs kept
    compile_cache.enable(cards=CARDS)
    assert os.environ["XLA_FLAGS"] == off
    compile_cache.enable(cards=CARDS)
    assert os.environ["XLA_FLAGS"] == off
    for given in ("--xla_gpu_enable_triton_gemm=true", "--xla_gpu_enable_triton_gemm"):
        monkeypatch.setenv("XLA_FLAGS", given)
        compile_cache.enable(cards=CARDS)
        assert os.environ["XLA_FLAGS"] == given
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_autotune_level=0")
    compile_cache.enable(cards=CARDS)
    assert os.environ["XLA_FLAGS"] == f"--xla_gpu_autotune_level=0 {off}"
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setenv("KERAS_BACKEND", "jax")  # on which the flag gains nothing
    compile_cache.enable(cards=CARDS)
    assert os.environ["XLA_FLAGS"] == ""


def test_other_cards_flags_and_versions_have_programs_of_their_own(cache, process, monkeypatch):
    process({"a.pb": b"one"})
    assert process(cards=["another card", "driver 1"]) == {}
    assert process(cards=[*CARDS, "another card"], CUDA_VISIBLE_DEVICES="0") == {}
    assert process(cards=[*CARDS, "another card"], CUDA_VISIBLE_DEVICES="1") == {}
    assert process(cards=[*CARDS, "a card"], CUDA_VISIBLE_DEVICES="1") == {"a.pb": b"one"}
    assert process(XLA_FLAGS="--xla_gpu_autotune_level=0") == {}
    assert process(TF_XLA_FLAGS="--tf_xla_auto_jit=2") == {}
    with monkeypatch.context() as patch:
        patch.setattr(importlib.metadata, "version", lambda name: "other")
        assert process() == {}
    assert process() == {"a.pb": b"one"}


@pytest.mark.parametrize("damage", [b"", b"on", b"onE", b"one and more"])
def test_a_damaged_program_is_compiled_again(cache, process, caplog, damage):
    process({"a.pb": b"one", "b.pb": b"two"})
    (path,) = (path for path in kept(cache) if path.name.endswith("a.pb"))
    path.write_bytes(damage)
    assert process({"a.pb": b"one"}) == {"b.pb": b"two"}
    assert "is damaged" in caplog.text and str(path) in caplog.text
    assert process() == {"a.pb": b"one", "b.pb": b"two"}


def test_a_folder_that_others_could_write_is_refused(cache, process, caplog, tmp_path):
    process({"a.pb": b"one"})
    cache.chmod(0o770)
    assert process() is None
    assert str(cache) in caplog.text
    cache.chmod(0o700)
    cache.parent.chmod(0o777)
    assert process() is None
    cache.parent.chmod(0o700)
    assert process() == {"a.pb": b"one"}
    moved = tmp_path / "moved"
    cache.rename(moved)
    cache.symlink_to(moved)
    assert process() is None


def test_a_folder_of_another_user_is_refused(cache, process, caplog, monkeypatch):
    process({"a.pb": b"one"})
    monkeypatch.setattr(os, "getuid", lambda: os.stat(cache).st_uid + 1)
    assert process() is None and "folder of this user" in caplog.text


def test_the_switch_and_a_folder_of_the_users_own(cache, process):
    assert process(**{compile_cache.SWITCH: "0"}) is None
    assert process(TF_XLA_FLAGS="--tf_xla_persistent_cache_directory=/mine") is None
    assert process(cards=[]) is None
    assert not cache.exists()


def test_flags_of_a_parent_process_are_not_taken_over(cache, monkeypatch):
    first = compile_cache.enable(cards=CARDS)
    monkeypatch.setattr(compile_cache, "_used", None)
    second = compile_cache.enable(cards=CARDS)
    assert first != second and str(first) not in os.environ["TF_XLA_FLAGS"]
    assert str(second) in os.environ["TF_XLA_FLAGS"]


def test_the_oldest_programs_go_when_the_store_is_full(cache, process, monkeypatch):
    monkeypatch.setattr(compile_cache, "LIMIT", 10)
    process({"a.pb": b"1234", "b.pb": b"1234"})
    for path in kept(cache):
        age = 1000 if path.name.endswith("a.pb") else 2000
        os.utime(path, (time.time() - age,) * 2)
    monkeypatch.setattr(os, "utime", lambda path: None)  # otherwise all were just used
    process({"c.pb": b"1234"})
    assert {path.name.partition("-")[2] for path in kept(cache)} == {"a.pb", "c.pb"}


def test_a_path_that_tensorflow_would_cut_keeps_nothing(cache, process, caplog, tmp_path):
    assert process(XDG_CACHE_HOME=str(tmp_path / "my cache")) is None
    assert "contains a blank" in caplog.text


def test_a_full_disk_keeps_nothing(cache, process, caplog, monkeypatch):
    monkeypatch.setattr(compile_cache, "LEFT_FREE", 2**70)
    assert process() is None and "almost full" in caplog.text


def test_what_a_killed_process_left_is_removed(cache, process):
    process()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    here = f".process-{platform.node()}"
    old, new = cache / ".process-elsewhere-1-old", cache / ".process-elsewhere-1-new"
    dead, alive = cache / f"{here}-{ended.pid}-x", cache / f"{here}-{os.getpid()}-x"
    for folder in (old, new, dead, alive):
        folder.mkdir()
    os.utime(old, (time.time() - 8 * 24 * 3600,) * 2)
    process()
    assert new.exists() and alive.exists() and not old.exists() and not dead.exists()


PROGRAM = """
import sys
from keras_bert import compile_cache
folder = compile_cache.enable(devices="CPU", cards=["this"])
import tensorflow as tf
compile_cache.wait()

@tf.function(jit_compile=True)
def double(x):
    return tf.sin(x) * 2

before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
print(float(double(tf.constant(1.0))))
compile_cache.keep()
after = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
print(len(before), len(after), before.items() <= after.items())
"""


FIT = """
import sys
from keras_bert import compile_cache
folder = compile_cache.enable(devices="CPU", cards=["this"])
import keras
import numpy as np
import tensorflow as tf
import keras_bert

compile_cache.wait()
kept = [tf.constant(n) for n in range(int(sys.argv[1]))]  # such as those of a kernels' test
before = {path.name for path in folder.iterdir()}
keras.utils.set_random_seed(0)
backbone = keras_bert.BertBackbone(
    vocabulary_size=8, num_layers=1, num_heads=2, hidden_dim=4, intermediate_dim=8,
    max_sequence_length=8,
)
model = keras_bert.BertClassifier(backbone, num_classes=2)
model.compile(jit_compile=True)
ids = np.ones((4, 8), "int32")
rows = {"token_ids": ids, "segment_ids": ids - 1, "padding_mask": ids}
history = model.fit(rows, np.array([0, 1, 0, 1]), batch_size=2, verbose=0, validation_split=0.5)
print(sorted(history.history.items()))
compile_cache.keep()
after = {path.name for path in folder.iterdir()}
print(len(before), len(after))
"""


def outputs_of(program: str, tmp_path, *runs: tuple) -> list[list[str]]:
    """The last two lines that a program prints in each of several processes, one by one."""
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "TF_CPP_MIN_LOG_LEVEL": "2"}
    environment.pop("TF_XLA_FLAGS", None)
    outputs = []
    for arguments in runs:
        command = [sys.executable, "-c", program, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines()[-2:])
    return outputs


@pytest.mark.thorough
def test_a_fit_finds_its_programs_whatever_was_computed_before(tmp_path):
    """On a CPU, whose programs are not kept otherwise."""
    first, second = outputs_of(FIT, tmp_path, ("0",), ("12345",))
    assert first[0] == second[0]
    none, made = map(int, first[1].split())
    assert none == 0 and made >= 2
    assert second[1] == f"{made} {made}"


@pytest.mark.thorough
def test_tensorflow_reads_and_writes_the_folder(tmp_path):
    """On a CPU, whose programs are not kept otherwise; the second process compiles nothing."""
    outputs = outputs_of(PROGRAM, tmp_path, (), ())
    assert outputs[0][0] == outputs[1][0]
    assert [lines[1] for lines in outputs] == ["0 1 True", "1 1 True"]
