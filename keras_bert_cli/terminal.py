"""What the command prints: notes, tables, progress, errors.

Results go to the standard output, everything else to the standard error. With `--json` the standard
output holds one JSON object and nothing else.
"""

import json
import os
import re
import sys
import time
from collections.abc import Sequence
from contextlib import contextmanager

FAILED, USAGE, UNEXPECTED, INTERRUPTED = 1, 2, 3, 130  # exit codes
# Characters by which a label or a text from a file would control the terminal, or that have no
# encoding: control characters but tab and line feed, and unpaired surrogates.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def plain(text: str) -> str:
    """A text with characters that control a terminal escaped as in Python's literals."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


class Terminal:
    """Prints for a person, or for a program.

    Attributes:
        as_json: whether the standard output is for a program.
        debug: whether errors have tracebacks, and TensorFlow's log is shown.
    """

    def __init__(self):
        self.as_json = False
        self.debug = False

    def say(self, text: str = "", colours: bool = False) -> None:
        """Prints a line of a result for a person; `colours` are in the text, which is `plain`."""
        if not self.as_json:
            print(text if colours else plain(text), flush=True)

    def note(self, text: str) -> None:
        """Prints a line about the work."""
        print(plain(text), file=sys.stderr, flush=True)

    def result(self, value: dict) -> None:
        """Prints the result for a program."""
        if self.as_json:
            print(json.dumps(value, ensure_ascii=False, indent=2), flush=True)

    def table(self, rows: Sequence[tuple[str, str]], title: str = "") -> None:
        """Prints names and values in two columns."""
        if title:
            self.say(title)
        width = max((len(name) for name, _ in rows), default=0)
        for name, value in rows:
            first, *more = str(value).split("\n")
            self.say(f"  {name:<{width}}  {first}")
            for line in more:
                self.say(f"  {'':<{width}}  {line}")

    def error(self, error: BaseException | str, kind: str = "error") -> None:
        """Prints an error in one line."""
        text = " ".join(str(error).split()) or type(error).__name__
        self.note(f"{kind}: {text}")


def duration(seconds: float) -> str:
    """A time for people: "45 s", "3 min 20 s", "2 h 5 min"."""
    seconds = max(0, round(seconds))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 600:
        minutes, tens = divmod(round(seconds / 10), 6)
        return f"{minutes} min {tens}0 s" if tens else f"{minutes} min"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def number(value: float) -> str:
    """A score for people: four digits after the point, or two from 10 on."""
    return f"{value:.2f}" if abs(value) >= 10 else f"{value:.4f}"


def rows(count: int) -> str:
    """A number of rows: "1 row", "1,200 rows"."""
    return f"{count:,} row{'s' * (count != 1)}"


@contextmanager
def quiet_start():
    """Drops TensorFlow's greeting, which no log level silences; not with --debug."""
    if terminal.debug:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


class Progress:
    """A bar with an estimate on a terminal; elsewhere a line every half minute.

    Args:
        total: number of units of work.
        name: of the work.
    """

    EVERY = 30.0  # seconds between lines where there is no terminal

    def __init__(self, total: int, name: str):
        from tqdm import tqdm

        self._bar = None
        self._total, self._name, self._done = total, name, 0
        self._begin = self._said = time.monotonic()
        self._first = 0  # units done at the time `_begin`
        if sys.stderr.isatty():
            self._bar = tqdm(total=total, desc=name, file=sys.stderr, leave=False, delay=0.5)

    def to(self, done: int, values: str = "") -> None:
        """Moves to `done` units; `values` stands behind the bar."""
        done = min(done, self._total)
        if self._bar is not None:
            self._bar.set_postfix_str(values, refresh=False)
            self._bar.update(done - self._done)
        elif not self._done:  # the first units may have waited for a compiler
            self._begin = self._said = time.monotonic()
            self._first = done
        elif time.monotonic() - self._said > self.EVERY:
            self._said = time.monotonic()
            each = (self._said - self._begin) / max(done - self._first, 1)
            left = each * (self._total - done)
            text = f"{self._name}: {done} of {self._total}, about {duration(left)} left"
            print(f"{text} {values}".rstrip(), file=sys.stderr, flush=True)
        self._done = done

    def close(self) -> None:
        """Removes the bar."""
        if self._bar is not None:
            self._bar.close()


terminal = Terminal()
