"""Settings, classes and head weights of a task from a checkpoint."""

import functools
import inspect
import logging
from collections.abc import Collection

import keras
import keras_hub

from keras_bert.checkpoints import Checkpoint
from keras_bert.checkpoints.preset import load_h5
from keras_bert.tasks.targets import check_labels

logger = logging.getLogger("keras_bert")

# Constructor arguments that `from_preset` builds itself.
NOT_SET = {"self", "backbone", "preprocessor"}


@functools.cache
def own_settings(task: type) -> tuple[str, ...]:
    """Names of the arguments of a task's constructor beside backbone and preprocessor.

    Those of the class that it derives from count too, if it passes further arguments on.
    """
    names = []
    for kind in task.__mro__[: task.__mro__.index(keras_hub.models.Task)]:
        if "__init__" in vars(kind):
            parameters = inspect.signature(kind.__init__).parameters.values()
            names += [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
            if not any(p.kind is p.VAR_KEYWORD for p in parameters):
                break
    return tuple(dict.fromkeys(name for name in names if name not in NOT_SET))


def kept_settings(task: keras.Model) -> dict:
    """The arguments of a task's constructor that are attributes of the same name.

    Attributes that any Keras model has, such as `layers`, are not those arguments.
    """
    return {
        name: getattr(task, name)
        for name in own_settings(type(task))
        if name in vars(task) or isinstance(getattr(type(task), name, None), property)
        if not hasattr(keras.Model, name)
    }


def on_backbone(task: keras.Model, backbone: keras.Model, preprocessor) -> keras.Model:
    """A new task with the settings of another one."""
    config = task.get_config()
    settings = {name: config[name] for name in own_settings(type(task)) if name in config}
    return type(task)(backbone=backbone, preprocessor=preprocessor, **settings)


def complete(own: dict, task: type, saved: dict) -> None:
    """Adds to the arguments of a task those that a checkpoint holds and nobody passed."""
    for name in own_settings(task):
        if name in saved:
            own.setdefault(name, saved[name])


def saved_task(checkpoint: Checkpoint, task: type) -> dict:
    """A task's settings from a checkpoint of any format; empty if it holds none, or another's.

    Formats other than "keras_bert" give what they define of `labels`, `dropout`, `problem`,
    `num_classes` and so on.
    """
    contents = checkpoint.contents
    if contents is None:
        return checkpoint.settings("task.json", keras.saving.get_registered_name(task))
    if contents.head is None or contents.head != task.head_kind:
        return {}
    kernel = contents.tensors.get("head/kernel")
    found = {
        "labels": contents.labels,
        "dropout": contents.head_dropout,
        "problem": contents.problem,
        "thresholds": contents.thresholds,
        "temperature": contents.temperature,
        "num_classes": len(contents.labels or ()) or (None if kernel is None else kernel.shape[1]),
    }
    return {name: value for name, value in found.items() if value is not None}


def class_of_saved_task(checkpoint: Checkpoint, base: type) -> type:
    """The class, derived from `base`, of the task that a preset was saved from.

    Raises:
        ValueError: if the preset holds no task, or one of a class that is not defined.
    """
    name = None
    if checkpoint.contents is None and checkpoint.source.has("task.json"):
        name = checkpoint.source.json("task.json").get("registered_name")
    derived, found = [base], {}
    for task in derived:
        found[keras.saving.get_registered_name(task)] = task
        derived += task.__subclasses__()
    if str(name) not in found:  # which a file may hold in any type
        head = checkpoint.head_name()
        holds = f"the head of a {head}" if head else "no head"
        raise ValueError(
            f"{checkpoint.source.name} holds {holds}: call from_preset of a task's class, such as "
            "BertClassifier.from_preset"
        )
    return found[name]


def choose_classes(own: dict, checkpoint: Checkpoint, saved: dict, skip_mismatch: bool) -> bool:
    """Sets `num_classes` and `labels` in the arguments of a task, from them and a checkpoint.

    Returns whether the checkpoint's head, with the settings `saved`, fits.

    Raises:
        ValueError: if the number is not known, or the checkpoint's head is for other classes.
    """
    labels = check_labels(own.get("labels"))
    preset = checkpoint.source.name
    saved_labels, saved_classes = saved.get("labels"), saved.get("num_classes")
    num_classes = own.get("num_classes") or (labels and len(labels)) or saved_classes
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
    own |= {"num_classes": num_classes, "labels": labels}
    return fits


def saved_pretraining_heads(checkpoint: Checkpoint) -> list[str]:
    """Names of the pre-training heads in a checkpoint."""
    if checkpoint.contents is not None:
        return [name for name in checkpoint.heads() if name != "head"]
    if checkpoint.settings("task.json", "BertMaskedLM"):
        return ["masked_lm_head"]
    saved = checkpoint.settings("task.json", "BertPretrainer")
    if not saved:
        return []
    return ["masked_lm_head", *(["next_sentence_head"] if saved["next_sentence"] else [])]


def load_heads(
    task: keras.Model,
    checkpoint: Checkpoint,
    load_weights: bool,
    fitting: bool | Collection[str] | None,
) -> None:
    """Loads the weights that a task adds to its backbone, and sets its `loading_report`.

    `fitting` are names of the task's layers whose weights the checkpoint holds, or True for all;
    None if it holds a head that does not fit.
    """
    heads = [x for x in task.layers if x is not task.backbone and x.weights]
    report, fits = checkpoint.report, []
    if load_weights and fitting:
        fits = [x for x in heads if fitting is True or x.name in fitting]
    new = [layer for layer in heads if layer not in fits]
    if checkpoint.contents is not None:
        for layer in fits:
            if layer.name in checkpoint.heads():
                checkpoint.fill_head(task, layer.name)
            else:  # such as a CRF, which other formats lack
                new.append(layer)
    elif fits:
        load_h5(
            lambda path: task.load_task_weights(path, objects_to_skip=new),
            checkpoint.source.path("task.weights.h5"),
        )
        name = keras.saving.get_registered_name(type(task))
        task.freeze_own(checkpoint.settings("task.json", name).get("frozen"))
        report.loaded += [weight.path for layer in fits for weight in layer.weights]
    report.new += [weight.path for layer in new for weight in layer.weights]
    if fitting is None and load_weights:
        report.skipped += ["head/kernel", "head/bias"]
    task.loading_report = report
    if load_weights and report.new:
        logger.warning("%s", report)


def sorted_settings(task: type, settings: dict) -> tuple[dict, dict, dict]:
    """Splits arguments of `from_preset` into those of task, preprocessor and backbone.

    Those of task and preprocessor that are None stand for the checkpoint's.
    """
    known = own_settings(task)
    own, text, network = {}, {}, {}
    for name, value in settings.items():
        if name in known or name == "compile":
            part = own
        elif name in task.preprocessor_cls.settings:
            part = text
        else:
            part = network  # which refuses a misspelt one
        if value is not None or part is network:
            part[name] = value
    return own, text, network
