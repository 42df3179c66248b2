"""What an optimizer does with the gradients of all replicas, on TensorFlow."""

import keras
import tensorflow as tf

from keras_bert.training import replicas
from keras_bert.training.optimizers import Optimizer, clipped
from keras_bert.training.step_variables import StepVariables, read, write


def inner_optimizer(optimizer):
    """The optimizer inside of one that scales losses; any other itself."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def applies_itself(optimizer, trainable: list) -> bool:
    """Whether an optimizer is ours and asks for nothing that only Keras's own way knows.

    Args:
        optimizer: of the model, which may scale losses.
        trainable: the Keras variables that it changes.
    """
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


def optimizer_state(optimizer, variables: StepVariables) -> tuple:
    """(pairs of slots, number of the update, rate), as values."""
    ours = inner_optimizer(optimizer)
    others = zip(ours.other_variables(), read(variables.optimizer), strict=True)
    with keras.StatelessScope(state_mapping=list(others)):
        rate = tf.convert_to_tensor(ours.learning_rate)
        step = tf.convert_to_tensor(ours.iterations)
    slots = read(variables.slots)
    pairs = zip(slots[::2], slots[1::2], strict=True)
    return [list(pair) for pair in pairs], step, rate


def updated(optimizer, gradients, untrained, values, slots, step, rate, scale) -> tuple:
    """Clips and applies the global gradients, as a pure function.

    Gradients that are not finite change nothing where losses are scaled for float16.

    Args:
        optimizer: of the model.
        gradients: one for each weight, times `scale`.
        untrained: places of the weights that the loss does not reach; they stay as they are.
        values: of the weights.
        slots: with `step` and `rate` from `optimizer_state`.
        step: as there.
        rate: as there.
        scale: from `loss_scale`.

    Returns:
        (new values of weights, of slots, whether the gradients were finite).
    """
    ours = inner_optimizer(optimizer)
    scaled = ours is not optimizer
    if scaled:
        gradients = [g / tf.cast(scale, g.dtype) for g in gradients]
    gradients, _ = ours.clipped(gradients)
    new_values, new_slots = ours.updated(gradients, values, slots, step, rate)
    # Decay is for what is trained: google-research/bert `optimization.py` skips the rest too.
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
    """Writes what `updated` gave, and counts the update; in a replica's context."""
    write(variables.trainable, values)
    write(variables.slots, [slot for pair in slots for slot in pair])
    ours = inner_optimizer(optimizer)
    for known, variable in zip(ours.other_variables(), variables.optimizer, strict=True):
        if known is ours.iterations:
            variable.assign_add(tf.cast(finite, variable.dtype))


def adapt_scale(optimizer, finite) -> None:
    """Halves the loss scale after an overflow; doubles it after so many steps without."""
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
        # They are added up already, and Keras adds up once more, after it has clipped: so they
        # are clipped here, and parted. What is clipped and parted Keras's clipping leaves be.
        scale = loss_scale(optimizer)
        whole, _ = clipped(inner_optimizer(optimizer), [g / scale for g in gradients])
        gradients = [g * (scale / count) for g in whole]
    optimizer.apply_gradients(zip(gradients, trainable, strict=True))
