"""Tagging schemes for entities: IOB1, IOB2 and IOBES.

O is a token outside of entities; other tags are a letter, "-" and the entity type. IOB1 (Ramshaw
and Marcus 1995, cmp-lg/9505040; the files of CoNLL-2003): I inside, B only at the start of an
entity directly after one of the same type. IOB2 (Sang and Veenstra 1999, cs/9907006): B starts
every entity. IOBES: E also marks the last token, S an entity of one token.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from keras_bert.arguments import check_choice

SCHEMES = {"IOB1": "IB", "IOB2": "IB", "IOBES": "IBES"}

_TAG = re.compile(r"([IBES])-(\S+)")


class Entity(NamedTuple):
    """An entity: its type, first token, and one after its last token."""

    type: str
    start: int
    end: int


def to_iob1(sentences: Sequence[Sequence[str]], scheme: str) -> list[list[str]]:
    """As `to_iob2`, to IOB1."""
    return _convert(sentences, scheme, "IOB1")


def to_iob2(sentences: Sequence[Sequence[str]], scheme: str) -> list[list[str]]:
    """Converts tags to IOB2.

    Args:
        sentences: the tags of each sentence, one per token.
        scheme: their scheme, a key of `SCHEMES`.

    Returns:
        Tags of the same lengths.

    Raises:
        ValueError: if the scheme is unknown, or a tag is not in the scheme or not valid at its
            position; the message names sentence and position, both counted from 0.
    """
    return _convert(sentences, scheme, "IOB2")


def to_iobes(sentences: Sequence[Sequence[str]], scheme: str) -> list[list[str]]:
    """As `to_iob2`, to IOBES."""
    return _convert(sentences, scheme, "IOBES")


def entities(tags: Sequence[str], scheme: str, sentence: int = 0) -> list[Entity]:
    """Decodes the entities of a sentence, of which `sentence` is the index, strictly.

    In IOB1 every sequence of tags is valid; a B that does not follow an entity of its type, which
    occurs twice in CoNLL-2003, starts one. Errors are those of `to_iob2`.
    """
    found, begun, kind = [], None, ""
    for i, (letter, new) in enumerate([*split_tags(tags, scheme, sentence), ("O", "")]):
        continues = letter in "IE" and begun is not None and new == kind
        if begun is not None and not continues:
            if scheme == "IOBES":
                raise _impossible(tags, i, sentence, f"{kind} must continue with I or E")
            found.append(Entity(kind, begun, i))
            begun = None
        if letter in "IE" and not continues and scheme != "IOB1":
            raise _impossible(tags, i, sentence, f"{scheme} starts an entity with B")
        if letter in "IBS" and not continues:
            begun, kind = i, new
        if letter in "ES":
            found.append(Entity(kind, begun, i + 1))
            begun = None
    return found


def split_tags(tags: Sequence[str], scheme: str, sentence: int = 0) -> list[tuple[str, str]]:
    """Splits each tag into its letter and type ("" for O); other tags are a ValueError."""
    check_choice("scheme", scheme, SCHEMES)
    if isinstance(tags, str):
        raise ValueError(f"Sentence {sentence}: expected a list of tags, got the text {tags!r}")
    found = []
    for i, tag in enumerate(tags):
        parts = _TAG.fullmatch(tag) if isinstance(tag, str) else None
        if tag == "O":
            found.append(("O", ""))
        elif parts and parts[1] in SCHEMES[scheme]:
            found.append((parts[1], parts[2]))
        else:
            letters = ", ".join(f"{letter}-TYPE" for letter in SCHEMES[scheme])
            raise ValueError(
                f"Sentence {sentence}, position {i}: {tag!r} is not in {scheme} (O, {letters})"
            )
    return found


def _convert(sentences, scheme, target):
    return [
        _write(entities(tags, scheme, number), len(tags), target)
        for number, tags in enumerate(sentences)
    ]


def _write(found: Iterable[Entity], length: int, scheme: str) -> list[str]:
    tags = ["O"] * length
    for kind, start, end in found:
        tags[start:end] = [f"I-{kind}"] * (end - start)
        if scheme != "IOB1" or (start and tags[start - 1][1:] == f"-{kind}"):
            tags[start] = f"B-{kind}"
        if scheme == "IOBES":
            tags[end - 1] = f"{'S' if end - start == 1 else 'E'}-{kind}"
    return tags


def _impossible(tags, i, sentence, rule) -> ValueError:
    tag = tags[i] if i < len(tags) else "the end of the sentence"
    before = f"after {tags[i - 1]}" if i else "at the beginning"
    return ValueError(f"Sentence {sentence}, position {i}: {tag} {before} is invalid: {rule}.")
