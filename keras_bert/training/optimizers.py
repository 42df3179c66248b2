"""AdamW as BERT is fine-tuned with."""

import keras


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
        epsilon: added to the root of the second moment, before its bias is corrected (the second
            form of Kingma and Ba 2015, section 2, which Keras has).
        global_clipnorm: gradients are scaled down to this global norm.
        **kwargs: any other argument of `keras.optimizers.AdamW`.
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

    def undecayed(self, variables) -> list[str]:
        """Lists the paths of the weights that decay leaves alone."""
        return [v.path for v in variables if not self._use_weight_decay(v)]
