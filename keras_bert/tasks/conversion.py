"""Conversion between checkpoint formats."""

from pathlib import Path

import keras

from keras_bert.arguments import check_choice
from keras_bert.atomic import write_folder
from keras_bert.checkpoints import Checkpoint, contents_of, open_checkpoint, save_checkpoint
from keras_bert.checkpoints.preset import FILES
from keras_bert.checkpoints.sentence_transformers import read_embedding_settings
from keras_bert.checkpoints.writer import FORMS as OTHERS
from keras_bert.tasks.classifier import BertClassifier
from keras_bert.tasks.from_checkpoint import class_of_saved_task
from keras_bert.tasks.masked_lm import BertMaskedLM
from keras_bert.tasks.multiple_choice import BertMultipleChoice
from keras_bert.tasks.pretrainer import BertPretrainer
from keras_bert.tasks.question_answerer import BertQuestionAnswerer
from keras_bert.tasks.task import BertTask
from keras_bert.tasks.text_embedder import BertTextEmbedder
from keras_bert.tasks.token_classifier import BertTokenClassifier

FORMS = (*OTHERS, "keras_bert")
_BY_HEAD = {
    task.head_kind: task
    for task in (BertClassifier, BertTokenClassifier, BertQuestionAnswerer, BertMultipleChoice)
}


def convert_checkpoint(source: str | Path, target: str | Path, form: str) -> list[str]:
    """Writes a checkpoint in another format, heads and settings included.

    Between two formats other than "keras_bert" no model is built, so every head is converted. A
    preset of this package holds one task: that of the head if there is one, else the pre-training
    heads.

    Args:
        source: as `open_checkpoint`.
        target: folder to create, or to replace if it holds a checkpoint of that format.
        form: "google", "huggingface", "kerashub", "sentence_transformers" or "keras_bert".

    Returns:
        Sentences on everything that the new format cannot hold or represents differently.

    Raises:
        FileNotFoundError: if there is nothing at `source`, or a file is missing.
        FileExistsError: if `target` holds something else.
        ValueError: if the format is unknown, `source` is damaged, or it is a preset of a task that
            this package does not have.
    """
    check_choice("form", form, FORMS)
    embedding = read_embedding_settings(source)
    checkpoint = open_checkpoint(embedding.checkpoint if embedding else source)
    embeds = embedding or form == "sentence_transformers"
    if form not in ("keras_bert", "sentence_transformers") and checkpoint.contents is not None:
        notes = [
            f"left out, for it means nothing to us: {n}" for n in checkpoint.contents.left_over
        ]
        if embedding:
            notes.append(
                f"left out, for the form does not say how texts are embedded: pooling "
                f"{', '.join(embedding.pooling)}, normalize={embedding.normalize}"
            )
        return notes + save_checkpoint(checkpoint.contents, target, form)
    task = BertTextEmbedder if embeds else task_class(checkpoint)
    if task is not None:
        model = task.from_preset(source)
        report = model.loading_report
        if form != "keras_bert":
            return save_checkpoint(model, target, form)
        model.save_to_preset(str(target))
    else:
        backbone, report = checkpoint.backbone(), checkpoint.report
        tokenizer = checkpoint.tokenizer() if checkpoint.has_text_side() else None
        if form != "keras_bert":
            return save_checkpoint(contents_of(backbone, tokenizer), target, form)
        write_folder(target, lambda folder: _save_parts(folder, backbone, tokenizer), FILES)
    return [f"left out, for the task has no place for it: {name}" for name in report.left_over]


def task_class(checkpoint: Checkpoint) -> type[keras.Model] | None:
    """The task class that a checkpoint belongs to; None for a backbone alone."""
    contents = checkpoint.contents
    if contents is None:
        has_task = checkpoint.source.has("task.json")
        return class_of_saved_task(checkpoint, BertTask) if has_task else None
    heads = checkpoint.heads()
    if "head" in heads:
        return _BY_HEAD[contents.head]
    if "next_sentence_head" in heads:
        return BertPretrainer
    return BertMaskedLM if heads else None


def _save_parts(folder: str, backbone, tokenizer) -> None:
    backbone.save_to_preset(folder)
    if tokenizer is not None:
        tokenizer.save_to_preset(folder)
