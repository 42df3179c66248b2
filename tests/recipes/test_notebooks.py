"""The notebooks: that they are clean files, and that their cells run in order on a CPU."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "golden" / "tiny_hf"
NOTEBOOKS = ("colab_gpu.ipynb", "colab_tpu.ipynb")
# Instead of the cell of settings. 100 texts: 90 to train on are 11.25 batches.
SETTINGS = f"""
PRESET, CSV, OUTPUT_DIR = {str(TINY)!r}, "", "run"
BACKEND, STRATEGY, DTYPE = "tensorflow", "one", "float32"
SEQUENCE_LENGTH, BATCH_SIZE, EPOCHS, ROWS, SEED = 12, 8, 1, 100, 3
SIZE, STEPS = "tiny", 3
"""
# After the last cell.
REPORT = """
import json
check = next(iter(batches.as_numpy_iterator()))
again = next(iter(batches.as_numpy_iterator()))
print("REPORT" + json.dumps({
    "answers": answers,
    "served_answers": served_answers,
    "gap": float(abs(probabilities - output["probability"].numpy()).max()),
    "steps": [m.position.done for m in (classifier, pretrainer, second)],
    "metrics": sorted(history.history),
    "loaded": len(second.loading_report.loaded) == len(second.backbone.weights),
    "stateless": all((check[name] == again[name]).all() for name in check),
    "batch": {name: value.tolist() for name, value in check.items()},
    "special": NOT_MASKED,
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
    """The notebook as a script: without the installation, with other settings."""
    cells = [cell for cell in code_cells(name) if "install" not in tags(cell)]
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
def test_only_the_installation_is_not_plain_python(name):
    cells = code_cells(name)
    for tag in ("parameters", "install"):
        assert sum(tag in tags(cell) for cell in cells) == 1
    for cell in cells:
        if "install" not in tags(cell):
            assert not re.search(r"^\s*[%!]", source(cell), re.MULTILINE)
            compile(source(cell), name, "exec")
    names = re.compile(r"^([A-Z_]+) = ", re.MULTILINE)
    parameters = next(source(cell) for cell in cells if "parameters" in tags(cell))
    values = {}
    exec(SETTINGS, values)
    # The test below leaves none out; SOURCE is for the installation.
    assert set(names.findall(parameters)) - {"SOURCE"} <= set(values)


def test_the_tpu_notebook_says_that_no_tpu_has_seen_it():
    assert "has not been run on a TPU" in source(read("colab_tpu.ipynb")["cells"][0])


def run(name, folder, settings=SETTINGS):
    command = [sys.executable, "-c", program(name, settings) + REPORT]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("REPORT"))
    return json.loads(line.removeprefix("REPORT"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_runs_from_top_to_bottom(name, tmp_path):
    report = run(name, tmp_path)
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
    assert report["stateless"]
    check_masks(report["batch"], report["special"])


def check_masks(batch, special):
    """One or two of at most ten words of a row are asked for, each once, and no special token."""
    columns = ("token_ids", "mask_positions", "mask_ids", "mask_weights")
    for ids, positions, answers, weights in zip(*(batch[c] for c in columns), strict=True):
        count = int(sum(weights))
        assert len(positions) == 2 and 1 <= count <= 2
        assert weights == [1.0] * count + [0.0] * (2 - count)
        assert positions[count:] == answers[count:] == [0] * (2 - count)
        assert len(set(positions[:count])) == count and 0 not in positions[:count]
        assert not {*answers[:count]} & {*special}
        kept = [i for p, i in enumerate(ids) if p not in positions[:count]]
        assert kept[0] == special[1] and special[2] in kept
