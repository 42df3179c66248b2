"""A causal backbone in every form that keeps a model: it must never come back as another model."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert
from keras_bert.checkpoints import open_checkpoint

TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] the a cat sat on mat dog ##s slept it ran . ?".split()
TEXTS = ["the cat sat on the mat .", "a dog slept"]
SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 12}


@pytest.fixture
def model():
    keras.utils.set_random_seed(5)
    backbone = keras_bert.BertBackbone(len(TOKENS), **SIZES, max_sequence_length=24, causal=True)
    tokenizer = keras_bert.BertTokenizer(TOKENS)
    return keras_bert.BertPretrainer(
        backbone, False, keras_bert.BertMaskedLMPreprocessor(tokenizer, 16)
    )


def totals(model):
    return [score.total for score in model.score(TEXTS)]


@pytest.mark.thorough
def test_own_presets_and_keras_files(model, tmp_path):
    expected = totals(model)
    model.save_to_preset(str(tmp_path / "preset"))
    model.save(tmp_path / "model.keras")
    for again in (
        keras_bert.BertPretrainer.from_preset(str(tmp_path / "preset")),
        keras.saving.load_model(tmp_path / "model.keras"),
    ):
        assert again.backbone.causal
        np.testing.assert_allclose(totals(again), expected, rtol=1e-6)
    # Settings from before there was a choice are BERT's.
    config = json.loads((tmp_path / "preset" / "config.json").read_text())
    del config["config"]["causal"]
    (tmp_path / "preset" / "config.json").write_text(json.dumps(config))
    assert keras_bert.BertBackbone.from_preset(str(tmp_path / "preset")).causal is False


@pytest.mark.one_quick
@pytest.mark.parametrize("form", ["google", "huggingface", "kerashub"])
def test_other_forms_keep_it_beside(model, tmp_path, form):
    notes = keras_bert.save_checkpoint(model, tmp_path / "saved", form)
    assert sum("causal=True is kept in keras_bert.json" in note for note in notes) == 1
    again = keras_bert.BertPretrainer.from_preset(str(tmp_path / "saved"), next_sentence=False)
    assert again.backbone.causal
    np.testing.assert_allclose(totals(again), totals(model), rtol=1e-5)
    third = keras_bert.save_checkpoint(
        open_checkpoint(tmp_path / "saved").contents, tmp_path / "third", "google"
    )
    assert any("causal=True" in note for note in third)
    assert keras_bert.BertBackbone.from_preset(str(tmp_path / "third")).causal
    side = tmp_path / "saved" / "keras_bert.json"
    values = json.loads(side.read_text())
    values["config"]["causal"] = "yes"
    side.write_text(json.dumps(values))
    with pytest.raises(ValueError, match="keras_bert.json: unexpected config"):
        open_checkpoint(tmp_path / "saved")


def test_without_it_no_form_names_it(tmp_path):
    backbone = keras_bert.BertBackbone(len(TOKENS), **SIZES)
    notes = keras_bert.save_checkpoint(backbone, tmp_path / "saved", "google")
    assert not any("causal" in note for note in notes)
    assert "causal" not in (tmp_path / "saved" / "keras_bert.json").read_text()


@pytest.mark.thorough
@pytest.mark.optimized  # 48 steps are faster in a graph
def test_a_classifier_learns_from_the_last_token_and_is_exported(model, tmp_path):
    model.save_to_preset(str(tmp_path / "preset"))
    classifier = keras_bert.BertClassifier.from_preset(str(tmp_path / "preset"), num_classes=2)
    classifier.compile(learning_rate=1e-2)
    texts = ["the cat ran .", "the cat ran ?"] * 8  # told apart by the last word alone
    keras.utils.set_random_seed(0)
    classifier.fit(texts, [0, 1] * 8, epochs=12, batch_size=4, verbose=0)
    expected = classifier.predict(TEXTS + texts[:2])
    assert expected[2:].argmax(1).tolist() == [0, 1]
    classifier.export(str(tmp_path / "served"), verbose=0)
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["serving_default"]
    found = served(text=tf.constant(TEXTS + texts[:2]))
    logits = found["logits"] if "logits" in found else None
    assert logits is not None, list(found)
    np.testing.assert_allclose(logits, expected, atol=1e-5)
