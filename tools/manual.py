"""How the manual is built, beyond the settings in `mkdocs.yml`, which names this file twice: as a
hook of mkdocs, and as an extension of griffe, which reads the docstrings.

- Version and address of the repository come from `pyproject.toml`.
- Methods that only Keras calls are left out of the reference.
- "Call arguments", a section of Keras's docstrings that griffe does not know and would run together
  in one paragraph, becomes a list.
"""

import re
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import griffe

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
# Methods that Keras calls: of layers and models, of losses and metrics, of saving, of callbacks.
INNER = re.compile(
    r"build|call|compute_(mask|output_shape|output_spec)|stateless_call|input_spec"
    r"|(get|from)_config|(get|compile_from)_compile_config|compile_from_config"
    r"|(get_build|build_from)_config|(save|load)_(own_variables|assets|task_weights)"
    r"|(train|test|predict|update)_step|make_(train|test|predict)_function"
    r"|update_state|reset_state|result|on_(train|epoch|test|predict)_\w+|set_(model|params)"
)
_SECTION = re.compile(r"^Call arguments:\n((?:[ ]+\S.*\n?|\n)+)", re.M)
_ITEM = re.compile(r"^    (\w+): ", re.M)


# === mkdocs ===


def on_config(config):
    """Adds the version to the title, and the link to the repository if there is an address.

    Args:
        config: mkdocs's configuration, changed in place.

    Returns:
        The same.
    """
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    config.site_name = f"{config.site_name} {project['version']}"
    address = project.get("urls", {}).get("Repository")
    if address:
        config.repo_url = address
        config.repo_name = urlsplit(address).path.strip("/")
    return config


def on_post_page(output: str, **kwargs) -> str:
    """Makes the link to the repository a plain link. The theme's script asks the repository's host
    for the number of stars.

    Args:
        output: the page.
        **kwargs: not used.

    Returns:
        The page.
    """
    return output.replace(' data-md-component="source"', "")


# === griffe ===


def listed(docstring: str) -> str:
    """Turns the items of "Call arguments" into those of a list.

    Args:
        docstring: of a class.

    Returns:
        The docstring; the same if it has no such section.
    """
    return _SECTION.sub(
        lambda found: "Call arguments:\n" + _ITEM.sub(r"    - `\1`: ", found[1]), docstring
    )


class ForReaders(griffe.Extension):
    """Changes what the reference shows."""

    def on_class_instance(self, *, cls: griffe.Class, **kwargs) -> None:
        if cls.docstring is not None:
            cls.docstring.value = listed(cls.docstring.value)

    def on_class_members(self, *, cls: griffe.Class, **kwargs) -> None:
        for name, member in cls.members.items():
            if INNER.fullmatch(name):
                member.public = False
