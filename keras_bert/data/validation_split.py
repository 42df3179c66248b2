"""Splits off validation data."""

import math
import warnings
from collections.abc import Sequence

import numpy as np

from keras_bert.arguments import check_above_zero
from keras_bert.data.examples import Examples, is_dataset, part_of
from keras_bert.data.ragged import count
from keras_bert.data.table_rows import Table


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
    if is_dataset(x) or isinstance(x, Table):
        kind = "a table: pass validation_data" if isinstance(x, Table) else "a dataset"
        raise ValueError(f"validation_split: expected lists or arrays, not {kind}")
    rows = len(x) if isinstance(x, Examples) else count(next(iter(x.values())))
    cut = math.floor(rows * (1 - share))
    if not 0 < cut < rows:
        raise ValueError(f"validation_split={share} of {rows} rows leaves one side empty")

    def take(side):
        new_x = x.part(side) if isinstance(x, Examples) else part_of(x, side)
        return new_x, part_of(y, side), part_of(sample_weight, side)

    return *take(slice(None, cut)), take(slice(cut, None))


def hold_out(
    labels: Sequence, groups: Sequence, share: float = 0.1, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Splits rows in two, with about the same distribution of labels and no group on both sides.

    The first fold of scikit-learn's `StratifiedGroupKFold`.

    Args:
        labels: N labels to stratify by, strings or ints; all equal for no stratification.
        groups: N hashable values; rows with equal values, such as duplicate texts, stay together.
        share: fraction of the rows to hold out, above 0 and at most 0.5. It is rounded to 1 / K for
            an int K.
        seed: seed of the assignment.

    Returns:
        (indices of the other rows, indices of the held-out rows), int64, both ascending.

    Raises:
        ValueError: if `share` is out of range, columns differ in length, or one side would be
            empty.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    check_above_zero("share", share, most=0.5)
    if len(labels) != len(groups):
        raise ValueError(f"got {len(labels)} labels and {len(groups)} groups: expected as many")
    # Numbers in the order of appearance: hashes of strings differ between processes.
    classes = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    parts = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    if len(parts) < 2:
        raise ValueError(f"share={share}: expected 2 different texts or more, got {len(parts)}")
    folds = min(max(2, round(1 / share)), len(parts))
    y = np.array([classes[label] for label in labels])
    # scikit-learn warns of a class with fewer rows than folds, which it spreads as far as it goes,
    # and refuses if all classes are such.
    if np.bincount(y).max() < folds:
        y = np.zeros_like(y)
    splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        kept, held = next(splitter.split(y, y, [parts[group] for group in groups]))
    if not len(kept) or not len(held):
        raise ValueError(f"share={share} of {len(y)} rows leaves one side empty")
    return kept, held
