"""Batches for pre-training: rows of texts to mask, and checks of masked rows."""

from collections.abc import Callable

import numpy as np

from keras_bert.data.contract import OPTIONAL_INPUTS, REQUIRED_INPUTS
from keras_bert.data.examples import is_dataset
from keras_bert.data.masked_source import MaskedSource
from keras_bert.data.packed_rows import lay_into_rows
from keras_bert.data.sources import DatasetSource, RowSource
from keras_bert.data.table_rows import Table
from keras_bert.tasks.packed_source import packed_source
from keras_bert.tasks.table_batches import table_source


def masked_source(
    task, preprocessor, x, sample_weight, batch_size: int, shuffle: bool = False, seed: int = 0
) -> MaskedSource:
    """Makes a source of batches of texts with dynamic masking: new masks in every epoch.

    Args:
        task: a compiled `BertMaskedLM`.
        preprocessor: a `BertMaskedLMPreprocessor`, which defines the masking.
        x: rows in memory, `tf.RaggedTensor` by name; or a table, or a dataset of texts.
        sample_weight: weights of rows in memory, or None.
        batch_size: rows of a batch in memory.
        shuffle: as `RowSource`; shuffled rows are packed if that saves enough.
        seed: seed of order and masks.
    """
    from keras_bert.data.masking import Masker

    masker = Masker(preprocessor.tokenizer, **preprocessor.masker_arguments())
    packed = None
    if isinstance(x, Table):
        # Their place as labels is taken by zeros, see `rows_of_table`.
        rows = table_source(task, x, batch_size, shuffle, seed, preprocess=_as_it_is)
    elif is_dataset(x):
        multiple = task.step.replica_count * task.step.accumulation_steps
        rows = _rows_of_dataset(x, preprocessor.rows_to_mask, multiple)
    else:
        numbers = np.arange(x["token_ids"].shape[0])  # take the place of labels in the source
        weights = np.ones(len(numbers), "float32") if sample_weight is None else sample_weight
        parts = (x, numbers, weights, batch_size, _as_it_is, shuffle, seed)
        # Without shuffling, masks must not depend on which texts share a batch.
        packed = packed_source(task, *parts) if shuffle else None
        rows = packed or RowSource(
            *parts, task.step.needs_whole_batches, preprocessor.sequence_length
        )
    if packed:
        counts = masker.counts(preprocessor.sequence_length)
        places = packed.most_in_a_row(counts[packed.lengths])

    def mask(ids, _, weights, seed):
        masked = masker(ids["token_ids"], ids["padding_mask"], seed)
        masked["mask_weights"] *= weights[:, None]
        batch = ids | masked
        return task.contract_inputs(lay_into_rows(batch, places) if packed else batch)

    return MaskedSource(rows, mask, seed)


def _as_it_is(*batch):
    return batch


def model_inputs(batch: dict) -> dict:
    """The model's inputs in a batch; see `contract.py`."""
    names = (*REQUIRED_INPUTS, *OPTIONAL_INPUTS, "mask_positions")
    return {name: batch[name] for name in names if name in batch}


def _rows_of_dataset(dataset, to_rows: Callable, multiple: int = 1) -> DatasetSource:
    """A source of (ids, row numbers, weights) from a `tf.data.Dataset` of batches of texts.

    Batches are filled up to a multiple with rows of weight 0.
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
