from pathlib import Path

import keras
import numpy as np
import pytest

from keras_bert.tasks import BertTask

from bilstm import BiLSTMClassifier, BiLSTMQuestionAnswerer, BiLSTMTagger, LayerWeights

TINY = Path(__file__).parents[1] / "golden" / "tiny_one_block"


def test_padding_changes_nothing_and_files_come_back(tmp_path):
    model = BiLSTMTagger(5, 3, units=7, num_layers=2, dropout=0.5)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 6, 5)).astype("float32")
    x[1, 4:] = 0
    longer = np.pad(x, [(0, 0), (0, 5), (0, 0)])
    logits, padded = np.asarray(model(x)), np.asarray(model(longer))
    assert logits.shape == (3, 6, 3)
    np.testing.assert_allclose(padded[:, :6], logits, atol=1e-6)
    alone = np.asarray(model(x[1:2, :4]))
    np.testing.assert_allclose(alone[0], logits[1, :4], atol=1e-6)
    # Each word sees the ones on both of its sides.
    changed = x.copy()
    changed[0, 3] += 1
    assert (np.abs(np.asarray(model(changed)) - logits)[0].max(axis=1) > 1e-6).all()

    model.save(tmp_path / "tagger.keras")
    loaded = keras.saving.load_model(tmp_path / "tagger.keras")
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(loaded(x), logits)


def test_sizes():
    model = BiLSTMTagger(5, 3, units=7, num_layers=2)
    first = 2 * 4 * 7 * (5 + 7 + 1)
    second = 2 * 4 * 7 * (14 + 7 + 1)
    assert model.count_params() == first + second + 15 * 3
    with pytest.raises(ValueError, match="units=0: expected 1 or more"):
        BiLSTMTagger(5, 3, units=0)
    with pytest.raises(ValueError, match="feature_dim=5: expected a multiple of 2"):
        BiLSTMTagger(5, 3, num_states=2)


def test_layers_are_weighed(tmp_path):
    layer = LayerWeights(3)
    x = np.random.default_rng(0).normal(size=(2, 5, 3 * 4)).astype("float32")
    np.testing.assert_allclose(layer(x), x.reshape(2, 5, 3, 4).mean(2), atol=1e-6)
    layer.w.assign([0.0, 1.0, -2.0])
    layer.gamma.assign(3.0)
    share = np.exp([0.0, 1.0, -2.0]) / np.exp([0.0, 1.0, -2.0]).sum()
    first, second, third = np.split(x, 3, axis=-1)
    expected = 3 * (share[0] * first + share[1] * second + share[2] * third)
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)
    model = BiLSTMTagger(12, 3, units=7, num_layers=1, num_states=3)
    longer = np.pad(x, [(0, 0), (0, 5), (0, 0)])
    np.testing.assert_allclose(np.asarray(model(longer))[:, :5], model(x), atol=1e-6)
    model.save(tmp_path / "tagger.keras")
    loaded = keras.saving.load_model(tmp_path / "tagger.keras")
    np.testing.assert_array_equal(loaded(x), model(x))


@pytest.mark.thorough
def test_on_top_of_a_model_from_left_to_right(tmp_path, eager):
    """Both ends are seen, padding is not, and presets come back."""
    texts = ["rain wind the", "a harbour froze the boat", "boat"]
    settings = {"causal": True, "sequence_length": 13}
    model = BiLSTMClassifier.from_preset(TINY, labels=["a", "b", "c"], **settings)
    kinds = {path.partition("/")[0] for path in model.loading_report.new}
    logits = model.predict(texts, verbose=0)
    for text, row in zip(texts, logits, strict=True):
        np.testing.assert_allclose(model.predict([text], verbose=0)[0], row, atol=1e-5)
    model.save_to_preset(tmp_path / "preset")
    again = BertTask.from_preset(tmp_path / "preset")
    assert type(again) is BiLSTMClassifier and kinds == {"bilstm", "head"}
    np.testing.assert_array_equal(again.predict(texts, verbose=0), logits)

    reader = BiLSTMQuestionAnswerer.from_preset(TINY, **settings)
    ids = {"token_ids": np.array([[2, 5, 6, 7, 3]]), "segment_ids": np.zeros((1, 5), int)}
    ids["padding_mask"] = np.ones((1, 5), int)
    before = reader.predict(ids, verbose=0)["start"]
    ids["token_ids"][0, 3] += 1
    moved = np.abs(reader.predict(ids, verbose=0)["start"] - before)
    assert (moved > 1e-7).all()  # also of the tokens before it
    states = [reader.backbone(ids)["sequence_output"]]
    ids["token_ids"][0, 3] += 1
    states.append(reader.backbone(ids)["sequence_output"])
    np.testing.assert_allclose(states[0][:, :3], states[1][:, :3], atol=1e-6)
