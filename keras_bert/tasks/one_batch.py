"""Predictions for one batch, without the pipeline that is made for many.

Every iterator over a dataset instantiates the graph of the tokenizer anew, a good part of a second.
A script that asks for one text at a time should not wait for that.
"""

import keras
import numpy as np

from keras_bert.data.sources import check_columns

# Kept at a time; each holds a graph.
MOST_FUNCTIONS = 8


def predict_at_once(task, x, columns, batch_size: int, kwargs: dict):
    """Outputs of rows that fit into one batch.

    Args:
        task: a compiled task, which keeps the `OneBatch` that this makes.
        x: as `BertTask.predict`.
        columns: the columns of x if they are texts.
        batch_size: rows that fit.
        kwargs: as `keras.Model.predict`.

    Returns:
        As `OneBatch`; None if the rows do not fit, or more was asked for than it does.
    """
    ids = isinstance(x, dict)
    if (
        keras.config.backend() != "tensorflow"
        or not (ids or task.preprocessor)
        or not set(kwargs) <= {"verbose"}
        or task.run_eagerly
        or not task.on_default_device
    ):
        return None
    if ids:
        columns = {name: np.asarray(value) for name, value in x.items() if value is not None}
        if not 0 < len(columns.get("token_ids", ())) <= batch_size:
            return None
        task._check_ids(columns)
    elif len(columns[0]) > batch_size:
        return None
    check_columns(columns, None, None)
    task.make_predict_function()
    if task._at_once is None or task._at_once.made_for is not task.predict_function:
        task._at_once = OneBatch(task, task.predict_function)
    return task._at_once(columns, batch_size)


class OneBatch:
    """Functions of a task from a batch of texts or ids to its outputs, each traced once.

    Args:
        task: a compiled task without a `tf.distribute` strategy, on TensorFlow.
        made_for: the task's `predict_function`. Keras makes another when the model has changed,
            and another `OneBatch` is due.
    """

    def __init__(self, task, made_for):
        self.made_for = made_for
        self._task = task
        self._functions = {}

    def __call__(self, x, batch_size: int):
        """Gives outputs as `BertTask.predict` does.

        Args:
            x: a tuple of columns of N texts, or a dict of int arrays [N, T]; N from 1 to
                `batch_size`.
            batch_size: rows that a compiled network is given, however few are asked for.

        Returns:
            float32 arrays [N, ...], structured as the model's output.
        """
        import tensorflow as tf

        ids = isinstance(x, dict)
        names = tuple(x) if ids else tuple(range(len(x)))
        columns = [np.asarray(x[name], None if ids else object) for name in names]
        rows = batch_size if self._task.needs_whole_batches else None
        shapes = [c.shape[1:] if rows is not None else c.ndim for c in columns]
        types = [c.dtype.str for c in columns]
        key = (names, rows, *zip(shapes, types, strict=True), *self._text_side())
        if key not in self._functions:
            if len(self._functions) == MOST_FUNCTIONS:
                self._functions.pop(next(iter(self._functions)))
            function = self._function(names if ids else None, columns, rows)
            self._functions[key] = (function, self._held())  # whose `id` nothing else may get
        outputs = self._functions[key][0](*map(tf.constant, columns))
        return keras.tree.map_structure(lambda v: v.numpy()[: len(columns[0])], outputs)

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

    def _function(self, names, columns, rows):
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

        def ask(*columns):
            if rows is not None:
                place = tf.range(rows) % tf.shape(columns[0])[0]
                columns = [tf.gather(column, place) for column in columns]
            if names is None:
                batch = task._preprocess(columns[0] if len(columns) == 1 else tuple(columns))
            else:
                batch = task._pack_ids(dict(zip(names, columns, strict=True)))
            return task.predict_step(batch)

        return tf.function(ask, specs, autograph=False).get_concrete_function()
