"""The package as a whole: imports, with and without TensorFlow Text, and how long they take."""

import json
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from keras_bert.version import __version__

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FOR_DEVELOPERS = ("docs", "test", "interop", "dev")  # extras
BLOCK = "import sys; sys.modules['tensorflow_text'] = None; "


def run(script):
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_ids_work_without_tensorflow_text():
    script = BLOCK + (
        "import numpy as np, keras_bert\n"
        "backbone = keras_bert.BertBackbone(17, 2, 3, 12, 20, max_sequence_length=16)\n"
        "model = keras_bert.BertClassifier(backbone, 2)\n"
        "ids = np.arange(16).reshape(4, 4) % 17\n"
        "x = dict(token_ids=ids, segment_ids=ids * 0, padding_mask=ids * 0 + 1)\n"
        "model.fit(x, [0, 1, 0, 1], verbose=0)\n"
        "print(model.predict(x, verbose=0).shape)\n"
        "try:\n"
        "    keras_bert.BertTokenizer(['[PAD]', '[UNK]', '[CLS]', '[SEP]'])(['a'])\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    output = run(script)
    assert "(4, 2)\n" in output and "pip install tensorflow-text" in output


@pytest.mark.parametrize("folder", ["tests/golden/tiny_hf"])
@pytest.mark.slow
def test_a_checkpoint_loads_without_tensorflow_text(folder):
    script = BLOCK + (
        "import numpy as np, keras_bert\n"
        f"model = keras_bert.BertClassifier.from_preset({folder!r})\n"
        "ids = np.ones((2, 3), 'int32')\n"
        "x = dict(token_ids=ids, segment_ids=ids * 0, padding_mask=ids)\n"
        "print(model.predict(x, verbose=0).shape)\n"
    )
    assert run(script).splitlines()[-1] == "(2, 3)"


@pytest.mark.slow
def test_import_adds_at_most_a_quarter_to_keras_hub():
    times = {"keras_hub": [], "keras_bert": []}
    for _ in range(5):
        for name, seconds in times.items():
            start = time.perf_counter()
            run(f"import {name}")
            seconds.append(time.perf_counter() - start)
    print(json.dumps(times))
    assert min(times["keras_bert"]) <= 1.25 * min(times["keras_hub"])


def test_the_changelog_has_the_version():
    newest = re.search(r"^## \[(\d.*?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert newest[1] == __version__


def test_the_workflow_tests_the_versions_of_python_that_are_promised():
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    tested = re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", workflow)[1])
    promised = [c.rsplit(" ")[-1] for c in PROJECT["classifiers"] if ":: Python :: 3." in c]
    assert tested == promised and PROJECT["requires-python"] == f">={promised[0]}"


def test_the_manual_has_the_licence_of_each_dependency():
    extras = PROJECT["optional-dependencies"].items()
    wanted = [*PROJECT["dependencies"]]
    wanted += [name for extra, names in extras if extra not in FOR_DEVELOPERS for name in names]
    wanted = {re.match(r"[\w-]+", name)[0].lower().replace("_", "-") for name in wanted}
    page = (ROOT / "docs" / "guides" / "licences.md").read_text("utf-8")
    named = set(re.findall(r"[a-z0-9-]+", page.partition("## Dependencies")[2].lower()))
    assert wanted - named - {PROJECT["name"]} == set()
