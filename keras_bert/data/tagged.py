"""Tagged sentences: one word per line with its tag, a blank line between sentences.

The format of CoNLL-2003 (Tjong Kim Sang and De Meulder 2003, arXiv:cs/0306050), WNUT 2017
(Derczynski et al. 2017) and, with one character per line, MSRA (Levow 2006).

Two schemes encode the same entities with different tags (Tjong Kim Sang and Veenstra 1999,
arXiv:cs/9907006). In IOB2 every entity starts with B-X. In IOB1, which the English and German files
of CoNLL-2003 use, it starts with I-X, and with B-X only directly after another entity of type X.
Tags are returned as IOB2.

Annotation tools write texts with entities as character spans instead, one JSON object per text.
"""

import logging
import numbers
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from keras_bert.data.examples import are_examples, place_of
from keras_bert.data.rows import extension, name_lines, parse_json, read_lines, read_objects

logger = logging.getLogger("keras_bert")

OUTSIDE = "O"
SPAN_KEYS = ("entities", "spans", "label", "labels")  # spaCy's, Prodigy's, doccano's
DOCUMENT_START = "-DOCSTART-"
# Not str.split(): it drops ideographic and no-break spaces, which can be words of their own.
SPACES = re.compile(" +")


class TaggedSentences(NamedTuple):
    """Sentences with a tag for each word, in columns.

    Attributes:
        words: the words (in MSRA the characters) of each sentence.
        tags: the tags of each sentence.
        documents: the document, from 0, of each sentence; all 0 in files that do not mark
            documents.
        lines: the line of the file (from 1) where each sentence starts.
    """

    words: list[list[str]]
    tags: list[list[str]]
    documents: list[int]
    lines: list[int]

    def head(self, count: int | None) -> "TaggedSentences":
        """Returns the first `count` sentences; all for None.

        Args:
            count: number of sentences, or None.

        Returns:
            An object of the same class.
        """
        return TaggedSentences(*(column[:count] for column in self))


class AnnotatedTexts(NamedTuple):
    """Texts with entities as character spans, in columns.

    Attributes:
        texts: N texts.
        entities: for each text a list of (start, end, label), `end` exclusive. Characters are
            Unicode code points, as in Python.
        lines: the line of the file (from 1) of each text; None without a file.
    """

    texts: list[str]
    entities: list[list[tuple[int, int, str]]]
    lines: list[int] | None = None

    def name(self, row: int) -> str:
        """Names an example for messages.

        Args:
            row: its index.

        Returns:
            The index, and the line if known.
        """
        return place_of(row, self.lines)


def read_entities(path: str | Path) -> AnnotatedTexts:
    """Reads texts and entities from JSON, as written by annotation tools.

    A JSON object for each text, one per line or in a list: with `text`, and a list of spans in one
    of the keys `entities`, `spans`, `label` and `labels` (spaCy, Prodigy, doccano, Label Studio's
    JSON_MIN), or Label Studio's own form with `data` and `annotations`. A span is a list [start,
    end, label], or an object with `start` or `start_offset`, `end` or `end_offset`, and `label`, or
    `labels` with one name.

    Texts that were not accepted (`answer` of Prodigy is "reject" or "ignore"; all annotations of
    Label Studio are cancelled, or there are none) are left out, and the log has their number and
    lines. Label Studio counts UTF-16 code units; its spans are converted to characters. Where a
    span has a `text`, it is compared.

    Args:
        path: a `.json` file with a list of objects, or JSON lines under any other name; gzipped if
            the name ends with `.gz`.

    Returns:
        `AnnotatedTexts` in the order of the file, the spans of a text sorted. `lines` of a list
        are the numbers of its objects, from 1.

    Raises:
        ValueError: with file and line, if a key is missing, or a span is empty, exceeds its text,
            has another text or overlaps another; if annotators of a text disagree and none is
            marked as the ground truth; or if the file has no texts.
        FileNotFoundError: if the file does not exist.
    """
    found = AnnotatedTexts([], [], [])
    left_out = []
    for line, row in _annotated_objects(Path(path)):
        annotation = _annotation(row, f"{path}, line {line}")
        if annotation is None:
            left_out.append(line)
            continue
        found.texts.append(annotation[0])
        found.entities.append(annotation[1])
        found.lines.append(line)
    if left_out:
        texts = f"{len(left_out)} text{'s' if len(left_out) > 1 else ''}"
        logger.warning(
            "%s: %s left out, rejected or without annotation: %s", path, texts, name_lines(left_out)
        )
    if not found.texts:
        why = "the texts are all rejected" if left_out else "the file is empty or blank"
        raise ValueError(f"{path}: no texts; {why}")
    return found


def _annotated_objects(path: Path) -> Iterator[tuple[int, Any]]:
    """Yields (line, object); of a list in a `.json` file, (its place from 1, object)."""
    if extension(path) != ".json":
        yield from read_objects(path)
        return
    text = "".join(line for _, line in read_lines(path))
    try:
        rows = parse_json(text, path)
    except ValueError:  # JSON lines under this name
        yield from read_objects(path)
        return
    yield from enumerate(rows if isinstance(rows, list) else [rows], 1)


def annotated_texts(x: Any, y: Any = None) -> AnnotatedTexts | None:
    """Detects texts with character spans in the data passed as sentences and tags.

    Args:
        x: N texts; or N objects as in `read_entities`, or spaCy's (text, object), which contain
            their spans.
        y: N lists of spans.

    Returns:
        `AnnotatedTexts`, the spans of a text sorted; None for other data.

    Raises:
        TypeError: if a text is not a string.
        ValueError: if a span is invalid, or columns differ in length; the error names the example.
    """
    if not hasattr(x, "__len__") or not are_examples(x):
        return None  # ids, a dataset, or an iterator that cannot be read twice
    if isinstance(x, AnnotatedTexts):
        found = x
    elif _is_annotation(next(iter(x), None)):
        rows = [_annotation(row, f"row {i}") for i, row in enumerate(x)]
        if None in rows:
            raise ValueError(
                f"row {rows.index(None)} was rejected, or has no annotation: expected accepted "
                "ones; `read_entities` leaves others out"
            )
        found = AnnotatedTexts(*zip(*rows, strict=True))
    elif _are_spans(y):
        found, y = AnnotatedTexts(list(x), list(y)), None
    else:
        return None
    if y is not None or len(found.texts) != len(found.entities):
        counts = f"got {len(found.texts)} texts and spans of {len(found.entities)}"
        given = "y: expected None for texts with entities, which contain their labels"
        raise ValueError(f"{counts}: expected as many" if y is None else given)
    rows = enumerate(zip(found.texts, found.entities, strict=True))
    checked = [_check_spans(text, spans, found.name(i)) for i, (text, spans) in rows]
    return AnnotatedTexts(list(found.texts), checked, found.lines)


def _is_annotation(row: Any) -> bool:
    """Whether a value is an object of text and spans, or spaCy's (text, object), and not ids."""
    return (isinstance(row, dict) and "token_ids" not in row) or (
        isinstance(row, tuple | list) and [*map(type, row)] == [str, dict]
    )


def _are_spans(y: Any) -> bool:
    """Whether labels are lists of spans, not of tags; True if all are empty."""
    if y is None or hasattr(y, "dtype") and y.dtype.kind in "iu":
        return False
    rows = [row for row in y if hasattr(row, "__len__") and not isinstance(row, str | bytes)]
    items = [item for row in rows for item in row]
    if not items:
        return len(rows) == len(y)
    return any(isinstance(item, tuple | list | dict) for item in items)


def _annotation(row: Any, where: str) -> tuple[str, list[tuple[int, int, str]]] | None:
    """The text and the validated spans of an object; None if it was not accepted."""
    if not _is_annotation(row):
        raise ValueError(f"{where} is {row!r:.80}: expected a text with entities, like the first")
    row = row if isinstance(row, dict) else {"text": row[0]} | row[1]
    if isinstance(row.get("data"), dict) and isinstance(row.get("annotations"), list):
        row = _label_studio(row, where)
    if row.get("answer", "accept") != "accept":
        return None
    keys = [key for key in SPAN_KEYS if isinstance(row.get(key), list | tuple)]
    if not keys and ("answer" in row or "annotation_id" in row) and "text" in row:
        return row["text"], []  # Prodigy and JSON_MIN leave the key out where there are no spans
    if "text" not in row or len(keys) != 1:
        hint = ""
        if "annotations" in row:  # doccano's first form of export
            hint = "; `annotations` have numbers for labels: export with their names"
        raise ValueError(
            f"{where} has the keys {[*row]}: expected text and one of {', '.join(SPAN_KEYS)}, a "
            f"list of spans{hint}"
        )
    return row["text"], _check_spans(row["text"], row[keys[0]], where)


def _label_studio(row: dict, where: str) -> dict:
    """A task of Label Studio with its text and spans; with `answer` "ignore" without annotation.

    The form: https://labelstud.io/guide/task_format
    """
    kept = [
        one for one in row["annotations"] if isinstance(one, dict) and not one.get("was_cancelled")
    ]
    truth = [one for one in kept if one.get("ground_truth")]
    if not kept:
        return {"answer": "ignore"}
    regions = [_regions(one.get("result"), where) for one in (truth or kept)]
    name, spans = regions[0][0], [dict(span) for span in regions[0][1]]
    texts = {key: value for key, value in row["data"].items() if isinstance(value, str)}
    problem = ""
    if any(other != regions[0][1] for _, other in regions):
        problem = f"{len(regions)} annotations that differ: expected one, or one that is marked as "
        problem += "the ground truth"
    # A result names the tag of the interface that shows its text, often "text", not its column.
    elif name not in texts and "text" not in texts and len(texts) != 1:
        problem = f"data has {[*row['data']]}: expected one string, or `text`"
    if problem:
        raise ValueError(f"{where}: {problem}")
    text = texts.get("text", texts.get(name, next(iter(texts.values()))))
    return {"text": text, "spans": spans}


def _regions(result: Any, where: str) -> tuple[str | None, list[list[tuple[str, Any]]]]:
    """The name of the labelled text, and its spans as sorted lists of keys and values."""
    spans, names = [], set()
    for region in result if isinstance(result, list) else []:
        kind = region.get("type") if isinstance(region, dict) else None
        if kind in ("labels", "hypertextlabels"):
            wanted = ("end", "labels", "start", "text")
            name, value = region.get("to_name"), region.get("value")
            plain = kind == "labels" and isinstance(value, dict)
            if not plain or not isinstance(name, str | None):
                raise ValueError(
                    f"{where}: the span {region!r:.80}: expected an object in `value`, of plain "
                    "text and not HTML"
                )
            names.add(name)
            spans.append([(key, value[key]) for key in wanted if value.get(key) is not None])
    if len(names) > 1:
        raise ValueError(
            f"{where}: spans of several texts, {sorted(map(str, names))}: expected one"
        )
    return next(iter(names), None), sorted(spans, key=repr)


def kinds_of(spans: Any) -> list[str]:
    """The labels of the spans of a text, as in `read_entities`, as far as they have any."""
    labels = [
        span.get("label") if isinstance(span, dict) else span[-1]
        for span in (spans if isinstance(spans, list) else [])
        if isinstance(span, dict | list) and span
    ]
    return [label for label in labels if isinstance(label, str)]


def _check_spans(text: Any, spans: Any, where: str) -> list[tuple[int, int, str]]:
    """Validates and sorts the spans of a text."""
    if not isinstance(text, str):
        raise TypeError(
            f"the text of {where} of type {type(text).__name__}: expected a str, because spans "
            "count characters"
        )
    found = []
    for span in spans:
        parts = span._asdict() if hasattr(span, "_asdict") else span
        if isinstance(parts, dict):
            parts = _of_object(text, parts, f"{where}: the span {span!r:.80}")
        right = isinstance(parts, list | tuple) and len(parts) == 3
        if right:
            *ends, label = parts
            right = all(isinstance(p, int | np.integer) and not isinstance(p, bool) for p in ends)
            right = right and isinstance(label, str) and label and 0 <= ends[0] < ends[1]
        if not right or ends[1] > len(text):
            raise ValueError(
                f"{where}: the span {span!r:.80}: expected (start, end, label), two ints with "
                f"0 <= start < end <= {len(text)}, the characters, and a name"
            )
        found.append((*map(int, ends), label))
    found.sort()
    for before, after in zip(found, found[1:], strict=False):
        if after[0] < before[1]:
            raise ValueError(
                f"{where}: the spans {before} and {after} overlap: expected one label for each word"
            )
    return found


def _of_object(text: str, span: dict, named: str) -> tuple:
    """(start, end, label) of a span that is an object, in characters."""
    start, end = (span.get(k, span.get(f"{k}_offset")) for k in ("start", "end"))
    label, said = span.get("label"), span.get("text")
    counts_utf16 = "label" not in span and isinstance(span.get("labels"), list)  # Label Studio
    if counts_utf16:
        if len(span["labels"]) != 1:
            raise ValueError(f"{named}: expected one label")
        label = span["labels"][0]
    if not all(isinstance(n, numbers.Integral) and not isinstance(n, bool) for n in (start, end)):
        return start, end, label
    readings = [(start, end)]
    if not text[: max(end, 0)].isascii():
        converted = _from_utf16(text, start, end)
        readings = [converted, *readings] if counts_utf16 else [*readings, converted]
    if not isinstance(said, str):
        return *readings[0], label
    for start, end in readings:
        if 0 <= start <= end and _without_spaces(text[start:end]) == _without_spaces(said):
            return start, end, label
    begin, stop = readings[0]
    raise ValueError(
        f"{named}: its text is {said!r:.80}, and the characters {text[begin:stop]!r:.80}"
    )


def _from_utf16(text: str, *offsets: int) -> tuple[int, ...]:
    """Offsets in UTF-16 code units, as JavaScript counts, in characters."""
    units = np.cumsum([0, *(1 + (ord(character) > 0xFFFF) for character in text)])
    return tuple(int(np.searchsorted(units, offset)) for offset in offsets)


def _without_spaces(text: str) -> str:
    """A text as it can be compared: tools write line ends as spaces, or escaped."""
    return re.sub(r"\\n|\s+", "", text)


def read_tagged(
    path: str | Path,
    *,
    word_column: int = 0,
    tag_column: int = -1,
    scheme: Literal["iob2", "iob1"] | None = "iob2",
    encoding: str = "utf-8",
) -> TaggedSentences:
    """Reads tagged sentences.

    Columns are separated by tabs in a line with a tab, otherwise by spaces. A line whose first
    column is -DOCSTART- starts a document and is not a sentence. A line of white space is blank.

    Args:
        path: the file, with any extension; gzipped if it is `.gz`.
        word_column: the column of the words, from 0; negative counts from the end.
        tag_column: the column of the tags, counted in the same way.
        scheme: the tagging scheme of the file. "iob2" rejects an I-X that does not continue an X,
            "iob1" reads it as the start of an entity and returns B-X. (An IOB2 file read as IOB1 is
            unchanged.) None is for tags other than entities, such as parts of speech.
        encoding: encoding of the file. The files of CoNLL-2002 and 2003 that are not English are
            "latin-1".

    Returns:
        `TaggedSentences` in the order of the file, tags in IOB2 or, for `scheme=None`, as written.

    Raises:
        ValueError: with file and line, if the number of columns differs from the first line, a
            column is missing, a tag is not in the scheme, or the bytes are not in `encoding`; or if
            the file has no sentences.
        FileNotFoundError: if the file does not exist.
    """
    path = Path(path)
    if scheme not in ("iob2", "iob1", None):
        raise ValueError(f"scheme={scheme!r}: expected 'iob2', 'iob1' or None")
    sentences = TaggedSentences([], [], [], [])
    document = first = width = None
    previous = OUTSIDE  # the tag of the previous word; a sentence starts as after O
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
                # Sentences before the first such line are also a document.
                document = 0 if document is None and first is None else (document or 0) + 1
            continue
        problem = ""
        if width is None:
            first, width = line, len(cells)
            for name, column in (("word_column", word_column), ("tag_column", tag_column)):
                if not -width <= column < width:
                    problem = f"no column {column} ({name}); the line has {width} columns {cells}"
        if len(cells) != width:
            problem = f"{len(cells)} columns {cells}, but expected {width} as in line {first}"
        elif not problem and not (cells[word_column] and cells[tag_column]):
            problem = f"empty word or tag in {cells}"
        if problem:
            raise ValueError(f"{path}, line {line}: {problem}")
        word, tag = cells[word_column], cells[tag_column]
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
        raise ValueError(f"{path}: no sentences; the file is empty or has only blank lines")
    return sentences


def tag_names(*columns: Iterable[Sequence[str]]) -> list[str]:
    """Returns the distinct tags, as label names: "O" first if present, then the others sorted.

    Args:
        *columns: tags of sentences, as in `TaggedSentences.tags`; pass those of all files to
            include tags that occur in only one of them.

    Returns:
        The tags.
    """
    found = {tag for column in columns for tags in column for tag in tags}
    return [OUTSIDE] * (OUTSIDE in found) + sorted(found - {OUTSIDE})


def _iob2(tag: str, previous: str, scheme: str) -> str:
    """Converts a tag to IOB2, given the previous word's tag in IOB2."""
    if tag == OUTSIDE:
        return tag
    place, _, kind = tag.partition("-")
    if place not in ("B", "I") or not kind:
        raise ValueError(
            f"tag {tag!r}: expected O, B-TYPE or I-TYPE; for other tags pass scheme=None"
        )
    if place == "B" or (previous != OUTSIDE and previous[2:] == kind):
        return tag
    if scheme == "iob1":
        return f"B-{kind}"
    raise ValueError(
        f"tag {tag!r} after {previous!r} starts an entity without B-; if the file is in IOB1, like "
        "CoNLL-2003's English one, pass scheme='iob1'"
    )
