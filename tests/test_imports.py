"""The table of rooms in ARCHITECTURE.md is exactly what the code imports, and imports go one way.

The code is read with `ast`, lazy imports inside functions included.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "keras_bert"


def read_table(page: str) -> dict[str, set[str]]:
    """The rooms that each room imports, from the rows "| `room/` | contents | a, b |" of a page."""
    rows = re.findall(r"^\| `(\w+)(?:/|\.py)` \|.*\| ?([\w, ]*)\|$", page, re.M)
    return {room: set(re.findall(r"\w+", others)) for room, others in rows}


TABLE = read_table((ROOT / "ARCHITECTURE.md").read_text("utf-8"))
# Files that every room may import; the table leaves them out of its last column.
FOUNDATION = {room for room in TABLE if (PACKAGE / f"{room}.py").exists()}
ALLOWED = {
    room: set() if room in FOUNDATION else others | FOUNDATION for room, others in TABLE.items()
}
OUTSIDE = {"keras_bert_cli", "recipes", "tools", "tests"}
# `from_preset` of a backbone, tokenizer or preprocessor calls the room that reads checkpoints and
# builds these classes: inside the function only.
FROM_PRESET = {("models", "checkpoints"), ("text", "checkpoints")}


def imports(path: Path, package: Path):
    """Yields (dotted name, line, whether at import time) of each import of a file."""

    def visit(node, lazy):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, not lazy
        elif isinstance(node, ast.ImportFrom):
            parents = path.relative_to(package.parent).parent.parts
            base = parents[: len(parents) - node.level + 1] if node.level else ()
            module = ".".join([*base, *filter(None, [node.module])])
            for alias in node.names:
                yield f"{module}.{alias.name}", node.lineno, not lazy
        lazy = lazy or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.iter_child_nodes(node):
            yield from visit(child, lazy)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), lazy=False)


def known_rooms(package: Path):
    """Yields (file, its room, the room it imports, line); "" is the root of the package."""
    for path in sorted(package.rglob("*.py")):
        room = path.relative_to(package).parts[0].removesuffix(".py")
        for name, line, at_import in imports(path, package):
            parts = name.split(".")
            if parts[0] == package.name and room != "__init__":
                other = parts[1] if len(parts) > 1 else ""
                places = (package / other, package / f"{other}.py")
                if other not in ALLOWED and not any(place.exists() for place in places):
                    other = ""  # a name that the root re-exports
                if (room, other) in FROM_PRESET and not at_import:
                    continue
                if other != room:
                    yield path, room, other, line


def wrong_ways(package: Path) -> list[str]:
    """Every import that breaks a rule, as "file:line: message"."""
    found = []
    for path, room, other, line in known_rooms(package):
        if room not in ALLOWED:
            found.append(f"{path}:{line}: the room {room!r} is not in ARCHITECTURE.md's table")
        elif not other:
            found.append(f"{path}:{line}: imports the root of the package; name the room")
        elif other not in ALLOWED[room]:
            found.append(f"{path}:{line}: {room} must not know {other}")
    for path in sorted(package.rglob("*.py")):
        room = path.relative_to(package).parts[0].removesuffix(".py")
        for name, line, at_import in imports(path, package):
            top = name.split(".")[0]
            if top in OUTSIDE:
                found.append(f"{path}:{line}: the package must not know {top}")
            tensorflow = top == "tf_keras" or top.startswith("tensorflow")
            if tensorflow and (room == "layers" or (room == "models" and at_import)):
                found.append(f"{path}:{line}: {room} must run on every backend, not import {top}")
    return found


def two_way(package: Path) -> set[tuple[str, str]]:
    """Pairs of rooms that import each other."""
    edges = {(room, other) for _, room, other, _ in known_rooms(package) if other}
    return {(a, b) for a, b in edges if a < b and (b, a) in edges}


def cycles(table: dict[str, set[str]]) -> set[str]:
    """The rooms of a table that import one another, directly or through others."""
    left = dict(table)
    while free := {room for room, others in left.items() if not others & left.keys()}:
        left = {room: others for room, others in left.items() if room not in free}
    return set(left)


def test_imports_go_one_way():
    assert wrong_ways(PACKAGE) == []
    assert two_way(PACKAGE) == set()
    assert cycles(TABLE) == set()


def test_the_table_lists_exactly_what_the_code_imports():
    imported = {room: set() for room in TABLE}
    for _, room, other, _ in known_rooms(PACKAGE):
        imported[room].add(other)
    assert TABLE == {room: others - FOUNDATION for room, others in imported.items()}
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert rooms | files <= set(TABLE)


def test_a_table_is_read_and_cycles_in_it_are_seen():
    page = "| `a/` | x, `y/` | b, c |\n| `b/` | z | c |\n| `c.py` | no room | |\n"
    assert read_table(page) == {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert cycles(read_table(page)) == set()
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": set()}) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("file", "source", "message"),
    [
        ("layers/a.py", "from keras_bert.models.backbone import B", "layers must not know models"),
        ("layers/a.py", "from ..models import backbone", "layers must not know models"),
        ("text/a.py", "def f():\n    import keras_bert.models", "text must not know models"),
        ("data/a.py", "from keras_bert import tasks", "data must not know tasks"),
        ("models/a.py", "from keras_bert import BertBackbone", "imports the root"),
        ("config.py", "import keras_bert.data.glue", "config must not know data"),
        ("serving/a.py", "from recipes import glue", "must not know recipes"),
        ("layers/a.py", "import keras_bert.layers.b\nimport keras_bert", "imports the root"),
        ("attic/a.py", "from keras_bert import config", "'attic' is not in ARCHITECTURE.md"),
        ("layers/a.py", "def f():\n    import tensorflow as tf", "layers must run on every"),
        ("models/a.py", "try:\n    from tensorflow import math\nfinally:\n    pass", "models must"),
        ("text/a.py", "from keras_bert.checkpoints import open_checkpoint", "text must not know"),
        ("models/a.py", "import tensorflow_text", "models must run on every"),
    ],
)
def test_a_wrong_import_is_seen(tmp_path, file, source, message):
    path = tmp_path / "keras_bert" / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    (found,) = wrong_ways(tmp_path / "keras_bert")
    assert message in found and str(path) in found


def test_right_imports_are_let_through(tmp_path, monkeypatch):
    monkeypatch.setitem(ALLOWED, "training", {"data"})
    package = tmp_path / "keras_bert"
    for file, source in {
        "__init__.py": "from keras_bert.models import B\nfrom keras_bert.training import T",
        "models/__init__.py": "from .backbone import B",
        "models/backbone.py": "from keras_bert.layers import L\nfrom ..config import SIZES\n"
        "def f():\n    import tensorflow",
        "training/a.py": "import tensorflow\nfrom keras_bert.data.contract import KEYS",
    }.items():
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text(source)
    assert wrong_ways(package) == [] and two_way(package) == set()
    (package / "data").mkdir()
    (package / "data" / "a.py").write_text("from keras_bert.training import T")
    assert two_way(package) == {("data", "training")}
