"""Preprocessor of the pre-training models."""

import math
from typing import Any

import keras

from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor
from keras_bert.text.tokenizer import BertTokenizer


@keras.saving.register_keras_serializable(package="keras_bert")
class BertMaskedLMPreprocessor(BertClassifierPreprocessor):
    """Tokenizes, truncates and pads like `BertClassifierPreprocessor`, and holds masking settings.

    A call returns rows without masks, like the classifier's. Training on texts uses rows of
    `sequence_length` tokens, independent of `padding`, and masks them anew in every epoch.

    Args:
        tokenizer: a `BertTokenizer`.
        sequence_length: maximum number of tokens in a row, including [CLS] and [SEP].
        padding: "full" or "bucket", as in `BertClassifierPreprocessor`.
        masking: arguments of `keras_bert.data.masking.Masker` that override its defaults, such
            as {"unit": "word"}. The default of `max_predictions` is `rate` times
            `sequence_length`, rounded up: 20 for 128 tokens, as in the original.
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
        """The arguments of the `Masker`, without its tokenizer."""
        most = math.ceil(self.masking.get("rate", 0.15) * self.sequence_length)
        return {"max_predictions": most} | self.masking

    def rows_to_mask(self, x) -> dict:
        """Converts texts to rows of the fixed length that masking needs, also inside `tf.data`.

        Args:
            x: a batch of strings [B], or a tuple of two of them.

        Returns:
            A dict of int32 tensors [B, sequence_length], as in `call`.
        """
        return self.pack(x if isinstance(x, tuple) else (x,), padding="full")
