"""Temperature scaling of tasks: kept in presets, checkpoints and exports; answers stay the same."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401, registers the ops of exports

import keras_bert
from keras_bert.explain import errors
from keras_bert.metrics import best_temperature, squad_v2_scores
from keras_bert.serving.export import signatures_of
from keras_bert.serving.network import Network
from tests.tasks.tiny import backbone_settings, made

TEXTS = ["the cat sat", "a dog slept on the mat", "it ran .", "the dog ran", "a mat", "who slept ?"]
SPANS = [((0, 1), (2, 4))] * 6


def make(cls, **kwargs):
    keras.utils.set_random_seed(0)
    backbone = keras_bert.BertBackbone(**backbone_settings() | {"initializer_range": 0.4})
    return cls(**made(cls) | {"backbone": backbone} | kwargs)


def sure(logits):
    return np.exp(logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)).max(axis=-1)


@pytest.mark.thorough
def test_a_classifier(tmp_path):
    model = make(keras_bert.BertClassifier, labels=["a", "b"])
    labels = ["a", "b", "b", "a", "b", "a"]
    before, _ = model.classify(TEXTS)
    logits = model.predict(TEXTS, verbose=0)
    ids = [["a", "b"].index(label) for label in labels]
    found = model.calibrate(TEXTS, labels)
    assert found == model.temperature == best_temperature(logits, ids) != 1
    after, chances = model.classify(TEXTS)
    assert after == before
    np.testing.assert_allclose(chances, sure(logits / found), atol=1e-5)
    np.testing.assert_allclose(model.predict(TEXTS, verbose=0), logits, atol=1e-6)
    largest = [max(row.values()) for row in model.classify(TEXTS, top_k="all")]
    np.testing.assert_allclose(largest, chances, atol=1e-5)

    model.save_to_preset(tmp_path / "preset")
    again = keras_bert.BertClassifier.from_preset(tmp_path / "preset")
    assert again.temperature == found
    np.testing.assert_allclose(again.classify(TEXTS)[1], chances, atol=1e-5)
    other = keras_bert.BertClassifier.from_preset(
        tmp_path / "preset", labels=["x", "y"], skip_mismatch=True
    )
    assert other.temperature == 1  # of another head
    keras_bert.save_checkpoint(model, tmp_path / "hf", "huggingface")
    assert keras_bert.BertClassifier.from_preset(tmp_path / "hf").temperature == found
    model.export(tmp_path / "served", verbose=0)
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["serving_default"]
    answer = served(text=tf.constant(TEXTS))
    np.testing.assert_allclose(answer["probability"], chances, atol=1e-5)


@pytest.mark.thorough
def test_relations_and_tags():
    relater = make(keras_bert.BertRelationClassifier)
    relater.calibrate((TEXTS, SPANS), [0, 1, 1, 0, 1, 0])
    logits = relater.predict((TEXTS, SPANS), verbose=0)
    found = relater.relate(TEXTS, SPANS)[1]
    np.testing.assert_allclose(found, sure(logits / relater.temperature), atol=1e-5)
    tagger = make(keras_bert.BertTokenClassifier, labels=["O", "B-X"])
    tags = [["O", "B-X"] * 4] * 6
    tags = [row[: len(words)] for row, words in zip(tags, tagger.words(TEXTS), strict=True)]
    tagger.calibrate(TEXTS, tags)
    logits = np.concatenate(tagger.predict(TEXTS, verbose=0))
    ids = [["O", "B-X"].index(tag) for row in tags for tag in row]
    assert tagger.temperature == best_temperature(logits, ids) != 1
    with pytest.raises(ValueError, match="crf=True"):
        make(keras_bert.BertTokenClassifier, crf=True).calibrate(TEXTS, tags)


@pytest.mark.thorough
def test_decisions_of_several_labels_stay():
    model = make(
        keras_bert.BertClassifier, problem="multi_label", num_classes=3, thresholds=[0.3, 0.5, 0.8]
    )
    before = model.classify(TEXTS)[0]
    labels = np.random.default_rng(0).integers(0, 2, (6, 3))
    found = model.calibrate(TEXTS, labels)
    after, chances = model.classify(TEXTS)
    assert after == before and found != 1
    wanted = 1 / (1 + np.exp(-model.predict(TEXTS, verbose=0) / found))
    np.testing.assert_allclose(chances, wanted, atol=1e-5)


def test_what_has_no_temperature():
    with pytest.raises(ValueError, match="temperature=0"):
        make(keras_bert.BertClassifier, temperature=0)
    with pytest.raises(ValueError, match="regression has no probabilities"):
        make(keras_bert.BertClassifier, problem="regression", num_classes=1).calibrate(
            TEXTS, [0] * 6
        )


def softmax(logits):
    """In float64."""
    powers = np.exp(np.asarray(logits, "float64") - np.max(logits))
    return powers / powers.sum()


def least(loss):
    """The temperature of the least loss, on a grid that is refined twice."""
    low, high = 0.01, 100.0
    for _ in range(4):
        grid = np.geomspace(low, high, 201)
        place = int(np.argmin([loss(t) for t in grid]))
        low, high = grid[max(place - 1, 0)], grid[min(place + 1, 200)]
    return grid[place]


def kept(model, folder, read):
    """What `read` gives of the model and of its preset; a .keras file holds the same settings."""
    model.save_to_preset(folder / "preset")
    copy = type(model).from_preset(folder / "preset")
    assert copy.temperature == model.temperature == model.get_config()["temperature"]
    return [read(one) for one in (model, copy)]


def asked(model, **columns):
    """The answers of the signature that exports hold, without writing one."""
    function = signatures_of(model, Network(model), True, {})["serving_default"].function
    return function(*map(tf.constant, columns.values()))


@pytest.mark.thorough
def test_choices(tmp_path):
    model = make(keras_bert.BertMultipleChoice)
    choices = [["a cat", "the mat sat"], ["the dog", "a mat", "it"], ["who", "a dog slept"]] * 2
    right = [0, 2, 1, 1, 0, 0]
    logits = [model.predict(([t], [c]), verbose=0)[0] for t, c in zip(TEXTS, choices, strict=True)]
    before, _ = model.choose(TEXTS, choices)

    def loss(t):
        return -sum(np.log(softmax(row / t)[i]) for row, i in zip(logits, right, strict=True))

    found = model.calibrate((TEXTS, choices), right)
    assert found == model.temperature == pytest.approx(least(loss), rel=1e-3) and found != 1
    wanted = np.zeros([6, 3])
    for row, values in zip(wanted, logits, strict=True):
        row[: len(values)] = softmax(values / found)
    for chosen, chances in kept(model, tmp_path, lambda one: one.choose(TEXTS, choices)):
        assert chosen == before
        np.testing.assert_allclose(chances, wanted, atol=1e-5)
    np.testing.assert_allclose(model.choose(TEXTS[1], choices[1])[1], wanted[1], atol=1e-5)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again.choose(TEXTS[1], choices[1])[1], wanted[1], atol=1e-5)
    full = [row + [""] * (3 - len(row)) for row in choices]
    answers = asked(model, context=TEXTS, choices=full)
    np.testing.assert_allclose(answers["probabilities"], wanted, atol=1e-5)
    model.temperature = 1.0
    report = errors(model, (TEXTS, choices), right, explained=0)
    assert report.temperature == pytest.approx(found, rel=1e-3)
    assert report.calibrated is not None


@pytest.mark.thorough
def test_answers_in_a_context(tmp_path):
    model = make(keras_bert.BertQuestionAnswerer, null_threshold=0.5)
    contexts = [f"{text} the dog sat on a mat" for text in TEXTS]
    rights = [("the cat", 0), ("slept", 6), None, ("ran", 8), ("a mat", 0), None]
    x = (TEXTS, contexts)
    before = model.answer(*x, top_k=20)
    sums = [[c.start_logit + c.end_logit for c in p.candidates] for p in before]
    place = [[c[1:3] for c in p.candidates].index((p.start, p.end)) for p in before]
    grades = [
        squad_v2_scores({"q": [right[0]] if right else []}, {"q": p.text})["f1"] / 100
        for p, right in zip(before, rights, strict=True)
    ]

    def loss(t):
        chances = [softmax(np.array(row) / t)[i] for row, i in zip(sums, place, strict=True)]
        logs = np.log(np.maximum([chances, np.subtract(1, chances)], np.exp(-30)))
        return -(np.array(grades) * logs[0] + np.subtract(1, grades) * logs[1]).sum()

    found = model.calibrate(x, rights)
    assert found == model.temperature == pytest.approx(least(loss), rel=1e-3) and found != 1
    wanted = [softmax(np.array(row) / found)[i] for row, i in zip(sums, place, strict=True)]
    for answers in kept(model, tmp_path, lambda one: one.answer(*x)):
        assert [(a.text, a.start) for a in answers] == [(a.text, a.start) for a in before]
        assert [a.null_score for a in answers] == pytest.approx(
            [a.null_score for a in before], abs=1e-4
        )
        np.testing.assert_allclose([a.score for a in answers], wanted, atol=1e-5)
    assert model.answer(TEXTS[1], contexts[1]).score == pytest.approx(wanted[1], abs=1e-5)
    answers = asked(model, question=TEXTS, context=contexts)
    np.testing.assert_allclose(answers["score"], wanted, atol=1e-5)
    model.temperature = 1.0
    report = errors(model, x, rights, explained=0)
    assert report.temperature == pytest.approx(found, rel=1e-3)
    assert report.calibrated is not None


@pytest.mark.thorough
def test_fills(tmp_path):
    model = make(keras_bert.BertMaskedLM)
    texts = [*TEXTS, "?"]  # the last has no word
    # The middle one of the words with a single token.
    masked = ["the [MASK] sat", "a dog slept [MASK] the mat", "it [MASK] .", "the [MASK] ran"]
    masked += ["a [MASK]", "who [MASK] ?"]
    right = ["cat", "on", "ran", "dog", "mat", "slept"]
    tokens = model.preprocessor.tokenizer.get_vocabulary()
    size = len(tokens)

    def chances(one):
        found = [filled[0] for filled in one.fill(masked, top_k=size)]
        return np.array([[c.score for c in sorted(row, key=lambda c: c.id)] for row in found])

    logs = np.log(np.asarray(chances(model), "float64"))  # logits, up to a constant of each row
    ids = [tokens.index(word) for word in right]

    def loss(t):
        return -sum(np.log(softmax(row / t)[i]) for row, i in zip(logs, ids, strict=True))

    found = model.calibrate(texts)
    assert found == model.temperature == pytest.approx(least(loss), rel=1e-3) and found != 1
    wanted = np.array([softmax(row / found) for row in logs])
    for scores in kept(model, tmp_path, chances):
        np.testing.assert_allclose(scores, wanted, atol=1e-5)
    best = model.fill(masked[1])[0]
    assert best[0].score == pytest.approx(wanted[1].max(), abs=1e-5)
    scores = asked(model, text=masked)["score"][:, 0, 0]
    np.testing.assert_allclose(scores, wanted.max(axis=1), atol=1e-5)
    total = model.score(texts[0]).total
    with pytest.raises(ValueError, match="1 texts without a word"):
        model.calibrate(["?"])
    model.temperature = 1.0
    assert model.score(texts[0]).total == total
    report = errors(model, texts, explained=0)
    assert report.temperature == pytest.approx(found, rel=1e-3)
    # A pre-trained BERT has one too, and shares it.
    pretrainer = make(keras_bert.BertPretrainer)
    pretrainer.calibrate(texts)
    pretrainer.save_to_preset(tmp_path / "both")
    again = keras_bert.BertMaskedLM.from_preset(tmp_path / "both")
    assert again.temperature == pretrainer.temperature != 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "cls, columns, score",
    [
        (
            keras_bert.BertMultipleChoice,
            {"context": TEXTS[:2], "choices": [["a cat", "it"]] * 2},
            "probabilities",
        ),
        (keras_bert.BertQuestionAnswerer, {"question": TEXTS[:2], "context": TEXTS[1:3]}, "score"),
        (keras_bert.BertMaskedLM, {"text": ["the [MASK] sat", "a [MASK]"]}, "score"),
    ],
)
def test_exports_keep_it(cls, columns, score, tmp_path):
    model = make(cls, temperature=3.0)
    wanted = asked(model, **columns)[score]
    model.save(tmp_path / "model.keras")
    assert keras.saving.load_model(tmp_path / "model.keras").temperature == 3
    model.export(tmp_path / "export", verbose=0)
    loaded = tf.saved_model.load(str(tmp_path / "export"))
    found = loaded.signatures["serving_default"](**{n: tf.constant(v) for n, v in columns.items()})
    np.testing.assert_allclose(found[score], wanted, atol=1e-5)
    assert np.abs(asked(make(cls), **columns)[score] - wanted).max() > 1e-3
