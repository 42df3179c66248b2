"""Numbers of nearly twice float32's precision, as pairs (high, low) of float32 numbers.

The sums behind a correlation lose in float32 what their difference then needs, and float64 is no
way out: JAX has none by default, and what replicas add up travels as float32. The sum is Knuth's
(The Art of Computer Programming 2, 4.2.2), the product is that of Dekker (Numer. Math. 18, 1971),
but for two things: numbers are split by their bits, and only products that need no rounding are
added up. So nothing changes where a compiler joins a product and a sum into one operation, as XLA
does, which would undo Dekker's own splitting.
"""

from keras import ops

_HALF = -(1 << 12)  # as a mask of bits: all but the last 12 of 24
_SHORT = -(1 << 8)


def two_sum(a, b):
    """a + b, and exactly what rounding took from it."""
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
    """A pair whose high part is so short, 16 bits, that sums over replicas do not round it."""
    high, rest = _split(x[0], _SHORT)
    return high, rest + x[1]


def _split(a, mask):
    high = ops.view(ops.bitwise_and(ops.view(a, "int32"), mask), "float32")
    return high, a - high
