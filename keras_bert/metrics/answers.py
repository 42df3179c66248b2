"""What the scores of answered questions share: dicts checked, nothing lost without a word."""

import warnings
from collections.abc import Iterable, Mapping, Sequence

References = Mapping[str, Sequence[str]]
Answers = Mapping[str, str]

_NAMED = 20


def check_answers(references: References, predictions: Answers) -> list[str]:
    """Checks gold texts and answers, and warns of questions and answers that lack each other.

    Args:
        references: question id to its gold texts.
        predictions: question id to the answer.

    Returns:
        The ids of the questions that have an answer, in the order of `references`.

    Raises:
        ValueError: if there is no question, or gold texts or an answer have another form.
    """
    if not references:
        raise ValueError("Nothing to score: there are no questions.")
    for question, texts in references.items():
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"Question {question!r}: expected a list of texts, got {texts!r}.")
    for question, answer in predictions.items():
        if not isinstance(answer, str):
            raise ValueError(f"Question {question!r}: expected the answer's text, got {answer!r}.")
    _warn("questions without an answer, each of which scores 0", references, predictions)
    _warn("answers to no question here, which count nowhere", predictions, references)
    return [question for question in references if question in predictions]


def percent(values: Iterable[float], total: int) -> float:
    """The mean of `total` values in percent; values that are not there count 0."""
    return 100.0 * sum(values) / total


def _warn(what: str, ids: Mapping, known: Mapping) -> None:
    found = [name for name in ids if name not in known]
    if found:
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        names = ", ".join(map(str, found[:_NAMED]))
        warnings.warn(f"{len(found)} {what}: {names}{more}.", stacklevel=4)
