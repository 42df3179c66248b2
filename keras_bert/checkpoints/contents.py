"""What a checkpoint of any form holds, in our own terms."""

from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np

# The form's heads that a text is given an answer by; those of pre-training are told by their
# tensors. Each is one dense layer, called "head": on the pooled output for classes and for the
# score of a choice, on every token's output for classes of tokens and for the two ends of a span.
HEADS = ("classifier", "token_classifier", "span", "choice")
PROBLEMS = ("single_label", "multi_label", "regression")  # of a classifier
MASKED_LM, NEXT_SENTENCE = "masked_lm_head/", "next_sentence_head/"
# What our tasks call the settings that a masked-LM head may have of its own.
TASK_ARGUMENTS = {"activation": "head_activation", "layer_norm_epsilon": "head_epsilon"}


@dataclass
class Contents:
    """Settings, tensors and text side of one checkpoint.

    Args:
        source: where it lies.
        config: arguments of `BertBackbone`, without dtype.
        tensors: arrays by the names of our weights, see `names.weights_by_name`: matrices are
            [inputs, outputs].
        head: one of `HEADS`, whose tensors are "head/kernel" and "head/bias"; or None.
        labels: names of the head's classes by id, or None.
        problem: one of `PROBLEMS`.
        thresholds: of a multi-label classifier, the probabilities from which on a label is given;
            or None.
        masked_lm: arguments of `MaskedLMHead` in which that head differs from the backbone:
            "activation", "layer_norm_epsilon"; {} where it does not.
        head_dropout: share of units dropped before the head, or None where the form does not say.
        tokenizer: arguments of `BertTokenizer` but the vocabulary; None without a text side.
        vocabulary: all tokens by id, or None.
        dtype: of the tensors in the checkpoint: "float32", "float16" or "bfloat16". In `tensors`
            they are float32 in any case, which holds both others exactly.
        left_over: names, in the checkpoint, of tensors that mean nothing to us.
    """

    source: str
    config: dict[str, Any]
    tensors: dict[str, np.ndarray] = field(default_factory=dict)
    head: str | None = None
    labels: list[str] | None = None
    problem: str = "single_label"
    thresholds: list[float] | None = None
    masked_lm: dict[str, Any] = field(default_factory=dict)
    head_dropout: float | None = None
    tokenizer: dict[str, Any] | None = None
    vocabulary: list[str] | None = None
    dtype: str = "float32"
    left_over: list[str] = field(default_factory=list)

    def has(self, prefix: str) -> bool:
        """Whether there is a tensor whose name begins so."""
        return any(name.startswith(prefix) for name in self.tensors)


def own_masked_lm(model: keras.Model) -> dict[str, Any]:
    """`Contents.masked_lm` of a task of ours."""
    values = {name: getattr(model, theirs, None) for name, theirs in TASK_ARGUMENTS.items()}
    return {name: value for name, value in values.items() if value is not None}
