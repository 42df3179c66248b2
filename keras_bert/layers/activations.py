"""Feed-forward activations, with distinct names for the two variants of GELU."""

import math
from collections.abc import Callable

import keras
from keras import ops

from keras_bert.kernels.gradients import custom_gradient


def gelu_exact(x):
    """Exact GELU, with the error function: Hugging Face's "gelu".

    Computed in at least float32: near -2, where 1 + erf cancels, bfloat16 would keep a single
    digit. Written so that TensorFlow (on CPUs) and LiteRT recognize the pattern and fuse it into
    the matrix product.
    """
    wide = ops.cast(x, keras.backend.result_type(x.dtype, "float32"))
    return ops.cast(wide * 0.5 * (ops.erf(wide * math.sqrt(0.5)) + 1.0), x.dtype)


def gelu_tanh(x):
    """The tanh approximation of GELU: the original BERT's "gelu", Hugging Face's "gelu_new".

    It differs from the exact form by at most 4.7e-4 (near |x| = 2.7). Twelve layers amplify that to
    the third decimal of the logits, so a checkpoint must use the form it was trained with.
    """
    return keras.ops.gelu(x, approximate=True)


def _keeping_its_input(activation: Callable, slope: Callable) -> Callable:
    """Wraps an activation so that only x is kept for the backward pass, which recomputes the slope.

    Automatic differentiation of GELU stores the slope beside the value, at the width of the widest
    layer. Not for inference: TensorFlow would no longer recognize the pattern. On JAX the wrapped
    function has no forward-mode derivative.
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
    x = ops.clip(x, -30.0, 30.0)  # beyond, the slope is 0 or 1, and the cube would overflow
    bend = ops.tanh(scale * (x + 0.044715 * x**3))
    inner = scale * (1.0 + 3 * 0.044715 * x * x)
    return 0.5 * (1.0 + bend) + 0.5 * x * (1.0 - bend * bend) * inner


_TRAINED = {
    gelu_exact: _keeping_its_input(gelu_exact, _slope_exact),
    gelu_tanh: _keeping_its_input(gelu_tanh, _slope_tanh),
}


def in_training(activation: Callable) -> Callable:
    """The equivalent of an activation that needs less memory and time in a train step."""
    return _TRAINED.get(activation, activation)


def get_activation(name: str) -> Callable:
    """Finds "gelu_exact", "gelu_tanh" or one of Keras's activations, such as "relu", by its name.

    Raises:
        ValueError: if `name` is "gelu", which is ambiguous, or unknown.
    """
    if name == "gelu":
        raise ValueError(
            'activation="gelu" is ambiguous: expected "gelu_exact" (Hugging Face checkpoints) or '
            '"gelu_tanh" (the original BERT, KerasHub)'
        )
    own = {"gelu_exact": gelu_exact, "gelu_tanh": gelu_tanh}
    return own[name] if name in own else keras.activations.get(name)
