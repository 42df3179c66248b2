"""Scores of SQuAD, in percent, as computed by its two official scripts.

v1.1: Rajpurkar et al. 2016, arXiv:1606.05250, section 5, and evaluate-v1.1.py. v2.0, with
unanswerable questions: Rajpurkar, Jia and Liang 2018, arXiv:1806.03822, and evaluate-v2.0.py. Both
compare normalized texts and take the best score over a question's gold texts. They differ in the F1
of texts that are empty after normalization, so each has its own function here.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Mapping

from keras_bert.metrics.answer_checks import Answers, References, check_answers, percent

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalize_answer(text: str) -> str:
    """Normalizes a text: lower case, no ASCII punctuation, no articles, single spaces."""
    text = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def squad_v1_scores(references: References, predictions: Answers) -> dict[str, float]:
    """Exact match and F1 of SQuAD v1.1, where every question has an answer.

    Args:
        references: gold texts by question id, at least one each.
        predictions: answer by question id. A missing question scores 0, and a warning names it;
            another warning names answers to unknown questions.

    Returns:
        "exact_match" and "f1", in percent over all questions, and their number as "total".

    Raises:
        ValueError: if there is no question, a question has no gold text (use `squad_v2_scores`),
            or a text is not a string.
    """
    answered = check_answers(references, predictions)
    for question, texts in references.items():
        if not any(texts):
            raise ValueError(
                f"Question {question!r} has no gold answer (got {list(texts)!r}), but SQuAD v1.1 "
                "expects one: use squad_v2_scores"
            )
    exact, f1 = _best(references, predictions, answered, _overlap_f1)
    total = len(references)
    return {
        "exact_match": percent(exact.values(), total),
        "f1": percent(f1.values(), total),
        "total": total,
    }


def squad_v2_scores(
    references: References,
    predictions: Answers,
    null_odds: Mapping[str, float] | None = None,
    threshold: float | None = None,
) -> dict[str, float]:
    """Exact match and F1 of SQuAD v2.0, which has unanswerable questions.

    Args:
        references: gold texts by question id; `[""]` or `[]` if there is no answer.
        predictions: answer by question id, "" for none. A missing question scores 0, and a warning
            names it (the official script omits it from one mean and fails in the next).
        null_odds: by question id, how much the model prefers no answer: with BERT the null score
            minus the best span's, as in `null_odds.json`; a probability works too. If given, the
            best thresholds are searched; `predictions` should then be the best non-empty answers.
        threshold: if given, answers with odds above it are replaced by no answer before scoring.

    Returns:
        "exact", "f1" and "total" over all questions; the same with "HasAns_" over those with an
        answer and "NoAns_" over those without, if there are any; with `null_odds`
        "best_exact" and "best_f1", the best scores that a threshold can reach, and
        "best_exact_thresh" and "best_f1_thresh", the lowest such thresholds. These four equal
        the script's, including its two quirks: if no threshold beats never answering, the
        threshold is 0.0; and questions with equal odds may be split between answer and no
        answer, a score that no threshold reaches. Scores are in percent.

    Raises:
        ValueError: if there is no question, a text is not a string, odds are missing or not
            finite, or `threshold` is given without odds.
    """
    answered = check_answers(references, predictions)
    has_answer = {question: any(texts) for question, texts in references.items()}
    # Gold texts that are empty after normalization are dropped; without any there is no answer.
    golds = {
        question: [text for text in texts if normalize_answer(text)] or [""]
        for question, texts in references.items()
    }
    exact, f1 = _best(golds, predictions, answered, _f1_or_none)
    if null_odds is None and threshold is not None:
        raise ValueError(f"threshold={threshold}: expected null_odds to compare it with")
    best = {}
    if null_odds is not None:
        bad = [q for q in answered if not math.isfinite(null_odds.get(q, math.nan))]
        if bad:
            raise ValueError(
                f"null_odds of {len(bad)} of the {len(answered)} answered questions: expected "
                f"finite numbers; the first is {null_odds.get(bad[0])} of {bad[0]!r}"
            )
        for name, scores in (("exact", exact), ("f1", f1)):
            score, at = _best_threshold(scores, predictions, null_odds, has_answer)
            best |= {f"best_{name}": percent([score], len(references)), f"best_{name}_thresh": at}
    if threshold is not None:
        for question in answered:
            if null_odds[question] > threshold:
                exact[question] = f1[question] = float(not has_answer[question])
    found = {}
    for prefix, kinds in (("", (True, False)), ("HasAns_", (True,)), ("NoAns_", (False,))):
        questions = [question for question, has in has_answer.items() if has in kinds]
        if questions:
            total = len(questions)
            found[f"{prefix}exact"] = percent((exact.get(q, 0.0) for q in questions), total)
            found[f"{prefix}f1"] = percent((f1.get(q, 0.0) for q in questions), total)
            found[f"{prefix}total"] = total
    return found | best


def _best(golds, predictions, answered, f1_of):
    """Exact match and F1 of each answered question, the best over its gold texts."""
    exact, f1 = {}, {}
    for question in answered:
        answer = normalize_answer(predictions[question])
        texts = [normalize_answer(text) for text in golds[question]]
        exact[question] = float(answer in texts)
        f1[question] = max(f1_of(text.split(), answer.split()) for text in texts)
    return exact, f1


def _overlap_f1(gold: list[str], answer: list[str]) -> float:
    shared = sum((Counter(gold) & Counter(answer)).values())
    # 2 P R / (P + R) of P = shared / len(answer) and R = shared / len(gold)
    return 2 * shared / (len(gold) + len(answer)) if shared else 0.0


def _f1_or_none(gold: list[str], answer: list[str]) -> float:
    if not gold or not answer:
        return float(gold == answer)
    return _overlap_f1(gold, answer)


def _best_threshold(scores, predictions, null_odds, has_answer) -> tuple[float, float]:
    """The best sum of scores if answers with odds above a threshold are dropped, and where.

    In ascending order of odds, one more question gets its answer. An unanswerable one loses its
    point then, unless the prediction is "" itself, without normalization, as in the script.
    """
    total = best = float(sum(not has_answer[question] for question in scores))  # never answering
    at = 0.0
    for question in sorted(null_odds, key=null_odds.__getitem__):
        if question in scores:
            total += scores[question] if has_answer[question] else -bool(predictions[question])
        if total > best:
            best, at = total, null_odds[question]
    return best, at
