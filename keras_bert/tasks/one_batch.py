"""Predictions for one batch, without the pipeline that is made for many.

Every iterator over a dataset instantiates the graph of the tokenizer anew, a good part of a second.
A script that asks for one text at a time should not wait for that.
"""

import keras
import numpy as np


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
        key = (names, batch_size, *(column.ndim for column in columns), *self._text_side())
        if key not in self._functions:
            self._functions[key] = self._function(names if ids else None, columns, batch_size)
        outputs = self._functions[key](*map(tf.constant, columns))
        return keras.tree.map_structure(lambda v: v.numpy()[: len(columns[0])], outputs)

    def _text_side(self) -> tuple:
        """What a traced function holds of the preprocessor, of which users may change anything."""
        found = self._task.preprocessor
        if found is None:
            return ()
        plain = (bool, int, float, str, type(None))
        settings = [
            (name, value)
            for name, value in vars(found).items()
            if isinstance(value, plain) and name != "built" and not name.startswith("_")
        ]
        return (id(found), id(getattr(found, "tokenizer", None)), *settings)

    def _function(self, names, columns, batch_size):
        import tensorflow as tf

        task = self._task
        specs = [
            tf.TensorSpec([None] * c.ndim, tf.string if names is None else tf.as_dtype(c.dtype))
            for c in columns
        ]

        def ask(*columns):
            if task.needs_whole_batches:
                place = tf.range(batch_size) % tf.shape(columns[0])[0]
                columns = [tf.gather(column, place) for column in columns]
            if names is None:
                batch = task._preprocess(columns[0] if len(columns) == 1 else tuple(columns))
            else:
                batch = task._pack_ids(dict(zip(names, columns, strict=True)))
            return task.predict_step(batch)

        return tf.function(ask, specs, autograph=False).get_concrete_function()
