"""Splits off validation data."""

import math

from keras_bert.data.ragged import count


def split_rows(x, y, sample_weight, share: float) -> tuple:
    """Splits the last examples off lists or arrays.

    Args:
        x: a list of N texts, a tuple of two such lists, or a dict of arrays [N, ...].
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
    columns = x if isinstance(x, dict | tuple) else (x,)
    parts = list(columns.values()) if isinstance(columns, dict) else list(columns)
    rows = count(parts[0])
    cut = math.floor(rows * (1 - share))
    if not 0 < cut < rows:
        raise ValueError(f"validation_split={share} of {rows} rows leaves one side empty")

    def take(side):
        cuts = [part[side] for part in parts]
        if isinstance(x, dict):
            new_x = dict(zip(x, cuts, strict=True))
        else:
            new_x = tuple(cuts) if isinstance(x, tuple) else cuts[0]
        extra = [None if v is None else v[side] for v in (y, sample_weight)]
        return new_x, *extra

    return *take(slice(None, cut)), take(slice(cut, None))
