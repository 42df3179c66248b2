"""SemEval-2010 Task 8: relations between two marked nominals (Hendrickx et al. 2010).

The files contain blocks of a numbered sentence in quotation marks, its relation and a comment, with
a tab after the number and a blank line after each block:

    1   "The <e1>key</e1> was put into a <e2>drawer</e2>."
    Entity-Destination(e1,e2)
    Comment:

`TEST_FILE.TXT` has only the numbered sentences; the relations are in an answer key, with one number
and relation per line.
"""

import itertools
import re
from pathlib import Path
from typing import NamedTuple

from keras_bert.data.rows import read_lines

DIRECTED = (
    "Cause-Effect",
    "Component-Whole",
    "Content-Container",
    "Entity-Destination",
    "Entity-Origin",
    "Instrument-Agency",
    "Member-Collection",
    "Message-Topic",
    "Product-Producer",
)
OTHER = "Other"
# The classes of the task's scorer: nine relations in two directions, and Other.
RELATIONS = (*(f"{name}({way})" for name in DIRECTED for way in ("e1,e2", "e2,e1")), OTHER)

NUMBERED = re.compile(r"([0-9]+)\t(.*)", re.DOTALL)
MARKER = re.compile(r"</?e[12]>")
MARKERS = ["<e1>", "</e1>", "<e2>", "</e2>"]


class Span(NamedTuple):
    """A substring by character positions; `end` is exclusive."""

    start: int
    end: int


class RelationExamples(NamedTuple):
    """Sentences with two marked entities, in columns.

    Attributes:
        ids: the number of each sentence in the task.
        texts: the sentences without their quotation marks and markers.
        entities: the spans of e1 and e2 in the text.
        marked_texts: the sentences with their markers <e1>, </e1>, <e2>, </e2>.
        labels: one of `RELATIONS` each; None for a file without relations.
        comments: the annotators' comments, mostly "".
        lines: the line of the file (from 1) of each sentence.
    """

    ids: list[int]
    texts: list[str]
    entities: list[tuple[Span, Span]]
    marked_texts: list[str]
    labels: list[str] | None
    comments: list[str]
    lines: list[int]

    def head(self, count: int | None) -> "RelationExamples":
        """Returns the first `count` examples; all for None.

        Args:
            count: number of examples, or None.

        Returns:
            An object of the same class.
        """
        return RelationExamples(*(column and column[:count] for column in self))


def read_relations(path: str | Path) -> RelationExamples:
    """Reads the train file, the test file, or the test file with relations.

    Args:
        path: a file such as `TRAIN_FILE.TXT`, `TEST_FILE.TXT` or `TEST_FILE_FULL.TXT`, plain or
            with `.gz` added.

    Returns:
        `RelationExamples` in the order of the file.

    Raises:
        ValueError: with file and line, if a line has another form than expected, a number is
            duplicated, the markers are not <e1>..</e1> and then <e2>..</e2> around text, a relation
            is unknown, or only some sentences have one; or if the file has no sentences.
        FileNotFoundError: if the file does not exist.
    """
    path = Path(path)
    examples = RelationExamples([], [], [], [], [], [], [])
    state = "blank"  # kind of the previous line
    for line, content in read_lines(path):
        content = content.rstrip("\r\n")
        where = f"{path}, line {line}"
        if not content.strip():
            state = "blank"
        elif numbered := NUMBERED.fullmatch(content):
            number, (marked, text, entities) = int(numbered[1]), _sentence(where, numbered[2])
            row = (number, text, entities, marked, None, "", line)
            for column, value in zip(examples, row, strict=True):
                column.append(value)
            state = "sentence"
        elif state == "sentence":
            examples.labels[-1] = _relation(where, content.strip(), RELATIONS)
            state = "relation"
        elif state == "relation" and content.startswith("Comment:"):
            examples.comments[-1] = content.removeprefix("Comment:").strip()
            state = "comment"
        else:
            expected = "'Comment: ...'" if state == "relation" else "a number, a tab and a sentence"
            raise ValueError(f"{where}: expected {expected}, got {content!r:.80}")
    ids, labels, lines = examples.ids, examples.labels, examples.lines
    first: dict[int, int] = {}
    problem = ""
    if not ids:
        problem = ": no sentences"
    elif twice := next((i for i, n in enumerate(ids) if first.setdefault(n, i) < i), 0):
        problem = f", line {lines[twice]}: a second sentence with the number {ids[twice]}"
    elif None in labels and any(labels):
        problem = f", line {lines[labels.index(None)]}: a sentence without a relation after it"
    if problem:
        raise ValueError(f"{path}{problem}")
    return examples if labels[0] is not None else examples._replace(labels=None)


def read_relation_key(path: str | Path) -> dict[int, str]:
    """Reads an answer key, or answers in its layout: a number, a tab and a relation per line.

    Args:
        path: the file, plain or with `.gz` added.

    Returns:
        Relations by number of the sentence: one of `RELATIONS`, or one without a direction if the
        key has none.

    Raises:
        ValueError: with file and line, if a line has another layout, a number is duplicated, or a
            relation is unknown; or if there are none.
        FileNotFoundError: if the file does not exist.
    """
    path = Path(path)
    key: dict[int, str] = {}
    for line, content in read_lines(path):
        where, content = f"{path}, line {line}", content.rstrip("\r\n")
        if not content.strip():
            continue
        numbered = NUMBERED.fullmatch(content)
        if numbered is None or int(numbered[1]) in key:
            problem = f"expected a number, a tab and a relation, got {content!r}"
            twice = f"a second relation for the number {numbered and numbered[1]}"
            raise ValueError(f"{where}: {twice if numbered else problem}")
        key[int(numbered[1])] = _relation(where, numbered[2].strip(), (*RELATIONS, *DIRECTED))
    if not key:
        raise ValueError(f"{path}: no relations")
    return key


def _sentence(where: str, quoted: str) -> tuple[str, str, tuple[Span, Span]]:
    """The sentence with and without markers, and the spans of its entities."""
    quoted = quoted.strip()
    marked = quoted[1:-1]
    found, pieces = MARKER.findall(marked), MARKER.split(marked)
    problem = ""
    if len(quoted) < 2 or quoted[0] != '"' or quoted[-1] != '"':
        problem = f"expected a sentence in quotation marks, got {quoted!r:.80}"
    elif found != MARKERS:
        problem = f"expected the markers {MARKERS}, each once, got {found}"
    elif not pieces[1].strip() or not pieces[3].strip():
        problem = f"an entity without text in {marked!r:.80}"
    if problem:
        raise ValueError(f"{where}: {problem}")
    ends = [0, *itertools.accumulate(map(len, pieces))]
    return marked, "".join(pieces), (Span(ends[1], ends[2]), Span(ends[3], ends[4]))


def _relation(where: str, name: str, known: tuple[str, ...]) -> str:
    if name not in known:
        raise ValueError(f"{where}: relation {name!r}: expected one of {list(known)}")
    return name
