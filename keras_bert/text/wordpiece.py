"""WordPiece in the graph: words or whole lines to ids, with tensorflow_text's ops.

Imports TensorFlow and tensorflow_text, so import this module lazily.
"""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf
import tensorflow_text as tf_text
from tensorflow_text.core.pybinds import pywrap_fast_wordpiece_tokenizer_model_builder as builder

from keras_bert.text.vocabulary import UNKNOWN
from keras_bert.text.words import NOT_SPECIAL, Words, owner, utf8_length

NO_LIMIT = 1 << 30  # bytes per word; callers check the limit in characters


class Pieces(NamedTuple):
    """The pieces of a batch. All are `RaggedTensor` [B, None], or None if not requested."""

    ids: tf.RaggedTensor  # int32
    starts: tf.RaggedTensor | None = None  # int64, the first byte in the line
    ends: tf.RaggedTensor | None = None  # int64, one after the last byte


def build_model(tokens: Sequence[str], whole_lines: bool) -> tf_text.FastWordpieceTokenizer | None:
    """tensorflow_text's model of a vocabulary: greedy longest match, from the left.

    It takes single words; or with `whole_lines` lines, which it splits at spaces, punctuation and
    ideographs. None if no entry of the vocabulary can match in a whole line.
    """
    # The builder rejects duplicates and tokens with a NUL, and cannot skip an id. An entry that no
    # text can match (a duplicate except for the last, a token with a space or NUL, an empty one) is
    # therefore replaced by U+0001 and its id: cleaning removes control characters from texts.
    last = {token: index for index, token in enumerate(tokens)}
    rows = [
        token
        if last[token] == index and token.split() == [token] and "\0" not in token
        else f"\x01{index}"
        for index, token in enumerate(tokens)
    ]
    try:
        model = builder.build_fast_wordpiece_model(
            rows, NO_LIMIT, "##", UNKNOWN, not whole_lines, False
        )
    except RuntimeError as error:
        if whole_lines and "No valid vocab tokens" in str(error):
            return None
        raise
    # Through NumPy: tf_text's own conversion creates a list of a million integers.
    buffer = tf.constant(memoryview(model), tf.uint8)
    return tf_text.FastWordpieceTokenizer(model_buffer=buffer, token_out_type=tf.int32)


def words_to_pieces(
    words: Words,
    model: tf_text.FastWordpieceTokenizer,
    special_ids: Sequence[int],
    max_word_length: int,
    batch_size: tf.Tensor,
) -> Pieces:
    """Splits the words of a batch of lines into pieces exactly, with limits in characters.

    Args:
        words: the result of `WordSplitter`; pieces have offsets if it has them.
        model: a model of single words.
        special_ids: the id of each literal that the splitter matches.
        max_word_length: a word of more characters becomes one [UNK], which covers it all.
        batch_size: int32, the number of lines.
    """
    characters, splits = words
    letters = tf.RaggedTensor.from_row_splits(characters.code, splits, validate=False)
    too_long = splits[1:] - splits[:-1] > max_word_length
    text = tf.where(too_long, UNKNOWN, tf.strings.unicode_encode(letters, "UTF-8"))
    pieces, begin, finish = model.tokenize_with_offsets(text)
    ids = pieces.flat_values
    word = owner(pieces.row_splits[1:], tf.size(ids))
    first = tf.gather(splits, word)
    if characters.special is not None:
        special = tf.gather(characters.special, first)
        ids = tf.where(special == NOT_SPECIAL, ids, tf.gather(special_ids, tf.maximum(special, 0)))
    line = tf.gather(characters.line, first)
    row_splits = tf.searchsorted(line, tf.range(batch_size + 1), out_type=tf.int64)
    rows = tf.RaggedTensor.from_row_splits(ids, row_splits, validate=False)
    if characters.start is None:
        return Pieces(rows)

    # From bytes of a word to characters to bytes of the line.
    length = utf8_length(characters.code)
    byte = tf.concat([[0], tf.cumsum(length)], 0)
    character_at = owner(byte[1:], byte[-1])
    begin, finish = (tf.cast(place.flat_values, tf.int64) for place in (begin, finish))
    word_start, word_end = tf.gather(byte, first), tf.gather(byte, tf.gather(splits, word + 1))
    finish = tf.where(tf.gather(too_long, word), word_end, word_start + finish)
    starts = tf.gather(characters.start, tf.gather(character_at, word_start + begin))
    ends = tf.gather(characters.end, tf.gather(character_at, finish - 1))
    return Pieces(rows, rows.with_flat_values(starts), rows.with_flat_values(ends))


def lines_to_pieces(
    lines: tf.Tensor,
    model: tf_text.FastWordpieceTokenizer,
    normalizer: tf_text.FastBertNormalizer | None,
    lowercase: bool,
    offsets: bool,
) -> Pieces:
    """Splits whole lines into pieces in one pass; correct only for safe lines.

    Args:
        lines: [B] string, UTF-8.
        model: a model of whole lines.
        normalizer: lower-cases and strips accents; None leaves non-ASCII characters unchanged.
        lowercase: without a normalizer, whether to lower-case A-Z.
        offsets: whether the pieces have offsets.
    """
    sources = None
    if normalizer is None:
        lines = tf.strings.lower(lines) if lowercase else lines
    elif offsets:
        lines, sources = normalizer.normalize_with_offsets(lines)
    else:
        lines = normalizer.normalize(lines)
    ids, starts, ends = model.tokenize_with_offsets(lines)
    if not offsets:
        return Pieces(ids)
    starts, ends = tf.cast(starts, tf.int64), tf.cast(ends, tf.int64)
    if sources is None:
        return Pieces(ids, starts, ends)
    # `sources`: for each line, the original byte of each normalized byte and of the end.
    line = owner(ids.row_splits[1:], tf.size(ids.flat_values))
    base = tf.gather(sources.row_splits, line)

    def original(place: tf.RaggedTensor) -> tf.RaggedTensor:
        source = tf.gather(sources.flat_values, base + place.flat_values)
        return place.with_flat_values(tf.cast(source, tf.int64))

    return Pieces(ids, original(starts), original(ends))
