"""The manual's site: it builds, its reference has every public name, and it works as files."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
import types
import zlib
from pathlib import Path

import pytest

from keras_bert.version import __version__
from tests.browsing import Page, chromium, needs_chromium

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "keras_bert"
# Pages with wide tables, code and signatures.
WIDE = ("guides/coming_from.html", "guides/serving.html", "reference/tasks.html")
# Why the search cannot start; null if it can.
WORKER = """
const {search} = JSON.parse(document.querySelector("#__config").textContent);
try { new Worker(new URL(search, document.baseURI)).terminate(); } catch (e) { return String(e); }
return null;
"""


# === Reference ===


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The built site. --strict makes an error of every warning: a link to nothing, a page that is
    not in the navigation, a docstring that disagrees with the signature."""
    for package in ("mkdocs", "material", "mkdocstrings_handlers"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("docs") / "site"
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def exported(path: Path) -> list[str]:
    """The names in the `__all__` of a file; none where it has no `__all__`."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    return []


def public_names() -> list[str]:
    """All names that the package and its rooms export, such as "keras_bert.data.Examples"."""
    return [
        ".".join([*path.relative_to(ROOT).parent.parts, name])
        for path in [PACKAGE / "__init__.py", *sorted(PACKAGE.glob("*/__init__.py"))]
        for name in exported(path)
    ]


def documented(site: Path) -> set[str]:
    """All names that the reference has."""
    inventory = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode()
    return {line.split(" ", 1)[0] for line in inventory.splitlines()}


@pytest.mark.thorough
def test_the_reference_has_every_public_name(site):
    assert len(public_names()) > 100
    assert [name for name in public_names() if name not in documented(site)] == []


def test_arguments_results_and_errors_are_tables(site):
    page = (site / "reference" / "tasks.html").read_text("utf-8")
    method = page.split('id="keras_bert.BertClassifier.classify"', 1)[1].split("<h3", 1)[0]
    for title in ("Parameters", "Returns", "Raises"):
        assert re.search(rf"{title}:</span>.*?<table>", method, re.S), title
    assert ">ValueError<" in method
    assert re.search(r"<summary>Call arguments</summary>\s*<ul>", page)


def test_methods_that_only_keras_calls_are_left_out(site):
    names = documented(site)
    inner = {"build", "call", "get_config", "from_config", "compute_output_shape", "train_step"}
    inner |= {"compute_output_spec", "update_state", "result", "on_epoch_end", "on_train_begin"}
    assert [name for name in names if name.rsplit(".", 1)[-1] in inner] == []
    for name in ("BertClassifier.classify", "BertTokenizer.tokenize", "BertBackbone.freeze"):
        assert f"keras_bert.{name}" in names


# === The README ===


def test_the_links_of_the_readme_lead_somewhere():
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    inside = [link.partition("#") for link in links if not link.startswith("https://")]
    assert len(inside) > 20
    for name, _, anchor in inside:
        assert (ROOT / name).exists(), name
        if anchor:
            headings = re.findall(r"^#+ (.+)$", (ROOT / name).read_text("utf-8"), re.M)
            assert anchor in [re.sub(r"\W+", "-", heading.lower()) for heading in headings], name


# === The site ===


def test_the_site_asks_no_other_host(site):
    for page in site.rglob("*.html"):
        tags = re.findall(r"<(?:script|link|img)[^>]*>", page.read_text("utf-8"))
        assert [tag for tag in tags if re.search(r'(?:src|href)="(?:https?:)?//', tag)] == [], page


def test_a_page_has_version_logo_and_neighbours(site):
    page = (site / "tasks" / "relations.html").read_text("utf-8")
    assert f"<title>Relations - keras_bert {__version__}</title>" in page
    assert '<img src="../images/logo.svg" alt="logo">' in page
    assert (site / "images" / "logo.svg").is_file()
    assert '<a href="multiple_choice.html" class="md-footer__link md-footer__link--prev"' in page
    assert '<a href="masked_lm.html" class="md-footer__link md-footer__link--next"' in page


@pytest.mark.parametrize(
    ("urls", "address", "name"),
    [
        (
            'Repository = "https://example.org/some/bert"',
            "https://example.org/some/bert",
            "some/bert",
        ),
        ('Repository = "https://example.org/bert/"', "https://example.org/bert/", "bert"),
        ("", None, None),
    ],
)
def test_the_repository_is_filled_in_at_one_place(urls, address, name, tmp_path, monkeypatch):
    pytest.importorskip("griffe", reason="griffe is not installed: pip install '.[docs]'")
    from tools import manual

    (tmp_path / "pyproject.toml").write_text(f"[project]\n[project.urls]\n{urls}\n")
    monkeypatch.setattr(manual, "PYPROJECT", tmp_path / "pyproject.toml")
    config = types.SimpleNamespace(site_name="keras_bert", repo_url=None, repo_name=None)
    config = manual.on_config(config)
    assert (config.site_name, config.repo_url, config.repo_name) == (
        f"keras_bert {__version__}",
        address,
        name,
    )
    # The theme asks the repository's host for its stars where a link is marked as a component.
    link = f'<a href="{address}" class="md-source" data-md-component="source">'
    assert manual.on_post_page(link) == f'<a href="{address}" class="md-source">'


@needs_chromium
def test_the_site_as_files_in_a_browser(site, tmp_path):
    with chromium(tmp_path) as (driver, downloads):
        page = Page(driver, downloads)
        page.open_file(site / "guides" / "serving.html")
        page.base = site.as_uri()
        assert driver.execute_script(WORKER) is None  # the search box would never appear
        search = page.one("input.md-search__input")
        search.send_keys("tune_thresholds")
        found = page.until(lambda: page.texts(".md-search-result__item"), "search results")
        assert any("tune_thresholds finds the decision threshold" in text for text in found)
        for name in WIDE:
            page.look(width=390, scheme="dark")
            driver.get((site / name).as_uri())
            page.until(lambda: page.texts("main h1"), "the page")
            wide = driver.execute_script("return document.documentElement.scrollWidth")
            assert wide <= 390, name
        assert page.problems() == []
