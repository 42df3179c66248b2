"""What users call: a network with its text side, training, saving and serving."""

from keras_bert.tasks.classifier import BertClassifier
from keras_bert.tasks.masked_lm import BertMaskedLM
from keras_bert.tasks.pretrainer import BertPretrainer
from keras_bert.tasks.question_answerer import BertQuestionAnswerer

__all__ = ["BertClassifier", "BertMaskedLM", "BertPretrainer", "BertQuestionAnswerer"]
