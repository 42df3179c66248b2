"""Presets and .keras files that version 0.1.0 wrote load, and answer as they did there.

`tests/golden/presets_0_1.tar.xz` holds a preset, a .keras file and answers of each task, on a
backbone of two layers of 8 units with random weights (NumPy's generator, seeds 5 and 6). Commit
76d98fd made it, on TensorFlow 2.21, Keras 3.15.1 and KerasHub 0.32.0.
"""

import json
import tarfile
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_bert
from keras_bert.data.relations import Span

GOLDEN = Path(__file__).parents[1] / "golden" / "presets_0_1.tar.xz"
TASKS = {
    "classifier": keras_bert.BertClassifier,
    "multi_label": keras_bert.BertClassifier,
    "token_classifier": keras_bert.BertTokenClassifier,
    "question_answerer": keras_bert.BertQuestionAnswerer,
    "multiple_choice": keras_bert.BertMultipleChoice,
    "relation_classifier": keras_bert.BertRelationClassifier,
    "text_embedder": keras_bert.BertTextEmbedder,
    "masked_lm": keras_bert.BertMaskedLM,
    "pretrainer": keras_bert.BertPretrainer,
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets")
    with tarfile.open(GOLDEN) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.one_quick
@pytest.mark.parametrize("form", ["preset", "keras"])
@pytest.mark.parametrize("name", TASKS)
def test_outputs_are_the_same(saved, name, form):
    if form == "preset":
        task = TASKS[name].from_preset(saved / name)
    else:
        task = keras.models.load_model(saved / f"{name}.keras")
    assert type(task) is TASKS[name]
    with np.load(saved / "expected.npz") as arrays:
        parts = {key: arrays[key] for key in arrays if key.startswith(f"{name}/")}
    x = {key.split("/")[2]: value for key, value in parts.items() if "/x/" in key}
    output = task(x)
    output = output if isinstance(output, dict) else {"output": output}
    assert {f"{name}/y/{key}" for key in output} <= parts.keys()
    for key, value in output.items():
        np.testing.assert_allclose(value, parts[f"{name}/y/{key}"], rtol=0, atol=1e-5)


def close(found, expected):
    """Whether nested answers are the same, numbers to 1e-5."""
    if isinstance(expected, float):
        return found == pytest.approx(expected, abs=1e-5)
    if isinstance(expected, list):
        pairs = zip(found, expected, strict=True)
        return len(found) == len(expected) and all(close(a, b) for a, b in pairs)
    if isinstance(expected, dict):
        return all(close(getattr(found, key), value) for key, value in expected.items())
    return found == expected


@pytest.mark.thorough
def test_verbs_answer_the_same(saved):
    answers = json.loads((saved / "answers.json").read_text(encoding="utf-8"))
    texts, question, verbs = answers["texts"], answers["question"], answers["verbs"]
    tasks = {name: TASKS[name].from_preset(saved / name) for name in verbs}
    assert close(tasks["classifier"].predict(texts, verbose=0).tolist(), verbs["classifier"])
    assert close(tasks["text_embedder"].embed(texts).tolist(), verbs["text_embedder"])
    assert close(
        [[a.text, a.start, a.end, a.score] for a in tasks["question_answerer"].answer(*question)],
        [row[:4] for row in verbs["question_answerer"]],
    )
    choices = [["the mat", "a dog", "it"]]
    choice, shares = tasks["multiple_choice"].choose(["The cat sat on"], choices)
    assert close([list(choice), np.asarray(shares).tolist()], verbs["multiple_choice"])
    found = tasks["token_classifier"].tag(texts)
    found = [[[e.text, e.label, e.start, e.end, e.score] for e in row] for row in found]
    assert close(found, verbs["token_classifier"])
    assert close(tasks["masked_lm"].fill("the [MASK] sat", top_k=2), verbs["masked_lm"])
    spans = [(Span(4, 7), Span(19, 22))]
    names, scores = tasks["relation_classifier"].relate(["The cat sat on the mat."], spans)
    assert close([list(names), np.asarray(scores).tolist()], verbs["relation_classifier"])
    labels = [list(row) for row in verbs["multi_label"][0]]
    assert [list(row) for row in tasks["multi_label"].classify(texts)[0]] == labels
