"""An argument that somebody adds to the backbone: kept by our presets, never lost by other forms.

The flags are read from the constructor, so that a new one is tested without a line here.
"""

import inspect

import keras
import numpy as np
import pytest

from keras_bert import BertBackbone, save_checkpoint

SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 12}
FLAGS = {
    name: not argument.default
    for name, argument in inspect.signature(BertBackbone.__init__).parameters.items()
    if isinstance(argument.default, bool)
}
IDS = np.array([[2, 5, 7, 3, 0], [2, 8, 6, 9, 3]])
INPUTS = {"token_ids": IDS, "segment_ids": 0 * IDS, "padding_mask": (IDS > 0).astype("int32")}


@pytest.mark.parametrize("flag", FLAGS)
def test_a_preset_keeps_every_flag(flag, tmp_path):
    backbone = BertBackbone(11, **SIZES, max_sequence_length=7, **{flag: FLAGS[flag]})
    backbone.save_to_preset(str(tmp_path / "preset"))
    again = BertBackbone.from_preset(str(tmp_path / "preset"))
    assert again.get_config()[flag] is FLAGS[flag]
    expected, found = backbone(INPUTS), again(INPUTS)
    assert found.keys() == expected.keys()
    np.testing.assert_array_equal(found["sequence_output"], expected["sequence_output"])


@keras.saving.register_keras_serializable(package="test_new_settings")
class Other(BertBackbone):
    """A backbone with a setting of its own."""

    def __init__(self, *args, slope=0.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.slope = slope

    def get_config(self):
        return super().get_config() | {"slope": self.slope}


@keras.saving.register_keras_serializable(package="test_new_settings")
class Deeper(Other):
    """Passes on the settings that it does not name."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


@pytest.mark.parametrize("form", ["google", "huggingface", "kerashub"])
def test_no_form_drops_a_setting_in_silence(form, tmp_path):
    with pytest.raises(ValueError, match=r"the backbone has slope=0\.5, which no other form knows"):
        save_checkpoint(Other(11, **SIZES, slope=0.5), tmp_path / "saved", form)
    assert not (tmp_path / "saved").exists()
    for cls in (Other, Deeper):  # with the defaults it is BERT, as they know it
        save_checkpoint(cls(11, **SIZES), tmp_path / "saved", form)
