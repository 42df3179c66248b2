"""SWAG: one of four endings continues a text (Zellers et al. 2018, arXiv:1808.05326).

Read: `train.csv`, `val.csv` and `test.csv` of the official release, JSON lines with the same
columns, and HellaSwag put into these columns. (`train_full.csv` and `val_full.csv`, which have
other columns, are not meant.)
"""

from pathlib import Path
from typing import NamedTuple

from keras_bert.data.rows import column_names, read_rows

ENDINGS = ("ending0", "ending1", "ending2", "ending3")
LABELS = ("0", "1", "2", "3")


class ChoiceExamples(NamedTuple):
    """Texts with four possible endings each, column by column.

    Attributes:
        contexts: the sentence that comes before (column `sent1`).
        starts: the beginning of the sentence to end (column `sent2`); may be "".
        endings: four endings each.
        labels: the right one, 0 to 3; `None` for files without labels.
        lines: the line of the file (from 1) that each example starts on.
    """

    contexts: list[str]
    starts: list[str]
    endings: list[tuple[str, str, str, str]]
    labels: list[int] | None
    lines: list[int]

    @property
    def choices(self) -> list[list[str]]:
        """Each ending after its start: the second segments of BERT's input (Devlin et al. 4.4)."""
        return [
            [f"{start} {ending}" if start else ending for ending in endings]
            for start, endings in zip(self.starts, self.endings, strict=True)
        ]

    def head(self, count: int | None) -> "ChoiceExamples":
        """Gives the first `count` examples; all of them for `None`.

        Args:
            count: how many, or None.

        Returns:
            As many of the same form.
        """
        return ChoiceExamples(*(column and column[:count] for column in self))


def read_choices(path: str | Path) -> ChoiceExamples:
    """Reads a file in the columns of SWAG: sent1, sent2, ending0 to ending3, label.

    Args:
        path: a `.csv`, `.tsv` or `.jsonl` file, or one of these with `.gz` added. Other columns
            are passed over; a file whose name begins with "test" may lack the label.

    Returns:
        `ChoiceExamples` in the order of the file.

    Raises:
        ValueError: with the file and the line, if a column is missing, a row is short or long, one
            of the four endings is missing or empty, the context is empty, or a label is not 0 to 3;
            or if the file holds no example.
        FileNotFoundError: if there is no such file.
    """
    path = Path(path)
    columns = ["sent1", "sent2", *ENDINGS]
    labelled = not path.name.startswith("test") or "label" in column_names(path)
    examples = ChoiceExamples([], [], [], [] if labelled else None, [])
    for line, cells in read_rows(path, [*columns, "label"] if labelled else columns):
        context, start, *endings = cells[: len(columns)]
        empty = [
            name
            for name, text in zip(columns, cells, strict=False)
            if name != "sent2" and not text.strip()
        ]
        if empty:
            raise ValueError(
                f"{path}, line {line}: {empty} empty, but a context and four endings are expected."
            )
        if labelled:
            if cells[-1] not in LABELS:
                raise ValueError(
                    f"{path}, line {line}: label {cells[-1]!r} is not one of {list(LABELS)}."
                )
            examples.labels.append(int(cells[-1]))
        examples.contexts.append(context)
        examples.starts.append(start)
        examples.endings.append(tuple(endings))
        examples.lines.append(line)
    if not examples.lines:
        raise ValueError(f"{path}: no examples; the file is empty or holds only a header.")
    return examples
