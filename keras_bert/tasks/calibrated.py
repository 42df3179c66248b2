"""Base of tasks whose probabilities have a temperature (Guo et al. 2017)."""

import keras

from keras_bert.arguments import check_above_zero
from keras_bert.tasks.from_checkpoint import own_settings
from keras_bert.tasks.task import BertTask


class Calibrated(BertTask):
    """Base of tasks trained with a cross-entropy, one of classes, tokens, choices or places.

    Logits are divided by a `temperature` before probabilities are computed.
    """

    _temperature = 1.0

    def default_loss(self):
        # Divided by the sum of the weights: on TensorFlow the step does that anyway, on other
        # backends Keras has to.
        return self._by_output(
            keras.losses.SparseCategoricalCrossentropy,
            from_logits=True,
            reduction="mean_with_sample_weight",
        )

    def default_metrics(self):
        return self._by_output(lambda: [keras.metrics.SparseCategoricalAccuracy(name="accuracy")])

    def _by_output(self, make, **kwargs):
        several = isinstance(self.output, dict)
        return {name: make(**kwargs) for name in self.output} if several else make(**kwargs)

    @property
    def temperature(self) -> float:
        """Divides the logits before probabilities are computed of them; see `calibrate`."""
        return self._temperature

    @temperature.setter
    def temperature(self, value: float) -> None:
        check_above_zero("temperature", value)
        self._temperature = float(value)

    def calibrate(self, x, y=None, batch_size: int | None = None, **kwargs) -> float:
        """Sets `temperature` so that probabilities are as often right as they say.

        Answers stay the same; presets and exports keep the temperature. Reference: Guo et al. 2017
        (arXiv:1706.04599), section 4.2. See `keras_bert.metrics.best_temperature` for the method,
        and for answers in a context `keras_bert.metrics.best_answer_temperature`.

        Args:
            x: held-out data, as in `fit`. For a masked language model N texts: in each, one word
                is masked, the middle one of those with a single token; of at most 2,048 of them,
                evenly chosen.
            y: their labels; None if the data includes them, and for a masked language model.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `predict`.

        Returns:
            The temperature.

        Raises:
            ValueError: if labels are missing or unknown, there is no data, or the task has no
                probabilities of its own.
        """
        if "temperature" not in own_settings(type(self)):
            raise ValueError(
                f"{type(self).__name__} has no argument temperature, which presets would keep"
            )
        self.temperature = self.best_temperature(x, y, batch_size, **kwargs)
        return self.temperature

    def best_temperature(self, x, y, batch_size: int | None, **kwargs) -> float:
        """Finds a temperature, as `calibrate`, which sets it."""
        raise NotImplementedError
