import json

import numpy as np
import pytest

from keras_bert import BertBackbone, BertPretrainer
from tools import pack_preset


def test_a_packed_preset_is_smaller_and_near_the_whole_one(tmp_path):
    whole, packed = tmp_path / "whole", tmp_path / "packed"
    backbone = BertBackbone(211, 2, 2, 32, 64, max_sequence_length=64, hidden_dropout=0.0)
    model = BertPretrainer(backbone)
    model.save_to_preset(str(whole))
    result = pack_preset.main([str(whole), str(packed), "--dropout", "0.1"])
    size = sum(path.stat().st_size for path in packed.rglob("*") if path.is_file())
    assert result["megabytes"] == size / 1e6
    assert 0 < max(result["largest_error_in_a_row"].values()) <= 1 / 254 + 1e-6

    found = BertPretrainer.from_preset(str(packed))
    assert found.backbone.hidden_dropout == found.backbone.attention_dropout == 0.1
    for old, new in zip(model.get_weights(), found.get_weights(), strict=True):
        assert np.abs(old - new).max() <= np.abs(old).max() / 254 * 1.001
    settings = json.loads((whole / "config.json").read_text())["config"]
    assert settings["hidden_dropout"] == 0.0  # the source stays as it was

    with pytest.raises(ValueError, match="packed already"):
        pack_preset.main([str(packed), str(tmp_path / "again")])
