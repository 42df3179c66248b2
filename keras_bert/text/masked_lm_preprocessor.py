"""Texts, or pairs of them, to the input of the pre-training models."""

import math
from typing import Any

import keras

from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor
from keras_bert.text.packing import pack
from keras_bert.text.tokenizer import BertTokenizer


@keras.saving.register_keras_serializable(package="keras_bert")
class BertMaskedLMPreprocessor(BertClassifierPreprocessor):
    """Tokenizes, truncates and pads as `BertClassifierPreprocessor`, and says how to mask.

    A call gives rows without masks, as the classifier's does. Training on texts takes rows of
    `sequence_length` tokens, whatever `padding`, and masks them anew in every epoch.

    Args:
        tokenizer: a `BertTokenizer`.
        sequence_length: the most tokens in a row, [CLS] and [SEP] among them.
        padding: "full" or "bucket", as in `BertClassifierPreprocessor`.
        masking: arguments of `keras_bert.data.masking.Masker` that differ from its own, such as
            {"unit": "word"}. `max_predictions` is by default `rate` times `sequence_length`,
            rounded up: 20 for 128 tokens, as in the original.
    """

    settings = ("sequence_length", "padding", "masking")
    takes_settings_of = ("BertClassifierPreprocessor",)

    def __init__(
        self,
        tokenizer: BertTokenizer,
        sequence_length: int = 512,
        padding: str = "bucket",
        masking: dict[str, Any] | None = None,
        **kwargs,
    ):
        super().__init__(tokenizer, sequence_length, padding, **kwargs)
        self.masking = dict(masking or {})

    def masker_arguments(self) -> dict[str, Any]:
        """Arguments of the `Masker` beside its tokenizer."""
        most = math.ceil(self.masking.get("rate", 0.15) * self.sequence_length)
        return {"max_predictions": most} | self.masking

    def rows_to_mask(self, x) -> dict:
        """Rows of the one length that masking needs, inside `tf.data` too.

        Args:
            x: a batch of strings [B], or a tuple of two of them.

        Returns:
            A dict of int32 tensors [B, sequence_length], as of a call.
        """
        import tensorflow as tf

        from keras_bert.text.lines import text_columns

        with tf.device("cpu"):
            texts = text_columns(x if isinstance(x, tuple) else (x,))
            pieces = [self.tokenizer.tokenize(column) for column in texts]
            return pack(pieces, self.tokenizer, self.sequence_length, padding="full")

    def get_config(self):
        return super().get_config() | {"masking": self.masking}
