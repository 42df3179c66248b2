"""Outputs of rows in memory, batched by similar length and returned in their original order."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np

from keras_bert.data.packed_rows import PackedSource
from keras_bert.data.ragged import dense, host_only, is_ragged
from keras_bert.serving.network import BY_TOKEN, Network
from keras_bert.tasks.from_checkpoint import own_settings
from keras_bert.tasks.ids import POSITIONS
from keras_bert.tasks.packed_source import packs_predictions
from keras_bert.text.padding import bucket_lengths
from keras_bert.training.callback_list import CallbackList

# Number of functions kept; each holds a graph.
MOST_FUNCTIONS = 8
# Batches prefetched.
AHEAD = 2


def run_rows(task, ids: dict, batch_size: int, kwargs: dict, kept: Callable | None = None):
    """Outputs of a task's network for rows of ids.

    Args:
        task: a task, compiled or not.
        ids: int32 arrays or tensors of R rows by name, whose last axis is T, or `tf.RaggedTensor`
            without padding.
        batch_size: rows of a batch.
        kwargs: as `keras.Model.predict`.
        kept: reduces the outputs of a batch to the tensors to keep, by name; by default all.

    Returns:
        float32 arrays [R, ...], structured as the model's output. If a task has
        `outputs_by_token`, an axis 1 as long as a truncated row is padded to T.
    """
    if (steps := kwargs.get("steps")) is not None:
        kwargs = {name: value for name, value in kwargs.items() if name != "steps"}
        ids = {name: value[: steps * batch_size] for name, value in ids.items()}
    mask = ids["padding_mask"]
    count, length = int(mask.shape[0]), mask.shape[-1] or task.preprocessor.sequence_length
    if not count:
        outputs = task.no_outputs()
        return outputs if kept is None else keras.tree.map_structure(np.asarray, kept(outputs))
    if kept is None and packs_predictions(task, count, batch_size):
        source = task.source(ids, batch_size=batch_size, labelled=False)
        if isinstance(source, PackedSource):
            outputs = task.predict_batches(source.one_pass(), kwargs)
            return keras.tree.map_structure(source.in_order, outputs)
    widths, order = by_width(ids, length)
    if _runs_here(task, kwargs):
        parts = _run_batches(task, ids, widths, order, batch_size, kwargs, kept)
    else:
        parts = _run_by_keras(task, ids, widths, order, batch_size, kwargs, kept)
    by_token, back = task.outputs_by_token and kept is None, np.argsort(order)

    def joined(*outputs):
        if by_token:
            widths = [width for width, _ in parts]
            pairs = zip(widths, outputs, strict=True)
            outputs = [_filled(width, length, task.fill_value, value) for width, value in pairs]
        return np.concatenate(outputs)[back]

    return keras.tree.map_structure(joined, *(outputs for _, outputs in parts))


def by_width(ids: dict, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Sorts rows by the smallest of 16, 32, 64, ... up to `length` tokens that holds them.

    Returns (widths, row indices), int [R] each. Packed rows keep their full width and their order.
    """
    mask = ids["padding_mask"]
    rows = int(mask.shape[0])
    if "packed_from" in ids:  # whose indices refer to the full width
        return np.full(rows, length), np.arange(rows)
    if is_ragged(mask):
        used = mask.row_lengths(axis=mask.shape.rank - 1)
        used = np.asarray(getattr(used, "flat_values", used))
    else:
        used = (np.asarray(mask) != 0) * np.arange(1, length + 1)  # by the last token
    used = used.reshape(rows, -1).max(axis=1, initial=1)  # a row may hold several texts
    for name in POSITIONS:
        if name in ids and ids[name].shape[1]:
            used = np.maximum(used, np.asarray(ids[name]).max(axis=1) + 1)
    order = np.argsort(used, kind="stable")
    ladder = np.array(bucket_lengths(length))
    return ladder[np.searchsorted(ladder, used[order])], order


def few_rows(task, answer, columns: list, batch_size: int, kwargs: dict) -> dict | None:
    """Answers the examples of a batch with a single function, as a server does.

    None if there are too many of them, Keras has to run the steps, or an example is invalid.
    """
    if (
        answer.key is None
        or is_ragged(columns[0])
        or columns[0].shape[0] > batch_size
        or kwargs.get("callbacks")
        or not _runs_here(task, kwargs)
        or task.step.needs_whole_batches
    ):
        return None
    import tensorflow as tf

    network = _functions_of(task).network

    def respond(*columns):
        rows = answer.rows(*columns)
        return answer.answers(network(rows.ids, answer.kept), rows, *columns)

    function = kept_function(task, answer.key, respond, columns)
    try:
        return function(*columns)
    except tf.errors.InvalidArgumentError:
        return None  # the path for many examples raises an error that names the example


def kept_function(task, key: tuple, function: Callable, columns: list) -> Callable:
    """A graph function of columns [B, ...], for any B, traced once for the settings it holds.

    `key` identifies it among those of the task. `function` itself if functions run eagerly.
    """
    import tensorflow as tf

    if tf.config.functions_run_eagerly():
        return function
    functions = _functions_of(task)
    key = (key, *(c.shape.rank for c in columns), *_settings(task))

    def make():
        specs = [tf.TensorSpec([None] * c.shape.rank, c.dtype) for c in columns]
        return tf.function(function, specs, autograph=False).get_concrete_function()

    return functions.kept(key, make, _text_parts(task))


class Functions:
    """Functions of a task on TensorFlow without a strategy, each traced once."""

    def __init__(self, task):
        task.make_predict_function()
        # Keras creates a new predict function when the model changes; these are then recreated too.
        self.made_for = task.predict_function
        self.network = Network(task)
        self.made = {}

    def kept(self, key: tuple, make: Callable, held=()) -> Callable:
        """A function, made once, and kept with the objects whose `id` is in its key."""
        if key not in self.made:
            if len(self.made) == MOST_FUNCTIONS:
                self.made.pop(next(iter(self.made)))
            self.made[key] = make(), held
        return self.made[key][0]


def _functions_of(task) -> Functions:
    task.make_predict_function()
    if task.functions is None or task.functions.made_for is not task.predict_function:
        task.functions = Functions(task)
    return task.functions


def _runs_here(task, kwargs: dict) -> bool:
    """Whether batches can run without Keras's loop."""
    return (
        keras.config.backend() == "tensorflow"
        and set(kwargs) <= {"verbose", "callbacks"}
        and not task.run_eagerly
        and task.step.on_default_device
        and task.steps_per_execution == 1
    )


def _run_batches(task, ids, widths, order, batch_size, kwargs, kept) -> list[tuple]:
    """(width, outputs of its rows) of each batch."""
    import tensorflow as tf

    whole = task.step.needs_whole_batches
    batches = [
        (int(widths[i : i + batch_size][-1]), order[i : i + batch_size])
        for i in range(0, len(order), batch_size)
    ]
    if whole:
        task.make_predict_function()

        def run(batch):
            return task.predict_function([batch])

    else:
        run = _predict_function(task, ids)

    @host_only()
    def made(width, rows):
        # XLA compiles once per shape anyway, and GPU kernels need static shapes.
        rows = rows[np.arange(batch_size) % len(rows)] if whole else rows
        return {n: tf.convert_to_tensor(_cut(n, v, rows, width)) for n, v in ids.items()}

    def outputs_of(batch, rows):
        outputs = run(batch)
        outputs = outputs if kept is None else kept(outputs)
        return keras.tree.map_structure(lambda v: np.asarray(v)[: len(rows)], outputs)

    given, verbose = kwargs.get("callbacks") or [], kwargs.get("verbose", "auto")
    if len(batches) == 1 and not given:
        width, rows = batches[0]
        return [(width, outputs_of(made(width, rows), rows))]
    callbacks, parts = CallbackList(given, task, verbose, steps=len(batches)), []
    callbacks.on_predict_begin()
    with ThreadPoolExecutor(1) as pool:
        ahead = deque(pool.submit(made, *batch) for batch in batches[:AHEAD])
        for number, (width, rows) in enumerate(batches):
            callbacks.on_predict_batch_begin(number)
            batch = ahead.popleft().result()
            ahead.extend(pool.submit(made, *later) for later in batches[number + AHEAD :][:1])
            parts.append((width, outputs_of(batch, rows)))
            callbacks.on_predict_batch_end(number, {"outputs": parts[-1][1]})
    callbacks.on_predict_end()
    return parts


def _predict_function(task, ids: dict) -> Callable:
    """The predict step for batches of any size and width."""
    import tensorflow as tf

    functions = _functions_of(task)
    ranks = {name: len(value.shape) for name, value in ids.items()}
    key = ("predict", *ranks.items(), *(str(value.dtype) for value in ids.values()))

    def make():
        specs = {
            n: tf.TensorSpec([None] * rank, tf.as_dtype(ids[n].dtype), n)
            for n, rank in ranks.items()
        }
        function = tf.function(task.predict_step, autograph=False).get_concrete_function(specs)
        return lambda batch: function(batch)

    return functions.kept(key, make)


def _run_by_keras(task, ids, widths, order, batch_size, kwargs, kept) -> list[tuple]:
    """(width, outputs of its rows) of each width; all in one if outputs are not by token."""
    if not task.outputs_by_token:
        widths = np.full_like(widths, widths.max())
    parts = []
    for width in np.unique(widths).tolist():
        rows = order[widths == width]
        part = {n: np.asarray(_cut(n, value, rows, width)) for n, value in ids.items()}
        source = task.source(part, batch_size=batch_size, labelled=False)
        outputs = task.predict_batches(source.one_pass(), kwargs)
        if isinstance(source, PackedSource):
            outputs = keras.tree.map_structure(source.in_order, outputs)
        # The last batch may be padded with rows.
        outputs = keras.tree.map_structure(lambda v, rows=rows: v[: len(rows)], outputs)
        if kept is not None:
            outputs = keras.tree.map_structure(np.asarray, kept(outputs))
        parts.append((width, outputs))
    return parts


def _cut(name: str, value, rows, width: int):
    """Some rows of a column, truncated to `width` tokens if it is by token."""
    part = dense(value, rows, width)
    return part[..., :width] if name in BY_TOKEN else part


def _filled(width: int, length: int, fill: float, value: np.ndarray) -> np.ndarray:
    """Pads axis 1 from the truncated to the full length, if it is an axis of tokens."""
    if value.ndim < 2 or value.shape[1] != width or width == length:
        return value
    room = [(0, 0), (0, length - width)] + [(0, 0)] * (value.ndim - 2)
    return np.pad(value, room, constant_values=fill)


def _settings(task) -> tuple:
    """Settings that a traced function holds as constants, and that users may change."""
    plain = (bool, int, float, str, type(None), list, tuple, dict)
    found = task.preprocessor
    settings = [
        (name, repr(value))
        for part in (found, getattr(found, "tokenizer", None))
        for name, value in getattr(part, "__dict__", {}).items()
        if isinstance(value, plain) and name != "built" and not name.startswith("_")
    ]
    settings += [(name, repr(getattr(task, name, None))) for name in own_settings(type(task))]
    return (*map(id, _text_parts(task)), *settings)


def _text_parts(task) -> tuple:
    tokenizer = getattr(task.preprocessor, "tokenizer", None)
    return task.preprocessor, tokenizer, getattr(tokenizer, "_tokens", None)
