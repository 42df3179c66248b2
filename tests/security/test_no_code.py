"""Nothing in the package runs what it reads."""

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import keras_bert
from keras_bert.checkpoints import torch_file

PACKAGE = Path(keras_bert.__file__).parent
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "yaml", "imp"}
# Archives are unpacked nowhere, so none of their names is ever a path.
MODULES |= {"tarfile", "zipfile"}
CALLS = {"eval", "exec", "compile", "__import__"}
METHODS = {"import_module", "system", "popen", "unpack_archive", "extractall", "enable_unsafe"}
# `compile_from_config` and `from_config`, for what Keras itself saved; its safe mode is left on.
BY_KERAS = {
    (file, "deserialize_keras_object")
    for file in ("tasks/task.py", "training/losses.py", "training/task_metrics.py")
}


def parts(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (("import", alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "import", (node.module or "").split(".")[0]
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield "call", node.func.id
            elif isinstance(node.func, ast.Attribute):
                yield "method", node.func.attr
            yield from (
                ("argument", f"{keyword.arg}={keyword.value.value}")
                for keyword in node.keywords
                if isinstance(keyword.value, ast.Constant)
            )


def test_no_source_has_what_runs_data():
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        for kind, what in parts(path):
            bad = {
                "import": what in MODULES,
                "call": what in CALLS,
                "method": what in METHODS or what.startswith("enable_unsafe"),
                "argument": what in ("allow_pickle=True", "safe_mode=False", "shell=True"),
            }
            deserializes = what == "deserialize_keras_object" and (name, what) not in BY_KERAS
            if bad[kind] or (kind == "method" and deserializes):
                found.append(f"{name}: {kind} {what}")
    assert not found


def test_a_module_in_the_working_folder_is_not_imported(tmp_path):
    """The process that reads PyTorch's files looks for torch nowhere near them."""
    for name in ("torch", "safetensors", "resource"):
        (tmp_path / f"{name}.py").write_text("open('run', 'w')")
    (tmp_path / "model.bin").write_bytes(b"no pickle")
    script = Path(torch_file.__file__).with_name("torch_to_safetensors.py")
    command = [sys.executable, "-I", str(script), "model.bin", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".py") == ["model.bin"]


@pytest.mark.slow
@pytest.mark.interop
def test_a_zip_bomb(tmp_path):
    pytest.importorskip("torch")
    with zipfile.ZipFile(tmp_path / "bomb.bin", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        with file.open("archive/data.pkl", "w", force_zip64=True) as member:
            for _ in range(40):
                member.write(bytes(1 << 26))
        file.writestr("archive/version", "3\n")
    with pytest.raises(ValueError, match="bomb.bin can't be read as a PyTorch file of weights"):
        torch_file.torch_to_safetensors(tmp_path / "bomb.bin", tmp_path / "out")
    assert not (tmp_path / "out").exists()
