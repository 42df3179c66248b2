"""One signature of an export, or of a task, as a function of NumPy arrays."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert.serving.export_contract import PLACE, described, read_contract, settings_of
from keras_bert.serving.onnx_network import NETWORK, called, load_functions


class ExportedModel:
    """A signature of an export.

    A SavedModel is a program: TensorFlow runs all ops of its graph, including those that read and
    write files. Use only your own exports, or those of people whose programs you would run.

    Attributes:
        inputs: "dtype" and "shape" by name.

    Raises:
        FileNotFoundError: if there is no export.
        ValueError: if there is no such signature.
    """

    def __init__(self, folder: str | Path, signature: str):
        self._folder, self._signature = Path(folder), signature
        self._contract = read_contract(folder)
        self.inputs = _chosen(self._contract["signatures"], signature, folder)["inputs"]
        self._function: Callable | None = None

    def fingerprint(self) -> str:
        """A hash of contract, graph, vocabulary and the checksums of all weights."""
        places = [PLACE, "saved_model.pb", "variables/variables.index"]
        places += [NETWORK] if (self._folder / NETWORK).is_file() else []
        places += sorted(f"assets/{path.name}" for path in (self._folder / "assets").glob("*"))
        found = hashlib.sha256()
        for place in places:
            path = self._folder / place
            content = path.read_bytes() if path.is_file() else b""
            found.update(f"{place} {len(content)}\n".encode() + content)
        return found.hexdigest()

    def load(self) -> None:
        """Loads the graph.

        Raises:
            ImportError: if it needs TensorFlow Text or ONNX Runtime, which is not installed.
        """
        self._function = load_functions(self._folder, self._contract)[self._signature]

    def __call__(self, inputs: dict[str, Any]) -> dict[str, np.ndarray]:
        """Calls the signature with lists or arrays by name; returns arrays by name."""
        return self._function(inputs)


class TaskModel:
    """A signature of a task, as its `export` would write it with these options.

    Otherwise as `ExportedModel`.
    """

    def __init__(self, task, signature: str, options: dict[str, Any]):
        from keras_bert.serving.export import signatures_of
        from keras_bert.serving.network import Network

        found = signatures_of(task, Network(task), True, options)
        self._task, self._options = task, options
        self._found = _chosen(found, signature, type(task).__name__)
        self.inputs = described({spec.name: spec for spec in self._found.inputs})

    def fingerprint(self) -> str:
        """A hash of settings, vocabulary and weights."""
        found = hashlib.sha256()
        settings = settings_of(self._task, **self._options)
        vocabulary = self._task.preprocessor.tokenizer.get_vocabulary()
        said = [type(self._task).__name__, settings, vocabulary]
        found.update(json.dumps(said, sort_keys=True).encode())
        for weight in self._task.weights:
            value = np.ascontiguousarray(weight)
            found.update(f"{weight.path} {value.dtype} {value.shape}\n".encode())
            found.update(value.view(np.uint8).data if value.ndim else value.tobytes())
        return found.hexdigest()

    def load(self) -> None:
        """Builds the graph."""
        import tensorflow as tf

        asked, specs = self._found.function, {spec.name: spec for spec in self._found.inputs}

        def by_name(**inputs):
            return asked(*(inputs[name] for name in specs))

        function = tf.function(by_name, autograph=False)
        self._function = function.get_concrete_function(**specs)

    def __call__(self, inputs: dict[str, Any]) -> dict[str, np.ndarray]:
        """Calls the signature; see `ExportedModel`."""
        return called(self._function, self.inputs, inputs)


def _chosen(signatures: dict, name: str, where):
    if name not in signatures:
        raise ValueError(f"{where} has no signature {name!r}; it has {', '.join(signatures)}")
    return signatures[name]
