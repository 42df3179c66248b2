"""The keys of batches that are passed between data, models and serving.

Axes: B rows in a batch, T tokens in a row, P slots for masked tokens. All integers are int32.

Example: one row of T = 10 tokens, "the cat sat" and the next sentence, "it slept"; "cat" is
replaced by [MASK], P = 3 slots hold the one masked token, and the vocabulary is 0 [PAD], 1 [UNK],
2 [CLS], 3 [SEP], 4 [MASK], 5 the, 6 cat, 7 sat, 8 it, 9 slept:

    tokens                  [CLS] the [MASK] sat [SEP] it slept [SEP] [PAD] [PAD]
    token_ids               [[2,   5,  4,     7,  3,    8,  9,   3,    0,    0]]
    segment_ids             [[0,   0,  0,     0,  0,    1,  1,   1,    0,    0]]
    padding_mask            [[1,   1,  1,     1,  1,    1,  1,   1,    0,    0]]
    mask_positions          [[2, 0, 0]]
    mask_ids                [[6, 0, 0]]
    mask_weights            [[1.0, 0.0, 0.0]]
    next_sentence_labels    [0]

Reference: google-research/bert `create_pretraining_data.py`, with KerasHub's names.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Key:
    """Describes a key of a batch.

    Args:
        axes: its axes as letters, such as "BT" for [B, T].
        meaning: the meaning of a value.
        dtype: the dtype of the values.
    """

    axes: str
    meaning: str
    dtype: str = "int32"


KEYS = {
    "token_ids": Key("BT", "id of the token in the vocabulary; [PAD]'s in padding"),
    "segment_ids": Key("BT", "0 in the first segment and in padding, 1 in the second"),
    "padding_mask": Key("BT", "1 for a token, 0 for padding"),
    "position_ids": Key("BT", "index into the position table; default 0, 1, 2, ..."),
    "sequence_ids": Key("BT", "which text of a packed row a token belongs to; default one text"),
    "mask_positions": Key("BP", "column of a token to predict; 0 in an unused slot"),
    "mask_ids": Key("BP", "id before masking; 0 in an unused slot"),
    "mask_weights": Key("BP", "weight of the loss; 0.0 in an unused slot", "float32"),
    "next_sentence_labels": Key("B", "0 if the second segment follows the first, 1 if random"),
}
# Required and optional inputs of the encoder.
REQUIRED_INPUTS = ("token_ids", "segment_ids", "padding_mask")
OPTIONAL_INPUTS = ("position_ids", "sequence_ids")


def check_batch(batch: Mapping[str, Any], require: Iterable[str] = ()) -> None:
    """Checks keys, dtypes and shapes, and for NumPy arrays that `mask_positions` are in the row.

    Args:
        batch: NumPy arrays or tensors by key. Unknown sizes of a tensor are accepted.
        require: required keys in addition to those that every batch needs.

    Raises:
        TypeError: if `batch` is not a mapping, or a value is not an array.
        ValueError: if a key is missing or unknown, or a dtype, shape or position is wrong.
    """
    if not isinstance(batch, Mapping):
        raise TypeError(f"batch of type {type(batch).__name__}: expected a dict of arrays by key")
    missing = [name for name in (*REQUIRED_INPUTS, *require) if name not in batch]
    unknown = [name for name in batch if name not in KEYS]
    if missing or unknown:
        raise ValueError(
            f"keys of the batch: missing {missing}, unknown {unknown}; known are {list(KEYS)}"
        )
    sizes: dict[str, tuple[int, str]] = {}  # axis: its size, and the key that determined it
    for name, value in batch.items():
        key = KEYS[name]
        if not hasattr(value, "dtype") or not hasattr(value, "shape"):
            raise TypeError(f"{name} of type {type(value).__name__}: expected an array or a tensor")
        dtype = getattr(value.dtype, "name", value.dtype)
        if dtype != key.dtype:
            raise ValueError(f"{name} of dtype {dtype}: expected {key.dtype}")
        if getattr(value.shape, "rank", 0) is None:  # TensorFlow: unknown number of axes
            continue
        shape, axes = tuple(value.shape), f"[{', '.join(key.axes)}]"
        wrong = "" if len(shape) == len(key.axes) else axes
        for axis, size in zip(key.axes, shape, strict=False):
            expected, by = sizes.setdefault(axis, (size, name)) if size is not None else (None, "")
            if size != expected:
                wrong = wrong or f"{axes} with {axis} = {expected}, as in {by}"
        if wrong:
            raise ValueError(f"{name} of shape {shape}: expected {wrong}")
    positions = batch.get("mask_positions")
    if isinstance(positions, np.ndarray) and positions.size:
        length = batch["token_ids"].shape[1]
        if not 0 <= positions.min() <= positions.max() < length:
            raise ValueError(
                f"mask_positions from {positions.min()} to {positions.max()}: expected 0 to "
                f"{length - 1}"
            )
