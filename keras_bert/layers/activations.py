"""Feed-forward activations by the names that BERT checkpoints need told apart."""

import math
from collections.abc import Callable

import keras
from keras import ops

from keras_bert.kernels.gradients import custom_gradient


def gelu_exact(x):
    """GELU through the error function: Hugging Face's "gelu".

    In float32 if the compute type is shorter: near -2, where 1 + erf cancels, bfloat16 would keep a
    single digit. Spelt so that TensorFlow finds the pattern, which it then computes inside the
    matrix product on a CPU, and LiteRT as well.
    """
    wide = ops.cast(x, keras.backend.result_type(x.dtype, "float32"))
    return ops.cast(wide * 0.5 * (ops.erf(wide * math.sqrt(0.5)) + 1.0), x.dtype)


def gelu_tanh(x):
    """GELU by its tanh approximation: the original BERT's "gelu", Hugging Face's "gelu_new".

    It differs from the exact form by at most 4.7e-4 (near |x| = 2.7), which twelve layers turn
    into the third decimal of the logits; so a checkpoint must run with the form it was trained in.
    """
    return keras.ops.gelu(x, approximate=True)


def _keeping_its_input(activation: Callable, slope: Callable) -> Callable:
    """The same function, of which a train step keeps x alone and computes the slope from it.

    Differentiated operation by operation, GELU has its slope written out beside its value, as wide
    as the widest layer. Not for inference: TensorFlow would no longer find the pattern. On JAX it
    has no forward derivative.
    """

    @custom_gradient
    def kept(x):
        def gradient(*args, upstream=None):
            (upstream,) = args if upstream is None else (upstream,)
            wide = keras.backend.result_type(x.dtype, "float32")
            change = ops.cast(upstream, wide) * slope(ops.cast(x, wide))
            return ops.cast(change, x.dtype)

        return activation(x), gradient

    return kept


def _slope_exact(x):
    density = ops.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return 0.5 * (1.0 + ops.erf(x * math.sqrt(0.5))) + x * density


def _slope_tanh(x):
    scale = math.sqrt(2 / math.pi)
    x = ops.clip(x, -30.0, 30.0)  # further out the slope is 0 or 1, and the cube overflows
    bend = ops.tanh(scale * (x + 0.044715 * x**3))
    inner = scale * (1.0 + 3 * 0.044715 * x * x)
    return 0.5 * (1.0 + bend) + 0.5 * x * (1.0 - bend * bend) * inner


_TRAINED = {
    gelu_exact: _keeping_its_input(gelu_exact, _slope_exact),
    gelu_tanh: _keeping_its_input(gelu_tanh, _slope_tanh),
}


def in_training(activation: Callable) -> Callable:
    """The form of an activation that a train step needs less memory and time for."""
    return _TRAINED.get(activation, activation)


def get_activation(name: str) -> Callable:
    """Finds an activation by its configuration name.

    Args:
        name: "gelu_exact", "gelu_tanh", or the name of a Keras activation such as "relu".

    Returns:
        A function from tensor to tensor.

    Raises:
        ValueError: if `name` is "gelu", which means two things, or is unknown.
    """
    if name == "gelu":
        raise ValueError(
            'activation="gelu" is ambiguous: expected "gelu_exact" (Hugging Face checkpoints) or '
            '"gelu_tanh" (the original BERT, KerasHub)'
        )
    own = {"gelu_exact": gelu_exact, "gelu_tanh": gelu_tanh}
    return own[name] if name in own else keras.activations.get(name)
