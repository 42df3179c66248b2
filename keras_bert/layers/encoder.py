"""One block of the encoder: self-attention and feed-forward, each with a residual.

Shapes: B rows in a batch, T tokens, N heads, H hidden units, F feed-forward units.
"""

import keras

from keras_bert import kernels
from keras_bert.kernels.gelu import can_gelu
from keras_bert.kernels.gradients import recomputed
from keras_bert.kernels.residual_norm import can_normalize
from keras_bert.layers.activations import gelu_exact, gelu_tanh, get_activation, in_training
from keras_bert.layers.adapter import Adapter
from keras_bert.layers.attention import SelfAttention
from keras_bert.layers.dense import Dense, bias, plain, product
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.initializers import truncated_normal
from keras_bert.layers.normalization import LayerNorm

# Activations with a kernel, and whether each is the tanh approximation.
GELUS = {gelu_exact: False, gelu_tanh: True}


@keras.saving.register_keras_serializable(package="keras_bert")
class EncoderBlock(keras.layers.Layer):
    """x = LN(x + drop(attention(x))); x = LN(x + drop(dense(activation(dense(x))))).

    Post-LN, as in google-research/bert `modeling.py`, `transformer_model`. With `adapter_dim` an
    `Adapter` precedes each residual sum, as in Houlsby et al. 2019, figure 2:
    x = LN(x + adapter(drop(...))).

    Args:
        num_heads: number of attention heads N.
        intermediate_dim: number of feed-forward units F.
        activation: "gelu_exact", "gelu_tanh" or a Keras name (see `layers.activations`).
        hidden_dropout: dropout rate before each residual sum.
        attention_dropout: dropout rate of the attention probabilities.
        layer_norm_epsilon: added to the variance.
        initializer_range: stddev of the truncated normal initializer of the kernels.
        gradient_checkpointing: keep only the block's input for the backward pass and recompute
            the rest there: about a third more computation for a fraction of the memory.
        adapter_dim: bottleneck size of the two adapters; None for no adapters.
        output_attentions: see `SelfAttention`.

    Call arguments:
        x: float [B, T, H].
        mask: see `SelfAttention`.
        training: whether to apply dropout.

    Returns:
        (float [B, T, H], attention probabilities float [B, N, T, T], or None).
    """

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        activation: str = "gelu_exact",
        hidden_dropout: float = 0.1,
        attention_dropout: float = 0.1,
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        gradient_checkpointing: bool = False,
        adapter_dim: int | None = None,
        output_attentions: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.activation = activation
        self.hidden_dropout = hidden_dropout
        self.attention_dropout = attention_dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.gradient_checkpointing = gradient_checkpointing
        self.adapter_dim = adapter_dim
        self.output_attentions = output_attentions

    def build(self, x_shape, mask_shape=None):
        self.activation_function = get_activation(self.activation)
        common = {"dtype": self.dtype_policy}
        kernel = {"kernel_initializer": truncated_normal(self.initializer_range)}
        self.attention = SelfAttention(
            self.num_heads,
            self.attention_dropout,
            self.initializer_range,
            self.output_attentions,
            name="attention",
            **common,
        )
        self.intermediate = Dense(self.intermediate_dim, name="intermediate", **kernel, **common)
        self.feedforward_output = Dense(x_shape[-1], name="feedforward_output", **kernel, **common)
        norm = {"epsilon": self.layer_norm_epsilon, **common}
        self.attention_norm = LayerNorm(name="attention_norm", **norm)
        self.feedforward_norm = LayerNorm(name="feedforward_norm", **norm)
        self.attention_drop = Dropout(self.hidden_dropout, name="attention_drop", **common)
        self.feedforward_drop = Dropout(self.hidden_dropout, name="feedforward_drop", **common)
        self.attention.build(x_shape)
        self.intermediate.build(x_shape)
        self.feedforward_output.build((*x_shape[:-1], self.intermediate_dim))
        self.attention_norm.build(x_shape)
        self.feedforward_norm.build(x_shape)
        self.attention_adapter = self.feedforward_adapter = None
        if self.adapter_dim is not None:
            self.attention_adapter = Adapter(self.adapter_dim, name="attention_adapter", **common)
            self.feedforward_adapter = Adapter(
                self.adapter_dim, name="feedforward_adapter", **common
            )
            self.attention_adapter.build(x_shape)
            self.feedforward_adapter.build(x_shape)

    def call(self, x, mask=None, training=None):
        # Seeds are drawn here, outside the part that may be recomputed.
        drops = (self.attention.dropout, self.attention_drop, self.feedforward_drop)
        seeds = [drop.draw(training) for drop in drops]

        if not (self.gradient_checkpointing and training):
            return self._forward(x, mask, training, seeds)
        # TensorFlow's recomputation computes gradients for its arguments and for variables, but not
        # for other tensors. In a stateless scope (our train step) weights are such tensors.
        # Copied, because an eager variable that is also an argument would get its gradient twice.
        variables = self.variables
        values = [keras.ops.copy(variable) for variable in variables]
        used = kernels.in_use()  # the recomputation runs outside the scope

        def block(x, *values):
            mapping = list(zip(variables, values, strict=True))
            with kernels.scope(used), keras.StatelessScope(state_mapping=mapping):
                x, probabilities = self._forward(x, mask, training, seeds)
            return (x,) if probabilities is None else (x, probabilities)

        output = recomputed(block)(x, *values)
        return output if len(output) == 2 else (*output, None)

    def _forward(self, x, mask, training, seeds):
        context, probabilities = self.attention.contexts(x, mask, training, seeds[0])
        x = self._added(
            x,
            context,
            self.attention.output_dense,
            self.attention_drop,
            self.attention_adapter,
            self.attention_norm,
            training,
            seeds[1],
        )
        tokens = keras.ops.reshape(x, (-1, x.shape[-1]))  # [B * T, H], see `SelfAttention`
        y = self._activated(tokens, training)  # [B * T, F]
        x = self._added(
            x,
            y,
            self.feedforward_output,
            self.feedforward_drop,
            self.feedforward_adapter,
            self.feedforward_norm,
            training,
            seeds[2],
        )
        return x, probabilities

    def _activated(self, tokens, training):
        """activation(intermediate(tokens)) of tokens [B * T, H]."""
        dense, activation = self.intermediate, self.activation_function
        if (
            kernels.in_use()
            and activation in GELUS
            and plain(dense)
            and can_gelu(dense.compute_dtype, tokens.shape[0])
        ):
            return kernels.add_and_gelu(product(tokens, dense), bias(dense), GELUS[activation])
        activation = in_training(activation) if training else activation
        return activation(dense(tokens))

    def _added(self, x, y, dense, drop, adapter, norm, training, seed):
        """norm(x + adapter(drop(dense(y)))) of x [B, T, H] and y [B * T, units]."""
        rows, hidden_dim = y.shape[0], x.shape[-1]
        if (
            kernels.in_use()
            and adapter is None
            and plain(dense)
            and dense.compute_dtype == self.compute_dtype
            and can_normalize(self.compute_dtype, rows, hidden_dim)
        ):
            added = kernels.add_and_normalize(
                keras.ops.reshape(x, (rows, hidden_dim)),
                product(y, dense),
                bias(dense),
                keras.ops.convert_to_tensor(norm.gamma),
                keras.ops.convert_to_tensor(norm.beta),
                norm.epsilon,
                drop.rate if training else 0.0,
                seed,
            )
            return keras.ops.reshape(added, keras.ops.shape(x))
        y = drop(keras.ops.reshape(dense(y), keras.ops.shape(x)), training=training, seed=seed)
        return norm(x + (y if adapter is None else adapter(y)))

    def compute_output_spec(self, x, mask=None, training=None):
        batch, length, _ = x.shape
        return (
            keras.KerasTensor(x.shape, dtype=self.compute_dtype),
            keras.KerasTensor((batch, self.num_heads, length, length), dtype=self.compute_dtype),
        )

    def get_config(self):
        return super().get_config() | {
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "activation": self.activation,
            "hidden_dropout": self.hidden_dropout,
            "attention_dropout": self.attention_dropout,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
            "gradient_checkpointing": self.gradient_checkpointing,
            "adapter_dim": self.adapter_dim,
            "output_attentions": self.output_attentions,
        }
