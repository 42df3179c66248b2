"""The pages that describe the code name files and folders that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "keras_bert"
PAGES = ("ARCHITECTURE.md", "docs/guides/inside.md")


@pytest.mark.parametrize("page", PAGES)
def test_files_are_where_pages_say(page):
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text("utf-8"), flags=re.M | re.S)
    code = re.findall(r"`([^`]+)`", text)
    paths = [name for name in code if re.fullmatch(r"[\w*./-]+(\.py|\.json|/)", name)]
    assert len(paths) > 10
    anywhere = {path.name for path in PACKAGE.rglob("*.py")}
    saved = {"keras_bert.json"}  # beside a checkpoint, not in the checkout
    missing = [
        name
        for name in paths
        if not (list(ROOT.glob(name)) or list(PACKAGE.glob(name)))
        and not list(PACKAGE.glob(f"*/{name}"))
        and name not in anywhere | saved
    ]
    assert missing == []
