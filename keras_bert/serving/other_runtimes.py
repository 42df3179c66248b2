"""A task's `tokens` signature for LiteRT and for ONNX runtimes: ids in, the model's output out."""

import json
import re
import tempfile
from pathlib import Path

import keras
import numpy as np

from keras_bert.atomic import check_writable, write_file
from keras_bert.serving.export import one_log_line

# ONNX's operator set of December 2022, which runtimes since ONNX Runtime 1.14 know.
OPSET = 18

# Inputs whose axis 1 is the row's tokens.
_BY_TOKEN = ("token_ids", "segment_ids", "padding_mask")


def to_litert(task, path: str | Path, output: str = "logits") -> None:
    """Writes a task as a LiteRT (TensorFlow Lite) flatbuffer.

    Its one signature `tokens` takes `token_ids`, `segment_ids` and `padding_mask`, int32 [B, T],
    and what else the task needs (`mask_positions`, `entity_positions`), and gives the task's
    outputs, float32: those of a dict by their names (`start` and `end`), a single one as `output`.
    B and T are free, a signature runner takes them from each call. LiteRT's built-in ops suffice.
    Rows longer than the model's positions are an error of the interpreter.

    Args:
        task: a task on the TensorFlow backend that computes in float32.
        path: the file to make or replace, by custom `*.tflite`.
        output: name of the output of a task that has one, without a name.

    Raises:
        ValueError: if the task runs on another backend or in another dtype, or has ops that
            LiteRT lacks.
    """
    import tensorflow as tf

    check_writable(path)
    function, specs = tokens_function(task, output)
    module = tf.Module()
    module.tokens = tf.function(function, input_signature=specs, autograph=False)
    with tempfile.TemporaryDirectory() as folder:
        # By way of a SavedModel, because the converter takes names of signatures from there alone.
        with one_log_line(path):
            tf.saved_model.save(module, folder, signatures={"tokens": module.tokens})
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=["tokens"])
        try:
            content = converter.convert()
        except Exception as error:  # ConverterError is not public
            lacking = re.findall("(?:TF Select|Custom) ops: (.+)", str(error))
            if not lacking:
                raise
            raise ValueError(
                f"{type(task).__name__} has ops that LiteRT lacks: {', '.join(lacking)}"
            ) from None
    write_file(path, content)


def to_onnx(task, path: str | Path, output: str = "logits", opset: int = OPSET) -> None:
    """Writes a task as an ONNX model.

    Inputs and outputs are those of `to_litert`; the axes are named `batch` and `length`. The
    model's metadata hold `task`, `max_length` (the most tokens that a row may have) and, where
    the task has names for its classes, `labels` as a JSON list. Rows longer than that are an
    error of the runtime.

    Args:
        task: a task on the TensorFlow backend that computes in float32.
        path: the file to make or replace, by custom `*.onnx`.
        output: name of the output of a task that has one, without a name.
        opset: version of ONNX's operator set.

    Raises:
        ImportError: if tf2onnx or onnx is not installed.
        ValueError: if the task runs on another backend or in another dtype, or has ops that ONNX
            lacks.
    """
    try:
        import onnx
        import tf2onnx
    except ImportError as error:
        raise ImportError(
            f"to_onnx needs tf2onnx and onnx, and {error.name} is missing: "
            "`pip install 'keras3-bert[runtimes]'`"
        ) from error
    import tensorflow as tf

    check_writable(path)
    function, specs = tokens_function(task, output)
    model, _ = tf2onnx.convert.from_function(
        tf.function(function, input_signature=specs, autograph=False),
        specs,
        opset=opset,
        custom_op_handlers={"Erfc": (_erfc, [])},
    )
    for value in [*model.graph.input, *model.graph.output]:
        _name_axes(value, getattr(task, "outputs_by_token", False))
    labels = getattr(task, "labels", None)
    facts = {"task": type(task).__name__, "max_length": str(_backbone(task).max_sequence_length)}
    facts |= {"labels": json.dumps(labels, ensure_ascii=False)} if labels else {}
    onnx.helper.set_model_props(model, facts)
    # Of an op that it does not know tf2onnx only logs a line.
    known = onnx.defs.has
    lacking = {node.op_type for node in model.graph.node if not known(node.op_type, node.domain)}
    if lacking:
        raise ValueError(
            f"{type(task).__name__} has ops that ONNX lacks: {', '.join(sorted(lacking))}"
        )
    onnx.checker.check_model(model)
    write_file(path, model.SerializeToString())


def tokens_function(task, output: str) -> tuple:
    """Gives a task as a function of ids, its weights as constants.

    Args:
        task: a task on the TensorFlow backend that computes in float32.
        output: name of the output of a task that has one, without a name.

    Returns:
        (function, specs): the function gives a dict of float32 tensors; `specs` are one
        `tf.TensorSpec` of int32 for each of its arguments, the axes B and T free.

    Raises:
        ValueError: if the task runs on another backend or in another dtype.
    """
    import tensorflow as tf

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
    specs = [tf.TensorSpec(x.shape, tf.int32, name=name) for name, x in task.input.items()]
    trainable = [variable.numpy() for variable in task.trainable_variables]
    others = [variable.numpy() for variable in task.non_trainable_variables]

    def tokens(*arguments):
        outputs, _ = task.stateless_call(
            [tf.constant(value) for value in trainable],
            [tf.constant(value) for value in others],
            dict(zip(task.input, arguments, strict=True)),
            training=False,
        )
        return outputs if isinstance(outputs, dict) else {output: outputs}

    return tokens, specs


def _backbone(task):
    return getattr(task, "backbone", task)


def _erfc(context, node, name, _):
    """Writes 1 - erf(x), for ONNX has no complement of the error function.

    The exact GELU takes it for large negative x, where its own value is nearly zero as well: what
    the difference loses there, float32 loses in the sums that follow.
    """
    erf = context.make_node("Erf", list(node.input))
    one = context.make_const(f"{name}/one", np.array(1, np.float32))
    node.type = "Sub"
    context.replace_inputs(node, [one.output[0], erf.output[0]])


def _name_axes(value, by_token: bool) -> None:
    """Names the free axes of an ONNX input or output; those of unknown meaning keep theirs."""
    names = ["batch", "length" if by_token or value.name in _BY_TOKEN else None]
    for name, size in zip(names, value.type.tensor_type.shape.dim, strict=False):
        if name and not size.HasField("dim_value"):
            size.dim_param = name
