"""The two pre-training heads (Devlin et al. 2019, section 3.1).

Shapes: B rows in a batch, T tokens, P masked positions, V vocabulary entries, H hidden units.
"""

import keras
from keras import ops

from keras_bert.layers.activations import get_activation
from keras_bert.layers.embeddings import BertEmbeddings
from keras_bert.layers.initializers import truncated_normal
from keras_bert.layers.normalization import LayerNorm


class MaskedLMHead(keras.layers.Layer):
    """Scores the vocabulary at the given positions; the output kernel is the word embedding table.

    LN(activation(dense(x[positions]))) @ word_table^T + bias. Reference:
    google-research/bert `run_pretraining.py`, `get_masked_lm_output`.

    The table remains a weight of the embeddings only: this layer's `weights` are those of the dense
    layer and the normalization, and `output_bias`. For the same reason the head has no config; the
    task that attaches it to a backbone recreates it.

    Args:
        embeddings: the backbone's embeddings, built.
        activation: activation of the dense layer: "gelu_exact", "gelu_tanh" or a Keras name.
        layer_norm_epsilon: added to the variance.
        initializer_range: stddev of the truncated normal initializer of the dense kernel.

    Call arguments:
        x: float [B, T, H].
        mask_positions: int [B, P], from 0 to T - 1.

    Returns:
        float logits [B, P, V] in the compute dtype; NaN at positions outside the row, because a
        compiled function cannot raise.

    Raises:
        ValueError: if H is not the width of the word table.
    """

    def __init__(
        self,
        embeddings: BertEmbeddings,
        activation: str = "gelu_exact",
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        # A function, so that Keras does not count the table among this layer's weights.
        self._word_table = lambda: _word_table(embeddings.word)
        self.vocabulary_size = embeddings.vocabulary_size
        self.hidden_dim = embeddings.hidden_dim
        self.dense = keras.layers.Dense(
            self.hidden_dim,
            activation=get_activation(activation),
            kernel_initializer=truncated_normal(initializer_range),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.layer_norm = LayerNorm(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="layer_norm"
        )

    def build(self, x_shape, mask_positions_shape=None):
        if x_shape[-1] != self.hidden_dim:
            raise ValueError(
                f"'{self.name}' got x of width {x_shape[-1]}: expected {self.hidden_dim}, that of "
                "the word table"
            )
        self.dense.build(x_shape)
        self.layer_norm.build(x_shape)
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.vocabulary_size,), initializer="zeros"
        )

    def call(self, x, mask_positions):
        x = states_at(x, mask_positions)  # [B, P, H]
        x = self.layer_norm(self.dense(x))
        table = ops.cast(self._word_table(), self.compute_dtype)  # [V, H]
        # The largest tensor of the model stays in the compute dtype; the loss casts it to float32,
        # which XLA fuses into the reading without a float32 copy.
        logits = ops.matmul(x, ops.transpose(table))  # [B, P, V]
        return logits + ops.cast(self.output_bias, self.compute_dtype)

    def get_config(self):
        raise NotImplementedError(
            f"'{self.name}' shares the word table of its backbone, which a config cannot store: "
            "instead of clone_model, create a new task on a backbone of the same config"
        )

    def compute_output_spec(self, x, mask_positions):
        shape = (*mask_positions.shape, self.vocabulary_size)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)


def states_at(x, positions):
    """Gathers the states of tokens, [B, P, H], at positions [B, P]; NaN outside the row.

    As a product with one-hot rows, [B, P, T] times [B, T, H], whose gradient is a product too; that
    of a gather is a scatter. Forward and backward under XLA on an H100 in bfloat16 took 68 instead
    of 116 us at B, P, T, H = 256, 20, 128, 768, and 105 instead of 115 us at 64, 80, 512, 768; both
    are a few thousandths of a training step.
    """
    length = ops.shape(x)[1]
    inside = ops.logical_and(positions >= 0, positions < length)
    missing = ops.cast(ops.where(inside, 0.0, float("nan")), x.dtype)
    one_hot = ops.one_hot(positions, length, dtype=x.dtype)
    return ops.matmul(one_hot + ops.expand_dims(missing, -1), x)


def _word_table(layer: keras.layers.Embedding):
    """The table as the layer returns its rows: a quantized layer stores integers."""
    if layer.quantization_mode is None:
        return layer.embeddings
    return layer(ops.arange(layer.input_dim))


@keras.saving.register_keras_serializable(package="keras_bert")
class NextSentenceHead(keras.layers.Layer):
    """Predicts whether the second segment follows the first: a dense layer on the pooled output.

    Reference: google-research/bert `run_pretraining.py`, `get_next_sentence_output`.

    Args:
        initializer_range: stddev of the truncated normal initializer of the kernel.
        dtype: float32 by default, so that the logits are float32 under every dtype policy of the
            backbone.

    Call arguments:
        pooled: float [B, H].

    Returns:
        float logits [B, 2]: class 0 is the next segment, class 1 a random one.
    """

    def __init__(self, initializer_range: float = 0.02, dtype="float32", **kwargs):
        super().__init__(dtype=dtype, **kwargs)
        self.initializer_range = initializer_range
        self.dense = keras.layers.Dense(
            2,
            kernel_initializer=truncated_normal(initializer_range),
            dtype=self.dtype_policy,
            name="dense",
        )

    def build(self, pooled_shape):
        self.dense.build(pooled_shape)

    def call(self, pooled):
        return self.dense(pooled)

    def compute_output_shape(self, pooled_shape):
        return (*pooled_shape[:-1], 2)

    def get_config(self):
        return super().get_config() | {"initializer_range": self.initializer_range}


def dense_head(units: int, initializer_range: float) -> keras.layers.Dense:
    """A task's head: one dense layer, float32 under every dtype policy."""
    return keras.layers.Dense(
        units, kernel_initializer=truncated_normal(initializer_range), dtype="float32", name="head"
    )
