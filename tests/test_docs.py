"""The manual: its examples run.

`python tests/test_docs.py docs/tasks/classification.md ...` runs the examples of some pages.
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
# A block of Python, and what it prints where a block of text follows with nothing in between.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.M | re.S)
PROCESSES = 2  # that share the pages; each imports TensorFlow once
# Pages with a `fit` take seconds of tracing each: `make slow` tests them, but for these, which are
# tested by `make thorough` as all other pages are.
QUICK_FITS = ("docs/guides/own_task.md", "docs/tasks/classification.md")


def timed(page: str):
    """A page as a parameter of tests, marked if it is slow."""
    blocks = BLOCK.finditer((ROOT / page).read_text("utf-8"))
    slow = any(".fit(" in block[1] for block in blocks) and page not in QUICK_FITS
    return pytest.param(page, marks=pytest.mark.slow if slow else ())


def pages() -> list[str]:
    """The pages that have Python in them, by their paths in the checkout."""
    found = sorted(DOCS.rglob("*.md"))
    return [str(p.relative_to(ROOT)) for p in found if "```python" in p.read_text("utf-8")]


# === Examples ===


def run_page(page: Path) -> None:
    """Runs a page's blocks one after the other, in an empty folder, as one program.

    Raises:
        AssertionError: if a block does not print what stands below it.
        Exception: what the block raises; its lines are those of the page.
    """
    text = page.read_text("utf-8")
    names = {"__name__": page.stem}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in BLOCK.finditer(text):
            above = text.count("\n", 0, block.start(1))
            code = compile("\n" * above + block[1], str(page), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(code, names)
            got, expected = printed.getvalue().strip(), block[2]
            if expected is not None and got != expected.strip():
                raise AssertionError(f"the block below line {above} prints:\n{got}")


def main(paths: list[str]) -> int:
    """Runs pages, and prints a line of JSON for each: page, seconds, and the error or null."""
    failed = 0
    for path in paths:
        begin, error = time.monotonic(), None
        try:
            run_page(ROOT / path)
        except BaseException:
            error = traceback.format_exc()
            failed += 1
        seconds = round(time.monotonic() - begin, 1)
        print(json.dumps({"page": path, "seconds": seconds, "error": error}), flush=True)
    return failed


@pytest.fixture(scope="module")
def results(request, tmp_path_factory) -> dict[str, dict]:
    """What became of each page that is asked for. Processes of their own, for Keras keeps some
    state, and beside each other, for most of the time is tracing, which takes one core."""
    tests = [item for item in request.session.items if item.path == request.path]
    asked = [test.callspec.params["page"] for test in tests if hasattr(test, "callspec")]
    folder = tmp_path_factory.mktemp("pages")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    runs = []
    for i in range(PROCESSES):
        with open(folder / f"{i}.log", "w") as log, open(folder / f"{i}.json", "w") as out:
            command = [sys.executable, __file__, *asked[i::PROCESSES]]
            runs.append(subprocess.Popen(command, stdout=out, stderr=log, env=environment))
    for run in runs:
        run.wait()
    lines = "".join((folder / f"{i}.json").read_text() for i in range(PROCESSES)).splitlines()
    return {result["page"]: result for result in map(json.loads, lines)}


@pytest.mark.thorough
@pytest.mark.parametrize("page", [timed(page) for page in pages()])
def test_examples_run(results, page):
    assert page in results, "the process ended before it came to this page"
    error = results[page]["error"]
    assert error is None, f"{page}\n{error}"


def test_a_wrong_example_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    with pytest.raises(AssertionError, match="line 3 prints:\n2"):
        run_page(page)
    page.write_text("# Page\n\n```python\nx = 1\n```\n\nText\n\n```python\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as error:
        run_page(page)
    assert error.traceback[-1].lineno == 9  # counted from 0: the page's tenth line


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
