"""LayerNorm(x + dropout(y + bias)) in one pass over the memory, forward and backward.

Shapes: R rows (tokens) of H units.
"""

from keras import ops

from keras_bert.kernels.call import FLOATS, Kernel, dropout_numbers, run
from keras_bert.kernels.gradients import custom_gradient

WIDTHS = (128, 256, 512, 1024)  # of which there is IR; H may be less
PROGRAMS = 1056  # of the backward pass, 8 for each processor of an H100


def add_and_normalize(x, y, bias, gamma, beta, epsilon: float, rate: float = 0.0, seed=None):
    """Bias, dropout, residual sum and layer normalization, in float32 inside.

    Rule: Ba et al. 2016 over the last axis, with the variance of the whole row. Which units are
    dropped is what `keras_bert.layers.dropout.kept_units` says of [R, H]. The sum is rounded to the
    type of `x` before it is normalized.

    Args:
        x: bfloat16 [R, H], the residual.
        y: as `x`, a product without its bias.
        bias: [H], of the type of `x`.
        gamma: float32 [H].
        beta: float32 [H].
        epsilon: added to the variance.
        rate: share of the units of y dropped.
        seed: uint32 [2], or None if nothing is dropped.

    Returns:
        [R, H], of the type of `x`.
    """
    rows, hidden = x.shape
    width = next(width for width in WIDTHS if hidden <= width)
    numbers = {"hidden": hidden}
    drops = seed is not None and rate > 0
    dropout = dropout_numbers(rate if drops else 0.0)
    seed = ops.zeros((2,), "uint32") if seed is None else ops.cast(seed, "uint32")
    forward = Kernel(f"norm_forward_{width}{'_dropout' * drops}", "norm_forward", 1)
    backward = Kernel(f"norm_backward_{width}", "norm_backward", 1)
    programs = min(rows, PROGRAMS)

    # Tensors, where a variable may come: those are not for a gradient of one's own.
    gamma, beta = (ops.reshape(value, (hidden,)) for value in (gamma, beta))

    @custom_gradient
    def normalized(x, y, bias, gamma, beta):
        like = ((rows, hidden), x.dtype)
        out, total, means, slopes = run(
            forward,
            [x, y, bias, gamma, beta, seed],
            [like, like, ((rows,), "float32"), ((rows,), "float32")],
            numbers | {"epsilon": float(epsilon)} | dropout,
            (rows, 1, 1),
        )

        def gradient(*args, upstream=None):
            (upstream,) = args if upstream is None else (upstream,)
            d_x, d_y, sums = run(
                backward,
                [ops.cast(upstream, x.dtype), total, means, slopes, gamma, seed],
                [like, like, ((programs, 3, hidden), "float32")],
                numbers | {"rows": rows} | dropout,
                (programs, 1, 1),
            )
            d_gamma, d_beta, d_bias = ops.unstack(ops.sum(sums, axis=0))
            return d_x, d_y, ops.cast(d_bias, bias.dtype), d_gamma, d_beta

        return out, gradient

    return normalized(x, y, bias, gamma, beta)


def can_normalize(dtype, rows, hidden: int) -> bool:
    """Whether there is a kernel: sizes have to be known, as they become constants of it."""
    return isinstance(rows, int) and rows > 0 and hidden <= WIDTHS[-1] and dtype in FLOATS
