"""Examples in memory, column by column, as tasks take them from users and readers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Examples:
    """N examples.

    Attributes:
        columns: of N values each, as the task asks for them.
        labels: N labels as the loss reads them where a row is an example; or None.
        lines: N lines of the file that they come from, for errors; or None.
        given: N labels as the user gave them, where a score needs these; or None.
    """

    columns: tuple
    labels: Any = None
    lines: Sequence[int] | None = None
    given: Sequence | None = None

    def __len__(self) -> int:
        return len(self.columns[0])

    def part(self, rows: slice) -> "Examples":
        """Some of the examples."""
        others = (self.labels, self.lines, self.given)
        return Examples(
            tuple(column[rows] for column in self.columns),
            *(None if value is None else value[rows] for value in others),
        )
