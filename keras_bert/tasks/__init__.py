"""What users call: a network with its text side, training, saving and serving."""

from keras_bert.tasks.classifier import BertClassifier

__all__ = ["BertClassifier"]
