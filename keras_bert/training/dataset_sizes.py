"""Datasets of unknown cardinality in Keras's loops."""

import contextlib
import warnings


def known_size(batches) -> int | None:
    """The number of batches of a dataset; None if unknown."""
    if not hasattr(batches, "cardinality"):
        return len(batches) if hasattr(batches, "__len__") else None
    size = int(batches.cardinality())
    return size if size >= 0 else None


@contextlib.contextmanager
def quiet_about_size():
    """Keeps Keras from warning that a dataset of unknown size has an end.

    Training with a number of steps reads an infinite stream, so no genuine warning is suppressed.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Your input ran out of data")
        yield
