"""Rows from word pieces: truncation, special tokens, padding. TensorFlow, in graph."""

from collections.abc import Sequence


def pair_lengths(first, second, budget):
    """The truncated lengths of two texts: the longer is cut first, the second in ties.

    Closed form of google-research/bert `run_classifier.py`, `_truncate_seq_pair`, which drops one
    piece at a time from the end of the longer text. Lengths are int tensors [B]; `budget` is the
    maximum number of pieces of both.
    """
    import tensorflow as tf

    excess = tf.maximum(first + second - budget, 0)
    gap = first - second
    # The longer text shrinks to the other's length, then both shrink in turn.
    first -= tf.minimum(excess, tf.maximum(gap, 0))
    second -= tf.minimum(excess, tf.maximum(-gap, 0))
    rest = tf.maximum(excess - tf.abs(gap), 0)
    return first - rest // 2, second - (rest + 1) // 2


def bucket_length(longest, sequence_length: int):
    """The smallest of 16, 32, 64, ..., up to `sequence_length`, that holds the longest row.

    Limits both the number of compilations and the padding.
    """
    import tensorflow as tf

    ladder = tf.constant(bucket_lengths(sequence_length))
    return tf.reduce_min(tf.boolean_mask(ladder, ladder >= longest))


def bucket_lengths(sequence_length: int) -> list[int]:
    """All lengths that `bucket_length` returns, in ascending order."""
    ladder, length = [], 16
    while length < sequence_length:
        ladder.append(length)
        length *= 2
    return [*ladder, sequence_length]


def pack(
    segments: Sequence,
    tokenizer,
    sequence_length: int,
    padding: str = "full",
    tail: float = 0.0,
):
    """[CLS] first [SEP], or [CLS] first [SEP] second [SEP], padded.

    Args:
        segments: one or two int RaggedTensors [B, None] of pieces.
        tokenizer: a `BertTokenizer`, for its special ids.
        sequence_length: maximum number of tokens in a row.
        padding: "full" pads to `sequence_length`; "bucket" to `bucket_length` of the longest row.
        tail: fraction of the pieces kept of a truncated text that are taken from its end.

    Returns:
        A dict of int32 tensors [B, T]: `token_ids`, `segment_ids` (1 on the second text and its
        [SEP]) and `padding_mask` (1 on tokens).
    """
    import tensorflow as tf

    lengths = [tf.cast(segment.row_lengths(), "int32") for segment in segments]
    budget = sequence_length - 1 - len(segments)
    if len(segments) == 1:
        kept = [tf.minimum(lengths[0], budget)]
    else:
        kept = pair_lengths(*lengths, budget)
    used = 1 + len(segments) + tf.add_n(kept)  # tokens of each row, [B]
    width = sequence_length
    if padding == "bucket":
        width = bucket_length(tf.reduce_max(used), sequence_length)

    # All cells of the batch are looked up at once: the column determines the piece.
    column = tf.range(width)[None, :]  # [1, T]
    token_ids = tf.where(column == 0, tokenizer.cls_token_id, tokenizer.pad_token_id)
    segment_ids = tf.zeros_like(column)
    begin = tf.ones_like(used)[:, None]  # column of the segment's first piece, [B, 1]
    for number, (segment, length) in enumerate(zip(segments, kept, strict=True)):
        end = begin + length[:, None]  # column of its [SEP]
        inside = (column >= begin) & (column < end)  # [B, T]
        first = tf.cast(segment.row_starts(), "int32")[:, None]
        if tail:  # pieces of the end follow those of the beginning
            head = length - tf.cast(tail * tf.cast(length, "float64"), "int32")
            skipped = (lengths[number] - length)[:, None]
            first += tf.where(column - begin >= head[:, None], skipped, 0)
        pieces = tf.concat([segment.flat_values, [tokenizer.pad_token_id]], axis=0)
        spare = tf.size(pieces) - 1
        pieces = tf.gather(pieces, tf.where(inside, first + column - begin, spare))
        token_ids = tf.where(inside, pieces, token_ids)
        token_ids = tf.where(column == end, tokenizer.sep_token_id, token_ids)
        segment_ids = tf.where((column >= begin) & (column <= end), number, segment_ids)
        begin = end + 1
    return {
        "token_ids": token_ids,
        "segment_ids": segment_ids,
        "padding_mask": tf.cast(column < used[:, None], "int32"),
    }
