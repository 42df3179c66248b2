"""Quantized models are saved, loaded and exported with the same outputs."""

import keras
import numpy as np
import pytest

from keras_bert import (
    BertBackbone,
    BertClassifier,
    BertClassifierPreprocessor,
    BertMaskedLM,
    BertTokenizer,
    save_checkpoint,
)

# Keras says so of each layer without large matrices.
pytestmark = pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize` method")
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat"]


def make(mode):
    """A classifier whose backbone is quantized; its head of a few numbers is not."""
    backbone = BertBackbone(31, 1, 3, 12, 20, 11, initializer_range=0.3)
    text_side = BertClassifierPreprocessor(BertTokenizer(WORDS), 11)
    model = BertClassifier(backbone, 3, preprocessor=text_side)
    before = np.asarray(model(ids()))
    model.quantize(mode)
    assert model.backbone.embeddings.word.quantization_mode == mode
    assert 1e-4 < abs(np.asarray(model(ids())) - before).max() < 0.5
    return model


@pytest.fixture(scope="module")
def quantized():
    return make("int8")


def ids():
    token_ids = np.random.default_rng(0).integers(0, 31, (3, 9)).astype("int32")
    mask = (np.arange(9) < [[9], [4], [7]]).astype("int32")
    return {"token_ids": token_ids, "segment_ids": token_ids % 2, "padding_mask": mask}


def check_same(model, again):
    types = {weight.path: weight.dtype for weight in model.weights}
    assert {weight.path: weight.dtype for weight in again.weights} == types
    np.testing.assert_array_equal(again(ids()), model(ids()))


@pytest.mark.parametrize("mode", ["int8", pytest.param("int4", marks=pytest.mark.slow)])
def test_preset(mode, quantized, tmp_path):
    model = quantized if mode == "int8" else make(mode)
    model.save_to_preset(tmp_path / "preset")
    again = BertClassifier.from_preset(tmp_path / "preset")
    assert not again.loading_report.new
    check_same(model, again)


def test_keras_file(quantized, tmp_path):
    quantized.save(tmp_path / "model.keras")
    check_same(quantized, keras.saving.load_model(tmp_path / "model.keras"))


@pytest.mark.parametrize("text", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_export(text, quantized, tmp_path):
    import tensorflow as tf

    quantized.export(tmp_path / "export", text=text)
    signatures = tf.saved_model.load(str(tmp_path / "export")).signatures
    found = signatures["tokens"](**{name: tf.constant(v) for name, v in ids().items()})
    np.testing.assert_allclose(found["logits"], quantized(ids()), atol=1e-5)
    if text:
        texts = ["the cats sat", "cat"]
        found = signatures["serving_default"](tf.constant(texts))
        np.testing.assert_allclose(found["logits"], quantized.predict(texts, verbose=0), atol=1e-5)


def test_other_forms_hold_no_quantized_weights(quantized, tmp_path):
    with pytest.raises(ValueError, match="the model is quantized: embeddings/word/embeddings is"):
        save_checkpoint(quantized, tmp_path / "google", "google")
    assert not (tmp_path / "google").exists()


@pytest.mark.parametrize(("mode", "far"), [("int8", 0.1), ("int4", 1.0)])
def test_the_masked_lm_head_reads_a_quantized_word_table(mode, far, tmp_path):
    model = BertMaskedLM(BertBackbone(31, 1, 3, 12, 20, 11, initializer_range=0.3))
    batch = ids() | {"mask_positions": np.array([[0, 3], [1, 2], [6, 5]], "int32")}
    before = np.asarray(model(batch)["mlm"])
    model.quantize(mode)
    after = np.asarray(model(batch)["mlm"])
    assert 1e-4 < abs(after - before).max() < far
    model.save_to_preset(tmp_path / "preset")
    np.testing.assert_array_equal(
        BertMaskedLM.from_preset(tmp_path / "preset")(batch)["mlm"], after
    )
