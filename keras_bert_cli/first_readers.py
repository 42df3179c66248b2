"""The package's readers, before the package: its import takes seconds, most of them TensorFlow's.

A file that cannot be read should be refused at once. `keras_bert.data.rows` and the readers on it
need no TensorFlow, but Python runs `keras_bert/__init__.py` before them, which imports all. So
these packages are first made without running them, and imported in full later.
"""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PACKAGES = ("keras_bert", "keras_bert.data")


@contextmanager
def readers_alone() -> Iterator[None]:
    """Lets modules of the package be imported by their own names, without the package's.

    Inside, only what needs no TensorFlow can be used. Modules that are imported inside stay: the
    package finds them when it is imported afterwards. Does nothing if the package is there already.
    """
    if "keras_bert" in sys.modules:
        yield
        return
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        yield
    finally:
        for name in _PACKAGES:
            del sys.modules[name]
        _waiting.extend(name for name in sys.modules if name.startswith("keras_bert."))


def whole_package() -> None:
    """Imports the package in full."""
    import keras_bert  # noqa: F401

    while _waiting:  # modules that Python has not put into their packages, as they were there
        parent, _, name = (module := _waiting.pop()).rpartition(".")
        setattr(sys.modules[parent], name, sys.modules[module])


_waiting: list[str] = []
