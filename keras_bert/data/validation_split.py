"""Splits off validation data."""

import math

from keras_bert.data.examples import Examples
from keras_bert.data.ragged import count


def split_rows(x, y, sample_weight, share: float) -> tuple:
    """Splits the last examples off lists or arrays.

    Args:
        x: `Examples`, or a dict of arrays [N, ...].
        y: [N, ...] or None.
        sample_weight: [N, ...] or None.
        share: fraction of the examples, from the end.

    Returns:
        (x, y, sample_weight, (x, y, sample_weight) of the last examples).

    Raises:
        ValueError: if x is a dataset, or one side would be empty.
    """
    if hasattr(x, "element_spec"):
        raise ValueError("validation_split: expected lists or arrays, not a dataset")
    rows = len(x) if isinstance(x, Examples) else count(next(iter(x.values())))
    cut = math.floor(rows * (1 - share))
    if not 0 < cut < rows:
        raise ValueError(f"validation_split={share} of {rows} rows leaves one side empty")

    def take(side):
        if isinstance(x, Examples):
            new_x = x.part(side)
        else:
            new_x = {name: value[side] for name, value in x.items()}
        if isinstance(y, dict):
            return new_x, {n: v[side] for n, v in y.items()}, _cut(sample_weight, side)
        return new_x, _cut(y, side), _cut(sample_weight, side)

    return *take(slice(None, cut)), take(slice(cut, None))


def _cut(values, side: slice):
    return values if values is None else values[side]
