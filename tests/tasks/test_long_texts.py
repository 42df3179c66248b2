"""Texts that are longer than a row, read in windows."""

import keras
import numpy as np
import pytest

from keras_bert import (
    BertBackbone,
    BertClassifier,
    BertClassifierPreprocessor,
    BertMultipleChoice,
    BertMultipleChoicePreprocessor,
    BertTextEmbedder,
    BertTextEmbedderPreprocessor,
    BertTokenClassifierPreprocessor,
    BertTokenizer,
)
from keras_bert.training import ValidationScores

# The subject is how windows are cut, weighted and pooled.
pytestmark = pytest.mark.usefixtures("eager")

WORDS = [*"[PAD] [UNK] [CLS] [SEP] [MASK]".split(), *"abcdefghijklmnopqrstuvwxyz"]


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    backbone = BertBackbone(len(WORDS), 1, 2, 12, 20, 32, initializer_range=0.5)
    preprocessor = BertClassifierPreprocessor(BertTokenizer(WORDS), 12, "bucket")
    return BertClassifier(backbone, 3, preprocessor=preprocessor)


def rows(model, *texts):
    """The logits of texts that fit into a row."""
    return model.predict(*texts, verbose=0).astype("float64")


def test_windows_are_merged_by_their_lengths(model):
    """23 letters, 10 a row, 3 shared: windows from 0, 7 and 14, of 10, 10 and 9 pieces."""
    letters = list("abcdefghijklmnopqrstuvw")
    parts = [" ".join(letters[a:b]) for a, b in ((0, 10), (7, 17), (14, 23))]
    expected = np.average(rows(model, parts), axis=0, weights=[10, 10, 9])
    found = model.predict([" ".join(letters)], overlap=3)
    np.testing.assert_allclose(found, expected[None], atol=1e-6)
    assert not np.allclose(found, rows(model, [" ".join(letters)]), atol=1e-3)


def test_short_and_empty_texts_are_as_they_were(model):
    texts = ["a b c", "", "z " * 10, "q"]
    np.testing.assert_allclose(model.predict(texts, overlap=4), rows(model, texts), atol=1e-6)
    np.testing.assert_allclose(model.predict("a b c", overlap=4), rows(model, texts)[0], atol=1e-6)
    assert model.predict([], overlap=4).shape == (0, 3)


def test_of_a_pair_the_second_is_cut(model):
    """9 pieces a row: the first text keeps 4, so that 5 are left for the second, 4 of them new."""
    first, second = "a b c d e f", list("klmnopqrs")
    parts = [" ".join(second[a:b]) for a, b in ((0, 5), (4, 9))]
    expected = rows(model, (["a b c d"] * 2, parts)).mean(axis=0)
    found = model.predict(([first], [" ".join(second)]), overlap=1)
    np.testing.assert_allclose(found, expected[None], atol=1e-6)


def test_the_label_is_found_wherever_it_stands(model):
    text = " ".join("abcdefghijklmnopqrstuvw")
    labels, probabilities = model.classify([text, "a"], overlap=3)
    logits = model.predict([text, "a"], overlap=3)
    assert labels == logits.argmax(axis=1).tolist() and probabilities.shape == (2,)


def test_what_has_no_windows(model):
    with pytest.raises(ValueError, match="overlap=10: expected from 0 to less than"):
        model.predict(["a b"], overlap=10)
    ids = {name: np.ones((1, 4), "int32") for name in ("token_ids", "segment_ids", "padding_mask")}
    with pytest.raises(ValueError, match="overlap= needs texts, got dict"):
        model.predict(ids, overlap=2)


# === The beginning and the end ===


def kept(pieces: list, room: int, tail: float) -> list:
    """As Sun et al. 2019 cut a text: the first and the last pieces."""
    if len(pieces) <= room:
        return pieces
    last = int(tail * room)
    return pieces[: room - last] + pieces[len(pieces) - last :]


@pytest.mark.parametrize("tail", [0.0, 0.25, 0.75, 1.0])
def test_texts_keep_their_beginning_and_their_end(tail):
    rng = np.random.default_rng(0)
    texts = [rng.choice(WORDS[5:], count).tolist() for count in (0, 3, 8, 9, 10, 11, 30)]
    side = BertClassifierPreprocessor(BertTokenizer(WORDS), 12, tail=tail)
    rows = side([" ".join(text) for text in texts])
    for text, row, mask in zip(
        texts, *(rows[n].numpy() for n in ("token_ids", "padding_mask")), strict=True
    ):
        expected = ["[CLS]", *kept(text, 10, tail), "[SEP]"]
        assert [WORDS[i] for i in row[mask == 1]] == expected
    # Of a pair the longer text is cut first, each in the same way.
    for first, second in ((texts[6], texts[1]), (texts[1], texts[6]), (texts[5], texts[6])):
        row = side(([" ".join(first)], [" ".join(second)]))["token_ids"][0].numpy()
        sizes = [len(first), len(second)]
        while sum(sizes) > 9:
            sizes[0 if sizes[0] > sizes[1] else 1] -= 1
        expected = [
            "[CLS]",
            *kept(first, sizes[0], tail),
            "[SEP]",
            *kept(second, sizes[1], tail),
            "[SEP]",
        ]
        assert [WORDS[i] for i in row] == expected


def test_the_published_numbers():
    """The first 128 and the last 382 of 510 pieces."""
    text = [WORDS[5 + i % 26] for i in range(1000)]
    row = BertClassifierPreprocessor(BertTokenizer(WORDS), 512, tail=0.75)(" ".join(text))
    found = [WORDS[i] for i in row["token_ids"].numpy()]
    assert found == ["[CLS]", *text[:128], *text[-382:], "[SEP]"]


@pytest.mark.thorough
def test_tails_in_presets_files_and_exports(tmp_path):
    import tensorflow as tf

    backbone = BertBackbone(len(WORDS), 1, 2, 12, 20, 32, initializer_range=0.5)
    texts = [" ".join("abcdefghijklmnopqrstuvw"), "z y x " * 9]
    for name, task, side, arguments in (
        ("classifier", BertClassifier, BertClassifierPreprocessor, {"num_classes": 3}),
        ("embedder", BertTextEmbedder, BertTextEmbedderPreprocessor, {}),
        ("choices", BertMultipleChoice, BertMultipleChoicePreprocessor, {}),
    ):
        side = side(BertTokenizer(WORDS), 12, "bucket", 0.75)
        model = task(backbone, preprocessor=side, **arguments)
        x = (["a", "b"], [texts, texts]) if name == "choices" else texts
        expected = model.predict(x, verbose=0)
        model.save_to_preset(str(tmp_path / name))
        assert task.from_preset(tmp_path / name, tail=0.5).preprocessor.tail == 0.5
        model.save(tmp_path / f"{name}.keras")
        for loaded in (
            task.from_preset(tmp_path / name),
            keras.saving.load_model(tmp_path / f"{name}.keras"),
        ):
            assert loaded.preprocessor.tail == 0.75
            np.testing.assert_allclose(loaded.predict(x, verbose=0), expected, atol=1e-6)
        if name == "classifier":
            model.export(tmp_path / "served")
            serve = tf.saved_model.load(tmp_path / "served").signatures["serving_default"]
            np.testing.assert_allclose(
                serve(text=tf.constant(texts))["logits"], expected, atol=1e-5
            )
        model.preprocessor.tail = 0.0
        assert not np.allclose(model.predict(x, verbose=0), expected, atol=1e-4)


def test_tails_that_make_no_sense():
    for tail in (-0.1, 1.5, "0.5", None):
        with pytest.raises(ValueError, match="tail=.*expected a number from 0 to 1"):
            BertClassifierPreprocessor(BertTokenizer(WORDS), 12, tail=tail)
    with pytest.raises(ValueError, match="BertTokenClassifierPreprocessor does not truncate"):
        BertTokenClassifierPreprocessor(BertTokenizer(WORDS), 12, tail=0.5)


# === Training on windows ===

LETTERS = list("abcdefghijklmnopqrstuvw")
LONG = [" ".join(LETTERS), "a b c", " ".join(LETTERS[::-1][:13])]
WINDOWS = [  # of LONG: 10 a row, 3 shared; with the shares of their texts
    (" ".join(LETTERS[0:10]), 0, 10 / 29),
    (" ".join(LETTERS[7:17]), 0, 10 / 29),
    (" ".join(LETTERS[14:23]), 0, 9 / 29),
    ("a b c", 1, 1.0),
    (" ".join(LETTERS[::-1][0:10]), 2, 10 / 16),
    (" ".join(LETTERS[::-1][7:13]), 2, 6 / 16),
]
PROBLEMS = {
    "single_label": [2, 0, 1],
    "multi_label": [[0, 1], [], [2]],
    "regression": [[0.1, 0.2, 0.3], [1, 1, 1], [0, 0.5, 0]],
}


def learner(problem="single_label"):
    keras.utils.set_random_seed(0)
    backbone = BertBackbone(len(WORDS), 1, 2, 12, 20, 32, hidden_dropout=0.0, attention_dropout=0.0)
    preprocessor = BertClassifierPreprocessor(BertTokenizer(WORDS), 12, "bucket")
    model = BertClassifier(backbone, 3, preprocessor=preprocessor, problem=problem, dropout=0.0)
    model.compile(optimizer=keras.optimizers.SGD(0.1))
    return model


@pytest.mark.parametrize("padding", ["bucket", "full"])
def test_windows_in_memory_have_no_padding(padding):
    model = learner()
    model.preprocessor.sequence_length, model.preprocessor.padding = 32, padding
    many = [*LONG, "a b", *["a"] * 40]
    rows, text, _ = model.ragged_rows(many, np.arange(44) % 3, overlap=3)
    assert text.tolist() == (np.arange(44) % 3).tolist()
    assert rows["token_ids"].row_lengths().numpy().tolist() == [25, 5, 15, 4, *[3] * 40]
    model.fit(LONG[1:], [2, 0], overlap=3, verbose=0)
    assert model.training_batch(0)[0]["token_ids"].shape == (2, 16 if padding == "bucket" else 32)


@pytest.mark.one_quick
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("weights", [None, [1.0, 0.5, 2.0]])
def test_training_on_windows_is_training_on_their_texts(problem, weights):
    y = PROBLEMS[problem]
    mine, other = learner(problem), learner(problem)
    history = mine.fit(LONG, y, sample_weight=weights, overlap=3, epochs=3, verbose=0).history
    texts, numbers, shares = zip(*WINDOWS, strict=True)
    own = [share * (weights or [1.0] * 3)[n] for share, n in zip(shares, numbers, strict=True)]
    labels = [y[n] for n in numbers]
    expected = other.fit(list(texts), labels, sample_weight=own, epochs=3, verbose=0).history
    for name, values in expected.items():
        np.testing.assert_allclose(history[name], values, rtol=1e-4)
    for one, two in zip(mine.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


def test_loss_and_metrics_are_those_of_pooled_answers():
    model, y = learner(), np.array([2, 0, 1])
    pooled = model.predict(LONG, overlap=3, verbose=0).astype("float64")
    losses = -np.log(np.exp(pooled)[range(3), y] / np.exp(pooled).sum(axis=1))
    right = pooled.argmax(axis=1) == y
    np.testing.assert_allclose(
        model.evaluate(LONG, y, overlap=3), [losses.mean(), right.mean()], rtol=1e-5
    )
    weights = [1.0, 3.0, 0.5]
    expected = [np.average(v, weights=weights) for v in (losses, right)]
    found = model.evaluate(LONG, y, sample_weight=weights, overlap=3, return_dict=True)
    np.testing.assert_allclose([found["loss"], found["accuracy"]], expected, rtol=1e-5)
    model.compile(optimizer=keras.optimizers.SGD(0.0))
    stop = keras.callbacks.EarlyStopping("val_loss")
    history = model.fit(
        LONG, y, overlap=3, validation_data=(LONG, y, weights), callbacks=[stop], verbose=0
    ).history
    assert history["val_loss"] == [pytest.approx(expected[0], rel=1e-5)]
    assert history["val_accuracy"] == [pytest.approx(expected[1], rel=1e-5)]
    scores = ValidationScores((LONG, y), overlap=3)
    history = model.fit(LONG, y, overlap=3, callbacks=[scores], verbose=0).history
    assert history["val_accuracy"] == [pytest.approx(right.mean())]
    split = model.fit(LONG, y, overlap=3, validation_split=0.4, verbose=0).history
    assert split["val_loss"] == [pytest.approx(losses[1:].mean(), rel=1e-5)]


@pytest.mark.thorough
def test_windows_of_names_and_class_weights():
    model = learner()
    model.labels = ["x", "y", "z"]
    history = model.fit(LONG, ["z", "x", "y"], overlap=3, class_weight={"x": 2.0}, verbose=0)
    same = learner().fit(LONG, [2, 0, 1], overlap=3, sample_weight=[1, 2, 1], verbose=0)
    assert history.history["loss"] == pytest.approx(same.history["loss"], rel=1e-5)
    # Balanced are texts, whatever the number of their windows.
    even = learner().fit(LONG, [2, 0, 1], overlap=3, class_weight="balanced", verbose=0)
    plain = learner().fit(LONG, [2, 0, 1], overlap=3, verbose=0)
    assert even.history["loss"] == pytest.approx(plain.history["loss"], rel=1e-5)


def test_what_cannot_be_trained_in_windows():
    model = learner()
    with pytest.raises(ValueError, match="overlap=10: expected from 0 to less"):
        model.fit(LONG, [0, 1, 2], overlap=10, verbose=0)
    with pytest.raises(ValueError, match="overlap= needs texts, got dict"):
        model.fit(model.preprocessor(LONG), [0, 1, 2], overlap=2, verbose=0)
    with pytest.raises(ValueError, match="labels of length 2: expected 3, as many as texts"):
        model.fit(LONG, [0, 1], overlap=2, verbose=0)
