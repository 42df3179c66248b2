"""LayerNorm(x + dropout(y + bias)) in one pass over memory, forward and backward.

Shapes: R rows (tokens) of H units.
"""

from keras import ops

from keras_bert.kernels.call import FLOATS, Kernel, dropout_numbers, run
from keras_bert.kernels.gradients import custom_gradient

WIDTHS = (128, 256, 512, 1024)  # those with IR; H may be smaller
PROGRAMS = 1056  # in the backward pass, 8 per multiprocessor of an H100


def add_and_normalize(x, y, bias, gamma, beta, epsilon: float, rate: float = 0.0, seed=None):
    """Bias, dropout, residual sum and layer normalization, computed in float32.

    Reference: Ba et al. 2016, over the last axis, with the population variance. The dropout mask is
    that of `keras_bert.layers.dropout.kept_units` for [R, H]. The sum is rounded to the dtype of
    `x` before it is normalized.

    Args:
        x: bfloat16 [R, H], the residual.
        y: like `x`, a matrix product without its bias.
        bias: [H], with the dtype of `x`.
        gamma: float32 [H].
        beta: float32 [H].
        epsilon: added to the variance.
        rate: dropout rate of y.
        seed: uint32 [2], or None if nothing is dropped.

    Returns:
        [R, H], with the dtype of `x`.
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

    # Tensors, because a custom gradient cannot take variables.
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
    """Whether a kernel exists: sizes must be static, because they are compiled in."""
    return isinstance(rows, int) and rows > 0 and hidden <= WIDTHS[-1] and dtype in FLOATS
