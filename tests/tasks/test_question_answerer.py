"""Questions answered by a piece of a text, from strings to scores."""

import functools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import (
    BertBackbone,
    BertQuestionAnswerer,
    BertQuestionAnswererPreprocessor,
    BertTokenizer,
)
from keras_bert.checkpoints import contents_of, open_checkpoint, save_checkpoint
from keras_bert.data import SquadExample, read_predictions, write_predictions
from keras_bert.data.squad import Answer
from keras_bert.metrics import squad_v2_scores
from keras_bert.tasks.conversion import convert_checkpoint
from keras_bert.text.best_answers import NO_TOKEN

NAMES = "ada bo cy dee eve finn gus hal".split()
PLACES = "paris rome oslo bern lima cairo 北京 😀".split()
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] where is the cat . who 北 京".split() + NAMES + PLACES[:6]


@functools.cache
def tokenizer():
    """One for all: each new one is traced anew."""
    return BertTokenizer(WORDS)


def model_for(length=24, seed=3, **kwargs):
    keras.utils.set_random_seed(seed)
    backbone = BertBackbone(len(WORDS), 1, 2, 32, 48, 32, hidden_dropout=0.0, attention_dropout=0.0)
    preprocessor = BertQuestionAnswererPreprocessor(
        tokenizer(), length, stride=5, max_question_length=6
    )
    return BertQuestionAnswerer(backbone, preprocessor, **kwargs)


def examples(count, seed=0, impossible=0.0):
    """A text names a person and a place, or one of them; the question asks who or where."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        asked = rng.integers(2)
        golds = [str(rng.choice(NAMES)), str(rng.choice(PLACES))]
        none = rng.random() < impossible
        words = [golds[1 - asked]] if none else golds
        words = rng.permutation(words + ["the", "cat", ".", "."][: rng.integers(5)])
        context = "  " + "  ".join(words)  # spaces in front, and two at a time
        answers = () if none else (Answer(golds[asked], context.index(golds[asked])),)
        question = ["who is the", "where is"][asked]
        found.append(SquadExample(str(number), "", question, context, answers, bool(none)))
    return found


def columns(data):
    return [e.question for e in data], [e.context for e in data]


@pytest.fixture(scope="module")
def trained():
    """A model that learnt to tell people from places, and that one may be missing."""
    model = model_for()
    model.compile(learning_rate=1e-2)
    data = examples(320, impossible=0.25)
    history = model.fit(data, batch_size=32, epochs=20, verbose=0)
    assert history.history["start_accuracy"][-1] > 0.9
    assert {*history.history} == {
        *("loss", "start_loss", "end_loss", "start_accuracy", "end_accuracy")
    }
    model.null_threshold = None  # an answer always, though some questions had none
    return model


def test_answers_are_learnt(trained):
    data = examples(60, seed=1)
    found = trained.answer(*columns(data))
    right = [p.text == e.answers[0].text for p, e in zip(found, data, strict=True)]
    assert np.mean(right) > 0.8
    for e, p in zip(data, found, strict=True):
        assert p.text and p.text == e.context[p.start : p.end]
        assert 0 < p.score <= 1 and len(p.candidates) == 1
    one = trained.answer(data[0].question, data[0].context)
    assert one.text == found[0].text and one.score == pytest.approx(found[0].score, abs=1e-6)
    same = trained.answer([e.question for e in data[:3]], data[0].context)
    assert same[0].text == found[0].text and len(same) == 3


def test_a_long_context_is_read_in_windows(trained):
    data = examples(40, seed=2)
    long = [e.context + " the ." * 12 for e in data], [" the ." * 12 + e.context for e in data]
    for contexts in long:
        rows = trained.preprocessor.encode([e.question for e in data], contexts)
        assert len(rows.example) > len(data)
        found = trained.answer([e.question for e in data], contexts)
        right = [p.text == e.answers[0].text for p, e in zip(found, data, strict=True)]
        assert np.mean(right) > 0.6
        for context, p in zip(contexts, found, strict=True):
            assert p.text == context[p.start : p.end]
    outputs = trained.predict(([e.question for e in data], contexts))
    assert outputs["start"].shape == (len(rows.example), 24)
    assert (outputs["end"][rows.padding_mask.numpy() == 0] == np.float32(NO_TOKEN)).all()


@pytest.mark.thorough
def test_candidates(trained):
    e = examples(1, seed=4)[0]
    best = trained.answer(e.question, e.context, top_k=20, null_threshold=math.inf)
    texts = [c.text for c in best.candidates]
    assert len(set(texts)) == len(texts) >= 10 and "" in texts
    scores = [c.score for c in best.candidates]
    assert scores == sorted(scores, reverse=True) and sum(scores) == pytest.approx(1)
    for c in best.candidates:
        assert e.context[c.start : c.end] == c.text
    null = next(c for c in best.candidates if not c.text)
    span = next(c for c in best.candidates if c.text)
    odds = null.start_logit + null.end_logit - span.start_logit - span.end_logit
    assert best.null_score == pytest.approx(odds, abs=1e-9)
    assert best.text == span.text and best.score == span.score
    none = trained.answer(e.question, e.context, null_threshold=-1e30)
    assert (none.text, none.start, none.end, none.score) == ("", 0, 0, null.score)
    three = trained.answer(e.question, e.context, top_k=3)
    assert [c.text for c in three.candidates] == [t for t in texts if t][:3]
    short = trained.answer(e.question, e.context, top_k=20, max_answer_length=1)
    assert all(len(c.text.split()) == 1 for c in short.candidates)


def test_the_threshold_is_tuned_and_kept(trained, tmp_path):
    data = examples(60, seed=5, impossible=0.4)
    references = {e.id: [a.text for a in e.answers] for e in data}
    always = trained.answer_examples(data)
    assert all(p.text for p in always.values())  # without a threshold
    threshold = trained.tune_null_threshold(data)
    try:
        found = trained.answer_examples(data)
        assert trained.null_threshold == threshold
        texts, odds = ({k: getattr(p, n) for k, p in found.items()} for n in ("text", "null_score"))
        assert all((odds[k] > threshold) == (text == "") for k, text in texts.items())
        scores = squad_v2_scores(references, texts)
        before = squad_v2_scores(
            references,
            {k: p.text for k, p in always.items()},
            {k: p.null_score for k, p in always.items()},
        )
        assert scores["f1"] == pytest.approx(before["best_f1"]) and scores["f1"] > before["f1"]
        assert scores["NoAns_exact"] > 60 and scores["HasAns_exact"] > 60
        write_predictions(tmp_path, texts, null_odds=odds, examples=data)
        assert read_predictions(tmp_path / "predictions.json") == texts

        trained.save_to_preset(str(tmp_path / "preset"))
        loaded = BertQuestionAnswerer.from_preset(tmp_path / "preset")
        assert loaded.null_threshold == threshold
        for name in loaded.preprocessor.settings:
            assert getattr(loaded.preprocessor, name) == getattr(trained.preprocessor, name)
        again = loaded.answer_examples(data)
        assert {k: p.text for k, p in again.items()} == texts
        np.testing.assert_allclose([p.null_score for p in again.values()], [*odds.values()])
    finally:
        trained.null_threshold = None


def test_a_keras_file_keeps_all(tmp_path):
    model = model_for(dropout=0.25, null_threshold=-1.5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert (loaded.dropout, loaded.null_threshold) == (0.25, -1.5)
    ids, _, _ = model.make_rows(columns(examples(5)))
    found = loaded.predict(ids)
    for name, value in model.predict(ids).items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.one_quick
@pytest.mark.parametrize("form", ["huggingface", "google"])
def test_the_head_in_other_forms(tmp_path, form):
    model = model_for()
    save_checkpoint(model, tmp_path / form, form)
    contents = open_checkpoint(tmp_path / form).contents
    assert contents.head == "span" and contents.tensors["head/kernel"].shape == (32, 2)
    loaded = BertQuestionAnswerer.from_preset(tmp_path / form, sequence_length=24, stride=5)
    assert loaded.preprocessor.max_question_length == 12  # half of the row
    assert {"head/kernel", "head/bias"} <= {*loaded.loading_report.loaded}
    assert loaded.dropout == 0.0
    ids, _, _ = model.make_rows(columns(examples(5)))
    found = loaded.predict(ids)
    for name, value in model.predict(ids).items():
        np.testing.assert_allclose(found[name], value, atol=1e-6)
    if form == "huggingface":
        convert_checkpoint(tmp_path / form, tmp_path / "ours", "keras_bert")
        kept = BertQuestionAnswerer.from_preset(tmp_path / "ours")
        np.testing.assert_array_equal(kept.head.kernel, model.head.kernel)
        assert contents_of(kept).head == "span"


def test_a_checkpoint_without_such_a_head(tmp_path, caplog):
    save_checkpoint(model_for().backbone, tmp_path / "hf", "huggingface")
    model = BertQuestionAnswerer.from_preset(tmp_path / "hf", sequence_length=21)
    assert sorted(model.loading_report.new) == ["head/bias", "head/kernel"]
    assert "head/kernel" in caplog.text
    assert model.preprocessor is None  # a backbone alone has no vocabulary
    with pytest.raises(ValueError, match="has no preprocessor"):
        model.answer("where", "the cat")


@pytest.mark.thorough
def test_the_loss_is_the_mean_of_both_ends_by_row():
    model = model_for()
    data = examples(7)
    data[2] = SquadExample("2", "", data[2].question, data[2].context, (), True)
    weights = np.array([1, 2, 1, 0, 0.5, 1, 3])
    x, y, w = model.make_rows(columns(data), data, weights)
    assert len(y) == len(w) >= 7 and (y[2] == 0).all() and (w == weights).all()
    logits = model.predict(columns(data))
    losses = []
    for name, label in (("start", y[:, 0]), ("end", y[:, 1])):
        value = logits[name].astype("float64")
        losses.append(np.log(np.exp(value).sum(axis=1)) - value[np.arange(len(y)), label])
    expected = (np.mean(losses, axis=0) * w).sum() / w.sum()
    for given in ((data,), (columns(data), data), (x, y)):
        found = model.evaluate(
            *given, batch_size=4, sample_weight=weights, verbose=0, return_dict=True
        )
        assert found["loss"] == pytest.approx(expected, rel=1e-5)
    ids = tf.data.Dataset.from_tensor_slices((x, y, w.astype("float32"))).batch(3)
    found = model.evaluate(ids, verbose=0, return_dict=True)
    assert found["loss"] == pytest.approx(expected, rel=1e-5)
    # A row is cut to what its batch needs, and padding has no part in the softmax.
    full = {name: np.pad(v, [(0, 0), (0, 8)]) for name, v in x.items()}
    wide = model.predict(full, verbose=0)
    for name, value in logits.items():
        np.testing.assert_allclose(wide[name][:, :24], value, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_validation_and_other_data_for_fit():
    model = model_for()
    data = examples(12)
    x, y = columns(data), [e.answers[0] for e in data]
    y[3] = None
    losses = [
        model.fit(x, y, batch_size=5, verbose=0, validation_data=v).history["val_loss"][-1]
        for v in (data, (x, [e.answers[0] for e in data], np.ones(12)))
    ]
    assert 0 < losses[1] < losses[0]
    history = model.fit(data, batch_size=5, validation_split=0.25, verbose=0)
    assert history.history["val_end_loss"][-1] > 0


def test_mixed_precision_gives_float32():
    keras.config.set_dtype_policy("mixed_bfloat16")
    outputs = model_for()(model_for().preprocessor((["where"], ["the cat"])))
    assert {str(value.dtype) for value in outputs.values()} == {"<dtype: 'float32'>"}


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (("cat", 3), "row 1: the answer 'cat' should start at character 3, but there the context"),
        (("cat", -3), "row 1: .* has ''"),
        (("", 4), "row 1: the answer '' should start"),
        ("cat", "row 1: the answer is 'cat'; expected"),
        (("cat", None), "row 1: the answer is .*; expected"),
        ((" ", 3), "row 1: no piece of the context is in the answer"),
    ],
)
def test_answers_that_are_wrong(answer, match):
    model, contexts = model_for(), ["the cat", "the cat"]
    with pytest.raises(ValueError, match=match):
        model.fit((["where", "where"], contexts), [("cat", 4), answer])


def test_examples_that_are_wrong():
    model = model_for()
    good = SquadExample("a", "", "where", "the cat", (Answer("cat", 4),))
    moved = SquadExample("b", "", "where", "the cat", (Answer("cat", 5),))
    with pytest.raises(ValueError, match="row 1, id 'b': the answer 'cat' should start"):
        model.fit([good, moved])
    with pytest.raises(ValueError, match="row 1, id 'b': it has no answer, and is_impossible"):
        model.fit([good, SquadExample("b", "", "where", "the cat")])
    with pytest.raises(ValueError, match="none of its answers stands"):
        model.fit([SquadExample("b", "", "where", "the cat", (Answer("dog", None),))])
    with pytest.raises(ValueError, match="answers beside a list of SquadExample"):
        model.fit([good], [("cat", 4)])
    with pytest.raises(ValueError, match="2 first texts but 1 second"):
        model.fit((["where", "is"], ["the cat"]), [None, None])
    with pytest.raises(ValueError, match="labels of length 2: expected 1, as many as texts"):
        model.fit((["where"], ["the cat"]), [None, None])
    with pytest.raises(TypeError, match="expected .questions, contexts. or a list of SquadExample"):
        model.fit(["where"], [None])
    texts = tf.data.Dataset.from_tensors(((["where"], ["the cat"]), [[3, 3]]))
    with pytest.raises(ValueError, match="the dataset gives texts"):
        model.fit(texts)
    ids, labels, _ = model.make_rows((["where"], ["the cat"]), [("cat", 4)])
    for wrong in ([[3, 2]], [[-1, 2]], [[3, 24]], [[0.5, 1.0]], [3]):
        with pytest.raises(ValueError, match="no span|expected"):
            model.fit(ids, np.array(wrong))
    with pytest.raises(ValueError, match="labels have the keys .'first', 'last'.; expected start"):
        model.fit(ids, {"first": labels[:, 0], "last": labels[:, 1]})
    with pytest.raises(ValueError, match="class_weight is not supported"):
        model.fit(ids, labels, class_weight={0: 1.0})


@pytest.mark.thorough
def test_settings_that_are_wrong():
    model = model_for()
    with pytest.raises(ValueError, match="null_threshold=inf"):
        model.null_threshold = math.inf
    with pytest.raises(ValueError, match="top_k=21"):
        model.answer("where", "the cat", top_k=21)
    with pytest.raises(ValueError, match="null_threshold=nan: expected a number or None"):
        model.answer("where", "the cat", null_threshold=math.nan)
    with pytest.raises(TypeError, match="firsts\\[0\\]=None"):
        model.answer([None], ["the cat"])
    with pytest.raises(ValueError, match="exceeds the backbone's 32 positions"):
        model_for(length=33)
    assert model.answer([], []) == []
    empty = model.answer(["where", "where is"], ["", "the cat"])
    assert empty[0].text == "" and math.isfinite(empty[0].null_score) and empty[1].text


@pytest.mark.one_quick
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("form", ["examples", "columns", "split"])
def test_data_without_answers_sets_the_threshold(form, tmp_path, caplog):
    data, dev = examples(40, impossible=0.4), examples(30, seed=1, impossible=0.4)
    model = model_for()
    assert model.null_threshold is None
    if form == "examples":
        model.fit(data, validation_data=dev, verbose=0)
    elif form == "columns":
        answers = [e.answers[0] if e.answers else None for e in dev]
        model.fit(data, validation_data=(columns(dev), answers), verbose=0)
    else:
        model.fit(data + dev, validation_split=30 / 70, verbose=0)
    said = [r.getMessage() for r in caplog.records if "null_threshold" in r.getMessage()]
    assert said[0].startswith("null_threshold=0.0") and "tuned on 30 questions" in said[1]
    found = model.null_threshold
    assert found == pytest.approx(model_copy_tunes(model, dev))
    model.save_to_preset(tmp_path / "p")
    assert BertQuestionAnswerer.from_preset(tmp_path / "p").null_threshold == found

    model.fit(data, verbose=0)  # nothing to tune on
    assert model.null_threshold == 0.0
    model.null_threshold = 1.5  # chosen
    model.fit(data, validation_data=dev, verbose=0)
    assert model.null_threshold == 1.5


def model_copy_tunes(model, dev):
    before = model.null_threshold, model._threshold_is_chosen
    found = model.tune_null_threshold(dev)
    model._null_threshold, model._threshold_is_chosen = before
    return found


@pytest.mark.thorough
@pytest.mark.usefixtures("eager")
def test_data_with_answers_alone_sets_no_threshold():
    model = model_for()
    model.fit(examples(10), validation_data=examples(10, seed=1, impossible=0.5), verbose=0)
    assert model.null_threshold is None
