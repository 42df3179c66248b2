"""Forward and backward passes on TensorFlow, as pure functions of the variables' values."""

import keras
import tensorflow as tf

from keras_bert import kernels
from keras_bert.training import replicas
from keras_bert.training.counters import BatchCounters
from keras_bert.training.step_variables import read, tensors, write


class TensorFlowPasses:
    """Mixin of `TensorFlowStep`: what its compiled functions do on one replica.

    Needs the model's variables, `_step_losses`, `_loss_tracker`, `_accumulation_steps` and
    `_uses_kernels`.
    """

    def _backward(self, trainable, others, metrics, batch, weights, divisors, scale):
        """Gradients of this replica's part of the global loss, and the state after it.

        Returns:
            (gradients, loss sums, regularization and metric variables, packed; other variables;
            metric variables; counts), all as values.
        """
        steps = self._accumulation_steps
        if steps == 1:
            gradients, others, metrics, sums, counts = self._micro_backward(
                trainable, others, metrics, batch, weights, divisors, scale
            )
            return replicas.pack([*gradients, *sums, *metrics]), others, metrics, counts
        parts = keras.tree.map_structure(lambda v: _in_parts(v, steps), (batch, weights))

        def body(i, so_far, others, metrics):
            batch, weights = keras.tree.map_structure(lambda v: None if v is None else v[i], parts)
            gradients, others, metrics, sums, counts = self._micro_backward(
                trainable, others, metrics, batch, weights, divisors, scale
            )
            added = keras.tree.map_structure(tf.add, so_far, (gradients, sums, counts))
            return i + 1, added, others, metrics

        zeros = (
            [tf.zeros_like(v) for v in trainable],
            [tf.zeros((), tf.float32) for _ in [*weights, "regularization"]],
            tf.zeros_like(BatchCounters.count(batch[0], weights)),
        )
        _, (gradients, sums, counts), others, metrics = tf.while_loop(
            lambda i, *_: i < steps, body, (0, zeros, others, metrics), maximum_iterations=steps
        )
        return replicas.pack([*gradients, *sums, *metrics]), others, metrics, counts

    def _micro_backward(self, trainable, others, metrics, batch, weights, divisors, scale):
        x, y, sample_weight = batch
        with tf.GradientTape() as tape:
            tape.watch(trainable)
            y_pred, others, extra = self._call_with(trainable, others, x, training=True)
            with self._values(trainable, others):  # a loss may read weights, as a CRF's does
                sums = self._step_losses.sums(y, y_pred, weights)
            # Losses of regularization are the same in every part.
            parts = self._accumulation_steps * replicas.count()
            sums = [*sums, sum((tf.cast(v, tf.float32) for v in extra), tf.constant(0.0)) / parts]
            loss = self._step_losses.total(sums, divisors) * scale
        found = tape.gradient(loss, trainable)
        self._untrained = [gradient is None for gradient in found]  # `_updates` leaves them alone
        # The gradient of a gather is sparse; sums over replicas and XLA want it whole.
        gradients = [
            tf.zeros_like(value) if gradient is None else tf.convert_to_tensor(gradient)
            for gradient, value in zip(found, trainable, strict=True)
        ]
        metrics = self._updated_metrics(metrics, batch, y_pred, sums, weights, extra)
        return gradients, others, metrics, sums, BatchCounters.count(x, weights)

    def _forward_for_test(self, trainable, others, metrics, batch):
        x, y, sample_weight = batch
        trainable, others = read(trainable), read(others)
        y_pred, _, extra = self._call_with(trainable, others, x, training=False)
        weights = self._step_losses.weights(y, sample_weight)
        with self._values(trainable, others):
            sums = self._step_losses.sums(y, y_pred, weights)
        values = self._updated_metrics(read(metrics), batch, y_pred, sums, weights, extra)
        with tf.control_dependencies(tensors(batch)):  # see `TensorFlowStep.train_step`
            write(metrics, values)
        return values

    def _infer(self, trainable, others, x):
        return self._call_with(read(trainable), read(others), x, training=False)[0]

    def _call_with(self, trainable, others, x, training):
        """Calls the model on values of its variables.

        Keras's `stateless_call` would leave out a model's own `__call__`.

        Returns:
            (output, values of the other variables after it, losses of regularization).
        """
        values = self._values(trainable, others, collect_losses=True)
        with kernels.scope(self._uses_kernels), values as scope:
            y_pred = self(x, training=training)
            losses = self.losses
        others = [scope.get_current_value(v) for v in self.non_trainable_variables]
        return y_pred, others, losses

    def _values(self, trainable, others, **kwargs):
        """A scope in which the variables have these values."""
        variables = [*self.trainable_variables, *self.non_trainable_variables]
        mapping = list(zip(variables, [*trainable, *others], strict=True))
        return keras.StatelessScope(state_mapping=mapping, **kwargs)

    def _updated_metrics(self, values, batch, y_pred, sums, weights, extra):
        x, y, sample_weight = batch
        mapping = list(zip(self.metrics_variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            rows = BatchCounters.count(x, weights)[0]
            totals = [tf.reduce_sum(weight) for weight in weights]
            self._loss_tracker.update_state(sums[: len(totals)], totals, extra, rows)
            self._loss_tracker.count_classes(y, y_pred, weights[0])
            self.compute_metrics(x, y, y_pred, sample_weight)
        return [tf.convert_to_tensor(scope.get_current_value(v)) for v in self.metrics_variables]


def _in_parts(value, parts):
    if value is None:
        return None
    return tf.reshape(value, tf.concat([[parts, -1], tf.shape(value)[1:]], 0))
