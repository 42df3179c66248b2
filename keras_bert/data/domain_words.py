"""Words of a domain that a vocabulary lacks."""

from collections import Counter
from collections.abc import Iterable
from itertools import islice

from keras_bert.arguments import check_count

CHUNK = 1000  # texts tokenized at once


def split_words(texts: Iterable[str], tokenizer, most: int = 500, min_count: int = 5) -> list[str]:
    """Finds the most frequent words that a tokenizer splits into several pieces.

    Give them to `keras_bert.resize(model, new_tokens=...)` before the model is trained further.

    Args:
        texts: any iterable of texts.
        tokenizer: a `BertTokenizer`.
        most: number of words to return at most.
        min_count: less frequent words are left out.

    Returns:
        Words of letters alone, as the tokenizer normalises them, the most frequent first; words of
        equal frequency in alphabetical order. Words that become [UNK] are not among them.

    Raises:
        TypeError: if `texts` is a single string.
        ValueError: if a number is not positive.
    """
    if isinstance(texts, str | bytes):
        raise TypeError("texts is one string: expected an iterable of strings")
    check_count("most", most)
    check_count("min_count", min_count)
    vocabulary = tokenizer.get_vocabulary()
    counts: Counter[str] = Counter()
    texts = iter(texts)
    while chunk := list(islice(texts, CHUNK)):
        for ids in tokenizer.tokenize(chunk).to_list():
            word, pieces = "", 0
            for token in (*(vocabulary[i] for i in ids), ""):  # "" ends the last word
                if token.startswith("##") and len(token) > 2:
                    word, pieces = word + token[2:], pieces + 1
                    continue
                if pieces > 1 and word.isalpha():
                    counts[word] += 1
                word, pieces = token, 1
    ranked = sorted((-count, word) for word, count in counts.items() if count >= min_count)
    return [word for _, word in ranked[:most]]
