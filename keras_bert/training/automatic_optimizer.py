"""The optimizer of `compile(optimizer="auto")`, with a new schedule for every `fit`."""

import logging

import keras

from keras_bert.training.optimizers import AdamW
from keras_bert.training.rate_scales import layerwise_rate_scales
from keras_bert.training.schedules import WarmupDecay

logger = logging.getLogger("keras_bert")


def automatic_optimizer(model, settings: dict, steps: int | None) -> AdamW:
    """Makes AdamW with warm-up and decay.

    Args:
        model: the model to train.
        settings: `learning_rate`, `weight_decay`, `warmup`, `decay`, `layer_decay` and `epsilon`,
            as `BertTask.compile` takes them.
        steps: steps of the run; None for a constant rate.
    """
    # Leaves at least one step for the decay.
    warmup_steps = 0 if steps is None else min(int(settings["warmup"] * steps), steps - 1)
    rate = WarmupDecay(settings["learning_rate"], steps, warmup_steps, settings["decay"])
    scales = None
    if settings["layer_decay"] is not None:
        scales = layerwise_rate_scales(model, settings["layer_decay"])
    return AdamW(rate, settings["weight_decay"], epsilon=settings["epsilon"], rate_scales=scales)


def start_schedule(model, settings: dict, steps: int | None) -> None:
    """Sets an optimizer whose schedule covers a run.

    Args:
        model: a task that already has an optimizer.
        settings: as `automatic_optimizer`.
        steps: as `automatic_optimizer`; None is logged as a warning.
    """
    if steps is None:
        logger.warning(
            "the dataset does not say its size, so the learning rate stays at %g: pass "
            "steps_per_epoch or steps for warm-up and decay",
            settings["learning_rate"],
        )
    with model.step.scope():
        optimizer = automatic_optimizer(model, settings, steps)
        if _in_use(model, optimizer):
            # The same optimizer: restarted from zero, but with the traced function kept.
            for variable in model.optimizer.variables:
                variable.assign(keras.ops.zeros(variable.shape, variable.dtype))
            return
        if model.dtype_policy.name == "mixed_float16":
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
        model.optimizer = optimizer
    model.train_function = None  # Keras traces it again with the new optimizer


def _in_use(model, new: AdamW) -> bool:
    """Whether the optimizer in use equals `new` once that is built."""

    def settings(optimizer):
        config = optimizer.get_config() | {"name": None}
        return config | {"learning_rate": config["learning_rate"]["config"]}

    def paths(variables):
        return [variable.path for variable in variables]

    old = model.optimizer
    trained = getattr(old, "_trainable_variables", [])
    return (
        type(old) is type(new)
        and settings(old) == settings(new)
        and model.train_function is not None
        and paths(trained) == paths(model.trainable_variables)
    )
