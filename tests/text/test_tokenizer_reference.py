"""The tokenizer against a plain Python implementation of the rule, over all of Unicode."""

import random
import runpy
import unicodedata
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.text import safe_text, unicode_tables
from keras_bert.text.lines import LineTokenizer, bytes_to_characters, map_lines
from keras_bert.text.tokenizer import BertTokenizer
from keras_bert.text.words import WordSplitter

from . import reference_tokenizer as reference
from .toy_vocab import TOY_VOCAB

ROOT = Path(__file__).parents[2]
SETTINGS = list(product([True, False], [True, False]))
same_unicode = pytest.mark.skipif(
    unicodedata.unidata_version != unicode_tables.UNICODE_VERSION,
    reason="the reference uses Python's Unicode data, which is of another version here",
)

NASTY = [
    "",
    " \t\r\n\x0b\x0c\x1c\x85\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000",
    "a\u2028b\u2029c\x1cd\x85e\x0bf",
    "ΣΑΣ ΟΔΥΣΣΕΥΣ Σ ΣΣ aΣ. Σ' ΑΣ’Α ΑΣ’ ΑΣ\u0301 \u0301Σ ΑΣ\u00adΑ ΑΣ中Σ ͅΣ ᾳΣ",
    "İIıi ǅ ŉ ß ẞ ﬁ ﬀ K Å Ω µ",
    "é e\u0301 e\u0327\u0301 e\u0301\u0327 ǭ ậ \u0301 \u0301\u0301 \u0301a",
    "한국어 ᄒ\u1161\u11ab 각 \u1100\u1161\u11a8",
    "a\u302e\u16ff0\u302f b\U0001d165\U00016ff0 \U0001d15e\U00016ff0\u302e\u0301x",
    "क्षि ก็ำ שָׁלוֹם العَرَبِيَّة తెలుగు",
    "\u037e \u1fef \u2329a\u232a \u2000 \u00b4 \u0340 \u0387",
    "中国人abc中 \uf900\ufa10\U0002f800x𠀀𪜀𫝀𫠠あ゙カ゛",
    "don't-stop_me (now) $5+5=10 ~`^|<>",
    "😀👩\u200d👩\u200d👧 ☺\ufe0f hello😀",
    "\ufeff\u200b\u00ad\u2060\ufffd\x00\ue000\U000e0001\U0010ffff\ufdd0",
    "[UNK] [MASK] ##ing ##s # ## [PAD",
    "x" * 199 + " " + "x" * 200 + " " + "x" * 201 + " " + "é" * 200 + " " + "é" * 201,
    "e\u0301" * 200 + " " + "e\u0301" * 201 + " " + "İ" * 100 + " " + "İ" * 101 + " " + "각" * 67,
]
BROKEN = [
    b"\xff\xfea\xc3",
    b"caf\xc3\xa9\xc3 \xa9",
    b"\xed\xa0\x80x\xed\xb0\x80 \xf4\x90\x80\x80y",
    b"\xe4\xb8\xe4\xb8\xad \xf0\x9f\x98 ok\xf0\x9f",
    b"\xc0\x80\xe0\x80\x80z",
]


def characters_vocabulary(texts):
    """A vocabulary with each word of `texts` in pieces of one to three characters."""
    rng = random.Random(0)
    pieces = {}
    for text in texts:
        for lowercase, strip in SETTINGS:
            for word in reference.split_words(text, lowercase, strip):
                start = 0
                while start < len(word):
                    size = rng.randint(1, 3)
                    if rng.random() < 0.9:
                        pieces["##" * (start > 0) + word[start : start + size]] = None
                    start += size
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(pieces.keys() - {"[UNK]"})]


def random_lines(count, seed):
    """Lines of one to three random scripts each, with spaces, marks and punctuation between."""
    rng = random.Random(seed)
    blocks = [block for block in range(0, 0x30000, 128) if not 0xD800 <= block < 0xE000]
    special = "Σσς.,'-’\u0301\u0327\u200b\u00ad  \u2028İ中\ufffd[MASK]"
    lines = []
    for _ in range(count):
        mine = rng.choices(blocks[:64] if rng.random() < 0.5 else blocks, k=rng.randint(1, 3))
        line = [
            rng.choice(special)
            if rng.random() < 0.25
            else chr(rng.choice(mine) + rng.randrange(128))
            for _ in range(rng.randint(0, 40))
        ]
        lines.append("".join(line))
    return lines


def check(lines, tokens, lowercase, strip, limit=200):
    """Compares ids with the reference's, and each piece with the text at its offsets."""
    tokenizer = LineTokenizer(tokens, lowercase, strip, {}, limit)
    pieces = tokenizer.pieces(lines)
    ids, starts, ends = (field.to_list() for field in pieces)
    wrong = [
        (line, reference.split_words(line, lowercase, strip), got)
        for line, got in zip(lines, ids, strict=True)
        if got != reference.tokenize(line, tokens, lowercase, strip, limit)
    ]
    assert not wrong, f"{len(wrong)} lines differ, such as {wrong[0]}"
    _, firsts, lasts = (field.to_list() for field in bytes_to_characters(lines, pieces))
    for line, *row in zip(lines, ids, starts, ends, firsts, lasts, strict=True):
        data = line if isinstance(line, bytes) else line.encode()
        text = data.decode("utf-8", "ignore")
        assert row[1] == sorted(row[1]) and row[2] == sorted(row[2])
        for piece, a, b, c, d in zip(*row, strict=True):
            assert data[a:b].decode("utf-8", "ignore") == text[c:d]
            if tokens[piece] == "[UNK]" or any(map(unicodedata.combining, text[c:d])):
                continue
            # A sigma's form and marks' order hang on neighbours; all else is seen in the slice.
            normal = "".join(reference.split_words(text[c:d], lowercase, strip))
            assert tokens[piece].removeprefix("##").replace("ς", "σ") in normal.replace("ς", "σ")


@pytest.mark.one_quick
@same_unicode
@pytest.mark.parametrize(("lowercase", "strip"), SETTINGS)
def test_nasty_texts(lowercase, strip):
    check(NASTY + BROKEN, characters_vocabulary(NASTY + BROKEN), lowercase, strip)


@pytest.mark.one_quick
@same_unicode
@pytest.mark.parametrize(("lowercase", "strip"), SETTINGS)
def test_random_text_of_every_script(lowercase, strip):
    lines = random_lines(600, seed=2 * lowercase + strip)
    check(lines, characters_vocabulary(lines[::2]), lowercase, strip, limit=12)


def split_words(lines, lowercase, strip):
    """The words that the exact path finds in each line."""
    words = WordSplitter(lowercase, strip)(tf.constant(lines), offsets=False)
    text = tf.RaggedTensor.from_row_splits(words.characters.code, words.splits)
    line = tf.gather(words.characters.line, words.splits[:-1])
    rows = tf.RaggedTensor.from_value_rowids(
        tf.strings.unicode_encode(text, "UTF-8"), line, len(lines)
    )
    return [[word.decode() for word in row] for row in rows.to_list()]


def check_code_points(codes, lowercase, strip):
    """Compares what becomes of each code point inside a word, alone, and near a sigma."""
    lines = [f"a{chr(code)}b {chr(code)}Σ AΣ{chr(code)}" for code in codes]
    got = split_words(lines, lowercase, strip)
    wrong = [
        f"U+{code:04X}"
        for code, line, words in zip(codes, lines, got, strict=True)
        if words != reference.split_words(line, lowercase, strip)
    ]
    assert not wrong


def code_points():
    return [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def is_one_of_many(code):
    """Whether a code point is unassigned, private, an ideograph or a Hangul syllable."""
    char = chr(code)
    return (
        unicodedata.category(char) in ("Cn", "Co")
        or unicodedata.name(char, "").startswith(("CJK", "HANGUL", "TANGUT", "NUSHU", "KHITAN"))
        or 0x12000 <= code < 0x17000  # cuneiform, hieroglyphs
    )


@pytest.mark.one_quick
@same_unicode
@pytest.mark.parametrize(("lowercase", "strip"), SETTINGS)
def test_code_points(lowercase, strip):
    """All but some of those code points that are alike by the thousand."""
    codes = [code for code in code_points() if code % 101 == 0 or not is_one_of_many(code)]
    check_code_points(codes, lowercase, strip)


@pytest.mark.slow
@same_unicode
@pytest.mark.parametrize(("lowercase", "strip"), SETTINGS)
def test_every_code_point(lowercase, strip):
    codes = code_points()
    for start in range(0, len(codes), 1 << 18):
        check_code_points(codes[start : start + (1 << 18)], lowercase, strip)


def road_characters(pattern_class):
    """The characters of the inside of an RE2 character class."""
    pattern = f"[{pattern_class}]"
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    matches = tf.strings.regex_full_match(characters, pattern).numpy()
    return [char for char, match in zip(characters, matches, strict=True) if match]


@pytest.mark.one_quick
@same_unicode
@pytest.mark.parametrize(
    ("settings", "word", "breaks", "road"),
    [
        ([s for s in SETTINGS if s != (False, False)], "PLAIN_WORD", "PLAIN_BREAK", 0),
        ([(False, False)], "CASED_WORD", "PLAIN_BREAK", 0),
        ([(True, True)], "FOLDED_WORD", "FOLDED_BREAK", 1),
    ],
)
def test_safe_characters_are_safe(settings, word, breaks, road):
    """On every safe character, in several surroundings, a fast road does as the exact one."""
    word, breaks = getattr(safe_text, word), getattr(safe_text, breaks) + r"\["
    in_word, in_break = road_characters(word), road_characters(breaks)
    assert len(in_word) > 500 and len(in_break) > 20_000
    assert not set(in_word) & set(in_break)
    lines = [f"a{char}b {char} {char}{char}B {char}é" for char in in_word + in_break]
    lines = [line.removesuffix("é") for line in lines]
    for lowercase, strip in settings:
        assert all(
            len(reference.normalize_word(char, lowercase, strip)) == 1 for char in in_word
        ), "a word may grow beyond the length that was checked"
        assert all(
            not reference.split_words(char, lowercase, strip)
            or reference.is_punctuation(char)
            or reference.is_ideograph(char)
            for char in in_break
        )
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##b", "b", "é", "##é"]
        tokens += [
            prefix + normal
            for normal in dict.fromkeys(
                reference.normalize_word(char, lowercase, strip)
                for char in in_word + in_break[:300] + in_break[-100:]
            )
            for prefix in ("", "##")
            if prefix + normal not in tokens
        ]
        tokenizer = LineTokenizer(tokens, lowercase, strip, {}, 200)
        pattern = tokenizer.roads[road].pattern
        assert tf.reduce_all(tf.strings.regex_full_match(lines, pattern))
        text = tf.constant(lines)
        fast = tokenizer.take_roads(text, tokenizer.roads[road : road + 1], offsets=True)
        exact = tokenizer.take_roads(text, (), offsets=True)
        for one, other in zip(fast, exact, strict=True):
            np.testing.assert_array_equal(one.row_splits, other.row_splits)
            np.testing.assert_array_equal(one.flat_values, other.flat_values)


def test_unsafe_lines_do_not_take_a_fast_road():
    pattern = safe_text.line_pattern(safe_text.PLAIN_WORD, safe_text.PLAIN_BREAK, 5)
    safe = ["", "the cat", "abcde fghij", "中国人，（好）", "don’t — “no”…", "a[b"]
    unsafe = ["abcdef", "é", "Σ", "\x00", "a\u200bb", "\ufffd", "가"]
    assert tf.strings.regex_full_match(safe, pattern).numpy().all()
    assert not tf.strings.regex_full_match(unsafe, pattern).numpy().any()
    assert not tf.strings.regex_full_match([b"\xff"], pattern).numpy().any()


@pytest.mark.one_quick
@pytest.mark.parametrize("seed", range(6))
def test_random_vocabularies(seed):
    """Longest match first, whatever the vocabulary: no `##`, bare `##`, `#`, doubles, blanks."""
    rng = random.Random(seed)
    alphabet = "ab#中'é"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    odd = [
        "",
        "##",
        "#",
        "###",
        "##'",
        "a'b",
        "a b",
        " a",
        "##中",
        "中国",
        "1",
        "##1",
        "\x00",
        "\x01",
    ]
    tokens += rng.sample(odd, rng.randint(0, len(odd)))
    for _ in range(rng.randint(0, 25)):
        piece = "".join(rng.choices(alphabet, k=rng.randint(1, 4)))
        tokens.append(rng.choice(["", "##"]) * (seed > 1) + piece)
    if seed == 5:
        tokens = tokens[:4]
    lines = ["".join(rng.choices(alphabet + "ab  1", k=rng.randint(0, 12))) for _ in range(300)] + [
        "[UNK]",
        "  1",
        "#",
        "##a",
        "ab" * 150,
    ]
    lowercase = seed % 2 == 0
    check(lines, tokens, lowercase, strip=lowercase, limit=6 if lowercase else 200)


def test_mixed_batches_keep_their_order():
    tokenizer = BertTokenizer(TOY_VOCAB)
    kinds = ["the cat", "café", "ΣΑΣ run", "", "中国…", "hello\u200b!", "x" * 70, "naïve ﬁne"]
    alone = [tokenizer(kind).numpy().tolist() for kind in kinds]
    rng = random.Random(0)
    for size in (1, 2, 3, 50):
        order = rng.choices(range(len(kinds)), k=size)
        got = tokenizer([kinds[index] for index in order]).to_list()
        assert got == [alone[index] for index in order]


def test_higher_rank_equals_flat():
    tokenizer = BertTokenizer(TOY_VOCAB)
    nested = tf.ragged.constant([["the cat", "café"], [], ["Σ"]])
    result = map_lines(tokenizer._line_tokenizer().ids, nested)
    assert result.to_list() == [[[5, 7], [15]], [], [[1]]]


@same_unicode
@pytest.mark.slow
def test_tables_are_what_the_tool_makes():
    tool = runpy.run_path(ROOT / "tools" / "make_unicode_tables.py")
    with np.load(tool["OUTPUT"]) as file:
        shipped = dict(file)
    made = tool["build"]()
    assert shipped.keys() == made.keys()
    for name, array in made.items():
        assert array.dtype == shipped[name].dtype
        np.testing.assert_array_equal(array, shipped[name])
