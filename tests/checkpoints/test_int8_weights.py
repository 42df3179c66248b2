import h5py
import numpy as np
import pytest

from keras_bert import BertBackbone, BertPretrainer
from keras_bert.checkpoints import int8_weights, source
from keras_bert.checkpoints.int8_weights import from_int8, is_int8, to_int8


def datasets(path):
    found = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: found.update({name: item[()]}) if hasattr(item, "shape") else None
        )
    return found


@pytest.fixture
def weights(tmp_path):
    """A weight file with a matrix, a matrix with a row of zeros, three axes and a vector."""
    rng = np.random.default_rng(0)
    values = {
        "layers/a/vars/0": rng.normal(0, 0.02, (13, 7)),
        "layers/a/vars/1": rng.normal(0, 3.0, 7),
        "layers/b/vars/0": np.array([[0.0, 0.0], [1.0, -2.0], [1e-9, 0.0]]),
        "layers/c/vars/0": rng.normal(0, 1.0, (3, 5, 2)),
    }
    path = tmp_path / "plain.weights.h5"
    with h5py.File(path, "w") as file:
        for name, value in values.items():
            file[name] = value.astype("float32")
    return path


def test_what_comes_back_is_within_half_a_step_of_each_row(weights, tmp_path):
    packed, whole = tmp_path / "packed.weights.h5", tmp_path / "whole.weights.h5"
    worst = to_int8(weights, packed)
    assert is_int8(packed) and not is_int8(weights)
    from_int8(packed, whole)
    before, after = datasets(weights), datasets(whole)
    assert before.keys() == after.keys()
    seen = 0.0
    for name, value in before.items():
        assert after[name].dtype == np.float32
        if value.ndim == 1:
            np.testing.assert_array_equal(after[name], value)
            continue
        rows, found = (v.reshape(len(value), -1).astype("float64") for v in (value, after[name]))
        largest = np.abs(rows).max(axis=1)
        error = np.abs(rows - found).max(axis=1)
        assert (error <= largest / 254 * (1 + 1e-5)).all()
        seen = max(seen, (error[largest > 0] / largest[largest > 0]).max())
    assert worst == pytest.approx(seen, rel=1e-4) and worst > 1e-3


def test_a_reader_that_does_not_know_the_form_finds_no_weights(weights, tmp_path):
    packed = tmp_path / "packed.weights.h5"
    to_int8(weights, packed)
    assert "layers/a/vars/0" not in datasets(packed)


def test_bad_files_are_refused(weights, tmp_path):
    packed = tmp_path / "packed.weights.h5"
    to_int8(weights, packed)
    with pytest.raises(ValueError, match="holds int8 weights already"):
        to_int8(packed, packed)
    with h5py.File(packed, "a") as file:
        del file["layers/a/vars/0.scale"]
    with pytest.raises(ValueError, match="layers/a/vars/0 lacks a scale"):
        from_int8(packed, tmp_path / "whole.weights.h5")
    with h5py.File(weights, "a") as file:
        file["layers/a/vars/0"][3, 2] = np.nan
    with pytest.raises(ValueError, match="layers/a/vars/0 has numbers that are not finite"):
        to_int8(weights, packed)
    assert not is_int8(tmp_path / "nothing.h5")


def test_a_dataset_that_lies_in_another_file_is_refused(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(16))
    path = tmp_path / "evil.weights.h5"
    with h5py.File(path, "w") as file:
        file.attrs[int8_weights.MARK] = 1
        file.create_dataset("0", (4,), "float32", external=[(str(secret), 0, 16)])
    with pytest.raises(ValueError, match="0 lies in another file"):
        from_int8(path, tmp_path / "whole.weights.h5")


def test_a_preset_with_int8_weights_loads_by_name(tmp_path, monkeypatch):
    backbone = BertBackbone(31, 2, 2, 12, 24, max_sequence_length=11)
    model = BertPretrainer(backbone)
    folder = tmp_path / "bert_nano"
    model.save_to_preset(str(folder))
    for name in ("model.weights.h5", "task.weights.h5"):
        to_int8(folder / name, folder / name)
    monkeypatch.setattr(source, "SHIPPED", tmp_path)
    assert source.shipped() == ["bert_nano"]
    loaded = BertPretrainer.from_preset("bert_nano")
    for old, new in zip(model.weights, loaded.weights, strict=True):
        old, new = (np.asarray(v, "float32") for v in (old, new))
        assert np.abs(old - new).max() <= np.abs(old).max() / 254 * 1.001
    assert not loaded.loading_report.new
    # What is saved again is a usual preset.
    loaded.save_to_preset(str(tmp_path / "again"))
    assert not is_int8(tmp_path / "again" / "model.weights.h5")
