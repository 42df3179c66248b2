"""The contents of a checkpoint of any format, in this package's terms."""

import inspect
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np

# Heads of tasks; pre-training heads are recognized by their tensors. Each is one dense layer, named
# "head": on the pooled output for classes and for the score of a choice, on every token's output
# for token classes and for the start and end of a span.
HEADS = ("classifier", "token_classifier", "span", "choice")
PROBLEMS = ("single_label", "multi_label", "regression")  # of a classifier
MASKED_LM, NEXT_SENTENCE = "masked_lm_head/", "next_sentence_head/"
# The note of a form that has no place for `causal`.
NOT_CAUSAL = (
    "causal=True is kept in keras_bert.json, which this package reads; other programs take the "
    "model for one that reads in both directions, and give other outputs."
)
# Settings in the config of a backbone that decide neither what its weights are nor what they mean.
_FREE = (
    "name",
    "trainable",
    "dtype",
    "frozen",
    "lora",
    "hidden_dropout",
    "attention_dropout",
    "initializer_range",
    "output_hidden_states",
    "output_attentions",
    "gradient_checkpointing",
)
# Names, in tasks, of the settings in which a masked-LM head may differ.
TASK_ARGUMENTS = {"activation": "head_activation", "layer_norm_epsilon": "head_epsilon"}


@dataclass
class Contents:
    """Settings, tensors and preprocessor settings of one checkpoint.

    Args:
        source: its location.
        config: arguments of `BertBackbone`, without dtype.
        tensors: arrays by this package's weight names, see `names.weights_by_name`: matrices are
            [inputs, outputs].
        head: one of `HEADS`, whose tensors are "head/kernel" and "head/bias"; or None.
        labels: names of the head's classes by id, or None.
        problem: one of `PROBLEMS`.
        thresholds: for a multi-label classifier, the probabilities at or above which a label is
            given; or None.
        temperature: of the head's probabilities, see `keras_bert.metrics.best_temperature`.
        masked_lm: arguments of `MaskedLMHead` in which that head differs from the backbone:
            "activation", "layer_norm_epsilon"; {} if it does not.
        head_dropout: dropout rate before the head, or None if the format does not define it.
        tokenizer: arguments of `BertTokenizer` except the vocabulary; None without a tokenizer.
        vocabulary: all tokens by id, or None.
        dtype: of the tensors in the checkpoint: "float32", "float16" or "bfloat16". In `tensors`
            they are float32 in any case, which holds both others exactly.
        left_over: names, in the checkpoint, of unknown tensors.
    """

    source: str
    config: dict[str, Any]
    tensors: dict[str, np.ndarray] = field(default_factory=dict)
    head: str | None = None
    labels: list[str] | None = None
    problem: str = "single_label"
    thresholds: list[float] | None = None
    temperature: float = 1.0
    masked_lm: dict[str, Any] = field(default_factory=dict)
    head_dropout: float | None = None
    tokenizer: dict[str, Any] | None = None
    vocabulary: list[str] | None = None
    dtype: str = "float32"
    left_over: list[str] = field(default_factory=list)

    def has(self, prefix: str) -> bool:
        """Whether there is a tensor whose name starts with this prefix."""
        return any(name.startswith(prefix) for name in self.tensors)


def own_masked_lm(model: keras.Model) -> dict[str, Any]:
    """`Contents.masked_lm` of a task."""
    values = {name: getattr(model, theirs, None) for name, theirs in TASK_ARGUMENTS.items()}
    return {name: value for name, value in values.items() if value is not None}


def changed_settings(backbone: keras.Model, known: Container[str]) -> dict[str, Any]:
    """The settings of a backbone that differ from their defaults, and matter to its outputs.

    Args:
        backbone: a `BertBackbone`, or of a user's own class.
        known: names of settings to leave out.
    """
    defaults = {}
    for cls in reversed(type(backbone).__mro__):  # a class may pass on what it does not name
        arguments = inspect.signature(cls.__init__).parameters
        defaults |= {name: argument.default for name, argument in arguments.items()}
    return {
        name: value
        for name, value in backbone.get_config().items()
        if name not in known
        and name not in _FREE
        and (name not in defaults or value != defaults[name])
    }
