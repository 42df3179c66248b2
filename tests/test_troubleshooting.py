"""The manual's page on troubleshooting quotes messages of the package; each must still exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guides" / "troubleshooting.md"
GAP = "\0"  # a value in a message
# %s, %.400s, %g, %d; not "100%".
FORMAT = re.compile(r"%[-.\d]*[sdgfr]")


def quoted(page: str) -> list[str]:
    """The code in the first column of the tables whose first title is "message of keras_bert"."""
    messages, inside = [], False
    for line in page.splitlines():
        if not line.startswith("|"):
            inside = False
        elif line.startswith("| message of keras_bert |"):
            inside = True
        elif inside:
            messages += re.findall(r"`([^`]+)`", line.split(" | ")[0])
    return messages


def texts(source: str) -> list[str]:
    """The strings of a module, docstrings aside, with GAP in place of values."""
    found, parts_of_others, docstrings = [], set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts_of_others |= {*ast.walk(node)} - {node}
            values = [v.value if isinstance(v, ast.Constant) else GAP for v in node.values]
            found.append("".join(values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node not in parts_of_others and node not in docstrings:
                found.append(FORMAT.sub(GAP, node.value))
    return found


def is_in(message: str, text: str) -> bool:
    """Whether a text has a message, in which "…" stands for values and what is around them."""
    parts = [re.escape(part.strip()) for part in message.split("…")]
    return re.search(rf"[^\n]*{GAP}[^\n]*?".join(parts), text) is not None


@pytest.fixture(scope="module")
def strings() -> list[str]:
    files = [*ROOT.glob("keras_bert/**/*.py"), *ROOT.glob("keras_bert_cli/**/*.py")]
    return [text for path in files for text in texts(path.read_text("utf-8"))]


def test_each_quoted_message_exists(strings):
    messages = quoted(PAGE.read_text("utf-8"))
    assert len(messages) > 30
    assert [m for m in messages if not any(is_in(m, text) for text in strings)] == []


def test_a_message_that_is_gone_is_seen():
    (page,) = quoted("| message of keras_bert | b |\n|---|---|\n| `bad … in row …` (log) | c |")
    assert is_in(page, texts('raise ValueError(f"bad {x!r} in row {row} of " "it")')[0])
    assert is_in(page, texts('log("a bad %s in row %d", x, row)')[0])
    assert not is_in(page, texts('raise ValueError(f"bad {x!r} in line {row}")')[0])
    assert not is_in(page, texts('raise ValueError("bad label in row 3")')[0])
    assert quoted("| error | b |\n|---|---|\n| `bad` | c |") == []
    assert texts('def f():\n    "bad"') == []
