"""Questions and answers at the user's side: checks, and named results."""

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from keras_bert.data.rows import parse_json
from keras_bert.data.squad import Answer, SquadExample
from keras_bert.data.texts import as_strings, text_columns
from keras_bert.metrics import squad_v2_scores


class AnswerCandidate(NamedTuple):
    """One of the best answers to a question.

    Attributes:
        text: `context[start:end]`; "" for no answer.
        start: its first character, in Unicode code points; 0 for no answer.
        end: one past its last character; 0 for no answer.
        score: its probability among the n best.
        start_logit: start logit of its first piece.
        end_logit: end logit of its last piece.
    """

    text: str
    start: int
    end: int
    score: float
    start_logit: float
    end_logit: float


@dataclass(frozen=True)
class Prediction:
    """The answer to a question.

    Attributes:
        text: `context[start:end]`; "" for no answer.
        start: its first character in the context, in Unicode code points; 0 for no answer.
        end: one past its last character; 0 for no answer.
        score: its probability among the n best.
        null_score: the score of no answer minus that of the best answer, each a sum of two logits;
            equal to the value in `null_odds.json` of run_squad.py.
        candidates: the `top_k` best, best first. With a `null_threshold` "no answer" is ranked
            among them, and the first need not be the answer given.
    """

    text: str
    start: int
    end: int
    score: float
    null_score: float
    candidates: tuple[AnswerCandidate, ...]


def predictions(found: dict[str, np.ndarray], top_k: int | None) -> list[Prediction]:
    """Converts fields of an `NBest` of N questions, and `chosen`, int [N], to results.

    `top_k` is the number of candidates to return with each; None for all.
    """
    columns = ("text", "start", "end", "probability", "start_logit", "end_logit")
    texts, *numbers = (found[name].tolist() for name in columns)
    rows = [
        AnswerCandidate(text.decode(), *row) for text, *row in zip(texts, *numbers, strict=True)
    ]
    splits, odds = found["row_splits"].tolist(), found["null_score"].tolist()
    places = zip(found["chosen"].tolist(), splits[:-1], splits[1:], odds, strict=True)
    return [
        Prediction(*rows[best][:4], null_score, tuple(rows[begin:end][:top_k]))
        for best, begin, end, null_score in places
    ]


def graded(found: list[Prediction], rights: list[list[str]]) -> tuple[np.ndarray, ...]:
    """Compares answers with right ones, for the calibration of their scores.

    Args:
        found: N answers with all of their candidates.
        rights: texts of the right answers to each question, [] for none.

    Returns:
        (sums of the logits of C candidates, float64 [N, C], -inf for those that are none; the
        index of the answer given among them, int [N]; its F1 with the nearest right answer, [N]).
    """
    logits = np.full([len(found), max((len(p.candidates) for p in found), default=1)], -np.inf)
    chosen, grades = [], []
    for row, (one, texts) in enumerate(zip(found, rights, strict=True)):
        logits[row, : len(one.candidates)] = [c.start_logit + c.end_logit for c in one.candidates]
        spans = [(c.start, c.end) for c in one.candidates]
        chosen.append(spans.index((one.start, one.end)))
        grades.append(squad_v2_scores({"": texts}, {"": one.text})["f1"] / 100)
    return logits, np.array(chosen, int), np.array(grades)


def as_examples(columns: Sequence, answers: Sequence) -> list[SquadExample]:
    """Combines questions and contexts with answers as `answer_spans` takes them."""
    found = []
    for row, (*texts, answer) in enumerate(zip(*columns, answers, strict=True)):
        if not isinstance(answer, SquadExample):
            given = () if answer is None else (Answer(*answer),)
            answer = SquadExample(str(row), "", *texts, given, answer is None)
        found.append(answer)
    return found


def question_columns(x: Any) -> tuple[list, list]:
    """Checks questions and contexts, and returns them as lists of str."""
    if not isinstance(x, tuple):
        raise TypeError(
            f"expected (questions, contexts) or a list of SquadExample, got {type(x).__name__}"
        )
    questions, contexts = map(as_strings, text_columns(x))
    return questions, contexts


def answer_spans(contexts: Sequence[str], answers: Sequence) -> np.ndarray:
    """Finds answers in their contexts: first character and one past the last, int32 [N, 2].

    Answers are (text, first character), or None for no answer, whose span is 0, 0; or
    `SquadExample`, whose first answer with a known place is used.

    Raises:
        ValueError: if an answer is not at its stated place, or an example has none and is not
            marked so; the error names the row, and the example's id.
    """
    spans = np.zeros((len(contexts), 2), "int32")
    for row, (context, answer) in enumerate(zip(contexts, answers, strict=True)):
        where = f"row {row}"
        if isinstance(answer, SquadExample):
            where += f", id {answer.id!r}"
            answer = _to_learn(answer, where)
        if answer is None:
            continue
        if not _is_answer(answer):
            raise ValueError(
                f"{where}: the answer is {answer!r:.80}; expected (text, first character in the "
                "context), or None for no answer"
            )
        text, start = answer
        end = start + len(text)
        found = context[start:end] if start >= 0 else ""
        if not text or found != text:
            raise ValueError(
                f"{where}: the answer {text!r:.80} should start at character {start}, but there "
                f"the context has {found!r:.80}"
            )
        spans[row] = start, end
    return spans


def first_answer(value: Any) -> tuple[str, int] | None:
    """The answer to train on in a cell of a table, (text, first character) or None.

    The cell holds a list of answers, (text, first character) or objects with `text` and
    `answer_start`; or an object with a list of each, as in Hugging Face's SQuAD.
    """
    if isinstance(value, str):
        value = parse_json(value, "the cell") if value.strip() else []
    if isinstance(value, dict) and {"text", "answer_start"} <= value.keys():
        starts = value["answer_start"]
        value = [*zip(value["text"], starts, strict=False)] if isinstance(starts, list) else [value]
    if not isinstance(value, list | tuple | None):
        raise ValueError(f"answers={value!r:.80}: expected a list of (text, first character)")
    if not value:
        return None
    first = value[0]
    text, start = map(first.get, ("text", "answer_start")) if isinstance(first, dict) else first
    if not text:
        return None
    if isinstance(start, str) and start.strip().isdecimal():
        start = int(start)
    if (
        not isinstance(text, str)
        or not isinstance(start, numbers.Integral)
        or isinstance(start, bool)
    ):
        raise ValueError(
            f"answer {(text, start)!r:.80}: expected a text and its first character in the context"
        )
    return text, int(start)


def row_labels(y: Any, length: int | None = None) -> Any:
    """Checks labels of questions: answers, which stay, or spans of rows of ids, to int32 [R, 2].

    Spans are the columns of first and last piece, [R, 2] or a dict of `start` and `end`, below
    `length` if that is known. An error names the row.
    """
    if isinstance(y, dict):
        if set(y) != {"start", "end"}:
            raise ValueError(f"labels have the keys {[*y]}; expected start and end")
        y = np.stack([np.asarray(y["start"]), np.asarray(y["end"])], axis=1)
    elif not hasattr(y, "dtype"):
        if any(one is None or isinstance(one, SquadExample) or _is_answer(one) for one in y):
            return list(y)  # wrong ones are found later, with their contexts
    labels = np.asarray(y)
    if labels.ndim != 2 or labels.shape[1] != 2 or labels.dtype.kind not in "iu":
        raise ValueError(
            f"labels are {labels.dtype} of shape {labels.shape}; expected the columns of first "
            "and last piece, integers [R, 2]; answers (text, first character) go with texts"
        )
    wrong = (labels[:, 0] < 0) | (labels[:, 1] < labels[:, 0])
    if length is not None:
        wrong |= labels[:, 1] >= length
    if wrong.any():
        row = int(np.argmax(wrong))
        within = "" if length is None else f" below {length}"
        raise ValueError(
            f"label {labels[row].tolist()} in row {row} is no span; expected 0 <= start <= end"
            f"{within}"
        )
    return labels.astype("int32")


def _to_learn(example: SquadExample, where: str) -> Answer | None:
    for answer in example.answers:
        if answer.start is not None:
            return answer
    if example.is_impossible:
        return None
    problem = "none of its answers stands in the context" if example.answers else "it has no answer"
    raise ValueError(f"{where}: {problem}, and is_impossible is not said")


def _is_answer(answer: Any) -> bool:
    return (
        isinstance(answer, tuple | list)
        and len(answer) == 2
        and isinstance(answer[0], str)
        and isinstance(answer[1], int | np.integer)
    )
