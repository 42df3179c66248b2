"""Writes presets of KerasHub's BERT."""

import json
from pathlib import Path

import keras
import keras_hub
import numpy as np

from keras_bert.atomic import write_file
from keras_bert.checkpoints import kerashub_names as hub
from keras_bert.checkpoints.checks import SIZES, check_vocabulary_fits
from keras_bert.checkpoints.contents import MASKED_LM, NOT_CAUSAL, Contents
from keras_bert.checkpoints.keras_weight_files import overwrite
from keras_bert.checkpoints.names import Row, expand, to_theirs
from keras_bert.checkpoints.safetensors_files import write_tensors
from keras_bert.checkpoints.shapes import check_shapes
from keras_bert.checkpoints.sidecar import write_sidecar
from keras_bert.text.vocabulary import write_vocabulary

_KEPT = "kept in keras_bert.json"
_NUMBERS = ("layer_norm_epsilon", "initializer_range")


def write(contents: Contents, folder: Path) -> list[str]:
    """Writes a preset that keras_hub's `from_preset` reads, with the task that fits its heads.

    BertBackbone and BertTokenizer are always there; a head "classifier" makes a BertTextClassifier,
    else a masked-LM head makes a BertMaskedLM. KerasHub's file has a pooler in any case; one that
    the contents lack is new there, and marked so that `read` passes over it.

    Returns:
        Sentences on everything that the format cannot hold or represents differently.

    Raises:
        ValueError: if tensors are missing or of the wrong shape.
    """
    config, tensors, notes = contents.config, dict(contents.tensors), _notes(contents)
    new = () if contents.has("pooler/") else hub.POOLER
    if new:
        tensors |= _new_pooler(config["hidden_dim"])
        notes.append("There is no pooler: KerasHub gets a new one, which keras_bert passes over.")
    rows = expand(hub.NAMES, config["num_layers"])
    ours = [*(Row(row.ours, row.ours) for row in rows), *hub.rows_beside(contents.head)]
    shapes = {name: value.shape for name, value in tensors.items()}
    unknown = [f"{n} is unknown" for n in sorted(shapes.keys() - {row.ours for row in ours})]
    begin = f"the tensors of {contents.source} do not fit it"
    check_shapes(begin, ours, shapes, contents, others=unknown)
    model, task_rows = _model(contents, _write_text(contents, folder, notes))
    model.save_to_preset(str(folder), max_shard_size=None)
    values, beside = to_theirs(rows, tensors, config["num_heads"])
    overwrite(folder / hub.WEIGHTS, values, [row.theirs for row in rows if row.ours in new])
    if task_rows:
        values, _ = to_theirs(task_rows, tensors, config["num_heads"])
        overwrite(folder / hub.TASK_WEIGHTS, values)
    beside = {name: tensors[name] for name in beside if name not in {r.ours for r in task_rows}}
    if beside:
        write_tensors(folder / hub.HEADS_BESIDE, beside, "float32")
        parts = sorted({name.split("/")[0] for name in beside})
        place = f"{hub.HEADS_BESIDE} keeps it"
        notes.append(f"KerasHub's files have no place for {' and '.join(parts)}: {place}.")
    write_sidecar(contents, folder)
    return notes


def _new_pooler(hidden: int) -> dict[str, np.ndarray]:
    kernel = np.random.default_rng(0).normal(0, 0.02, (hidden, hidden))
    return {"pooler/kernel": kernel.astype("float32"), "pooler/bias": np.zeros(hidden, "float32")}


def _model(contents: Contents, tokenizer) -> tuple[keras.Model, tuple[Row, ...]]:
    """KerasHub's model for what is there, whose numbers are to be overwritten, and the name table
    of its file: of a task, or () of a backbone."""
    config, has, models = contents.config, contents.tensors.keys(), keras_hub.models
    backbone = models.BertBackbone(
        **{key: config[key] for key in SIZES},
        dropout=config["hidden_dropout"],
        dtype="float32",
        name="bert_backbone",
    )
    length, preprocessor = config["max_sequence_length"], None
    if contents.head == "classifier" and has >= {row.ours for row in hub.CLASSIFIER}:
        if tokenizer is not None:
            preprocessor = models.BertTextClassifierPreprocessor(tokenizer, length)
        share, classes = contents.head_dropout, contents.tensors["head/bias"].size
        task = models.BertTextClassifier(
            backbone,
            classes,
            preprocessor,
            dropout=hub.DROPOUT if share is None else share,
            name="bert_text_classifier",
        )
        return task, hub.CLASSIFIER
    if has >= {row.ours for row in hub.MASKED_LM_HEAD}:
        if tokenizer is not None:
            preprocessor = models.BertMaskedLMPreprocessor(tokenizer, length)
        task = models.BertMaskedLM(backbone, preprocessor, name="bert_masked_lm")
        return task, hub.MASKED_LM_HEAD
    return backbone, ()


def _write_text(contents: Contents, folder: Path, notes: list[str]):
    """Writes the tokenizer, and returns KerasHub's if it accepts the vocabulary."""
    rule, tokens = contents.tokenizer, contents.vocabulary
    if rule is None or tokens is None:
        return None
    check_vocabulary_fits(tokens, contents.config, contents.source)
    lowercase, strip = rule.get("lowercase", True), rule.get("strip_accents")
    settings = {
        "lowercase": lowercase,
        "strip_accents": lowercase if strip is None else strip,
        "special_tokens_in_strings": rule.get("special_tokens_in_text", False),
        "name": "bert_tokenizer",
    }
    fine = True
    try:
        tokenizer = keras_hub.models.BertTokenizer(tokens, **settings)
    except (ValueError, RuntimeError) as error:  # no [MASK], a token twice
        tokenizer, fine = keras_hub.models.BertTokenizer(**settings), False
        notes.append(f"KerasHub's tokenizer does not take this vocabulary: {error!s:.200}")
    for name in ("added_tokens", "exact_tokens"):
        if rule.get(name):
            shown = ", ".join(map(repr, rule[name][:5]))
            notes.append(f"KerasHub's tokenizer cuts {name}, such as {shown}; they are {_KEPT}.")
    if fine and [token.rstrip() for token in tokens] != tokens:
        notes.append("KerasHub's tokenizer strips white space that some tokens end with.")
    values = keras.saving.serialize_keras_object(tokenizer)
    write_file(folder / hub.TOKENIZER, json.dumps(values, indent=4).encode())
    write_vocabulary(folder / hub.VOCABULARY, tokens)
    return tokenizer if fine else None


def _notes(contents: Contents) -> list[str]:
    """Notes on the differences of KerasHub."""
    config = contents.config
    notes = [NOT_CAUSAL] if config.get("causal") else []
    form = config["activation"]
    if form != "gelu_tanh":
        # all-MiniLM-L6-v2, 4 rows of 50 random ids: 0.009 at most; pooled, 0.0003.
        far = " by up to 0.01 or so" if form == "gelu_exact" else ""
        notes.append(f"KerasHub computes the tanh GELU, not {form}: its outputs differ{far}.")
    for name in _NUMBERS:
        if config[name] != hub.FIXED[name]:
            notes.append(f"KerasHub has {name} {hub.FIXED[name]:g}; {config[name]:g} is {_KEPT}.")
    share = config["attention_dropout"]
    if share != config["hidden_dropout"]:
        notes.append(
            f"KerasHub has hidden_dropout for both; attention_dropout {share:g} is {_KEPT}."
        )
    if contents.head != "classifier" and contents.has(MASKED_LM):
        own, names = config | contents.masked_lm, {"gelu_exact": "the exact GELU"}
        other = [
            names.get(value, f"{name} {value}")
            for name, value in hub.FIXED_MASKED_LM.items()
            if own[name] != value
        ]
        if other:
            notes.append(f"KerasHub's masked-LM head has {' and '.join(other)}: its logits differ.")
    if contents.labels is not None:
        notes.append(f"KerasHub has no names of classes; they are {_KEPT}.")
    if contents.problem != "single_label":
        notes.append(f"KerasHub does not tell problems apart; {contents.problem!r} is {_KEPT}.")
    if contents.dtype != "float32":
        notes.append(f"KerasHub's files get float32, which holds {contents.dtype} exactly.")
    if (contents.tokenizer or {}).get("splitting", "bert") != "bert":
        notes.append(f"KerasHub's tokenizer cuts words by BERT's rule; splitting is {_KEPT}.")
    longest = (contents.tokenizer or {}).get("max_word_length", hub.LONGEST_WORD)
    if longest != hub.LONGEST_WORD:
        notes.append(
            f"KerasHub makes [UNK] of words of more than {hub.LONGEST_WORD} bytes; max_word_length "
            f"{longest} is {_KEPT}."
        )
    return notes
