"""The optimizer of `compile(optimizer="auto")`, with a new schedule for every `fit`."""

import logging

import keras

from keras_bert.training.optimizers import AdamW, inner_optimizer
from keras_bert.training.rate_scales import layerwise_rate_scales
from keras_bert.training.schedules import WarmupDecay

# Settings that do not make a step be traced again: the schedule holds them in a variable.
ADJUSTABLE = ("learning_rate", "warmup")

logger = logging.getLogger("keras_bert")


def automatic_optimizer(model, settings: dict, steps: int | None):
    """Makes AdamW with warm-up and decay over `steps`; at a constant rate if they are None.

    The numbers of its schedule are in a variable, so that a step traced once serves schedules of
    any length and rate. `settings` are those of `BertTask.compile`.
    """
    # Leaves at least one step for the decay.
    warmup_steps = 0 if steps is None else min(int(settings["warmup"] * steps), steps - 1)
    rate = WarmupDecay(settings["learning_rate"], steps, warmup_steps, settings["decay"])
    # A step on JAX has it as a constant in any case: it is not among the optimizer's variables.
    if keras.config.backend() == "tensorflow":
        rate.make_adjustable()
    scales = None
    if settings["layer_decay"] is not None:
        scales = layerwise_rate_scales(model, settings["layer_decay"])
    return AdamW(rate, settings["weight_decay"], epsilon=settings["epsilon"], rate_scales=scales)


def start_schedule(model, settings: dict, steps: int | None) -> None:
    """Gives a task an `automatic_optimizer` for a run; steps=None is logged as a warning."""
    if steps is None:
        logger.warning(
            "the dataset does not say its size, so the learning rate stays at %g: pass "
            "steps_per_epoch or steps for warm-up and decay",
            settings["learning_rate"],
        )
    if restarted(model, settings, steps):
        return
    with model.step.scope():
        optimizer = automatic_optimizer(model, settings, steps)
        if model.dtype_policy.name == "mixed_float16":
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
        model.optimizer = optimizer
    model.train_function = None  # Keras traces it again with the new optimizer


def restarted(model, settings: dict, steps: int | None) -> bool:
    """Restarts the optimizer in use from zero, if that is all that a new one would do.

    Functions traced with it stay valid, whatever the length and rate of the schedule. Returns
    False if another optimizer is in use, or one with other settings.
    """
    with model.step.scope():
        new = automatic_optimizer(model, settings, steps)
        if not _in_use(model, new):
            return False
        optimizer = model.optimizer
        inner_optimizer(optimizer).schedule.adjust(new.schedule)
        for variable in optimizer.variables:
            variable.assign(keras.ops.zeros(variable.shape, variable.dtype))
        if inner_optimizer(optimizer) is not optimizer and optimizer.built:
            optimizer.dynamic_scale.assign(optimizer.initial_scale)
    return True


def _in_use(model, new: AdamW) -> bool:
    """Whether the optimizer in use equals `new` but for what `WarmupDecay.adjust` changes."""
    old = inner_optimizer(model.optimizer)
    if type(old) is not type(new) or type(old.schedule) is not type(new.schedule):
        return False
    if _settings(old) != _settings(new):
        return False
    ours, theirs = old.schedule, new.schedule
    if not ours.variables and ours.get_config() != theirs.get_config():
        return False  # the traced function has the schedule's numbers as constants
    trained = [variable.path for variable in model.trainable_variables]
    return not old.built or trained == [v.path for v in old.trained_variables]


def _settings(optimizer: AdamW) -> dict:
    config = optimizer.get_config() | {"name": None}
    return config | {"learning_rate": optimizer.schedule.shape}
