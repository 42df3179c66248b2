"""Every public name says what it takes, what it gives and what it raises."""

import ast
import importlib
import inspect
import re
import textwrap

import pytest

ROOMS = "checkpoints data explain kernels layers metrics models server tasks training".split()
# Called by Keras, which says what they are to do.
OF_KERAS = {
    "build", "call", "compute_mask", "compute_output_shape", "compute_output_spec", "from_config",
    "get_config", "get_build_config", "build_from_config", "compile_from_config", "quantize",
    "update_state", "result", "reset_state", "load_own_variables", "save_own_variables",
    "after_step",  # by `tasks.fitting.Run`, which says so
}  # fmt: skip


# Says that another docstring holds here too.
ELSEWHERE = re.compile(r"^(?:[^.]*, )?[Aa]s `[\w.]+`")


def public_objects() -> dict[str, object]:
    """What the package and its rooms export, once each, by a name to import it by."""
    found = {}
    for module in ("keras_bert", *(f"keras_bert.{room}" for room in ROOMS)):
        exported = importlib.import_module(module)
        for name in exported.__all__:
            value = getattr(exported, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                found.setdefault(id(value), (f"{module}.{name}", value))
    return dict(found.values())


def written_here(function) -> bool:
    """Whether there is source to look at: dataclasses write methods of their own."""
    return inspect.isfunction(function) and "keras_bert" in function.__code__.co_filename


def functions_of(name: str, value) -> dict[str, object]:
    """A function, or the public methods that a class itself defines."""
    if not inspect.isclass(value):
        return {name: value}
    found = {}
    for key, member in vars(value).items():
        member = getattr(member, "__func__", member)  # of a classmethod or staticmethod
        if written_here(member) and not key.startswith(("_", "on_")) and key not in OF_KERAS:
            found[f"{name}.{key}"] = member
    return found


def described(owner, function) -> str:
    """The docstrings of a method and of those in this package that it overrides."""
    name = function.__name__
    methods = [vars(c)[name] for c in owner.__mro__ if name in vars(c) and "keras_bert" in str(c)]
    return "\n\n".join(filter(None, map(inspect.getdoc, methods)))


def statements(function, kind) -> list:
    """Statements of a kind in a function.

    Without those of functions inside it, and without errors that it may catch itself.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    found, inside = [], list(tree.body)
    while inside:
        node = inside.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Try) and node.handlers and kind is ast.Raise:
            inside += [*node.handlers, *node.orelse, *node.finalbody]
            continue
        if isinstance(node, kind):
            found.append(node)
        inside += ast.iter_child_nodes(node)
    return found


def lacking(docstring: str, function, of_class: str = "") -> list[str]:
    """Sections that a function's docstring should have and has not.

    Args:
        docstring: its own.
        function: the function.
        of_class: docstring of its class, which describes what `__init__` takes and raises.
    """
    both = docstring + of_class
    if ELSEWHERE.search(re.split(r"\n\n(?:Args|Returns|Raises):", both)[0]):
        return []
    parameters = [n for n in inspect.signature(function).parameters if n not in ("self", "cls")]
    wanted = {"Args:": bool(parameters)}
    wanted["Raises:"] = any(node.exc is not None for node in statements(function, ast.Raise))
    if not of_class:
        given = [
            node
            for node in statements(function, ast.Return | ast.Yield)
            if node.value is not None and not (isinstance(node.value, ast.Constant))
        ]
        wanted["Returns:"] = bool(given and parameters)
    same = {"Returns:": ("Returns:", "Yields:")}
    return [
        section
        for section, needed in wanted.items()
        if needed and not any(name in both for name in same.get(section, (section,)))
    ]


@pytest.mark.parametrize("name", public_objects())
def test_docstrings_are_complete(name):
    value = public_objects()[name]
    own = inspect.getdoc(value)
    assert own, f"{name} has no docstring"
    wrong = {}
    for key, function in functions_of(name, value).items():
        docstring = described(value, function) if inspect.isclass(value) else own
        missing = lacking(docstring, function) if docstring else ["a docstring"]
        if missing:
            wrong[key] = missing
    if inspect.isclass(value) and written_here(vars(value).get("__init__")):
        missing = lacking("", value.__init__, of_class=own)
        if missing:
            wrong[name] = missing
    assert not wrong, wrong


def test_an_incomplete_docstring_is_seen():
    def function(x):
        """Doubles."""
        if x < 0:
            raise ValueError(x)
        return 2 * x

    assert lacking(function.__doc__, function) == ["Args:", "Raises:", "Returns:"]
    assert lacking("Args: x\nReturns: y\nRaises: z", function) == []
