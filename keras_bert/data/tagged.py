"""Sentences of tagged words: one word a line with its tag, a blank line between sentences.

The layout of CoNLL-2003 (Tjong Kim Sang and De Meulder 2003, arXiv:cs/0306050), WNUT 2017
(Derczynski et al. 2017) and, with one character a line, MSRA (Levow 2006).

Two schemes write the same entities in different tags (Tjong Kim Sang and Veenstra 1999,
arXiv:cs/9907006). In IOB2 every entity begins with B-X. In IOB1, which the English and German files
of CoNLL-2003 use, it begins with I-X, and with B-X only right after another entity of type X. What
is read here is handed on as IOB2.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from keras_bert.data.rows import read_lines

OUTSIDE = "O"
DOCUMENT_START = "-DOCSTART-"
# Not str.split(): it takes an ideographic or no-break space, which may be a word of its own, away.
SPACES = re.compile(" +")


class TaggedSentences(NamedTuple):
    """Sentences with a tag for each word, column by column.

    Attributes:
        words: the words (in MSRA the characters) of each sentence.
        tags: as many tags for each sentence.
        documents: the document, from 0, that each sentence belongs to; all 0 in files that do not
            say where a document begins.
        lines: the line of the file (from 1) that each sentence starts on.
    """

    words: list[list[str]]
    tags: list[list[str]]
    documents: list[int]
    lines: list[int]

    def head(self, count: int | None) -> "TaggedSentences":
        """Gives the first `count` sentences; all of them for `None`.

        Args:
            count: how many, or None.

        Returns:
            As many of the same form.
        """
        return TaggedSentences(*(column[:count] for column in self))


def read_tagged(
    path: str | Path,
    *,
    word_column: int = 0,
    tag_column: int = -1,
    scheme: Literal["iob2", "iob1"] | None = "iob2",
    encoding: str = "utf-8",
) -> TaggedSentences:
    """Reads tagged sentences.

    Columns are divided by tabs in a line that holds a tab, else by runs of spaces. A line whose
    first column is -DOCSTART- begins a document and is no sentence. White space alone makes a line
    blank.

    Args:
        path: the file, whatever its ending; gzipped if that is `.gz`.
        word_column: the column of the words, from 0; from the end if negative.
        tag_column: the column of the tags, likewise.
        scheme: how the file writes entities. "iob2" refuses I-X that continues no X, "iob1" reads
            it as the beginning of an entity and gives it a B-X. (An IOB2 file that is read as IOB1
            comes out as it is.) `None` is for tags that mark no entities, such as parts of speech.
        encoding: of the file. Those of CoNLL-2002 and 2003 that are not English are "latin-1".

    Returns:
        `TaggedSentences` in the order of the file, tags in IOB2 or, for `scheme=None`, as written.

    Raises:
        ValueError: with the file and the line, if a row has other columns than the first, a column
            is missing, a tag is not one of the scheme, or the bytes are not in `encoding`; or if
            the file holds no sentence.
        FileNotFoundError: if there is no such file.
    """
    path = Path(path)
    if scheme not in ("iob2", "iob1", None):
        raise ValueError(f"scheme must be 'iob2', 'iob1' or None, got {scheme!r}.")
    sentences = TaggedSentences([], [], [], [])
    document = first = width = None
    previous = OUTSIDE  # the tag of the word before; a sentence begins as after O
    open_sentence = False
    for line, content in read_lines(path, encoding):
        content = content.rstrip(" \t\r\n")
        cells = (
            [cell.strip(" ") for cell in content.split("\t")]
            if "\t" in content
            else SPACES.split(content)
        )
        if not content or cells[0] == DOCUMENT_START:
            open_sentence, previous = False, OUTSIDE
            if content:
                # Sentences before the first such line are a document too.
                document = 0 if document is None and first is None else (document or 0) + 1
            continue
        if width is None:
            first, width = line, len(cells)
            for name, column in (("word_column", word_column), ("tag_column", tag_column)):
                if not -width <= column < width:
                    raise ValueError(
                        f"{path}, line {line}: no column {column} ({name}); the row has {width} "
                        f"columns {cells}."
                    )
        if len(cells) != width:
            raise ValueError(
                f"{path}, line {line}: {len(cells)} columns {cells}, but expected {width} as in "
                f"line {first}."
            )
        word, tag = cells[word_column], cells[tag_column]
        if not word or not tag:
            raise ValueError(f"{path}, line {line}: the row {cells} has an empty word or tag.")
        if scheme is not None:
            try:
                tag = _iob2(tag, previous, scheme)
            except ValueError as error:
                raise ValueError(f"{path}, line {line}, word {word!r}: {error}") from error
        if not open_sentence:
            sentences.words.append([])
            sentences.tags.append([])
            sentences.documents.append(document or 0)
            sentences.lines.append(line)
            open_sentence = True
        sentences.words[-1].append(word)
        sentences.tags[-1].append(tag)
        previous = tag
    if not sentences.words:
        raise ValueError(f"{path}: no sentences; the file is empty or holds only blank lines.")
    return sentences


def tag_names(*columns: Iterable[Sequence[str]]) -> list[str]:
    """Gives every tag once, to be numbered: "O" first if it is there, the others sorted.

    Args:
        *columns: tags of sentences, as `TaggedSentences.tags`; several for several files, so that
            a tag that only one of them has gets its number too.

    Returns:
        The tags.
    """
    found = {tag for column in columns for tags in column for tag in tags}
    return [OUTSIDE] * (OUTSIDE in found) + sorted(found - {OUTSIDE})


def _iob2(tag: str, previous: str, scheme: str) -> str:
    """A tag in IOB2, after the tag in IOB2 of the word before."""
    if tag == OUTSIDE:
        return tag
    place, _, kind = tag.partition("-")
    if place not in ("B", "I") or not kind:
        raise ValueError(
            f"tag {tag!r} is none of O, B-TYPE, I-TYPE; for tags of another kind pass scheme=None"
        )
    if place == "B" or (previous != OUTSIDE and previous[2:] == kind):
        return tag
    if scheme == "iob1":
        return f"B-{kind}"
    raise ValueError(
        f"tag {tag!r} after {previous!r} begins an entity without B-; if the file is in IOB1, as "
        "the English one of CoNLL-2003, pass scheme='iob1'"
    )
