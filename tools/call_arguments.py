"""An extension of griffe, which reads docstrings for the manual: lists "Call arguments".

That section of Keras's docstrings is not among those that griffe knows, so it would run the
arguments together in one paragraph. `mkdocs.yml` names this file.
"""

import re

import griffe

_SECTION = re.compile(r"^Call arguments:\n((?:[ ]+\S.*\n?|\n)+)", re.M)
_ITEM = re.compile(r"^    (\w+): ", re.M)


def listed(docstring: str) -> str:
    """Turns the items of the section into those of a list; other docstrings stay as they are."""
    return _SECTION.sub(
        lambda found: "Call arguments:\n" + _ITEM.sub(r"    - `\1`: ", found[1]), docstring
    )


class CallArguments(griffe.Extension):
    """Changes the docstrings of classes."""

    def on_class_instance(self, *, cls: griffe.Class, **kwargs) -> None:
        if cls.docstring is not None:
            cls.docstring.value = listed(cls.docstring.value)
