"""What users call: a network with its text side, training, saving and serving."""

from keras_bert.tasks.classifier import BertClassifier
from keras_bert.tasks.masked_lm import BertMaskedLM
from keras_bert.tasks.multiple_choice import BertMultipleChoice
from keras_bert.tasks.pretrainer import BertPretrainer
from keras_bert.tasks.relation_classifier import BertRelationClassifier
from keras_bert.tasks.text_embedder import BertTextEmbedder
from keras_bert.tasks.zero_shot import zero_shot

__all__ = [
    "BertClassifier",
    "BertMaskedLM",
    "BertMultipleChoice",
    "BertPretrainer",
    "BertRelationClassifier",
    "BertTextEmbedder",
    "zero_shot",
]
