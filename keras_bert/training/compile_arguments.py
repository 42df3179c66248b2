"""Arguments of `compile`: checks, and conversion to the form that the step takes."""

import inspect
import json

import keras

from keras_bert.arguments import check_number
from keras_bert.training.losses import TaskLoss
from keras_bert.training.task_metrics import CHOICES, CLASSES, LABELS

# Losses without support for logits: classes and functions, in lower case without "_".
_OF_PROBABILITIES = ("categoricalgeneralizedcrossentropy", "dice", "kldivergence", "tversky")


def task_loss(loss, kind, label_smoothing: float = 0.0):
    """Converts a user's loss, other than "auto", to one that reads a task's labels and outputs.

    If labels are classes (`kind`, see `task_metrics`), a Keras loss is wrapped in a `TaskLoss`.

    Raises:
        ValueError: if a loss expects probabilities, or there are no classes to smooth over.
    """
    if isinstance(loss, dict):
        kinds = kind if isinstance(kind, dict) else {}
        return {
            name: task_loss(one, kinds.get(name), label_smoothing) for name, one in loss.items()
        }
    if isinstance(kind, dict) and len(kind) == 1:
        (kind,) = kind.values()
    if loss is None:
        return None
    if kind in (CLASSES, CHOICES, LABELS):
        check_takes_logits(loss)
    known = isinstance(loss, keras.losses.Loss) and type(loss).call.__module__.startswith("keras.")
    if label_smoothing and kind == LABELS:
        return type(loss).from_config(loss.get_config() | {"label_smoothing": label_smoothing})
    if known and kind in (CLASSES, CHOICES):
        return TaskLoss(loss, label_smoothing)
    if label_smoothing:
        raise ValueError(
            f"label_smoothing={label_smoothing}: {type(loss).__name__} has no classes to spread a "
            "label over"
        )
    return loss


def check_label_smoothing(value: float, loss) -> None:
    """Raises a ValueError for a label smoothing that is no fraction, or would have no effect."""
    check_number("label_smoothing", value, below=1)
    if value and loss != "auto":
        raise ValueError(f"label_smoothing={value}: give it to loss={loss!r} itself")


def check_takes_logits(loss) -> None:
    """Raises a ValueError for a loss that would read the tasks' logits as probabilities."""
    found = keras.losses.get(loss) if isinstance(loss, str) else loss
    name = getattr(found, "__name__", type(found).__name__).replace("_", "").lower()
    reads_logits = getattr(found, "from_logits", None)
    if reads_logits is None and inspect.isfunction(found):
        parameter = inspect.signature(found).parameters.get("from_logits")
        reads_logits = parameter and parameter.default
    if name in _OF_PROBABILITIES or reads_logits is False:
        instead = "" if reads_logits is None else ": pass the loss object with from_logits=True"
        raise ValueError(
            f"loss={loss!r} expects probabilities, but the model gives logits{instead}"
        )


def joined_metrics(metrics, weighted_metrics):
    """Joins two lists of metrics, or dicts of lists by output."""
    if not metrics or not weighted_metrics:
        return metrics or weighted_metrics
    if isinstance(metrics, dict) and isinstance(weighted_metrics, dict):
        names = [*metrics, *(name for name in weighted_metrics if name not in metrics)]
        return {n: [*_listed(metrics.get(n)), *_listed(weighted_metrics.get(n))] for n in names}
    return [*_listed(metrics), *_listed(weighted_metrics)]


def compiled_as(model, settings: dict) -> str | None:
    """Describes everything that a traced step of a model has as a constant.

    A second `compile` with the same description may keep the functions of the first one. `settings`
    are arguments of `compile` but for those that a traced step reads from variables; layers are
    described as in a `.keras` file. None if an argument is an object, which may change.
    """
    try:
        plain = json.dumps(settings, sort_keys=True)
        layers = [(type(layer), layer.get_config()) for layer in model._flatten_layers()]
    except (TypeError, AttributeError, NotImplementedError):  # also while it is being constructed
        return None
    variables = [(id(v), v.trainable) for v in model.weights]
    return repr((plain, layers, variables))


def has_accelerator() -> bool:
    """Whether there is a GPU or TPU; assumed on backends other than TensorFlow."""
    if keras.config.backend() != "tensorflow":
        return True
    import tensorflow as tf

    return bool(tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("TPU"))


def _listed(value) -> list:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
