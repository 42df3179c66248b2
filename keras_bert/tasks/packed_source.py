"""Sequence packing of a task's rows: when it is used, and how."""

import math

import keras
import numpy as np

from keras_bert.data.packed_rows import BLOCK, PackedSource, pack_lengths, packable_lengths
from keras_bert.data.ragged import is_ragged
from keras_bert.data.sources import check_columns
from keras_bert.models.backbone import OPTIONAL_INPUTS

# Shorter rows are harder to fill and use a device less.
SHORTEST_ROW = 128
# Packing more texts into a row than this multiple of the mean costs the heads more than the encoder
# saves.
MOST_OF_MEAN = 2.0
LEAST_SAVING = 0.1
# Tolerance of the mean number of texts in a batch, relative to the requested batch size.
MOST_OFF = 0.25
# Number of batches within which texts are reordered when they are not shuffled.
NEAR = 4
# Predictions of fewer batches finish before a pipeline of packed rows has started.
FEWEST_BATCHES = 8
# Places of a row are rounded up to a multiple, since XLA compiles once per number.
PLACES = 4


def may_pack(task) -> bool:
    """Whether a task packs its rows if that saves enough; an error if it must and cannot."""
    wanted = task.packing
    if not wanted:
        return False
    reason = None
    if keras.config.backend() != "tensorflow":
        reason = f"Keras runs on {keras.config.backend()}, not on TensorFlow"
    elif task.reads_several:
        reason = f"a {type(task).__name__} has batches of its own"
    elif task.backbone.output_attentions:
        reason = "the backbone gives attention_probabilities, which are those of rows"
    if wanted is True and reason:
        raise ValueError(f"packing=True: {reason}")
    return not reason and (wanted is True or task.compiles_for_accelerator)


def packs_predictions(task, rows: int, batch_size: int) -> bool:
    """Whether a task packs this number of rows for prediction."""
    fewest = 1 if task.packing is True else FEWEST_BATCHES
    return rows > fewest * batch_size and may_pack(task)


def texts_in_a_row(lengths: np.ndarray, row_length: int, most: int) -> int:
    """Maximum number of texts in a packed row; `most` are those of a replica's part of a batch."""
    fewest = math.ceil(np.sum(lengths) / row_length) or 1
    return min(math.ceil(MOST_OF_MEAN * len(lengths) / fewest), max(1, most))


def packed_source(task, x, labels, weights, batch_size, preprocess, shuffle, seed):
    """Makes the source of packed rows, if the task packs and that saves enough; otherwise None.

    Arguments as `RowSource`, x without padding if ragged. Unless they are shuffled, labelled texts
    stay within a few batches of their position.

    Raises:
        ValueError: if `packing=True` was requested and is not possible.
    """
    if not may_pack(task):
        return None
    count = check_columns(x, labels, weights)
    asked = task.packing is True
    given = [n for n in OPTIONAL_INPUTS if n in x]
    lengths = None
    if is_ragged(x["token_ids"]):
        width = task.preprocessor.sequence_length
        lengths = np.asarray(x["token_ids"].row_lengths())
    else:
        width = x["token_ids"].shape[1]
        lengths = None if given else packable_lengths(x["padding_mask"])
    if lengths is None:
        if asked:
            what = f"ids bring {given[0]}" if given else "ids have tokens after padding"
            raise ValueError(f"packing=True: the {what}")
        return None
    row_length = max(width, SHORTEST_ROW)
    shares = task.step.replica_count * task.step.accumulation_steps
    order = None if labels is None else np.arange(count)  # only predictions from the longest text
    if shuffle:
        order = np.random.default_rng(seed).permutation(count)
    block = BLOCK if shuffle or labels is None else NEAR * batch_size
    most = texts_in_a_row(lengths, row_length, batch_size // shares)
    members = pack_lengths(lengths, row_length, most, block, order)
    saved = 1 - len(members) * row_length / (count * width)
    if labels is None and task.reads_first_tokens:
        # As many cells as without packing; for few texts, a power of two of rows.
        rows = min(batch_size * width // row_length, 2 ** math.ceil(math.log2(len(members))))
        rows, in_the_mean = math.ceil(max(rows, 1) / shares) * shares, batch_size
    else:
        rows = max(1, round(batch_size * len(members) / count / shares)) * shares
        in_the_mean = rows * count / len(members)
    if not asked and (saved < LEAST_SAVING or abs(in_the_mean / batch_size - 1) > MOST_OFF):
        return None
    members = np.pad(members, [(0, 0), (0, -members.shape[1] % PLACES)], constant_values=-1)
    passes = (shuffle, seed, task.step.needs_whole_batches, width)
    return PackedSource(x, labels, weights, rows, preprocess, members, row_length, *passes)
