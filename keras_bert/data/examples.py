"""Examples in memory, column by column, as tasks take them from users and readers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keras_bert.data.table_rows import Table


def is_dataset(x: Any) -> bool:
    """Whether data are a `tf.data.Dataset`, told without TensorFlow."""
    return hasattr(x, "element_spec")


def are_ids(x: Any) -> bool:
    """Whether data are rows of ids, in a dict by the name of the model's input."""
    return isinstance(x, dict)


def are_examples(x: Any) -> bool:
    """Whether data are examples to parse, as opposed to ids, a table, or a `tf.data.Dataset`."""
    return not (x is None or are_ids(x) or isinstance(x, Table) or is_dataset(x))


def part_of(values: Any, rows: Any) -> Any:
    """Takes some rows of labels or weights: of a column, a dict of columns by output, or None."""
    if isinstance(values, dict):
        return {name: value[rows] for name, value in values.items()}
    return values if values is None else values[rows]


@dataclass(frozen=True)
class Examples:
    """N examples.

    Attributes:
        columns: of N values each, as the task asks for them.
        labels: N labels as the loss reads them where a row is an example, which may be given by
            output in a dict; or None.
        lines: N lines of the file that they come from, for errors; or None.

    Raises:
        ValueError: if there are more or fewer labels.
    """

    columns: tuple
    labels: Any = None
    lines: Sequence[int] | None = None

    def __post_init__(self):
        for labels in self.labels.values() if isinstance(self.labels, dict) else (self.labels,):
            if labels is not None and len(labels) != len(self):
                raise ValueError(
                    f"labels of length {len(labels)}: expected {len(self)}, as many as texts"
                )

    def __len__(self) -> int:
        return len(self.columns[0])

    def part(self, rows: slice) -> "Examples":
        """Takes some of the examples.

        Args:
            rows: which.

        Returns:
            `Examples` of these.
        """
        columns = tuple(column[rows] for column in self.columns)
        return Examples(columns, part_of(self.labels, rows), part_of(self.lines, rows))


def place_of(row: int, lines: Sequence[int] | None, name: str = "row") -> str:
    """Names an example in an error, by its row, and its line if it is from a file."""
    return f"{name} {row}" + (f" (line {lines[row]})" if lines is not None else "")


def two_columns(x: Any, names: str) -> tuple:
    """Checks that data are a tuple of two columns; the ValueError has their names."""
    if not isinstance(x, tuple) or len(x) != 2:
        size = f" of {len(x)}" if isinstance(x, tuple) else ""
        raise ValueError(f"expected a tuple ({names}), got {type(x).__name__}{size}")
    return x
