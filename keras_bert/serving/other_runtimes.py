"""A task as a LiteRT or ONNX model, by Keras's own exporters: ids in, the model's output out."""

import contextlib
import json
import logging
import re
import tempfile
import warnings
from pathlib import Path

import keras

from keras_bert.arguments import needed
from keras_bert.atomic import check_writable, write_file

# ONNX's operator set of December 2022, supported since ONNX Runtime 1.14.
OPSET = 18

# Inputs whose axis 1 is the row's tokens.
_BY_TOKEN = ("token_ids", "segment_ids", "padding_mask")


def to_litert(task, path: str | Path, output: str = "logits") -> None:
    """Writes a task as a LiteRT (TensorFlow Lite) flatbuffer.

    Its one signature, Keras's `serving_default`, takes `token_ids`, `segment_ids` and
    `padding_mask`, int32 [B, T], and other inputs of the task (`mask_positions`,
    `entity_positions`), and returns the task's outputs, float32: those of a dict by name (`start`
    and `end`), a single one as `output`. B and T are dynamic; a signature runner takes them from
    each call. LiteRT's built-in ops suffice. For rows longer than the position table the
    interpreter raises an error.

    Args:
        task: a task on the TensorFlow backend that computes in float32.
        path: the file to create or replace, by convention `*.tflite`.
        output: name of the output of a task with a single, unnamed output.

    Raises:
        ValueError: if the task runs on another backend or in another dtype, or has ops that LiteRT
            does not support.
    """
    import tensorflow as tf

    check_writable(path)
    model = _named(task, output)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.tflite"
        try:
            with one_log_line(path):
                model.export(
                    file,
                    format="litert",
                    verbose=False,
                    # Keras would allow TensorFlow's ops and variables, which need its runtime.
                    target_spec={"supported_ops": [tf.lite.OpsSet.TFLITE_BUILTINS]},
                    experimental_enable_resource_variables=False,
                )
        except Exception as error:  # ConverterError is not public
            lacking = re.findall("(?:TF Select|Custom) ops: (.+)", str(error))
            if not lacking:
                raise
            raise ValueError(
                f"{type(task).__name__} has ops that LiteRT lacks: {', '.join(lacking)}"
            ) from None
        write_file(path, file.read_bytes())


def to_onnx(task, path: str | Path, output: str = "logits", opset: int = OPSET) -> None:
    """Writes a task as an ONNX model.

    Inputs and outputs are those of `to_litert`; the axes are named `batch` and `length`. The
    model's metadata hold `task`, `max_length` (maximum number of tokens in a row) and, if the task
    has names for its classes, `labels` as a JSON list. For longer rows the runtime raises an error.

    Args:
        task: a task on the TensorFlow backend that computes in float32.
        path: the file to create or replace, by convention `*.onnx`.
        output: name of the output of a task with a single, unnamed output.
        opset: version of ONNX's operator set.

    Raises:
        ImportError: if tf2onnx or onnx is not installed.
        ValueError: if the task runs on another backend or in another dtype, or has ops that ONNX
            does not support.
    """
    with needed("to_onnx", "tf2onnx and onnx", "'keras3-bert[runtimes]'"):
        import onnx
        import tf2onnx  # noqa: F401  # by Keras

    check_writable(path)
    model = _named(task, output)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # Keras checks whether NumPy has the attributes that tf2onnx needs, and NumPy warns about
        # that check.
        warnings.filterwarnings("ignore", "In the future `np.object`", FutureWarning)
        file = str(Path(folder) / "model.onnx")
        model.export(file, format="onnx", verbose=False, opset_version=opset)
        made = onnx.load(file)
    for value in [*made.graph.input, *made.graph.output]:
        _name_axes(value, getattr(task, "outputs_by_token", False))
    labels = getattr(task, "labels", None)
    facts = {"task": type(task).__name__, "max_length": str(_backbone(task).max_sequence_length)}
    facts |= {"labels": json.dumps(labels, ensure_ascii=False)} if labels else {}
    onnx.helper.set_model_props(made, facts)
    # For an unknown op tf2onnx only logs a line.
    known = onnx.defs.has
    lacking = {node.op_type for node in made.graph.node if not known(node.op_type, node.domain)}
    if lacking:
        raise ValueError(
            f"{type(task).__name__} has ops that ONNX lacks: {', '.join(sorted(lacking))}"
        )
    onnx.checker.check_model(made)
    write_file(path, made.SerializeToString())


@contextlib.contextmanager
def one_log_line(path: str | Path):
    """Makes TensorFlow's log line on the written files name `path`, not the temporary folder.

    One message goes to absl's logger, which adds a handler to the root logger, so that all later
    lines would appear twice; avoided if the root logger has a handler.

    Args:
        path: the folder to be created.
    """

    def renamed(record):
        if str(record.msg).startswith("Assets written to"):
            record.msg, record.args = "SavedModel written to: %s", (str(path),)
        return True

    logger, handler = logging.getLogger("tensorflow"), logging.NullHandler()
    logger.addFilter(renamed)
    logging.root.addHandler(handler)
    try:
        yield
    finally:
        logging.root.removeHandler(handler)
        logger.removeFilter(renamed)


def _named(task, output: str) -> keras.Model:
    """The task's network with a dict of outputs, from which the exporters take output names."""
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            f"the Keras backend is {keras.backend.backend()}; other runtimes take a model from "
            "tensorflow: set KERAS_BACKEND=tensorflow and load the model anew"
        )
    dtype = _backbone(task).dtype_policy.compute_dtype
    if dtype != "float32":
        raise ValueError(
            f"the model computes in {dtype}, which other runtimes do in another way or not at "
            'all: load it with dtype="float32"'
        )
    outputs = task.output if isinstance(task.output, dict) else {output: task.output}
    model = keras.Model(task.input, outputs)
    model(task.input)  # Keras exports only called models to ONNX
    return model


def _backbone(task):
    return getattr(task, "backbone", task)


def _name_axes(value, by_token: bool) -> None:
    """Names the free axes of an ONNX input or output; axes of unknown meaning keep their names."""
    names = ["batch", "length" if by_token or value.name in _BY_TOKEN else None]
    for name, size in zip(names, value.type.tensor_type.shape.dim, strict=False):
        if name and not size.HasField("dim_value"):
            size.dim_param = name
