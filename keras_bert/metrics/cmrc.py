"""Scores of CMRC 2018, Chinese reading comprehension, as computed by its official script.

Cui et al. 2019, arXiv:1810.07366, section 4, and cmrc2018_evaluate.py (v5) of ymcui/cmrc2018. It
differs from SQuAD's: tokens are single Chinese characters and words of other scripts, articles are
kept, only some punctuation is removed, and F1 counts the longest common run of tokens.
"""

import functools
import re
from difflib import SequenceMatcher

from keras_bert.arguments import needed
from keras_bert.metrics.answer_checks import Answers, References, check_answers, percent

# The script's list. It lacks ASCII's full stop and comma and the opening single quote, and its
# ellipsis is an entry of two characters that no single character equals: all of these are kept.
_PUNCTUATION = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_CHINESE = re.compile("[\u4e00-\u9fa5]")


def cmrc_scores(references: References, predictions: Answers) -> dict[str, float]:
    """Exact match and F1 of CMRC 2018.

    Words of other scripts are split by NLTK's word tokenizer. The official script first splits such
    a run into sentences, with a model that has to be downloaded; this makes a difference only if a
    sentence ends inside the run, which never happens in the gold answers of CMRC's trial and dev
    sets.

    Args:
        references: gold texts by question id, at least one each.
        predictions: answer by question id. A missing question scores 0, and a warning names it.

    Returns:
        "exact_match", "f1" and their mean "average", in percent over all questions, and the
        number of questions as "total".

    Raises:
        ValueError: if there is no question, a question has no gold text, or a text is not a
            string.
        ImportError: if a text contains other scripts than Chinese and NLTK is not installed.
    """
    answered = check_answers(references, predictions)
    bare = [question for question, texts in references.items() if not texts]
    if bare:
        raise ValueError(f"{len(bare)} questions have no gold text, the first is {bare[0]!r}")
    exact, f1 = [], []
    for question in answered:
        texts, answer = references[question], predictions[question]
        exact.append(_without_punctuation(answer) in map(_without_punctuation, texts))
        tokens = tokenize(answer)
        f1.append(max(_f1(tokenize(text), tokens) for text in texts))
    total = len(references)
    scores = {"exact_match": percent(exact, total), "f1": percent(f1, total)}
    return scores | {"average": sum(scores.values()) / 2, "total": total}


def tokenize(text: str) -> list[str]:
    """Splits text into Chinese characters, and words of other scripts.

    Args:
        text: any text; it is lower-cased, and punctuation that CMRC ignores is dropped.
    """
    tokens, run = [], ""
    for character in _without_punctuation(text):
        if not _CHINESE.match(character):
            run += character
            continue
        tokens += _words(run)
        tokens.append(character)
        run = ""
    return tokens + _words(run)


def _without_punctuation(text: str) -> str:
    return "".join(c for c in text.lower().strip() if c not in _PUNCTUATION)


def _words(run: str) -> list[str]:
    return _word_tokenizer().tokenize(run) if run.strip() else []


@functools.cache
def _word_tokenizer():
    with needed("cmrc_scores", "NLTK", "--use-pep517 'keras3-bert[metrics]'"):
        from nltk.tokenize import NLTKWordTokenizer
    return NLTKWordTokenizer()


def _f1(gold: list[str], answer: list[str]) -> float:
    matcher = SequenceMatcher(None, gold, answer, autojunk=False)
    shared = matcher.find_longest_match(0, len(gold), 0, len(answer)).size
    return 2 * shared / (len(gold) + len(answer)) if shared else 0.0
