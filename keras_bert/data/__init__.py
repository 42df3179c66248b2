"""Data: readers of public formats, corpora for pre-training, and labelled text made for demos."""

from keras_bert.data.corpus import prepare_corpus
from keras_bert.data.pretraining import pretraining_dataset
from keras_bert.data.records import read_index
from keras_bert.data.tables import Examples, read_table
from keras_bert.data.vocabulary_training import build_vocabulary

__all__ = [
    "Examples",
    "build_vocabulary",
    "prepare_corpus",
    "pretraining_dataset",
    "read_index",
    "read_table",
]
