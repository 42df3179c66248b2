"""Splits long texts into overlapping windows. TensorFlow, in graph."""

from typing import NamedTuple

from keras_bert.arguments import check_count


class Windows(NamedTuple):
    """The positions of W windows over B texts, in the order of the texts.

    Attributes:
        text: int32 [W], the text of each window.
        start: int32 [W], the index of its first piece in the text.
        length: int32 [W], its number of pieces; 0 only for a text without pieces.
    """

    text: object
    start: object
    length: object


def cut(lengths, size: int, stride: int) -> Windows:
    """Splits texts into windows that start `stride` pieces apart.

    Each text has at least one window, and each piece is in one. Reference: google-research/bert
    `run_squad.py`, `convert_examples_to_features`: windows have the maximum length, and the last
    one ends with the text. Sizes and strides below 1 are an error.

    Args:
        lengths: int tensor [B], number of pieces of each text.
        size: maximum number of pieces of a window; an int or an int tensor [B].
        stride: number of pieces from the start of one window to that of the next, like `size`;
            limited to the text's size.
    """
    import tensorflow as tf

    for name, value in (("size", size), ("stride", stride)):
        if isinstance(value, int):
            check_count(name, value)
    lengths = tf.cast(lengths, tf.int32)
    size = tf.broadcast_to(tf.cast(size, tf.int32), tf.shape(lengths))
    least = tf.debugging.assert_positive(size, message="windows have no room for text")
    with tf.control_dependencies([least]):
        stride = tf.minimum(tf.cast(stride, tf.int32), size)
    further = tf.maximum(lengths - size, 0)
    count = 1 + (further + stride - 1) // stride
    text = tf.repeat(tf.range(tf.size(lengths)), count)
    number = tf.ragged.range(count).flat_values
    start = number * tf.gather(stride, text)
    length = tf.minimum(tf.gather(size, text), tf.gather(lengths, text) - start)
    return Windows(text, start, length)


def take(pieces, windows: Windows):
    """Gathers the pieces of each window, ragged [W, None], from those of texts, [B, None]."""
    import tensorflow as tf

    begin = tf.gather(tf.cast(pieces.row_starts(), tf.int32), windows.text) + windows.start
    places = tf.ragged.range(begin, begin + windows.length)
    return places.with_values(tf.gather(pieces.flat_values, places.values))


def has_most_context(windows: Windows, lengths, width):
    """Whether each piece of each window has its maximum context there, bool [W, width].

    That is the window with the largest min(pieces before, pieces after) + 0.01 * length, the first
    one in ties. Reference: google-research/bert `run_squad.py`, `_check_is_max_context`. Every
    piece of a text has exactly one such window. False beyond the end of a window, which is no
    longer than `width`; `lengths`, int [B], are those of the texts.
    """
    import tensorflow as tf

    lengths = tf.cast(lengths, tf.int32)
    place = tf.range(width)[None, :]  # [1, S]
    length = windows.length[:, None]
    inside = place < length  # [W, S]
    fewer = tf.minimum(place, length - 1 - place)
    # In hundredths, as integers, because 0.01 is not exact in floating point.
    score = 100 * fewer + length
    begin = tf.cumsum(lengths, exclusive=True)
    piece = tf.gather(begin, windows.text)[:, None] + windows.start[:, None] + place
    total = tf.reduce_sum(lengths)
    piece = tf.where(inside, piece, total)  # one more piece collects everything outside
    best = tf.math.unsorted_segment_max(score, piece, total + 1)
    equal = inside & (score == tf.gather(best, piece))
    window = tf.broadcast_to(tf.range(tf.size(windows.text))[:, None], tf.shape(piece))
    first = tf.math.unsorted_segment_min(
        tf.where(equal, window, tf.size(windows.text)), piece, total + 1
    )
    return equal & (window == tf.gather(first, piece))
