"""A classifier's other problems: several labels a text, and numbers."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertClassifier, BertClassifierPreprocessor, BertTokenizer
from keras_bert.checkpoints import open_checkpoint, save_checkpoint
from keras_bert.metrics import evaluate

TOY_VOCAB = "[PAD] [UNK] [CLS] [SEP] [MASK] the . a cat mat hello notebook strasse fine sat".split()
WORDS = ["cat", "mat", "hello"]


def model_for(problem, **kwargs):
    keras.utils.set_random_seed(3)
    backbone = BertBackbone(
        len(TOY_VOCAB), 1, 2, 32, 48, 32, hidden_dropout=0.0, attention_dropout=0.0
    )
    preprocessor = BertClassifierPreprocessor(BertTokenizer(TOY_VOCAB), 12, "bucket")
    return BertClassifier(backbone, preprocessor=preprocessor, problem=problem, **kwargs)


def texts_and_words(count=96, seed=0):
    """Texts of 0 to 2 different words each."""
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(WORDS, rng.integers(0, 3), replace=False).tolist() for _ in range(count)]
    return [" ".join(["the", *words, "."]) for words in chosen], chosen


@pytest.mark.slow
def test_several_labels_are_learnt_by_name(tmp_path):
    texts, words = texts_and_words(256)
    model = model_for("multi_label", labels=WORDS)
    model.compile(learning_rate=5e-3)
    history = model.fit(texts, words, batch_size=16, epochs=80, verbose=0)
    assert history.history["accuracy"][-1] > 0.97
    new_texts, new_words = texts_and_words(40, seed=1)
    labels, probabilities = model.classify(new_texts, verbose=0)
    assert probabilities.shape == (40, len(WORDS))
    right = [set(a) == set(b) for a, b in zip(labels, new_words, strict=True)]
    assert np.mean(right) > 0.8
    assert all(label == sorted(label, key=WORDS.index) for label in labels)

    thresholds = model.tune_thresholds(new_texts, new_words, verbose=0)
    scores = [
        evaluate(["micro_f1"], model.encode_labels(new_words), probabilities, t)["micro_f1"]
        for t in (0.5, thresholds)
    ]
    assert scores[1] >= scores[0]
    model.thresholds = [0.25, 0.5, 0.75]
    labels, _ = model.classify(new_texts, verbose=0)
    model.save_to_preset(str(tmp_path / "preset"))
    loaded = BertClassifier.from_preset(tmp_path / "preset")
    assert loaded.thresholds == model.thresholds and loaded.problem == "multi_label"
    assert loaded.classify(new_texts, verbose=0)[0] == labels
    assert loaded.classify("the cat .", verbose=0)[1].shape == (3,)


def test_the_loss_of_several_labels_is_the_mean_over_labels_and_rows():
    texts, words = texts_and_words(7)
    model = model_for("multi_label", labels=WORDS)
    logits = model.predict(texts, verbose=0).astype("float64")
    truth = np.array([[word in row for word in WORDS] for row in words])
    losses = np.logaddexp(0, np.where(truth, -logits, logits)).mean(axis=1)
    weights = np.array([1, 2, 0, 1, 1, 0.5, 3])
    found = model.evaluate(texts, words, batch_size=4, sample_weight=weights, verbose=0)
    np.testing.assert_allclose(found[0], (losses * weights).sum() / weights.sum(), rtol=1e-6)
    assert np.array_equal(model.encode_labels(truth.astype(int)), truth)


@pytest.mark.slow
def test_numbers_are_learnt(tmp_path):
    texts, words = texts_and_words(128)
    numbers = [1.5 * len(row) for row in words]
    model = model_for("regression")
    model.compile(learning_rate=1e-2)
    history = model.fit(texts, numbers, batch_size=16, epochs=30, verbose=0)
    assert history.history["pearson"][-1] > 0.9
    new_texts, new_words = texts_and_words(40, seed=1)
    predicted = model.predict(new_texts, verbose=0)
    assert predicted.shape == (40, 1)
    scores = evaluate(["pearson"], [1.5 * len(row) for row in new_words], predicted)
    assert scores["pearson"] > 0.8
    model.save_to_preset(str(tmp_path / "preset"))
    loaded = BertClassifier.from_preset(tmp_path / "preset")
    assert loaded.problem == "regression" and loaded.num_classes == 1
    np.testing.assert_array_equal(loaded.predict(new_texts, verbose=0), predicted)
    with pytest.raises(ValueError, match="regression has no labels"):
        model.classify(new_texts)


@pytest.mark.thorough
def test_the_squared_error_does_not_broadcast():
    model = model_for("regression")
    loss = model.default_loss()
    assert float(loss(model.encode_labels([1, 2]), np.array([[1.0], [2.0]]))) == 0.0
    texts = ["the cat .", "a mat ."]
    predicted = model.predict(texts, verbose=0)
    labels = predicted[:, 0] + [0.0, 2.0]
    found = model.evaluate(texts, labels, verbose=0)
    np.testing.assert_allclose(found[0], 2.0, rtol=1e-5)
    in_dataset = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(2)
    np.testing.assert_allclose(model.evaluate(in_dataset, verbose=0)[0], 2.0, rtol=1e-5)


@pytest.mark.parametrize(
    "problem", ["regression", pytest.param("multi_label", marks=pytest.mark.slow)]
)
def test_a_keras_file_keeps_the_problem(tmp_path, problem):
    model = model_for(problem, num_classes=3)
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    assert loaded.problem == problem and loaded.thresholds == model.thresholds
    texts = ["the cat sat", "a mat"]
    np.testing.assert_array_equal(loaded.predict(texts, verbose=0), model.predict(texts, verbose=0))


def test_marks_and_ids_are_told_apart():
    """`read_table` gives 0 and 1 for each class, as lists."""
    model = model_for("multi_label", labels=WORDS)
    marks = [[0, 1, 0], [1, 0, 1], [0, 0, 0]]
    np.testing.assert_array_equal(model.encode_labels(marks), marks)
    np.testing.assert_array_equal(model.encode_labels([[1], [0, 2], []]), marks)
    np.testing.assert_array_equal(model.encode_labels([["mat"], ["cat", "hello"], []]), marks)
    np.testing.assert_array_equal(
        model.encode_labels(np.array([["mat", "cat"], ["cat", "hello"]])), [[1, 1, 0], [1, 0, 1]]
    )


@pytest.mark.parametrize("problem", ["multi_label", "regression"])
def test_other_forms_keep_the_problem(tmp_path, problem):
    model = model_for(problem, num_classes=3)
    if problem == "multi_label":
        model.thresholds = [0.25, 0.5, 0.75]
        for form in ("google", "kerashub"):
            save_checkpoint(model, tmp_path / form, form)
            assert BertClassifier.from_preset(tmp_path / form).thresholds == [0.25, 0.5, 0.75]
    save_checkpoint(model, tmp_path / "hf", "huggingface")
    said = json.loads((tmp_path / "hf" / "config.json").read_text())["problem_type"]
    assert said == {"multi_label": "multi_label_classification"}.get(problem, problem)
    assert open_checkpoint(tmp_path / "hf").contents.problem == problem
    again = BertClassifier.from_preset(tmp_path / "hf")
    assert again.problem == problem and again.thresholds == model.thresholds


class ByName(list):
    """As a pandas Series with an index of its own: [0] is a name, not the first row."""

    def __getitem__(self, name):
        raise KeyError(name)


@pytest.mark.parametrize(
    ("problem", "labels", "match"),
    [
        ("multi_label", [["cat"], "mat"], "labels of row 1 are 'mat'; expected a list"),
        ("multi_label", [["cat"], ["dog"]], "label 'dog' in row 1 is unknown; expected cat, mat"),
        ("multi_label", [["cat", "cat"], []], "label 'cat' in row 0 is there twice"),
        ("multi_label", [[0], [3]], "label 3 in row 1 is unknown"),
        ("multi_label", np.array([[0, 2]] * 2), r"shape \(2, 2\).*expected 0 or 1 for each of 3"),
        ("regression", [0.5, float("nan")], "row 1 is not finite"),
        ("regression", ["0.5", "high"], "label 'high' in row 1 is no number"),
        ("regression", ByName(["0.5", "high"]), "label 'high' in row 1 is no number"),
        ("regression", [[1, 2], [3, 4]], r"labels of shape \(2, 2\): expected numbers of shape"),
    ],
)
def test_labels_that_are_wrong(problem, labels, match):
    model = model_for(problem, **({"labels": WORDS} if problem == "multi_label" else {}))
    with pytest.raises(ValueError, match=match):
        model.fit(["the cat", "a mat"], labels)


def test_settings_that_are_wrong():
    with pytest.raises(ValueError, match="problem='ranking'"):
        model_for("ranking", num_classes=2)
    with pytest.raises(ValueError, match="thresholds are of multi-label"):
        model_for("single_label", num_classes=2, thresholds=[0.5, 0.5])
    with pytest.raises(ValueError, match="expected 2 numbers from 0 to 1"):
        model_for("multi_label", num_classes=2, thresholds=[0.5])
    with pytest.raises(ValueError, match="class_weight is not supported"):
        model_for("regression").fit(["the cat"], [1.0], class_weight={0: 2.0})
    with pytest.raises(ValueError, match="has no thresholds"):
        model_for("regression").tune_thresholds(["the cat"], [1.0])
