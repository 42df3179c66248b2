"""The token classifier from sentences to entities, with a chain over the labels and without."""

import functools
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import (
    BertBackbone,
    BertTokenClassifier,
    BertTokenClassifierPreprocessor,
    BertTokenizer,
    save_checkpoint,
)
from keras_bert.checkpoints import open_checkpoint
from keras_bert.data import TaggedSentences
from keras_bert.layers.crf import CRF
from keras_bert.metrics import entity_scores
from keras_bert.tasks.conversion import convert_checkpoint, task_class

VOCAB = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] ada grace hopper met in paris london . un ##aff ##able 人 京"
)
VOCAB = VOCAB.split()
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def model_for(labels=LABELS, length=16, **kwargs):
    keras.utils.set_random_seed(3)
    backbone = BertBackbone(len(VOCAB), 1, 2, 16, 24, 64, hidden_dropout=0.0, attention_dropout=0.0)
    text_side = BertTokenClassifierPreprocessor(BertTokenizer(VOCAB), length)
    kwargs = {"dropout": 0.0} | kwargs
    return BertTokenClassifier(backbone, labels=labels, preprocessor=text_side, **kwargs)


def sentences(count=64, seed=0):
    """Persons of one or two words and places, among other words."""
    rng = np.random.default_rng(seed)
    words, tags = [], []
    for _ in range(count):
        words.append([])
        tags.append([])
        for _ in range(rng.integers(1, 5)):
            new, kinds = [
                (["ada"], ["B-PER"]),
                (["grace", "hopper"], ["B-PER", "I-PER"]),
                (["paris"], ["B-LOC"]),
                (["unaffable"], ["O"]),
                (["met", "in"], ["O", "O"]),
            ][rng.integers(5)]
            words[-1] += new
            tags[-1] += kinds
    return words, tags


@pytest.fixture(scope="module", params=[False, True], ids=["softmax", "crf"])
def fitted(request):
    model = model_for(crf=request.param)
    model.compile(learning_rate=2e-2)
    words, tags = sentences()
    model.history = model.fit(words, tags, batch_size=16, epochs=6, verbose=0).history
    return model


def test_tags_are_learnt(fitted):
    pytest.importorskip("seqeval")
    words, tags = sentences(40, seed=1)
    predicted = fitted.predict_tags(words)
    assert [len(row) for row in predicted] == [len(row) for row in words]
    assert entity_scores(tags, predicted)["f1"] > 0.95
    assert fitted.history["loss"][-1] < 0.1 < fitted.history["loss"][0]
    assert fitted.history["accuracy"][-1] > 0.95


def test_entities_of_texts_are_exact_substrings(fitted):
    texts = ["  Ada\u0301 met\tGRACE  Hopper 😀 in Paris", "", "unaffable", "京Paris人"]
    found = fitted.tag(texts)
    spans = [[(e.text, e.label, e.start, e.end) for e in row] for row in found]
    assert spans[0] == [
        ("Ada\u0301", "PER", 2, 6),
        ("GRACE  Hopper", "PER", 11, 24),
        ("Paris", "LOC", 30, 35),
    ]
    assert spans[1:3] == [[], []] and ("Paris", "LOC", 1, 6) in spans[3]
    for text, row in zip(texts, found, strict=True):
        for entity in row:
            assert text[entity.start : entity.end] == entity.text and 0.2 < entity.score <= 1
    one = fitted.tag(texts[0])
    assert [entity[:4] for entity in one] == [entity[:4] for entity in found[0]]
    (entities,) = fitted.tag([["Paris", "met", "Grace", "Hopper"]])
    assert [entity[:4] for entity in entities] == [
        ("Paris", "LOC", 0, 1),
        ("Grace Hopper", "PER", 2, 4),
    ]
    assert fitted.words(texts)[0] == ["Ada\u0301", "met", "GRACE", "Hopper", "😀", "in", "Paris"]


def test_a_long_sentence_has_a_tag_for_every_word(fitted):
    words = ["grace", "hopper", "met", "paris", "unaffable"] * 30
    tags = ["B-PER", "I-PER", "O", "B-LOC", "O"] * 30
    (predicted,) = fitted.predict_tags([words])
    assert len(predicted) == 150 and predicted == tags
    assert len(fitted.tag([words])[0]) == 60
    assert fitted.predict_tags([]) == fitted.tag([]) == fitted.predict([]) == []
    (scores,) = fitted.predict([words])
    assert scores.shape == (150, 5)


@pytest.mark.slow
def test_presets_and_keras_files_come_back(fitted, tmp_path):
    words, tags = sentences(7, seed=2)
    expected, losses = fitted.tag(words), fitted.evaluate(words, tags, verbose=0)
    fitted.save_to_preset(str(tmp_path / "preset"))
    fitted.save(tmp_path / "model.keras")
    kinds = (
        BertTokenClassifier.from_preset(tmp_path / "preset"),
        keras.saving.load_model(tmp_path / "model.keras"),
    )
    for loaded in kinds:
        assert loaded.labels == LABELS and loaded.crf == fitted.crf
        found = loaded.tag(words)
        assert [[e[:4] for e in row] for row in found] == [[e[:4] for e in row] for row in expected]
        scores = [[entity.score for row in rows for entity in row] for rows in (found, expected)]
        np.testing.assert_allclose(*scores, rtol=1e-4)
    # The file holds the loss and the optimizer too.
    np.testing.assert_allclose(kinds[1].evaluate(words, tags, verbose=0), losses, rtol=1e-5)
    if fitted.crf:
        assert kinds[0].loading_report.loaded[-3:] == [w.path for w in kinds[0].chain.weights]
    with pytest.raises(ValueError, match=f"{'with' if fitted.crf else 'without'} a CRF"):
        BertTokenClassifier.from_preset(tmp_path / "preset", crf=not fitted.crf)
    fresh = BertTokenClassifier.from_preset(
        tmp_path / "preset", labels=LABELS, crf=not fitted.crf, skip_mismatch=True
    )
    assert fresh.crf != fitted.crf and fresh.labels == LABELS


@pytest.mark.one_quick
def test_the_loss_does_not_count_padding(fitted):
    words, tags = sentences(11, seed=3)
    words[0], tags[0] = words[0] + ["met"] * 20, tags[0] + ["O"] * 20  # windows too
    short, y, weights = fitted.make_rows(words, tags)
    assert short["token_ids"].shape[1] == 16 and (weights == (y >= 0)).all()
    room = [(0, 0), (0, 48)]
    long = {name: np.pad(value, room) for name, value in short.items()}
    y_long = np.pad(y, room, constant_values=-1)
    fitted.preprocessor.padding = "full"
    try:
        found = [
            fitted.evaluate(x, labels, batch_size=64, verbose=0)
            for x, labels in ((short, y), (long, y_long))
        ]
    finally:
        fitted.preprocessor.padding = "bucket"
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
    in_lists = fitted.evaluate(words, tags, batch_size=3, verbose=0)
    np.testing.assert_allclose(in_lists, found[0], atol=1e-6)
    dataset = tf.data.Dataset.from_tensor_slices((short, y)).batch(4)
    np.testing.assert_allclose(fitted.evaluate(dataset, verbose=0), found[0], atol=1e-6)


def test_the_loss_is_the_weighted_mean_over_words():  # label 0 is a label
    model = model_for()
    words, tags = sentences(9, seed=4)
    tags = model.encode_labels(tags)
    tags[1][0] = -1  # a word without a label
    assert 0 in tags[0] or 0 in tags[2]
    weights = np.array([1, 2, 0, 1, 1, 0.5, 3, 1, 1])
    sums = np.zeros(2)
    for logits, row, weight in zip(model.predict(words), tags, weights, strict=True):
        logits = logits.astype("float64")
        losses = np.logaddexp.reduce(logits, axis=1) - logits[np.arange(len(row)), row]
        sums += weight * np.array([losses[row >= 0].sum(), (row >= 0).sum()])
    found = model.evaluate(words, tags, sample_weight=weights, batch_size=4, verbose=0)
    np.testing.assert_allclose(found[0], sums[0] / sums[1], rtol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("xla", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_step_trains_the_chain(xla):
    model = model_for(crf=True)
    rate = 0.5
    model.compile(optimizer=keras.optimizers.SGD(rate), jit_compile=xla)
    words, tags = sentences(5, seed=5)
    ids, labels, weights = model.make_rows(words, tags)
    with tf.GradientTape() as tape:
        shares = model.chain.token_losses(labels, model(ids))
        loss = tf.reduce_sum(shares * weights) / weights.sum()
    before = [w.numpy() for w in model.chain.weights]
    gradients = tape.gradient(loss, [w.value for w in model.chain.weights])
    history = model.fit(words, tags, batch_size=5, verbose=0).history
    np.testing.assert_allclose(history["loss"], loss, rtol=1e-5)
    for old, gradient, weight in zip(before, gradients, model.chain.weights, strict=True):
        assert np.abs(gradient).max() > 1e-3
        np.testing.assert_allclose(weight.numpy(), old - rate * gradient, atol=1e-6)


@pytest.mark.slow  # half a minute, most of it compilation
def test_a_step_trains_the_chain_on_jax(tmp_path):
    if importlib.util.find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    script = Path(__file__).with_name("tag_on_jax.py")
    command = [sys.executable, str(script), str(tmp_path / "found.npz")]
    environment = {**os.environ, "PYTHONPATH": str(script.parents[2])}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600)
    assert run.returncode == 0, run.stderr[-3000:]
    found = dict(np.load(tmp_path / "found.npz"))
    assert found["right"].all() and found["entities"].tolist() == [["Grace", "PER"], ["Ada", "PER"]]
    chain = CRF(2)
    chain.build((None, None, 2))
    chain.set_weights([found[f"before{i}"] for i in range(3)])
    with tf.GradientTape() as tape:
        shares = chain.token_losses(found["labels"], found["emissions"])
        loss = tf.reduce_sum(shares) / (found["labels"] >= 0).sum()
    np.testing.assert_allclose(found["loss"], loss, rtol=1e-5)
    for i, gradient in enumerate(tape.gradient(loss, chain.trainable_weights)):
        expected = found[f"before{i}"] - 0.5 * gradient
        np.testing.assert_allclose(found[f"after{i}"], expected, atol=1e-6)


def test_other_forms_keep_the_head(tmp_path):
    model = model_for()
    words, _ = sentences(5, seed=6)
    save_checkpoint(model, tmp_path / "hf", "huggingface")
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert config["architectures"] == ["BertForTokenClassification"]
    assert config["id2label"]["3"] == "B-LOC"
    loaded = BertTokenClassifier.from_preset(tmp_path / "hf", sequence_length=16)
    assert loaded.labels == LABELS
    assert loaded.loading_report.new == ["pooler/kernel", "pooler/bias"]  # not in that form
    for mine, theirs in zip(model.predict(words), loaded.predict(words), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    chained = BertTokenClassifier.from_preset(tmp_path / "hf", crf=True)
    assert len(chained.loading_report.new) == 5
    np.testing.assert_array_equal(chained.head.kernel, model.head.kernel)

    assert task_class(open_checkpoint(tmp_path / "hf")) is BertTokenClassifier
    convert_checkpoint(tmp_path / "hf", tmp_path / "ours", "keras_bert")
    assert BertTokenClassifier.from_preset(tmp_path / "ours").labels == LABELS


@pytest.mark.slow
def test_validation_class_weights_and_names_that_are_found():
    words, tags = sentences(12, seed=7)
    words[0], tags[0] = ["grace", "hopper", "in", "paris"], ["B-PER", "I-PER", "O", "B-LOC"]
    model = model_for(labels=None, num_classes=4)
    data = TaggedSentences(words, tags, [0] * 12, list(range(1, 13)))
    history = model.fit(
        data, validation_data=data.head(5), class_weight={"O": 0.0}, batch_size=6, verbose=0
    ).history
    assert model.labels == ["O", "B-LOC", "B-PER", "I-PER"] and len(history["val_loss"]) == 1
    found = model.evaluate(words[:5], tags[:5], verbose=0)
    np.testing.assert_allclose(found[0], history["val_loss"], rtol=1e-5)
    _, y, _ = model.make_rows(words, tags)
    batch = model.training_batch(0)
    assert (batch[2] == (batch[1] > 0)).all() and (batch[1] == 0).any()
    assert (y >= 0).sum() == sum(map(len, words))


def test_texts_can_be_trained_on():
    model = model_for()
    words, tags = sentences(3, seed=8)
    by_words = model.make_rows(words, tags)
    by_texts = model.make_rows([" ".join(row) for row in words], tags)
    for name, value in by_words[0].items():
        np.testing.assert_array_equal(by_texts[0][name], value)
    np.testing.assert_array_equal(by_texts[1], by_words[1])
    with pytest.raises(ValueError, match="sentence 1: 4 words, 3 tags"):
        model.make_rows(["ada", "Paris, in Paris"], [["B-PER"], ["B-LOC", "O", "B-LOC"]])


@pytest.mark.parametrize(
    ("x", "y", "error", "match"),
    [
        ([["ada", "met"], ["ada"]], [["B-PER", "O"], []], ValueError, "sentence 1: 1 words, 0"),
        ([["ada"]], [["B-PER"], ["O"]], ValueError, "1 sentences but tags for 2"),
        ([["ada", "met"]], [["B-PER", "PER"]], ValueError, "tag 'PER' of word 1 in sentence 0 is"),
        ([["ada"]], [[5]], ValueError, "tag 5 of word 0 in sentence 0 is unknown; expected O, B-P"),
        ([["ada"]], [[True]], ValueError, "tag True of word 0"),
        ([["ada"]], ["B-PER"], ValueError, "tags of sentence 0 are 'B-PER'; expected a list"),
        ([["ada"], "ada"], [["O"], ["O"]], TypeError, r"sentences\[1\] is 'ada' of type str"),
        ([["ada", None]], [["O", "O"]], TypeError, r"sentences\[0\]\[1\]=None"),
        (["ada", ["ada"]], [["O"], ["O"]], TypeError, r"sentences\[1\]=\['ada'\]"),
        ([], [], ValueError, "there are no sentences"),
        ("ada", [["O"]], TypeError, "sentences are one string"),
        (
            TaggedSentences([["ada"], ["in", "paris"]], [["O"], ["O"]], [0, 0], [1, 7]),
            None,
            ValueError,
            r"sentence 1 \(line 7\): 2 words, 1 tags",
        ),
        (
            TaggedSentences([["ada"], ["paris"]], [["O"], ["B-XY"]], [0, 0], [1, 7]),
            None,
            ValueError,
            r"tag 'B-XY' of word 0 in sentence 1 \(line 7\) is unknown",
        ),
    ],
)
def test_sentences_and_tags_that_are_wrong(x, y, error, match):
    with pytest.raises(error, match=match):
        untrained().fit(x, y)


@functools.cache
def untrained():
    return model_for()


def test_settings_that_are_wrong():
    model = model_for(crf=True, labels=["DT", "NN", "VB"])
    with pytest.raises(ValueError, match="class_weight is not supported with crf=True"):
        model.fit([["ada"]], [["DT"]], class_weight={"DT": 2.0})
    with pytest.raises(ValueError, match="label -100 at position 1 of row 0.*-1 where there"):
        model.encode_labels(np.array([[0, -100]]))
    with pytest.raises(ValueError, match="datasets of ids"):
        model.fit(tf.data.Dataset.from_tensor_slices((["ada"], [0])).batch(1))
    with pytest.raises(ValueError, match="label 'DT': expected O, B-TYPE.*predict_tags"):
        model.tag("ada met")
    with pytest.raises(ValueError, match="expected 2 or more"):
        model_for(labels=["O"])
    bare = BertTokenClassifier(model.backbone, num_classes=3)
    with pytest.raises(ValueError, match="no preprocessor.*BertTokenClassifierPreprocessor"):
        bare.predict_tags([["ada"]])


def test_rows_of_ids_come_back_whole():
    """40 rows of 40 tokens, half of which have 5 and half 30; one begins with padding."""
    model = model_for(length=40)
    rng = np.random.default_rng(0)
    used = np.where(np.arange(40) % 2, 5, 30)
    mask = (np.arange(40) < used[:, None]).astype("int32")
    mask[0] = np.arange(40) >= 30
    ids = {
        "token_ids": rng.integers(5, len(VOCAB), (40, 40)).astype("int32"),
        "segment_ids": np.zeros((40, 40), "int32"),
        "padding_mask": mask,
    }
    found = model.predict(ids, batch_size=8)
    assert found.shape == (40, 40, len(LABELS))
    expected = np.asarray(model(ids))
    np.testing.assert_allclose(found[mask == 1], expected[mask == 1], atol=1e-5)


def test_labels_that_were_refused_are_forgotten():
    model = model_for(labels=None, num_classes=2)
    with pytest.raises(ValueError):
        model.encode_labels(["O", "B"])  # a sentence's tags are a list
    model.encode_labels([["B-X"], ["O"]])
    assert model.labels == ["O", "B-X"]
