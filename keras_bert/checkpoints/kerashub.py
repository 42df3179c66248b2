"""KerasHub's presets of BERT, by name, address or folder: read and written.

Files and settings follow keras_hub/src/models/bert and keras_hub/src/utils/preset_utils.py.
KerasHub's BERT has the tanh GELU, an epsilon of 1e-12 and a single dropout rate; its masked-LM head
has the exact GELU and an epsilon of 1e-5. Its tokenizer differs from BERT's for some characters:
lower-casing is NFKC case folding (ß becomes ss), characters such as U+00A0 do not separate words,
and control characters do. Data that KerasHub's format cannot hold is written to keras_bert.json and
keras_bert_heads.safetensors, which KerasHub ignores.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from keras_bert.checkpoints import kerashub_names as hub
from keras_bert.checkpoints.checks import (
    SIZES,
    check_config,
    check_number,
    check_size,
    check_vocabulary_fits,
    least_numbers,
    short,
    shown,
)
from keras_bert.checkpoints.contents import Contents
from keras_bert.checkpoints.keras_weight_files import read_weights
from keras_bert.checkpoints.kerashub_writer import write
from keras_bert.checkpoints.names import Row, expand, to_ours
from keras_bert.checkpoints.safetensors_files import read_headers
from keras_bert.checkpoints.shapes import check_shapes, shapes_of
from keras_bert.checkpoints.sidecar import FILE as SIDECAR
from keras_bert.checkpoints.sidecar import read_sidecar
from keras_bert.checkpoints.source import Source
from keras_bert.text.vocabulary import read_vocabulary

__all__ = ["read", "write"]

# Settings of BERT's tokenizer; others result in different ids.
_RULE = {"split": True, "split_on_cjk": True, "suffix_indicator": "##", "oov_token": "[UNK]"}


def read(source: Source, weights: bool = True) -> Contents:
    """Reads a preset of KerasHub's or KerasNLP's BERT.

    A BertTextClassifier is the head "classifier". Its output activation is dropped, since heads
    here output logits; "sigmoid" makes it "multi_label". A tokenizer that lower-cases also strips
    accents, as in the original; KerasHub's does so only if configured. Optimizer slots, random
    states and second copies of the backbone are not in `left_over`.

    Without `weights` their files are left alone; then the tensors are {}.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged, the files are inconsistent, or the preset is not a BERT.
    """
    contents = Contents(source.name, _read_config(source))
    task, values = _read_task(source)
    if hub.TASKS.get(task) is hub.CLASSIFIER:
        contents.head = "classifier"
        contents.head_dropout = _share(values, f"{source.name}/{hub.TASK}")
        if values.get("activation") == "sigmoid":
            contents.problem = "multi_label"
    elif hub.TASKS.get(task) is hub.MASKED_LM_HEAD:
        contents.masked_lm = dict(hub.FIXED_MASKED_LM)
    _read_text(source, contents)
    _take_sidecar(source, contents)
    if weights:
        _read_tensors(source, contents, task, values.get("num_classes"))
    return contents


# Settings.


def _object(source: Source, file: str) -> tuple[str, dict[str, Any]]:
    """Returns the name of the KerasHub class in a file, and its config."""
    values = source.json(file)
    registered, config = str(values.get("registered_name")), values.get("config")
    if not isinstance(config, dict):
        raise ValueError(f"{source.name}/{file} has no config")
    package, _, name = registered.partition(">")
    return (name if package in ("keras_hub", "keras_nlp") else registered), config


def _read_config(source: Source) -> dict[str, Any]:
    where = f"{source.name}/{hub.CONFIG}"
    name, values = _object(source, hub.CONFIG)
    if name != "BertBackbone":
        raise ValueError(f"{where}: expected a BertBackbone of KerasHub, found {shown(name):.80}")
    missing = [key for key in SIZES if key not in values]
    if missing:
        raise ValueError(f"{where} has no {', '.join(missing)}")
    share = _share(values, where)
    config = {key: values[key] for key in SIZES} | hub.FIXED
    config |= {"hidden_dropout": share, "attention_dropout": share}
    check_config(config, where, {})
    return config


def _share(values: Mapping[str, Any], where: str) -> float:
    return check_number(values.get("dropout", hub.DROPOUT), "dropout", where)


def _read_task(source: Source) -> tuple[str, dict[str, Any]]:
    """Returns class and config of the task; ("", {}) if there is none with its own weights."""
    if not source.has(hub.TASK) or not source.has(hub.TASK_WEIGHTS):
        return "", {}
    return _object(source, hub.TASK)


def _read_text(source: Source, contents: Contents) -> None:
    if not source.has(hub.TOKENIZER):
        return
    where = f"{source.name}/{hub.TOKENIZER}"
    name, values = _object(source, hub.TOKENIZER)
    keys = ("lowercase", "strip_accents", "special_tokens_in_strings")
    lowercase, strip, inside = flags = [values.get(key, False) for key in keys]
    others = {key: values[key] for key in _RULE if values.get(key, _RULE[key]) != _RULE[key]}
    others |= {key: flag for key, flag in zip(keys, flags, strict=True) if type(flag) is not bool}
    if inside and values.get("special_tokens"):
        others["special_tokens"] = values["special_tokens"]
    if name != "BertTokenizer" or others:
        raise ValueError(
            f"{where}: expected a BertTokenizer that follows BERT's own rule, found "
            f"{shown(name):.80} with {short(others)}"
        )
    contents.tokenizer = {
        "lowercase": lowercase,
        "strip_accents": strip or lowercase,
        "max_word_length": hub.LONGEST_WORD,
        "splitting": "bert",
        "special_tokens_in_text": inside,
    }
    path = source.path(hub.VOCABULARY)
    contents.vocabulary = read_vocabulary(path)
    check_vocabulary_fits(contents.vocabulary, contents.config, str(path))


def _take_sidecar(source: Source, contents: Contents) -> None:
    """Applies keras_bert.json, which takes precedence over KerasHub's files."""
    beside, where = read_sidecar(source), f"{source.name}/{SIDECAR}"
    head = beside.get("head")
    if None not in (head, contents.head) and head != contents.head:
        raise ValueError(f"{where} has the head {head!r}; {hub.TASK} has {contents.head!r}")
    contents.head = head or contents.head
    contents.config |= beside.get("config", {})
    if beside:  # then KerasHub's files hold a head of this package
        contents.masked_lm = beside.get("masked_lm", {})
    for name in ("labels", "problem", "thresholds", "temperature", "head_dropout", "dtype"):
        setattr(contents, name, beside.get(name, getattr(contents, name)))
    if contents.tokenizer is not None:
        contents.tokenizer = beside.get("tokenizer") or contents.tokenizer


# Tensors.


def _read_tensors(source: Source, contents: Contents, task: str, classes: Any) -> None:
    """Fills tensors, dtype and left_over; checks each file's shapes before reading values."""
    path, config = source.path(hub.WEIGHTS), contents.config
    _check_size(config, path)
    dtypes = _take_file(contents, path, expand(hub.NAMES, config["num_layers"]))
    extra = [name for name in contents.left_over if name.startswith(hub.BLOCKS)]
    if extra:
        raise ValueError(
            f"{path}: num_layers in {hub.CONFIG} is {config['num_layers']}, and there is more: "
            f"{', '.join(extra[:5])}"
        )
    if task:
        rows = hub.TASKS.get(task, ())
        if rows is hub.CLASSIFIER:
            check_size(classes, "num_classes", f"{source.name}/{hub.TASK}")
        dtypes |= _take_file(contents, source.path(hub.TASK_WEIGHTS), rows, classes)
    if contents.dtype == "float32" and len(dtypes) == 1:
        contents.dtype = dtypes.pop()
    _take_heads_beside(source, contents)


def _check_size(config: Mapping[str, Any], path: Path) -> None:
    """Checks the file's size before expanding the name table, which grows with the layers."""
    need, size = 2 * least_numbers(config), path.stat().st_size
    if need > size:
        raise ValueError(
            f"{path} has {size:,} bytes; a model of the sizes in {hub.CONFIG} takes {need:,} at "
            "least"
        )


def _take_file(contents: Contents, path: Path, rows: Iterable[Row], classes: int = 1) -> set[str]:
    """Reads a Keras weight file into the contents, and returns the dtypes in it."""
    shapes = shapes_of(rows, contents.config, classes)
    found = read_weights(
        path,
        {row.theirs: shape for row, shape in shapes.items()},
        [row.theirs for row in shapes if row.ours in hub.POOLER],
    )
    contents.tensors |= to_ours(shapes, found.tensors, str(path))[0]
    others = [name for name in found.others if not name.startswith(hub.SECOND_COPY)]
    contents.left_over += [f"{path.name}/{name}" for name in others]
    if len(contents.tensors.keys() & set(hub.POOLER)) == 1:
        raise ValueError(f"{path} has half of a pooler")
    return found.dtypes


def _take_heads_beside(source: Source, contents: Contents) -> None:
    """Adds the heads in this package's file; checks all heads, and the labels."""
    rows, path = hub.rows_beside(contents.head), None
    beside = {}
    if source.has(hub.HEADS_BESIDE):
        path = source.path(hub.HEADS_BESIDE)
        beside = read_headers([path])
    strange = beside.keys() - {row.ours for row in rows} | beside.keys() & contents.tensors.keys()
    faults = [f"{name} is none of the heads that {hub.TASK} has no place for" for name in strange]
    shapes = {name: tensor.shape for name, tensor in (contents.tensors | beside).items()}
    check_shapes(str(path or source.name), rows, shapes, contents, others=sorted(faults))
    contents.tensors |= {name: tensor.load() for name, tensor in beside.items()}
