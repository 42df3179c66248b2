import keras
import numpy as np
import pytest

from bilstm import BiLSTMTagger


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
