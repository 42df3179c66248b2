"""Feed-forward activations by the names that BERT checkpoints need told apart."""

import math
from collections.abc import Callable

import keras
from keras import ops


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
