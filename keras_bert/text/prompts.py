"""Texts with [MASK]s to fill in, as rows of the model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_bert.text.packing import pack
from keras_bert.text.tokenizer import SPECIAL_TOKENS, BertTokenizer

MASK = SPECIAL_TOKENS["mask_token"]


@dataclass(frozen=True, eq=False)
class Prompt:
    """A text with [MASK]s, or a window of one that is too long for a row.

    Args:
        text: number of the text.
        masks: int [M], which of the text's [MASK]s, from 0, are to be filled in by this row.
        places: int [M], which pieces they are.
        pieces: int32 ids, without [CLS] and [SEP].
    """

    text: int
    masks: np.ndarray
    places: np.ndarray
    pieces: np.ndarray


def read_prompts(
    texts: Sequence[str | bytes], tokenizer: BertTokenizer, sequence_length: int
) -> list[Prompt]:
    """Tokenizes texts and finds their [MASK]s.

    The literal [MASK] is one whatever the tokenizer's `special_tokens_in_text`, which still decides
    about the other special tokens. A text that fits is one row. In one that does not, each [MASK]
    is read in a window that has it in the middle, or as near to it as the ends of the text allow.

    Args:
        texts: the texts.
        tokenizer: the tokenizer.
        sequence_length: the most tokens in a row, [CLS] and [SEP] among them.

    Returns:
        The rows, in the order of the texts.

    Raises:
        ValueError: if a text has no [MASK], or the vocabulary has none.
    """
    import tensorflow as tf

    if tokenizer.mask_token_id is None:
        raise ValueError(
            f"the vocabulary has no {MASK} among its {tokenizer.vocabulary_size()} tokens"
        )
    for number, text in enumerate(texts):
        if (MASK.encode() if isinstance(text, bytes) else MASK) not in text:
            raise ValueError(f"texts[{number}] has no {MASK} to fill in: {text!r:.200}")
    if not len(texts):
        return []
    with tf.device("cpu"):
        parts = tf.strings.split(tf.constant(texts, tf.string), MASK)  # [B, masks + 1]
        ids = tokenizer.tokenize(parts)  # [B, masks + 1, None]
        mask = tf.fill(tf.shape(parts.flat_values), tf.cast(tokenizer.mask_token_id, ids.dtype))
        ids = tf.concat([ids, parts.with_flat_values(mask)[..., None]], axis=2)
        rows = ids.merge_dims(1, 2)[:, :-1]  # no [MASK] after the last part
    budget = sequence_length - 2
    prompts = []
    for number in range(len(texts)):
        pieces = rows[number].numpy()
        places = np.flatnonzero(pieces == tokenizer.mask_token_id)
        starts = np.clip(places - budget // 2, 0, max(len(pieces) - budget, 0))
        for start in np.unique(starts):
            masks = np.flatnonzero(starts == start)
            window = pieces[start : start + budget]
            prompts.append(Prompt(number, masks, places[masks] - start, window))
    return prompts


def pack_prompts(
    prompts: Sequence[Prompt], tokenizer: BertTokenizer, sequence_length: int
) -> dict[str, np.ndarray]:
    """Makes a batch by `keras_bert.data.contract` of prompts.

    Args:
        prompts: one or more.
        tokenizer: for its special ids.
        sequence_length: as in `read_prompts`; the batch is as long as its longest row needs.

    Returns:
        `token_ids`, `segment_ids`, `padding_mask`, int32 [B, T], and `mask_positions`, int32
        [B, P], where P is the least power of two that holds each row's masks: few shapes mean
        few compilations. Free slots are 0.
    """
    import tensorflow as tf

    lengths = [len(prompt.pieces) for prompt in prompts]
    with tf.device("cpu"):
        flat = tf.constant(np.concatenate([prompt.pieces for prompt in prompts]), tf.int32)
        pieces = tf.RaggedTensor.from_row_lengths(flat, lengths)
        batch = pack([pieces], tokenizer, sequence_length, padding="bucket")
    batch = {name: value.numpy() for name, value in batch.items()}
    slots = 1 << (max(len(prompt.places) for prompt in prompts) - 1).bit_length()
    batch["mask_positions"] = np.zeros((len(prompts), slots), "int32")
    for row, prompt in zip(batch["mask_positions"], prompts, strict=True):
        row[: len(prompt.places)] = prompt.places + 1  # after [CLS]
    return batch
