"""config.json of transformers' BERT, read and written: sizes, the GELU variant, heads, labels."""

import json
from pathlib import Path
from typing import Any

from keras_bert.checkpoints.checks import (
    DTYPES,
    check_config,
    check_number,
    check_size,
    is_names,
    short,
    shown,
)
from keras_bert.checkpoints.contents import MASKED_LM, NEXT_SENTENCE, Contents
from keras_bert.checkpoints.names import BERT_KEYS
from keras_bert.checkpoints.source import Source

FILE = "config.json"
# transformers' class by kind of head. The last four have none, or pre-training heads, which are
# recognized by their tensors.
CLASSES = {
    "BertForSequenceClassification": "classifier",
    "BertForTokenClassification": "token_classifier",
    "BertForQuestionAnswering": "span",
    "BertForMultipleChoice": "choice",
    "BertModel": None,
    "BertForPreTraining": None,
    "BertForMaskedLM": None,
    "BertForNextSentencePrediction": None,
}
# Made with add_pooling_layer=False: a pooler in their file would be an unexpected tensor.
WITHOUT_POOLER = ("BertForMaskedLM", "BertForTokenClassification", "BertForQuestionAnswering")
# Equivalent activations (transformers/activations.py), starting with the name to write. "gelu" is
# the exact form; six of the names mean one of the two forms of GELU.
_ACTIVATIONS = {
    "gelu": "gelu_exact",
    "gelu_python": "gelu_exact",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
} | {name: name for name in ("relu", "relu6", "tanh", "sigmoid", "mish", "linear")}
_PROBLEMS = {
    "single_label": "single_label_classification",
    "multi_label": "multi_label_classification",
    "regression": "regression",
}
# Settings of an encoder as this package has it; empty values are as good as the default.
_ENCODER = {
    "model_type": "bert",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "pruned_heads": {},
}
_KEYS = BERT_KEYS | {"layer_norm_epsilon": "layer_norm_eps"}
_DEFAULTS = {"layer_norm_eps": 1e-12, "initializer_range": 0.02}  # missing in older files


def read_config(source: Source) -> tuple[dict[str, Any], dict[str, Any]]:
    """Reads config.json: (all of it, `BertBackbone` arguments).

    Raises:
        FileNotFoundError: if there is none.
        ValueError: for a model that is not a BERT encoder, a missing key or an impossible value.
    """
    values, where = source.json(FILE), f"{source.name}/{FILE}"
    _check_encoder(values, where)
    values = _DEFAULTS | values
    missing = [key for key in _KEYS.values() if key not in values]
    if missing:
        raise ValueError(f"{where} has no key {', '.join(map(repr, missing))}")
    config = {ours: values[theirs] for ours, theirs in _KEYS.items()}
    check_config(config, where, _KEYS)
    activation = _one_of(_ACTIVATIONS, config["activation"], "hidden_act", where)
    return values, config | {"activation": activation}


def _one_of(known: dict[str, str], value: Any, key: str, where: str) -> str:
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{where}: {key} is {short(value)}; expected one of {', '.join(known)}")
    return known[value]


def _check_encoder(values: dict[str, Any], where: str) -> None:
    found = _ENCODER | {"model_type": None} | {k: values[k] for k in _ENCODER if k in values}
    if any((found[key] or False) != (right or False) for key, right in _ENCODER.items()):
        said = ", ".join(f"{key} {short(value)}" for key, value in found.items())
        raise ValueError(
            f"{where}: expected a BERT encoder (model_type 'bert', absolute positions, nothing "
            f"pruned), found {said}"
        )


def read_class(values: dict[str, Any], where: str) -> str | None:
    """transformers' class: the first known one in `architectures`, or else the first; or None.

    Raises:
        ValueError: if `architectures` is not a list of names.
    """
    names = values.get("architectures")
    if names is None:
        return None
    if not is_names(names):
        raise ValueError(f"{where}: architectures is {short(names)}; expected a list of names")
    return next((name for name in names if name in CLASSES), names[0] if names else None)


def read_labels(values: dict[str, Any], where: str) -> list[str] | None:
    """The names of the classes by id, "LABEL_0" and so on if there are none; None if the file does
    not define their number.

    Raises:
        ValueError: if ids are missing.
    """
    names = values.get("id2label")
    if not names:
        count = values.get("num_labels")
        return None if count is None else generic_labels(check_size(count, "num_labels", where))
    if not isinstance(names, dict) or set(names) != {str(i) for i in range(len(names))}:
        keys = shown(", ".join(sorted(names)))[:200] if isinstance(names, dict) else short(names)
        raise ValueError(
            f"{where}: id2label has the keys {keys}; expected 0 to {_count(names) - 1}"
        )
    return [str(names[str(i)]) for i in range(len(names))]


def generic_labels(count: int) -> list[str]:
    """transformers' names for classes without names."""
    return [f"LABEL_{i}" for i in range(count)]


def _count(value: Any) -> int:
    return len(value) if isinstance(value, dict | list | str) else 1


def read_problem(values: dict[str, Any], num_classes: int, where: str) -> str:
    """Returns the problem of a classifier: "single_label", "multi_label" or "regression".

    A single output is a regression, as in transformers' modeling_bert.py.

    Raises:
        ValueError: for any other problem_type.
    """
    problem = values.get("problem_type") or _PROBLEMS["single_label"]
    by_name = {theirs: ours for ours, theirs in _PROBLEMS.items()}
    found = _one_of(by_name, problem, "problem_type", where)
    return "regression" if num_classes == 1 and found == "single_label" else found


def read_head_dropout(values: dict[str, Any], head: str | None, where: str) -> float | None:
    """Returns the dropout rate before the head, as in transformers' classes.

    It is classifier_dropout, or hidden_dropout_prob if that is null; there is no dropout before a
    span head. Without a head: None unless classifier_dropout is set.

    Raises:
        ValueError: if it is not a valid rate.
    """
    share = values.get("classifier_dropout")
    if share is None and head is not None:
        share = values["hidden_dropout_prob"]
    if share is not None:
        check_number(share, "classifier_dropout", where)
    return 0.0 if head == "span" else share


def read_dtype(values: dict[str, Any]) -> str:
    """Returns the dtype of the tensors according to the file, "float32" by default."""
    name = str(values.get("dtype") or values.get("torch_dtype")).removeprefix("torch.")
    return name if name in DTYPES else "float32"


def class_of(contents: Contents) -> str:
    """Chooses transformers' class by the existing heads; one of `CLASSES` takes precedence."""
    if contents.head is not None and contents.has("head/"):
        return next(name for name, head in CLASSES.items() if head == contents.head)
    masked, next_sentence = contents.has(MASKED_LM), contents.has(NEXT_SENTENCE)
    if masked:
        return "BertForPreTraining" if next_sentence else "BertForMaskedLM"
    return "BertForNextSentencePrediction" if next_sentence else "BertModel"


def write_config(contents: Contents, class_name: str, folder: Path) -> None:
    """Writes config.json, with the keys of transformers 4 and 5.

    Raises:
        ValueError: if transformers has no such activation.
    """
    config, share = contents.config, contents.head_dropout
    names = [theirs for theirs, ours in _ACTIVATIONS.items() if ours == config["activation"]]
    if not names:
        raise ValueError(
            f"activation {config['activation']!r} can't be said in a config.json of transformers; "
            f"expected one of {', '.join(sorted(set(_ACTIVATIONS.values())))}"
        )
    ids = {token: i for i, token in enumerate(contents.vocabulary or ())}
    values: dict[str, Any] = {
        "architectures": [class_name],
        "model_type": "bert",
        **{theirs: config[ours] for ours, theirs in _KEYS.items()},
        "hidden_act": names[0],
        "classifier_dropout": share,
        "position_embedding_type": "absolute",
        "pad_token_id": ids.get("[PAD]", 0),
        "tie_word_embeddings": True,
        "dtype": contents.dtype,
        "torch_dtype": contents.dtype,
    }
    if CLASSES[class_name] in ("classifier", "token_classifier"):
        labels = contents.labels or generic_labels(contents.tensors["head/bias"].size)
        values["id2label"] = {str(i): str(label) for i, label in enumerate(labels)}
        values["label2id"] = {str(label): i for i, label in enumerate(labels)}
    if CLASSES[class_name] == "classifier":
        values["problem_type"] = _PROBLEMS[contents.problem]
    text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    (folder / FILE).write_bytes(text.encode("utf-8"))
