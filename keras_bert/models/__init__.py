"""Networks without a tokenizer: the encoder of all tasks, and the choice of trainable weights."""

from keras_bert.models.backbone import BertBackbone
from keras_bert.models.tuning import Tuned, merge_lora, tune

__all__ = ["BertBackbone", "Tuned", "merge_lora", "tune"]
