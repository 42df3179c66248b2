"""Reports of errors: every task has one, and its figures are those of an independent count."""

import html.parser
import re

import keras
import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

import keras_bert
from keras_bert.explain import errors
from keras_bert.explain.error_report import mcnemar, script_of
from tests.tasks.tiny import TASKS, backbone_settings, made

WORDS = "the a cat sat on mat dog slept it ran".split()


def make(cls, **kwargs):
    backbone = keras_bert.BertBackbone(**backbone_settings() | {"initializer_range": 0.4})
    return cls(**made(cls) | {"backbone": backbone} | kwargs)


def texts_of(count, seed=0, length=5):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(2, length + 1))) for _ in range(count)]


TEXTS = texts_of(23)
LABELS = np.random.default_rng(1).integers(0, 2, 23).tolist()
DATA = {
    keras_bert.BertClassifier: (TEXTS, LABELS),
    keras_bert.BertTokenClassifier: (
        TEXTS,
        [[len(word) % 2 for word in text.split()] for text in TEXTS],
    ),
    keras_bert.BertQuestionAnswerer: (
        (["who sat ?", "who ran ?", "it ?"], ["the cat sat", "a dog ran on", "the mat"]),
        [("cat", 4), ("dog", 2), None],
    ),
    keras_bert.BertMultipleChoice: ((TEXTS, [["sat", "ran on", "slept"]] * 23), LABELS),
    keras_bert.BertRelationClassifier: (
        ([f"the {text} mat" for text in TEXTS], [((0, 3), (4, 5))] * 23),
        LABELS,
    ),
    keras_bert.BertTextEmbedder: ((TEXTS, TEXTS[::-1]), np.linspace(-1, 1, 23)),
    keras_bert.BertMaskedLM: (TEXTS, None),
    keras_bert.BertPretrainer: (TEXTS, None),
}


class Page(html.parser.HTMLParser):
    """The tags and attributes of a page, and the text of its table cells."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.cells = set(), set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data


@pytest.mark.thorough
@pytest.mark.parametrize(
    "cls", [TASKS[0], *(pytest.param(cls, marks=pytest.mark.slow) for cls in TASKS[1:])]
)
def test_every_task_has_a_report(cls, tmp_path):
    kwargs = {"loss": "cosine"} if cls is keras_bert.BertTextEmbedder else {}
    task = make(cls, **kwargs)
    report = errors(task, *DATA[cls], explained=1)
    a = report.answers
    assert len(a.right) == len(a.found) == len(a.score) == len(a.target) == len(a.example)
    assert set(report.explained) == set(report.mistakes[:1].tolist())
    if a.confidence is not None:
        right = [x == y for x, y in zip(a.right, a.found, strict=True)]
        if cls is not keras_bert.BertQuestionAnswerer:
            assert a.score.tolist() == np.array(right, float).tolist()
        assert sorted(report.mistakes.tolist()) == np.flatnonzero(a.score < 1).tolist()
        assert report.calibration.count.sum() == len(a.score)
    assert sum(one.count for one in report.slices["length"]) == len(a.score)
    page = report.to_html(tmp_path / "errors.html", worst=len(a.score)).read_text("utf-8")
    assert not re.search(r"https?://|@import|url\(", page)
    for item in report.mistakes:
        assert a.right[item] in Page(page).cells
    assert report._repr_html_().startswith('<div class="kb">')


@pytest.fixture
def report():
    task = make(keras_bert.BertClassifier, num_classes=3, labels=["x", "y", "z"])
    labels = np.random.default_rng(2).choice(["x", "y", "z"], 23).tolist()
    return task, labels, errors(task, TEXTS, labels, explained=0)


def test_figures_are_counted_right(report):
    task, labels, found = report
    logits = task.predict(TEXTS, verbose=0).astype("float64")
    ids = np.array([task.labels.index(label) for label in labels])
    wanted = confusion_matrix(ids, logits.argmax(axis=1), labels=range(3))
    np.testing.assert_array_equal(found.confusion(), wanted)
    assert found.score == pytest.approx((logits.argmax(axis=1) == ids).mean())
    assert found.score == pytest.approx(task.scores(TEXTS, labels)["accuracy"])
    scores = found.class_scores()
    assert scores["f1"].mean() == pytest.approx(task.scores(TEXTS, labels)["macro_f1"])
    exponents = np.exp(logits)
    own = (exponents / exponents.sum(axis=1, keepdims=True))[np.arange(23), ids]
    wrong = np.flatnonzero(logits.argmax(axis=1) != ids)
    assert found.mistakes.tolist() == sorted(wrong.tolist(), key=lambda i: (own[i], i))
    by_label = {one.name: one for one in found.slices["label"]}
    assert {name: one.count for name, one in by_label.items()} == {
        name: labels.count(name) for name in {*labels}
    }


def test_a_report_has_its_files(report, tmp_path):
    pytest.importorskip("matplotlib")
    *_, found = report
    files = found.write(tmp_path / "r")
    assert {f.name for f in files} == {f.name for f in (tmp_path / "r").iterdir()}
    assert {f.name for f in files} == {
        "calibration.png",
        "confusion_matrix.png",
        "classes.png",
        "errors.html",
    }
    for file in files[:3]:
        assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and file.stat().st_size > 5_000


def test_labels_that_were_swapped_are_doubtful():
    keras.utils.set_random_seed(1)
    task = make(keras_bert.BertClassifier)
    texts = texts_of(80, 3)
    logits = task.predict(texts, verbose=0)
    task.head.set_weights([8 * weight for weight in task.head.get_weights()])  # sure of itself
    task.head.bias.assign(task.head.bias - 8 * np.median(logits, axis=0))
    logits = task.predict(texts, verbose=0)
    labels = logits.argmax(axis=1)
    assert 20 < labels.sum() < 60
    swapped = np.argsort(-np.abs(logits[:, 0] - logits[:, 1]))[:5]
    labels[swapped] = 1 - labels[swapped]
    found = errors(task, texts, labels.tolist(), explained=0)
    assert set(found.doubtful.tolist()) == set(swapped.tolist()) == set(found.mistakes.tolist())


def test_words_of_mistakes_stand_out():
    task = make(keras_bert.BertClassifier)
    texts = texts_of(80, 4)
    labels = task.predict(texts, verbose=0).argmax(axis=1)
    labels = [1 - label if "dog" in text else label for label, text in zip(labels, texts)]  # noqa: B905
    found = errors(task, texts, labels, explained=0)
    assert found.slices["word"][0].name == "dog" and found.slices["word"][0].score == 0
    assert found.slices["word"][0].count == sum("dog" in text for text in texts)


@pytest.mark.thorough
def test_two_models():
    tasks = [make(keras_bert.BertClassifier) for _ in range(2)]
    tasks[1].head.set_weights([-weight for weight in tasks[0].head.get_weights()])
    found = errors(tasks[0], TEXTS, LABELS, other=tasks[1], explained=0)
    both = [np.argmax(task.predict(TEXTS, verbose=0), axis=1) for task in tasks]
    assert found.disagreements.tolist() == np.flatnonzero(both[0] != both[1]).tolist()
    assert "Two models" in found._repr_html_()
    # 1 of 6 heads or fewer, or 5 or more: (1 + 6 + 6 + 1) / 2^6
    assert mcnemar(1, 5) == pytest.approx(14 / 64) and mcnemar(0, 0) == 1
    other = make(keras_bert.BertClassifier, labels=["a", "b"])
    with pytest.raises(ValueError, match="other: expected a task with the same labels"):
        errors(tasks[0], TEXTS, LABELS, other=other, explained=0)


@pytest.mark.one_quick
@pytest.mark.parametrize("problem", ["multi_label", "regression"])
def test_other_problems(problem, tmp_path):
    task = make(keras_bert.BertClassifier, problem=problem, num_classes=3)
    labels = np.random.default_rng(0).integers(0, 2, (23, 3))
    found = errors(task, TEXTS, labels, explained=1)
    outputs = task.predict(TEXTS, verbose=0)
    if problem == "regression":
        wanted = np.abs(outputs - labels).mean(axis=1)
        np.testing.assert_allclose(-found.answers.score, wanted, atol=1e-6)
        assert found.mistakes[0] == np.argmax(wanted) and found.calibration is None
    else:
        wanted = ((outputs >= 0) == labels).all(axis=1)
        assert found.answers.score.tolist() == wanted.astype(float).tolist()
        assert found.calibration.count.sum() == 69
    assert "mean absolute error" in found._repr_html_() or problem == "multi_label"


def test_scripts():
    assert script_of("Ça va, 12?") == "Latin"
    assert script_of("привет ok") == "Cyrillic" and script_of("海は") == "Cjk"
    assert script_of("12 !") == "none"


def test_what_is_missing():
    task = make(keras_bert.BertClassifier)
    with pytest.raises(ValueError, match="y is missing"):
        errors(task, TEXTS)
    with pytest.raises(ValueError, match="label"):
        errors(task, ["a"], [2])
    with pytest.raises(ValueError, match="labels of length 1: expected 2, as many as texts"):
        errors(task, ["a", "b"], [1])
    with pytest.raises(ValueError, match="x: expected at least one example"):
        errors(task, [], [])
