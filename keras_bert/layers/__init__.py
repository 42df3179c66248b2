"""BERT's layers, in pure `keras.ops`: embeddings, attention, adapters, encoder block."""

from keras_bert.layers.adapter import Adapter
from keras_bert.layers.attention import AttentionMask, SelfAttention
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.embeddings import BertEmbeddings
from keras_bert.layers.encoder import EncoderBlock

__all__ = [
    "Adapter",
    "AttentionMask",
    "BertEmbeddings",
    "Dropout",
    "EncoderBlock",
    "SelfAttention",
]
