"""Encoding of large data, some at a time, so that memory stays bounded."""

from collections.abc import Callable, Sequence

from keras_bert.data.ragged import joined_rows, without_padding

CHUNK = 1000  # examples that are tokenized at once


def encode_in_chunks(encode: Callable[[tuple, int], dict], columns: Sequence) -> dict:
    """Encodes columns of examples, and joins the rows of all chunks.

    Args:
        encode: gives int32 tensors [B, ...] by name, `padding_mask` among them, for (a tuple of
            slices of the columns, the number of the first example).
        columns: the columns, all of one length, which is not 0.

    Returns:
        Columns [N, ...] by name, ragged where `encode` gave padding.
    """
    parts = []
    for start in range(0, len(columns[0]), CHUNK):
        part = encode(tuple(column[start : start + CHUNK] for column in columns), start)
        mask = part["padding_mask"]
        parts.append({name: without_padding(value, mask) for name, value in part.items()})
    return joined_rows(parts)
