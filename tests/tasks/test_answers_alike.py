"""Answers of few examples, of many, and of exports are the same, whatever was changed before."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert
from keras_bert.data.ragged import dense
from tests.tasks.tiny import TASKS, made

TEXTS = ["the cat sat on the mat .", "a dog", "it ran . who ran ?", "the mat"]
OTHERS = ["a dog slept", "the cat", "who ?", "it sat on the mat"]
SPANS = [[[0, 3], [4, 7]], [[0, 1], [2, 5]], [[0, 2], [3, 6]], [[0, 3], [4, 7]]]
TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]

# How each task is asked: (arguments of the constructor, the method with columns of examples).
ASKED = {
    "BertClassifier": ({"num_classes": 3}, lambda m, t, o, s: m.classify(t)),
    "BertTokenClassifier": ({"labels": TAGS, "num_classes": None}, lambda m, t, o, s: m.tag(t)),
    "BertQuestionAnswerer": ({}, lambda m, t, o, s: m.answer(o, t, top_k=2)),
    "BertMultipleChoice": ({}, lambda m, t, o, s: m.choose(o, [[a, a[:3]] for a in t])),
    "BertRelationClassifier": ({"num_classes": 3}, lambda m, t, o, s: m.relate(t, s)),
    "BertTextEmbedder": ({}, lambda m, t, o, s: m.embed(t)),
    "BertMaskedLM": ({}, lambda m, t, o, s: m.fill([f"{a} [MASK]" for a in t], top_k=3)),
    "BertPretrainer": ({}, lambda m, t, o, s: m.next_sentence(t, o)),
}


def task_of(cls, **settings):
    keras.utils.set_random_seed(2)
    model = cls(**made(cls, **(ASKED[cls.__name__][0] | settings)))
    rng = np.random.default_rng(5)
    for weight in model.weights:  # spread answers apart
        if weight.dtype == "float32":
            weight.assign(rng.normal(0, 0.4, weight.shape))
    return model


def ask(model, times):
    """What a task answers to four examples, so many times over."""
    columns = (part * times for part in (TEXTS, OTHERS, SPANS))
    return ASKED[type(model).__name__][1](model, *columns)


def numbers(found):
    """Answers as (words, numbers)."""
    words, values = [], []
    for leaf in tf.nest.flatten(keras.tree.map_structure(_plain, found)):
        (words if isinstance(leaf, str) else values).append(leaf)
    return words, np.concatenate([np.ravel(v).astype("float64") for v in values])


def _plain(value):
    names = getattr(value, "__dataclass_fields__", None)
    if names is None:
        return value
    return {name: keras.tree.map_structure(_plain, getattr(value, name)) for name in names}


def first(found):
    """The answers to the first four examples."""
    return tuple(part[:4] for part in found) if isinstance(found, tuple) else found[:4]


@pytest.mark.one_quick
@pytest.mark.parametrize("cls", TASKS)
def test_few_are_answered_as_many_are_and_as_without_a_graph(cls, request):
    model = task_of(cls)
    few, many = numbers(ask(model, 1)), numbers(first(ask(model, 12)))
    assert model.functions.made
    model.functions.made.clear()
    request.getfixturevalue("eager")
    without = numbers(ask(model, 1))
    assert not model.functions.made
    for found in (many, without):
        assert few[0] == found[0]
        np.testing.assert_allclose(few[1], found[1], rtol=1e-4, atol=1e-5)


@pytest.mark.one_quick
@pytest.mark.parametrize("times", [1, 12])
def test_settings_that_change_between_answers_are_heeded(times):
    model = task_of(keras_bert.BertClassifier, problem="multi_label")
    labels, probabilities = ask(model, times)
    model.thresholds = [1.0, 0.0, 1.0]
    assert ask(model, times)[0] == [[1]] * 4 * times != labels
    model.labels = ["a", "b", "c"]
    again, same = ask(model, times)
    assert again == [["b"]] * 4 * times
    np.testing.assert_allclose(same, probabilities, rtol=1e-6)

    model = task_of(keras_bert.BertQuestionAnswerer)
    assert any(found.text for found in ask(model, times))
    model.null_threshold = -1e6  # no question has an answer
    assert not any(found.text for found in ask(model, times))

    prompts = {"prompts": {"q": "who ran ? ", "p": ""}, "default_prompt": "p"}
    model = task_of(keras_bert.BertTextEmbedder, **prompts)
    before = ask(model, times)
    model.default_prompt = "q"
    after = ask(model, times)
    assert abs(after - before).max() > 1e-3
    model.default_prompt = None
    expected = model.embed([f"who ran ? {text}" for text in TEXTS * times])
    np.testing.assert_allclose(after, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("times", [1, 12])
def test_weights_that_change_between_answers_are_heeded(times):
    """Also those of a chain, which a graph would hold as constants."""
    model = task_of(keras_bert.BertTokenClassifier, crf=True)
    transitions = next(w for w in model.chain.weights if w.shape == (5, 5))
    transitions.assign(np.where(np.eye(5), -1e3, 0))  # neighbours have other tags
    for tags in model.predict_tags(TEXTS * times):
        assert all(a != b for a, b in itertools.pairwise(tags))
    transitions.assign(np.where(np.eye(5), 0, -1e3))  # a sentence has one tag
    assert all(len({*tags}) == 1 for tags in model.predict_tags(TEXTS * times))


@pytest.mark.one_quick
@pytest.mark.parametrize("cls", TASKS)
def test_an_export_answers_as_answers_to_does(cls, tmp_path):
    model = task_of(cls)
    answer = model.signatures()["serving_default"]
    columns = [answer.example[name] for name in answer.asks]
    data = tuple(columns) if len(columns) > 1 else columns[0]
    model.export(tmp_path / "served", verbose=0)
    serve = tf.saved_model.load(tmp_path / "served").signatures["serving_default"]
    served = serve(**{n: tf.constant(answer.example[n], c.dtype) for n, c in answer.asks.items()})
    found = model.answers_to(data)
    assert set(found) == set(served)
    for name, value in served.items():
        if value.dtype.is_floating:
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.one_quick
@pytest.mark.parametrize("cls", TASKS)
def test_rows_of_many_examples_are_those_of_few(cls, monkeypatch):
    """Many are made by a graph, some at a time."""
    texts, others, spans = (part * 6 for part in (TEXTS, OTHERS, SPANS))
    data = {
        "BertQuestionAnswerer": (others, texts),
        "BertMultipleChoice": (others, [[a, a[:3]] for a in texts]),
        "BertRelationClassifier": (texts, spans),
        "BertTextEmbedder": (texts, others),
        "BertMaskedLM": (texts, others),
    }.get(cls.__name__, texts)
    settings = {"next_sentence": False} if cls is keras_bert.BertPretrainer else {}
    model = task_of(cls, **settings)
    expected = model.ragged_rows(data)[0]
    monkeypatch.setattr("keras_bert.tasks.task.CHUNK", 5)
    some = model.ragged_rows(data)[0]
    monkeypatch.setattr("keras_bert.tasks.task.MANY", 20)
    in_graph = model.ragged_rows(data)[0]
    for name, value in expected.items():
        for found in (some[name], in_graph[name]):
            assert type(found) is type(value), name
            lists = [v.to_list() if hasattr(v, "to_list") else v.tolist() for v in (found, value)]
            assert lists[0] == lists[1], name
    width = model.preprocessor.sequence_length
    padded = {n: dense(v, np.arange(len(texts)), width) for n, v in in_graph.items()}
    assert tuple(padded["token_ids"].shape)[-1] == width


@pytest.mark.thorough
def test_ids_are_answered_and_scored_as_their_texts_are():
    model, y = task_of(keras_bert.BertClassifier), [0, 1, 2, 0]
    ids = {name: np.asarray(value) for name, value in model.preprocessor(TEXTS).items()}
    labels, probabilities = model.classify(ids)
    expected = model.classify(TEXTS)
    assert labels == expected[0]
    np.testing.assert_allclose(probabilities, expected[1], rtol=1e-4)
    assert [*model.classify(ids, top_k=2)[0]] == [*model.classify(TEXTS, top_k=2)[0]]
    assert model.scores(ids, y) == pytest.approx(model.scores(TEXTS, y), rel=1e-6)
    relator = task_of(keras_bert.BertRelationClassifier)
    rows = {n: np.asarray(v) for n, v in relator.make_rows((TEXTS, SPANS))[0].items()}
    assert relator.scores(rows, y) == relator.scores((TEXTS, SPANS), y)


@pytest.mark.thorough
def test_scores_of_labels_that_are_numbers_are_those_of_their_names():
    """In the logs of `fit` labels come encoded: they are not names once more."""
    model = task_of(keras_bert.BertClassifier, num_classes=None, labels=[1, 0, 5])
    y = [0, 1, 5, 0]
    scoring = keras_bert.training.ValidationScores()
    data = (TEXTS, y)
    history = model.fit(*data, validation_data=data, callbacks=[scoring], verbose=0).history
    (name,) = [n for n in history if "macro_f1" in n]
    assert history[name][-1] == pytest.approx(model.scores(*data)["macro_f1"])


@pytest.mark.thorough
def test_no_positional_argument_is_lost_with_overlap():
    model, y = task_of(keras_bert.BertClassifier), [0, 1, 2, 0]
    by_name = model.evaluate(
        TEXTS, y, batch_size=2, sample_weight=[1, 2, 3, 4], overlap=2, verbose=0
    )
    by_place = model.evaluate(TEXTS, y, 2, [1, 2, 3, 4], 2, verbose=0)
    assert by_place == by_name
    with pytest.raises(TypeError):
        model.fit(TEXTS, y, 2, 1, None, None, 2, 0.5)
    history = model.fit(TEXTS, y, 2, 2, None, (TEXTS, y), 2, verbose=0).history
    assert len(history["val_loss"]) == 2


@keras.saving.register_keras_serializable(package="tests")
class Weighted(keras_bert.tasks.Labelled):
    """A task of a user with a setting of its own."""

    backbone_cls = keras_bert.BertBackbone
    preprocessor_cls = keras_bert.BertClassifierPreprocessor

    def __init__(
        self, backbone, num_classes=2, labels=None, preprocessor=None, factor=1.0, **kwargs
    ):
        self.backbone, self.preprocessor = backbone, preprocessor
        self.num_classes, self.labels, self.factor = num_classes, labels, factor
        pooled = backbone(backbone.input)["pooled_output"]
        logits = keras.layers.Dense(num_classes, name="head")(pooled) * factor
        super().__init__(inputs=backbone.input, outputs=logits, **kwargs)

    def get_config(self):
        own = {"num_classes": self.num_classes, "labels": self.labels, "factor": self.factor}
        return super().get_config() | own


@pytest.mark.thorough
def test_a_preset_keeps_the_settings_of_a_users_labelled_task(tmp_path):
    model = Weighted(**made(keras_bert.BertClassifier), factor=3.0)
    model.save_to_preset(tmp_path / "preset")
    again = Weighted.from_preset(tmp_path / "preset")
    assert again.factor == 3.0 and again.num_classes == 2
    np.testing.assert_allclose(again.predict(TEXTS), model.predict(TEXTS), rtol=1e-5)


@pytest.mark.one_quick
@pytest.mark.parametrize("cls", TASKS)
def test_examples_that_are_answered_in_parts(cls, monkeypatch):
    model = task_of(cls)
    expected = numbers(ask(model, 10))
    monkeypatch.setattr(cls, "at_once", 7)
    found = numbers(ask(model, 10))
    assert found[0] == expected[0]
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-5)


@pytest.mark.thorough
def test_answers_of_other_widths_are_filled_up(monkeypatch):
    monkeypatch.setattr(keras_bert.BertMaskedLM, "at_once", 2)
    model = task_of(keras_bert.BertMaskedLM)
    texts = ["the [MASK]", "no masks", "[MASK] [MASK] [MASK]"]
    found = model.answers_to(texts)
    assert found["count"].tolist() == [1, 0, 3] and found["token"].shape == (3, 3, 5)
    assert (found["token"][0, 1:] == b"").all() and (found["id"][1] == -1).all()
    assert (found["score"][0, 1:] == 0).all() and (found["score"][2] > 0).all()


def test_entities_that_do_not_fit_are_found_among_many(monkeypatch):
    monkeypatch.setattr(keras_bert.BertRelationClassifier, "at_once", 5)
    model = task_of(keras_bert.BertRelationClassifier)
    texts, spans = TEXTS * 3, SPANS * 3
    texts[9], spans[9] = "cat " * 30 + "dog", [(0, 119), (120, 123)]
    with pytest.raises(ValueError, match="entities of row 9 do not fit"):
        model.relate(texts, spans)


@pytest.mark.thorough
def test_many_examples_train_under_a_strategy(monkeypatch):
    """Their rows come out of a graph here too."""
    monkeypatch.setattr("keras_bert.tasks.task.MANY", 8)
    alone = task_of(keras_bert.BertClassifier)
    strategy = tf.distribute.OneDeviceStrategy("cpu:0")
    with strategy.scope():
        model = task_of(keras_bert.BertClassifier)
    histories = [
        m.fit(TEXTS * 4, [0, 1, 2, 0] * 4, batch_size=8, shuffle=False, verbose=0).history["loss"]
        for m in (alone, model)
    ]
    np.testing.assert_allclose(histories[0], histories[1], rtol=1e-4)
    assert model.predict(TEXTS * 4, verbose=0).shape == (16, 3)
