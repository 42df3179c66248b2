"""Several runs as one answer: averaged weights, averaged probabilities."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import keras
import numpy as np


def average_weights(
    model: keras.Model, members: Iterable[keras.Model | Sequence[np.ndarray] | str | Path]
) -> int:
    """Sets a model's weights to the mean of several runs' weights, a uniform soup.

    It serves runs that began from the same weights, heads included, and differ in the order of
    their examples or in their settings (Wortsman et al. 2022, "Model soups"). The answers of a soup
    take the time of one model.

    Args:
        model: the model to change; a copy of the runs' architecture.
        members: models of the same shapes, lists of arrays of `get_weights`, or files that
            `save_weights` or `keras_bert.training.BestWeights` wrote. `model` may be one of them.

    Returns:
        The number of members.

    Raises:
        ValueError: if there are none, or one has other shapes or labels; the model keeps its
            weights then.
    """
    sums: list[np.ndarray] | None = None
    count = 0
    before = [_value(weight) for weight in model.weights]
    for member in members:
        if isinstance(member, str | Path):
            try:
                model.load_weights(str(member))
                values = [_value(weight) for weight in model.weights]
            finally:
                for weight, value in zip(model.weights, before, strict=True):
                    weight.assign(value)
        elif isinstance(member, keras.Model):
            names = [getattr(one, "labels", None) for one in (model, member)]
            if names[0] != names[1] and None not in names:
                raise ValueError(f"members[{count}].labels={names[1]}: expected {names[0]}")
            values = before if member is model else [_value(weight) for weight in member.weights]
        else:
            values = [np.asarray(value, "float32") for value in member]
        if [v.shape for v in values] != [v.shape for v in before]:
            raise ValueError(f"members[{count}] has weights of other shapes than {model.name}")
        added = [np.asarray(value, "float64") for value in values]
        sums = added if sums is None else [s + a for s, a in zip(sums, added, strict=True)]
        count += 1
    if sums is None:
        raise ValueError("members: expected one or more models or files of weights")
    for weight, total in zip(model.weights, sums, strict=True):
        weight.assign((total / count).astype("float32"))
    return count


def average_probabilities(logits: Sequence[np.ndarray]) -> np.ndarray:
    """Computes the probabilities of an ensemble: the mean of its members'.

    Args:
        logits: of each member float [N, K], such as `predict` of a classifier gives.

    Returns:
        float64 [N, K].

    Raises:
        ValueError: if there are none, or shapes differ.
    """
    if not len(logits) or len({np.shape(one) for one in logits}) != 1:
        raise ValueError(
            f"logits of shapes {[np.shape(one) for one in logits]}: expected one or more, all alike"
        )
    from scipy.special import softmax

    return np.mean([softmax(np.asarray(one, "float64"), axis=-1) for one in logits], axis=0)


def _value(weight) -> np.ndarray:
    return np.asarray(keras.ops.convert_to_numpy(weight), "float32")
