"""The training engine: optimizers, schedules, durations, strategies, resuming, callbacks."""

from keras_bert.training.averaging import average_probabilities, average_weights
from keras_bert.training.budget import TimeBudget
from keras_bert.training.callbacks import BestWeights, ValidationScores
from keras_bert.training.durations import total_steps
from keras_bert.training.experiment import (
    Interval,
    Results,
    folds,
    interval,
    read_results,
    results_table,
)
from keras_bert.training.guards import StopOnNaN
from keras_bert.training.log import JsonLines
from keras_bert.training.optimizers import AdamW, Lamb, Muon
from keras_bert.training.rate_scales import layerwise_rate_scales
from keras_bert.training.resume import Resume
from keras_bert.training.schedules import ShareSchedule, WarmupDecay
from keras_bert.training.strategies import layout_map, strategy
from keras_bert.training.throughput import Throughput, training_flops

__all__ = [
    "AdamW",
    "BestWeights",
    "Interval",
    "JsonLines",
    "Lamb",
    "Muon",
    "Results",
    "Resume",
    "ShareSchedule",
    "StopOnNaN",
    "Throughput",
    "TimeBudget",
    "ValidationScores",
    "WarmupDecay",
    "average_probabilities",
    "average_weights",
    "folds",
    "interval",
    "layerwise_rate_scales",
    "layout_map",
    "read_results",
    "results_table",
    "strategy",
    "total_steps",
    "training_flops",
]
