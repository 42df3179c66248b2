"""Masking for masked language modeling: the tokens to predict, and their replacements.

The algorithm of google-research/bert (`create_masked_lm_predictions`, create_pretraining_data.py),
for a whole batch at once in the graph; all random draws are a function of the batch's seed.

Axes: N rows, T tokens in a row, P slots for masked tokens.

Imports TensorFlow, so import this module lazily.
"""

import re
from typing import Any

import numpy as np
import tensorflow as tf

from keras_bert.arguments import check_above_zero, check_choice, check_count
from keras_bert.data.mask_units import choose_pieces, choose_units
from keras_bert.text.tokenizer import SPECIAL_TOKENS, BertTokenizer

# Never masked; [UNK] is, as in the original.
UNMASKABLE = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")
# Kinds of tokens of the vocabulary.
_SPECIAL, _OTHER, _SUFFIX = 0, 1, 2
_SHARE_BITS = 24  # random bits that are compared with a probability


class Masker:
    """Masks tokens of a batch for prediction, the same number as the original.

    A row of `length` tokens, special tokens included, gets `min(max_predictions, max(1,
    round(rate * length)))` masked tokens (halves round to even), or as many as it has candidates:
    all its tokens except [CLS], [SEP], [MASK] and padding. A fraction `mask_share` of these become
    [MASK], `random_share` a random token (possibly the same one), and the rest are kept; all are
    predicted.

    Units are taken in random order, and one that would exceed the number is skipped, so rows with
    long words may have fewer, as in the original.

    Args:
        tokenizer: its vocabulary determines which tokens are special or `##` pieces.
        max_predictions: P, maximum number of masked tokens in a row.
        rate: fraction of a row's tokens that is masked.
        mask_share: fraction of the masked tokens that become [MASK].
        random_share: fraction of the masked tokens that become a random token.
        unit: unit of masking: a "piece", or a whole "word" with all its `##` pieces. A `##` piece
            directly after a special token starts a word; the original joins it to the word before
            the [SEP].
        replace: unit of the draw between [MASK], random and same: each "piece", as in the original
            even for whole words, or each "word". Random pieces of a word are drawn independently.
        max_ngram: maximum span of neighbouring units that are masked together. Lengths from 1 to
            this are drawn with probability proportional to 1 / length, and a span ends before a
            unit that is special, already masked or would exceed the number.
        random_from: set from which random tokens are drawn uniformly: "all" of the vocabulary,
            including special tokens and [unused..], as in the original, or "words" without these.

    Call arguments:
        token_ids: int32 [N, T].
        padding_mask: int32 [N, T], 1 for a token and 0 for padding.
        seed: int32 or int64 [2]. The same seed gives the same masks, and the masks of a row do not
            depend on later rows.
        rate: float32 scalar that replaces `rate` in this call, from above 0 to 1; or None.

    Returns:
        A dict: `token_ids` int32 [N, T] with the masked tokens replaced; `mask_positions` int32
        [N, P], ascending; `mask_ids` int32 [N, P], the ids before masking; `mask_weights` float32
        [N, P], 1.0. The last three are 0 in unused slots.

    Raises:
        ValueError: if a setting is out of range, the vocabulary has no [MASK], or in a call rows
            are shorter than P or T is not static.
        tf.errors.InvalidArgumentError: in a call, if an id is not in the vocabulary.
    """

    def __init__(
        self,
        tokenizer: BertTokenizer,
        max_predictions: int,
        rate: float = 0.15,
        mask_share: float = 0.8,
        random_share: float = 0.1,
        unit: str = "piece",
        replace: str = "piece",
        max_ngram: int = 1,
        random_from: str = "all",
    ):
        tokens = tokenizer.get_vocabulary()
        self.max_predictions = check_count("max_predictions", max_predictions)
        self.max_ngram = check_count("max_ngram", max_ngram)
        check_above_zero("rate", rate, most=1)
        if not (mask_share >= 0 and random_share >= 0 and mask_share + random_share <= 1 + 1e-9):
            raise ValueError(
                f"mask_share={mask_share!r}, random_share={random_share!r}: expected 0 or more, "
                "with a sum of at most 1"
            )
        check_choice("unit", unit, ("piece", "word"))
        check_choice("replace", replace, ("piece", "word"))
        check_choice("random_from", random_from, ("all", "words"))
        if replace == "word" and unit == "piece":
            raise ValueError("replace='word': expected 'piece' with unit='piece'")
        self.rate, self.mask_share, self.random_share = rate, mask_share, random_share
        self.unit, self.replace, self.random_from = unit, replace, random_from
        self.mask_id = tokenizer.mask_token_id
        kinds = [
            _SPECIAL if t in UNMASKABLE else _SUFFIX if t.startswith("##") else _OTHER
            for t in tokens
        ]
        # Graphs capture eager tensors instead of copying the tables.
        self._kinds = tf.constant(kinds, tf.int32)
        drawn = range(len(tokens)) if random_from == "all" else _words(tokens)
        if not drawn or self.mask_id is None:
            lacking = "words, for random_from='words'" if not drawn else "[MASK]"
            raise ValueError(f"the vocabulary of {len(tokens)} tokens has no {lacking}")
        self._drawn = tf.constant(drawn, tf.int32)

    def __call__(
        self, token_ids: Any, padding_mask: Any, seed: Any, rate: Any = None
    ) -> dict[str, Any]:
        token_ids, padding_mask, length = _checked(token_ids, padding_mask, self.max_predictions)
        kinds = tf.gather(self._kinds, token_ids)
        candidates = (kinds != _SPECIAL) & (padding_mask != 0)
        count = self._count(padding_mask, length, rate)
        slots = self.max_predictions
        # One draw for everything, in the order of the rows.
        columns = [length, slots, slots, length if self.max_ngram > 1 else 0]
        shape = [tf.shape(token_ids)[0], sum(columns)]
        bits = tf.random.stateless_uniform(shape, seed, None, None, tf.int32, alg="philox")
        order, how, which, spans = tf.split(bits, columns, axis=1)
        if self.unit == "piece" and self.max_ngram == 1:
            positions, inside = choose_pieces(candidates, count, slots, order), None
        else:
            begins = candidates
            if self.unit == "word":
                joined = (kinds == _SUFFIX) & tf.pad(candidates[:, :-1], [[0, 0], [1, 0]])
                begins &= ~joined
            spans = tf.ones_like(order) if self.max_ngram == 1 else self._spans(spans)
            positions, inside = choose_units(
                candidates, begins, count, slots, order, spans, self.max_ngram
            )
        return self._replaced(token_ids, positions, inside, how, which)

    def counts(self, length: int) -> np.ndarray:
        """The number of masked tokens in rows of 0 to `length` tokens, int32 [length + 1].

        A row may have fewer candidates.
        """
        counts = [
            min(self.max_predictions, max(1, round(self.rate * n))) for n in range(length + 1)
        ]
        return np.array(counts, "int32")

    def _count(self, padding_mask: tf.Tensor, length: int, rate: tf.Tensor | None) -> tf.Tensor:
        """The number of tokens to mask in each row, [N]; there may be fewer candidates."""
        real = tf.reduce_sum(tf.cast(padding_mask != 0, tf.int32), axis=1)
        if rate is None:
            return tf.gather(tf.constant(self.counts(length)), real)
        count = tf.cast(tf.round(rate * tf.cast(real, tf.float32)), tf.int32)
        return tf.minimum(self.max_predictions, tf.maximum(1, count))

    def _spans(self, bits: tf.Tensor) -> tf.Tensor:
        """Converts random bits to lengths from 1 to `max_ngram` with probability ~ 1 / length."""
        weights = [1 / n for n in range(1, self.max_ngram + 1)]
        shares = [sum(weights[n:]) / sum(weights) for n in range(1, self.max_ngram)]
        return 1 + sum(tf.cast(_happens(bits, share), tf.int32) for share in shares)

    def _replaced(
        self,
        token_ids: tf.Tensor,
        positions: tf.Tensor,
        inside: tf.Tensor | None,
        how: tf.Tensor,
        which: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Replaces the tokens at `positions` [N, P], T in an unused slot, and fills the slots.

        `inside` is the index of each piece within its word, `how` and `which` are random bits for
        the kind of replacement and for the random token, all int32 [N, P].
        """
        rows, length = tf.shape(token_ids)[0], token_ids.shape[1]
        used = positions < length
        positions = tf.where(used, positions, 0)
        places = positions + length * tf.range(rows)[:, None]
        flat = tf.reshape(token_ids, [-1])
        before = tf.gather(flat, places)
        if self.replace == "word":  # the bits of the word's first piece, some slots before
            how = tf.gather(how, tf.range(self.max_predictions) - inside, batch_dims=1)
        other = tf.gather(self._drawn, (which & 0x7FFFFFFF) % tf.size(self._drawn))
        after = tf.where(_happens(how, self.mask_share + self.random_share), other, before)
        after = tf.where(_happens(how, self.mask_share), self.mask_id, after)
        # Unused slots point at the row's first token; adding 0 leaves it unchanged.
        change = tf.where(used, after - before, 0)
        flat = tf.tensor_scatter_nd_add(flat, places[..., None], change)
        return {
            "token_ids": tf.reshape(flat, tf.shape(token_ids)),
            "mask_positions": positions,
            "mask_ids": tf.where(used, before, 0),
            "mask_weights": tf.cast(used, tf.float32),
        }


class NextTokens:
    """Predicts the next token of a batch's rows: a language model from left to right.

    Rows stay as they are. A slot is a position to predict from: its label is the token that
    follows, [SEP] included, and [CLS] predicts the first. For a backbone with `causal=True`, which
    sees nothing of the label. Reference: Devlin et al. 2019, section 5.1, "LTR & No NSP".

    Args:
        max_predictions: P, maximum number of predicted tokens in a row. Of a row with more, as many
            positions are drawn at random.

    Call arguments:
        token_ids: int32 [N, T].
        padding_mask: int32 [N, T], 1 for a token and 0 for padding.
        seed: int32 or int64 [2].
        rate: None; nothing is masked.

    Returns:
        A dict as from `Masker`.

    Raises:
        ValueError: if `max_predictions` is below 1, or in a call rows are shorter or T is not
            static.
    """

    def __init__(self, max_predictions: int):
        self.max_predictions = check_count("max_predictions", max_predictions)

    def __call__(
        self, token_ids: Any, padding_mask: Any, seed: Any, rate: Any = None
    ) -> dict[str, Any]:
        token_ids, padding_mask, length = _checked(token_ids, padding_mask, self.max_predictions)
        follows = tf.pad(padding_mask[:, 1:] != 0, [[0, 0], [0, 1]])
        shape = tf.shape(token_ids)
        order = tf.random.stateless_uniform(shape, seed, None, None, tf.int32, alg="philox")
        count = tf.minimum(self.max_predictions, tf.reduce_sum(tf.cast(follows, tf.int32), axis=1))
        positions = choose_pieces(follows, count, self.max_predictions, order)
        used = positions < length
        positions = tf.where(used, positions, 0)
        labels = tf.gather(token_ids, positions + tf.cast(used, tf.int32), batch_dims=1)
        return {
            "token_ids": token_ids,
            "mask_positions": positions,
            "mask_ids": tf.where(used, labels, 0),
            "mask_weights": tf.cast(used, tf.float32),
        }


def _checked(token_ids, padding_mask, max_predictions: int) -> tuple[tf.Tensor, tf.Tensor, int]:
    """A call's rows as tensors, and their length, which has to be static."""
    token_ids = tf.convert_to_tensor(token_ids, tf.int32)
    length = token_ids.shape[1]
    if length is None or length < max_predictions:
        raise ValueError(
            f"rows of {'an unknown number of' if length is None else length} tokens: expected "
            f"at least max_predictions={max_predictions}"
        )
    return token_ids, tf.convert_to_tensor(padding_mask, tf.int32), length


def _happens(bits: tf.Tensor, share: float) -> tf.Tensor:
    """True with probability `share` for random bits: never with 0, always with 1."""
    return bits & ((1 << _SHARE_BITS) - 1) < round(share * (1 << _SHARE_BITS))


def _words(tokens: list[str]) -> list[int]:
    """The ids of all tokens except special and unused ones."""
    special = set(SPECIAL_TOKENS.values())
    unused = re.compile(r"\[unused\d+\]")
    return [i for i, t in enumerate(tokens) if t not in special and not unused.fullmatch(t)]
