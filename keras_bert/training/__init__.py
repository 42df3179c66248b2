"""The training engine: optimizers, schedules, durations, strategies, resuming."""

from keras_bert.training.durations import total_steps
from keras_bert.training.optimizers import AdamW, Lamb, layerwise_rate_scales
from keras_bert.training.resume import Resume
from keras_bert.training.schedules import ShareSchedule, WarmupDecay
from keras_bert.training.strategies import strategy

__all__ = [
    "AdamW",
    "Lamb",
    "Resume",
    "ShareSchedule",
    "WarmupDecay",
    "layerwise_rate_scales",
    "strategy",
    "total_steps",
]
