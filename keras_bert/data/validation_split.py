"""Rows that are kept from training, to validate on."""

import math

from keras_bert.data.examples import Examples
from keras_bert.data.ragged import count


def split_rows(x, y, sample_weight, share: float) -> tuple:
    """Parts the last rows of lists or arrays from the others.

    Args:
        x: `Examples`, or a dict of arrays [N, ...].
        y: [N, ...] or None.
        sample_weight: [N, ...] or None.
        share: of the rows, from the end.

    Returns:
        (x, y, sample_weight, (x, y, sample_weight) of the last rows).

    Raises:
        ValueError: for a dataset, or if one side would be empty.
    """
    if hasattr(x, "element_spec"):
        raise ValueError("validation_split needs lists or arrays, not a dataset")
    rows = len(x) if isinstance(x, Examples) else count(next(iter(x.values())))
    cut = math.floor(rows * (1 - share))
    if not 0 < cut < rows:
        raise ValueError(f"validation_split={share} of {rows} rows leaves one side empty")

    def take(side):
        if isinstance(x, Examples):
            new_x = x.part(side)
        else:
            new_x = {name: value[side] for name, value in x.items()}
        return new_x, *(None if v is None else v[side] for v in (y, sample_weight))

    return *take(slice(None, cut)), take(slice(cut, None))
