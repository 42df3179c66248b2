"""AdamW as BERT is fine-tuned with."""

import math

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class AdamW(keras.optimizers.AdamW):
    """Adam with decoupled decay (Loshchilov and Hutter 2019), kept off biases and LayerNorm.

    Decay touches matrices only: every weight of BERT with a single axis is a bias or a
    LayerNorm's gamma or beta, and no other is. The rule looks at the variable, not at its name,
    which differs between backends. Embedding tables are decayed, as in google-research/bert.

    Moments are bias-corrected: the original's Adam is not, and that is a known cause of failed
    fine-tuning runs on small tasks (Mosbach et al. 2021, "On the Stability of Fine-tuning BERT").

    Args:
        learning_rate: a rate or a schedule.
        weight_decay: decay per update, times the rate.
        epsilon: added to the root of the corrected second moment, as published (Kingma and Ba
            2015, algorithm 1). Keras's own Adam adds it before the correction, which makes the
            first steps shorter.
        global_clipnorm: gradients are scaled down to this global norm.
        **kwargs: any other argument of `keras.optimizers.AdamW` but `amsgrad`.
    """

    def __init__(
        self,
        learning_rate=5e-5,
        weight_decay: float = 0.01,
        epsilon: float = 1e-6,
        global_clipnorm: float | None = 1.0,
        **kwargs,
    ):
        super().__init__(
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            epsilon=epsilon,
            global_clipnorm=global_clipnorm,
            **kwargs,
        )

    def _use_weight_decay(self, variable) -> bool:
        return len(variable.shape) > 1 and super()._use_weight_decay(variable)

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        m, v = self._momentums[index], self._velocities[index]
        rate = ops.cast(learning_rate, variable.dtype)
        gradient = ops.cast(gradient, variable.dtype)
        step = ops.cast(self.iterations + 1, variable.dtype)
        self.assign(m, self.beta_1 * m + (1 - self.beta_1) * gradient)
        self.assign(v, self.beta_2 * v + (1 - self.beta_2) * ops.square(gradient))
        # 1 - beta ** step; as a power in float32 it would lose two digits in the first steps.
        m_corrected = m / -ops.expm1(step * math.log(self.beta_1))
        v_corrected = v / -ops.expm1(step * math.log(self.beta_2))
        update = rate * m_corrected / (ops.sqrt(v_corrected) + self.epsilon)
        self.assign_sub(variable, update)

    def undecayed(self, variables) -> list[str]:
        """Lists the paths of the weights that decay leaves alone."""
        return [v.path for v in variables if not self._use_weight_decay(v)]
