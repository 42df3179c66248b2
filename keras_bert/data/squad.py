"""SQuAD and data sets in its format: questions answered by a span of a paragraph.

Reads SQuAD 1.1 (Rajpurkar et al. 2016, arXiv:1606.05250), SQuAD 2.0 with unanswerable questions
(2018, arXiv:1806.03822), XQuAD, and CMRC 2018 and DRCD in SQuAD's format. Writes the prediction
files of google-research/bert's `run_squad.py`, which the official scorers read.

Texts are unchanged, including leading and double spaces, because answers are located by character
positions (Unicode code points) in the context.
"""

import hashlib
import json
import logging
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from keras_bert.arguments import check_choice
from keras_bert.atomic import write_file
from keras_bert.data.rows import parse_json, read_lines

logger = logging.getLogger("keras_bert")

PREDICTIONS = "predictions.json"
NBEST = "nbest_predictions.json"
NULL_ODDS = "null_odds.json"
CANDIDATE_KEYS = ("text", "probability", "start_logit", "end_logit")


class Answer(NamedTuple):
    """One answer of an annotator.

    Attributes:
        text: the answer; `context[start : start + len(text)] == text` if `start` is not None.
        start: its first character in the context, from 0; None for an answer that is not in the
            context, which can be used for scoring but not for training.
    """

    text: str
    start: int | None


@dataclass(frozen=True)
class SquadExample:
    """One question.

    Attributes:
        id: identifies predictions; unique in the file.
        title: title of its article; "" if the file has none.
        question: the question.
        context: the paragraph.
        answers: answers of the annotators; empty if there are none.
        is_impossible: whether the question is marked as unanswerable.
    """

    id: str
    title: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    is_impossible: bool = False


def read_squad(
    path: str | Path, on_mismatch: Literal["error", "repair", "skip"] = "error"
) -> list[SquadExample]:
    """Reads questions, and checks the position of each answer in the context.

    Args:
        path: a JSON file in SQuAD's format, plain or with `.gz` added.
        on_mismatch: how to handle answers that are not at the given position:
            "error": raise one error for all of them.
            "repair": use the occurrence closest to that position, of the answer or of the answer
                without surrounding spaces. An answer that is not in the context is kept with
                `start=None`, so that scores cover the whole file.
            "skip": skip the answer, and the question if no answer remains.
            The log has the numbers of answers moved, not found and skipped.

    Returns:
        The questions in the order of the file.

    Raises:
        ValueError: with file, article and id, if answers do not match, an id is duplicated, an
            impossible question has answers, or a key is missing or has the wrong type; with file
            and line, if the file is not JSON or not UTF-8.
        FileNotFoundError: if the file does not exist.
    """
    path = Path(path)
    check_choice("on_mismatch", on_mismatch, ("error", "repair", "skip"))
    examples: list[SquadExample] = []
    wrong: list[str] = []
    done: Counter[str] = Counter()
    for example, where in _questions(path):
        answers = []
        for answer in example.answers:
            problem = _mismatch(example.context, answer)
            if problem is None:
                answers.append(answer)
                continue
            wrong.append(f"{where}: {problem}")
            if on_mismatch == "repair":
                answer = _nearest(example.context, answer)
                done["not found in the context" if answer.start is None else "moved"] += 1
                answers.append(answer)
            else:
                done["left out"] += 1
        if example.answers and not answers:
            done["questions skipped"] += 1
            continue
        examples.append(replace(example, answers=tuple(answers)))
    if wrong and on_mismatch == "error":
        others = f" ({len(wrong)} such answers; this is the first)" if len(wrong) > 1 else ""
        raise ValueError(
            f"{wrong[0]}{others}: pass on_mismatch='repair' to search the context for them, or "
            "'skip' to skip them"
        )
    if wrong:
        counts = ", ".join(f"{count} {what}" for what, count in done.items())
        logger.warning("%s: %d answers are not at the given position: %s", path, len(wrong), counts)
    if not examples:
        raise ValueError(f"{path}: no questions")
    return examples


def hold_out_articles(
    examples: Sequence[SquadExample], share: float
) -> tuple[list[SquadExample], list[SquadExample]]:
    """Splits questions by article, deterministically by the SHA-256 of the title.

    Args:
        examples: questions of several articles.
        share: fraction of the articles to hold out, from 0 to 1.

    Returns:
        (questions of the other articles, questions of the held-out ones), in the original order.

    Raises:
        ValueError: if one side would be empty.
    """
    titles = {example.title for example in examples}
    ordered = sorted(titles, key=lambda title: hashlib.sha256(title.encode()).digest())
    count = round(share * len(ordered))
    if not 0 < count < len(ordered):
        raise ValueError(f"share={share} of {len(ordered)} articles leaves one side empty")
    held = {*ordered[:count]}
    return (
        [example for example in examples if example.title not in held],
        [example for example in examples if example.title in held],
    )


def read_predictions(path: str | Path) -> dict[str, str]:
    """Reads a file of predictions.

    Args:
        path: a JSON file, plain or with `.gz` added, in the format of `write_predictions` and the
            leaderboard.

    Returns:
        Answers by question id; "" for no answer.

    Raises:
        ValueError: if it is not an object of ids and texts; the message names the file.
    """
    predictions = _load(Path(path))
    if not isinstance(predictions, dict):
        raise ValueError(f"{path}: expected an object of ids and answers, got {predictions!r:.80}")
    return _texts(path, predictions)


def _texts(where: str | Path, predictions: Mapping[str, str]) -> dict[str, str]:
    for key, text in predictions.items():
        if not isinstance(text, str):
            raise ValueError(f"{where}, id {key!r}: expected a string, got {text!r:.80}")
    return dict(predictions)


def write_predictions(
    folder: str | Path,
    predictions: Mapping[str, str],
    *,
    nbest: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    null_odds: Mapping[str, float] | None = None,
    examples: Sequence[SquadExample] | None = None,
) -> list[Path]:
    """Writes `predictions.json`, and `nbest_predictions.json` and `null_odds.json` if given.

    Names and formats are those of `write_predictions` in `run_squad.py`; `evaluate-v1.1.py` and
    `evaluate-v2.0.py` read the first and the last.

    Args:
        folder: the output folder; created if it does not exist.
        predictions: answers by question id, "" for none.
        nbest: n-best lists by question id, best first, each candidate with "text", "probability",
            "start_logit" and "end_logit".
        null_odds: by question id, the score of no answer minus that of the best answer.
        examples: if given, the ids must be exactly theirs.

    Returns:
        The files written.

    Raises:
        ValueError: if the ids differ, an n-best list is empty, a candidate has other keys, or a
            number is not finite.
    """
    expected = set(predictions) if examples is None else {example.id for example in examples}
    rows = {PREDICTIONS: predictions, NBEST: nbest, NULL_ODDS: null_odds}
    for name, of_id in rows.items():
        if of_id is not None and set(of_id) != expected:
            missing, other = expected - set(of_id), set(of_id) - expected
            raise ValueError(
                f"{name}: {len(missing)} of {len(expected)} questions are missing "
                f"{sorted(missing)[:3]}, {len(other)} ids are unknown {sorted(other)[:3]}"
            )
    content: dict[str, Any] = {PREDICTIONS: _texts(PREDICTIONS, predictions)}
    if nbest is not None:
        content[NBEST] = {key: _candidates(key, nbest[key]) for key in predictions}
    if null_odds is not None:
        content[NULL_ODDS] = {
            key: _finite(f"{NULL_ODDS}, id {key!r}", null_odds[key]) for key in predictions
        }
    paths = []
    for name, value in content.items():
        paths.append(Path(folder) / name)
        write_file(paths[-1], (json.dumps(value, indent=4) + "\n").encode())
    return paths


def _questions(path: Path) -> Iterator[tuple[SquadExample, str]]:
    """Yields (question, its location for messages), with every key checked."""
    data, seen = _load(path), set()
    articles = data.get("data") if isinstance(data, dict) else None
    if not isinstance(articles, list):
        raise ValueError(
            f"{path}: expected an object with a list 'data' of articles, as in SQuAD; for CMRC "
            "2018 use the files in its folder squad-style-data"
        )
    for number, article in enumerate(articles):
        where = f"{path}, article {number}"
        title = _value(where, article, "title", str, "")
        where += f" {title!r}" if title else ""
        for place, paragraph in enumerate(_value(where, article, "paragraphs", list)):
            within = f"{where}, paragraph {place}"
            context = _value(within, paragraph, "context", str)
            for qa in _value(within, paragraph, "qas", list):
                key = _value(within, qa, "id", str)
                at = f"{where}, id {key!r}"
                answers = tuple(
                    Answer(_value(at, answer, "text", str), _value(at, answer, "answer_start", int))
                    for answer in _value(at, qa, "answers", list, [])
                )
                impossible = _value(at, qa, "is_impossible", bool, False)
                if key in seen or (impossible and answers):
                    wrong = f"is_impossible, but it has answers {answers!r:.80}"
                    wrong = "a second question with this id" if key in seen else wrong
                    raise ValueError(f"{at}: {wrong}")
                seen.add(key)
                question = _value(at, qa, "question", str)
                yield SquadExample(key, title, question, context, answers, impossible), at


def _value(where: str, row: Any, key: str, kind: type, default: Any = None) -> Any:
    """`row[key]`, checked."""
    if not isinstance(row, dict):
        raise ValueError(f"{where}: expected an object with {key!r}, got {row!r:.80}")
    if key not in row and default is not None:
        return default
    if type(row.get(key)) is not kind:
        found = f"{row[key]!r:.80}" if key in row else f"the keys {[*row]}"
        raise ValueError(f"{where}: {key!r}: expected {kind.__name__}, got {found}")
    return row[key]


def _mismatch(context: str, answer: Answer) -> str | None:
    """A description of what is wrong with an answer, if anything."""
    text, start = answer
    if not text:
        return "the answer is empty"
    found = context[start : start + len(text)] if start >= 0 else ""
    if found == text:
        return None
    return f"the answer {text!r:.80} starts at {start}, but there the context has {found!r:.80}"


def _nearest(context: str, answer: Answer) -> Answer:
    """The occurrence closest to the answer's given position."""
    for text in filter(None, dict.fromkeys((answer.text, answer.text.strip()))):
        starts, start = [], context.find(text)
        while start >= 0:
            starts.append(start)
            start = context.find(text, start + 1)
        if starts:
            return Answer(text, min(starts, key=lambda start: abs(start - answer.start)))
    return Answer(answer.text, None)


def _candidates(key: str, candidates: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Candidates with Python floats, and keys in the official order."""
    where = f"{NBEST}, id {key!r}"
    rows = []
    for candidate in candidates or [()]:
        if set(candidate) != set(CANDIDATE_KEYS):
            few = "" if candidates else "at least one candidate; no answer is one too, with "
            raise ValueError(
                f"{where}: expected {few}the keys {CANDIDATE_KEYS}, got {[*candidate]}"
            )
        numbers = {name: _finite(where, candidate[name]) for name in CANDIDATE_KEYS[1:]}
        rows.append({"text": candidate["text"], **numbers})
    return rows


def _finite(where: str, value: Any) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{where}: expected a finite number, got {value}")
    return float(value)


def _load(path: Path) -> Any:
    return parse_json("".join(line for _, line in read_lines(path)), path)
