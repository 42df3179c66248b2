"""Datasets that do not say how many batches they have, in Keras's loops."""

import contextlib
import warnings


def known_size(batches) -> int | None:
    """How many batches a dataset says it has."""
    if not hasattr(batches, "cardinality"):
        return len(batches) if hasattr(batches, "__len__") else None
    size = int(batches.cardinality())
    return size if size >= 0 else None


@contextlib.contextmanager
def quiet_about_size():
    """Keeps Keras from warning that a dataset of unknown size has an end.

    Training with a number of steps reads an endless stream, so that nothing real is kept quiet.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Your input ran out of data")
        yield
