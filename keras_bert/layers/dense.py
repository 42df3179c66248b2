"""Dense layers whose bias is added elsewhere, together with what follows."""

import keras
from keras import ops


def plain(layer: keras.layers.Dense) -> bool:
    """Whether a dense layer is a product and a bias alone: not quantized, without LoRA."""
    return getattr(layer, "quantization_mode", None) is None and not layer.lora_enabled


def product(x, *layers: keras.layers.Dense):
    """x times the kernels of plain layers side by side, without biases.

    Args:
        x: float [..., inputs].
        *layers: built, and `plain`.

    Returns:
        float [..., units of all layers], in the layers' compute type.
    """
    dtype = layers[0].compute_dtype
    kernels = [ops.cast(ops.convert_to_tensor(layer.kernel), dtype) for layer in layers]
    kernel = kernels[0] if len(kernels) == 1 else ops.concatenate(kernels, axis=-1)
    return ops.matmul(ops.cast(x, dtype), kernel)


def bias(layer: keras.layers.Dense):
    """The bias of a plain layer, in its compute type."""
    return ops.cast(ops.convert_to_tensor(layer.bias), layer.compute_dtype)
