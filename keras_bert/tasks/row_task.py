"""Tasks whose examples become rows of ids before training: windows, tags by piece, choices."""

from functools import partial

import keras
import numpy as np

from keras_bert.arguments import check_batch_size
from keras_bert.data.packing import PackedSource
from keras_bert.data.ragged import dense_parts
from keras_bert.tasks.ids import checked_ids
from keras_bert.tasks.like_lengths import by_length
from keras_bert.tasks.packing import packs_predictions
from keras_bert.tasks.task import BertTask
from keras_bert.text.packing import bucket_length


class RowTask(BertTask):
    """Base of tasks where an example is more than a text and a label.

    `fit` and `evaluate` turn all examples into rows in memory first, so that each row has its
    own labels and weights, and read the rows as `BertTask` reads ids. With the preprocessor's
    padding "bucket" a batch is cut to the least of 16, 32, 64, ... tokens that holds its rows.

    A subclass gives `ragged_rows`.
    """

    labels_by_token = False  # whether the last axis of labels and weights is T too
    outputs_by_token = True  # whether axis 1 of an output that is as long as a row is one of tokens

    def ragged_rows(self, x, y=None, sample_weight=None) -> tuple[dict, object, object]:
        """Turns examples into rows.

        Args:
            x: examples, as `fit` takes them.
            y: their labels, or None.
            sample_weight: N weights of the examples, or None.

        Returns:
            (ids, labels, weights): a dict of R rows, int32 `tf.RaggedTensor` without padding;
            labels [R, ...] or None; float32 weights [R, ...] or None. What is by token is ragged
            too.

        Raises:
            ValueError: if there is no preprocessor, or an example is wrong.
        """
        raise NotImplementedError

    def make_rows(self, x, y=None, sample_weight=None) -> tuple[dict, object, object]:
        """Turns examples into rows of one length, as a call of the model takes them.

        Args:
            x: as `ragged_rows`.
            y: as there.
            sample_weight: as there.

        Returns:
            (ids, labels, weights) as there, filled up to T, the preprocessor's `sequence_length`:
            labels of padding are -1, weights 0.

        Raises:
            ValueError: as there.
        """
        self.check_has_preprocessor()
        parts = self.ragged_rows(x, y, sample_weight)
        every = np.arange(parts[0]["token_ids"].shape[0])
        parts = dense_parts(parts, every, self.preprocessor.sequence_length)
        return tuple(v if v is None else keras.tree.map_structure(np.asarray, v) for v in parts)

    def _source(
        self,
        x,
        y=None,
        sample_weight=None,
        batch_size=None,
        shuffle=False,
        seed=0,
        class_weight=None,
        labelled=True,
    ):
        if not isinstance(x, dict) and not hasattr(x, "element_spec"):
            self.check_has_preprocessor()
            x, y, sample_weight = self.ragged_rows(x, y, sample_weight)
        return super()._source(
            x, y, sample_weight, batch_size, shuffle, seed, class_weight, labelled
        )

    def _pack_ids(self, x, y=None, sample_weight=None):
        """Cuts a batch of rows off after its longest; inside `tf.data`."""
        bucket = getattr(self.preprocessor, "padding", "full") == "bucket"
        if bucket and "packed_from" not in x:  # whose numbers go by the whole width
            import tensorflow as tf

            mask = x["padding_mask"]
            place = tf.range(1, tf.shape(mask)[-1] + 1)
            used = tf.reduce_max(tf.where(tf.cast(mask, tf.bool), place, 0))
            width = bucket_length(used, mask.shape[-1] or self.preprocessor.sequence_length)
            x = {name: value[..., :width] for name, value in x.items()}
            if self.labels_by_token:
                y, sample_weight = (v if v is None else v[..., :width] for v in (y, sample_weight))
        return super()._pack_ids(x, y, sample_weight)

    def check_has_preprocessor(self) -> None:
        """Raises a ValueError where there is no text side, or it does not fit the backbone."""
        if self.preprocessor is None:
            name = type(self).__name__
            raise ValueError(
                f"this {name} has no preprocessor, whose tokenizer texts need: make it with "
                f"preprocessor={self.preprocessor_cls.__name__}(tokenizer)"
            )
        self.check_preprocessor()

    def predict_ids(self, x: dict, batch_size: int | None = None, **kwargs):
        """Checks a user's rows of ids, and gives the model's output for them."""
        return self.predict_rows(checked_ids(self, x), check_batch_size(batch_size), **kwargs)

    def predict_rows(self, ids: dict[str, np.ndarray], batch_size: int = 32, **kwargs):
        """Gives the model's output for rows of ids; see `predict_rows` of this module."""
        return predict_rows(self, ids, batch_size, **kwargs)


def predict_rows(task: BertTask, ids: dict[str, np.ndarray], batch_size: int = 32, **kwargs):
    """Gives a task's output for rows of ids, those of like length together.

    Args:
        task: it need not be a `RowTask`.
        ids: int32 arrays of R rows, whose last axis is T, or ragged as by `RowTask.ragged_rows`.
        batch_size: rows of a batch.
        **kwargs: as `keras.Model.predict`, without a progress bar by default.

    Returns:
        float32 arrays of R rows, structured as the model's output. Where a task's outputs are
        `outputs_by_token`, an axis 1 that is as long as a cut row is filled up with zeros to T.

    Raises:
        ValueError: if there are no rows.
    """
    kwargs, batch_size = {"verbose": 0} | kwargs, check_batch_size(batch_size)
    # Past a subclass's own `predict`: the rows are checked and cut already.
    predict = partial(BertTask.predict, task, batch_size=batch_size, **kwargs)
    if packs_predictions(task, ids["padding_mask"].shape[0], batch_size):
        source = task._source(ids, batch_size=batch_size, labelled=False)
        if isinstance(source, PackedSource):
            outputs = task.predict_batches(source.one_pass(), kwargs)
            return keras.tree.map_structure(source.in_order, outputs)
    longest = getattr(task.preprocessor, "sequence_length", None)
    return by_length(predict, ids, getattr(task, "outputs_by_token", False), longest)
