"""The rule of google-research/bert's FullTokenizer in plain Python, for the tests to compare with.

Written apart from `keras_bert.text`, character by character on Python's own Unicode data, with no
thought of speed. Right where `unicodedata` is Unicode 14.0 (Python 3.11).
"""

import unicodedata

IDEOGRAPHS = [
    range(0x3400, 0x4DC0),
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2B740),
    range(0x2B740, 0x2B820),
    range(0x2B820, 0x2CEB0),
    range(0x2F800, 0x2FA20),
]


def is_dropped(char):
    if char in "\t\n\r":
        return False
    return char in "\0\ufffd" or unicodedata.category(char) in ("Cc", "Cf")


def is_ideograph(char):
    return any(ord(char) in block for block in IDEOGRAPHS)


def is_punctuation(char):
    ascii_symbol = " " < char < "\x7f" and not char.isalnum()
    return ascii_symbol or unicodedata.category(char)[0] == "P"


def normalize_word(word, lowercase, strip_accents):
    if lowercase:
        word = word.lower()
    if strip_accents:
        word = unicodedata.normalize("NFD", word)
        word = "".join(char for char in word if unicodedata.category(char) != "Mn")
    return word


def split_words(text, lowercase=True, strip_accents=None):
    """Cleans, normalises and splits `text` (str or bytes) into words."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "ignore")
    if strip_accents is None:
        strip_accents = lowercase
    spaced = "".join(
        f" {char} " if is_ideograph(char) else char for char in text if not is_dropped(char)
    )
    words = []
    for token in spaced.split():
        open_word = ""
        for char in normalize_word(token, lowercase, strip_accents):
            if is_punctuation(char):
                words += [open_word, char]
                open_word = ""
            else:
                open_word += char
        words.append(open_word)
    return [word for word in words if word]


def split_pieces(word, vocabulary, max_word_length=200):
    """Cuts a word into the longest pieces of `vocabulary` from the left, or gives one [UNK]."""
    if len(word) > max_word_length:
        return ["[UNK]"]
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


def tokenize(text, tokens, lowercase=True, strip_accents=None, max_word_length=200):
    """Returns the ids of `text` in the vocabulary `tokens`, a list of strings."""
    ids = {token: index for index, token in enumerate(tokens)}
    return [
        ids[piece]
        for word in split_words(text, lowercase, strip_accents)
        for piece in split_pieces(word, ids, max_word_length)
    ]
