"""GELU(x + bias) in one pass over memory, forward and backward.

Shapes: R rows (tokens) of F units.
"""

import math

from keras import ops

from keras_bert.kernels.call import FLOATS, Kernel, run
from keras_bert.kernels.gradients import custom_gradient

ROWS, WIDTH = 16, 512  # tile of a program
WARPS = 8
PROGRAMS = 264  # along the rows, in the backward pass


def add_and_gelu(x, bias, approximate: bool):
    """Bias and GELU, computed in float32.

    Reference: Hendrycks and Gimpel 2016, x times the normal CDF of x, with the error function (to
    within 7.5e-8) or the tanh approximation. Only x is kept for the backward pass.

    Args:
        x: bfloat16 [R, F], a matrix product without its bias.
        bias: [F], with the dtype of `x`.
        approximate: whether to use the tanh approximation.

    Returns:
        [R, F], with the dtype of `x`.
    """
    rows, hidden = x.shape
    numbers = {"rows": rows, "hidden": hidden}
    kind = "tanh" if approximate else "exact"
    forward = Kernel(f"gelu_forward_{kind}", "gelu_forward", WARPS)
    backward = Kernel(f"gelu_backward_{kind}", "gelu_backward", WARPS)
    tiles, columns = math.ceil(rows / ROWS), math.ceil(hidden / WIDTH)
    programs = min(tiles, PROGRAMS)

    @custom_gradient
    def activated(x, bias):
        like = ((rows, hidden), x.dtype)
        (out,) = run(forward, [x, bias], [like], numbers, (tiles, columns, 1))

        def gradient(*args, upstream=None):
            (upstream,) = args if upstream is None else (upstream,)
            d_x, sums = run(
                backward,
                [ops.cast(upstream, x.dtype), x, bias],
                [like, ((programs, hidden), "float32")],
                numbers,
                (programs, columns, 1),
            )
            return d_x, ops.cast(ops.sum(sums, axis=0), bias.dtype)

        return out, gradient

    return activated(x, bias)


def can_gelu(dtype, rows) -> bool:
    """Whether a kernel exists: sizes must be static, because they are compiled in."""
    return isinstance(rows, int) and rows > 0 and dtype in FLOATS
