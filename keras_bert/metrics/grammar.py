"""Grammar by minimal pairs: which of two sentences a language model finds more likely."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

# Names of the fields: ours, and those of BLiMP's files.
GOOD, BAD = ("good", "sentence_good"), ("bad", "sentence_bad")
PARADIGM = ("paradigm", "UID")


def minimal_pairs(
    model: Any, pairs: str | os.PathLike[str] | Iterable[Mapping[str, Any]], batch_size: int = 256
) -> dict[str, Any]:
    """Scores a language model on minimal pairs: sentences that differ in grammaticality alone.

    A pair counts as right if the model gives the good sentence the higher log-likelihood, summed
    over its tokens; equal ones are wrong. Reference: Warstadt et al. 2020, "BLiMP", with the
    pseudo-log-likelihood of Salazar et al. 2020 for models that read in both directions.

    Args:
        model: a `BertMaskedLM`, or any model with a method `score(texts, batch_size)` that gives
            for each text an object with a number `total`.
        pairs: a JSON lines file, or its parsed lines: objects with the strings "good", "bad" and
            "paradigm"; or "sentence_good", "sentence_bad" and "UID" as in BLiMP's files. Other
            fields are ignored.
        batch_size: passed on to `score`.

    Returns:
        A dict: `accuracy`, the share of right pairs; `macro_accuracy`, the mean of the paradigms'
        accuracies; `pairs`, their number; `by_paradigm`, a dict with `accuracy` and `pairs` for
        each, in alphabetical order.

    Raises:
        ValueError: if there is no pair, or one lacks a field or holds something else than strings;
            the error names its number.
    """
    rows = [_pair(pair, number, where) for number, pair, where in _lines(pairs)]
    if not rows:
        raise ValueError("pairs: expected at least one pair, got none")
    # Sentences that occur several times are scored once.
    texts = sorted({text for row in rows for text in row[:2]})
    totals = dict(zip(texts, (s.total for s in model.score(texts, batch_size)), strict=True))
    right: dict[str, list[bool]] = {}
    for good, bad, paradigm in rows:
        right.setdefault(paradigm, []).append(totals[good] > totals[bad])
    by_paradigm = {
        name: {"accuracy": sum(found) / len(found), "pairs": len(found)}
        for name, found in sorted(right.items())
    }
    accuracies = [found["accuracy"] for found in by_paradigm.values()]
    return {
        "accuracy": sum(map(sum, right.values())) / len(rows),
        "macro_accuracy": sum(accuracies) / len(accuracies),
        "pairs": len(rows),
        "by_paradigm": by_paradigm,
    }


def _lines(pairs) -> Iterable[tuple[int, Any, str]]:
    """Yields (its number, the parsed pair, where it is)."""
    if not isinstance(pairs, str | os.PathLike):
        yield from ((number, pair, "pairs") for number, pair in enumerate(pairs))
        return
    with Path(pairs).open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield number, json.loads(line), os.fspath(pairs)
            except ValueError as error:
                raise ValueError(f"{pairs}, line {number}: not JSON: {error}") from error


def _pair(pair, number: int, where: str) -> tuple[str, ...]:
    found = []
    for names in (GOOD, BAD, PARADIGM):
        values = [pair.get(name) for name in names] if isinstance(pair, Mapping) else []
        texts = [value for value in values if isinstance(value, str)]
        if not texts:
            raise ValueError(
                f"{where}, pair {number}: expected an object with the string {names[0]!r} (or "
                f"{names[1]!r}), got {pair!r:.200}"
            )
        found.append(texts[0])
    return tuple(found)
