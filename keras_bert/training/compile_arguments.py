"""What a user passes to `compile`, checked and brought into the form that the step takes."""

import inspect

import keras


def check_takes_logits(loss) -> None:
    """Refuses a loss that would read the tasks' logits as probabilities.

    Raises:
        ValueError: if it would.
    """
    found = keras.losses.get(loss) if isinstance(loss, str) else loss
    reads_logits = getattr(found, "from_logits", None)
    if reads_logits is None and inspect.isfunction(found):
        parameter = inspect.signature(found).parameters.get("from_logits")
        reads_logits = parameter and parameter.default
    if reads_logits is False:
        raise ValueError(
            f"loss={loss!r} expects probabilities, but the model gives logits: pass the loss "
            "object with from_logits=True"
        )


def joined_metrics(metrics, weighted_metrics):
    """Two lists of metrics, or dicts of lists by output, as one."""
    if not metrics or not weighted_metrics:
        return metrics or weighted_metrics
    if isinstance(metrics, dict) and isinstance(weighted_metrics, dict):
        names = [*metrics, *(name for name in weighted_metrics if name not in metrics)]
        return {n: [*_listed(metrics.get(n)), *_listed(weighted_metrics.get(n))] for n in names}
    return [*_listed(metrics), *_listed(weighted_metrics)]


def has_accelerator() -> bool:
    """Whether there is a GPU or TPU; on other backends than TensorFlow it is taken for granted."""
    if keras.config.backend() != "tensorflow":
        return True
    import tensorflow as tf

    return bool(tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("TPU"))


def _listed(value) -> list:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
