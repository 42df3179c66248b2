"""The kinds of tasks that the command trains: how each reads files, and which scores count."""

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from keras_bert.data.choices import read_choices
from keras_bert.data.examples import Examples
from keras_bert.data.relations import read_relations
from keras_bert.data.rows import column_names, name_lines, read_objects
from keras_bert.data.squad import read_squad
from keras_bert.data.tables import NUMBER, read_table
from keras_bert.data.tagged import AnnotatedTexts, read_entities, read_tagged, tag_names
from keras_bert.serving.bulk_rows import RowReader, find_files
from keras_bert_cli.bad_rows import WrongRowsError, read_without_bad_rows
from keras_bert_cli.columns import Columns, find_columns
from keras_bert_cli.terminal import rows as count_of

IOB = re.compile(r"O|[BI]-.+")
WORDS, TAGS = ("words", "tokens"), ("tags", "ner_tags", "pos_tags", "labels")
SMALL = 1000  # rows below which batches are smaller
STRAY = 0.05  # tags of another form, up to which a file is one of entities with mistakes
ARTICLES = 20  # from which a share of them is close to the same share of the questions
NAMED = 5  # questions that a note names
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Source:
    """A file to read, with what its user says of it.

    Attributes:
        path: the file.
        texts: names of the columns with texts; found by their names and contents if empty.
        labels: names of the columns with labels, likewise.
        delimiter: separator of the columns, if it does not follow from the file name.
        separator: separator between several labels of a text.
        skip_bad_rows: leaves rows out that cannot be read or lack a text or label.
        part: whether it holds only some of the rows, of which rules on all rows do not hold.
        scale: divides scores of how alike two texts are; by default it follows from the file.
        renamed: labels to read as others, {as written: its name}.
    """

    path: Path
    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    delimiter: str | None = None
    separator: str = ","
    skip_bad_rows: bool = False
    part: bool = False
    scale: float | None = None
    renamed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Examples of one file.

    Attributes:
        data: the examples; without labels where the examples hold them.
        columns: the columns read, or None for a format of its own.
        notes: sentences on what was guessed and left out.
        scale: by which scores were divided, or None.
    """

    data: Examples
    columns: Columns | None = None
    notes: tuple[str, ...] = ()
    scale: float | None = None

    def __len__(self) -> int:
        return len(self.data)

    def take(self, rows: Sequence[int]) -> "Table":
        """The examples of these indices."""
        part = [None if c is None else [c[i] for i in rows] for c in self._all()]
        return replace(self, data=Examples(tuple(part[:-2]), *part[-2:]))

    def _all(self) -> list:
        return [*self.data.columns, self.data.labels, self.data.lines]

    @property
    def x(self):
        """The examples as `fit` takes them."""
        columns = self.data.columns
        return columns[0] if len(columns) == 1 else columns


class Kind:
    """A kind of task. Subclasses say how its files are read.

    Attributes:
        task: name of the class in `keras_bert`.
        monitor: the score that the best epoch is chosen by.
        mode: "max" or "min".
        renames: whether labels can be read as others.
        updates: least number of updates that epochs are chosen for.
    """

    task = "BertClassifier"
    monitor, mode = "accuracy", "max"
    renames = False
    updates = 300  # fewer leave a new head untrained

    def batch_size(self, rows: int) -> int:
        """The batch size for so many rows."""
        return 16 if rows < SMALL else 32

    def read(self, source: Source, labelled: bool = True) -> Table:
        """Reads a file, with `skip_bad_rows` without the rows that are wrong.

        Args:
            source: the file.
            labelled: whether labels are expected.

        Returns:
            The examples; their notes name what is left out.

        Raises:
            ValueError: with file and line, if it cannot be read; or if labels of this kind cannot
                be renamed.
        """
        if source.renamed and not self.renames:
            raise ValueError("--rename_label: expected a task with one or several labels per text")
        if not source.skip_bad_rows:
            return self.read_strictly(source, labelled)

        def read(path: Path) -> Table:
            return self.read_strictly(replace(source, path=path), labelled)

        def check(path: Path) -> None:
            self.read_strictly(replace(pinned, path=path, part=True), labelled)

        pinned = self.pinned(source, labelled)
        table, bad = read_without_bad_rows(
            read, check if pinned else None, source.path, self.in_blocks(source.path)
        )
        if not bad:
            return table
        left_out = "that is wrong is" if len(bad) == 1 else "that are wrong are"
        lines = name_lines([line for line, _ in bad])
        note = f"{count_of(len(bad))} {left_out} left out: {lines}; the first: {bad[0][1]}"
        return replace(table, notes=(*table.notes, note))

    def read_strictly(self, source: Source, labelled: bool = True) -> Table:
        """As `read`; only what a format knows to leave out by itself is left out."""
        raise NotImplementedError

    def in_blocks(self, path: Path) -> bool:
        """Whether the examples of a file are blocks of lines between blank ones."""
        return False

    def pinned(self, source: Source, labelled: bool) -> Source | None:
        """A source to read some rows of by themselves as among all rows; None if none can be."""
        return source

    def signature(self, columns: Columns | None) -> tuple[str, dict[str, str]]:
        """The signature that answers files with these columns, and its inputs' columns."""
        return "serving_default", {}

    def settings(self, *tables: Table) -> dict[str, Any]:
        """Arguments of `from_preset` that follow from the examples."""
        return {}

    def facts(self, table: Table) -> dict[str, Any]:
        """Facts about the labels that metrics.json holds for the page."""
        return {}

    def texts(self, table: Table) -> list[tuple[str, ...]]:
        """The texts of each example, which share a row of the model."""
        return list(zip(*table.data.columns, strict=True))

    def strata(self, table: Table) -> list:
        """A label of each example to hold out rows by."""
        return [0] * len(table)

    def groups(self, table: Table) -> list:
        """A value of each example; those with equal ones are held out together or not at all."""
        return [tuple(" ".join(t.split()).casefold() for t in row) for row in self.texts(table)]

    def label_counts(self, table: Table) -> list[tuple[str, int]]:
        """How often each label occurs, the most frequent first."""
        return []


class Classify(Kind):
    """One label a text, or a pair of texts."""

    problem = "single_label"
    label_kind = "class"
    renames = True
    pairs: bool | None = None

    def pinned(self, source, labelled):
        try:
            columns = self._columns(source, labelled)
        except ValueError:
            return None
        return replace(source, texts=columns.texts, labels=columns.labels)

    def _columns(self, source: Source, labelled: bool) -> Columns:
        return find_columns(
            source.path,
            source.texts,
            source.labels,
            pairs=self.pairs if not source.texts else None,
            label_kind=self.label_kind if labelled or source.labels else None,
            delimiter=source.delimiter,
        )

    def read_strictly(self, source, labelled=True):
        columns = self._columns(source, labelled)
        if len(columns.texts) > 2 or (self.pairs and len(columns.texts) != 2):
            expected = "two columns" if self.pairs else "one or two columns"
            raise ValueError(f"--text={','.join(columns.texts)}: expected {expected}")
        several = self.label_kind == "several"
        if len(columns.labels) > 1 and not several:
            raise ValueError(f"--label={','.join(columns.labels)}: expected one column")
        found = read_table(
            source.path,
            columns.texts,
            columns.labels if len(columns.labels) > 1 else next(iter(columns.labels), None),
            delimiter=source.delimiter,
            label_kind="several" if several else "class",
            label_separator=source.separator,
            skip_broken_rows=source.skip_bad_rows,
        )
        texts = found.texts if isinstance(found.texts, tuple) else (found.texts,)
        labels = found.labels
        if several and len(columns.labels) > 1:
            labels = [
                [name for name, mark in zip(columns.labels, row, strict=True) if mark]
                for row in labels
            ]
        table = Table(Examples(texts, labels, found.lines), columns, columns.guesses)
        return self._numbers(self._whole(table, source), source)

    def _whole(self, table: Table, source: Source) -> Table:
        """The rows with text and label."""
        labels = table.data.labels
        if labels is not None and self.label_kind != "several":
            labels = [label.strip() for label in labels]
            labels = [source.renamed.get(label, label) for label in labels]
        elif labels is not None:
            labels = [
                list(dict.fromkeys(source.renamed.get(name, name) for name in row))
                for row in labels
            ]
        table = replace(table, data=replace(table.data, labels=labels))
        empty = [
            i for i, row in enumerate(zip(*table.data.columns, strict=True))
            if not all(text.strip() for text in row)
        ]  # fmt: skip
        table = _without(table, empty, "no text", source)
        if labels is None or self.label_kind == "several":
            return table
        empty = [i for i, label in enumerate(table.data.labels) if not label]
        table = _without(table, empty, "no label", source)
        notes = _spellings(table.data.labels) if self.renames else []
        return replace(table, notes=(*table.notes, *notes))

    def _numbers(self, table: Table, source: Source) -> Table:
        return table

    def signature(self, columns):
        if len(columns.texts) == 1:
            return "serving_default", {"text": columns.texts[0]}
        return "pair", dict(zip(("text", "text_pair"), columns.texts, strict=True))

    def facts(self, table):
        return {"pairs": True} if len(table.data.columns) > 1 else {}

    def settings(self, *tables):
        names = {label for table in tables for row in table.data.labels for label in self._of(row)}
        return {"problem": self.problem, "labels": sorted(names, key=_in_order)}

    def _of(self, row) -> list[str]:
        return [row]

    def strata(self, table):
        return table.data.labels

    def label_counts(self, table):
        return Counter(n for row in table.data.labels for n in self._of(row)).most_common()


class MultiLabel(Classify):
    """Any number of labels a text."""

    problem = "multi_label"
    label_kind = "several"
    monitor = "micro_f1"

    def _of(self, row):
        return row

    def strata(self, table):
        counts = dict(self.label_counts(table))
        return [min(row, key=counts.get, default="") for row in table.data.labels]


class Regress(Classify):
    """A number for a text, or a pair of texts."""

    problem = "regression"
    label_kind = "number"
    renames = False
    monitor = "spearman"

    def _numbers(self, table, source):
        if table.data.labels is None:
            return table
        wrong = [i for i, n in enumerate(table.data.labels) if NUMBER.fullmatch(n) is None]
        table = _without(table, wrong, "a label that is not a number", source)
        numbers = [float(label) for label in table.data.labels]
        return replace(table, data=replace(table.data, labels=numbers))

    def settings(self, *tables):
        return {"problem": self.problem, "num_classes": 1}

    def facts(self, table):
        values = table.data.labels
        return super().facts(table) | {"label_range": [min(values), max(values)]}

    def strata(self, table):
        ordered = sorted(table.data.labels)
        tenths = [ordered[len(ordered) * i // 10] for i in range(1, 10)]
        return [sum(label >= bound for bound in tenths) for label in table.data.labels]

    def label_counts(self, table):
        values = table.data.labels
        return [(f"{min(values):g} to {max(values):g}", len(values))]


class Embed(Regress):
    """Pairs of texts that are alike, or pairs with a score of how alike they are."""

    task = "BertTextEmbedder"
    label_kind = "optional"
    pairs = True

    def _numbers(self, table, source):
        if not table.columns.labels:  # every pair is alike
            return replace(table, data=replace(table.data, labels=None))
        table = super()._numbers(table, source)
        values = table.data.labels
        low, high = min(values), max(values)
        scale = source.scale
        if scale is None:
            scale = 1.0 if -1 <= low and high <= 1 else 5.0 if high <= 5 else high
        if (low < 0 and scale != 1) or not -1 <= low / scale <= high / scale <= 1:
            expected = "-1 to 1, or 0 to any" if source.scale is None else f"0 to {scale:g}"
            raise ValueError(f"{source.path}: scores from {low:g} to {high:g}: expected {expected}")
        table = replace(table, scale=scale)
        if scale != 1:
            table = replace(
                table,
                data=replace(table.data, labels=[value / scale for value in values]),
                notes=(*table.notes, f"scores are divided by {scale:g}, to be cosines"),
            )
        return table

    def facts(self, table):
        return {}

    def settings(self, *tables):
        return {"loss": "contrastive" if tables[0].data.labels is None else "cosine"}

    def signature(self, columns):
        return "similarity", dict(zip(("text", "text_pair"), columns.texts, strict=True))

    def strata(self, table):
        return [0] * len(table) if table.data.labels is None else super().strata(table)

    def label_counts(self, table):
        return [] if table.data.labels is None else super().label_counts(table)


class Tag(Kind):
    """A tag for each word: columns of words and tags, or texts with entities in JSON lines."""

    task = "BertTokenClassifier"
    monitor = "f1"
    updates = 1500  # entities are rare among words

    def read_strictly(self, source, labelled=True):
        if _is_objects(source.path):
            return self._objects(source)
        plain = read_tagged(source.path, scheme=None)
        notes: tuple[str, ...] = ()
        found = plain
        others = [
            (line, tag)
            for line, tags in zip(plain.lines, plain.tags, strict=True)
            for tag in tags
            if not IOB.fullmatch(tag)
        ]
        if not source.part and others and len(others) < STRAY * sum(map(len, plain.tags)):
            line, tag = others[0]
            raise WrongRowsError(
                f"{source.path}, line {line}: tag {tag!r} in this sentence: expected O, B-TYPE or "
                "I-TYPE, as nearly all tags of the file are",
                sorted({line for line, _ in others}),
            )
        if not others:
            try:
                found = read_tagged(source.path, scheme="iob2")
            except ValueError:
                found = read_tagged(source.path, scheme="iob1")
                notes = ("the tags are IOB1: an entity begins with I-",)
        return Table(Examples((found.words,), found.tags, found.lines), None, notes)

    def in_blocks(self, path):
        return not _is_objects(path)

    def _objects(self, source: Source) -> Table:
        keys = [] if _ending(source.path) == ".json" else column_names(source.path)
        words, tags = (next((k for k in names if k in keys), None) for names in (WORDS, TAGS))
        if words is None or "text" in keys:
            found = read_entities(source.path)
            return Table(Examples((found.texts,), found.entities, found.lines))
        lines, columns = [], ([], [])
        for line, row in read_objects(source.path, columns=(words, tags)):
            pair = [row.get(words), row.get(tags)]
            if not all(isinstance(v, list) and all(isinstance(s, str) for s in v) for v in pair):
                raise ValueError(
                    f"{source.path}, line {line}: expected lists of strings in {words!r} and in "
                    f"one of {', '.join(TAGS)}"
                )
            if len(pair[0]) != len(pair[1]):
                raise ValueError(
                    f"{source.path}, line {line}: {len(pair[0])} words and {len(pair[1])} tags: "
                    "expected as many"
                )
            lines.append(line)
            for column, value in zip(columns, pair, strict=True):
                column.append(value)
        if not lines:
            raise ValueError(f"{source.path}: no sentences; the file is empty")
        return Table(Examples((columns[0],), columns[1], lines))

    def settings(self, *tables):
        if _has_spans(tables[0]):
            kinds = sorted({s[2] for t in tables for spans in t.data.labels for s in spans})
            return {"labels": ["O", *(f"{p}-{kind}" for kind in kinds for p in "BI")]}
        return {"labels": tag_names(*(table.data.labels for table in tables))}

    def texts(self, table):
        rows = table.data.columns[0]
        return [(row if isinstance(row, str) else " ".join(row),) for row in rows]

    def strata(self, table):
        return [tuple(sorted(set(kinds)))[:1] for kinds in self._kinds(table)]

    def label_counts(self, table):
        return Counter(kind for kinds in self._kinds(table) for kind in kinds).most_common()

    @staticmethod
    def _kinds(table: Table) -> list[list[str]]:
        """The kinds of the entities of each example, or its tags if they mark none."""
        if _has_spans(table):
            return [[span[2] for span in spans] for spans in table.data.labels]
        rows = table.data.labels
        if any(tag.startswith("B-") for tags in rows for tag in tags):
            return [[tag[2:] for tag in tags if tag.startswith("B-")] for tags in rows]
        return rows


class Answer(Kind):
    """Questions answered by a span of a text: files in SQuAD's format."""

    task = "BertQuestionAnswerer"
    monitor = "f1"
    # Ram et al. 2021, arXiv:2101.00438, train on 16 to 1,024 questions for 10 epochs in batches of
    # 12, which are 850 updates at the most.
    updates = 1000

    def batch_size(self, rows):
        return 8 if rows < 3000 else 16 if rows < 6000 else 32

    def pinned(self, source, labelled):
        return None  # a file is one document of JSON

    def read_strictly(self, source, labelled=True):
        if not source.skip_bad_rows:
            return Table(Examples((read_squad(source.path),)))
        found = read_squad(source.path, "skip")
        kept = {example.id for example in found}
        lost = [e.id for e in read_squad(source.path, "repair") if e.id not in kept]
        if not lost:
            return Table(Examples((found,)))
        more = f" and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
        questions = "1 question, whose" if len(lost) == 1 else f"{len(lost):,} questions, whose"
        note = (
            f"{questions} answers are not at their places, left out: "
            f"{', '.join(lost[:NAMED])}{more}"
        )
        return Table(Examples((found,)), None, (note,))

    def texts(self, table):
        return [(example.question, example.context) for example in table.data.columns[0]]

    def label_counts(self, table):
        answered = sum(bool(example.answers) for example in table.data.columns[0])
        counts = [("with an answer", answered), ("without one", len(table) - answered)]
        return [(name, count) for name, count in counts if count]

    def strata(self, table):
        return [bool(example.answers) for example in table.data.columns[0]]

    def groups(self, table):
        """Articles, if there are enough of them; else paragraphs."""
        examples = table.data.columns[0]
        titles = [example.title for example in examples]
        return titles if len(set(titles)) >= ARTICLES else [example.context for example in examples]


class Choose(Kind):
    """A context and its choices: `context`, `choices` or choice0 and so on, `label`; or SWAG."""

    task = "BertMultipleChoice"

    def read_strictly(self, source, labelled=True):
        names = column_names(source.path, source.delimiter)
        if {"sent1", "sent2", "ending0"} <= set(names):
            found = read_choices(source.path)
            return Table(Examples((found.contexts, found.choices), found.labels, found.lines))
        label = next(iter(source.labels), "label")
        inputs = {"context": [None], "choices": [None, None]} | (
            {label: [None]} if labelled else {}
        )
        columns = {"context": source.texts[0]} if source.texts else {}
        rows = _rows(source.path, inputs, columns)
        contexts, choices = ([row.values[name] for row in rows] for name in ("context", "choices"))
        labels = None
        if labelled:
            labels = [
                _choice(row.values[label], row.values["choices"], f"{source.path}, line {row.line}")
                for row in rows
            ]
        return Table(Examples((contexts, choices), labels, [row.line for row in rows]))

    def texts(self, table):
        return [
            (context, max(choices, key=len))
            for context, choices in zip(*table.data.columns, strict=True)
        ]

    def label_counts(self, table):
        return Counter(f"choice {label}" for label in table.data.labels).most_common()


class Relate(Kind):
    """The relation of two entities: SemEval's files, or objects of text, spans and label."""

    task = "BertRelationClassifier"
    monitor = "macro_f1"

    def in_blocks(self, path):
        return path.name.lower().removesuffix(".gz").endswith(".txt")

    def read_strictly(self, source, labelled=True):
        name = source.path.name.lower().removesuffix(".gz")
        if name.endswith(".txt"):
            found = read_relations(source.path)
            if labelled and found.labels is None:
                raise ValueError(f"{source.path}: no relations; expected one after each sentence")
            spans = [[list(span) for span in pair] for pair in found.entities]
            return Table(Examples((found.texts, spans), found.labels, found.lines))
        label = next(iter(source.labels), "label")
        inputs = {"text": [None], "spans": [None, 2, 2]} | ({label: [None]} if labelled else {})
        columns = {"text": source.texts[0]} if source.texts else {}
        rows = _rows(source.path, inputs, columns, numbers=("spans",))
        parts = [[row.values[name] for row in rows] for name in inputs]
        return Table(
            Examples(tuple(parts[:2]), parts[2] if labelled else None, [r.line for r in rows])
        )

    def settings(self, *tables):
        names = {label for table in tables for label in table.data.labels}
        return {"labels": sorted(names, key=_in_order)}

    def texts(self, table):
        return [(text,) for text in table.data.columns[0]]

    def strata(self, table):
        return table.data.labels

    def label_counts(self, table):
        return Counter(table.data.labels).most_common()


class FillIn(Kind):
    """Masked words, learnt from texts alone: one a line, or a column of a table."""

    task = "BertMaskedLM"
    monitor, mode = "loss", "min"

    def pinned(self, source, labelled):
        if source.texts or source.path.name.removesuffix(".gz").endswith(".txt"):
            return source
        try:
            found = find_columns(source.path, label_kind=None, delimiter=source.delimiter)
        except ValueError:
            return None
        return replace(source, texts=found.texts)

    def read_strictly(self, source, labelled=True):
        columns = None
        text = next(iter(source.texts), None)
        if not source.path.name.removesuffix(".gz").endswith(".txt"):
            columns = find_columns(
                source.path, source.texts, label_kind=None, delimiter=source.delimiter
            )
            text = columns.texts[0]
        rows = _rows(source.path, {"text": [None]}, {"text": text} if text else {})
        kept = [row for row in rows if row.values["text"].strip()]
        notes = columns.guesses if columns else ()
        if len(kept) < len(rows):
            notes += (f"{len(rows) - len(kept)} blank lines are left out",)
        if not kept:
            raise ValueError(f"{source.path}: no texts")
        return Table(
            Examples(([row.values["text"] for row in kept],), None, [row.line for row in kept]),
            columns,
            notes,
        )


KINDS: dict[str, Kind] = {
    "classify": Classify(),
    "multi-label": MultiLabel(),
    "regress": Regress(),
    "tag": Tag(),
    "answer": Answer(),
    "choose": Choose(),
    "relate": Relate(),
    "embed": Embed(),
    "mlm": FillIn(),
}


def _rows(path: Path, inputs: dict[str, list], columns: dict[str, str], numbers=()) -> list:
    """Rows of a file, read as `keras-bert predict` reads them."""
    shapes = {
        name: {"dtype": "int32" if name in numbers else "string", "shape": shape}
        for name, shape in inputs.items()
    }
    rows = list(RowReader(find_files(path), shapes, columns))
    if not rows:
        raise ValueError(f"{path}: no examples; the file is empty or has only a header")
    return rows


def _without(table: Table, rows: list[int], problem: str, source: Source) -> Table:
    """Leaves rows out, and says so; or raises, unless that was asked for."""
    if not rows:
        return table
    lines = name_lines([table.data.lines[i] for i in rows])
    if not source.skip_bad_rows:
        raise ValueError(
            f"{source.path}, {lines}: {problem} in {len(rows)} of {count_of(len(table))}: mend, or "
            "leave out with --skip_bad_rows"
        )
    gone = set(rows)
    table = table.take([i for i in range(len(table)) if i not in gone])
    if not len(table):
        raise ValueError(f"{source.path}: {problem} in any row")
    left_out = "is left out" if len(rows) == 1 else "are left out"
    note = f"{count_of(len(rows))} with {problem} {left_out}: {lines}"
    return replace(table, notes=(*table.notes, note))


def _spellings(labels: list[str]) -> list[str]:
    """A note for each label that occurs in several spellings: upper and lower case, spaces."""
    found: dict[str, Counter] = {}
    for label, count in Counter(labels).items():
        found.setdefault(" ".join(label.split()).casefold(), Counter())[label] = count
    notes = []
    for spellings in found.values():
        if len(spellings) > 1:
            (best, _), *others = spellings.most_common()
            flags = " ".join(f"--rename_label {shlex.quote(f'{o}={best}')}" for o, _ in others)
            shown = ", ".join(f"{name!r}" for name in spellings)
            notes.append(f"{shown} are different labels; to make them one: {flags}")
    return notes


def _is_objects(path: Path) -> bool:
    return _ending(path) in (".jsonl", ".json", ".parquet")


def _ending(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix


def _has_spans(table: Table) -> bool:
    return isinstance(table.data.columns[0][0], str)


def _choice(label: str, choices: list[str], where: str) -> int:
    """The index of the right choice: a number from 0, a letter, or the choice itself."""
    found = {choices.index(label)} if label in choices else set()
    if label.isascii() and label.isdigit() and len(label) < 10 and int(label) < len(choices):
        found.add(int(label))
    if len(label) == 1 and label.upper() in LETTERS[: len(choices)]:
        found.add(LETTERS.index(label.upper()))
    if len(found) == 1:
        return found.pop()
    if found:  # choices that are numbers or letters themselves
        other = "a letter" if label.isdigit() else "an index from 0"
        raise ValueError(
            f"{where}: label {label!r}: both the text of a choice and the place of another one; "
            f"expected {other}"
        )
    raise ValueError(
        f"{where}: label {label!r}: expected an index from 0 to {len(choices) - 1}, a letter, or "
        "one of the choices"
    )


def _in_order(name: str) -> tuple:
    """Sorts numbers by their values, before names."""
    number = NUMBER.fullmatch(name.strip())
    return (0, float(name), name) if number else (1, 0.0, name)


def read_both(kind: Kind, source: Source, dev: Source | None) -> tuple[Table, Table | None]:
    """Reads a file to train on, and one to choose the best epoch by if there is one.

    Args:
        kind: the kind of task.
        source: the file to train on.
        dev: the other; it is read by the columns, the scale and the renamed labels of the first.

    Returns:
        The examples of both.

    Raises:
        ValueError: as `Kind.read`.
    """
    table = kind.read(source)
    if dev is None:
        return table, None
    dev = replace(dev, scale=table.scale)
    if table.columns is not None:
        dev = replace(dev, texts=table.columns.texts, labels=table.columns.labels)
    return table, kind.read(dev)


def annotated(table: Table):
    """The examples of a tagger as `fit` takes them: x and y."""
    if _has_spans(table):
        return AnnotatedTexts(*table.data.columns, table.data.labels, table.data.lines), None
    return table.data.columns[0], table.data.labels
