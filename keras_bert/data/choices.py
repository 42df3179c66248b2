"""SWAG: choose the ending that continues a text (Zellers et al. 2018, arXiv:1808.05326).

Reads `train.csv`, `val.csv` and `test.csv` of the official release, JSON lines with the same
columns, and HellaSwag converted to these columns, but not `train_full.csv` and `val_full.csv`,
which have other columns.
"""

from pathlib import Path
from typing import NamedTuple

from keras_bert.data.rows import column_names, read_rows

ENDINGS = ("ending0", "ending1", "ending2", "ending3")
LABELS = ("0", "1", "2", "3")


class ChoiceExamples(NamedTuple):
    """Texts with four possible endings each, in columns.

    Attributes:
        contexts: the preceding sentence (column `sent1`).
        starts: the beginning of the sentence to complete (column `sent2`); may be "".
        endings: four endings each.
        labels: the correct ending, 0 to 3; None for files without labels.
        lines: the line of the file (from 1) where each example starts.
    """

    contexts: list[str]
    starts: list[str]
    endings: list[tuple[str, str, str, str]]
    labels: list[int] | None
    lines: list[int]

    @property
    def choices(self) -> list[list[str]]:
        """Each start with its endings: the second segments of BERT's input (Devlin et al. 4.4)."""
        return [
            [f"{start} {ending}" if start else ending for ending in endings]
            for start, endings in zip(self.starts, self.endings, strict=True)
        ]

    def head(self, count: int | None) -> "ChoiceExamples":
        """Returns the first `count` examples; all for None.

        Args:
            count: number of examples, or None.

        Returns:
            An object of the same class.
        """
        return ChoiceExamples(*(column and column[:count] for column in self))


def read_choices(path: str | Path) -> ChoiceExamples:
    """Reads a file with SWAG's columns: sent1, sent2, ending0 to ending3, label.

    Args:
        path: a `.csv`, `.tsv` or `.jsonl` file, or one of these with `.gz` added. Other columns
            are ignored; a file whose name begins with "test" may lack the label.

    Returns:
        `ChoiceExamples` in the order of the file.

    Raises:
        ValueError: with file and line, if a column is missing, a line has too few or too many
            columns, an ending or the context is empty, or a label is not 0 to 3; or if the file has
            no examples.
        FileNotFoundError: if the file does not exist.
    """
    path = Path(path)
    columns = ["sent1", "sent2", *ENDINGS]
    labelled = not path.name.startswith("test") or "label" in column_names(path)
    examples = ChoiceExamples([], [], [], [] if labelled else None, [])
    for line, cells in read_rows(path, [*columns, "label"] if labelled else columns):
        context, start, *endings = cells[: len(columns)]
        texts = zip(columns, cells, strict=False)
        empty = [name for name, text in texts if name != "sent2" and not text.strip()]
        problem = f"{empty} empty: expected a context and four endings" if empty else ""
        if labelled and cells[-1] not in LABELS:
            problem = f"label {cells[-1]!r}: expected one of {list(LABELS)}"
        if problem:
            raise ValueError(f"{path}, line {line}: {problem}")
        if labelled:
            examples.labels.append(int(cells[-1]))
        examples.contexts.append(context)
        examples.starts.append(start)
        examples.endings.append(tuple(endings))
        examples.lines.append(line)
    if not examples.lines:
        raise ValueError(f"{path}: no examples; the file is empty or has only a header")
    return examples
