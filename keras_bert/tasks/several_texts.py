"""Tasks that read several texts as one example: choices, pairs to compare."""

import keras
import numpy as np
from keras import ops


class SeveralTexts:
    """Mixin in front of a task: calls on ids [B, C, T] beside those on ids [B, T].

    The network reads one row a text. Ids with an axis more, C texts an example, are folded into
    B * C rows, and the output [B * C, ...] comes back as [B, C, ...]. The texts of an example see
    nothing of each other.
    """

    packs_texts = False

    @property
    def input_spec(self):
        """None: `call` takes ids of two and of three axes."""
        return None

    def call(self, inputs, training=None, mask=None):
        if not _has_several(inputs):
            return super().call(inputs, training=training, mask=mask)
        output = super().call(fold(inputs), training=training)
        texts = ops.shape(inputs["token_ids"])[1]
        return ops.reshape(output, (-1, texts, *output.shape[1:]))

    def compute_output_spec(self, inputs, training=None, mask=None):
        if not _has_several(inputs):
            return super().compute_output_spec(inputs)
        _check_axes(inputs)
        batch, texts, length = inputs["token_ids"].shape
        row = {n: keras.KerasTensor((None, length), x.dtype) for n, x in inputs.items()}
        output = super().compute_output_spec(row)
        return keras.KerasTensor((batch, texts, *output.shape[1:]), output.dtype)

    def _check_ids(self, x) -> None:
        if len(np.shape(x.get("token_ids"))) == 3:
            _check_axes(x)
            x = {name: value.reshape(-1, value.shape[-1]) for name, value in x.items()}
        super()._check_ids(x)


def fold(inputs: dict) -> dict:
    """Makes rows of the texts of all examples.

    Args:
        inputs: ids by name, [B, C, T] each.

    Returns:
        The same, [B * C, T].

    Raises:
        ValueError: if an input has not three axes.
    """
    _check_axes(inputs)
    return {name: ops.reshape(value, (-1, *ops.shape(value)[2:])) for name, value in inputs.items()}


def _has_several(inputs) -> bool:
    return isinstance(inputs, dict) and len(inputs["token_ids"].shape) == 3


def _check_axes(inputs: dict) -> None:
    for name, value in inputs.items():
        if len(value.shape) != (4 if name == "token_embeddings" else 3):
            raise ValueError(
                f"input '{name}' has shape {tuple(value.shape)}; expected three axes [batch, "
                "texts, tokens] as others have"
            )
