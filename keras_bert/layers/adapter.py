"""Small bottlenecks between frozen layers (Houlsby et al. 2019)."""

import keras

from keras_bert.layers.activations import gelu_tanh
from keras_bert.layers.initializers import truncated_normal

# google-research/adapter-bert's `init_scale`. The update is a product of two such matrices, so
# that a new adapter changes its input by some millionths: with training from a stronger start the
# paper saw accuracy fall (section 3.6).
INITIAL_DEVIATION = 1e-3


@keras.saving.register_keras_serializable(package="keras_bert")
class Adapter(keras.layers.Layer):
    """x + up(gelu(down(x))), at first nearly the identity.

    Rule: Houlsby et al. 2019, section 2.1, and google-research/adapter-bert `modeling.py`,
    `feedforward_adapter`: kernels from a normal law of deviation 1e-3 cut at two deviations,
    biases from zero, GELU by its tanh form.

    Args:
        bottleneck_dim: units M between the two dense layers.

    Call arguments:
        x: float [..., H].

    Returns:
        float [..., H].

    Raises:
        ValueError: if `bottleneck_dim` is no positive integer.
    """

    def __init__(self, bottleneck_dim: int, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(bottleneck_dim, int) or bottleneck_dim < 1:
            raise ValueError(f"bottleneck_dim={bottleneck_dim!r}: expected an integer above 0")
        self.bottleneck_dim = bottleneck_dim

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
