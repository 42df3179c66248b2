"""BERT's initializer."""

import contextlib
import threading

import keras

_state = threading.local()


def truncated_normal(stddev: float) -> keras.initializers.Initializer:
    """Truncated normal initializer, as google-research/bert's `create_initializer`.

    `stddev` is that before truncation at two of them; BERT uses 0.02. Each call makes a new one, so
    that no two weights share a seed.
    """
    blank = getattr(_state, "blank", False)
    law = BlankTruncatedNormal if blank else keras.initializers.TruncatedNormal
    return law(stddev=stddev)


@keras.saving.register_keras_serializable(package="keras_bert")
class BlankTruncatedNormal(keras.initializers.TruncatedNormal):
    """Truncated normal initializer that returns zeros inside `blank_weights`."""

    def __call__(self, shape, dtype=None, **kwargs):
        if getattr(_state, "blank", False):
            return keras.ops.zeros(shape, dtype or keras.config.floatx())
        return super().__call__(shape, dtype, **kwargs)


@contextlib.contextmanager
def blank_weights():
    """A scope to build layers that are filled from a file: zeros are faster to create."""
    before = getattr(_state, "blank", False)
    _state.blank = True
    try:
        yield
    finally:
        _state.blank = before
