"""What an optimizer does with the gradients of all replicas, on TensorFlow."""

import keras
import tensorflow as tf

from keras_bert.training import replicas
from keras_bert.training.optimizers import Optimizer


class TensorFlowUpdate:
    """Mixin of `TensorFlowStep`: clips and applies gradients, as a pure function where it can.

    Needs the model's `optimizer`, its variables and `_step_losses`.
    """

    # === Pure, compiled ===

    def _unpack(self, shared):
        """(gradients, loss sums, metric variables) from what `_backward` packed."""
        variables, metrics = self.trainable_variables, self.metrics_variables
        losses = [tf.TensorShape([])] * len(self._step_losses.names)
        found = replicas.unpack(
            shared, [v.shape for v in variables] + losses + [v.shape for v in metrics]
        )
        first, last = len(variables), len(variables) + len(losses)
        return found[:first], found[first:last], found[last:]

    def _updates(self, shared, values, slots, step, rate, scale):
        """Clips and applies the global gradients.

        Gradients that are not finite change nothing where losses are scaled for float16.

        Returns:
            (new values of weights, of slots, whether the gradients were finite, loss sums and
            metric variables of all replicas together).
        """
        optimizer = self._inner_optimizer()
        scaled = optimizer is not self.optimizer
        gradients, sums, metrics = self._unpack(shared)
        if scaled:
            gradients = [g / tf.cast(scale, g.dtype) for g in gradients]
        gradients, _ = optimizer.clipped(gradients)
        new_values, new_slots = optimizer.updated(gradients, values, slots, step, rate)
        # Decay is for what is trained: google-research/bert `optimization.py` skips the rest too.
        new_values = [
            old if untrained else new
            for untrained, new, old in zip(self._untrained, new_values, values, strict=True)
        ]
        finite = tf.constant(True)
        if scaled:
            finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(g)) for g in gradients])
            new_values, new_slots = keras.tree.map_structure(
                lambda new, old: tf.where(finite, new, old),
                (new_values, new_slots),
                (values, slots),
            )
        return new_values, new_slots, finite, sums, metrics

    # === In a replica's context ===

    def _inner_optimizer(self):
        return getattr(self.optimizer, "inner_optimizer", self.optimizer)

    def _loss_scale(self):
        if self._inner_optimizer() is self.optimizer:
            return self.optimizer.scale_loss(tf.constant(1.0))
        return tf.convert_to_tensor(replicas.local(self.optimizer.dynamic_scale))

    def _applies_itself(self) -> bool:
        """Whether the optimizer is ours and asks for nothing that only Keras's own way knows."""
        optimizer = self._inner_optimizer()
        return isinstance(optimizer, Optimizer) and not (
            optimizer.use_ema
            or optimizer.gradient_accumulation_steps
            or optimizer.loss_scale_factor
            or any(variable.constraint is not None for variable in self.trainable_variables)
        )

    def _optimizer_state(self) -> tuple:
        """(slots, number of the update, rate) of our optimizer, as values."""
        optimizer = self._inner_optimizer()
        return (
            [self._read(group) for group in optimizer.slot_variables()],
            tf.convert_to_tensor(replicas.local(optimizer.iterations)),
            tf.convert_to_tensor(optimizer.learning_rate),
        )

    def _write_updated(self, values, slots, finite, sums, metrics):
        """Writes what `_updates` gave; hands on sums of losses and metric variables."""
        optimizer = self._inner_optimizer()
        self._write(self.trainable_variables, values)
        for group, new in zip(optimizer.slot_variables(), slots, strict=True):
            self._write(group, new)
        replicas.local(optimizer.iterations).assign_add(tf.cast(finite, tf.int64))
        if optimizer is not self.optimizer:
            self._adapt_scale(finite)
        return sums, metrics

    def _adapt_scale(self, finite) -> None:
        """Halves the loss scale after an overflow; doubles it after so many steps without."""
        scale = replicas.local(self.optimizer.dynamic_scale)
        calm = replicas.local(self.optimizer.step_counter)
        steps = tf.where(finite, calm + 1, 0)
        full = steps >= self.optimizer.dynamic_growth_steps
        scale.assign(scale * tf.where(finite, tf.where(full, 2.0, 1.0), 0.5))
        calm.assign(tf.where(full, tf.zeros_like(steps), steps))

    def _apply_through_keras(self, gradients) -> None:
        """The way of optimizers that are not ours: whole, but slower on several replicas."""
        if replicas.count() == 1:
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            return

        def apply(strategy, *gradients):
            # They are added up already. Keras would do it again in a replica's context.
            whole = [strategy.experimental_local_results(g)[0] for g in gradients]
            self.optimizer.apply_gradients(zip(whole, self.trainable_variables, strict=True))

        tf.distribute.get_replica_context().merge_call(apply, args=tuple(gradients))

    def _read(self, variables) -> list:
        return [tf.convert_to_tensor(replicas.local(v)) for v in variables]

    def _write(self, variables, values) -> None:
        for variable, value in zip(variables, values, strict=True):
            replicas.local(variable).assign(value)
