"""The description of an export, in a file next to the graph: assets.extra/contract.json.

    {
      "format": 1,
      "task": the class,
      "versions": {package: version},
      "settings": labels, thresholds, lengths, and the options of the export,
      "weights": {
        "policy": dtype policy,
        "stored": dtype in the variables' files, or mode of quantization,
        "bytes": of the variables' files,
        "difference": null, or {"largest": difference of a number in an answer from the reference's,
          "same_answers": share of rows with the same words and whole numbers, "rows": compared}
      },
      "text_ops": ops that only TensorFlow Text registers,
      "signatures": {name: {"inputs": {name: {"dtype", "shape"}}, "outputs": the same}},
      "examples": [{"request": ..., "reply": ...}]
    }

Requests and replies have the form in columns of TensorFlow Serving's REST interface, where a reply
of one output is the output itself. A string that is not UTF-8 is {"b64": ...}.
"""

import base64
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert.data.rows import parse_json
from keras_bert.version import __version__

FORMAT = 1
PLACE = "assets.extra/contract.json"

# Ops that only TensorFlow Text registers, by the start of their names.
_TEXT_OP_PREFIXES = (
    "FastBertNormalize",
    "FastWordpiece",
    "WordpieceTokenize",
    "Whitespace",
    "TFText",
)


def settings_of(task, **options) -> dict[str, Any]:
    """The settings that determine a task's answers: its own, its preprocessor's, and the export's
    options."""
    config = task.get_config()
    own = {
        name: value
        for name, value in config.items()
        if name
        not in ("name", "trainable", "dtype", "frozen", "backbone", "preprocessor", "dropout")
        and _is_plain(value)
    }
    text = {}
    if task.preprocessor is not None:
        text = {name: getattr(task.preprocessor, name) for name in task.preprocessor.settings}
        text["lowercase"] = task.preprocessor.tokenizer.lowercase
    return own | text | {n: v.item() if hasattr(v, "item") else v for n, v in options.items()}


def versions() -> dict[str, str]:
    """Versions of the packages used for an export."""
    found = {"keras_bert": __version__}
    for name in ("keras", "keras-hub", "tensorflow", "tensorflow-text"):
        try:
            found[name.replace("-", "_")] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def described(specs: dict) -> dict[str, dict]:
    """Dtypes and shapes of `tf.TensorSpec`s or tensors by name."""
    return {
        name: {"dtype": spec.dtype.name, "shape": spec.shape.as_list()}
        for name, spec in specs.items()
    }


def rest_request(signature: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """A request to TensorFlow Serving's REST interface, from inputs as tensors."""
    plain = {name: plain_values(value.numpy()) for name, value in inputs.items()}
    return {"signature_name": signature, "inputs": plain}


def rest_reply(outputs: dict[str, Any]) -> dict[str, Any]:
    """The reply of the REST interface, from a signature's outputs as tensors."""
    plain = {name: plain_values(value.numpy()) for name, value in sorted(outputs.items())}
    return {"outputs": plain if len(plain) != 1 else next(iter(plain.values()))}


def text_ops(folder: str | Path) -> list[str]:
    """Lists the TensorFlow Text ops in a SavedModel."""
    from tensorflow.core.protobuf import saved_model_pb2

    model = saved_model_pb2.SavedModel.FromString((Path(folder) / "saved_model.pb").read_bytes())
    graph = model.meta_graphs[0].graph_def
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    return sorted({node.op for node in nodes if node.op.startswith(_TEXT_OP_PREFIXES)})


def write_contract(folder: str | Path, contract: dict[str, Any]) -> None:
    """Writes the file into a folder under construction."""
    path = Path(folder) / PLACE
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        content = json.dumps({"format": FORMAT} | contract, indent=1, allow_nan=False)
    except ValueError as error:
        raise ValueError("the answers to the examples hold a number that is not finite") from error
    path.write_text(content + "\n", encoding="utf-8")


def read_contract(folder: str | Path) -> dict[str, Any]:
    """Reads the file of an export.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if it is not a contract of this format.
    """
    path = Path(folder) / PLACE
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there: {folder} was not made by `export`")
    contract = parse_json(path.read_text(encoding="utf-8"), path)
    found = contract.get("format") if isinstance(contract, dict) else None
    if found != FORMAT:
        raise ValueError(f"{path} has format {found!r:.80}; expected {FORMAT}")
    if not isinstance(contract.get("signatures"), dict):
        raise ValueError(f"{path} has no signatures")
    return contract


def plain_values(value):
    """Converts an array, or one string as bytes, to lists of JSON values.

    Bytes that are not UTF-8 become {"b64": ...}.
    """
    if not isinstance(value, np.ndarray):  # of a single string
        return _strings(value)
    if value.dtype.kind == "V":  # bfloat16
        value = value.astype("float32")
    if value.dtype.kind in "OS":
        return _strings(value.tolist())
    return value.tolist()


def _strings(value):
    if isinstance(value, list):
        return [_strings(item) for item in value]
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode()}


def _is_plain(value) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)
