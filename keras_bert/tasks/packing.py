"""Whether a task's rows are packed, and how."""

import keras
import numpy as np

from keras_bert.data.packing import PackedSource, pack_lengths, packable_lengths
from keras_bert.models.backbone import OPTIONAL_INPUTS

# Shorter rows are filled worse and keep a device less busy.
SHORTEST_ROW = 128
# Texts that are tokenized at a time to learn their lengths.
CHUNK = 1024
# More texts in a row than this multiple of the mean cost heads more than they save the encoder.
MOST_OF_MEAN = 2.0
LEAST_SAVING = 0.1


def may_pack(task) -> bool:
    """Whether a task packs its rows if that saves enough.

    Raises:
        ValueError: if `packing=True` was asked of a model that can't.
    """
    wanted = task._packing_wanted
    if not wanted:
        return False
    reason = None
    if keras.config.backend() != "tensorflow":
        reason = f"Keras runs on {keras.config.backend()}, not on TensorFlow"
    elif not task.packs_texts:
        reason = f"a {type(task).__name__} has batches of its own"
    elif task.backbone.output_attentions:
        reason = "the backbone gives attention_probabilities, which are those of rows"
    if wanted is True and reason:
        raise ValueError(f"packing=True: {reason}")
    return not reason and (wanted is True or task.compiles_for_accelerator)


def packed_source(task, x, labels, weights, batch_size, preprocess, shuffle, seed):
    """Makes the source of packed rows, if the task packs and it pays.

    Args:
        task: a compiled task.
        x: a tuple of columns of N texts, or a dict of arrays [N, ...].
        labels: as `RowSource`.
        weights: as `RowSource`.
        batch_size: texts of a batch.
        preprocess: as `RowSource`.
        shuffle: as `RowSource`; without it "auto" packs labelled rows never.
        seed: as `RowSource`.

    Returns:
        A `PackedSource`, or None.

    Raises:
        ValueError: if `packing=True` was asked for and can't be done.
    """
    if not may_pack(task) or not len(next(iter(x.values())) if isinstance(x, dict) else x[0]):
        return None
    asked = task._packing_wanted is True
    given = [n for n in OPTIONAL_INPUTS if isinstance(x, dict) and n in x]
    lengths = None
    if not given:
        ids = isinstance(x, dict)
        lengths = packable_lengths(x["padding_mask"]) if ids else _count(x, task._preprocess)
    if lengths is None:
        if asked:
            what = f"ids bring {given[0]}" if given else "ids have tokens after padding"
            raise ValueError(f"packing=True: the {what}")
        return None
    width = x["token_ids"].shape[1] if isinstance(x, dict) else task.preprocessor.sequence_length
    row_length = max(width, SHORTEST_ROW)
    # In an order by the seed, so that it is chance which texts share a row.
    order = np.random.default_rng(seed).permutation(len(lengths))
    members = pack_lengths(lengths[order], row_length)
    most = int(np.ceil(MOST_OF_MEAN * len(lengths) / len(members)))
    if members.shape[1] > most:
        members = pack_lengths(lengths[order], row_length, most)
    saved = 1 - len(members) * row_length / (len(lengths) * width)
    if not asked and saved < LEAST_SAVING:
        return None
    members = np.where(members < 0, -1, order[members]).astype("int32")
    return PackedSource(
        x,
        labels,
        weights,
        batch_size,
        preprocess,
        members,
        row_length,
        shuffle,
        seed,
        task.needs_whole_batches,
        task.replica_count * task.accumulation_steps,
        None if isinstance(x, dict) else width,
    )


def _count(columns, preprocess) -> np.ndarray:
    """Tokens of the row of each text."""
    import tensorflow as tf

    columns = tuple(np.asarray(column, object) for column in columns)
    texts = tf.data.Dataset.from_tensor_slices(columns).batch(CHUNK)

    def count(*columns):
        x = columns[0] if len(columns) == 1 else columns
        x, _, _ = keras.utils.unpack_x_y_sample_weight(preprocess(x))
        return tf.reduce_sum(x["padding_mask"], axis=1)

    counts = texts.map(count, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    return np.concatenate(list(counts.as_numpy_iterator()))
