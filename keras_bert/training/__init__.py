"""Optimizers and learning-rate schedules."""

from keras_bert.training.optimizers import AdamW
from keras_bert.training.schedules import WarmupLinear

__all__ = ["AdamW", "WarmupLinear"]
