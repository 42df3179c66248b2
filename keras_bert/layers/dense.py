"""Dense layers that save their LoRA updates, and products without their biases."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class Dense(keras.layers.Dense):
    """`keras.layers.Dense` that restores its LoRA update from files.

    Keras saves the kernel with the update merged, and on loading sets the update to zero, so its
    training cannot continue. This layer also saves the two factors.
    """

    def quantize(self, mode=None, type_check=True, config=None):
        """`keras.layers.Dense.quantize`, which rejects subclasses, without that check."""
        super().quantize(mode, type_check=False, config=config)

    def save_own_variables(self, store):
        super().save_own_variables(store)
        if self.lora_enabled:
            for name in _FACTORS:
                store[name] = getattr(self, name)

    def load_own_variables(self, store):
        keys = set(store.keys())
        super().load_own_variables({key: store[key] for key in keys - {*_FACTORS}})
        if not self.lora_enabled or not {*_FACTORS} <= keys:
            return
        self.lora_kernel_a.assign(store["lora_kernel_a"])
        if self.quantization_mode is not None:
            return  # the kernel contains the update; B stays zero, and a new update starts
        self.lora_kernel_b.assign(store["lora_kernel_b"])
        kernel = next(weight for weight in self.weights if weight.name == "kernel")
        kernel.assign(ops.convert_to_numpy(kernel) - lora_update(self))


_FACTORS = ("lora_kernel_a", "lora_kernel_b")


def lora_update(layer: keras.layers.Dense):
    """The LoRA update of a layer's kernel, a NumPy array.

    Computed in NumPy, because accelerators may multiply float32 at lower precision.
    """
    a, b = (ops.convert_to_numpy(getattr(layer, name)) for name in _FACTORS)
    return (layer.lora_alpha / layer.lora_rank) * (a @ b)


def plain(layer: keras.layers.Dense) -> bool:
    """Whether a dense layer is just a product and a bias: not quantized, without LoRA."""
    return getattr(layer, "quantization_mode", None) is None and not layer.lora_enabled


def product(x, *layers: keras.layers.Dense):
    """x [..., inputs] times the concatenated kernels of built, `plain` layers, without biases.

    It has the layers' compute dtype.
    """
    dtype = layers[0].compute_dtype
    kernels = [ops.cast(ops.convert_to_tensor(layer.kernel), dtype) for layer in layers]
    kernel = kernels[0] if len(kernels) == 1 else ops.concatenate(kernels, axis=-1)
    return ops.matmul(ops.cast(x, dtype), kernel)


def bias(layer: keras.layers.Dense):
    """The bias of a plain layer, in its compute dtype."""
    return ops.cast(ops.convert_to_tensor(layer.bias), layer.compute_dtype)
