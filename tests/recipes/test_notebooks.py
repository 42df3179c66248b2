"""The notebooks: that they are clean files, and that their cells run in order on a CPU."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "golden" / "tiny_one_block"
NOTEBOOKS = ("colab_gpu.ipynb", "colab_tpu.ipynb", "explain.ipynb")
# Instead of the cell of settings. 100 texts: 90 to train on are 11.25 batches.
SETTINGS = f"""
SOURCE, EXTRAS = "", "plots"
PRESET, CSV, OUTPUT_DIR = {str(TINY)!r}, "", "run"
BACKEND, STRATEGY, DTYPE = "tensorflow", "one", "float32"
SEQUENCE_LENGTH, BATCH_SIZE, EPOCHS, ROWS, SEED = 12, 8, 1, 100, 3
SIZE, STEPS = "tiny", 3  # ROWS and EPOCHS are also those of explain.ipynb
"""
# After the last cell.
REPORT = """
print("REPORT" + json.dumps({
    "answers": answers,
    "served_answers": served_answers,
    "gap": float(abs(probabilities - output["probability"].numpy()).max()),
    "steps": [m.run.done for m in (classifier, pretrainer, second)],
    "accuracies": [accuracy, second_accuracy],
    "metrics": list(history.history),
    "losses": [before["loss"], after["loss"]],
    "loaded": len(second.loading_report.loaded) == len(second.backbone.weights),
}))
"""


def read(name):
    return json.loads((ROOT / "recipes" / name).read_text(encoding="utf-8"))


def source(cell):
    return "".join(cell["source"])


def tags(cell):
    return cell["metadata"].get("tags", [])


def code_cells(name):
    return [cell for cell in read(name)["cells"] if cell["cell_type"] == "code"]


def program(name, settings):
    """The notebook as a script, with other settings."""
    cells = code_cells(name)
    return "\n".join(settings if "parameters" in tags(cell) else source(cell) for cell in cells)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_is_a_clean_file(name):
    text = (ROOT / "recipes" / name).read_text(encoding="utf-8")
    notebook = json.loads(text)
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert notebook["nbformat"] == 4 and notebook["nbformat_minor"] >= 5
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    for cell in notebook["cells"]:
        fields = {"cell_type", "id", "metadata", "source"}
        if cell["cell_type"] == "code":
            fields |= {"execution_count", "outputs"}
            assert cell["outputs"] == [] and cell["execution_count"] is None
        else:
            assert cell["cell_type"] == "markdown"
        assert set(cell) == fields
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", cell["id"])
        assert set(cell["metadata"]) <= {"tags"}
        assert cell["source"] and all(isinstance(line, str) for line in cell["source"])
        assert all(line.endswith("\n") for line in cell["source"][:-1])
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for path in (str(ROOT), str(Path.home()), "/home/", "/root/", "/tmp/", "/Users/", "/work/"):
        assert path not in text
    assert len(text) < 30_000


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_cells_are_plain_python_with_all_settings_on_top(name):
    cells = code_cells(name)
    assert "parameters" in tags(cells[0]) and len([c for c in cells if tags(c)]) == 1
    for cell in cells:
        assert not re.search(r"^\s*[%!]", source(cell), re.MULTILINE)
        compile(source(cell), name, "exec")
    names = re.compile(r"^([A-Z_]+) = ", re.MULTILINE)
    values = {}
    exec(SETTINGS, values)
    assert set(names.findall(source(cells[0]))) <= set(values)  # the tests below leave none out
    # What a reader in Colab looks for: the installation, then versions and the accelerator.
    assert '"pip", "install"' in source(cells[1])
    assert "__version__" in source(cells[2]) and re.search(r"GPU|TPU", source(cells[2]))
    whole = "".join(source(cell) for cell in cells)
    assert ".fit(" in whole and "verbose=2" not in whole  # with a progress bar


@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.parametrize("given", ["", "checkout", "wheel", "address"])
def test_it_installs_from_wherever_the_package_is(name, given, tmp_path, monkeypatch):
    wheel = tmp_path / "keras3_bert-1.2.3-py3-none-any.whl"
    wheel.touch()
    address = "git+https://example.org/bert.git"
    sources = {"": "", "checkout": str(ROOT), "wheel": str(wheel), "address": address}
    expected = {
        "": f"{ROOT}[plots]",  # the checkout that it lies in
        "checkout": f"{ROOT}[plots]",
        "wheel": f"{wheel}[plots]",
        "address": f"keras3-bert[plots] @ {address}",
    }
    asked = []
    monkeypatch.chdir(ROOT / "recipes")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: asked.append(command))
    settings = {"SOURCE": sources[given], "EXTRAS": "plots", "BACKEND": "tensorflow"}
    exec(source(code_cells(name)[1]), settings)
    assert asked[0][1:] == ["-m", "pip", "install", "--quiet", expected[given]]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match="set SOURCE to a checkout, a wheel or an address"):
        exec(source(code_cells(name)[1]), settings | {"SOURCE": ""})


@pytest.mark.parametrize("page", ["README.md", "docs/guides/training.md"])
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_pages_name_it(page, name):
    assert name in (ROOT / page).read_text(encoding="utf-8")


def test_the_tpu_notebook_says_that_no_tpu_has_seen_it():
    assert "has not been run on a TPU" in source(read("colab_tpu.ipynb")["cells"][0])


def run(name, folder, settings=SETTINGS):
    command = [sys.executable, "-c", program(name, settings) + REPORT]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "-1"}
    environment |= {"MPLBACKEND": "Agg"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("REPORT"))
    return json.loads(line.removeprefix("REPORT"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "backend"),
    [
        ("colab_gpu.ipynb", "tensorflow"),
        ("colab_tpu.ipynb", "tensorflow"),
        ("colab_tpu.ipynb", "jax"),
    ],
)
def test_notebook_runs_from_top_to_bottom(name, backend, tmp_path):
    pytest.importorskip(backend)
    settings = SETTINGS.replace('"tensorflow", "one"', f'"{backend}", "one"')
    report = run(name, tmp_path, settings)
    assert report["answers"] == report["served_answers"]
    assert set(report["answers"]) <= {"negative", "positive"}
    assert report["gap"] < 1e-5
    assert report["steps"] == [12, 3, 12]
    assert {"loss", "accuracy", "val_loss", "val_accuracy"} <= set(report["metrics"])
    assert report["loaded"]
    output = tmp_path / "run"
    assert (output / "saved_model" / "saved_model.pb").is_file()
    for preset in ("preset", "pretrained"):
        assert (output / preset / "assets" / "tokenizer" / "vocab.txt").is_file()
    assert (output / "fine_tuning" / "step-000000012").is_dir()
    assert (output / "pre_training" / "step-000000003").is_dir()
    for picture in ("fine_tuning", "pre_training", "report/confusion_matrix"):
        assert (output / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    assert all(0 <= accuracy <= 1 for accuracy in report["accuracies"])
    assert report["losses"][1] < report["losses"][0]


@pytest.mark.slow
def test_the_notebook_on_explanations_runs(tmp_path):
    settings = 'SOURCE, EXTRAS = "", "plots"\nROWS, EPOCHS = 64, 1\n'
    shown = """
for found in (explain.attention(filler, "a"), why, report, points):
    assert found._repr_html_().startswith('<div class="kb">')
assert why.target == (0, "door") and len(report.explained) == 5 and temperature > 0
"""
    command = [sys.executable, "-c", program("explain.ipynb", settings) + shown]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert len(done.stdout.splitlines()) > 7  # a line for each layer
