"""Networks without text: the encoder that every task stands on, and which parts of it train."""

from keras_bert.models.backbone import BertBackbone
from keras_bert.models.tuning import Tuned, merge_lora, tune

__all__ = ["BertBackbone", "Tuned", "merge_lora", "tune"]
