"""Preprocessor for texts or text pairs."""

import keras
import keras_hub
import numpy as np
from keras.src.utils.backend_utils import in_grain_data_pipeline as in_grain

from keras_bert.arguments import check_choice, check_count, check_number
from keras_bert.text import windows
from keras_bert.text.padding import pack
from keras_bert.text.tokenizer import BertTokenizer

PADDINGS = ("full", "bucket")


@keras.saving.register_keras_serializable(package="keras_bert")
class BertClassifierPreprocessor(keras_hub.models.Preprocessor):
    """Tokenizes, truncates and pads on the host, in TensorFlow.

    A pair that is too long is truncated in its longer text, as in google-research/bert
    `run_classifier.py`. Pieces are dropped at the end of a text, or with `tail` in its middle: 0.75
    keeps the first 128 and the last 382 pieces of a text in a row of 512 tokens (Sun et al. 2019,
    arXiv:1905.05583, section 5.3.1), 1 keeps only the end.

    It runs eagerly and inside `tf.data.Dataset.map`.

    Args:
        tokenizer: a `BertTokenizer`.
        sequence_length: maximum number of tokens in a row, including [CLS] and [SEP].
        padding: "full" gives rows of `sequence_length` tokens (one static shape, which TPUs
            need); "bucket" pads to the smallest of 16, 32, 64, ... tokens that holds the batch.
        tail: fraction of the pieces kept of a truncated text that are taken from its end.

    Call arguments:
        x: a string; a batch of strings [B] (list, array or tensor); or a tuple of two of these,
            first and second texts.
        y: labels, passed through.
        sample_weight: weights, passed through.

    Returns:
        A dict of int32 tensors `token_ids`, `segment_ids`, `padding_mask` of shape [B, T], or
        [T] for one string; with `y` or `sample_weight`, a tuple (x, y, sample_weight) as in Keras.

    Raises:
        TypeError: if x is not text.
        ValueError: if `sequence_length` leaves no room for text, `padding` is unknown, `tail` is
            not in [0, 1], or x has another shape, such as a list of pairs.
    """

    tokenizer_cls = BertTokenizer
    expects = "a text or a pair (first, second)"  # what x is
    columns = (1, 2)  # the least and the greatest number of columns in x
    rows_of_texts = None  # of a class with several rows per text: the function that takes labels
    least_length = 4  # [CLS], [SEP], [SEP] and one piece of text
    settings = ("sequence_length", "padding", "tail")  # arguments saved in presets
    takes_settings_of: tuple[str, ...] = ()  # classes whose saved settings this class accepts

    def __init__(
        self,
        tokenizer: BertTokenizer,
        sequence_length: int = 512,
        padding: str = "full",
        tail: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.sequence_length = check_count("sequence_length", sequence_length, self.least_length)
        check_choice("padding", padding, PADDINGS)
        check_number("tail", tail, most=1)
        if tail and "tail" not in self.settings:
            raise ValueError(
                f"tail={tail}: expected 0; {type(self).__name__} does not truncate at the end"
            )
        self.tokenizer = tokenizer
        self.padding = padding
        self.tail = tail

    def __setattr__(self, name, value):
        # A setting changed later is validated as in the constructor.
        if name in self.settings and all(hasattr(self, other) for other in self.settings):
            settings = {other: getattr(self, other) for other in self.settings} | {name: value}
            value = getattr(type(self)(self.tokenizer, **settings), name)
        super().__setattr__(name, value)

    @classmethod
    def from_preset(cls, preset, **settings):
        """Loads a preprocessor from a checkpoint.

        Args:
            preset: any checkpoint that a task's `from_preset` accepts, or a folder written by
                `save_to_preset` of a preprocessor or tokenizer.
            **settings: arguments of the class other than the tokenizer; by default those saved
                in the checkpoint for this class, otherwise as many tokens as it has positions.

        Returns:
            The preprocessor.

        Raises:
            FileNotFoundError: if `preset` does not exist or lacks a file.
            TypeError: if the class has no such setting.
            ValueError: if a file is damaged or there is no tokenizer.
        """
        from keras_bert.checkpoints import open_checkpoint  # which imports these classes

        preprocessor = open_checkpoint(preset, load_weights=False).preprocessor(cls, **settings)
        if preprocessor is None:
            raise ValueError(f"{preset} has no tokenizer")
        return preprocessor

    @classmethod
    def completed(cls, settings: dict, positions: int | None) -> dict:
        """Completes settings for a backbone.

        Args:
            settings: arguments by name, of a checkpoint and of the user.
            positions: number of positions of the backbone; None if unknown.

        Returns:
            The settings; `sequence_length` is the number of positions by default.
        """
        return ({} if positions is None else {"sequence_length": positions}) | settings

    def build(self, *_):
        """Nothing to build; Keras requires it."""

    def __call__(self, *args, **kwargs):
        # Bypasses KerasHub's `__call__`, which interprets a pair of texts as (x, y).
        output = keras.layers.Layer.__call__(self, *args, **kwargs)
        # Grain's workers exchange arrays, not tensors.
        return keras.tree.map_structure(np.asarray, output) if in_grain() else output

    def call(self, x, y=None, sample_weight=None):
        segments = x if isinstance(x, tuple) else (x,)
        if not self.columns[0] <= len(segments) <= self.columns[1]:
            kind = f"{len(x)} columns" if isinstance(x, tuple) else type(x).__name__
            raise ValueError(f"expected {self.expects}, got {kind}: {x!r:.80}")
        if self.rows_of_texts and not (y is None and sample_weight is None):
            raise ValueError(
                "labels and weights do not match the rows, of which a text can have several: pass "
                f"them to {self.rows_of_texts}"
            )
        return keras.utils.pack_x_y_sample_weight(self.pack(segments), y, sample_weight)

    def _joined(self, pieces, padding: str | None = None) -> dict:
        """As `text.padding.pack`, with the settings of this preprocessor or another padding."""
        length, padding = self.sequence_length, padding or self.padding
        return pack(pieces, self.tokenizer, length, padding, self.tail)

    def pack(self, segments: tuple, padding: str | None = None):
        """Implements `call` for a tuple of one or two texts or batches.

        Args:
            segments: one or two strings, or batches of them [B].
            padding: overrides the preprocessor's.

        Returns:
            A dict of int32 tensors [T], or [B, T] for batches, as in `call`.
        """
        import tensorflow as tf

        from keras_bert.text.lines import text_columns

        with tf.device("cpu"):
            segments = text_columns(segments)
            if segments[0].shape.rank == 0:
                batch = self.pack(tuple(segment[None] for segment in segments), padding)
                return {name: value[0] for name, value in batch.items()}
            batch = self._joined([self.tokenizer.tokenize(column) for column in segments], padding)
            for value in batch.values():  # ragged tensors lose their static batch size
                value.set_shape([segments[0].shape[0], None])
            return batch

    def pack_windows(self, segments: tuple, overlap: int):
        """Converts texts completely, into as many rows as they need.

        A text that is too long is split into windows, see `keras_bert.text.windows.cut`. For a
        pair the second text is split, and each row begins with the first, which is truncated to
        half of the row.

        Args:
            segments: a tuple of one or two batches of strings [B].
            overlap: number of pieces that a window shares with the previous one.

        Returns:
            (rows, windows): a dict of int32 tensors [W, T], and their `Windows`.

        Raises:
            ValueError: if `overlap` leaves no room for new pieces.
        """
        import tensorflow as tf

        check_count("overlap", overlap, 0)
        room = self.sequence_length - 1 - len(segments)
        if not 0 <= overlap < room - (room // 2 if len(segments) > 1 else 0):
            raise ValueError(
                f"overlap={overlap}: expected from 0 to less than the pieces that fit into a row, "
                f"with sequence_length={self.sequence_length}"
            )
        with tf.device("cpu"):
            *firsts, cut = [self.tokenizer.tokenize(segment) for segment in segments]
            sizes = tf.fill([cut.nrows(out_type=tf.int32)], room)
            if firsts:
                firsts = [firsts[0][:, : room // 2]]
                sizes -= tf.cast(firsts[0].row_lengths(), tf.int32)
            found = windows.cut(cut.row_lengths(), sizes, sizes - overlap)
            rows = [tf.gather(first, found.text) for first in firsts]
            rows.append(windows.take(cut, found))
            return self._joined(rows), found

    def compute_output_spec(self, x, y=None, sample_weight=None):
        raise NotImplementedError("texts cannot be symbolic: map the preprocessor in tf.data")

    def get_config(self):
        return super().get_config() | {name: getattr(self, name) for name in self.settings}
