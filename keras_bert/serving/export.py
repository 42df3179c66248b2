"""A task as a SavedModel: strings in, answers out, without Python code of this package."""

import json
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np

from keras_bert.arguments import check_choice
from keras_bert.atomic import check_replaceable, write_folder
from keras_bert.models.tuning import lora_layers
from keras_bert.serving.export_contract import (
    described,
    rest_reply,
    rest_request,
    settings_of,
    text_ops,
    versions,
    write_contract,
)
from keras_bert.serving.network import ROWS, Network
from keras_bert.serving.onnx_network import (
    NETWORK,
    OnnxFunction,
    OnnxNetwork,
    split_functions,
    write_direct,
    write_network,
)
from keras_bert.serving.other_runtimes import one_log_line
from keras_bert.serving.signatures import (
    TEXT,
    Signature,
    served,
    token_signature,
    tokenize_signature,
)

# Entries at the top level of an export.
FILES = ("*.pb", "*.onnx", "variables", "assets", "assets.extra")
FORMATS = ("savedmodel", "onnx")


def export_task(
    task, path, text, weights, rows, examples, reference, verbose, format, options
) -> list[str]:
    """Does the work of `BertTask.export`; `options` are those of the task's `signatures`."""
    import tensorflow as tf

    if keras.config.backend() != "tensorflow":
        raise ValueError(f"export needs Keras on TensorFlow, not on {keras.config.backend()}")
    check_choice("format", format, FORMATS)
    to_onnx_runtime = format == "onnx"
    if to_onnx_runtime and not text:
        raise ValueError("text=False: the ONNX model of ids alone is written by `to_onnx`")
    if rows is None:
        rows = 1 if weights == "int8" else ROWS
    run = Network(task, "float32" if to_onnx_runtime else weights, rows)
    found = signatures_of(task, run, text, options)
    check_replaceable(path, FILES)
    if Path(path).is_dir() and any(Path(path).iterdir()):
        if not (Path(path) / "saved_model.pb").is_file():
            raise FileExistsError(f"{path} is not replaced, for it holds no saved_model.pb")
    settings = settings_of(task, **options)
    if verbose:
        message = f"tracing {type(task).__name__} and writing {path}: some seconds, up to a minute"
        print(message, file=sys.stderr, flush=True)
    if examples is not None:
        default = found["serving_default"]
        found["serving_default"] = default._replace(example=examples)
    found["metadata"] = _metadata(task, settings)
    with tempfile.TemporaryDirectory() as scratch:
        network_file = Path(scratch) / NETWORK
        if to_onnx_runtime:
            onnx = {"rows": rows, "by_token": task.outputs_by_token}
            onnx["fused"] = write_network(task, network_file, weights)
            network = OnnxNetwork(network_file, onnx["by_token"], rows)
            saved = split_functions(task, task.signatures(**options), network)
            network_bytes = network_file.read_bytes()
        else:
            onnx, network, saved, network_bytes = None, None, {}, b""
    for name, signature in found.items():
        if f"{name}/rows" not in saved:
            function = tf.function(signature.function, signature.inputs, autograph=False)
            saved[name] = function.get_concrete_function()
    module = tf.Module()
    module.held = [] if to_onnx_runtime else run.variables
    calls = {n: saved[n] if n in saved else OnnxFunction(n, saved, network) for n in found}
    outputs = {n: saved[n if n in saved else f"{n}/answers"].structured_outputs for n in found}
    asked = {name: _tensors(signature) for name, signature in found.items()}
    shown = [(name, tensors, calls[name](**tensors)) for name, tensors in asked.items()]
    _check_rows(asked["serving_default"], shown[0][2])
    difference = None
    inexact = task.dtype_policy.compute_dtype != "float32" or weights != "float32"
    plain = not _is_quantized(task) and not lora_layers(task.backbone)
    if reference is None and inexact and plain:
        reference = float32_copy(task)
    if reference is not None:
        other = signatures_of(reference, Network(reference), text, options)["serving_default"]
        tensors = asked["serving_default"]
        # By position, as `tokens` takes its inputs.
        expected = other.function(*(tensors[spec.name] for spec in other.inputs))
        difference = _difference(expected, shown[0][2])

    def write(folder):
        with one_log_line(path):
            tf.saved_model.save(module, folder, signatures=saved)
        if to_onnx_runtime:
            (Path(folder) / NETWORK).write_bytes(network_bytes)
            answers = task.signatures(**options)
            onnx["ascii_rows"] = write_direct(task, answers, saved, Path(folder))
        data = len(network_bytes) or sum(
            file.stat().st_size for file in (Path(folder) / "variables").iterdir()
        )
        contract = {
            "task": type(task).__name__,
            "versions": versions(),
            "settings": settings,
            "weights": {
                "policy": task.dtype_policy.name,
                "stored": weights if to_onnx_runtime else _stored(task, run),
                "bytes": data,
                "difference": difference,
            },
            "text_ops": text_ops(folder),
            "signatures": {
                name: {
                    "inputs": described({spec.name: spec for spec in signature.inputs}),
                    "outputs": described(outputs[name]),
                }
                for name, signature in found.items()
            },
            "examples": [
                {"request": rest_request(name, inputs), "reply": rest_reply(reply)}
                for name, inputs, reply in shown
            ],
        }
        write_contract(folder, contract | ({"onnx": onnx} if onnx else {}))

    write_folder(path, write, FILES)
    return text_ops(path)


def float32_copy(task):
    """The same weights under the dtype policy "float32".

    Raises:
        ValueError: if weights are quantized or have low-rank updates.
    """
    if _is_quantized(task) or lora_layers(task.backbone):
        raise ValueError("quantized weights have no float32 form: pass reference=")
    config = task.get_config()
    backbone = type(task.backbone).from_config(task.backbone.get_config() | {"dtype": "float32"})
    own = {
        name: value
        for name, value in config.items()
        if name not in ("name", "trainable", "dtype", "frozen", "backbone", "preprocessor")
    }
    copy = type(task)(backbone, preprocessor=task.preprocessor, **own)
    for new, old in zip(copy.weights, task.weights, strict=True):
        new.assign(keras.ops.cast(old, new.dtype))
    return copy


def _is_quantized(task) -> bool:
    return any(variable.dtype in ("int8", "uint8") for variable in task.variables)


def signatures_of(task, run: Network, text: bool, options: dict) -> dict[str, Signature]:
    """All signatures of a task, or without `text` those of ids alone.

    Raises:
        ValueError: if an option is unknown or out of range, or there is no preprocessor for texts.
    """
    tokens = token_signature(task, run)
    if not text:
        if options:
            raise ValueError(f"text=False leaves nothing for {', '.join(options)} to do")
        return {"serving_default": tokens, "tokens": tokens}
    if task.preprocessor is None:
        raise ValueError(
            f"this {type(task).__name__} has no preprocessor, whose tokenizer texts need; "
            "export(text=False) is for ids alone"
        )
    task.check_preprocessor()
    try:
        found = task.signatures(**options)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        name = str(error).rpartition(" ")[2]
        raise ValueError(f"{type(task).__name__}.export has no option {name}") from error
    answers = {name: served(answer, run) for name, answer in found.items()}
    return answers | {"tokenize": tokenize_signature(task), "tokens": tokens}


def _metadata(task, settings: dict) -> Signature:
    """`metadata`: the settings, in each row, as REST interfaces and batching need rows."""
    import tensorflow as tf

    said = json.dumps({"task": type(task).__name__, "versions": versions(), "settings": settings})

    def metadata(ask):
        return {"metadata": tf.fill(tf.shape(ask), said)}

    return Signature(metadata, [TEXT.spec("ask")], {"ask": ["settings"]})


def _tensors(signature: Signature) -> dict:
    import tensorflow as tf

    specs = {spec.name: spec for spec in signature.inputs}
    if set(signature.example) != set(specs):
        raise ValueError(
            f"examples have the names {', '.join(signature.example)}; expected {', '.join(specs)}"
        )
    return {n: tf.constant(signature.example[n], spec.dtype) for n, spec in specs.items()}


def _check_rows(inputs: dict, reply: dict) -> None:
    """Raises a ValueError for answers that are not one for each example."""
    import tensorflow as tf

    count = int(tf.shape(next(iter(inputs.values())))[0])
    for name, value in reply.items():
        if not value.shape.rank or int(tf.shape(value)[0]) != count:
            raise ValueError(
                f"{name!r} has shape {value.shape} for {count} examples: `answers` has to pool the "
                "rows of an example, see Rows.example"
            )


def _difference(expected: dict, reply: dict) -> dict:
    """Differences between answers and those of another model of the task."""
    import tensorflow as tf

    rows = int(tf.shape(next(iter(reply.values())))[0])
    largest, same = 0.0, np.ones(rows, bool)
    for name in reply if rows else ():
        is_float = reply[name].dtype.is_floating
        got, wanted = (
            (tf.cast(value[name], tf.float32) if is_float else value[name]).numpy()
            for value in (reply, expected)
        )
        if got.shape != wanted.shape:  # for example, a row may have more entities
            shared = tuple(
                slice(0, min(pair)) for pair in zip(got.shape, wanted.shape, strict=True)
            )
            got, wanted = got[shared], wanted[shared]
        if is_float:
            largest = max(largest, float(np.max(np.abs(got - wanted), initial=0.0)))
        else:
            same &= (got == wanted).reshape(rows, -1).all(axis=1)
    return {"largest": largest, "same_answers": float(same.mean()) if rows else 1.0, "rows": rows}


def _stored(task, run: Network) -> str:
    """The dtype of the stored weights."""
    if _is_quantized(task):
        layers = task.backbone._flatten_layers()
        return next(filter(None, (getattr(x, "quantization_mode", None) for x in layers)))
    return run.weights if run.weights != "float32" else task.dtype_policy.variable_dtype
