"""Converts texts with [MASK]s to rows of a masked language model."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_bert.text.tokenizer import SPECIAL_TOKENS, BertTokenizer
from keras_bert.text.windows import Windows, take

MASK = SPECIAL_TOKENS["mask_token"]


class PromptRows(NamedTuple):
    """Rows that together fill each [MASK] of B texts once. R rows, M [MASK]s.

    Attributes:
        pieces: int32 ragged [R, None], without [CLS] and [SEP].
        text: int32 [R], the text of each row.
        row: int32 [M], the row that fills each [MASK], in the order of the texts.
        place: int32 [M], its index among the pieces of the row.
        number: int32 [M], its index among the [MASK]s of its text.
        counts: int32 [B], the number of [MASK]s of each text.
    """

    pieces: Any
    text: Any
    row: Any
    place: Any
    number: Any
    counts: Any


def prompt_rows(texts, tokenizer: BertTokenizer, sequence_length: int) -> PromptRows:
    """Tokenizes texts, strings [B], and finds their [MASK]s, in graph.

    A literal [MASK] always counts; the tokenizer's `special_tokens_in_text` applies to the other
    special tokens. A text that fits into `sequence_length` tokens is one row. Otherwise each [MASK]
    gets a window with the [MASK] in the middle, or as close to it as the ends of the text allow. A
    text without [MASK] has no row.
    """
    import tensorflow as tf

    with tf.device("cpu"):
        parts = tf.strings.split(texts, MASK)  # [B, masks + 1]
        ids = tokenizer.tokenize(parts)  # [B, masks + 1, None]
        mask = tf.fill(tf.shape(parts.flat_values), tf.cast(tokenizer.mask_token_id, ids.dtype))
        ids = tf.concat([ids, parts.with_flat_values(mask)[..., None]], axis=2)
        ids = tf.cast(ids.merge_dims(1, 2)[:, :-1], tf.int32)  # no [MASK] follows the last part
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        found = tf.reshape(tf.where(ids.flat_values == tokenizer.mask_token_id), [-1])
        found = tf.cast(found, tf.int32)
        text = tf.gather(tf.cast(ids.value_rowids(), tf.int32), found)  # [M]
        place = found - tf.gather(tf.cast(ids.row_starts(), tf.int32), text)
        counts = tf.math.unsorted_segment_sum(tf.ones_like(text), text, tf.size(lengths))
        number = tf.range(tf.size(text)) - tf.gather(tf.cumsum(counts, exclusive=True), text)
        budget = sequence_length - 2
        latest = tf.maximum(tf.gather(lengths, text) - budget, 0)
        start = tf.clip_by_value(place - budget // 2, 0, latest)
        # Window starts never decrease from [MASK] to [MASK], so equal windows are adjacent.
        other = (text != tf.roll(text, 1, 0)) | (start != tf.roll(start, 1, 0)) | (number == 0)
        row = tf.cumsum(tf.cast(other, tf.int32)) - 1
        text, start = tf.boolean_mask(text, other), tf.boolean_mask(start, other)
        length = tf.minimum(tf.gather(lengths, text) - start, budget)
        pieces = take(ids, Windows(text, start, length))
        return PromptRows(pieces, text, row, place - tf.gather(start, row), number, counts)


def mask_positions(rows: PromptRows):
    """The columns of the [MASK]s in rows that start with [CLS], in graph.

    Returns (positions, slots): int32 [R, P], where P is the maximum number of [MASK]s in a row and
    unused slots are 0; and int32 [M], the slot of each [MASK] in its row.
    """
    import tensorflow as tf

    count = tf.shape(rows.text)[0]
    held = tf.math.unsorted_segment_sum(tf.ones_like(rows.row), rows.row, count)
    slots = tf.range(tf.size(rows.row)) - tf.gather(tf.cumsum(held, exclusive=True), rows.row)
    shape = tf.stack([count, tf.reduce_max(tf.concat([held, [1]], 0))])
    index = tf.stack([rows.row, slots], axis=1)
    return tf.scatter_nd(index, rows.place + 1, shape), slots


def check_has_mask(tokenizer: BertTokenizer) -> None:
    """Raises a ValueError if the vocabulary has no [MASK]."""
    if tokenizer.mask_token_id is None:
        raise ValueError(
            f"the vocabulary has no {MASK} among its {tokenizer.vocabulary_size()} tokens"
        )


def mask_words(texts: Sequence[str], tokenizer: BertTokenizer) -> tuple[list, list, np.ndarray]:
    """Masks a word in each text, the middle one of those with a single token other than [UNK].

    Texts with a [MASK], or without such a word, are left out. Returns the indices of the M texts
    that are kept; M texts with a [MASK]; and the ids of the words, int [M].
    """
    kept, masked, right = [], [], []
    unknown = tokenizer.unk_token_id  # whose probability no one asks for
    for number, text in enumerate(texts):
        words = [m for m in re.finditer(r"\w+", text) if not m[0].isnumeric()]
        ids = tokenizer.tokenize([m[0] for m in words]).to_list() if words else []
        pairs = zip(words, ids, strict=True)
        single = [(m, own[0]) for m, own in pairs if len(own) == 1 and own[0] != unknown]
        if single and MASK not in text:
            word, own = single[len(single) // 2]
            kept.append(number)
            masked.append(f"{text[: word.start()]}{MASK}{text[word.end() :]}")
            right.append(own)
    return kept, masked, np.array(right, int)


def candidate_ids(
    tokenizer, top_k: int | None = None, targets: Sequence[str] | None = None
) -> tuple[np.ndarray, int]:
    """The tokens that may fill a [MASK], ids int32 [C], ascending; and how many to return.

    `targets` are words or tokens; None for the whole vocabulary. `top_k` is from 1 to C; None for
    5, or for all targets.

    Raises:
        TypeError: if a target is not a string.
        ValueError: if a target is not a single token, or `top_k` is out of range.
    """
    ids = np.arange(tokenizer.vocabulary_size(), dtype="int32")
    what = "the tokens of the vocabulary"
    if isinstance(targets, str):
        raise TypeError(f"targets={targets!r:.80}: expected a list of tokens, not a string")
    if targets is not None:
        vocabulary = {token: i for i, token in enumerate(tokenizer.get_vocabulary())}
        found = set()
        for i, target in enumerate(targets):
            if not isinstance(target, str):
                raise TypeError(f"targets[{i}]={target!r:.80}: expected a token, a string")
            pieces = [vocabulary.get(target)]
            if pieces == [None]:
                pieces = tokenizer.tokenize(target).numpy().tolist()
            if len(pieces) != 1 or pieces == [tokenizer.unk_token_id] != [vocabulary.get(target)]:
                spelled = " ".join(tokenizer.id_to_token(piece) for piece in pieces)
                raise ValueError(f"targets[{i}]={target!r}: expected one token, got {spelled!r}")
            found |= {*pieces}
        ids, what = np.array(sorted(found), "int32"), "the targets"
    if top_k is None:
        top_k = len(ids) if targets is not None else min(5, len(ids))
    if not isinstance(top_k, int | np.integer) or not 1 <= top_k <= len(ids):
        raise ValueError(f"top_k={top_k!r}: expected 1 to {len(ids)}, {what}")
    return ids, top_k
