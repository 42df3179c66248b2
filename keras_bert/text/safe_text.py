"""Which lines tensorflow_text's fast ops are certain to tokenize exactly as BERT does.

tensorflow_text's one-pass tokenizer is fast and close to BERT's, but not identical: it folds case
(ß becomes ss, a final sigma a plain one), applies compatibility forms (… becomes three full stops,
a fullwidth comma an ASCII one) and counts a word's bytes. It is therefore used only for lines of
characters on which both agree; the tests compare every one of these. The lists need not be
complete: any other line is tokenized exactly too, only more slowly.

A list is the inside of an RE2 character class. `*_WORD` characters are part of a word;
`*_BREAK` characters (spaces, punctuation, CJK ideographs) end a word.
"""

from collections.abc import Sequence

MOST_FOUND_WHOLE = 20_000  # total characters of the tokens in one pattern
LONGEST_RUN = 64  # characters; only the exact implementation handles limits on longer words

ASCII_BREAK = r" \t\n\r!-/:-@\[-`{-~"

# Characters that, except for A-Z, neither lower-casing nor decomposition changes. They suffice for
# English and Chinese prose, and only ASCII letters have to be lower-cased.
PLAIN_BREAK = (
    ASCII_BREAK
    + r"\x{a0}\x{a1}\x{a7}\x{ab}\x{b6}\x{b7}\x{bb}\x{bf}"
    + r"\x{2010}-\x{2027}\x{2030}-\x{2043}\x{2045}-\x{2051}\x{2053}-\x{205e}"  # dashes, quotes, …
    + r"\x{3000}-\x{3003}\x{3008}-\x{3011}\x{3014}-\x{301f}\x{30fb}"  # CJK punctuation
    + r"\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}"  # ideographs
    + r"\x{ff01}-\x{ff03}\x{ff05}-\x{ff0a}\x{ff0c}-\x{ff0f}\x{ff1a}\x{ff1b}\x{ff1f}\x{ff20}"
    + r"\x{ff3b}-\x{ff3d}\x{ff3f}\x{ff5b}\x{ff5d}"  # fullwidth punctuation
)
PLAIN_WORD = (
    r"0-9A-Za-z\x{a2}-\x{a6}\x{a8}-\x{aa}\x{ac}\x{ae}-\x{b5}\x{b8}-\x{ba}\x{bc}-\x{be}\x{d7}"
    r"\x{df}\x{e6}\x{f0}\x{f7}\x{f8}\x{fe}"  # ß æ ð ÷ ø þ
    r"\x{5d0}-\x{5ea}\x{627}-\x{63a}\x{641}-\x{64a}\x{660}-\x{669}"  # Hebrew, Arabic
    r"\x{20a0}-\x{20c0}\x{2116}\x{2122}\x{2190}-\x{2199}"  # currencies, №, ™, arrows
    r"\x{2500}-\x{26ff}\x{1f300}-\x{1f64f}"  # box drawing, emoji
    r"\x{2044}\x{2103}\x{2212}\x{3007}\x{30fc}"  # ⁄ ℃ − 〇 ー
    r"\x{ff0b}\x{ff10}-\x{ff19}\x{ff1c}-\x{ff1e}\x{ff5e}"  # fullwidth digits and signs
)

# Cased text with accents kept is not changed at all.
CASED_WORD = PLAIN_WORD + (
    r"\x{c0}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{386}\x{388}-\x{38a}\x{38c}\x{38e}-\x{3a1}"
    r"\x{3a3}-\x{482}\x{48a}-\x{52f}\x{531}-\x{556}\x{561}-\x{587}"  # Latin, Greek, Cyrillic, ...
    r"\x{622}-\x{626}\x{671}-\x{6d3}\x{10d0}-\x{10fa}\x{1e00}-\x{1eff}"
    r"\x{3041}-\x{3096}\x{30a1}-\x{30fa}\x{30fc}-\x{30fe}\x{ac00}-\x{d7a3}"  # kana, Hangul
)

# Characters that tensorflow_text's normalizer maps to exactly one, as BERT does: lower, no accent.
FOLDED_BREAK = (
    ASCII_BREAK
    + r"\x{a0}\x{a1}\x{a7}\x{ab}\x{b6}\x{b7}\x{bb}\x{bf}"
    + r"\x{2010}\x{2012}-\x{2016}\x{2018}-\x{2023}\x{2027}"
    + r"\x{3000}-\x{3003}\x{3008}-\x{3011}\x{3014}-\x{301f}\x{30fb}"
    + r"\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}"
)
FOLDED_WORD = (
    r"0-9A-Za-z\x{a2}-\x{a6}\x{a9}\x{ac}\x{ae}\x{b0}\x{b1}\x{c0}-\x{de}\x{e0}-\x{131}"
    r"\x{134}-\x{13e}\x{141}-\x{148}\x{14a}-\x{17e}\x{1e00}-\x{1e99}\x{1ea0}-\x{1ef9}"  # Latin
    r"\x{400}-\x{482}\x{48a}-\x{52f}\x{531}-\x{556}\x{561}-\x{586}"  # Cyrillic, Armenian
    r"\x{5d0}-\x{5ea}\x{621}-\x{64a}\x{660}-\x{669}\x{679}-\x{6d3}\x{10d0}-\x{10fa}"
    r"\x{3041}-\x{3096}\x{309d}\x{309e}\x{30a1}-\x{30fa}\x{30fc}-\x{30fe}"  # kana
    r"\x{20a0}-\x{20a7}\x{20a9}-\x{20c0}\x{2500}-\x{25ff}\x{1f300}-\x{1f64f}"
)


def line_pattern(word: str, breaks: str, max_word_length: int) -> str:
    """The RE2 pattern that a whole line must match to be safe.

    Args:
        word: the characters of words, as the inside of a character class.
        breaks: the characters that end a word, as the inside of another.
        max_word_length: the tokenizer's limit, in characters. Words must not exceed it, nor
            `LONGEST_RUN`, so that no limit of the fast ops is reached.
    """
    run = f"[{word}]{{0,{min(max_word_length, LONGEST_RUN)}}}"
    return f"(?:{run}[{breaks}])*{run}"


def holding_pattern(tokens: Sequence[str]) -> str | None:
    """The RE2 pattern of the lines that may contain one of some tokens in normalized form.

    The lines are safe ones, normalized except for their case. "" if there are no tokens, None if
    there are too many for a pattern.
    """
    if sum(map(len, tokens)) > MOST_FOUND_WHOLE:
        return None
    spelled = ("".join("." if c == " " else rf"\x{{{ord(c):x}}}" for c in t) for t in tokens)
    return f"(?is).*(?:{'|'.join(spelled)}).*" if tokens else ""
