"""The variables of a step on TensorFlow, and the gradients of all replicas applied to them."""

from typing import NamedTuple

import keras
import tensorflow as tf

from keras_bert.training import replicas
from keras_bert.training.optimizers import Optimizer, clipped, inner_optimizer


class StepVariables(NamedTuple):
    """Lists of `tf.Variable`, one replica's copies, that its train step reads and writes."""

    trainable: list
    others: list
    metrics: list
    slots: list
    optimizer: list
    schedule: list
    counters: list


def read(variables: list) -> list:
    """The values of variables."""
    return [tf.convert_to_tensor(variable) for variable in variables]


def write(variables: list, values: list) -> None:
    """Gives variables their new values."""
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def tensors(batch) -> list:
    """All tensors of a batch, without None."""
    return [value for value in tf.nest.flatten(batch) if value is not None]


def applies_itself(optimizer, trainable: list) -> bool:
    """Whether an optimizer is ours and needs nothing that only Keras's `apply` supports."""
    ours = inner_optimizer(optimizer)
    return isinstance(ours, Optimizer) and not (
        ours.use_ema
        or ours.gradient_accumulation_steps
        or ours.loss_scale_factor
        or any(variable.constraint is not None for variable in trainable)
    )


def loss_scale(optimizer):
    """The factor on losses, float32 scalar; in a replica's context."""
    if inner_optimizer(optimizer) is optimizer:
        return optimizer.scale_loss(tf.constant(1.0))
    return tf.convert_to_tensor(replicas.local(optimizer.dynamic_scale))


# === Of an optimizer that applies itself ===


def schedule_variables(optimizer: Optimizer) -> list:
    """The variables of an optimizer's schedule, which only code outside of the step changes."""
    return list(getattr(optimizer.schedule, "variables", ()))


def optimizer_state(optimizer, variables: StepVariables) -> tuple:
    """(pairs of slots, number of the update, rate), as values."""
    ours = inner_optimizer(optimizer)
    known = [*ours.other_variables(), *schedule_variables(ours)]
    values = read([*variables.optimizer, *variables.schedule])
    with keras.StatelessScope(state_mapping=list(zip(known, values, strict=True))):
        rate = tf.convert_to_tensor(ours.learning_rate)
        step = tf.convert_to_tensor(ours.iterations)
    slots = read(variables.slots)
    pairs = zip(slots[::2], slots[1::2], strict=True)
    return [list(pair) for pair in pairs], step, rate


def updated(optimizer, gradients, untrained, values, slots, step, rate, scale) -> tuple:
    """Clips and applies the global gradients, times `scale`, as a pure function.

    `untrained` are the indices of weights that the loss does not depend on; they do not change.
    `slots`, `step` and `rate` come from `optimizer_state`. With loss scaling, gradients that are
    not finite change nothing. Returns (new values of weights, of slots, whether the gradients were
    finite).
    """
    ours = inner_optimizer(optimizer)
    scaled = ours is not optimizer
    if scaled:
        gradients = [g / tf.cast(scale, g.dtype) for g in gradients]
    gradients, _ = ours.clipped(gradients)
    new_values, new_slots = ours.updated(gradients, values, slots, step, rate)
    # Decay applies only to trained weights: google-research/bert `optimization.py` also skips the
    # rest.
    pairs = zip(new_values, values, strict=True)
    new_values = [old if place in untrained else new for place, (new, old) in enumerate(pairs)]
    finite = tf.constant(True)
    if scaled:
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(g)) for g in gradients])
        new_values, new_slots = keras.tree.map_structure(
            lambda new, old: tf.where(finite, new, old), (new_values, new_slots), (values, slots)
        )
    return new_values, new_slots, finite


def write_updated(optimizer, variables: StepVariables, values, slots, finite) -> None:
    """Writes the result of `updated`, and counts the update; in a replica's context."""
    write(variables.trainable, values)
    write(variables.slots, [slot for pair in slots for slot in pair])
    ours = inner_optimizer(optimizer)
    for known, variable in zip(ours.other_variables(), variables.optimizer, strict=True):
        if known is ours.iterations:
            variable.assign_add(tf.cast(finite, variable.dtype))


def adapt_scale(optimizer, finite) -> None:
    """Halves the loss scale after an overflow; doubles it after a number of steps without one."""
    if inner_optimizer(optimizer) is optimizer:
        return
    scale = replicas.local(optimizer.dynamic_scale)
    calm = replicas.local(optimizer.step_counter)
    steps = tf.where(finite, calm + 1, 0)
    full = steps >= optimizer.dynamic_growth_steps
    scale.assign(scale * tf.where(finite, tf.where(full, 2.0, 1.0), 0.5))
    calm.assign(tf.where(full, tf.zeros_like(steps), steps))


# === Of any other ===


def apply_through_keras(optimizer, gradients, trainable: list) -> None:
    """Applies global gradients, times the loss scale: whole, but slower on several replicas."""
    count = replicas.count()
    if count > 1:
        # The gradients are already summed, and Keras sums again after clipping; so they are clipped
        # and divided here. Keras's clipping does not change them afterwards.
        scale = loss_scale(optimizer)
        whole, _ = clipped(inner_optimizer(optimizer), [g / scale for g in gradients])
        gradients = [g * (scale / count) for g in whole]
    optimizer.apply_gradients(zip(gradients, trainable, strict=True))
