"""Batches of the models of pre-training: rows of texts to mask, and checks of masked ones."""

from collections.abc import Callable

import keras
import numpy as np

from keras_bert.data.contract import OPTIONAL_INPUTS, REQUIRED_INPUTS
from keras_bert.data.masked_source import MaskedSource
from keras_bert.data.packing import lay_into_rows
from keras_bert.data.sources import DatasetSource, RowSource
from keras_bert.data.texts import text_columns
from keras_bert.tasks.packing import packed_source
from keras_bert.text.masked_lm_preprocessor import BertMaskedLMPreprocessor


def masked_source(
    task, x, sample_weight, batch_size: int, shuffle: bool, seed: int
) -> MaskedSource:
    """Makes the source of batches of texts, masked anew in every epoch.

    Args:
        task: a compiled `BertMaskedLM` with a preprocessor.
        x: texts, as its `fit` takes them: a list, a tuple of two lists or a dataset.
        sample_weight: N weights of texts in memory, or None.
        batch_size: rows of a batch of texts in memory.
        shuffle: as `RowSource`, and packs rows if that pays.
        seed: of order and masks.
    """
    from keras_bert.data.masking import Masker

    text_side = task.preprocessor
    if not isinstance(text_side, BertMaskedLMPreprocessor):
        text_side = BertMaskedLMPreprocessor(text_side.tokenizer, text_side.sequence_length)
    masker = Masker(text_side.tokenizer, **text_side.masker_arguments())

    if hasattr(x, "element_spec"):
        multiple = task.replica_count * task.accumulation_steps
        rows, packed = _rows_of_dataset(x, text_side.rows_to_mask, multiple), None
    else:
        *columns, to_rows = _texts_to_mask(x, text_side.rows_to_mask, sample_weight)
        parts = (*columns, batch_size, to_rows, shuffle, seed)
        # Without shuffling, masks are not to depend on which texts share a batch.
        packed = packed_source(task, *parts) if shuffle else None
        rows = packed or RowSource(*parts, task.needs_whole_batches)
    if packed:
        counts = masker.counts(text_side.sequence_length)
        places = packed.most_in_a_row(counts[packed.lengths])

    def mask(ids, _, weights, seed):
        masked = masker(ids["token_ids"], ids["padding_mask"], seed)
        masked["mask_weights"] *= weights[:, None]
        batch = ids | masked
        return task._pack(lay_into_rows(batch, places) if packed else batch)

    return MaskedSource(rows, mask, seed)


def model_inputs(batch: dict) -> dict:
    """What of a batch by the contract the model reads."""
    names = (*REQUIRED_INPUTS, *OPTIONAL_INPUTS, "mask_positions")
    return {name: batch[name] for name in names if name in batch}


def holds_texts(dataset) -> bool:
    """Whether a `tf.data.Dataset` gives batches of strings.

    Raises:
        ValueError: if it gives single strings.
    """
    first = keras.tree.flatten(dataset.element_spec)[0]
    if first.dtype.name != "string":
        return False
    if first.shape.rank == 0:
        raise ValueError("the dataset gives single texts: expected batches; add .batch(32)")
    return True


def _texts_to_mask(x, to_rows: Callable, sample_weight=None) -> tuple:
    """What a source needs to give (ids, row numbers, weights) of texts in memory.

    Args:
        x: a list of N texts, or a tuple of two such lists.
        to_rows: makes ids of a batch of texts.
        sample_weight: N weights, by default 1.

    Returns:
        (columns of texts, row numbers, weights; what maps a batch of these three).
    """
    import tensorflow as tf

    to_rows = tf.autograph.experimental.do_not_convert(to_rows)  # it would take seconds
    columns = text_columns(x)
    numbers = np.arange(len(columns[0]))  # stand where the source expects labels
    weights = np.ones(len(numbers)) if sample_weight is None else np.asarray(sample_weight)
    return (
        columns,
        numbers,
        weights.astype("float32"),
        lambda x, numbers, weights: (to_rows(x), numbers, weights),
    )


def _rows_of_dataset(dataset, to_rows: Callable, multiple: int = 1) -> DatasetSource:
    """A source of (ids, row numbers, weights) from a `tf.data.Dataset` of batches of texts.

    Args:
        dataset: the batches.
        to_rows: makes ids of one.
        multiple: as `DatasetSource`; the filling has weight 0.
    """
    import tensorflow as tf

    @tf.autograph.experimental.do_not_convert
    def prepare(x, y=None, sample_weight=None):
        if y is not None:
            raise TypeError(
                "the dataset gives (x, y) with texts as x: expected texts alone, or pairs as "
                "((firsts, seconds),)"
            )
        ids = to_rows(x)
        numbers = tf.range(tf.shape(ids["token_ids"])[0])
        return ids, numbers, tf.ones_like(numbers, tf.float32)

    return DatasetSource(dataset, prepare, multiple)
