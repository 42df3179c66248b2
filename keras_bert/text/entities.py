"""Decodes tags into entities, and entities of characters into tags."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

OUTSIDE, BEGIN, INSIDE, END, SINGLE = range(5)
LETTERS = {"B": BEGIN, "I": INSIDE, "E": END, "S": SINGLE}
LETTERS |= {"M": INSIDE, "L": END, "U": SINGLE}  # in BMES and BILOU
_TAG = re.compile(rf"([{''.join(LETTERS)}])-(.+)", re.DOTALL)


class Entities(NamedTuple):
    """The E entities of a batch, in the order of the sentences. All tensors are [E].

    Attributes:
        sentence: int32, the index of the sentence.
        label: string, the entity type.
        start: int32, the first word.
        end: int32, one after the last word.
        score: float32, the mean probability of the words' tags.
    """

    sentence: object
    label: object
    start: object
    end: object
    score: object


class TaggedEntity(NamedTuple):
    """An entity of one sentence.

    Attributes:
        text: the text from `start` to `end`; for a list of words, the words joined with spaces, or
            without if each is a single non-ASCII character.
        label: the entity type, such as "PER".
        start: the first character of a text, or the first word of a list of words.
        end: one after the last character or word.
        score: the mean probability of the words' tags.
    """

    text: str
    label: str
    start: int
    end: int
    score: float


def marks_entity(label: str) -> bool:
    """Whether `tag_places` accepts a label."""
    return label == "O" or _TAG.fullmatch(label) is not None


def tag_places(labels: Sequence[str]) -> tuple[list[int], list[str]]:
    """Parses the names of K tags into positions, `OUTSIDE`, `BEGIN`, ..., and types, "" for "O".

    A tag is "O", or a letter, "-" and a type: B, I (IOB1, IOB2), B, I, E, S (IOBES), or the
    variants M for I, L for E and U for S. Any other is a ValueError.
    """
    places, types = [], []
    for label in labels:
        found = _TAG.fullmatch(label)
        if not marks_entity(label):
            raise ValueError(
                f"label {label!r}: expected O, B-TYPE, I-TYPE, E-TYPE or S-TYPE; for other tags "
                "call predict_tags"
            )
        places.append(LETTERS[found[1]] if found else OUTSIDE)
        types.append(found[2] if found else "")
    return places, types


def find_entities(tags, probabilities, labels: Sequence[str]) -> Entities:
    """Groups words into entities. TensorFlow, in graph.

    Reference: CoNLL-2000's script conlleval. B and S always start an entity; any other tag starts
    one if the previous word is outside, ends an entity or has another type. So IOB1 and IOB2 need
    not be distinguished, and no tag is lost in invalid sequences.

    Args:
        tags: int32 ragged [B, None].
        probabilities: float32 ragged [B, None].
        labels: names of the K tags, as in `tag_places`.
    """
    import tensorflow as tf

    places, types = tag_places(labels)
    names = sorted({*types})
    with tf.device("cpu"):  # integers and strings
        place = tf.gather(tf.constant(places), tags.flat_values)
        kind = tf.gather(tf.constant([names.index(name) for name in types]), tags.flat_values)
        sentence = tf.cast(tags.value_rowids(), tf.int32)
        first = tf.gather(tf.cast(tags.row_starts(), tf.int32), sentence)
        word = tf.range(tf.size(place)) - first
        before = tf.where(word == 0, OUTSIDE, tf.roll(place, 1, 0))
        fresh = (before == OUTSIDE) | (before == END) | (before == SINGLE)
        fresh |= (place == BEGIN) | (place == SINGLE) | (kind != tf.roll(kind, 1, 0))
        inside = place != OUTSIDE
        begins = inside & fresh
        entity = tf.boolean_mask(tf.cumsum(tf.cast(begins, tf.int32)) - 1, inside)
        start = tf.boolean_mask(word, begins)
        scores = tf.boolean_mask(probabilities.flat_values, inside)
        return Entities(
            tf.boolean_mask(sentence, begins),
            tf.gather(tf.constant(names), tf.boolean_mask(kind, begins)),
            start,
            start + tf.math.segment_sum(tf.ones_like(entity), entity),
            tf.math.segment_mean(scores, entity),
        )


def tags_of_spans(
    spans: Sequence[tuple[int, int, str]],
    starts: Sequence[int],
    ends: Sequence[int],
    labels: Sequence[str],
    where: str,
) -> list[str]:
    """Converts character spans to tags of words.

    The scheme follows from the labels: if present, E (or L) marks the last word of an entity, S (or
    U) an entity of one word, and M replaces I. A span that splits a word, contains none or has no
    label is a ValueError, which names the example by `where`.

    Args:
        spans: (start, end, type) in characters, `end` exclusive, sorted, without overlaps.
        starts: the first character of each word.
        ends: one after its last character.
        labels: names of the K tags.
        where: name of the example, for errors.
    """
    places, types = tag_places(labels)
    letters = {place: label[0] for label, place in zip(labels, places, strict=True)}
    tags = ["O"] * len(starts)
    for start, end, kind in spans:
        named = f"{where}: the span {(start, end, kind)}"
        first, last = bisect_right(ends, start), bisect_left(starts, end)  # words that it overlaps
        if first >= last:
            raise ValueError(f"{named} contains no word")
        for word in (first, last - 1):
            if starts[word] < start or ends[word] > end:
                raise ValueError(
                    f"{named} splits the word from {starts[word]} to {ends[word]}; expected "
                    "whole words, see `words`"
                )
        inside = letters.get(INSIDE, "I")
        written = [letters.get(BEGIN, inside)] + [inside] * (last - first - 1)
        if last - first > 1:
            written[-1] = letters.get(END, inside)
        else:
            written = [letters.get(SINGLE, written[0])]
        tags[first:last] = [f"{letter}-{kind}" for letter in written]
        if unknown := sorted({*tags[first:last]} - {*labels}):
            raise ValueError(
                f"{named} needs the label {unknown[0]!r}; expected one of {', '.join(labels)}, the "
                "entities " + ", ".join(sorted({*types} - {""}))
            )
    return tags


def character_offsets(entities: Entities, starts, ends):
    """Converts entities in plain texts to character offsets (start, end), int32 [E].

    `starts` and `ends` are those of the words, as in `TokenRows`.
    """
    import tensorflow as tf

    begin = tf.gather(tf.cast(starts.row_starts(), tf.int32), entities.sentence)
    return (
        tf.gather(starts.flat_values, begin + entities.start),
        tf.gather(ends.flat_values, begin + entities.end - 1),
    )


def join_words(words: Sequence[str]) -> str:
    """Joins words with spaces, or without if each is a single non-ASCII character."""
    characters = all(len(word) == 1 and not word.isascii() for word in words)
    return ("" if characters else " ").join(words)
