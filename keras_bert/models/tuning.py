"""Parameter-efficient fine-tuning: heads, biases, adapters or LoRA."""

import contextlib
import gc
import math
from typing import NamedTuple

import keras

from keras_bert.arguments import check_choice, check_count
from keras_bert.layers.dense import lora_update

KINDS = ("all", "head", "bitfit", "adapters", "lora")

# Names of the backbone's weights that each method trains. A LayerNorm's beta is a bias.
_NAMES = {
    "bitfit": ("bias", "beta"),
    "adapters": ("gamma", "beta"),
    "lora": ("lora_kernel_a", "lora_kernel_b"),
}


class Tuned(NamedTuple):
    """The result of `tune`.

    Attributes:
        paths: the paths of the trainable weights.
        trained: their number of parameters.
        total: the number of parameters of all weights.
    """

    paths: list[str]
    trained: int
    total: int

    def __str__(self) -> str:
        share = 100 * self.trained / self.total
        return f"{self.trained:,} of {self.total:,} parameters are trained ({share:.3g} %)"


def tune(model: keras.Model, what: str, lora_rank: int = 8) -> Tuned:
    """Chooses the trainable weights of a task.

    Layers outside the backbone (the heads) are always trainable. In the backbone:

    - "all": all weights.
    - "head": none.
    - "bitfit": all biases, including those of the LayerNorms (Ben Zaken et al. 2022, section 3).
    - "adapters": adapters and LayerNorms (Houlsby et al. 2019, section 2.1). The backbone must
      have been created with `adapter_dim`.
    - "lora": only low-rank updates of `backbone.default_lora_layer_names()`, added here if there
      are none (Hu et al. 2021, section 4).

    Each call replaces any earlier choice or freezing. To also freeze the first N blocks, call
    `model.backbone.freeze(N)` afterwards. A pooler that was missing in the checkpoint (see the
    model's `loading_report`) is frozen too; `model.backbone.pooler.trainable = True` unfreezes it.

    The next `fit` recreates the automatic optimizer of `compile`. With your own optimizer, compile
    again, as Keras requires after every change of `trainable`.

    Args:
        model: a task with a `BertBackbone` as its `backbone`.
        what: one of the names above.
        lora_rank: rank of the updates; used by "lora" only.

    Returns:
        The trainable weights and their number of parameters; `print` shows the percentage.

    Raises:
        ValueError: if `what` is unknown, the rank is not a positive integer, there are no adapters
            to train, or the model already has LoRA updates that conflict with `what` or
            `lora_rank`.
    """
    check_choice("what", what, KINDS)
    backbone = model.backbone
    if what == "adapters" and not backbone.adapters:
        raise ValueError(
            "what='adapters': expected a backbone with adapter_dim, such as "
            "from_preset(..., adapter_dim=64)"
        )
    if what == "lora":
        check_count("lora_rank", lora_rank)
    ranks = {layer.lora_rank for layer in lora_layers(backbone)}
    if ranks and (what != "lora" or ranks != {lora_rank}):
        raise ValueError(
            f"what={what!r}, lora_rank={lora_rank}: the model has LoRA updates of rank "
            f"{', '.join(map(str, sorted(ranks)))}; call merge_lora(model) first"
        )
    if what == "lora" and not ranks:
        add_lora(model, lora_rank)
    chosen = {id(weight) for weight in _chosen(backbone, what)}
    model.trainable = True
    # A completely frozen backbone sets its own flag, which .keras files keep.
    backbone.trainable = bool(chosen)
    for weight in backbone.weights:
        weight.trainable = id(weight) in chosen
    model.tuning = what
    forget_traces(model)
    trained = model.trainable_weights
    return Tuned([w.path for w in trained], _count(trained), _count(model.weights))


def merge_lora(model: keras.Model) -> int:
    """Merges the LoRA updates into their kernels and removes them.

    Outputs stay the same up to rounding; int8 kernels are quantized again. The sum is computed in
    float32 under every dtype policy, whereas saving a model with updates would round kernels to the
    compute dtype. Frozen weights stay frozen: call `tune` and compile before further training.

    Args:
        model: a task.

    Returns:
        The number of layers that had an update; with 0 the model is unchanged.

    Raises:
        ValueError: if a layer with an update is not a Dense layer or is quantized, but not to int8.
    """
    layers = lora_layers(model.backbone)
    for layer in layers:
        kind, mode = type(layer).__name__, layer.quantization_mode
        if not isinstance(layer, keras.layers.Dense) or mode not in (None, "int8"):
            raise ValueError(
                f"{layer.path} is of type {kind}, quantized to {mode}: expected a Dense layer, "
                "quantized to int8 or None"
            )
    gc.freeze()  # Keras collects garbage at each deletion, which is slow with TensorFlow loaded
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
    """Adds LoRA updates to layers, on the devices of the model.

    `layers` are names; None for `backbone.default_lora_layer_names()`.
    """
    strategy = getattr(model, "distribute_strategy", None)  # TensorFlow only
    with strategy.scope() if strategy else contextlib.nullcontext():
        model.backbone.enable_lora(rank, layers)


def lora_layers(backbone: keras.Model) -> list[keras.layers.Layer]:
    """The layers that have a LoRA update."""
    return [x for x in backbone._flatten_layers() if getattr(x, "lora_enabled", False)]


def forget_traces(model: keras.Model) -> None:
    """Makes Keras trace its functions again: the traced ones use the previous weights."""
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
