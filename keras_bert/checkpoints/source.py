"""Finds a checkpoint's files, in a local folder or behind a KerasHub or hf:// address."""

import difflib
import json
from pathlib import Path
from typing import Any

import keras_hub
from keras_hub.src.utils import preset_utils

from keras_bert.checkpoints.checks import shown

# Presets that ship with the package, one folder each.
SHIPPED = Path(__file__).resolve().parents[1] / "presets"
_LONGEST_NAME = 500
_SCHEMES = ("kaggle://", "hf://", "gs://", "modelscope://")


class Source:
    """The files of one checkpoint.

    Args:
        source: a folder; the name of a preset that ships with the package, see `shipped`; a name
            of `keras_hub.models.BertBackbone.presets`; or a kaggle://, hf://, gs:// or
            modelscope:// address, whose files KerasHub fetches and caches.

    Raises:
        FileNotFoundError: if `source` is none of these.
    """

    def __init__(self, source: str | Path):
        self.name = str(source)
        self.folder = None
        if self.name in keras_hub.models.BertBackbone.presets or self.name.startswith(_SCHEMES):
            return
        self.folder = SHIPPED / self.name if self.name in shipped() else Path(source)
        if not self.folder.is_dir():
            built_in = [*shipped(), *keras_hub.models.BertBackbone.presets]
            close = difflib.get_close_matches(self.name, built_in, n=1)
            raise FileNotFoundError(
                f"source {self.name!r} is not a folder"
                + (f"; did you mean {close[0]!r}?" if close else ".")
                + " Expected a folder with a config.json, an address such as "
                f"hf://google-bert/bert-base-uncased (or {', '.join(_SCHEMES)}), or a built-in "
                f"name: {', '.join(built_in)}"
            )

    def path(self, name: str) -> Path:
        """Gives the local path of a file, fetching it first if need be.

        Args:
            name: path inside the checkpoint; it must not lead out of it.

        Raises:
            FileNotFoundError: if the checkpoint has no such file.
            ValueError: if `name` leads out of the checkpoint, or is none.
        """
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ValueError(
                f"{self.name}: the file name {name!r:.200} leads out of the checkpoint"
            )
        if not name.isprintable() or len(name) > _LONGEST_NAME:
            # What no file system takes for a name would end in an error of the system's.
            raise ValueError(f"{self.name}: {name!r:.200} is no name of a file")
        if self.folder is None:
            return Path(preset_utils.get_file(self.name, name))
        path = self.folder / name
        if not path.is_file():
            found = ", ".join(sorted(shown(p.name) for p in self.folder.iterdir())) or "nothing"
            raise FileNotFoundError(f"{self.folder} has no {name}; found: {found}")
        return path

    def has(self, name: str) -> bool:
        """Whether the checkpoint holds this file."""
        try:
            self.path(name)
        except FileNotFoundError:
            return False
        return True

    def json(self, name: str) -> dict[str, Any]:
        """Reads a file that holds one JSON object.

        Raises:
            FileNotFoundError: if the checkpoint has no such file.
            ValueError: if it is not a JSON object.
        """
        path = self.path(name)
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not valid JSON: {error}") from error
        if not isinstance(value, dict):
            raise ValueError(f"{path}: expected a JSON object, found {type(value).__name__}")
        return value


def shipped() -> list[str]:
    """Names of the presets that ship with the package."""
    return sorted(path.parent.name for path in SHIPPED.glob("*/config.json"))
