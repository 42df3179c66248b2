"""Writes a model in the format of another library."""

import logging
from pathlib import Path

import keras
import numpy as np

from keras_bert.arguments import check_choice
from keras_bert.atomic import write_folder
from keras_bert.checkpoints import google, huggingface, kerashub
from keras_bert.checkpoints.checks import NUMBERS, SIZES
from keras_bert.checkpoints.contents import Contents, changed_settings, own_masked_lm
from keras_bert.checkpoints.names import weights_by_name
from keras_bert.models.tuning import lora_layers
from keras_bert.text.tokenizer import SETTINGS, BertTokenizer

logger = logging.getLogger("keras_bert")

_FORMS = {
    "google": google,
    "huggingface": huggingface,
    "kerashub": kerashub,
    "sentence_transformers": huggingface,  # and more beside it
}
FORMS = tuple(_FORMS)
# What a folder of these forms may hold at its top; anything else is somebody's, and stays.
_FILES = {
    "google": ("bert_config.json", "bert_model.ckpt.*", "vocab.txt", "keras_bert.json"),
    "huggingface": ("*.json", "*.safetensors", "vocab.txt"),
    "kerashub": ("*.json", "*.weights.h5", "*.safetensors", "assets"),
    "sentence_transformers": ("*.json", "*.safetensors", "vocab.txt", "[0-9]_*"),
}
_CONFIG = (*SIZES, "activation", *NUMBERS)


def save_checkpoint(model: keras.Model | Contents, folder: str | Path, form: str) -> list[str]:
    """Writes a model in another library's format, atomically.

    Args:
        model: a `BertBackbone`, a task, or what `open_checkpoint` found in another form.
        folder: to make, or to replace if it holds a checkpoint of that form.
        form: "google" for google-research/bert's files, "huggingface" for a directory of
            transformers, "kerashub" for a KerasHub preset; of an embedder
            "sentence_transformers" for a directory of that library.

    Returns:
        Sentences on everything that the format cannot hold or represents differently; they are also
        logged. Settings that it cannot hold are written to keras_bert.json, which this package
        reads.

    Raises:
        FileExistsError: if the folder holds something else.
        ValueError: if the form is unknown, or the model has low-rank updates that are not
            merged, adapters, quantized weights, or a backbone with a setting that no form knows.
    """
    check_choice("form", form, FORMS)
    contents = model if isinstance(model, Contents) else contents_of(model)
    beside = form == "sentence_transformers"
    if beside and not hasattr(model, "write_beside"):
        raise ValueError(f"form={form!r}: expected a BertTextEmbedder")
    # A task's own words on what it has that no other form has a place for.
    notes: list[str] = [] if beside else [*getattr(model, "only_in_presets", ())]

    def write(path):
        notes.extend(_FORMS[form].write(contents, Path(path)))
        if beside:
            model.write_beside(Path(path))

    write_folder(folder, write, _FILES[form])
    for note in notes:
        logger.warning("%s: %s", folder, note)
    return notes


def contents_of(model: keras.Model, tokenizer: BertTokenizer | None = None) -> Contents:
    """Gives what a model holds in the terms that all forms share.

    A head of no kind that they know is left out.

    Args:
        model: a `BertBackbone` or a task.
        tokenizer: of a backbone; a task brings its own.

    Returns:
        `Contents`: settings, tensors by name, tokenizer and vocabulary.

    Raises:
        ValueError: as `save_checkpoint`.
    """
    backbone = getattr(model, "backbone", model)
    if lora_layers(backbone) or backbone.adapters:
        updates = "low-rank updates: call merge_lora first"
        adapters = "adapters, which no other form knows"
        raise ValueError(f"the model has {adapters if backbone.adapters else updates}")
    # A setting that somebody adds to the backbone would otherwise be lost without a word.
    for setting, value in changed_settings(backbone, {*_CONFIG, "causal"}).items():
        raise ValueError(f"the backbone has {setting}={value!r}, which no other form knows")
    tensors = {}
    for name, weight in weights_by_name(model).items():
        if not keras.backend.is_float_dtype(weight.dtype):
            raise ValueError(f"the model is quantized: {name} is {weight.dtype}")
        tensors[name] = np.asarray(keras.ops.convert_to_numpy(weight), "float32")
    if getattr(model, "preprocessor", None) is not None:
        tokenizer = model.preprocessor.tokenizer
    head = getattr(model, "head_kind", None)
    if head is None:
        tensors = {n: value for n, value in tensors.items() if not n.startswith("head")}
    config = {name: getattr(backbone, name) for name in _CONFIG}
    if backbone.causal:  # named only then: no other form knows it
        config["causal"] = True
    return Contents(
        source=model.name,
        config=config,
        tensors=tensors,
        head=head,
        masked_lm=own_masked_lm(model),
        labels=getattr(model, "labels", None) if head else None,
        problem=getattr(model, "problem", "single_label"),
        thresholds=getattr(model, "thresholds", None) if head else None,
        temperature=getattr(model, "temperature", 1.0) if head else 1.0,
        head_dropout=getattr(model, "dropout", None) if head else None,
        tokenizer=tokenizer and {name: getattr(tokenizer, name) for name in SETTINGS},
        vocabulary=tokenizer and tokenizer.get_vocabulary(),
    )
