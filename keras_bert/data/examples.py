"""Examples in memory, column by column, as tasks take them from users and readers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Examples:
    """N examples.

    Attributes:
        columns: of N values each, as the task asks for them.
        labels: N labels as the loss reads them where a row is an example, which may be given by
            output in a dict; or None.
        lines: N lines of the file that they come from, for errors; or None.
    """

    columns: tuple
    labels: Any = None
    lines: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.columns[0])

    def part(self, rows: slice) -> "Examples":
        """Takes some of the examples.

        Args:
            rows: which.

        Returns:
            `Examples` of these.
        """
        labels = self.labels
        if isinstance(labels, dict):
            labels = {name: value[rows] for name, value in labels.items()}
        elif labels is not None:
            labels = labels[rows]
        lines = None if self.lines is None else self.lines[rows]
        return Examples(tuple(column[rows] for column in self.columns), labels, lines)


def two_columns(x: Any, names: str) -> tuple:
    """Checks that x is a tuple of two columns.

    Args:
        x: data that a user passes.
        names: of the columns, for the error.

    Raises:
        ValueError: if it is anything else.
    """
    if not isinstance(x, tuple) or len(x) != 2:
        size = f" of {len(x)}" if isinstance(x, tuple) else ""
        raise ValueError(f"expected a tuple ({names}), got {type(x).__name__}{size}")
    return x
