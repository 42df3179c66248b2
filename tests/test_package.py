"""The package as a whole: imports, with and without TensorFlow Text, and how long they take."""

import json
import subprocess
import sys
import time

import pytest

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
