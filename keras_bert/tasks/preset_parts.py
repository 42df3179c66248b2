"""What a checkpoint holds for the models of pre-training beside the backbone."""

import logging

import keras

from keras_bert.checkpoints import Checkpoint
from keras_bert.checkpoints.preset import load_h5

logger = logging.getLogger("keras_bert")


def saved_heads(checkpoint: Checkpoint) -> list[str]:
    """Names of the heads of pre-training that a checkpoint holds."""
    if checkpoint.contents is not None:
        return [name for name in checkpoint.heads() if name != "head"]
    if checkpoint.settings("task.json", "BertMaskedLM"):
        return ["masked_lm_head"]
    saved = checkpoint.settings("task.json", "BertPretrainer")
    if not saved:
        return []
    return ["masked_lm_head", *(["next_sentence_head"] if saved["next_sentence"] else [])]


def load_heads(model, checkpoint: Checkpoint, load_weights: bool) -> None:
    """Loads the heads that a checkpoint has, and reports on all; sets `loading_report`.

    Args:
        model: a `BertMaskedLM`.
        checkpoint: where it came from.
        load_weights: whether weights are to be loaded; what is new then is logged as a warning.
    """
    report, saved = checkpoint.report, saved_heads(checkpoint) if load_weights else []
    heads = model._heads()
    new = [head for head in heads if head.name not in saved]
    if checkpoint.contents is not None:
        for head in heads:
            if head.name in saved:
                checkpoint.fill_head(model, head.name)
    elif saved:
        skipped = [*model._not_of_the_task(), *new]
        load_h5(
            lambda path: keras.saving.load_weights(model, path, objects_to_skip=skipped),
            checkpoint.source.path("task.weights.h5"),
        )
        model.freeze_own(checkpoint.settings("task.json", type(model).__name__).get("frozen"))
    for head in heads:
        paths = [weight.path for weight in head.weights]
        if head in new:
            report.new += paths
        elif checkpoint.contents is None:
            report.loaded += paths
    if load_weights and report.new:
        logger.warning("%s", report)
    model.loading_report = report
