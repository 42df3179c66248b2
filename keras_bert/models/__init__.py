"""Networks without text: the encoder that every task stands on."""

from keras_bert.models.backbone import BertBackbone

__all__ = ["BertBackbone"]
