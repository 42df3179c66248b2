"""Metrics of the benchmarks on which BERT is evaluated."""

from keras_bert.metrics.classification import evaluate, evaluate_splits
from keras_bert.metrics.cmrc import cmrc_scores
from keras_bert.metrics.entity_f1 import entity_scores, tagging_scores
from keras_bert.metrics.grammar import minimal_pairs
from keras_bert.metrics.multilabel import predicted_labels, tune_thresholds
from keras_bert.metrics.perplexity import Perplexity
from keras_bert.metrics.reliability import (
    Calibration,
    best_answer_temperature,
    best_temperature,
    calibration,
)
from keras_bert.metrics.semeval import RelationScores, relation_scores
from keras_bert.metrics.squad_scores import squad_v1_scores, squad_v2_scores
from keras_bert.metrics.streaming import F1, MatthewsCorrelation, PearsonCorrelation
from keras_bert.metrics.tag_schemes import to_iob1, to_iob2, to_iobes

__all__ = [
    "Calibration",
    "F1",
    "MatthewsCorrelation",
    "PearsonCorrelation",
    "Perplexity",
    "RelationScores",
    "best_answer_temperature",
    "best_temperature",
    "calibration",
    "cmrc_scores",
    "entity_scores",
    "evaluate",
    "evaluate_splits",
    "minimal_pairs",
    "predicted_labels",
    "relation_scores",
    "squad_v1_scores",
    "squad_v2_scores",
    "tagging_scores",
    "to_iob1",
    "to_iob2",
    "to_iobes",
    "tune_thresholds",
]
