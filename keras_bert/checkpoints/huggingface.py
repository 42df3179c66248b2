"""Hugging Face directories: config.json, safetensors or PyTorch's files, tokenizer files.

Names and settings follow transformers' modeling_bert.py: `BertModel` and the classes with a head on
it. Files of transformers 4 and 5 are read, and both can read the files written here.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert.checkpoints import huggingface_config as settings
from keras_bert.checkpoints.checks import check_vocabulary_fits
from keras_bert.checkpoints.contents import MASKED_LM, NEXT_SENTENCE, NOT_CAUSAL, Contents
from keras_bert.checkpoints.huggingface_files import SAFETENSORS, stored_tensors
from keras_bert.checkpoints.huggingface_names import (
    BUFFERS,
    NAMES,
    TIED,
    full_name,
    head_by_tensors,
    plain_name,
    table,
)
from keras_bert.checkpoints.huggingface_tokenizer import read_tokenizer, write_tokenizer
from keras_bert.checkpoints.names import expand, to_ours, to_theirs
from keras_bert.checkpoints.safetensors_files import StoredTensor, write_tensors
from keras_bert.checkpoints.shapes import OPTIONAL, check_shapes
from keras_bert.checkpoints.sidecar import read_sidecar, write_sidecar
from keras_bert.checkpoints.source import Source

__all__ = ["NAMES", "read", "write"]


def read(source: Source, weights: bool = True) -> Contents:
    """Reads a directory of transformers' BERT, with any head.

    Buffers such as `embeddings.position_ids` are not weights, and tied tensors are checked against
    each other; neither is in `left_over`. PyTorch's files need PyTorch, which reads them safely in
    a separate process.

    Without `weights` their files are left alone; then the tensors are {}.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged, cannot be read safely, or contradicts another one; or if
            the model is not a BERT encoder with BERT's tokenizer.
    """
    values, config = settings.read_config(source)
    where = f"{source.name}/{settings.FILE}"
    class_name = settings.read_class(values, where)
    contents = Contents(source.name, config, head=settings.CLASSES.get(class_name or ""))
    contents.dtype = settings.read_dtype(values)
    tokenizer, tokens = read_tokenizer(source, values.get("tokenizer_class"))
    contents.tokenizer, contents.vocabulary = tokenizer, tokens
    check_vocabulary_fits(tokens, config, source.name)
    if weights:
        with stored_tensors(source) as stored:
            _take_tensors(contents, stored, class_name)
    _take_head_settings(contents, values, where)
    _take_sidecar(contents, source)
    return contents


def _take_tensors(
    contents: Contents, stored: Mapping[str, StoredTensor], class_name: str | None
) -> None:
    """Fills tensors, head, dtype and left_over; checks all shapes before reading values."""
    plain = _plain(stored, contents.source)
    if class_name is None:
        contents.head = head_by_tensors(plain)
    rows = expand(table(contents.head), _num_layers(contents, plain))
    wanted = {row.theirs: plain[row.theirs] for row in rows if row.theirs in plain}
    shapes = {name: tensor.shape for name, tensor in wanted.items()}
    begin = f"{contents.source} does not fit its configuration"
    check_shapes(begin, rows, shapes, contents, (*OPTIONAL, "head/"))
    types = {tensor.dtype for tensor in wanted.values()}
    for tensor in wanted.values():
        if tensor.dtype is None:
            raise ValueError(
                f"{contents.source}: {tensor.name} is of the type {tensor.kind}; expected weights "
                "of F32, F16 or BF16"
            )
    contents.dtype = types.pop() if len(types) == 1 else "float32"  # holds both others
    tensors = {name: tensor.load() for name, tensor in wanted.items()}
    for second, first in TIED.items():
        if second in plain:
            _check_tied(plain[second], first, tensors, contents.source)
    contents.tensors, _ = to_ours(rows, tensors, contents.source)
    known = {*wanted, *BUFFERS, *TIED}
    contents.left_over = sorted(tensor.name for name, tensor in plain.items() if name not in known)


def _plain(stored: Mapping[str, StoredTensor], source: str) -> dict[str, StoredTensor]:
    """Returns the tensors under a single spelling of their names."""
    plain: dict[str, StoredTensor] = {}
    for name, tensor in stored.items():
        spelled = plain_name(name)
        if spelled in plain:
            raise ValueError(f"{source}: {plain[spelled].name} and {name} name the same tensor")
        plain[spelled] = tensor
    for second, first in TIED.items():  # a file may hold a tensor only under its second name
        if second in plain and first not in plain:
            plain[first] = plain.pop(second)
    return plain


def _num_layers(contents: Contents, plain: Mapping[str, StoredTensor]) -> int:
    """The number of layers, if the file can have so many: the table grows with it."""
    claimed = contents.config["num_layers"]
    there = {name.split(".")[2] for name in plain if name.startswith("encoder.layer.")}
    if claimed > len(there):
        raise ValueError(
            f"{contents.source}: num_hidden_layers in {settings.FILE} is {claimed}, and there are "
            f"tensors of {len(there)} layers (encoder.layer.0 and so on); the {len(plain)} tensors "
            f"begin with: {', '.join(sorted(plain)[:8])}"
        )
    return claimed


def _check_tied(
    tensor: StoredTensor, first: str, tensors: Mapping[str, np.ndarray], source: str
) -> None:
    """Raises a ValueError unless a tensor equals the one that it is tied to in the model here."""
    other = tensors.get(first)
    if other is None or tensor.dtype is None or tensor.shape != other.shape:
        there = "which is missing" if other is None else f"of shape {other.shape}"
        problem = f", {tensor.kind} of shape {tensor.shape}, does not go with {first}, {there}"
    elif np.array_equal(tensor.load(), other, equal_nan=True):
        return
    else:
        problem = f" differs from {first}; only models where both are one (tie_word_embeddings) "
        problem += "are supported"
    raise ValueError(f"{source}: {tensor.name}{problem}")


def _take_head_settings(contents: Contents, values: dict[str, Any], where: str) -> None:
    bias = contents.tensors.get("head/bias")
    if contents.head in ("classifier", "token_classifier"):
        # transformers' default is two classes.
        labels = settings.read_labels(values, where) or settings.generic_labels(
            2 if bias is None else bias.size
        )
        if bias is not None and bias.size != len(labels):
            raise ValueError(f"{where} has {len(labels)} labels, and the head {bias.size} classes")
        contents.labels = labels
        if contents.head == "classifier":
            contents.problem = settings.read_problem(values, len(labels), where)
    contents.head_dropout = settings.read_head_dropout(values, contents.head, where)


# Settings that only keras_bert.json holds.


def _needs_sidecar(contents: Contents) -> bool:
    in_text = (contents.tokenizer or {}).get("special_tokens_in_text")
    tuned = contents.thresholds is not None or contents.temperature != 1
    dropped = contents.head == "span" and contents.head_dropout
    numbers = any(not isinstance(label, str) for label in contents.labels or ())
    causal = contents.config.get("causal", False)
    return bool(in_text or contents.masked_lm or tuned or dropped or numbers or causal)


def _take_sidecar(contents: Contents, source: Source) -> None:
    """Takes the six settings that the format cannot hold; it defines all others itself."""
    beside = read_sidecar(source)
    if beside.get("config", {}).get("causal"):
        contents.config["causal"] = True
    contents.thresholds = beside.get("thresholds")
    contents.temperature = beside.get("temperature", 1.0)
    contents.masked_lm = beside.get("masked_lm", {})
    if [str(label) for label in beside.get("labels") or ()] == contents.labels:
        contents.labels = beside["labels"]  # of which config.json has the strings
    if contents.tokenizer is not None:
        inside = (beside.get("tokenizer") or {}).get("special_tokens_in_text", False)
        contents.tokenizer["special_tokens_in_text"] = inside
    share = beside.get("head_dropout")
    if contents.head == "span" and share is not None:
        contents.head_dropout = share


def write(contents: Contents, folder: Path) -> list[str]:
    """Writes a directory that transformers 4 and 5 read, with the class that fits the heads.

    Both heads of pre-training make a BertForPreTraining, one of them a BertForMaskedLM or
    BertForNextSentencePrediction; another head takes precedence.

    The folder is empty; the tensors get the `dtype` of the contents.

    Returns:
        Sentences on everything that the format cannot hold or represents differently.

    Raises:
        ValueError: if tensors are missing or of the wrong shape, numbers are too large for the
            type, or transformers has no such activation.
    """
    class_name = settings.class_of(contents)
    head = settings.CLASSES[class_name]
    tensors, notes = _tensors_of(contents, class_name)
    rows = expand(table(head), contents.config["num_layers"])
    theirs, unknown = to_theirs(rows, tensors, contents.config["num_heads"])
    shapes = {name: value.shape for name, value in theirs.items()}
    begin = f"{contents.source} does not fit its configuration"
    check_shapes(begin, rows, shapes, replace(contents, head=head), (*OPTIONAL, "head/"))
    if unknown:
        notes.append(f"transformers' {class_name} has no place for {', '.join(unknown)}: left out")
    if class_name != "BertModel":
        theirs = {full_name(name): value for name, value in theirs.items()}
    rounded = write_tensors(folder / SAFETENSORS, theirs, contents.dtype)
    if rounded:
        notes.append(f"{rounded} tensors were rounded to {contents.dtype}")
    settings.write_config(contents, class_name, folder)
    notes += write_tokenizer(contents, folder)
    if _needs_sidecar(contents):
        write_sidecar(contents, folder)
    if contents.config.get("causal"):
        notes.append(NOT_CAUSAL)
    return notes


def _tensors_of(contents: Contents, class_name: str) -> tuple[dict[str, np.ndarray], list[str]]:
    """Returns the tensors that transformers' class has, and the names of those that it lacks."""
    left_out = {}
    if settings.CLASSES[class_name] is not None:
        left_out = dict.fromkeys((MASKED_LM, NEXT_SENTENCE), "the heads of pre-training")
    if class_name in settings.WITHOUT_POOLER:
        left_out["pooler/"] = "the pooler"
    elif not contents.has("pooler/") and class_name != "BertModel":
        raise ValueError(f"{contents.source}: a {class_name} needs a pooler, which is missing")
    notes = [
        f"transformers' {class_name} does not have {what}: left out"
        for what in dict.fromkeys(left_out.values())
        if any(contents.has(part) for part, name in left_out.items() if name == what)
    ]
    if contents.masked_lm and contents.has(MASKED_LM) and MASKED_LM not in left_out:
        notes.append(
            f"transformers' {class_name} has no settings for the masked-LM head alone, here "
            f"{contents.masked_lm}: its logits differ"
        )
    if contents.head is not None and not contents.has("head/"):
        notes.append(f"the head {contents.head!r} has no tensors: its settings are left out")
    if not contents.has("pooler/") and class_name == "BertModel":
        notes.append("there is no pooler: transformers' BertModel will make a new one")
    tensors = {n: v for n, v in contents.tensors.items() if not n.startswith(tuple(left_out))}
    return tensors, notes
