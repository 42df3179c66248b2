"""From tags to entities, and from tagged characters to words."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

OUTSIDE, BEGIN, INSIDE, END, SINGLE = range(5)
LETTERS = {"B": BEGIN, "I": INSIDE, "E": END, "S": SINGLE}
LETTERS |= {"M": INSIDE, "L": END, "U": SINGLE}  # of BMES and BILOU
_TAG = re.compile(rf"([{''.join(LETTERS)}])-(.+)", re.DOTALL)


class Entities(NamedTuple):
    """The entities of a batch, sentence after sentence. E of them, all [E].

    Attributes:
        sentence: int32, the sentence that it is in.
        label: string, its type.
        start: int32, its first word.
        end: int32, the word after its last.
        score: float32, the mean of the probabilities of its words' tags.
    """

    sentence: object
    label: object
    start: object
    end: object
    score: object


class TaggedEntity(NamedTuple):
    """An entity of one sentence.

    Attributes:
        text: what stands in the text from `start` to `end`; of a list of words, those words with
            spaces between them, or without where each is a single character that is no ASCII.
        label: its type, such as "PER".
        start: in a text the first character; in a list of words the first word.
        end: the character or word after its last.
        score: the mean of the probabilities of its words' tags.
    """

    text: str
    label: str
    start: int
    end: int
    score: float


def marks_entity(label: str) -> bool:
    """Whether a label is one of `tag_places`."""
    return label == "O" or _TAG.fullmatch(label) is not None


def tag_places(labels: Sequence[str]) -> tuple[list[int], list[str]]:
    """Reads the names of tags: the place that each stands for, and the type.

    Args:
        labels: "O", or a letter, "-" and a type: B, I of IOB1 and IOB2, B, I, E, S of IOBES, and
            the same with M for I, L for E and U for S.

    Returns:
        (K places of `OUTSIDE`, `BEGIN`, ...; K types, "" for "O").

    Raises:
        ValueError: for another tag.
    """
    places, types = [], []
    for label in labels:
        found = _TAG.fullmatch(label)
        if not marks_entity(label):
            raise ValueError(
                f"the label {label!r} marks no entity: expected O, B-TYPE, I-TYPE, E-TYPE or "
                "S-TYPE; for tags of another kind call predict_tags"
            )
        places.append(LETTERS[found[1]] if found else OUTSIDE)
        types.append(found[2] if found else "")
    return places, types


def find_entities(tags, probabilities, labels: Sequence[str]) -> Entities:
    """Joins words into entities, in graph. TensorFlow.

    Rule: the script conlleval of CoNLL-2000. B and S always begin an entity; any other tag begins
    one where the word before is outside, ends an entity or is of another type. So IOB1 and IOB2
    need not be told apart, and tags that a scheme does not allow are not lost.

    Args:
        tags: int32 ragged [B, None].
        probabilities: float32 ragged [B, None].
        labels: names of the K tags.

    Returns:
        `Entities`.

    Raises:
        ValueError: if a label marks no entity.
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
    """Writes character spans as tags of words.

    The scheme is that of the labels: E (or L) ends an entity and S (or U) is one of a single word
    where they have these, and M stands for I.

    Args:
        spans: (first character, character after the last, type), sorted, without overlaps.
        starts: the first character of each word.
        ends: the character after its last.
        labels: names of the K tags.
        where: the row, for errors.

    Returns:
        A tag for each word.

    Raises:
        ValueError: if a span cuts a word or holds none, or there is no label for it.
    """
    places, types = tag_places(labels)
    letters = {place: label[0] for label, place in zip(labels, places, strict=True)}
    tags = ["O"] * len(starts)
    for start, end, kind in spans:
        named = f"{where}: the span {(start, end, kind)}"
        first, last = bisect_right(ends, start), bisect_left(starts, end)  # words that it touches
        if first >= last:
            raise ValueError(f"{named} holds no word")
        for word in (first, last - 1):
            if starts[word] < start or ends[word] > end:
                raise ValueError(
                    f"{named} cuts the word at {starts[word]} to {ends[word]}; expected whole "
                    "words, as `words` gives them"
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
    """Where entities lie in plain texts, in graph.

    Args:
        entities: from `find_entities`.
        starts: int32 ragged [B, None], the first character of each word, as in `TokenRows`.
        ends: the same, the character after its last.

    Returns:
        (first character, character after the last), int32 [E].
    """
    import tensorflow as tf

    begin = tf.gather(tf.cast(starts.row_starts(), tf.int32), entities.sentence)
    return (
        tf.gather(starts.flat_values, begin + entities.start),
        tf.gather(ends.flat_values, begin + entities.end - 1),
    )


def join_words(words: Sequence[str]) -> str:
    """Joins words with spaces, or without where each is a single character that is no ASCII."""
    characters = all(len(word) == 1 and not word.isascii() for word in words)
    return ("" if characters else " ").join(words)


def join_segments(characters: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Joins characters into words, as the tags of word segmentation say.

    B and S begin a word; M (or I) and E go on with it. A tag that cannot go on, at the beginning
    or after E or S, begins a word too, so that no character is lost.

    Args:
        characters: of one sentence.
        tags: as many, each B, M, I, E or S.

    Returns:
        The words.

    Raises:
        ValueError: if the numbers differ, or for another tag.
    """
    if len(characters) != len(tags):
        raise ValueError(f"{len(characters)} characters but {len(tags)} tags")
    words, open_word = [], False
    for place, (character, tag) in enumerate(zip(characters, tags, strict=True)):
        if tag not in ("B", "M", "I", "E", "S"):
            raise ValueError(f"tag {tag!r} of character {place}: expected B, M, I, E or S")
        if open_word and tag not in ("B", "S"):
            words[-1] += character
        else:
            words.append(character)
        open_word = tag not in ("E", "S")
    return words
