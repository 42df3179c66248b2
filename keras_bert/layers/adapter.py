"""Adapters: small bottleneck layers between frozen layers (Houlsby et al. 2019)."""

import keras

from keras_bert.arguments import check_count
from keras_bert.layers.activations import gelu_tanh
from keras_bert.layers.initializers import truncated_normal

# google-research/adapter-bert's `init_scale`. With the product of two such matrices, a new adapter
# changes its input by a few millionths; the paper reports lower accuracy for larger initial values
# (section 3.6).
INITIAL_DEVIATION = 1e-3


@keras.saving.register_keras_serializable(package="keras_bert")
class Adapter(keras.layers.Layer):
    """x + up(gelu(down(x))), initialized close to the identity.

    Reference: Houlsby et al. 2019, section 2.1, and google-research/adapter-bert `modeling.py`,
    `feedforward_adapter`: truncated normal kernels with stddev 1e-3, zero biases, tanh GELU.

    Args:
        bottleneck_dim: number of units M between the two dense layers.

    Call arguments:
        x: float [..., H].

    Returns:
        float [..., H].

    Raises:
        ValueError: if `bottleneck_dim` is not a positive integer.
    """

    def __init__(self, bottleneck_dim: int, **kwargs):
        super().__init__(**kwargs)
        self.bottleneck_dim = check_count("bottleneck_dim", bottleneck_dim)

    def build(self, x_shape):
        self.down = self._dense(self.bottleneck_dim, "down")
        self.up = self._dense(x_shape[-1], "up")
        self.down.build(x_shape)
        self.up.build((*x_shape[:-1], self.bottleneck_dim))

    def _dense(self, units, name):
        kernel = truncated_normal(INITIAL_DEVIATION)
        return keras.layers.Dense(
            units, kernel_initializer=kernel, dtype=self.dtype_policy, name=name
        )

    def call(self, x):
        return x + self.up(gelu_tanh(self.down(x)))

    def compute_output_shape(self, x_shape):
        return x_shape

    def get_config(self):
        return super().get_config() | {"bottleneck_dim": self.bottleneck_dim}
