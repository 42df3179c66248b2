"""Word, position and segment embeddings (Devlin et al. 2019, section 3, figure 2)."""

import keras
from keras import ops

from keras_bert.layers.dropout import Dropout
from keras_bert.layers.initializers import truncated_normal
from keras_bert.layers.normalization import LayerNorm


@keras.saving.register_keras_serializable(package="keras_bert")
class BertEmbeddings(keras.layers.Layer):
    """Sums three learned embeddings, then applies LayerNorm and dropout.

    Reference: google-research/bert `modeling.py`, `embedding_lookup` and `embedding_postprocessor`.

    Args:
        vocabulary_size: rows of the word embedding table.
        hidden_dim: hidden size H.
        max_sequence_length: rows of the position embedding table.
        num_segments: rows of the segment embedding table.
        dropout: dropout rate after the normalization.
        layer_norm_epsilon: added to the variance.
        initializer_range: stddev of the truncated normal initializer of the tables.

    Call arguments:
        token_ids: int [B, T], below `vocabulary_size`.
        segment_ids: int [B, T], below `num_segments`.
        position_ids: int [B, T] below `max_sequence_length`, or None for 0, 1, 2, ...
        token_embeddings: float [B, T, H] used instead of the word embeddings, or None.
        training: whether to apply dropout.

    Returns:
        float [B, T, H]; NaN at tokens with an id outside its table, because a compiled function
        cannot raise.

    Raises:
        ValueError: if T exceeds `max_sequence_length` and no `position_ids` are given.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        dropout: float = 0.1,
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.word = keras.layers.Embedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=truncated_normal(initializer_range),
            dtype=self.dtype_policy,
            name="word",
        )
        self.layer_norm = LayerNorm(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="layer_norm"
        )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, token_ids_shape, *_, **__):
        self.word.build(token_ids_shape)
        self.position_table = self.add_weight(
            name="position_table",
            shape=(self.max_sequence_length, self.hidden_dim),
            initializer=truncated_normal(self.initializer_range),
        )
        self.segment_table = self.add_weight(
            name="segment_table",
            shape=(self.num_segments, self.hidden_dim),
            initializer=truncated_normal(self.initializer_range),
        )
        self.layer_norm.build((*token_ids_shape, self.hidden_dim))

    def call(self, token_ids, segment_ids, position_ids=None, token_embeddings=None, training=None):
        length = token_ids.shape[1]
        if position_ids is None and length is not None and length > self.max_sequence_length:
            raise ValueError(
                f"token_ids with {length} tokens: expected at most {self.max_sequence_length}, the "
                f"positions of '{self.name}'; truncate the input"
            )
        inside = _inside(segment_ids, self.num_segments)  # [B, T]
        if token_embeddings is None:
            inside = ops.logical_and(inside, _inside(token_ids, self.vocabulary_size))
            token_embeddings = self.word(token_ids)
        # A quantized table gives float32 under every policy.
        x = ops.cast(token_embeddings, self.compute_dtype)  # [B, T, H]
        positions = ops.cast(self.position_table, self.compute_dtype)  # [P, H]
        if position_ids is None:
            x = x + positions[: ops.shape(token_ids)[1]]
        else:
            inside = ops.logical_and(inside, _inside(position_ids, self.max_sequence_length))
            x = x + _rows_of(positions, position_ids)
        # A compiled lookup outside the table would return a plausible row and cannot raise. NaN is
        # added where it costs least: the segment table is small.
        missing = ops.expand_dims(ops.where(inside, 0.0, float("nan")), -1)  # [B, T, 1]
        x = x + _rows_of(ops.cast(self.segment_table, self.compute_dtype), segment_ids, missing)
        return self.dropout(self.layer_norm(x), training=training)

    def compute_output_shape(self, token_ids_shape, *_, **__):
        return (*token_ids_shape, self.hidden_dim)

    def compute_output_spec(
        self, token_ids, segment_ids, position_ids=None, token_embeddings=None, training=None
    ):
        shape = self.compute_output_shape(token_ids.shape)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    def get_config(self):
        return super().get_config() | {
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "max_sequence_length": self.max_sequence_length,
            "num_segments": self.num_segments,
            "dropout": self.dropout.rate,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
        }


def _inside(ids, size: int):
    """Whether ids are inside a table, bool."""
    return ops.logical_and(ids >= 0, ids < size)


def _rows_of(table, ids, added=0.0):
    """Looks up rows of a small table by a one-hot product, with `added` [B, T, 1] in the one-hots.

    The gradient of a gather would add up all tokens of the batch in the same few rows, serially.
    """
    one_hot = ops.one_hot(ids, table.shape[0], dtype=table.dtype)
    return ops.matmul(one_hot + ops.cast(added, table.dtype), table)
