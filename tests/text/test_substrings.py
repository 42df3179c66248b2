"""Parts of texts against Python's slices."""

import numpy as np
import tensorflow as tf

from keras_bert.text.substrings import substrings

TEXTS = ["", "Straße é 中中 😀", "a\x00b", "e\u0301x"]


def test_parts_are_pythons_slices():
    parts = [
        (i, a, b)
        for i, t in enumerate(TEXTS)
        for a in range(len(t) + 1)
        for b in range(a, len(t) + 1)
    ]
    parts = [parts[i] for i in np.random.default_rng(0).permutation(len(parts))]
    row, starts, ends = np.array(parts, "int32").T
    found = tf.function(substrings)(tf.constant(TEXTS), row, starts, ends).numpy()
    assert [text.decode() for text in found] == [TEXTS[i][a:b] for i, a, b in parts]
    empty = substrings(tf.constant(TEXTS), row[:0], starts[:0], ends[:0])
    assert empty.shape == (0,)
