"""BERT's initializer."""

import keras


def truncated_normal(stddev: float) -> keras.initializers.Initializer:
    """A normal law cut at two deviations, as google-research/bert's `create_initializer`.

    Args:
        stddev: deviation before the cut; BERT uses 0.02.

    Returns:
        A new initializer, so that no two weights share one seed.
    """
    return keras.initializers.TruncatedNormal(stddev=stddev)
