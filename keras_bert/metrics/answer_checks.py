"""Shared parts of question answering metrics: checks of the input, and warnings."""

import warnings
from collections.abc import Iterable, Mapping, Sequence

References = Mapping[str, Sequence[str]]
Answers = Mapping[str, str]

_NAMED = 20


def check_answers(references: References, predictions: Answers) -> list[str]:
    """The ids of the answered questions, in the order of `references`, gold texts by id.

    Warns about questions and answers without each other.

    Raises:
        ValueError: if there is no question, or gold texts or an answer have the wrong type.
    """
    if not references:
        raise ValueError("Nothing to score: there are no questions")
    for question, texts in references.items():
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"Question {question!r}: expected a list of texts, got {texts!r}")
    for question, answer in predictions.items():
        if not isinstance(answer, str):
            raise ValueError(f"Question {question!r}: expected the answer's text, got {answer!r}")
    _warn("questions without an answer, each of which scores 0", references, predictions)
    _warn("answers without a question, which are ignored", predictions, references)
    return [question for question in references if question in predictions]


def percent(values: Iterable[float], total: int) -> float:
    """The mean of `total` values in percent; missing values count as 0."""
    return 100.0 * sum(values) / total


def _warn(what: str, ids: Mapping, known: Mapping) -> None:
    found = [name for name in ids if name not in known]
    if found:
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        names = ", ".join(map(str, found[:_NAMED]))
        warnings.warn(f"{len(found)} {what}: {names}{more}.", stacklevel=4)
