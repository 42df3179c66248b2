"""Prose uses the field's terms: pages, docstrings, comments and messages are searched for phrases
that have a better one."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("*.md", "docs/**/*.md")
# The changelog keeps the words of its time.
LEFT = ("CHANGELOG.md",)
# Parts of the package that are not rewritten yet. Remove an entry when its part is.
NOT_YET = (
    "tasks/batch_sources.py",
    "tasks/masked_lm.py",
    "tasks/sentences.py",
    "tasks/targets.py",
    "data/demo_text.py",
)

# A regular expression, in which a space is any white space, and the replacement.
WORDS = {
    r"whole, in Keras": '"a complete BERT for Keras 3"',
    r"text goes in at one end": '"models take plain strings"',
    r"text side": '"preprocessor"',
    r"shares? of (the )?(units|attention probabilities)": '"dropout rate"',
    r"laws?": '"distribution"',
    r"cut at two deviations": '"truncated normal with stddev ..."',
    r"deviation of the (initial|normal|truncated)": '"stddev of the truncated normal initializer"',
    r"several texts (in|to) a row": '"sequence packing", "packed into a row"',
    r"(text|texts|they) share rows": '"are packed into rows"',
    r"(fresh masks|masks made fresh)": '"dynamic masking"',
    r"further pre-training": '"continued pre-training"',
    r"kept from training": '"held out"',
    r"to the bit": '"bitwise identical"',
    r"whole or not at all": '"written atomically"',
    r"written whole": '"written atomically"',
    r"batch contract": '"keys of a batch", or name `contract.py`',
    r"by the contract": '"see `contract.py`"',
    r"likewise": '"the same", "also"',
    r"as there": "name the place",
    r"((is|are|be) told|unless told|told otherwise)": '"by default", "if ... is set"',
    r"in silence": '"silently"',
    r"class_weight has no meaning": '"class_weight is not supported by ...: ..."',
    r"teaches nothing": '"has weight 0"',
    r"means nothing here": '"is not supported: ..."',
    r"can't complain": '"cannot raise"',
    r"the least of": '"the smallest of"',
    r"the most (tokens|rows|pieces|units)": '"maximum number of ..."',
    r"made anew": '"created again", "recreated"',
    r"if need be": '"if missing", "if necessary"',
    r"end to end": '"concatenated"',
    r"(fast|fastest|two|three|both|same) roads?": '"implementation", "path"',
    r"(rows|texts|tokens|batches|steps) a second": '"... per second"',
    r"(one|token|tag|label|word|sentence|paragraph|number|relation|object|file) a "
    r"(line|row|word|text|token|class|label|task|form|worker)": '"per"',
    r"(?<!there\s)(is|are) no (array|component|file|folder|form|index|mapping|model"
    r"|number|part of|positive|preset|row|single|such|tag|text|tokenizer|vocabulary"
    r"|whole)": '"is not a ..."',
    r"was asked for": '"was requested"',
    r"Rule:": '"Reference:"',
}
SEARCH = {
    re.compile(rf"(?<![\w`]){words}(?!\w)".replace(" ", r"\s+"), re.I): better
    for words, better in WORDS.items()
}


def blanked(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def page_prose(text: str) -> list[tuple[int, str]]:
    """A page without its blocks of code, as one piece that begins at line 1."""
    return [(1, re.sub(r"^```.*?^```", blanked, text, flags=re.M | re.S))]


def code_prose(source: str) -> list[tuple[int, str]]:
    """(line, text) of each string, docstrings included, and of each block of comments."""
    pieces: list[tuple[int, str]] = []
    inside = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in ast.walk(node)} - {id(node)}
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            pieces.append((node.lineno, "".join(parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in inside:
                pieces.append((node.lineno, node.value))
    end = 0  # one after the last line of the block of comments
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, text = token.start[0], token.string.lstrip("# ")
            if line == end and token.line.lstrip().startswith("#"):
                first, before = pieces.pop()
                pieces.append((first, f"{before}\n{text}"))
            else:
                pieces.append((line, text))
            end = line + 1
    return pieces


def found(place: str, pieces: list[tuple[int, str]]) -> list[str]:
    """ "file:line: phrase: write this" for each phrase of the list."""
    return [
        f"{place}:{line + text.count(chr(10), 0, match.start())}: "
        f"{' '.join(match[0].split())!r}: write {better}"
        for line, text in pieces
        for pattern, better in SEARCH.items()
        for match in pattern.finditer(text)
    ]


def test_pages():
    pages = {page for glob in PAGES for page in ROOT.glob(glob) if page.name not in LEFT}
    assert len(pages) > 20
    phrases = []
    for page in sorted(pages):
        place = str(page.relative_to(ROOT))
        phrases += found(place, page_prose(page.read_text("utf-8")))
    assert not phrases, "\n".join(phrases)


def test_docstrings_comments_and_messages():
    package = ROOT / "keras_bert"
    files = {str(path.relative_to(package)): path for path in package.rglob("*.py")}
    rewritten = {name: path for name, path in files.items() if not name.startswith(NOT_YET)}
    assert len(rewritten) > 70
    phrases = []
    for name, path in sorted(rewritten.items()):
        phrases += found(f"keras_bert/{name}", code_prose(path.read_text("utf-8")))
    assert not phrases, "\n".join(phrases)


def test_tests_are_named_in_words():
    numbered = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(r"def test_[bk]\d+_|(#|\"\"\"|[Cc]ase) ?[BK]\d+\b", line)
    ]
    assert not numbered, "\n".join(numbered)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            '"""A share of\n\n    the units."""',
            "file:1: 'share of the units': write \"dropout rate\"",
        ),
        ("x = 1\n\n# The normal\n# law.", "file:4: 'law': write \"distribution\""),
        ("y = 2  # Likewise.", "file:1: 'Likewise': write"),
        ("raise ValueError(\n    f'{x} is ' 'no number'\n)", "file:2: 'is no number': write"),
    ],
)
def test_a_phrase_is_seen(source, expected):
    (phrase,) = found("file", code_prose(source))
    assert phrase.startswith(expected)


def test_code_and_parts_of_words_are_let_through():
    assert found("file", code_prose("# Lawful rows, per second, see `laws`.\nlaw = 1")) == []
    assert found("file", page_prose("A\n\n```python\nx  # likewise\n```\n\nB")) == []
    (phrase,) = found("file", page_prose("A\n\n```python\nx\n```\n\nlikewise"))
    assert phrase.startswith("file:7: ")
