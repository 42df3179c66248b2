"""The original format: bert_config.json, a TensorFlow 1 checkpoint, vocab.txt.

Names and settings follow google-research/bert: modeling.py, run_pretraining.py, run_classifier.py
and run_squad.py. Everything that this format cannot hold is written to keras_bert.json next to it.
"""

import json
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from keras_bert.atomic import write_file
from keras_bert.checkpoints.checks import check_config, check_vocabulary_fits, listed, short, shown
from keras_bert.checkpoints.contents import HEADS, MASKED_LM, NOT_CAUSAL, Contents
from keras_bert.checkpoints.names import BERT_KEYS, Row, dense, expand, norm, to_ours, to_theirs
from keras_bert.checkpoints.shapes import check_shapes, faults_of, few
from keras_bert.checkpoints.sidecar import FILE, check_settings, read_sidecar, write_sidecar
from keras_bert.checkpoints.source import Source
from keras_bert.checkpoints.tensorflow_files import (
    OBJECT_GRAPH,
    find_prefix,
    read_index,
    read_tensors,
    write_tensors,
)
from keras_bert.text.vocabulary import check_vocabulary, read_vocabulary, write_vocabulary

CONFIG, VOCABULARY, PREFIX = "bert_config.json", "vocab.txt", "bert_model.ckpt"

_dense = partial(dense, ends=("/kernel", "/bias"))
_norm = partial(norm, ends=("/gamma", "/beta"))
_BLOCK = "bert/encoder/layer_{i}"
NAMES = (
    Row("embeddings/word/embeddings", "bert/embeddings/word_embeddings"),
    Row("embeddings/position_table", "bert/embeddings/position_embeddings"),
    Row("embeddings/segment_table", "bert/embeddings/token_type_embeddings"),
    *_norm("embeddings/layer_norm", "bert/embeddings/LayerNorm"),
    *_dense("block_{i}/attention/query", f"{_BLOCK}/attention/self/query"),
    *_dense("block_{i}/attention/key", f"{_BLOCK}/attention/self/key"),
    *_dense("block_{i}/attention/value", f"{_BLOCK}/attention/self/value"),
    *_dense("block_{i}/attention/output", f"{_BLOCK}/attention/output/dense"),
    *_norm("block_{i}/attention_norm", f"{_BLOCK}/attention/output/LayerNorm"),
    *_dense("block_{i}/intermediate", f"{_BLOCK}/intermediate/dense"),
    *_dense("block_{i}/feedforward_output", f"{_BLOCK}/output/dense"),
    *_norm("block_{i}/feedforward_norm", f"{_BLOCK}/output/LayerNorm"),
    *_dense("pooler", "bert/pooler/dense"),
    *_dense("masked_lm_head/dense", "cls/predictions/transform/dense"),
    *_norm("masked_lm_head/layer_norm", "cls/predictions/transform/LayerNorm"),
    Row("masked_lm_head/output_bias", "cls/predictions/output_bias"),
    # [2, H]: row 0 is "is next", as in run_pretraining.py and here.
    Row("next_sentence_head/dense/kernel", "cls/seq_relationship/output_weights", "transposed"),
    Row("next_sentence_head/dense/bias", "cls/seq_relationship/output_bias"),
)
# run_classifier.py's names, which its forks for tokens and choices keep; run_squad.py has its own.
_CLASSES = (Row("head/kernel", "output_weights", "transposed"), Row("head/bias", "output_bias"))
_ENDS = (
    Row("head/kernel", "cls/squad/output_weights", "transposed"),
    Row("head/bias", "cls/squad/output_bias"),
)
HEAD_NAMES = {name: _ENDS if name == "span" else _CLASSES for name in HEADS} | {None: ()}
# Variables of optimizers and training loops: AdamWeightDecayOptimizer and its LAMB forks,
# TensorFlow's own Adam, counters and loss scales.
_TRAINING = re.compile(
    r"(^|/)((adam|lamb)_[mv]|(Adam|LAMB|Momentum)(_1)?|beta[12]_power|global_step"
    r"|(num_)?good_steps|(current_)?loss_scale)$"
)
_LAYER = re.compile(r"bert/encoder/layer_(\d+)/")

# modeling.py's "gelu" is the tanh form.
_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "tanh": "tanh", "linear": "linear"}
# Of layer normalization: tf.contrib.layers.layer_norm's, which modeling.py uses.
_EPSILON = 1e-12
_DEFAULTS = {  # of `BertBackbone`, for settings that do not name all
    "hidden_dropout": 0.1,
    "attention_dropout": 0.1,
    "layer_norm_epsilon": _EPSILON,
    "initializer_range": 0.02,
}


def read(source: Source, weights: bool = True, prefix: str | None = None) -> Contents:
    """Reads a checkpoint of the original format.

    Without a keras_bert.json beside it: the activation "gelu" is the tanh form; a head
    `output_weights` is a classifier, of the problem "regression" if it has one row (STS-B), and
    `cls/squad/output_weights` a span; words have at most 200 characters; and text is lower-cased
    unless the vocabulary holds a token that lower-casing would change, special ones such as [MASK]
    or <S> aside. (google-research/bert uses the folder's name, "uncased" or "cased".)

    Optimizer slots, step counters and loss scales are ignored; other unknown variables are listed
    in `left_over`.

    Args:
        source: the folder.
        weights: False to leave the weights and the head's kind unread.
        prefix: what the checkpoint files' names begin with, such as "model.ckpt-1234"; None to
            look, see `find_prefix`.

    Raises:
        FileNotFoundError: if a file is missing; vocab.txt may be.
        ValueError: if a file is damaged, or the files are inconsistent.
    """
    said = read_sidecar(source)
    config = _read_config(source, said.pop("config", {}))
    contents = Contents(source.name, config, **said)
    if source.has(VOCABULARY) or contents.tokenizer is not None:
        contents.vocabulary = read_vocabulary(source.path(VOCABULARY))
        check_vocabulary_fits(contents.vocabulary, config, f"{source.name}/{VOCABULARY}")
        if contents.tokenizer is not None or "tokenizer" not in said:
            contents.tokenizer = _tokenizer(contents.vocabulary) | (contents.tokenizer or {})
    if weights:
        _read_weights(source, prefix, contents, said)
    return contents


def write(contents: Contents, folder: Path) -> list[str]:
    """Writes a checkpoint of the original format, bert_model.ckpt, in float32.

    Returns:
        A sentence for everything that the format cannot hold.

    Raises:
        ValueError: if the contents are inconsistent; nothing is written then.
    """
    config = _DEFAULTS | contents.config
    check_config(config, contents.source, BERT_KEYS)
    check_settings(contents)
    if contents.vocabulary is not None:
        check_vocabulary(contents.vocabulary, contents.source)
        check_vocabulary_fits(contents.vocabulary, config, contents.source)
    elif contents.tokenizer is not None:
        raise ValueError(f"{contents.source} has a tokenizer without a vocabulary")
    table = _table(contents)
    tensors, unknown = to_theirs(table, contents.tensors, config["num_heads"])
    shapes = {name: value.shape for name, value in tensors.items()}
    check_shapes(f"the tensors of {contents.source} do not fit it", table, shapes, contents)

    notes = _notes(contents)
    notes += [f"{name} has no place in this form and is not written." for name in unknown]
    values, folder = {theirs: config[ours] for ours, theirs in BERT_KEYS.items()}, Path(folder)
    if config["activation"] in ("gelu_exact", "gelu_tanh"):
        values["hidden_act"] = "gelu"
    write_file(folder / CONFIG, (json.dumps(values, indent=2, sort_keys=True) + "\n").encode())
    if contents.vocabulary is not None:
        write_vocabulary(folder / VOCABULARY, contents.vocabulary)
        if read_vocabulary(folder / VOCABULARY) != contents.vocabulary:
            notes.append("Blanks around tokens, and empty tokens at the end, are not written.")
    write_sidecar(contents, folder)
    write_tensors(folder / PREFIX, tensors)
    return notes


def _read_config(source: Source, said: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `BertBackbone` from bert_config.json, with precedence for the sidecar."""
    found, where = source.json(CONFIG), f"{source.name}/{CONFIG}"
    missing = [theirs for theirs in BERT_KEYS.values() if theirs not in found]
    if missing:
        raise ValueError(
            f"{where} has no {', '.join(missing)}; found: {shown(', '.join(sorted(found)))[:500]}"
        )
    config = {ours: found[theirs] for ours, theirs in BERT_KEYS.items()}
    config["layer_norm_epsilon"] = _EPSILON
    name = config["activation"]  # in any case, as in the original
    config["activation"] = _ACTIVATIONS.get(name.lower() if isinstance(name, str) else None)
    config |= said
    if config["activation"] is None:
        known = ", ".join(_ACTIVATIONS)
        raise ValueError(f"{where}: hidden_act is {short(name)}; expected one of {known}")
    check_config(config, where, BERT_KEYS)
    return config


def _tokenizer(vocabulary: list[str]) -> dict[str, Any]:
    """Settings of a tokenizer of which only the vocabulary is known; see `read`."""
    special = re.compile(r"\[.+\]|<.+>", re.DOTALL)
    return {
        "lowercase": not any(t.lower() != t for t in vocabulary if not special.fullmatch(t)),
        "strip_accents": None,
        "max_word_length": 200,
        "splitting": "bert",
        "special_tokens_in_text": False,
    }


def _read_weights(
    source: Source, prefix: str | None, contents: Contents, said: Mapping[str, Any]
) -> None:
    if prefix is None:
        prefix = find_prefix(source.folder) if source.folder else PREFIX
    index = read_index(source.path(f"{prefix}.index"))
    if OBJECT_GRAPH in index:
        raise another_form(source.name)
    shapes = {name: variable.shape for name, variable in index.items()}
    if "head" not in said:
        kernels = {head: HEAD_NAMES[head][0].theirs for head in ("span", "classifier")}
        contents.head = next((head for head, name in kernels.items() if name in index), None)
    if "problem" not in said and contents.head == "classifier":
        contents.problem = _problem(*shapes.get("output_weights", ())[:1])
    table = _table(contents)
    faults = faults_of(table, shapes, contents.config, contents.head, contents.labels)
    layers = {int(found[1]) for name in index if (found := _LAYER.match(name))}
    if layers and max(layers) >= contents.config["num_layers"]:
        count = contents.config["num_layers"]
        faults.append(f"num_hidden_layers is {count}, but there is a layer_{max(layers)}")
    unknown = sorted(set(index) - {row.theirs for row in table})
    contents.left_over = [name for name in unknown if not _TRAINING.search(name)]
    if faults:
        first = [name for name in sorted(index) if not _TRAINING.search(name)][:8] or ["none"]
        files = listed(source.folder) if source.folder else prefix
        raise ValueError(
            f"{source.name}/{prefix} and {CONFIG} do not fit each other: {few(faults)}. Its "
            f"{len(index)} variables begin with: {', '.join(first)}. Files: {files}"
        )
    wanted = [row.theirs for row in table if row.theirs in index]
    if "dtype" not in said:
        found = {index[name].dtype for name in wanted}
        contents.dtype = found.pop() if len(found) == 1 else "float32"
    tensors = read_tensors(prefix, index, wanted, source.path)
    contents.tensors, _ = to_ours(table, tensors, source.name)


def another_form(name: str) -> ValueError:
    """The error for checkpoints of the Model Garden, which TensorFlow 2 saves by objects."""
    return ValueError(
        f"{name} holds an object-based checkpoint of TensorFlow 2, as the Model Garden writes, "
        "which is another form than google-research/bert's: its variables have no names of BERT's. "
        "Take the same weights in another form (google-research/bert, Hugging Face or KerasHub), "
        "or write them from the Model Garden's model as a transformers directory"
    )


def _problem(classes: int = 0) -> str:
    """The most likely problem of a classifier with this number of classes; STS-B has one."""
    return "regression" if classes == 1 else "single_label"


def _table(contents: Contents) -> list[Row]:
    return expand((*NAMES, *HEAD_NAMES[contents.head]), contents.config["num_layers"])


def _notes(contents: Contents) -> list[str]:
    """Notes on what other readers of this format do not see; the sidecar holds it for `read`."""
    config = contents.config
    notes = [NOT_CAUSAL] if config.get("causal") else []
    activation = config["activation"]
    if activation == "gelu_exact":
        notes.append('hidden_act is written as "gelu", which the original takes for the tanh form.')
    elif activation not in _ACTIVATIONS.values():
        notes.append(f'hidden_act is written as "{activation}", which the original does not know.')
    epsilon = config.get("layer_norm_epsilon", _EPSILON)
    if epsilon != _EPSILON:
        notes.append(f"The original adds {_EPSILON} in layer normalization instead of {epsilon}.")
    if contents.masked_lm and contents.has(MASKED_LM):
        notes.append(
            f"The masked-LM head's own settings, {contents.masked_lm}, have no place in this form."
        )
    if contents.dtype != "float32":
        notes.append(f"The {contents.dtype} tensors are written as float32.")
    plain = _tokenizer(contents.vocabulary or [])
    notes += [
        f"{name} {value} has no place in this form."
        for name, value in sorted((contents.tokenizer or {}).items())
        if value != plain.get(name, [])
    ]
    if contents.head in ("token_classifier", "choice"):
        notes.append(f"The head is written by the names of a classifier; it is a {contents.head}.")
    if contents.head == "classifier" and contents.problem != _problem(
        contents.tensors["head/kernel"].shape[-1]
    ):
        notes.append(f"The problem {contents.problem} has no place in this form.")
    if contents.labels is not None:
        notes.append("The names of the labels have no place in this form.")
    if contents.head_dropout is not None:
        notes.append(f"head_dropout {contents.head_dropout} has no place in this form.")
    return [f"{note} {FILE} holds it." if "no place" in note else note for note in notes]
