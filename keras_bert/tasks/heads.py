"""How tasks with one head of their own come out of a checkpoint."""

import logging

import keras

from keras_bert.checkpoints import Checkpoint
from keras_bert.checkpoints.preset import load_h5
from keras_bert.tasks.targets import check_labels

logger = logging.getLogger("keras_bert")


def saved_task(checkpoint: Checkpoint, task: type) -> dict:
    """The settings that a checkpoint holds of a task; empty where it holds none, or another one.

    Args:
        checkpoint: of any form. Another form than ours gives `labels`, `dropout`, `problem` and
            `num_classes`, what it does not say left out.
        task: a class with a `head_kind`, one of `keras_bert.checkpoints.contents.HEADS`.
    """
    contents = checkpoint.contents
    if contents is None:
        return checkpoint.settings("task.json", task.__name__)
    if contents.head is None or contents.head != task.head_kind:
        return {}
    kernel = contents.tensors.get("head/kernel")
    found = {
        "labels": contents.labels,
        "dropout": contents.head_dropout,
        "problem": contents.problem,
        "thresholds": contents.thresholds,
        "num_classes": len(contents.labels or ()) or (None if kernel is None else kernel.shape[1]),
    }
    return {name: value for name, value in found.items() if value is not None}


def choose_classes(
    checkpoint: Checkpoint,
    saved: dict,
    num_classes: int | None,
    labels: list[str] | None,
    skip_mismatch: bool,
) -> tuple[int, list[str] | None, bool]:
    """Says which classes a task gets, of those that a user asks for and those of a checkpoint.

    Args:
        checkpoint: for errors, which say what it holds.
        saved: its settings.
        num_classes: asked for, or None.
        labels: asked for, or None.
        skip_mismatch: whether the checkpoint's head may be left out.

    Returns:
        (number of classes, their names or None, whether the checkpoint's head fits).

    Raises:
        ValueError: if the number is not known, or the checkpoint's head is for other classes.
    """
    labels = check_labels(labels)
    preset = checkpoint.source.name
    saved_labels, saved_classes = saved.get("labels"), saved.get("num_classes")
    num_classes = num_classes or (labels and len(labels)) or saved_classes
    if num_classes is None:
        head = checkpoint.head_name()
        holds = f"the head of a {head}, which this task has no place for" if head else "no head"
        raise ValueError(
            f"{preset} holds {holds}, so the number of classes is not known: pass num_classes= or "
            "labels= for a new one"
        )
    generic = [f"LABEL_{i}" for i in range(saved_classes or 0)]
    renamed = labels and saved_labels not in (None, generic) and list(labels) != saved_labels
    fits = saved_classes == num_classes and not renamed
    if saved_classes and not fits and not skip_mismatch:
        raise ValueError(
            f"{preset} has a head for {saved_classes} classes ({saved_labels}), not for "
            f"{num_classes} ({labels}): pass skip_mismatch=True for a new head"
        )
    if labels is None and fits and saved_labels != generic:
        labels = saved_labels
    return num_classes, labels, fits


def load_head(
    model: keras.Model,
    checkpoint: Checkpoint,
    load_weights: bool,
    there: bool,
    skipped: bool = False,
) -> None:
    """Loads what a task has on its backbone, or reports it as new; sets `loading_report`.

    Args:
        model: the task, with a layer `head`.
        checkpoint: where it came from.
        load_weights: whether weights are to be loaded; what is new then is logged as a warning.
        there: whether the checkpoint holds its head.
        skipped: whether it holds one at all: one that does not fit is left out.
    """
    report = checkpoint.report
    mine = [weight.path for weight in model.weights]
    known = {weight.path for weight in model.backbone.weights}
    paths = [path for path in mine if path not in known]
    there = there and load_weights
    if there and checkpoint.contents is None:
        load_h5(model.load_task_weights, checkpoint.source.path("task.weights.h5"))
        model.freeze_own(checkpoint.settings("task.json", type(model).__name__).get("frozen"))
        report.loaded += paths
    elif there and "head" in checkpoint.heads():
        checkpoint.fill_head(model, "head")
        report.new += [path for path in paths if path not in report.loaded]
    else:
        report.new += paths
        if skipped and load_weights:
            report.skipped += ["head/kernel", "head/bias"]
    model.loading_report = report
    if load_weights and report.new:
        logger.warning("%s", report)
