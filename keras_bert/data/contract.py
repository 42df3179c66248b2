"""The batch contract: every key that passes between data, models and serving.

Axes: B rows in a batch, T tokens in a row, P slots for masked tokens. All integers are int32.

A worked example. One row of T = 10 tokens, "the cat sat" and what follows it, "it slept"; "cat"
has become [MASK], P = 3 slots hold the one masked token, and the ids are those of a vocabulary
with 0 [PAD], 1 [UNK], 2 [CLS], 3 [SEP], 4 [MASK], 5 the, 6 cat, 7 sat, 8 it, 9 slept:

    tokens                  [CLS] the [MASK] sat [SEP] it slept [SEP] [PAD] [PAD]
    token_ids               [[2,   5,  4,     7,  3,    8,  9,   3,    0,    0]]
    segment_ids             [[0,   0,  0,     0,  0,    1,  1,   1,    0,    0]]
    padding_mask            [[1,   1,  1,     1,  1,    1,  1,   1,    0,    0]]
    mask_positions          [[2, 0, 0]]
    mask_ids                [[6, 0, 0]]
    mask_weights            [[1.0, 0.0, 0.0]]
    next_sentence_labels    [0]

Rule: google-research/bert `create_pretraining_data.py`, under KerasHub's names.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Key:
    """What one key of a batch holds.

    Args:
        axes: its axes by letter, such as "BT" for [B, T].
        meaning: of a value.
        dtype: of a value.
    """

    axes: str
    meaning: str
    dtype: str = "int32"


KEYS = {
    "token_ids": Key("BT", "id of the token in the vocabulary; [PAD]'s in padding"),
    "segment_ids": Key("BT", "0 in the first segment and in padding, 1 in the second"),
    "padding_mask": Key("BT", "1 for a token, 0 for padding"),
    "position_ids": Key("BT", "row of the position table; without the key 0, 1, 2, ..."),
    "sequence_ids": Key("BT", "which of the texts that share a row a token is of; without, one"),
    "mask_positions": Key("BP", "where in the row a token is to be predicted; 0 in a free slot"),
    "mask_ids": Key("BP", "id that was there before masking; 0 in a free slot"),
    "mask_weights": Key("BP", "weight of its loss; 0.0 in a free slot", "float32"),
    "next_sentence_labels": Key("B", "0 if the second segment follows the first, 1 if random"),
}
# What the encoder reads: these it can't do without, and these it can.
REQUIRED_INPUTS = ("token_ids", "segment_ids", "padding_mask")
OPTIONAL_INPUTS = ("position_ids", "sequence_ids")


def check_batch(batch: Mapping[str, Any], require: Iterable[str] = ()) -> None:
    """Checks keys, dtypes and shapes; of NumPy arrays also that `mask_positions` are in the row.

    Args:
        batch: NumPy arrays or tensors by key. Sizes that a tensor does not know yet are let pass.
        require: keys that must be there besides those that every batch needs.

    Raises:
        TypeError: if `batch` is no mapping, or a value is no array.
        ValueError: if a key is missing or unknown, or a dtype, shape or position is wrong.
    """
    if not isinstance(batch, Mapping):
        raise TypeError(f"a batch is a dict of arrays by key, got {type(batch).__name__}")
    missing = [name for name in (*REQUIRED_INPUTS, *require) if name not in batch]
    unknown = [name for name in batch if name not in KEYS]
    if missing or unknown:
        raise ValueError(
            f"keys of the batch: missing {missing}, unknown {unknown}; known are {list(KEYS)}"
        )
    sizes: dict[str, tuple[int, str]] = {}  # axis: its size, and the key that said so
    for name, value in batch.items():
        key = KEYS[name]
        if not hasattr(value, "dtype") or not hasattr(value, "shape"):
            raise TypeError(f"{name} is a {type(value).__name__}; expected an array or a tensor")
        dtype = getattr(value.dtype, "name", value.dtype)
        if dtype != key.dtype:
            raise ValueError(f"{name} has dtype {dtype}; expected {key.dtype}")
        if getattr(value.shape, "rank", 0) is None:  # TensorFlow: not even the number of axes
            continue
        shape, axes = tuple(value.shape), f"[{', '.join(key.axes)}]"
        if len(shape) != len(key.axes):
            raise ValueError(f"{name} has shape {shape}; expected {axes}")
        for axis, size in zip(key.axes, shape, strict=True):
            expected, by = sizes.setdefault(axis, (size, name)) if size is not None else (None, "")
            if size != expected:
                raise ValueError(
                    f"{name} has shape {shape}; expected {axes} with {axis} = {expected}, as in "
                    f"{by}"
                )
    positions = batch.get("mask_positions")
    if isinstance(positions, np.ndarray) and positions.size:
        length = batch["token_ids"].shape[1]
        if not 0 <= positions.min() <= positions.max() < length:
            raise ValueError(
                f"mask_positions run from {positions.min()} to {positions.max()}; expected 0 to "
                f"{length - 1}"
            )
