"""Finds a checkpoint's files, in a local folder or behind a KerasHub or hf:// address."""

import difflib
import functools
import json
import os
import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import keras_hub
from keras_hub.src.utils import preset_utils

from keras_bert.checkpoints.checks import listed

# Presets that ship with the package, one folder each.
SHIPPED = Path(__file__).resolve().parents[1] / "presets"
_LONGEST_NAME, _LONGEST_PART = 500, 255
_SETTINGS = ("config.json", "bert_config.json")  # one of which every checkpoint has
_SECONDS = 5  # to wait for a host's answer
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
        """Returns the local path of a file, downloading it if necessary.

        Args:
            name: path inside the checkpoint; it must not lead out of it.

        Raises:
            FileNotFoundError: if the checkpoint has no such file.
            ConnectionError: if it has to be downloaded, and there is no network.
            ValueError: if `name` leads out of the checkpoint, or is invalid.
        """
        outside = Path(name).is_absolute() or ".." in Path(name).parts
        # Invalid file names would raise an error of the operating system.
        invalid = not name.isprintable() or len(name) > _LONGEST_NAME
        if outside or invalid or any(len(p.encode()) > _LONGEST_PART for p in Path(name).parts):
            problem = "leads out of the checkpoint" if outside else "is no name of a file"
            raise ValueError(f"{self.name}: the file name {name!r:.200} {problem}")
        if self.folder is None:
            return self._fetched(name)
        path = self.folder / name
        if not path.is_file():
            raise FileNotFoundError(f"{self.folder} has no {name}; found: {listed(self.folder)}")
        return path

    def _fetched(self, name: str) -> Path:
        """Gives a file behind an address; without a network, what was fetched before."""
        cause = None
        if self._reachable:
            try:
                return Path(preset_utils.get_file(self.name, name))
            except Exception as error:
                if not _is_of_network(error):
                    raise
                cause = error
        elif found := cached(self.name, name):
            return Path(found)
        elif any(cached(self.name, other) for other in _SETTINGS):
            raise FileNotFoundError(f"{self.name} has no {name} among the files fetched before")
        raise ConnectionError(
            f"no network: {name} of {self.name} was looked for at "
            f"{_host(self.name) or self.name}, and it was not fetched before. Without a network "
            f"these work: a folder, and the presets of the package, {', '.join(shipped())}"
        ) from cause

    @functools.cached_property
    def _reachable(self) -> bool:
        """Whether the host answers: asked once, for its libraries try again for a minute."""
        host = _host(self.name)
        return host is None or is_reachable(host)

    def has(self, name: str) -> bool:
        """Whether the checkpoint holds this file."""
        try:
            self.path(name)
        except FileNotFoundError:
            return False
        return True

    def json(self, name: str, kind: type = dict) -> Any:
        """Reads a file that holds one JSON object, or a list.

        Raises:
            FileNotFoundError: if the checkpoint has no such file.
            ValueError: if it is not JSON of this kind.
        """
        path = self.path(name)
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not valid JSON: {error}") from error
        if not isinstance(value, kind):
            expected = "a JSON object" if kind is dict else "a JSON list"
            raise ValueError(f"{path}: expected {expected}, found {type(value).__name__}")
        return value


def shipped() -> list[str]:
    """Names of the presets that ship with the package."""
    return sorted(path.parent.name for path in SHIPPED.glob("*/config.json"))


def _host(address: str) -> str | None:
    """Where the files behind an address lie; None where it is not known."""
    if address.startswith("hf://"):
        try:
            from huggingface_hub import constants
        except ImportError:  # KerasHub says what to install
            return None
        return constants.ENDPOINT
    if address.startswith("kaggle://") or address in keras_hub.models.BertBackbone.presets:
        return "https://api.kaggle.com"
    return None


def is_reachable(host: str) -> bool:
    """Whether a host answers, whatever it says, within some seconds."""
    if os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "ON", "YES", "TRUE"):
        return False
    if os.environ.get("ALL_PROXY") or os.environ.get("all_proxy"):
        return True  # perhaps by SOCKS, which the question below can't take
    try:
        urllib.request.urlopen(urllib.request.Request(host, method="HEAD"), timeout=_SECONDS)
    except urllib.error.HTTPError:
        return True
    except urllib.error.URLError as error:
        lost = isinstance(error.reason, TimeoutError | ConnectionError | socket.gaierror)
        unroutable = isinstance(error.reason, OSError) and error.reason.errno is not None
        return isinstance(error.reason, ssl.SSLError) or not (lost or unroutable)
    except (TimeoutError, ConnectionError):
        return False
    return True


def cached(address: str, name: str) -> str | None:
    """The local path of a file that was fetched before; None if it was not."""
    if address.startswith("hf://"):
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(address.removeprefix("hf://"), name)
        return found if isinstance(found, str) else None  # else it is known to be missing
    from kagglehub.cache import Cache
    from kagglehub.handle import parse_model_handle

    if address in keras_hub.models.BertBackbone.presets:
        address = keras_hub.models.BertBackbone.presets[address]["kaggle_handle"]
    handle = parse_model_handle(address.removeprefix("kaggle://"))
    return Cache().load_from_cache(handle, name) if handle.is_versioned() else None


def _is_of_network(error: BaseException | None) -> bool:
    """Whether an error of a library comes from a connection that failed."""
    while error is not None:
        if isinstance(error, ConnectionError | TimeoutError | socket.gaierror):
            return True
        if type(error).__name__ in ("ConnectError", "ConnectTimeout", "ConnectionError"):
            return True
        error = error.__cause__ or error.__context__
    return False
