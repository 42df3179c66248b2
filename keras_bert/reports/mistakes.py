"""A page of a classifier's worst mistakes."""

import re
from collections.abc import Sequence
from html import escape

import numpy as np

# Characters that control a terminal, have no glyph, or cannot be encoded as UTF-8: control
# characters other than tab and line feed, and unpaired surrogates.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_STYLE = """
body { font-family: system-ui, sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.4em 0.8em 0.4em 0; }
tr { border-bottom: 1px solid #ddd; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.second { color: #555; }
"""


def mistakes_page(
    columns: Sequence[Sequence[str]],
    labels: np.ndarray,
    probabilities: np.ndarray,
    names: Sequence[str],
    worst: int = 100,
) -> str:
    """Makes a table of the wrong predictions, by ascending probability of the true class.

    Args:
        columns: one column of N texts, or two.
        labels: ids of the true classes, [N].
        probabilities: [N, K].
        names: K names.
        worst: maximum number of rows.

    Returns:
        A self-contained HTML page; the texts are escaped.
    """
    predictions = probabilities.argmax(axis=1)
    wrong = np.flatnonzero(predictions != labels)
    right_ones = probabilities[np.arange(len(labels)), labels]
    first = wrong[np.argsort(right_ones[wrong], kind="stable")][:worst]
    rows = []
    for row in first:
        text, *second = [_text(column[row]) for column in columns]
        text += "".join(f'<div class="second">{other}</div>' for other in second)
        cells = [
            f'<td class="number">{row}</td><td>{text}</td><td>{_text(names[labels[row]])}</td>',
            f"<td>{_text(names[predictions[row]])}</td>",
            f'<td class="number">{probabilities[row, predictions[row]]:.3f}</td>',
            f'<td class="number">{right_ones[row]:.3f}</td>',
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    head = "".join(
        f"<th>{title}</th>"
        for title in ("row", "text", "right", "predicted", "its probability", "the right one's")
    )
    count = f"{len(wrong):,} of {len(labels):,} predictions are wrong; {len(first):,} are shown"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Mistakes</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>Mistakes</h1>\n<p>{count}, the worst first."
        f"</p>\n<table><thead><tr>{head}</tr></thead>\n<tbody>\n"
        + "\n".join(rows)
        + "\n</tbody></table></body></html>\n"
    )


def _text(value: str | bytes) -> str:
    return escape(shown(value.decode("utf-8", "replace") if isinstance(value, bytes) else value))


def shown(text: str) -> str:
    """A text with such characters escaped as in Python's string literals."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)
