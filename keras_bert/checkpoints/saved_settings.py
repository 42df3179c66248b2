"""Checks of the settings of tokenizers, preprocessors and tasks in this package's presets.

Their values become arguments of layers, so a file could request any size, or contain a value that
Keras deserializes to an object.
"""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from keras_bert.checkpoints.checks import NUMBERS, is_labels, is_names, is_number, short
from keras_bert.checkpoints.contents import PROBLEMS
from keras_bert.text.tokenizer import SPLITTINGS

_MOST = 10_000_000  # as of `checks.SIZES`


def _is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value <= _MOST


def _is_whole_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and abs(n) <= _MOST for n in value)


def _is_shares(value: Any) -> bool:
    return isinstance(value, list) and all(is_number(v, 1 + 1e-9) for v in value)


def _is_masking(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(v, str) or _is_count(v) or is_number(v, 1 + 1e-9) for v in value.values()
    )


def _is_dense(value: Any) -> bool:
    right = {
        "units": _is_count,
        "activation": lambda value: isinstance(value, str),
        "use_bias": lambda value: isinstance(value, bool),
    }
    return (
        isinstance(value, dict)
        and value.keys() == right.keys()
        and all(check(value[name]) for name, check in right.items())
    )


def _or_none(right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or right(value)


_FLAG = (lambda value: isinstance(value, bool)), "true or false"
_WORD = (lambda value: isinstance(value, str)), "a word"
_COUNT = _is_count, f"a number from 1 to {_MOST:,}"
_MAYBE_COUNT = _or_none(_is_count), f"null or a number from 1 to {_MOST:,}"
_RIGHT: dict[str, tuple[Callable[[Any], bool], str]] = {
    # Of every layer.
    "name": _WORD,
    "trainable": _FLAG,
    "config_file": _WORD,
    # Tokenizer.
    "lowercase": _FLAG,
    "strip_accents": (lambda value: isinstance(value, bool | None), "null, true or false"),
    "special_tokens_in_text": _FLAG,
    "max_word_length": (
        lambda value: type(value) is int and 1 <= value < 2**31,
        "a number from 1 to less than 2^31",
    ),
    "splitting": (lambda value: value in SPLITTINGS, f"one of {', '.join(SPLITTINGS)}"),
    "added_tokens": (is_names, "a list of tokens"),
    "exact_tokens": (is_names, "a list of tokens"),
    # Preprocessors.
    "sequence_length": _COUNT,
    "padding": _WORD,
    "tail": (lambda value: is_number(value, 1 + 1e-9), "a number from 0 to 1"),
    "stride": _MAYBE_COUNT,
    "max_question_length": _COUNT,
    "markers": (_or_none(is_names), "null or a list of tokens"),
    "masking": (_or_none(_is_masking), "null or an object of words, counts and shares"),
    # Tasks.
    "num_classes": _COUNT,
    "labels": (_or_none(is_labels), "null or a list of names"),
    "dropout": (is_number, "a number from 0 to less than 1"),
    "problem": (lambda value: value in PROBLEMS, f"one of {', '.join(PROBLEMS)}"),
    "thresholds": (_or_none(_is_shares), "null or a list of numbers from 0 to 1"),
    "temperature": (
        lambda value: type(value) in (int, float) and isfinite(value) and value > 0,
        "a number above 0",
    ),
    "crf": _FLAG,
    "next_sentence": _FLAG,
    "normalize": _FLAG,
    "pooling": (
        lambda value: isinstance(value, str) or (is_names(value) and bool(value)),
        "a word or a list of words",
    ),
    "dense": (lambda value: isinstance(value, list) and all(map(_is_dense, value)), "dense layers"),
    "prompts": (
        lambda value: isinstance(value, dict) and is_names([*value.values()]),
        "an object of texts",
    ),
    "default_prompt": (_or_none(lambda value: isinstance(value, str)), "null or a name"),
    "loss": _WORD,
    "layers": (_is_whole_numbers, "a list of whole numbers"),
    "null_threshold": (
        _or_none(lambda value: type(value) in (int, float) and isfinite(value)),
        "null or a finite number",
    ),
    "head_activation": (_or_none(lambda value: isinstance(value, str)), "null or a name"),
    "head_epsilon": (
        _or_none(lambda value: is_number(value, NUMBERS["layer_norm_epsilon"]) and value > 0),
        "null or a number above 0, less than 1",
    ),
}


def is_right(name: str, value: Any) -> bool:
    """Whether a value is valid for a setting; unknown names accept any value."""
    right, _ = _RIGHT.get(name, (lambda _: True, ""))
    return right(value)


def check_saved(config: Mapping[str, Any], where: str) -> None:
    """Checks all settings known by name of one object in a preset; raises a ValueError."""
    for name, value in config.items():
        if not is_right(name, value):
            raise ValueError(f"{where}: {name} is {short(value)}; expected {_RIGHT[name][1]}")
    labels, classes = config.get("labels"), config.get("num_classes")
    if labels is not None and classes is not None and len(labels) != classes:
        raise ValueError(f"{where}: num_classes is {classes}, and there are {len(labels)} labels")
