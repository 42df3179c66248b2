"""Sources of batches from what users pass to `fit`, `evaluate` and `predict`."""

import math
from collections.abc import Callable

import keras
import numpy as np

from keras_bert.data.sources import ArraySource, DatasetSource, RowSource
from keras_bert.data.texts import text_columns
from keras_bert.tasks.ids import check_batch_in_graph, checked_ids
from keras_bert.tasks.packing import packed_source


def dataset_source(task, dataset, class_weight: dict | None, labelled: bool) -> DatasetSource:
    """Makes the source of a `tf.data.Dataset`.

    Args:
        task: a compiled task.
        dataset: batches, as `BertTask.fit` takes them.
        class_weight: weights by label, or None.
        labelled: whether to read labels; else batches of x alone come out.
    """
    weigh = class_weigher(task, class_weight)
    prepare = task._dataset_preparer(dataset, labelled)
    multiple = task.replica_count * task.accumulation_steps if labelled else 1
    if labelled and task.needs_whole_batches and dataset.cardinality() != -1:  # that is endless
        # The last batch of a `pretraining_dataset` of one epoch is filled up too.
        multiple = math.lcm(multiple, getattr(dataset, "batch_size", 1))

    def checked(*batch):
        batch = check_batch_in_graph(task, *keras.utils.unpack_x_y_sample_weight(prepare(*batch)))
        return weigh(keras.utils.pack_x_y_sample_weight(*batch))

    return DatasetSource(dataset, checked, multiple)


def memory_source(
    task,
    x,
    y,
    sample_weight,
    batch_size: int | None,
    shuffle: bool,
    seed: int,
    class_weight: dict | None,
):
    """Makes the source of texts or ids in memory; packed rows where that pays.

    Args:
        task: a compiled task.
        x: texts or a dict of ids, as `BertTask.fit` takes them.
        y: N labels, or None.
        sample_weight: N weights, or None.
        batch_size: rows of a batch, 32 by default.
        shuffle: as `RowSource`.
        seed: as `RowSource`.
        class_weight: weights by label, or None.

    Returns:
        A `RowSource`, `PackedSource`, or elsewhere than on TensorFlow `ArraySource`.

    Raises:
        TypeError: if a text is not a string.
        ValueError: if there is no preprocessor for texts, ids or labels are wrong, or columns
            differ in length.
    """
    ids = isinstance(x, dict)
    if not ids and task.preprocessor is None:
        raise ValueError(
            f"this {type(task).__name__} has no preprocessor: expected a dict of ids "
            f"(token_ids, segment_ids, padding_mask), got {type(x).__name__}"
        )
    columns = None if ids else text_columns(x, task.most_texts)
    labels = None if y is None else task.encode_labels(y)
    weights = None if sample_weight is None else np.asarray(sample_weight, "float32")
    batch_size = batch_size or 32
    if ids:
        columns = checked_ids(task, x)
        if keras.config.backend() != "tensorflow":
            if class_weight is not None:
                table = weight_table(task, class_weight)
                weights = table[labels] * (1 if weights is None else weights)
            return ArraySource(columns, labels, weights, batch_size, shuffle, seed)
    weigh = class_weigher(task, class_weight)  # after the labels, which may be the first to name

    def preprocess(x, y=None, sample_weight=None):
        if ids:
            return weigh(task._pack_ids(x, y, sample_weight))
        return weigh(task._preprocess(x, y, sample_weight))

    parts = (columns, labels, weights, batch_size, preprocess, shuffle, seed)
    return packed_source(task, *parts) or RowSource(*parts, task.needs_whole_batches)


def weight_table(task, class_weight: dict) -> np.ndarray:
    """Weights of a task's K classes by id, float32 [K], from a user's by label."""
    by_id = task.encode_class_weight(class_weight)
    return np.array([by_id[i] for i in range(len(by_id))], "float32")


def class_weigher(task, class_weight: dict | None) -> Callable:
    """Multiplies the weights of batches by those of their classes, inside `tf.data`."""
    if class_weight is None:
        return lambda batch: batch
    import tensorflow as tf

    table = tf.constant(weight_table(task, class_weight))

    def weigh(batch):
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
        weights = tf.gather(table, y)
        if sample_weight is not None:
            weights *= tf.cast(sample_weight, "float32")
        return x, y, weights

    return weigh


def dataset_preparer(task, dataset, labelled: bool) -> Callable:
    """What makes of a dataset's batch what the model reads, inside `tf.data`.

    Raises:
        ValueError: if the dataset gives single texts.
    """
    first = keras.tree.flatten(dataset.element_spec)[0]
    texts = first.dtype.name == "string"
    if texts and first.shape.rank == 0:
        raise ValueError("the dataset gives single texts: expected batches; add .batch(32)")

    def preprocess(x, y=None, sample_weight=None):
        if not labelled and y is not None and y.dtype.name == "string":
            raise ValueError(
                "the dataset gives (x, y) with strings as y: to predict on pairs it has to "
                "give ((firsts, seconds),)"
            )
        y = task.encode_labels_in_graph(y) if labelled else None
        if texts:
            return task._preprocess(x, y, sample_weight if labelled else None)
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight if labelled else None)

    return preprocess
