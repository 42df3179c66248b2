"""Signatures of a SavedModel: functions of named tensors, and those common to all tasks."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Signature(NamedTuple):
    """One signature of a model.

    Attributes:
        function: takes the inputs by name as tensors, and returns a dict of tensors.
        inputs: a `tf.TensorSpec` of each input; their names are the function's arguments.
        example: values of the inputs for the contract, by name.
    """

    function: Callable[..., dict[str, Any]]
    inputs: list
    example: dict[str, Any]


class Column(NamedTuple):
    """One column of a model's examples; by default of texts.

    Attributes:
        dtype: dtype of its values.
        shape: shape with the batch axis first, such as (None,).
    """

    dtype: str = "string"
    shape: tuple = (None,)

    def spec(self, name: str):
        """Describes a batch.

        Args:
            name: name of the input.

        Returns:
            The `tf.TensorSpec`.
        """
        import tensorflow as tf

        return tf.TensorSpec(self.shape, self.dtype, name=name)

    def tensor(self, values, name: str):
        """Converts checked values to a tensor.

        Args:
            values: B values, a list or an array.
            name: the column's name in errors.

        Returns:
            A tensor [B, ...]; for lists in a column of one axis a ragged one.

        Raises:
            ValueError: if lists in a column of two axes differ in length.
        """
        import tensorflow as tf

        if not len(values):
            return tf.zeros([0, *(size or 0 for size in self.shape[1:])], self.dtype)
        lists = isinstance(values, list) and len(values) and isinstance(values[0], list)
        if lists and len(self.shape) == 2:
            for row, value in enumerate(values):
                if len(value) != len(values[0]):
                    raise ValueError(
                        f"{name}: row {row} has {len(value)} values and row 0 {len(values[0])}: "
                        'expected lists of one length; `examples` pads them, texts with ""'
                    )
        if not lists or len(self.shape) > 1:
            return tf.constant(values, self.dtype)
        flat = tf.constant([item for row in values for item in row], self.dtype)
        return tf.RaggedTensor.from_row_lengths(flat, [len(row) for row in values])


TEXT = Column()


def served(answer, run) -> Signature:
    """Builds the signature of a `keras_bert.tasks.task.Answer`; `run` is the task's `Network`."""

    def respond(*values):
        columns = check_columns(answer.asks, values)
        rows = answer.rows(*columns)
        return answer.answers(run(rows.ids, answer.kept), rows, *columns)

    specs = [column.spec(name) for name, column in answer.asks.items()]
    return Signature(respond, specs, answer.example)


def check_ranks(**columns):
    """Makes a graph reject tensors whose rank differs from their specs, which loaders accept.

    The tensors by name are returned in order; the InvalidArgumentError names the input.
    """
    import tensorflow as tf

    checked = []
    for name, value in columns.items():
        # Discards the static shape, or the check would be resolved from it. The error is "node
        # input_NAME: shape ... is not compatible with expected shape ...".
        given = tf.raw_ops.PlaceholderWithDefault(input=value, shape=tf.TensorShape(None))
        checked.append(tf.ensure_shape(given, value.shape, name=f"input_{name}"))
    return checked


def check_columns(asks: dict[str, Column], values: Sequence) -> list:
    """Makes a graph reject columns of other ranks or lengths, and bytes that are not UTF-8.

    The tensors are returned in order; the InvalidArgumentError names input and row.
    """
    import tensorflow as tf

    columns = dict(zip(asks, check_ranks(**dict(zip(asks, values, strict=True))), strict=True))
    checks = []
    first, *others = columns
    for name, texts in columns.items():
        if asks[name].dtype != "string":
            continue
        whole = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        wrong = tf.reshape(whole != texts, [-1])
        row = tf.argmax(tf.pad(wrong, [[0, 1]]))
        message = f"input {name!r} is no valid UTF-8, in text"
        checks.append(tf.Assert(~tf.reduce_any(wrong), [message, row]))
    for name in others:
        sizes = [tf.shape(columns[key])[0] for key in (first, name)]
        message = f"inputs {first!r} and {name!r} have different numbers of rows:"
        checks.append(tf.Assert(sizes[0] == sizes[1], [message, *sizes]))
    with tf.control_dependencies(checks):
        return [tf.identity(column) for column in columns.values()]


def token_signature(task, run) -> Signature:
    """`tokens`: rows of ids to the model's output; needs only TensorFlow's own ops.

    Further inputs of the task's network, such as `mask_positions`, are included.
    """
    import tensorflow as tf

    backbone = task.backbone
    limits = {
        "token_ids": backbone.vocabulary_size,
        "segment_ids": backbone.num_segments,
        "padding_mask": 2,
    }
    further = {name: tensor for name, tensor in task.input.items() if name not in limits}

    names = [*limits, *further]

    def tokens(*values):
        ids = dict(zip(names, values, strict=True))
        ids = dict(zip(names, check_ranks(**ids), strict=True))
        shape, length = tf.shape(ids["token_ids"]), tf.shape(ids["token_ids"])[-1]
        checks = [
            tf.debugging.assert_less_equal(
                length,
                backbone.max_sequence_length,
                f"token_ids are longer than {backbone.max_sequence_length}, the positions of the "
                "model",
            )
        ]
        for name, limit in limits.items():
            same = tf.reduce_all(tf.shape(ids[name]) == shape)
            checks.append(tf.Assert(same, [f"{name} have another shape than token_ids"]))
            inside = tf.reduce_all((ids[name] >= 0) & (ids[name] < limit))
            checks.append(tf.Assert(inside, [f"{name} lie outside of 0 to {limit - 1}"]))
        for name in further:
            same = tf.shape(ids[name])[0] == shape[0]
            checks.append(tf.Assert(same, [f"{name} have another number of rows than token_ids"]))
            if name.endswith("_positions"):
                inside = tf.reduce_all((ids[name] >= 0) & (ids[name] < length))
                checks.append(tf.Assert(inside, [f"{name} lie outside of the row"]))
        with tf.control_dependencies(checks):
            ids = {name: tf.identity(value) for name, value in ids.items()}
        return named(run.call(ids))

    specs = [tf.TensorSpec([None, None], tf.int32, name=name) for name in limits]
    specs += [tf.TensorSpec(v.shape, v.dtype, name=name) for name, v in further.items()]
    row = [[2, 3], [0, 0], [1, 1]]
    example = {name: [values] for name, values in zip(limits, row, strict=True)}
    example |= {
        name: np.zeros([size or 1 for size in v.shape], v.dtype) for name, v in further.items()
    }
    return Signature(tokens, specs, example)


def tokenize_signature(task) -> Signature:
    """`tokenize`: texts to ids and offsets, without special tokens."""
    import tensorflow as tf

    tokenizer = task.preprocessor.tokenizer

    def tokenize(text):
        (text,) = check_columns({"text": TEXT}, [text])
        ids, starts, ends = tokenizer.tokenize_with_offsets(text, unit="char")
        return {
            "token_ids": tf.cast(ids, tf.int32).to_tensor(tokenizer.pad_token_id),
            "start": tf.cast(starts, tf.int32).to_tensor(-1),
            "end": tf.cast(ends, tf.int32).to_tensor(-1),
            "count": tf.cast(ids.row_lengths(), tf.int32),
        }

    return Signature(tokenize, [TEXT.spec("text")], {"text": EXAMPLES})


def label_tensor(labels: list | None, num_classes: int):
    """The K names of classes, or ids if there are none, as a constant [K] of a served graph.

    It is int64 or bool if all names are of that type, float64 if all are numbers; else strings.
    """
    import tensorflow as tf

    labels = labels or [str(i) for i in range(num_classes)]
    kinds = {type(label) for label in labels}
    for types, dtype in (({bool}, "bool"), ({int}, "int64"), ({int, float}, "float64")):
        if kinds <= types:
            return tf.constant(labels, dtype)
    return tf.constant([str(label) for label in labels])


def named(output) -> dict:
    """A network's output as a dict; a single tensor is named `logits`."""
    return output if isinstance(output, dict) else {"logits": output}


EXAMPLES = ["The harbour froze in the night.", ""]
