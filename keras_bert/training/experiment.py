"""Many small runs: kept results, folds, and what their spread allows to say."""

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_bert.arguments import check_count, check_number


class Interval(NamedTuple):
    """The mean of some values and how far it is known.

    Attributes:
        mean: the mean.
        deviation: the population standard deviation, 0 for one value.
        low: lower end of the confidence interval of the mean; NaN for one value.
        high: upper end.
        count: number of values.
    """

    mean: float
    deviation: float
    low: float
    high: float
    count: int

    def text(self, digits: int = 3) -> str:
        """Formats it for a table, such as "0.812 ± 0.010 [0.801, 0.823]".

        Args:
            digits: after the point.

        Returns:
            The text.
        """
        if self.count < 2:
            return f"{self.mean:.{digits}f}"
        low, high = (f"{value:.{digits}f}" for value in (self.low, self.high))
        return f"{self.mean:.{digits}f} ± {self.deviation:.{digits}f} [{low}, {high}]"


def interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Computes the confidence interval of a mean by Student's t.

    To compare two methods on the same seeds or folds, pass the differences: the methods differ by
    more than chance if 0 is outside the interval.

    Args:
        values: one or more numbers, one a run.
        level: share of intervals that contain the true mean, if values are normal and independent.

    Returns:
        The `Interval`.

    Raises:
        ValueError: if there are no values, one is not finite, or `level` is not between 0 and 1.
    """
    from scipy import stats

    check_number("level", level, 0, below=1)
    values = np.asarray(values, "float64").ravel()
    if not len(values) or not np.isfinite(values).all():
        raise ValueError(f"values={values.tolist()}: expected one or more finite numbers")
    mean, deviation = float(values.mean()), float(values.std())
    if len(values) == 1:
        return Interval(mean, 0.0, math.nan, math.nan, 1)
    error = values.std(ddof=1) / math.sqrt(len(values))
    half = float(stats.t.ppf((1 + level) / 2, len(values) - 1) * error)
    return Interval(mean, deviation, mean - half, mean + half, len(values))


def folds(y: Sequence, k: int = 5, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Splits examples for k-fold cross-validation.

    Args:
        y: N labels; classes are spread evenly over the folds (scikit-learn's `StratifiedKFold`),
            floats are numbers, which are not (`KFold`).
        k: number of folds.
        seed: of the shuffled order.

    Returns:
        k pairs of int64 indices: those to train on, and those to score on.

    Raises:
        ValueError: if a class has fewer than k examples.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    check_count("k", k, 2)
    y = np.asarray(y)
    if y.dtype.kind == "f":
        return list(KFold(k, shuffle=True, random_state=seed).split(np.zeros(len(y))))
    names, counts = np.unique(y, return_counts=True)
    if counts.min() < k:
        few = names.tolist()[counts.argmin()]
        raise ValueError(f"k={k}: expected at most {counts.min()}, the examples of class {few!r}")
    return list(StratifiedKFold(k, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))


def take(values: Any, rows: Sequence[int]) -> Any:
    """Takes some examples, by index, of a list, an array or a tuple of such columns."""
    if isinstance(values, tuple):
        return tuple(take(column, rows) for column in values)
    if isinstance(values, np.ndarray):
        return values[np.asarray(rows, int)]
    return [values[int(row)] for row in rows]


class Results:
    """Runs, whose results are kept in a file of JSON lines; one that is there is not repeated.

    Several processes may share a folder, each with a file of its own: all see the results of all
    when they begin.

    Args:
        path: the file, such as `runs/augment.jsonl`. All `*.jsonl` of its folder are read.
        total: number of runs to come, for the progress line; None if unknown.
        end: time (`time.time()`) from which no run is begun; None for none.
    """

    def __init__(self, path: str | Path, total: int | None = None, end: float | None = None):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.total, self.end = total, end
        self._drop_unfinished_line()
        self.found: dict[str, dict] = {}
        for other in sorted(self.path.parent.glob("*.jsonl")):
            for row in read_results(other):
                self.found[_name(row["run"])] = row
        self._done = 0

    def _drop_unfinished_line(self) -> None:
        """Cuts off what an interrupted process left, so that the next line is one of its own."""
        content = self.path.read_bytes() if self.path.exists() else b""
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self.path, whole)

    def run(self, function: Callable[[], dict[str, Any]], **run: Any) -> dict[str, Any] | None:
        """Runs a function, or gives what it gave before.

        Args:
            function: gives numbers by name.
            **run: what the run is: its variant, seed and so on, as JSON can hold.

        Returns:
            The numbers; None if the time was over before it began.

        Raises:
            ValueError: if the result is not a dict that JSON can hold.
        """
        self._done += 1
        kept = self.found.get(_name(run))
        if kept is not None:
            return kept["result"]
        if self.end is not None and time.time() > self.end:
            return None
        begin = time.time()
        result = function()
        row = {"run": run, "result": result, "seconds": round(time.time() - begin, 2)}
        try:
            line = json.dumps(row, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the result of {run} cannot be kept: {error}") from error
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.found[_name(run)] = row
        of = f" of {self.total}" if self.total else ""
        shown = {k: round(v, 4) if isinstance(v, float) else v for k, v in result.items()}
        print(
            f"{self._done}{of}: {run} {shown} {row['seconds']:.0f} s", file=sys.stderr, flush=True
        )
        return result

    def rows(self) -> list[dict[str, Any]]:
        """Returns all results, each one dict of what the run is and of its numbers."""
        return [row["run"] | row["result"] for row in self.found.values()]


def read_results(path: str | Path) -> Iterator[dict]:
    """Reads a file of `Results`.

    A last line without an end, which an interrupted process left, is skipped.

    Args:
        path: the file; it may be missing.

    Yields:
        Dicts with `run`, `result` and `seconds`.

    Raises:
        ValueError: if another line is damaged.
    """
    path = Path(path)
    if not path.exists():
        return
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines[:-1], 1):
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}, line {number}: expected JSON, got {line!r:.80}") from error


def results_table(
    rows: Sequence[dict],
    by: Sequence[str],
    metrics: Sequence[str],
    pair: Sequence[str] = ("seed",),
    against: dict[str, Any] | None = None,
    digits: int = 3,
) -> str:
    """Makes a Markdown table: means over runs, with deviation and 95% confidence interval.

    Args:
        rows: dicts, as `Results.rows` gives them.
        by: keys that make a line of the table, in order of appearance.
        metrics: keys of numbers, a column each; missing ones are "-".
        pair: keys that runs of different lines have in common.
        against: the line to compare with, such as {"variant": "none"}: of every other line that
            differs in this key only, a column gives the mean difference of the first metric over
            shared `pair`s, and its interval.
        digits: after the point.

    Returns:
        The table's lines.

    Raises:
        KeyError: if a row lacks a key of `by`.
    """
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in by), []).append(row)
    titles = [*by, "runs", *metrics, *([f"{metrics[0]}, difference"] if against else [])]
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    for group, members in groups.items():
        cells = [*map(str, group), str(len(members))]
        for metric in metrics:
            values = [row[metric] for row in members if row.get(metric) is not None]
            cells.append(interval(values).text(digits) if values else "-")
        if against:
            base = tuple(against.get(key, value) for key, value in zip(by, group, strict=True))
            cells.append(
                ""
                if base == group
                else _difference(members, groups.get(base, ()), metrics[0], pair)
            )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _difference(members, base, metric: str, pair: Sequence[str]) -> str:
    """The interval of the differences of runs that share a seed."""

    def key(row):
        return tuple(row.get(name) for name in pair)

    there = {key(row): row[metric] for row in base if row.get(metric) is not None}
    values = [
        row[metric] - there[key(row)]
        for row in members
        if row.get(metric) is not None and key(row) in there
    ]
    if len(values) < 2:
        return "-"
    found = interval(values)
    return f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def _name(run: dict) -> str:
    return json.dumps(run, sort_keys=True)
