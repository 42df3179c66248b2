"""Metrics of the benchmarks that BERT is measured by."""

from keras_bert.metrics.classification import evaluate

__all__ = ["evaluate"]
