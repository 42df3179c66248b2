"""Training a small part of a model: its heads, biases, adapters or low-rank updates."""

import contextlib
import gc
import math
from typing import NamedTuple

import keras

from keras_bert.layers.dense import lora_update

KINDS = ("all", "head", "bitfit", "adapters", "lora")

# Weights of the backbone that a kind trains, by their names. A LayerNorm's beta is a bias.
_NAMES = {
    "bitfit": ("bias", "beta"),
    "adapters": ("gamma", "beta"),
    "lora": ("lora_kernel_a", "lora_kernel_b"),
}


class Tuned(NamedTuple):
    """What `tune` left to train.

    Attributes:
        paths: the paths of the trained weights.
        trained: how many numbers they hold.
        total: how many numbers all weights hold.
    """

    paths: list[str]
    trained: int
    total: int

    def __str__(self) -> str:
        share = 100 * self.trained / self.total
        return f"{self.trained:,} of {self.total:,} parameters are trained ({share:.3g} %)"


def tune(model: keras.Model, what: str, lora_rank: int = 8) -> Tuned:
    """Chooses which weights of a task are trained.

    Layers outside the backbone, the heads, are always trained. Of the backbone:

    - "all": every weight.
    - "head": none.
    - "bitfit": every bias, those of the LayerNorms among them (Ben Zaken et al. 2022, section 3).
    - "adapters": adapters and LayerNorms (Houlsby et al. 2019, section 2.1). The backbone has to
      be made with `adapter_dim`.
    - "lora": low-rank updates of `backbone.default_lora_layer_names()`, added here if there are
      none (Hu et al. 2021, section 4), and nothing else.

    Each call replaces what was chosen or frozen before. To leave out the first N blocks, call
    `model.backbone.freeze(N)` afterwards. A pooler that the checkpoint lacked (see the model's
    `loading_report`) is frozen like any other; `model.backbone.pooler.trainable = True` frees it.

    The automatic optimizer of `compile` is made anew by the next `fit`. With an optimizer of your
    own, compile again, as Keras asks after every change of `trainable`.

    Args:
        model: a task with a `BertBackbone` as its `backbone`.
        what: one of the words above.
        lora_rank: columns of the low-rank factors; "lora" alone reads it.

    Returns:
        Paths and numbers of what is trained; printed, it says the share.

    Raises:
        ValueError: if the word is unknown, the rank is no positive integer, there are no adapters
            to train, or the model has low-rank updates that `what` or `lora_rank` disagrees with.
    """
    if what not in KINDS:
        raise ValueError(f"what={what!r} is unknown; expected one of {', '.join(KINDS)}")
    backbone = model.backbone
    if what == "adapters" and not backbone.adapters:
        raise ValueError(
            "the backbone has no adapters to train: make it with adapter_dim, as in "
            "from_preset(..., adapter_dim=64)"
        )
    if what == "lora" and (not isinstance(lora_rank, int) or lora_rank < 1):
        raise ValueError(f"lora_rank={lora_rank!r}: expected an integer above 0")
    ranks = {layer.lora_rank for layer in lora_layers(backbone)}
    if ranks and (what != "lora" or ranks != {lora_rank}):
        raise ValueError(
            f"the model has low-rank updates of rank {', '.join(map(str, sorted(ranks)))}, got "
            f"what={what!r}, lora_rank={lora_rank}: call merge_lora(model) first"
        )
    if what == "lora" and not ranks:
        add_lora(model, lora_rank)
    chosen = {id(weight) for weight in _chosen(backbone, what)}
    model.trainable = True
    # A wholly frozen backbone says so itself, which a saved .keras file keeps.
    backbone.trainable = bool(chosen)
    for weight in backbone.weights:
        weight.trainable = id(weight) in chosen
    model.tuning = what
    forget_traces(model)
    trained = model.trainable_weights
    return Tuned([w.path for w in trained], _count(trained), _count(model.weights))


def merge_lora(model: keras.Model) -> int:
    """Adds the low-rank updates to their kernels and removes them, so that the model is plain.

    Outputs stay the same up to rounding; kernels of int8 are rounded anew. The sum is formed in
    float32 under every dtype policy, where saving a model with updates would round kernels to the
    compute type. What was frozen stays so: call `tune` and compile before further training.

    Args:
        model: a task.

    Returns:
        How many layers had an update; 0 leaves the model as it is.

    Raises:
        ValueError: if a layer with an update is not a dense one, or is quantized in another way
            than to int8.
    """
    layers = lora_layers(model.backbone)
    for layer in layers:
        if not isinstance(layer, keras.layers.Dense):
            raise ValueError(
                f"{layer.path} is of type {type(layer).__name__}; only the updates of "
                "Dense layers can be merged"
            )
        if layer.quantization_mode not in (None, "int8"):
            raise ValueError(
                f"{layer.path} is quantized to {layer.quantization_mode}: expected int8, or none"
            )
    gc.freeze()  # Keras collects garbage at each deletion, which takes long over all of TensorFlow
    try:
        for layer in layers:
            _merge(layer)
    finally:
        gc.unfreeze()
    if layers:
        model.backbone._lora_enabled_layers = []  # KerasHub's own list, read by save_lora_weights
        model.tuning = None
        forget_traces(model)
    return len(layers)


def add_lora(model: keras.Model, rank: int, layers: list[str] | None = None) -> None:
    """Gives layers low-rank updates, on whatever devices the model was made for.

    Args:
        model: a task.
        rank: columns of the factors.
        layers: names of the layers; None for `backbone.default_lora_layer_names()`.
    """
    strategy = getattr(model, "distribute_strategy", None)  # on TensorFlow alone
    with strategy.scope() if strategy else contextlib.nullcontext():
        model.backbone.enable_lora(rank, layers)


def lora_layers(backbone: keras.Model) -> list[keras.layers.Layer]:
    """The layers that have a low-rank update."""
    return [x for x in backbone._flatten_layers() if getattr(x, "lora_enabled", False)]


def forget_traces(model: keras.Model) -> None:
    """Has Keras trace its functions again: the compiled ones know the weights of before."""
    model.train_function = model.test_function = model.predict_function = None


def _merge(layer: keras.layers.Dense) -> None:
    kernel = next(weight for weight in layer.weights if weight.name == "kernel")
    value, update = keras.ops.convert_to_numpy(kernel), lora_update(layer)
    if layer.quantization_mode == "int8":
        whole = value / keras.ops.convert_to_numpy(layer.kernel_scale) + update
        value, scale = keras.quantizers.abs_max_quantize(whole, axis=0, to_numpy=True)
        kernel.assign(value)
        layer.kernel_scale.assign(keras.ops.squeeze(scale, 0))
    else:
        kernel.assign(value + update)
    del layer.lora_kernel_a, layer.lora_kernel_b
    layer.lora_enabled, layer.lora_rank, layer.lora_alpha = False, None, None


def _chosen(backbone, what: str) -> list[keras.Variable]:
    if what == "all":
        return backbone.weights
    chosen = [weight for weight in backbone.weights if weight.name in _NAMES.get(what, ())]
    if what == "adapters":
        chosen += [weight for adapter in backbone.adapters for weight in adapter.weights]
    return chosen


def _count(weights) -> int:
    return sum(math.prod(weight.shape) for weight in weights)
