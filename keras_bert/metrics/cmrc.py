"""Scores of CMRC 2018, reading comprehension in Chinese, as its official script computes them.

Cui et al. 2019, arXiv:1810.07366, section 4, and cmrc2018_evaluate.py (v5) of ymcui/cmrc2018. It
differs from SQuAD's: tokens are single Chinese characters and words of other scripts, articles
stay, only some punctuation goes, and F1 counts the longest run of tokens that both texts hold.
"""

import functools
import re
from difflib import SequenceMatcher

from keras_bert.metrics.answers import Answers, References, check_answers, percent

# The script's list. It has no full stop or comma of ASCII, no opening single quote, and its
# ellipsis is an entry of two characters, which no single character equals: all of these stay.
_PUNCTUATION = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_CHINESE = re.compile("[\u4e00-\u9fa5]")


def cmrc_scores(references: References, predictions: Answers) -> dict[str, float]:
    """Exact match and F1 of CMRC 2018.

    Words of other scripts are cut by NLTK's word tokenizer. The official script cuts such a run
    into sentences first, by a model that has to be downloaded; that shows only where a sentence
    ends inside the run, which is nowhere in the gold answers of CMRC's trial and dev sets.

    Args:
        references: question id to its gold texts, one or more.
        predictions: question id to the answer. A question that is not in it scores 0, and a
            warning names it.

    Returns:
        "exact_match", "f1" and their mean "average", in percent over all questions, and the
        number of questions as "total".

    Raises:
        ValueError: if there is no question, a question has no gold text, or a text is not a
            string.
        ImportError: if a text holds other scripts than Chinese and NLTK is not installed.
    """
    answered = check_answers(references, predictions)
    bare = [question for question, texts in references.items() if not texts]
    if bare:
        raise ValueError(f"{len(bare)} questions have no gold text, the first is {bare[0]!r}.")
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
    """Chinese characters one by one, and the words of what lies between them.

    Args:
        text: any text; it is lower-cased, and the punctuation that CMRC ignores is dropped.
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
    try:
        from nltk.tokenize import NLTKWordTokenizer
    except ImportError as error:
        message = "cmrc_scores needs NLTK: `pip install --use-pep517 'keras3-bert[metrics]'`"
        raise ImportError(message) from error
    return NLTKWordTokenizer()


def _f1(gold: list[str], answer: list[str]) -> float:
    matcher = SequenceMatcher(None, gold, answer, autojunk=False)
    shared = matcher.find_longest_match(0, len(gold), 0, len(answer)).size
    return 2 * shared / (len(gold) + len(answer)) if shared else 0.0
