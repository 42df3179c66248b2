"""BERT's initializer."""

import contextlib
import threading

import keras

_state = threading.local()


def truncated_normal(stddev: float) -> keras.initializers.Initializer:
    """A normal law cut at two deviations, as google-research/bert's `create_initializer`.

    Args:
        stddev: deviation before the cut; BERT uses 0.02.

    Returns:
        A new initializer, so that no two weights share one seed.
    """
    if getattr(_state, "blank", False):
        return keras.initializers.Zeros()
    return keras.initializers.TruncatedNormal(stddev=stddev)


@contextlib.contextmanager
def blank_weights():
    """Where layers are built whose weights will all be read from a file: zeros come sooner."""
    _state.blank = True
    try:
        yield
    finally:
        _state.blank = False
