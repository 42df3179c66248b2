"""The original form: bert_config.json, a TensorFlow 1 checkpoint, vocab.txt.

Names and settings follow google-research/bert: modeling.py, run_pretraining.py, run_classifier.py
and run_squad.py. What that form has no place for goes into keras_bert.json beside it.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_bert.atomic import write_file
from keras_bert.checkpoints.contents import HEADS, MASKED_LM, NEXT_SENTENCE, Contents
from keras_bert.checkpoints.names import Row, expand, to_ours, to_theirs
from keras_bert.checkpoints.sidecar import FILE, read_sidecar, write_sidecar
from keras_bert.checkpoints.source import Source
from keras_bert.checkpoints.tensorflow_files import (
    find_prefix,
    read_index,
    read_tensors,
    write_tensors,
)
from keras_bert.text.vocabulary import check_vocabulary, read_vocabulary, write_vocabulary

CONFIG, VOCABULARY, PREFIX = "bert_config.json", "vocab.txt", "bert_model.ckpt"

NAMES = (
    Row("embeddings/word/embeddings", "bert/embeddings/word_embeddings"),
    Row("embeddings/position_table", "bert/embeddings/position_embeddings"),
    Row("embeddings/segment_table", "bert/embeddings/token_type_embeddings"),
    Row("embeddings/layer_norm/gamma", "bert/embeddings/LayerNorm/gamma"),
    Row("embeddings/layer_norm/beta", "bert/embeddings/LayerNorm/beta"),
    *(
        Row(f"block_{{i}}/{ours}/{part}", f"bert/encoder/layer_{{i}}/{theirs}/{part}")
        for ours, theirs, parts in (
            ("attention/query", "attention/self/query", ("kernel", "bias")),
            ("attention/key", "attention/self/key", ("kernel", "bias")),
            ("attention/value", "attention/self/value", ("kernel", "bias")),
            ("attention/output", "attention/output/dense", ("kernel", "bias")),
            ("attention_norm", "attention/output/LayerNorm", ("gamma", "beta")),
            ("intermediate", "intermediate/dense", ("kernel", "bias")),
            ("feedforward_output", "output/dense", ("kernel", "bias")),
            ("feedforward_norm", "output/LayerNorm", ("gamma", "beta")),
        )
        for part in parts
    ),
    Row("pooler/kernel", "bert/pooler/dense/kernel"),
    Row("pooler/bias", "bert/pooler/dense/bias"),
    Row("masked_lm_head/dense/kernel", "cls/predictions/transform/dense/kernel"),
    Row("masked_lm_head/dense/bias", "cls/predictions/transform/dense/bias"),
    Row("masked_lm_head/layer_norm/gamma", "cls/predictions/transform/LayerNorm/gamma"),
    Row("masked_lm_head/layer_norm/beta", "cls/predictions/transform/LayerNorm/beta"),
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
# What optimizers and training loops keep beside the weights: AdamWeightDecayOptimizer and its
# LAMB forks, TensorFlow's own Adam, counters and loss scales.
_TRAINING = re.compile(
    r"(^|/)((adam|lamb)_[mv]|(Adam|LAMB|Momentum)(_1)?|beta[12]_power|global_step"
    r"|(num_)?good_steps|(current_)?loss_scale)$"
)
_LAYER = re.compile(r"bert/encoder/layer_(\d+)/")

_KEYS = {
    "vocabulary_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "hidden_dim": "hidden_size",
    "intermediate_dim": "intermediate_size",
    "max_sequence_length": "max_position_embeddings",
    "num_segments": "type_vocab_size",
    "activation": "hidden_act",
    "hidden_dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "initializer_range": "initializer_range",
}
# Whole numbers from 1 on. The limits lie far above any BERT: sizes beyond them are damage, and are
# refused before anything is made of them.
_LARGEST = {
    "vocabulary_size": 10_000_000,
    "num_layers": 1_000,
    "num_heads": 1_000_000,
    "hidden_dim": 1_000_000,
    "intermediate_dim": 10_000_000,
    "max_sequence_length": 10_000_000,
    "num_segments": 1_000_000,
}
# Numbers from 0 on.
_BELOW = dict(hidden_dropout=1, attention_dropout=1, layer_norm_epsilon=1, initializer_range=1_000)
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
_PROBLEMS = ("single_label", "multi_label", "regression")


def read(source: Source, weights: bool = True, prefix: str | None = None) -> Contents:
    """Reads a checkpoint of the original form.

    Without a keras_bert.json beside it: the activation "gelu" is the tanh form; a head
    `output_weights` is a classifier, of the problem "regression" if it has one row (STS-B), and
    `cls/squad/output_weights` a span; words have at most 200 characters; and text is lower-cased
    unless the vocabulary holds a token that lower-casing would change, special ones such as [MASK]
    or <S> aside. (google-research/bert goes by the folder's name, "uncased" or "cased".)

    Optimizer slots, step counters and loss scales are passed over; other unknown variables are
    in `left_over`.

    Args:
        source: the folder.
        weights: False to leave the weights and the head's kind unread.
        prefix: what the checkpoint files' names begin with, such as "model.ckpt-1234"; None to
            look, see `find_prefix`.

    Returns:
        What it holds.

    Raises:
        FileNotFoundError: if a file is missing; vocab.txt may be.
        ValueError: if a file is damaged, or the files do not fit each other.
    """
    try:
        said = read_sidecar(source)
        _check_values(said, f"{source.name}/{FILE}")
        config = _read_config(source, said.pop("config", {}))
    except RecursionError:
        raise ValueError(f"{source.name}: a JSON file in it is nested too deeply") from None
    contents = Contents(source.name, config, **said)
    if source.has(VOCABULARY) or contents.tokenizer is not None:
        contents.vocabulary = read_vocabulary(source.path(VOCABULARY))
        _check_rows(contents, f"{source.name}/{VOCABULARY}")
        if contents.tokenizer is not None or "tokenizer" not in said:
            contents.tokenizer = _tokenizer(contents.vocabulary) | (contents.tokenizer or {})
    if weights:
        _read_weights(source, prefix, contents, said)
    return contents


def write(contents: Contents, folder: Path) -> list[str]:
    """Writes a checkpoint of the original form, bert_model.ckpt, in float32.

    Args:
        contents: what to write.
        folder: an empty folder.

    Returns:
        A sentence for each thing that the form has no place for.

    Raises:
        ValueError: if the contents do not fit each other; nothing is written then.
    """
    config = _DEFAULTS | contents.config
    _check_config(config, contents.source)
    _check_values(vars(contents), contents.source)
    if contents.vocabulary is not None:
        check_vocabulary(contents.vocabulary, contents.source)
        _check_rows(contents, contents.source)
    elif contents.tokenizer is not None:
        raise ValueError(f"{contents.source} has a tokenizer without a vocabulary")
    table = _table(contents)
    tensors, unknown = to_theirs(table, contents.tensors, config["num_heads"])
    faults = _faults(table, {name: value.shape for name, value in tensors.items()}, contents)
    if faults:
        raise ValueError(f"the tensors of {contents.source} do not fit it: {_few(faults)}")

    notes = _notes(contents)
    notes += [f"{name} has no place in this form and is not written." for name in unknown]
    values, folder = {theirs: config[ours] for ours, theirs in _KEYS.items()}, Path(folder)
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
    """Arguments of `BertBackbone` from bert_config.json, and from the sidecar before it."""
    found, where = source.json(CONFIG), f"{source.name}/{CONFIG}"
    missing = [theirs for theirs in _KEYS.values() if theirs not in found]
    if missing:
        raise ValueError(f"{where} has no {', '.join(missing)}; found: {', '.join(sorted(found))}")
    config = {ours: found[theirs] for ours, theirs in _KEYS.items()}
    config["layer_norm_epsilon"] = _EPSILON
    name = config["activation"]  # in any case, as in the original
    config["activation"] = _ACTIVATIONS.get(name.lower() if isinstance(name, str) else None)
    config |= said
    if config["activation"] is None:
        known = ", ".join(_ACTIVATIONS)
        raise ValueError(f"{where}: hidden_act is {str(name)[:40]!r}; expected one of {known}")
    _check_config(config, where)
    return config


def _check_config(config: Mapping[str, Any], where: str) -> None:
    faults = []
    for name, most in _LARGEST.items():
        value = config.get(name)
        if type(value) is not int or not 1 <= value <= most:
            faults.append(f"{_KEYS[name]} is {str(value)[:40]}, expected 1 to {most}")
    for name, limit in _BELOW.items():
        value = config.get(name)
        if type(value) not in (int, float) or not 0 <= value < limit:
            faults.append(f"{name} is {str(value)[:40]}, expected 0 or more and below {limit}")
    if not isinstance(config.get("activation"), str):
        faults.append(f"activation is {str(config.get('activation'))[:40]}, expected a name")
    if not faults and config["hidden_dim"] % config["num_heads"]:
        faults.append(
            f"hidden_size {config['hidden_dim']} is no multiple of {config['num_heads']} heads"
        )
    if faults:
        raise ValueError(f"{where}: {'; '.join(faults)}")


def _check_values(said: Mapping[str, Any], where: str) -> None:
    """Looks at what `read_sidecar` leaves to the form: the values, their kinds being right."""
    labels, dropout, tokenizer = (said.get(n) for n in ("labels", "head_dropout", "tokenizer"))
    settings = _tokenizer([]) | (tokenizer or {})
    right = {
        "head": said.get("head") in HEAD_NAMES,
        "problem": said.get("problem", "single_label") in _PROBLEMS,
        "dtype": said.get("dtype", "float32") in ("float32", "float16", "bfloat16"),
        "labels": labels is None or all(isinstance(label, str) for label in labels),
        "head_dropout": dropout is None or 0 <= dropout < 1,
        "tokenizer": len(settings) == 4
        and isinstance(settings["lowercase"], bool)
        and isinstance(settings["strip_accents"], bool | None)
        and isinstance(settings["special_tokens_in_text"], bool)
        and type(settings["max_word_length"]) is int
        and settings["max_word_length"] > 0,
    }
    wrong = [f"{name}: {str(said[name])[:200]}" for name, fits in right.items() if not fits]
    if wrong:
        raise ValueError(f"{where}: unexpected {'; '.join(wrong)}")


def _tokenizer(vocabulary: list[str]) -> dict[str, Any]:
    """Settings of a tokenizer of which only the vocabulary is known; see `read`."""
    special = re.compile(r"\[.+\]|<.+>", re.DOTALL)
    return {
        "lowercase": not any(t.lower() != t for t in vocabulary if not special.fullmatch(t)),
        "strip_accents": None,
        "max_word_length": 200,
        "special_tokens_in_text": False,
    }


def _check_rows(contents: Contents, where: str) -> None:
    tokens, rows = len(contents.vocabulary), contents.config["vocabulary_size"]
    if tokens > rows:
        raise ValueError(f"{where} has {tokens} tokens, but vocab_size is {rows}")


def _read_weights(
    source: Source, prefix: str | None, contents: Contents, said: Mapping[str, Any]
) -> None:
    if prefix is None:
        prefix = find_prefix(source.folder) if source.folder else PREFIX
    index = read_index(source.path(f"{prefix}.index"))
    shapes = {name: variable.shape for name, variable in index.items()}
    if "head" not in said:
        kernels = {head: HEAD_NAMES[head][0].theirs for head in ("span", "classifier")}
        contents.head = next((head for head, name in kernels.items() if name in index), None)
    if "problem" not in said and contents.head == "classifier":
        contents.problem = _problem(*shapes.get("output_weights", ())[:1])
    table = _table(contents)
    faults = _faults(table, shapes, contents)
    layers = {int(found[1]) for name in index if (found := _LAYER.match(name))}
    if layers and max(layers) >= contents.config["num_layers"]:
        count = contents.config["num_layers"]
        faults.append(f"num_hidden_layers is {count}, but there is a layer_{max(layers)}")
    unknown = sorted(set(index) - {row.theirs for row in table})
    contents.left_over = [name for name in unknown if not _TRAINING.search(name)]
    if faults:
        first = [name for name in sorted(index) if not _TRAINING.search(name)][:8] or ["none"]
        files = sorted(path.name for path in source.folder.iterdir()) if source.folder else [prefix]
        raise ValueError(
            f"{source.name}/{prefix} and {CONFIG} do not fit each other: {_few(faults)}. Its "
            f"{len(index)} variables begin with: {', '.join(first)}. Files: {', '.join(files)}"
        )
    wanted = [row.theirs for row in table if row.theirs in index]
    if "dtype" not in said:
        found = {index[name].dtype for name in wanted}
        contents.dtype = found.pop() if len(found) == 1 else "float32"
    tensors = read_tensors(prefix, index, wanted, source.path)
    contents.tensors, _ = to_ours(table, tensors, source.name)


def _problem(classes: int = 0) -> str:
    """What a classifier of so many classes most likely is; STS-B's has one."""
    return "regression" if classes == 1 else "single_label"


def _table(contents: Contents) -> list[Row]:
    return expand((*NAMES, *HEAD_NAMES[contents.head]), contents.config["num_layers"])


def _faults(
    table: list[Row], shapes: Mapping[str, tuple[int, ...]], contents: Contents
) -> list[str]:
    """What is missing or of another shape, by the checkpoint's names.

    The pooler and the heads of pre-training may be missing, but each as a whole.
    """
    optional = ("pooler/", MASKED_LM, NEXT_SENTENCE)
    present = {row.ours.split("/")[0] + "/" for row in table if row.theirs in shapes}
    absent = tuple(group for group in optional if group not in present)
    kernel = shapes.get(HEAD_NAMES[contents.head][0].theirs) if contents.head else None
    classes = {"span": 2, "choice": 1}.get(contents.head) or (kernel[0] if kernel else 0) or 1
    faults = []
    for row in (row for row in table if not row.ours.startswith(absent)):
        shape, found = _expected(row, contents.config, classes), shapes.get(row.theirs)
        if found is None:
            faults.append(f"{row.theirs} is missing")
        elif tuple(found) != shape:
            faults.append(f"{row.theirs} has shape {list(found)}, expected {list(shape)}")
    if contents.head and contents.labels is not None and len(contents.labels) != classes:
        faults.append(f"{len(contents.labels)} labels are for {classes} classes")
    return faults


def _expected(row: Row, config: Mapping[str, Any], classes: int) -> tuple[int, ...]:
    """The shape of a variable of the checkpoint."""
    hidden, inner = config["hidden_dim"], config["intermediate_dim"]
    shapes = {
        "word/embeddings": (config["vocabulary_size"], hidden),
        "embeddings/position_table": (config["max_sequence_length"], hidden),
        "embeddings/segment_table": (config["num_segments"], hidden),
        "intermediate/kernel": (hidden, inner),
        "intermediate/bias": (inner,),
        "feedforward_output/kernel": (inner, hidden),
        "masked_lm_head/output_bias": (config["vocabulary_size"],),
        "next_sentence_head/dense/kernel": (hidden, 2),
        "next_sentence_head/dense/bias": (2,),
        "head/kernel": (hidden, classes),
        "head/bias": (classes,),
    }
    ending = "/".join(row.ours.split("/")[-2:])
    other = (hidden, hidden) if row.ours.endswith("kernel") else (hidden,)
    shape = shapes.get(row.ours) or shapes.get(ending) or other
    return shape[::-1] if row.layout == "transposed" else shape


def _few(faults: list[str]) -> str:
    more = f"; and {len(faults) - 8} more" if len(faults) > 8 else ""
    return "; ".join(faults[:8]) + more


def _notes(contents: Contents) -> list[str]:
    """What other readers of this form will not see; the sidecar holds it for `read`."""
    config, notes = contents.config, []
    activation = config["activation"]
    if activation == "gelu_exact":
        notes.append('hidden_act is written as "gelu", which the original takes for the tanh form.')
    elif activation not in _ACTIVATIONS.values():
        notes.append(f'hidden_act is written as "{activation}", which the original does not know.')
    epsilon = config.get("layer_norm_epsilon", _EPSILON)
    if epsilon != _EPSILON:
        notes.append(f"The original adds {_EPSILON} in layer normalization instead of {epsilon}.")
    if contents.dtype != "float32":
        notes.append(f"The {contents.dtype} tensors are written as float32.")
    plain = _tokenizer(contents.vocabulary or [])
    notes += [
        f"{name} {value} has no place in this form."
        for name, value in sorted((contents.tokenizer or {}).items())
        if value != plain[name]
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
