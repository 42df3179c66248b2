"""Sources of batches from what users pass to `fit`, `evaluate` and `predict`."""

import math
from collections.abc import Callable

import keras
import numpy as np
from keras import ops

from keras_bert.arguments import check_batch_size
from keras_bert.data.examples import is_dataset
from keras_bert.data.ragged import is_ragged
from keras_bert.data.sources import ArraySource, DatasetSource, RowSource
from keras_bert.data.table_rows import Table
from keras_bert.tasks.ids import check_batch_in_graph
from keras_bert.tasks.packed_source import packed_source
from keras_bert.tasks.targets import class_weights
from keras_bert.text.padding import bucket_lengths
from keras_bert.training.task_metrics import LABELS, NUMBERS


def check_beside(x, y, sample_weight, batch_size) -> None:
    """Refuses labels, weights and sizes of batches beside data that bring their own."""
    beside = y is not None or sample_weight is not None
    if isinstance(x, Table) and beside:
        raise ValueError("a table has its labels and weights in columns: expected no sample_weight")
    if is_dataset(x) and (beside or batch_size is not None):
        raise ValueError(
            "a dataset brings its own labels, weights and batches: got y, sample_weight or "
            "batch_size beside it"
        )


def dataset_source(task, dataset, class_weight, labelled: bool) -> DatasetSource:
    """Makes the source of a dataset of batches; without `labelled` its batches hold x alone."""
    weigh = class_weigher(task, class_weight, None)
    prepare = task.dataset_preparer(dataset, labelled)
    multiple = task.step.replica_count * task.step.accumulation_steps if labelled else 1
    if (
        labelled and task.step.needs_whole_batches and dataset.cardinality() != -1
    ):  # -1: the dataset is infinite
        # The last batch of a `pretraining_dataset` of one epoch is filled up too.
        multiple = math.lcm(multiple, getattr(dataset, "batch_size", 1))

    def checked(*batch):
        batch = check_batch_in_graph(task, *keras.utils.unpack_x_y_sample_weight(prepare(*batch)))
        return weigh(keras.utils.pack_x_y_sample_weight(*batch))

    return DatasetSource(dataset, checked, multiple)


def memory_source(
    task,
    ids: dict,
    labels,
    weights,
    batch_size: int | None,
    shuffle: bool = False,
    seed: int = 0,
    class_weight=None,
):
    """Makes the source of rows in memory; they are packed if that saves enough.

    Args:
        task: a compiled task.
        ids: R rows by name, checked: arrays, or `tf.RaggedTensor` without padding.
        labels: R labels as the loss reads them, or None.
        weights: R weights, or None.
        batch_size: rows of a batch, 32 by default.
        shuffle: as `RowSource`.
        seed: as `RowSource`.
        class_weight: weights by label, or None.
    """
    batch_size = check_batch_size(batch_size)
    if class_weight is not None and task.labels_by_token:
        known = labels.values.numpy() if is_ragged(labels) else labels
        factors = weight_table(task, class_weight, known)[np.maximum(known, 0)]
        weights = weights * (labels.with_values(factors) if is_ragged(labels) else factors)
        class_weight = None
    mask, width = ids["padding_mask"], getattr(task.preprocessor, "sequence_length", None)
    if is_ragged(mask) and task.preprocessor.padding == "bucket":
        longest = int(mask.bounding_shape()[-1])
        width = next(length for length in bucket_lengths(width) if length >= longest)
    if keras.config.backend() != "tensorflow":
        if class_weight is not None:
            table = weight_table(task, class_weight, labels)
            weights = np.asarray(_weighed(task, table, labels, weights))
        if weights is not None and task.output_kind in (LABELS, NUMBERS) and weights.ndim > 1:
            raise ValueError(
                f"weights of labels, {list(weights.shape)}, need the TensorFlow backend: "
                "expected one a row"
            )
        multiple = task.step.replica_count
        return ArraySource(ids, labels, weights, batch_size, shuffle, seed, width, multiple)
    weigh = class_weigher(task, class_weight, labels)

    def preprocess(x, y=None, sample_weight=None):
        return weigh(task.step_inputs(x, y, sample_weight))

    parts = (ids, labels, weights, batch_size, preprocess, shuffle, seed)
    return packed_source(task, *parts) or RowSource(*parts, task.step.needs_whole_batches, width)


def weight_table(task, class_weight, labels: np.ndarray | None) -> np.ndarray:
    """Weights of a task's K classes by id, float32 [K]; `labels` are None for a dataset."""
    task.encode_class_weight({})  # raises for tasks without classes
    several = task.output_kind == LABELS
    by_id = task.encode_class_weight(class_weights(class_weight, task.num_classes, labels, several))
    return np.array([by_id[i] for i in range(len(by_id))], "float32")


def class_weigher(task, class_weight, labels: np.ndarray | None) -> Callable:
    """Multiplies the weights of batches by those of `weight_table`, inside `tf.data`."""
    if class_weight is None:
        return lambda batch: batch
    if task.labels_by_token:
        raise ValueError("class_weight needs rows in memory: datasets and tables can bring weights")
    import tensorflow as tf

    table = tf.constant(weight_table(task, class_weight, labels))

    def weigh(batch):
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
        return x, y, _weighed(task, table, y, sample_weight)

    return weigh


def _weighed(task, table, y, sample_weight):
    """Weights of a batch: those of its classes times those of its rows or labels."""
    if task.output_kind == LABELS:
        weights = ops.where(ops.cast(y, "float32") > 0, table, 1.0)  # [B, K]
    else:
        soft = len(y.shape) == 2 and y.shape[1] == task.num_classes
        weights = ops.take(table, ops.argmax(y, axis=-1) if soft else ops.reshape(y, (-1,)))
    if sample_weight is None:
        return weights
    sample_weight = ops.cast(sample_weight, "float32")
    if len(sample_weight.shape) == 2 and len(weights.shape) == 1:
        sample_weight = ops.squeeze(sample_weight, -1)
    elif len(sample_weight.shape) < len(weights.shape):
        sample_weight = sample_weight[:, None]
    return weights * sample_weight


def holds_texts(dataset) -> bool:
    """Whether a `tf.data.Dataset` gives batches of strings; single ones are refused."""
    first = keras.tree.flatten(dataset.element_spec)[0]
    if first.dtype.name != "string":
        return False
    if first.shape.rank == 0:
        raise ValueError("the dataset gives single texts: expected batches; add .batch(32)")
    return True
