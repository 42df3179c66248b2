"""Weights, vocabularies and settings from every checkpoint format of BERT."""

from keras_bert.checkpoints.loader import Checkpoint, open_checkpoint
from keras_bert.checkpoints.parts import load_tuned_part, save_tuned_part
from keras_bert.checkpoints.report import LoadingReport
from keras_bert.checkpoints.writer import contents_of, save_checkpoint

__all__ = [
    "Checkpoint",
    "LoadingReport",
    "contents_of",
    "load_tuned_part",
    "open_checkpoint",
    "save_checkpoint",
    "save_tuned_part",
]
