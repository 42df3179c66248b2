"""`keras-bert explain`: the words that made the difference, on a terminal."""

import re
import sys
from pathlib import Path
from typing import Any

from keras_bert.data.relations import MARKER, MARKERS
from keras_bert.explain import attributions
from keras_bert_cli.terminal import plain, terminal

RAISES, LOWERS, PLAIN = "\033[42;30m", "\033[41;37m", "\033[0m"  # backgrounds green and red
SHOWN = 0.25  # share of the largest score from which a word is coloured
BAR = 20  # characters of the longest bar


def explain_text(
    model, texts: list[str], target: str | None, method: str, page: Path | None
) -> dict[str, Any]:
    """Explains the answer to one example.

    Args:
        model: a task.
        texts: its text; question and context; a context and its choices; or a text with two
            entities marked, as in "the <e1>key</e1> in a <e2>drawer</e2>".
        target: the output to explain; by default the answer.
        method: as `keras_bert.explain.attributions`.
        page: a page to write, or None.

    Returns:
        Words with their scores, by name, for programs.

    Raises:
        ValueError: if the task takes other texts, or there is no such target.
    """
    names = list(model.asks)
    if "spans" in names:
        columns: Any = _marked(texts)
    elif "choices" in names:
        if len(texts) < 3:
            raise ValueError(f"text: expected a context and two choices or more, got {len(texts)}")
        columns = ([texts[0]], [texts[1:]])
    elif len(texts) > 2:
        raise ValueError(f"text: expected one or two texts, got {len(texts)}")
    else:
        columns = tuple([text] for text in texts) if len(texts) == 2 else texts
    if target is not None and target.isascii() and target.isdigit():
        labels = getattr(model, "labels", None)
        target = target if labels and target in labels else int(target)
    (found,) = attributions(model, columns, target, method)
    words = found.words
    rows = list(zip(words.words, words.scores.tolist(), strict=True))
    most = max((abs(score) for _, score in rows), default=0.0) or 1.0
    terminal.say(f"{found.meaning}: {found.output:.3f}")
    if sys.stdout.isatty():
        line = " ".join(_coloured(plain(word), score / most) for word, score in rows)
        terminal.say(line, colours=True)
    width = max((len(word) for word, _ in rows), default=0)
    for word, score in rows:
        bar = ("+" if score > 0 else "-") * round(BAR * abs(score) / most)
        terminal.say(f"  {word:<{width}}  {score:+.3f}  {bar}")
    if page is not None:
        found.to_html(page)
        terminal.say(f"The page is {page}")
    return {
        "target": found.target,
        "meaning": found.meaning,
        "output": found.output,
        "baseline_output": found.baseline_output,
        "error": found.error,
        "words": [{"word": word, "score": score} for word, score in rows],
    }


def _marked(texts: list[str]) -> tuple[list, list]:
    """The columns of a text with its entities marked by <e1>, </e1>, <e2> and </e2>."""
    if len(texts) != 1 or MARKER.findall(texts[0]) not in (MARKERS, MARKERS[2:] + MARKERS[:2]):
        raise ValueError(
            f"text={' '.join(texts)!r:.80}: expected a text with two entities, marked as in "
            "'the <e1>key</e1> in a <e2>drawer</e2>'"
        )
    text, spans, opened = "", {}, 0
    parts = re.split(f"({MARKER.pattern})", texts[0])
    for part in parts:
        if MARKER.fullmatch(part) is None:
            text += part
        elif part.startswith("</"):
            spans[part[2:4]] = [opened, len(text)]
        else:
            opened = len(text)
    return [text], [[spans["e1"], spans["e2"]]]


def _coloured(word: str, share: float) -> str:
    if abs(share) < SHOWN:
        return word
    return f"{RAISES if share > 0 else LOWERS}{word}{PLAIN}"
