"""What an optimizer does with the gradients of all replicas, on TensorFlow."""

import keras
import tensorflow as tf

from keras_bert.training import replicas
from keras_bert.training.optimizers import Optimizer, clipped
from keras_bert.training.step_variables import read, write


class TensorFlowUpdate:
    """Mixin of `TensorFlowStep`: clips and applies gradients, as a pure function where it can.

    Needs the model's `optimizer`, its variables and `_step_losses`.
    """

    # === Pure, compiled ===

    def _unpack(self, shared):
        """(gradients, loss sums, metric variables) from what `_backward` packed."""
        variables, metrics = self.trainable_variables, self.metrics_variables
        losses = [tf.TensorShape([])] * (len(self._step_losses.names) + 1)  # and regularization
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

    def _read_optimizer(self, variables) -> tuple:
        """(slots, number of the update, rate) of our optimizer, as values."""
        optimizer = self._inner_optimizer()
        others = zip(optimizer.other_variables(), read(variables.optimizer), strict=True)
        with keras.StatelessScope(state_mapping=list(others)):
            rate = tf.convert_to_tensor(optimizer.learning_rate)
            step = tf.convert_to_tensor(optimizer.iterations)
        slots = read(variables.slots)
        pairs = zip(slots[::2], slots[1::2], strict=True)
        return [list(pair) for pair in pairs], step, rate

    def _write_updated(self, variables, values, slots, finite) -> None:
        """Writes what `_updates` gave."""
        write(variables.trainable, values)
        write(variables.slots, [slot for pair in slots for slot in pair])
        optimizer = self._inner_optimizer()
        for known, variable in zip(optimizer.other_variables(), variables.optimizer, strict=True):
            if known is optimizer.iterations:
                variable.assign_add(tf.cast(finite, variable.dtype))

    def _adapt_scale(self, finite) -> None:
        """Halves the loss scale after an overflow; doubles it after so many steps without."""
        if self._inner_optimizer() is self.optimizer:
            return
        scale = replicas.local(self.optimizer.dynamic_scale)
        calm = replicas.local(self.optimizer.step_counter)
        steps = tf.where(finite, calm + 1, 0)
        full = steps >= self.optimizer.dynamic_growth_steps
        scale.assign(scale * tf.where(finite, tf.where(full, 2.0, 1.0), 0.5))
        calm.assign(tf.where(full, tf.zeros_like(steps), steps))

    def _apply_through_keras(self, gradients) -> None:
        """The way of optimizers that are not ours: whole, but slower on several replicas."""
        count = replicas.count()
        if count > 1:
            # They are added up already, and Keras adds up once more, after it has clipped: so they
            # are clipped here, and parted. What is clipped and parted Keras's clipping leaves be.
            scale = self._loss_scale()
            whole, _ = clipped(self._inner_optimizer(), [g / scale for g in gradients])
            gradients = [g * (scale / count) for g in whole]
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
