"""Why a task answered so, and what it learnt."""

from keras_bert.explain.attention_maps import AttentionMaps, attention
from keras_bert.explain.attribution import Attribution, Words, attributions
from keras_bert.explain.error_report import Answers, ErrorReport, Slice, errors
from keras_bert.explain.probing import ProbeScores, probe
from keras_bert.explain.states import (
    HiddenStates,
    Projection,
    hidden_states,
    nearest_words,
    project,
)

__all__ = [
    "Answers",
    "Attribution",
    "AttentionMaps",
    "ErrorReport",
    "HiddenStates",
    "ProbeScores",
    "Projection",
    "Slice",
    "Words",
    "attention",
    "attributions",
    "errors",
    "hidden_states",
    "nearest_words",
    "probe",
    "project",
]
