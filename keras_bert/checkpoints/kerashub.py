"""KerasHub's presets of BERT, by name, address or folder: read and written.

Files and settings follow keras_hub/src/models/bert and keras_hub/src/utils/preset_utils.py.
KerasHub's BERT has the tanh GELU, an epsilon of 1e-12 and one share of dropout; its masked-LM head
has the exact GELU and an epsilon of 1e-5. Its tokenizer takes other ways than BERT's rule for some
characters: lower-casing is NFKC case folding there (ß becomes ss), U+00A0 and its like separate no
words, and control characters do. What KerasHub has no place for lies in keras_bert.json and
keras_bert_heads.safetensors beside its files; it passes over both.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from keras_bert.checkpoints.contents import Contents
from keras_bert.checkpoints.keras_weight_files import read_weights
from keras_bert.checkpoints.kerashub_names import (
    BLOCKS,
    CLASSIFIER,
    CONFIG,
    DROPOUT,
    FIXED,
    HEADS_BESIDE,
    LONGEST_WORD,
    NAMES,
    POOLER,
    SECOND_COPY,
    SIZES,
    TASK,
    TASK_WEIGHTS,
    TASKS,
    TOKENIZER,
    VOCABULARY,
    WEIGHTS,
    fits,
    shapes_beside,
    shapes_of,
)
from keras_bert.checkpoints.kerashub_writer import write
from keras_bert.checkpoints.names import Row, expand, to_ours
from keras_bert.checkpoints.safetensors_files import read_headers
from keras_bert.checkpoints.sidecar import FILE as SIDECAR
from keras_bert.checkpoints.sidecar import read_sidecar
from keras_bert.checkpoints.source import Source
from keras_bert.text.vocabulary import read_vocabulary

__all__ = ["NAMES", "read", "write"]

# What a tokenizer of BERT has; others give other ids.
_RULE = {"split": True, "split_on_cjk": True, "suffix_indicator": "##", "oov_token": "[UNK]"}


def read(source: Source, weights: bool = True) -> Contents:
    """Reads a preset of KerasHub's or KerasNLP's BERT.

    A BertTextClassifier is the head "classifier". Its output activation is left out, for a head of
    ours gives logits; "sigmoid" makes it "multi_label". A tokenizer that lower-cases strips accents
    too, as the original does, where KerasHub's does so only if told. Optimizers' slots, states of
    random numbers and second copies of the backbone are not in `left_over`.

    Args:
        source: the preset.
        weights: False to leave the files of weights alone; then the tensors are {}.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged, the files do not fit each other, or the preset is no BERT.
    """
    try:
        contents = Contents(source.name, _read_config(source))
        task, values = _read_task(source)
        if TASKS.get(task) is CLASSIFIER:
            contents.head = "classifier"
            contents.head_dropout = _share(values, f"{source.name}/{TASK}")
            if values.get("activation") == "sigmoid":
                contents.problem = "multi_label"
        _read_text(source, contents)
        _take_sidecar(source, contents)
        if weights:
            _read_tensors(source, contents, task, values.get("num_classes"))
    except RecursionError:
        raise ValueError(f"{source.name}: a JSON file in it is nested too deeply") from None
    return contents


# Settings.


def _object(source: Source, file: str) -> tuple[str, dict[str, Any]]:
    """Gives the name of the class of KerasHub's that a file describes, and its config."""
    values = source.json(file)
    registered, config = str(values.get("registered_name")), values.get("config")
    if not isinstance(config, dict):
        raise ValueError(f"{source.name}/{file} has no config")
    package, _, name = registered.partition(">")
    return (name if package in ("keras_hub", "keras_nlp") else registered), config


def _read_config(source: Source) -> dict[str, Any]:
    where = f"{source.name}/{CONFIG}"
    name, values = _object(source, CONFIG)
    if name != "BertBackbone":
        raise ValueError(f"{where}: expected a BertBackbone of KerasHub, found {name:.80}")
    missing = [key for key in SIZES if key not in values]
    if missing:
        raise ValueError(f"{where} has no {', '.join(missing)}")
    sizes = {key: _count(values[key], key, most, where) for key, most in SIZES.items()}
    if sizes["hidden_dim"] % sizes["num_heads"]:
        raise ValueError(
            f"{where}: hidden_dim {sizes['hidden_dim']} is not divisible by num_heads "
            f"{sizes['num_heads']}"
        )
    share = _share(values, where)
    return {**sizes, **FIXED, "hidden_dropout": share, "attention_dropout": share}


def _count(value: Any, key: str, most: int, where: str) -> int:
    if type(value) is not int or not 1 <= value <= most:
        raise ValueError(f"{where}: {key} is {_short(value)}; expected a number from 1 to {most:,}")
    return value


def _share(values: Mapping[str, Any], where: str) -> float:
    value = values.get("dropout", DROPOUT)
    if not _is_number(value, 1):
        raise ValueError(f"{where}: dropout is {_short(value)}; expected from 0 to less than 1")
    return value


def _is_number(value: Any, limit: float) -> bool:
    return type(value) in (int, float) and 0 <= value < limit


def _short(value: Any) -> str:
    return repr(value)[:80]


def _read_task(source: Source) -> tuple[str, dict[str, Any]]:
    """Gives class and config of the task; ("", {}) where there is none with weights of its own."""
    if not source.has(TASK) or not source.has(TASK_WEIGHTS):
        return "", {}
    return _object(source, TASK)


def _read_text(source: Source, contents: Contents) -> None:
    if not source.has(TOKENIZER):
        return
    where = f"{source.name}/{TOKENIZER}"
    name, values = _object(source, TOKENIZER)
    keys = ("lowercase", "strip_accents", "special_tokens_in_strings")
    lowercase, strip, inside = flags = [values.get(key, False) for key in keys]
    others = {key: values[key] for key in _RULE if values.get(key, _RULE[key]) != _RULE[key]}
    others |= {key: flag for key, flag in zip(keys, flags, strict=True) if type(flag) is not bool}
    if inside and values.get("special_tokens"):
        others["special_tokens"] = values["special_tokens"]
    if name != "BertTokenizer" or others:
        raise ValueError(
            f"{where}: expected a BertTokenizer that follows BERT's own rule, found {name:.80} "
            f"with {_short(others)}"
        )
    contents.tokenizer = {
        "lowercase": lowercase,
        "strip_accents": strip or lowercase,
        "max_word_length": LONGEST_WORD,
        "special_tokens_in_text": inside,
    }
    path = source.path(VOCABULARY)
    contents.vocabulary = read_vocabulary(path)
    tokens, rows = len(contents.vocabulary), contents.config["vocabulary_size"]
    if tokens > rows:
        raise ValueError(f"{path} has {tokens} tokens; vocabulary_size in {CONFIG} is {rows}")


def _take_sidecar(source: Source, contents: Contents) -> None:
    """What keras_bert.json says goes before what KerasHub's files say or leave open."""
    beside, where = read_sidecar(source), f"{source.name}/{SIDECAR}"
    _check_sidecar(beside, where)
    head = beside.get("head")
    if None not in (head, contents.head) and head != contents.head:
        raise ValueError(f"{where} has the head {head!r}; {TASK} has {contents.head!r}")
    contents.head = head or contents.head
    contents.config |= beside.get("config", {})
    for name in ("labels", "problem", "head_dropout", "dtype"):
        setattr(contents, name, beside.get(name, getattr(contents, name)))
    if contents.tokenizer is not None:
        contents.tokenizer = beside.get("tokenizer") or contents.tokenizer


def _check_sidecar(beside: Mapping[str, Any], where: str) -> None:
    """Looks at what `read_sidecar` leaves to the form: the values, their kinds being right."""
    labels, share = beside.get("labels"), beside.get("head_dropout")
    right = {
        "labels": labels is None or all(isinstance(label, str) for label in labels),
        "problem": beside.get("problem", "single_label")
        in ("single_label", "multi_label", "regression"),
        "head_dropout": share is None or _is_number(share, 1),
        "dtype": beside.get("dtype", "float32") in ("float32", "float16", "bfloat16"),
        "config": all(
            isinstance(value, str)
            if name == "activation"
            else _is_number(value, 1_000 if name == "initializer_range" else 1)
            for name, value in beside.get("config", {}).items()
        ),
        "tokenizer": all(_is_rule(*pair) for pair in (beside.get("tokenizer") or {}).items()),
    }
    wrong = [f"{name}: {_short(beside[name])}" for name, fine in right.items() if not fine]
    if wrong:
        raise ValueError(f"{where}: unexpected {'; '.join(wrong)}")


def _is_rule(name: str, value: Any) -> bool:
    """Whether this may be an argument of `BertTokenizer`."""
    if name == "max_word_length":
        return type(value) is int and value > 0
    flags = ("lowercase", "strip_accents", "special_tokens_in_text")
    return name in flags and (
        isinstance(value, bool) or (value is None and name == "strip_accents")
    )


# Tensors.


def _read_tensors(source: Source, contents: Contents, task: str, classes: Any) -> None:
    """Fills tensors, dtype and left_over; checks each file's shapes before it reads its numbers."""
    path, config = source.path(WEIGHTS), contents.config
    _check_size(config, path)
    dtypes = _take_file(contents, path, expand(NAMES, config["num_layers"]))
    extra = [name for name in contents.left_over if name.startswith(BLOCKS)]
    if extra:
        raise ValueError(
            f"{path}: num_layers in {CONFIG} is {config['num_layers']}, and there is more: "
            f"{', '.join(extra[:5])}"
        )
    if task:
        rows = TASKS.get(task, ())
        if rows is CLASSIFIER:
            classes = _count(classes, "num_classes", 10_000_000, f"{source.name}/{TASK}")
        dtypes |= _take_file(contents, source.path(TASK_WEIGHTS), rows, classes)
    if source.has(HEADS_BESIDE):
        _take_heads_beside(contents, source.path(HEADS_BESIDE))
    if contents.dtype == "float32" and len(dtypes) == 1:
        contents.dtype = dtypes.pop()
    _check_head(contents)


def _check_size(config: Mapping[str, Any], path: Path) -> None:
    """Before the name table is written out, which grows with the number of layers."""
    hidden = config["hidden_dim"]
    rows = config["vocabulary_size"] + config["max_sequence_length"] + config["num_segments"]
    blocks = config["num_layers"] * (4 * hidden + 2 * config["intermediate_dim"])
    need, size = 2 * hidden * (rows + blocks), path.stat().st_size
    if need > size:
        raise ValueError(
            f"{path} has {size:,} bytes; a model of the sizes in {CONFIG} takes {need:,} at least"
        )


def _take_file(
    contents: Contents, path: Path, rows: Iterable[Row], classes: int | None = None
) -> set[str]:
    """Reads a file of Keras into the contents, and gives the types in it."""
    shapes = shapes_of(rows, contents.config, classes)
    found = read_weights(
        path,
        {row.theirs: shape for row, shape in shapes.items()},
        [row.theirs for row in shapes if row.ours in POOLER],
    )
    contents.tensors |= to_ours(shapes, found.tensors, str(path))[0]
    others = [name for name in found.others if not name.startswith(SECOND_COPY)]
    contents.left_over += [f"{path.name}/{name}" for name in others]
    if len(contents.tensors.keys() & set(POOLER)) == 1:
        raise ValueError(f"{path} has half of a pooler")
    return found.dtypes


def _take_heads_beside(contents: Contents, path: Path) -> None:
    stored = read_headers([path])
    shapes = shapes_beside(contents.config, contents.head)
    for name, tensor in stored.items():
        wanted = shapes.get(name)
        if wanted is None or name in contents.tensors:
            raise ValueError(f"{path}: {name} is none of the heads that {TASK} has no place for")
        if not fits(tensor.shape, wanted):
            raise ValueError(f"{path}: {name} has shape {tensor.shape}, expected {wanted}")
    contents.tensors |= {name: tensor.load() for name, tensor in stored.items()}


def _check_head(contents: Contents) -> None:
    if contents.head is None:
        return
    bias = contents.tensors.get("head/bias")
    if bias is None or "head/kernel" not in contents.tensors:
        raise ValueError(f"{contents.source} has no tensors of the head {contents.head!r}")
    kernel, labels = contents.tensors["head/kernel"], contents.labels
    if kernel.shape[1] != bias.size or (labels is not None and len(labels) != bias.size):
        raise ValueError(
            f"{contents.source}: the head has {kernel.shape[1]} kernels, {bias.size} biases and "
            f"the labels {_short(labels)}"
        )
