"""Predictions for rows in memory: in order of length, a batch at a time, put back in their order.

There is no pipeline: every iterator over a dataset instantiates the graph of the tokenizer anew, a
good part of a second. The next batch is made while the network runs on this one.
"""

from collections import deque
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np

from keras_bert.data.sources import check_columns
from keras_bert.tasks.packing import packs_predictions
from keras_bert.training.callback_list import CallbackList

# Kept at a time; each holds a graph.
MOST_FUNCTIONS = 8
# Batches that are made ahead.
AHEAD = 2


def run_rows(task, x, columns, batch_size: int, kwargs: dict):
    """Outputs of rows in memory.

    Args:
        task: a task, compiled or not, which keeps the `RowRunner` that this makes.
        x: as `BertTask.predict`.
        columns: the columns of x if they are texts.
        batch_size: rows of a batch.
        kwargs: as `keras.Model.predict`.

    Returns:
        float32 arrays [N, ...], structured as the model's output; None where the rows are to be
        packed, or Keras has to run the steps.
    """
    ids = isinstance(x, dict)
    if (
        keras.config.backend() != "tensorflow"
        or not (ids or task.preprocessor)
        or not set(kwargs) <= {"verbose", "callbacks"}
        or task.run_eagerly
        or not task.on_default_device
    ):
        return None
    if ids:
        columns = {name: np.asarray(value) for name, value in x.items() if value is not None}
        rows = len(columns.get("token_ids", ()))
    else:
        rows = len(columns[0])
    if not rows or packs_predictions(task, rows, batch_size):
        return None
    if ids:
        task._check_ids(columns)
    check_columns(columns, None, None)
    task.make_predict_function()
    if task._runner is None or task._runner.made_for is not task.predict_function:
        task._runner = RowRunner(task, task.predict_function)
    return task._runner(columns, batch_size, kwargs)


class RowRunner:
    """Functions of a task from a batch of texts or ids to its outputs, each traced once.

    Args:
        task: a task without a `tf.distribute` strategy, on TensorFlow.
        made_for: the task's `predict_function`. Keras makes another when the model has changed,
            and another `RowRunner` is due.
    """

    def __init__(self, task, made_for):
        self.made_for = made_for
        self._task = task
        self._functions = {}

    def __call__(self, x, batch_size: int, kwargs: dict):
        """Gives outputs as `BertTask.predict` does.

        Args:
            x: a tuple of columns of N texts, or a dict of int arrays [N, T].
            batch_size: rows of a batch, and those that a compiled network is given, however few
                are left.
            kwargs: as `keras.Model.predict`: `verbose` and `callbacks`.

        Returns:
            float32 arrays [N, ...], structured as the model's output.
        """
        import tensorflow as tf

        ids = isinstance(x, dict)
        names = tuple(x) if ids else tuple(range(len(x)))
        columns = [np.asarray(x[name], None if ids else object) for name in names]
        count = len(columns[0])
        order = np.arange(count)
        if not ids and count > batch_size:
            lengths = [sum(map(len, texts)) for texts in zip(*columns, strict=True)]
            order = np.argsort(lengths, kind="stable")
        prepare, predict = self._functions_of(names if ids else None, columns, batch_size)

        def made(rows):
            return prepare(*(tf.constant(column[rows]) for column in columns))

        batches = [order[i : i + batch_size] for i in range(0, count, batch_size)]
        given, verbose = kwargs.get("callbacks") or [], kwargs.get("verbose", "auto")
        if len(batches) == 1 and not given:
            return keras.tree.map_structure(lambda v: v.numpy()[:count], predict(made(order)))
        callbacks = CallbackList(given, self._task, verbose, steps=len(batches))
        parts = []
        callbacks.on_predict_begin()
        with ThreadPoolExecutor(1) as pool:
            ahead = deque(pool.submit(made, rows) for rows in batches[:AHEAD])
            for number in range(len(batches)):
                callbacks.on_predict_batch_begin(number)
                batch = ahead.popleft().result()
                ahead.extend(pool.submit(made, later) for later in batches[number + AHEAD :][:1])
                parts.append(keras.tree.map_structure(lambda v: v.numpy(), predict(batch)))
                callbacks.on_predict_batch_end(number, {"outputs": parts[-1]})
        callbacks.on_predict_end()
        back = np.argsort(order)  # without the rows that the last batch was filled up with
        return keras.tree.map_structure(lambda *v: np.concatenate(v)[back], *parts)

    def _functions_of(self, names, columns, batch_size: int) -> tuple:
        """The functions for such columns, from a batch to ids and from these to outputs."""
        rows = batch_size if self._task.needs_whole_batches else None
        shapes = [c.shape[1:] if rows is not None else c.ndim for c in columns]
        types = [c.dtype.str for c in columns]
        key = (names, rows, *zip(shapes, types, strict=True), *self._text_side())
        if key not in self._functions:
            if len(self._functions) == MOST_FUNCTIONS:
                self._functions.pop(next(iter(self._functions)))
            functions = self._functions_for(names, columns, rows)
            self._functions[key] = (functions, self._held())  # whose `id` nothing else may get
        return self._functions[key][0]

    def _text_side(self) -> tuple:
        """What a traced function holds of the preprocessor, of which users may change anything."""
        found = self._task.preprocessor
        if found is None:
            return ()
        plain = (bool, int, float, str, type(None), list, tuple, dict)
        settings = [
            (name, repr(value))
            for part in (found, getattr(found, "tokenizer", None))
            for name, value in getattr(part, "__dict__", {}).items()
            if isinstance(value, plain) and name != "built" and not name.startswith("_")
        ]
        return (*map(id, self._held()), *settings)

    def _held(self) -> tuple:
        found = self._task.preprocessor
        tokenizer = getattr(found, "tokenizer", None)
        return found, tokenizer, getattr(tokenizer, "_tokens", None)

    def _functions_for(self, names, columns, rows) -> tuple:
        import tensorflow as tf

        task = self._task
        specs = [
            tf.TensorSpec(
                # XLA compiles for each shape anyway, and kernels for GPUs want to know it.
                [None, *(c.shape[1:] if rows is not None else [None] * (c.ndim - 1))],
                tf.string if names is None else tf.as_dtype(c.dtype),
            )
            for c in columns
        ]

        def prepare(*columns):
            if rows is not None:
                place = tf.range(rows) % tf.shape(columns[0])[0]
                columns = [tf.gather(column, place) for column in columns]
            if names is None:
                return task._preprocess(columns[0] if len(columns) == 1 else tuple(columns))
            return task._pack_ids(dict(zip(names, columns, strict=True)))

        prepare = tf.function(prepare, specs, autograph=False).get_concrete_function()
        if rows is not None:  # found by the shapes of each batch
            return prepare, lambda batch: self.made_for([batch])
        ids = tf.nest.map_structure(tf.TensorSpec.from_tensor, prepare.structured_outputs)
        predict = tf.function(task.predict_step, autograph=False).get_concrete_function(ids)
        return prepare, predict
