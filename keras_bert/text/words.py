"""Splits text into words in the graph: BERT's cleaning, lower-casing, accent stripping, splitting.

This is the BasicTokenizer of google-research/bert (tokenization.py), computed on the code points of
a whole batch at once by lookups in frozen Unicode tables. Every character keeps its byte range in
the original text, for the offsets of pieces.

All steps work on flat vectors. A line feed after each line separates the lines, so no step has to
know where one ends, and with `tf.roll` a space precedes the first character. The graph is kept
small, because tf.data instantiates it in each epoch, at a fraction of a millisecond per node.

Imports TensorFlow, so import this module lazily.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.text import unicode_tables as unicode
from keras_bert.text.literals import NOT_SPECIAL, Literals
from keras_bert.text.unicode_tables import Table, UnicodeTables, load_tables

CAPITAL_SIGMA, FINAL_SIGMA = 0x3A3, 0x3C2
# Placeholder for a matched literal: never changed, and always a word by itself.
STAND_IN = ord("[")


class Characters(NamedTuple):
    """The concatenated characters of a batch's lines. All are [C], or None if not requested."""

    code: tf.Tensor  # int32, code point
    line: tf.Tensor  # int32, the line in the batch
    special: tf.Tensor | None  # int32, index of its literal, or NOT_SPECIAL
    start: tf.Tensor | None  # int64, the first byte in that line
    end: tf.Tensor | None  # int64, one after the last byte

    def take(self, indices: tf.Tensor) -> "Characters":
        return Characters(*(x if x is None else tf.gather(x, indices) for x in self))


class Words(NamedTuple):
    """The words of a batch: word w is `characters[splits[w] : splits[w + 1]]`."""

    characters: Characters  # [C], normalized, without spaces
    splits: tf.Tensor  # [W + 1] int64


class WordSplitter:
    """Splits lines of text into BERT's words.

    Args:
        lowercase: whether to lower-case as `str.lower` does, including the final sigma.
        strip_accents: whether to decompose canonically (NFD) and drop marks of category Mn.
        exact: tokens that are matched in the text in their exact spelling; a match becomes a word
            of one character whose `special` is its index here.
        added: tokens whose normalized form is matched in the normalized text; their indices follow
            those of `exact`.
        splitting: "bert"; "whole_ideographs", which does not separate ideographs; or "spaces",
            which removes nothing and splits only at white space.
    """

    def __init__(
        self,
        lowercase: bool,
        strip_accents: bool,
        exact: tuple[str, ...] = (),
        added: tuple[str, ...] = (),
        splitting: str = "bert",
    ):
        self.splitting = splitting
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        # Graphs capture eager tensors; with NumPy arrays, each lookup would copy its table into
        # the graph, and tf.data would process it in every epoch.
        tables = load_tables(lowercase, strip_accents)
        self.tables = tf.nest.map_structure(lambda x: x if x is None else tf.constant(x), tables)
        self.exact = self.added = None  # not while computing normal forms
        if added:
            self.added = Literals([[*map(ord, form)] for form in self.normal_forms(added)])
        if exact:
            self.exact = Literals([[*map(ord, token)] for token in exact])
        self.number_of_exact = len(exact)

    def normal_forms(self, tokens: tuple[str, ...]) -> list[str]:
        """Normalizes tokens, with U+0020 for all white space; one that gets empty is an error."""
        characters, flags, _ = self._normalise(tf.constant(tokens), False)
        code = _plain_spaces(characters.code, flags)
        lines = tf.RaggedTensor.from_value_rowids(code, characters.line, len(tokens))
        forms = [text.decode() for text in tf.strings.unicode_encode(lines, "UTF-8").numpy()]
        for token, form in zip(tokens, forms, strict=True):
            if not form.strip(" "):
                raise ValueError(
                    f"added token {token!r}: expected one that is not empty after normalization"
                )
        return [form[:-1] for form in forms]  # without the line feed

    def __call__(self, lines: tf.Tensor, offsets: bool) -> Words:
        """Splits lines, strings [B]; bytes that are not UTF-8 are dropped.

        With `offsets`, each character has its byte range.
        """
        characters, flags, number = self._normalise(lines, offsets)
        if self.added is not None:
            code = _plain_spaces(characters.code, flags)
            if characters.special is not None:
                code = tf.where(characters.special == NOT_SPECIAL, code, 0)
            found = self.added.find(code, characters.line)
            characters, kept = _stand_in(characters, *found, self.number_of_exact)
            number, flags = tf.gather(number, kept), tf.gather(flags, kept)
        if self.splitting == "spaces":
            flags &= ~unicode.PUNCTUATION
        return _group(characters, flags, number)

    def _normalise(
        self, lines: tf.Tensor, offsets: bool
    ) -> tuple[Characters, tf.Tensor, tf.Tensor]:
        """Cleans, lower-cases and strips accents.

        Returns the characters, including spaces; their flags; and a number for each, see `_group`.
        """
        tables = self.tables
        characters = _decode(lines, offsets)
        if self.exact is not None:
            found = self.exact.find(characters.code, characters.line)
            characters, _ = _stand_in(characters, *found)
        flags = _lookup(tables.properties, characters.code)
        dropped = 0 if self.splitting == "spaces" else unicode.DROPPED
        kept = true_indices(_lacks(flags, dropped))
        characters, flags = characters.take(kept), tf.gather(flags, kept)
        if self.lowercase:
            code = _finish_sigmas(characters.code, flags)
            characters = characters._replace(code=code)
        # Adjacent characters with the same number form a word: -1, or for an ideograph a unique
        # one, which its replacement inherits.
        apart = unicode.IDEOGRAPH if self.splitting == "bert" else 0
        number = tf.where(_lacks(flags, apart), -1, -2 - tf.range(tf.size(characters.code)))
        if tables.mapping is not None:
            characters, source = _replace(characters, tables)
            number = tf.gather(number, source)
            flags = _lookup(tables.properties, characters.code)
        if self.strip_accents:
            characters, kept = _strip_marks(characters, flags)
            number, flags = tf.gather(number, kept), tf.gather(flags, kept)
        return characters, flags, number


def utf8_length(code: tf.Tensor) -> tf.Tensor:
    """The UTF-8 length in bytes of each code point, int64."""
    return 1 + sum(tf.cast(code >= first, tf.int64) for first in (0x80, 0x800, 0x10000))


def true_indices(mask: tf.Tensor) -> tf.Tensor:
    """The indices, int64, where a vector is true."""
    return tf.reshape(tf.where(mask), [-1])


def owner(ends: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """The run, int32, of each of `size` places, where run i ends before `ends[i]`.

    The same as `tf.repeat(tf.range(runs), lengths)`, which takes some seventy ops.
    """
    return tf.searchsorted(ends, tf.range(size, dtype=ends.dtype), side="right")


def _lookup(table: Table, code: tf.Tensor) -> tf.Tensor:
    block = tf.gather(table.blocks, _shift_right(code, unicode.BLOCK_BITS))
    return tf.gather(table.values, block * unicode.BLOCK_SIZE + (code & (unicode.BLOCK_SIZE - 1)))


def _shift_right(values: tf.Tensor, bits: int) -> tf.Tensor:
    return tf.bitwise.right_shift(values, tf.constant(bits, values.dtype))


def _lacks(flags: tf.Tensor, flag: int) -> tf.Tensor:
    return flags & flag == 0


def _decode(lines: tf.Tensor, offsets: bool) -> Characters:
    """Decodes lines, with a line feed after each."""
    lines = tf.strings.join([lines, "\n"])
    code, start = tf.strings.unicode_decode_with_offsets(lines, "UTF-8", errors="ignore")
    line = owner(code.row_splits[1:], tf.size(code.flat_values))
    code, start = code.flat_values, start.flat_values
    if not offsets:
        return Characters(code, line, None, None, None)
    return Characters(code, line, None, start, start + utf8_length(code))


def _plain_spaces(code: tf.Tensor, flags: tf.Tensor) -> tf.Tensor:
    """The code points with U+0020 for all white space."""
    return tf.where(_lacks(flags, unicode.SPACE), code, ord(" "))


def _stand_in(
    characters: Characters, starts: tf.Tensor, ends: tf.Tensor, numbers: tf.Tensor, first: int = 0
) -> tuple[Characters, tf.Tensor]:
    """Replaces each match of `Literals.find`, whose number grows by `first`, by one character.

    Returns the characters, and the indices of those kept.
    """
    size = tf.size(characters.code)
    place = starts[:, None]
    special = characters.special
    special = tf.fill([size], NOT_SPECIAL) if special is None else special
    characters = characters._replace(
        code=tf.tensor_scatter_nd_update(
            characters.code, place, tf.fill([tf.size(starts)], STAND_IN)
        ),
        special=tf.tensor_scatter_nd_update(special, place, numbers + first),
    )
    if characters.end is not None:
        last = tf.gather(characters.end, ends - 1)
        characters = characters._replace(
            end=tf.tensor_scatter_nd_update(characters.end, place, last)
        )
    begins = tf.searchsorted(starts, tf.range(size, dtype=tf.int64), side="left")
    ended = tf.searchsorted(ends, tf.range(size, dtype=tf.int64), side="right")
    kept = true_indices(begins == ended)  # otherwise inside a match
    return characters.take(kept), kept


def _finish_sigmas(code: tf.Tensor, flags: tf.Tensor) -> tf.Tensor:
    """Replaces each capital sigma at the end of a word by a final sigma, as `str.lower` does.

    It is final if the nearest character to its left is cased and that to its right is not, skipping
    case-ignorable ones (Unicode 3.13, Final_Sigma). Spaces and ideographs, where BERT splits before
    lower-casing, are neither.
    """

    def replace() -> tf.Tensor:
        solid = true_indices(_lacks(flags, unicode.CASE_IGNORABLE))
        cased = ~_lacks(tf.gather(flags, solid), unicode.CASED)
        final = tf.gather(code, solid) == CAPITAL_SIGMA
        final &= tf.roll(cased, 1, 0) & ~tf.roll(cased, -1, 0)
        places = tf.boolean_mask(solid, final)
        return tf.tensor_scatter_nd_update(
            code, places[:, None], tf.fill(tf.shape(places), FINAL_SIGMA)
        )

    return tf.cond(tf.reduce_any(code == CAPITAL_SIGMA), replace, lambda: code)


def _replace(characters: Characters, tables: UnicodeTables) -> tuple[Characters, tf.Tensor]:
    """Replaces each character by its mapping, one to four characters, whose source it returns."""
    entry = _lookup(tables.mapping, characters.code)
    length = tf.where(entry == 0, 1, entry & ((1 << unicode.LENGTH_BITS) - 1))
    ends = tf.cumsum(length)
    source = owner(ends, tf.reduce_sum(length))
    within = tf.range(tf.size(source)) - tf.gather(ends - length, source)
    entry = tf.gather(entry, source)
    characters = characters.take(source)
    replacement = tf.gather(tables.sequences, _shift_right(entry, unicode.LENGTH_BITS) + within)
    code = tf.where(entry == 0, characters.code, replacement)
    return characters._replace(code=code), source


def _strip_marks(characters: Characters, flags: tf.Tensor) -> tuple[Characters, tf.Tensor]:
    """Drops marks (Mn) and sorts the remaining marks into canonical order.

    A dropped mark's bytes go to the previous character: an accent belongs to its letter. Returns
    the characters, and the indices of those kept.
    """
    kept = true_indices(_lacks(flags, unicode.MARK))
    if characters.end is not None:
        last = tf.concat([kept[1:], [tf.size(flags, tf.int64)]], 0) - 1
        end = tf.tensor_scatter_nd_update(
            characters.end, kept[:, None], tf.gather(characters.end, last)
        )
        characters = characters._replace(end=end)
    combining = tf.cast(_shift_right(flags, unicode.COMBINING_SHIFT), tf.int64)
    run = tf.cumsum(tf.cast(combining == 0, tf.int64))
    key = tf.gather(run * 256 + combining, kept)
    characters = characters.take(kept)
    # NFD sorts the marks after each starter (combining class 0) by class. Sorting only those that
    # remain (a few of category Mc) gives the same order, since both sorts are stable, as top_k is.
    code = tf.cond(
        tf.reduce_any(key % 256 != 0),
        lambda: tf.gather(characters.code, tf.math.top_k(-key, tf.size(key)).indices),
        lambda: characters.code,
    )
    return characters._replace(code=code), kept


def _group(characters: Characters, flags: tf.Tensor, number: tf.Tensor) -> Words:
    """Splits at spaces, around punctuation and special tokens, and where the number changes."""
    alone = ~_lacks(flags, unicode.PUNCTUATION)
    if characters.special is not None:
        alone |= characters.special != NOT_SPECIAL
    number = tf.where(alone, tf.range(1, tf.size(flags) + 1), number)
    number = tf.where(_lacks(flags, unicode.SPACE), number, 0)
    begins = number != tf.roll(number, 1, 0)
    inside = true_indices(number != 0)
    starts = true_indices(tf.gather(begins, inside))
    splits = tf.concat([starts, [tf.size(inside, tf.int64)]], 0)
    return Words(characters.take(inside), splits)
