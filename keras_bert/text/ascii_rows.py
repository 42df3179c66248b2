"""Rows of ids for ASCII texts in Python, without TensorFlow: for servers that answer one at a time.

In ASCII BERT's rules need no tables: letters and digits make words, every other printable character
is one by itself, and control characters are dropped. The words of a language recur, so their
pieces are looked up in a cache. A call of a TensorFlow graph takes longer than the whole text.
"""

import re
from collections.abc import Sequence

import numpy as np

from keras_bert.text.vocabulary import UNKNOWN

KEPT_WORDS = 1 << 17  # of the cache, which is emptied when it is full
_DROPPED = {code: None for code in (*range(32), 127) if chr(code) not in "\t\n\r"}
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_WORD = re.compile("[0-9A-Za-z]+|[!-/:-@\\[-`{-~]")


class AsciiRows:
    """Converts ASCII texts to [CLS] pieces [SEP], as `BertTokenizer` and the preprocessor do.

    Only for tokenizers with splitting "bert" that match no tokens in the text.

    Args:
        vocabulary: the tokens; an index is an id. Of duplicates the last counts.
        lowercase: whether to lower-case.
        max_word_length: a word of more characters becomes [UNK].
        sequence_length: maximum number of tokens in a row.
        first: id of [CLS].
        last: id of [SEP].
        padding: id of [PAD].
    """

    def __init__(
        self,
        vocabulary: Sequence[str],
        lowercase: bool,
        max_word_length: int,
        sequence_length: int,
        first: int,
        last: int,
        padding: int,
    ):
        self._ids = {token: number for number, token in enumerate(vocabulary)}
        self._lowercase, self._max_word_length = lowercase, max_word_length
        self._room = sequence_length - 2
        self._first, self._last, self._padding = first, last, padding
        self._cache: dict[str, list[int]] = {}

    def __call__(self, texts: Sequence[str | bytes]) -> dict[str, np.ndarray] | None:
        """`token_ids`, `segment_ids` and `padding_mask` of B texts, int32 [B, T of the longest].

        None if a text is not ASCII.
        """
        rows = []
        for text in texts:
            if not text.isascii():
                return None
            rows.append(self._row(text if isinstance(text, str) else text.decode("ascii")))
        width = max(map(len, rows), default=2)
        ids = np.full((len(rows), width), self._padding, np.int32)
        mask = np.zeros((len(rows), width), np.int32)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        return {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": mask}

    def _row(self, text: str) -> list[int]:
        if _CONTROL.search(text):
            text = text.translate(_DROPPED)
        if self._lowercase:
            text = text.lower()
        cache, row, room = self._cache, [self._first], self._room + 1
        for word in _WORD.findall(text):
            pieces = cache.get(word)
            row += self._pieces(word) if pieces is None else pieces
            if len(row) > room:
                del row[room:]
                break
        row.append(self._last)
        return row

    def _pieces(self, word: str) -> list[int]:
        """Splits a word greedily from the left, as google-research/bert's WordpieceTokenizer."""
        found: list[int] = []
        start, prefix = 0, ""
        if len(word) > self._max_word_length:
            return [self._ids[UNKNOWN]]  # not kept: such words do not recur
        while start < len(word):
            for end in range(len(word), start, -1):
                number = self._ids.get(prefix + word[start:end])
                if number is not None:
                    break
            else:
                found = [self._ids[UNKNOWN]]
                break
            found.append(number)
            start, prefix = end, "##"
        if len(self._cache) >= KEPT_WORDS:
            self._cache.clear()
        self._cache[word] = found
        return found
