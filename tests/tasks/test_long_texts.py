"""Texts that are longer than a row, read in windows."""

import keras
import numpy as np
import pytest

from keras_bert import BertBackbone, BertClassifier, BertClassifierPreprocessor, BertTokenizer

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
