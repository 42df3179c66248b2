"""How the manual is built, beyond the settings in `mkdocs.yml`, which names this file twice: as a
hook of mkdocs, and as an extension of griffe, which reads the docstrings.

- The version comes from `keras_bert/version.py`, the repository's address from `pyproject.toml`.
- Methods that only Keras or the training loop calls are left out of the reference.
- "Call arguments", a section of Keras's docstrings that griffe does not know and would run together
  in one paragraph, becomes a list.
"""

import re
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import griffe

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT, VERSION = ROOT / "pyproject.toml", ROOT / "keras_bert" / "version.py"
# Methods that Keras calls: of layers and models, of losses and metrics, of saving, of callbacks.
INNER = re.compile(
    r"build|call|compute_(mask|output_shape|output_spec)|stateless_call|input_spec"
    r"|(get|from)_config|get_compile_config|compile_from_config|get_build_config|build_from_config"
    r"|(save|load)_(own_variables|assets|task_weights)|(get|set)_state"
    r"|(train|test|predict|update)_step|make_(train|test|predict)_function"
    r"|update_state|reset_state|result|on_(train|epoch|test|predict)_\w+|set_(model|params)"
)
# Methods of tasks that the training loop and the commands call.
LOOP = re.compile(
    r"adopt_names|as_table|check_\w+|complete_settings|completed|contract_inputs"
    r"|counters|dataset_preparer|freeze_own|has_next_sentence|makes_rows_to_check"
    r"|logits_and_labels|make_rows|masked_word_logits|names_in|no_outputs|only_in_presets"
    r"|predict_batches|preprocess_samples|ragged_rows|respond|rows_of_(dataset|table)"
    r"|same_kind_of_head|scores_by_default|source|step_inputs|training_batch|with_targets"
    r"|write_beside"
)
# Methods that a task declares: they are described once, at the base classes.
DECLARED = re.compile(
    r"answers|brings_labels|encode_(labels|labels_in_graph|class_weight)|examples|examples_of_table"
    r"|label_kind|labels_of_rows|needs_labels|output_kind|pack|rows|signatures|table_cells"
)
BASES = ("BertTask", "Labelled")
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
    version = re.search(r'^__version__ = "(.+)"$', VERSION.read_text("utf-8"), re.M)[1]
    config.site_name = f"{config.site_name} {version}"
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
        inner = [INNER]
        if cls.path.startswith("keras_bert.tasks."):
            inner += [LOOP] if cls.name in BASES else [LOOP, DECLARED]
        for name in [*cls.members]:
            if any(names.fullmatch(name) for names in inner):
                cls.del_member(name)
