"""Imports go one way: config -> layers -> models -> tasks, training, serving.

Read from the source with `ast`, lazy imports inside functions included, so that a room is held to
its rule from the day it has a file.
"""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "keras_bert"

# What every room may know, and what knows no room.
FOUNDATION = {"arguments", "config", "atomic", "version"}
# room: the rooms it may know. The root (keras_bert/__init__.py) gathers names and knows them all.
ALLOWED = {
    "presets": set(),
    "metrics": set(),
    "reports": set(),
    "kernels": set(),
    "layers": {"kernels"},
    "data": {"text"},
    "text": {"data"},
    "models": {"layers", "text", "data"},
    "checkpoints": {"models", "text"},
    "training": {"kernels", "layers", "models", "text", "data", "metrics"},
    "serving": {"models", "text", "data"},
}
# The tasks join models, text and checkpoints into what a user holds, and hand themselves to export.
ALLOWED["tasks"] = {*ALLOWED}
ALLOWED = {room: known | FOUNDATION for room, known in ALLOWED.items()}
ALLOWED |= {room: set() for room in FOUNDATION}
OUTSIDE = {"recipes", "tools", "tests"}
# `from_preset` of a backbone, tokenizer or preprocessor asks the room that reads checkpoints, which
# makes these classes: inside of the function, and nowhere else.
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
    """Yields (file, its room, the room it imports, line); "" stands for the root of the package."""
    for path in sorted(package.rglob("*.py")):
        room = path.relative_to(package).parts[0].removesuffix(".py")
        for name, line, at_import in imports(path, package):
            parts = name.split(".")
            if parts[0] == package.name and room != "__init__":
                other = parts[1] if len(parts) > 1 else ""
                places = (package / other, package / f"{other}.py")
                if other not in ALLOWED and not any(place.exists() for place in places):
                    other = ""  # a name that the root gathers
                if (room, other) in FROM_PRESET and not at_import:
                    continue
                if other != room:
                    yield path, room, other, line


def wrong_ways(package: Path) -> list[str]:
    """Every import that goes against the rules, as "file:line: what"."""
    found = []
    for path, room, other, line in known_rooms(package):
        if room not in ALLOWED:
            found.append(f"{path}:{line}: the room {room!r} has no rule here")
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


def test_imports_go_one_way():
    assert wrong_ways(PACKAGE) == []
    assert two_way(PACKAGE) == set()


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
        ("attic/a.py", "from keras_bert import config", "'attic' has no rule here"),
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


def test_right_imports_are_let_through(tmp_path):
    package = tmp_path / "keras_bert"
    for file, source in {
        "__init__.py": "from keras_bert.models import B\nfrom keras_bert.training import T",
        "models/__init__.py": "from .backbone import B",
        "models/backbone.py": "from keras_bert.layers import L\nfrom ..config import SIZES\n"
        "def f():\n    import tensorflow",
        "text/a.py": "import tensorflow_text\nfrom keras_bert.data.contract import KEYS",
    }.items():
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text(source)
    assert wrong_ways(package) == [] and two_way(package) == set()
    (package / "data").mkdir()
    (package / "data" / "a.py").write_text("from keras_bert.text import T")
    assert two_way(package) == {("data", "text")}
