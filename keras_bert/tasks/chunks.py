"""Encoding of large data, some at a time, so that memory stays bounded."""

from collections.abc import Callable, Sequence

import numpy as np

CHUNK = 1000  # examples that are tokenized at once


def encode_in_chunks(
    encode: Callable[[tuple, int], dict], columns: Sequence, pad_token_id: int
) -> dict[str, np.ndarray]:
    """Encodes columns of examples, and joins the rows of all chunks.

    Args:
        encode: gives int32 tensors [B, ...] by name for (a tuple of slices of the columns, the
            number of the first example). Of two chunks an array may differ in its last axis.
        columns: the columns, all of one length, which is not 0.
        pad_token_id: what fills `token_ids` up; other arrays get zeros.

    Returns:
        int32 arrays [N, ...] by name.
    """
    parts = []
    for start in range(0, len(columns[0]), CHUNK):
        part = encode(tuple(column[start : start + CHUNK] for column in columns), start)
        parts.append({name: np.asarray(value) for name, value in part.items()})
    return {
        name: joined([part[name] for part in parts], pad_token_id if name == "token_ids" else 0)
        for name in parts[0]
    }


def joined(arrays: list[np.ndarray], fill: int) -> np.ndarray:
    """Joins arrays [N, ..., T] of any T, filled up at the end of the last axis."""
    width = max(array.shape[-1] for array in arrays)
    filled = []
    for array in arrays:
        room = [(0, 0)] * (array.ndim - 1) + [(0, width - array.shape[-1])]
        filled.append(np.pad(array, room, constant_values=fill))
    return np.concatenate(filled)
