"""Tokenizes lines of text in the graph, each by the fastest implementation correct for it.

Imports TensorFlow and tensorflow_text, so import this module lazily.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_text as tf_text

from keras_bert.text import safe_text
from keras_bert.text.wordpiece import Pieces, build_model, lines_to_pieces, words_to_pieces
from keras_bert.text.words import WordSplitter, true_indices


class Road(NamedTuple):
    """A fast implementation, and the pattern of the lines for which it is correct."""

    pattern: str
    normalizer: tf_text.FastBertNormalizer | None  # None: lower-cases only A-Z, if at all


class LineTokenizer:
    """Tokenizes a batch of lines exactly as BERT does.

    Most lines consist of characters on which tensorflow_text's one-pass ops agree with BERT's
    tokenizer, and use these. All other lines are normalized and split by `WordSplitter`, which is
    exact for any input but several times slower.

    Args:
        tokens: the vocabulary; an index is an id.
        lowercase: whether to lower-case.
        strip_accents: whether to decompose characters and drop accents.
        exact: (token, id) of those matched in the text in their exact spelling.
        max_word_length: a word with more characters becomes [UNK].
        added: (token, id) of those matched in the normalized text.
        splitting: as in `WordSplitter`; only "bert" has fast implementations.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        lowercase: bool,
        strip_accents: bool,
        exact: tuple[tuple[str, int], ...],
        max_word_length: int,
        added: tuple[tuple[str, int], ...] = (),
        splitting: str = "bert",
    ):
        exact, added = dict(exact), dict(added)
        self.lowercase = lowercase
        self.special_ids = [*exact.values(), *added.values()]
        self.max_word_length = max_word_length
        with tf.init_scope(), tf.device("CPU"):  # may be called while a graph is traced
            self.split = WordSplitter(
                lowercase, strip_accents, tuple(exact), tuple(added), splitting
            )
            forms: list[str] = []
            if self.special_ids:
                plain = WordSplitter(lowercase, strip_accents, splitting=splitting)
                forms = plain.normal_forms((*exact, *added))
            self.found_whole = safe_text.holding_pattern(forms)
            self.word_model = build_model(tokens, whole_lines=False)
            self.line_model = build_model(tokens, whole_lines=True)
            self.tokens = tf.constant(list(tokens), tf.string)
            fast = self.line_model and self.found_whole is not None and splitting == "bert"
            self.roads = self._roads(strip_accents) if fast else ()
        # One trace of each for all batch sizes.
        signature = [tf.TensorSpec([None], tf.string)]
        self.ids, self.pieces, self.pieces_by_character = (
            tf.function(function, signature, autograph=False)
            for function in (self._ids, self._pieces, self._pieces_by_character)
        )

    def _roads(self, strip_accents: bool) -> tuple[Road, ...]:
        def pattern(word: str, breaks: str) -> str:
            return safe_text.line_pattern(word, breaks, self.max_word_length)

        unchanged = not self.lowercase and not strip_accents
        word = safe_text.CASED_WORD if unchanged else safe_text.PLAIN_WORD
        roads = [Road(pattern(word, safe_text.PLAIN_BREAK), None)]
        if self.lowercase and strip_accents:
            folded = pattern(safe_text.FOLDED_WORD, safe_text.FOLDED_BREAK)
            normalizer = tf_text.FastBertNormalizer(lower_case_nfd_strip_accents=True)
            roads.append(Road(folded, normalizer))
        return tuple(roads)

    def _ids(self, lines: tf.Tensor) -> tf.RaggedTensor:
        return self._tokenize(lines, offsets=False).ids

    def _pieces(self, lines: tf.Tensor) -> Pieces:
        return _int32(self._tokenize(lines, offsets=True))

    def _pieces_by_character(self, lines: tf.Tensor) -> Pieces:
        return _int32(bytes_to_characters(lines, self._tokenize(lines, offsets=True)))

    def _tokenize(self, lines: tf.Tensor, offsets: bool) -> Pieces:
        with tf.device("CPU"):  # strings, and integer lookups that a GPU would not speed up
            return self.take_roads(lines, self.roads, offsets)

    def take_roads(self, lines: tf.Tensor, roads: tuple[Road, ...], offsets: bool) -> Pieces:
        """Routes each line to the first of `roads` that is correct for it, or to the exact one."""
        if not roads:
            words, size = self.split(lines, offsets), tf.size(lines)
            return words_to_pieces(
                words, self.word_model, self.special_ids, self.max_word_length, size
            )
        road, *others = roads
        safe = tf.strings.regex_full_match(lines, road.pattern)
        if self.found_whole:
            plain = lines if road.normalizer is None else road.normalizer.normalize(lines)
            safe &= ~tf.strings.regex_full_match(plain, self.found_whole)

        def take(lines: tf.Tensor) -> Pieces:
            return lines_to_pieces(lines, self.line_model, road.normalizer, self.lowercase, offsets)

        def part_ways() -> Pieces:
            here, there = true_indices(safe), true_indices(~safe)
            mine = take(tf.gather(lines, here))
            rest = self.take_roads(tf.gather(lines, there), tuple(others), offsets)
            order = tf.math.invert_permutation(tf.concat([here, there], 0))
            return Pieces(
                *(
                    None if one is None else tf.gather(tf.concat([one, other], 0), order)
                    for one, other in zip(mine, rest, strict=True)
                )
            )

        return tf.cond(tf.reduce_all(safe), lambda: take(lines), part_ways)


def _int32(pieces: Pieces) -> Pieces:
    return Pieces(*(tf.cast(field, tf.int32) for field in pieces))


# The same for the same arguments, so that tokenizers share its traces: making one for 30,000 tokens
# and tracing it takes half a second.
line_tokenizer = functools.lru_cache(maxsize=4)(LineTokenizer)


def to_strings(inputs: Any) -> tf.Tensor | tf.RaggedTensor:
    """Converts text (str, bytes, or lists, arrays or tensors of them) to a string tensor.

    Raises:
        TypeError: if `inputs` are not text.
    """
    if isinstance(inputs, tf.Tensor | tf.RaggedTensor):
        text = inputs
    else:
        try:
            text = tf.convert_to_tensor(inputs, tf.string)
        except (TypeError, ValueError) as error:
            try:
                text = tf.ragged.constant(inputs, tf.string)
            except (TypeError, ValueError):
                raise TypeError(
                    f"{inputs!r:.80} of type {type(inputs).__name__}: expected text (str, bytes, "
                    "or lists, arrays or tensors of them)"
                ) from error
    if text.dtype != tf.string:
        raise TypeError(f"tensor of {text.dtype.name}: expected text")
    return text


def text_columns(columns: Sequence[Any]) -> list[tf.Tensor]:
    """Converts the texts of each example, or batches of them, to string tensors [] or [B].

    Raises:
        TypeError: if a column is not text.
        ValueError: if a column has more than one axis, or columns differ in length.
    """
    found = [to_strings(column) for column in columns]
    for column in found:
        if not isinstance(column, tf.Tensor) or column.shape.rank not in (0, 1):
            raise ValueError(
                f"texts of shape {column.shape}: expected one text or a batch of texts [B]; pass "
                "pairs as a tuple of two batches, (firsts, seconds)"
            )
        if not column.shape.is_compatible_with(found[0].shape):
            raise ValueError(
                f"texts of shapes {found[0].shape} and {column.shape}: expected the same shape"
            )
    return found


def map_lines(function: Any, text: tf.Tensor | tf.RaggedTensor) -> Any:
    """Applies `function`, from lines [B] to one or more ragged [B, None], to text of any rank."""

    def each(result: Any, shape: Any) -> Any:
        return tuple(shape(part) for part in result) if isinstance(result, tuple) else shape(result)

    rank = text.shape.rank
    if rank is None:
        raise ValueError("Expected text of a known rank, got a tensor of unknown rank")
    if rank == 0:
        return each(function(text[None]), lambda ragged: ragged.flat_values)
    if rank == 1:
        return function(text)
    if isinstance(text, tf.Tensor):
        text = tf.RaggedTensor.from_tensor(text, ragged_rank=rank - 1)
    splits_dtype = text.row_splits.dtype

    def nest(ragged: tf.RaggedTensor) -> tf.RaggedTensor:
        return text.with_flat_values(ragged.with_row_splits_dtype(splits_dtype))

    return each(function(text.flat_values), nest)


def bytes_to_characters(lines: tf.Tensor, pieces: Pieces) -> Pieces:
    """Converts byte offsets to character offsets (code points; invalid bytes are not counted)."""
    _, places = tf.strings.unicode_decode_with_offsets(lines, "UTF-8", errors="ignore")
    # With the lines concatenated, one sorted search finds all characters.
    length = tf.cast(tf.strings.length(lines), tf.int64) + 1
    base = tf.cumsum(length, exclusive=True)
    line = pieces.ids.value_rowids()
    known = places.flat_values + tf.gather(base, places.value_rowids())

    def convert(offsets: tf.RaggedTensor) -> tf.RaggedTensor:
        place = tf.cast(offsets.flat_values, tf.int64) + tf.gather(base, line)
        found = tf.searchsorted(known, place, side="left")
        first = tf.gather(places.row_splits, line)
        return offsets.with_flat_values(tf.cast(found, tf.int64) - first)

    return Pieces(pieces.ids, convert(pieces.starts), convert(pieces.ends))


def join_pieces(ids: Any, tokens: tf.Tensor) -> tf.Tensor:
    """Joins the tokens of `ids`, [..., None], with spaces, except before `##` pieces."""
    if not isinstance(ids, tf.Tensor | tf.RaggedTensor):
        ids = tf.ragged.constant(ids) if isinstance(ids, list | tuple) else tf.constant(ids)
    ids = tf.cast(ids, tf.int32)
    text = tf.strings.reduce_join(tf.gather(tokens, ids), axis=-1, separator=" ")
    return tf.strings.regex_replace(text, " ##", "")
