"""Numbers with nearly twice float32's precision, as pairs (high, low) of float32.

The sums of a correlation lose digits in float32 that their difference needs, and float64 is not an
option: JAX disables it by default, and sums over replicas are communicated as float32. The sum is
Knuth's (The Art of Computer Programming 2, 4.2.2), the product is that of Dekker (Numer. Math. 18,
1971), with two differences: numbers are split by their bits, and only exact products are summed. So
results do not change if a compiler fuses a product and a sum into one operation, as XLA does, which
would undo Dekker's splitting.
"""

from keras import ops

_HALF = -(1 << 12)  # a bit mask: all but the last 12 of 24
_SHORT = -(1 << 8)


def two_sum(a, b):
    """a + b, and its exact rounding error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def add(x, y):
    """The sum of two pairs."""
    total, rest = two_sum(x[0], y[0])
    return two_sum(total, rest + (x[1] + y[1]))


def multiply(x, y):
    """The product of two pairs."""
    (a, b), (c, d) = _split(x[0], _HALF), _split(y[0], _HALF)
    total, rest = two_sum(a * c, a * d)
    total, more = two_sum(total, b * c)
    return two_sum(total, rest + more + b * d + (x[0] * y[1] + x[1] * y[0]))


def subtract(x, y):
    """The difference of two pairs."""
    return add(x, (-y[0], -y[1]))


def exact(values):
    """The pair of a float32 tensor."""
    return values, ops.zeros_like(values)


def for_adding_up(x):
    """A pair with a high part of 16 bits, so that sums over replicas do not round it."""
    high, rest = _split(x[0], _SHORT)
    return high, rest + x[1]


def _split(a, mask):
    high = ops.view(ops.bitwise_and(ops.view(a, "int32"), mask), "float32")
    return high, a - high
