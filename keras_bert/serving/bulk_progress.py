"""How far a long run is, on the standard error."""

import sys
import time
from typing import TextIO

LINE_SECONDS = 10.0  # between lines in a log
BAR_SECONDS = 0.2  # between two states of the bar on a terminal
BAR_CELLS = 24


class Progress:
    """Shows rows done, rows a second and time left: a bar on a terminal, else a line now and then.

    Args:
        what: was done to the rows, such as "answered".
        done: rows that were done before.
        shown: whether to show anything.
        stream: to write to, the standard error by default.
    """

    def __init__(self, what: str, done: int = 0, shown: bool = True, stream: TextIO | None = None):
        self.what, self._shown = what, shown
        self._stream = sys.stderr if stream is None else stream
        self._bar = self._stream.isatty()
        self._first, self._start = done, time.monotonic()
        self._said = self._start - (LINE_SECONDS if self._bar else 0)
        self._width = 0

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_) -> None:
        """Leaves what was written last on a line of its own."""
        if self._width:
            self._stream.write("\n")
            self._stream.flush()

    def __call__(self, done: int, total: int | None = None) -> None:
        """Says so, if it is time to.

        Args:
            done: rows.
            total: rows in all; None if unknown.
        """
        now = time.monotonic()
        if now - self._said >= (BAR_SECONDS if self._bar else LINE_SECONDS):
            self._said = now
            self._write(self._line(done, total, now - self._start))

    def end(self, done: int) -> None:
        """Says the last word."""
        seconds = time.monotonic() - self._start
        pace = f", {(done - self._first) / seconds:,.0f} rows/s" if done > self._first else ""
        self._write(f"{done:,} rows {self.what} in {_clock(seconds)}{pace}")

    def _line(self, done: int, total: int | None, seconds: float) -> str:
        pace = (done - self._first) / seconds if seconds else 0.0
        if total is None:
            return f"{done:,} rows {self.what}, {pace:,.0f} rows/s"
        left = f", {_clock((total - done) / pace)} left" if pace else ""
        line = f"{done:,} of {total:,} rows {self.what}, {pace:,.0f} rows/s{left}"
        if not self._bar:
            return line
        cells = BAR_CELLS * done // max(total, 1)
        return f"[{'=' * cells}{' ' * (BAR_CELLS - cells)}] {line}"

    def _write(self, line: str) -> None:
        if not self._shown:
            return
        if self._bar:
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._stream.write(line + "\n")
        self._stream.flush()


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
