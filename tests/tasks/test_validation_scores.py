"""Scores of answers during `fit`: in its logs, and to stop and choose by, for every task."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from sklearn.metrics import f1_score, matthews_corrcoef

from keras_bert import BertBackbone, BertRelationClassifier
from keras_bert.metrics import relation_scores, tagging_scores
from keras_bert.training import BestWeights, ValidationScores
from tests.tasks import (
    test_classifier,
    test_multiple_choice,
    test_question_answerer,
    test_relation_classifier,
    test_text_embedder,
    test_token_classifier,
)

# The subject is a callback between steps.
pytestmark = pytest.mark.usefixtures("eager")


def classifier():
    model = test_classifier.classifier(3, padding="bucket", labels=["a", "b", "c"])
    texts = ["calm", "storm", "calm wind", "the boat", "rain", "storm rain"]
    y = [*"abcabc"]
    found = [model.labels.index(name) for name in y], model.predict(texts, verbose=0).argmax(1)
    return (
        model,
        texts,
        y,
        {
            "accuracy": np.mean(np.equal(*found)),
            "macro_f1": f1_score(*found, average="macro", zero_division=0),
            "matthews": matthews_corrcoef(*found),
        },
    )


def several_labels():
    model = test_classifier.classifier(3, padding="bucket", problem="multi_label")
    model.thresholds = [0.4, 0.5, 0.6]
    texts, y = ["calm", "storm", "rain"], [[0], [], [1, 2]]
    right = np.array([[1, 0, 0], [0, 0, 0], [0, 1, 1]])
    found = 1 / (1 + np.exp(-model.predict(texts, verbose=0))) >= model.thresholds
    return (
        model,
        texts,
        y,
        {
            f"{kind}_f1": f1_score(right, found, average=kind, zero_division=0)
            for kind in ("micro", "macro", "samples")
        },
    )


def regression():
    model = test_classifier.classifier(None, padding="bucket", problem="regression")
    texts, y = ["calm", "storm", "rain"], [0.1, 0.7, 0.2]
    found = model.predict(texts, verbose=0)[:, 0]
    ranks = [np.argsort(np.argsort(v)) for v in (y, found)]
    return (
        model,
        texts,
        y,
        {
            "pearson": np.corrcoef(y, found)[0, 1],
            "spearman": np.corrcoef(*ranks)[0, 1],
            "mean_squared_error": np.mean(np.square(found - y)),
        },
    )


def tagger(**kwargs):
    model = test_token_classifier.model_for(**kwargs)
    words, tags = test_token_classifier.sentences(24)
    return model, words, tags, tagging_scores(tags, model.predict_tags(words))


def choices():
    model = test_multiple_choice.made()
    x = (test_multiple_choice.CONTEXTS, test_multiple_choice.CHOICES)
    y = [0, 1, 2, 0]
    return model, x, y, {"accuracy": np.mean(np.equal(model.choose(*x, verbose=0)[0], y))}


def relations():
    signs = test_relation_classifier.SIGNS
    backbone = BertBackbone(len(signs), 1, 2, 16, 24, 32)
    labels = ["Other", "In(e1,e2)", "In(e2,e1)"]
    text_side = test_relation_classifier.preprocessor()
    model = BertRelationClassifier(backbone, labels=labels, preprocessor=text_side)
    texts = ["the key was in a box", "her box by the drawer", "a drawer was the key ."]
    spans = [[(4, 7), (17, 20)], [(15, 21), (4, 7)], [(2, 8), (17, 20)]]
    y = ["In(e1,e2)", "In(e2,e1)", "In(e2,e1)"]
    found = model.relate(texts, spans, verbose=0)[0]
    return (
        model,
        (texts, spans),
        y,
        {
            "accuracy": np.mean(np.equal(found, y)),
            "macro_f1": f1_score(y, found, average="macro", zero_division=0),
            "f1": relation_scores(y, found).f1,
        },
    )


def questions():
    model = test_question_answerer.model_for()
    data = test_question_answerer.examples(12)
    answers = [(e.answers[0].text, e.answers[0].start) for e in data]
    x = test_question_answerer.columns(data)
    found = [answer.text for answer in model.answer(*x, verbose=0)]
    golds = [text for text, _ in answers]
    f1, exact = [], []
    for text, gold in zip(found, golds, strict=True):  # golds are single words
        words = [w for w in text.replace(".", " ").split() if w != "the"]
        f1.append(2 * (gold in words) / (len(words) + 1))
        exact.append(words == [gold])
    return model, x, answers, {"exact_match": 100 * np.mean(exact), "f1": 100 * np.mean(f1)}


def pairs():
    model = test_text_embedder.made(loss="cosine")
    x = (test_text_embedder.TEXTS, test_text_embedder.TEXTS[::-1])
    y = [0.1, 0.5, 1.0, 0.2, 0.7]
    found = model.similarity(*x)
    return model, x, y, {"pearson": np.corrcoef(y, found)[0, 1]}


def contrastive():
    model = test_text_embedder.made()
    x = (["a red cat", "green", "one dog"], ["red the", "dog", "green"])
    first, second = (model.embed(side) for side in x)
    units = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in (first, second)]
    nearest = (units[0] @ units[1].T).argmax(axis=1)
    return model, x, None, {"accuracy": np.mean(nearest == np.arange(3))}


TASKS = {
    case.__name__: case
    for case in (
        classifier,
        several_labels,
        regression,
        tagger,
        choices,
        relations,
        questions,
        pairs,
        contrastive,
    )
}


@pytest.mark.one_quick
@pytest.mark.parametrize("task", TASKS)
def test_scores_of_answers_are_in_the_logs_of_fit(task):
    model, x, y, expected = TASKS[task]()
    found = model.scores(x, y)
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-5)
    model.compile(learning_rate=1e-12)
    given = (x, y) if y is not None else (x,)
    stop = keras.callbacks.EarlyStopping(f"val_{[*expected][0]}", mode="max")
    # The scores are there whatever the order of the callbacks.
    history = model.fit(
        x, y, epochs=2, validation_data=given, callbacks=[stop, ValidationScores()], verbose=0
    ).history
    for name, value in expected.items():
        assert history[f"val_{name}"] == [pytest.approx(value, abs=1e-5)] * 2


@pytest.mark.thorough
def test_a_tagger_shows_the_f1_of_entities_by_itself(tmp_path):
    model, words, tags, _ = tagger()
    model.compile(learning_rate=1e-2)
    best = BestWeights(tmp_path / "best.weights.h5", "val_f1")
    stop = keras.callbacks.EarlyStopping("val_f1", mode="max", patience=2)
    held = test_token_classifier.sentences(12, seed=1)
    history = model.fit(
        words, tags, epochs=6, validation_data=held, callbacks=[best, stop], verbose=0
    ).history
    assert {"val_f1", "val_precision", "val_recall"} <= {*history}
    assert best.best == max(history["val_f1"]) > 0
    model.load_weights(tmp_path / "best.weights.h5")
    assert tagging_scores(held[1], model.predict_tags(held[0]))["f1"] == best.best
    spans = model.fit(
        ["ada met"],
        [[(0, 3, "PER")]],
        validation_split=0,
        verbose=0,
        validation_data=(["ada met"], [[(0, 3, "PER")]]),
    ).history
    assert "val_f1" in spans
    split = model.fit(words, tags, validation_split=0.2, verbose=0).history
    right, found = tags[-5:], model.predict_tags(words[-5:])
    assert split["val_f1"] == [tagging_scores(right, found)["f1"]]


def test_a_chain_and_long_sentences_are_scored_as_they_are_answered():
    model, *_ = tagger(crf=True, length=6)
    words = [["ada", "met", "grace", "hopper", "in", "paris", "."] * 3]
    tags = [["B-PER", "O", "B-PER", "I-PER", "O", "B-LOC", "O"] * 3]
    expected = tagging_scores(tags, model.predict_tags(words))
    assert model.scores(words, tags) == expected


def test_words_without_a_label_do_not_count():
    model, *_ = tagger()
    found = model.predict_tags([["ada", "met"]])[0]
    right = [[-1, model.labels.index(found[1])]]
    assert model.scores([["ada", "met"]], right)["accuracy"] == 1.0


def test_tags_that_mark_no_entities_cost_no_second_pass():
    model = test_token_classifier.model_for(["NOUN", "VERB"])
    data = [["ada", "met"]], [["NOUN", "VERB"]]
    assert "val_f1" not in model.fit(*data, validation_data=data, verbose=0).history
    assert {*model.scores(*data)} == {"accuracy"}


@pytest.mark.thorough
def test_other_data_than_that_of_validation():
    model, x, y, _ = classifier()
    other = ValidationScores((x, y), prefix="test_")
    history = model.fit(x, y, callbacks=[other], verbose=0).history
    assert history["test_macro_f1"] == [model.scores(x, y)["macro_f1"]]
    examples = test_question_answerer.examples(8, impossible=0.5)
    answerer = test_question_answerer.model_for()
    history = answerer.fit(
        examples, callbacks=[ValidationScores(examples)], validation_data=examples, verbose=0
    ).history
    assert history["val_f1"] == [answerer.scores(examples)["f1"]]


def test_what_cannot_be_scored_is_said_before_training():
    model, x, y, _ = classifier()
    with pytest.raises(ValueError, match="ValidationScores needs data in memory"):
        model.fit(x, y, callbacks=[ValidationScores()], verbose=0)
    data = tf.data.Dataset.from_tensor_slices((x, [0, 1, 2, 0, 1, 2])).batch(3)
    with pytest.raises(ValueError, match="ValidationScores needs data in memory"):
        model.fit(x, y, validation_data=data, callbacks=[ValidationScores()], verbose=0)
