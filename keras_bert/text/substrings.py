"""Parts of texts by characters. TensorFlow, in graph."""


def substrings(texts, row, starts, ends):
    """Cuts parts out of texts, in time and memory linear in texts and parts.

    `tf.strings.substr` of gathered texts copies a whole text for each part.

    Args:
        texts: strings [B], UTF-8.
        row: int [E], the text that a part is of.
        starts: int [E], its first character in the text, in code points.
        ends: int [E], one after its last.

    Returns:
        Strings [E].
    """
    import tensorflow as tf

    with tf.device("cpu"):
        characters = tf.strings.unicode_split(texts, "UTF-8")  # [B, None]
        begin = tf.gather(characters.row_starts(), row)
        places = tf.ragged.range(
            begin + tf.cast(starts, begin.dtype), begin + tf.cast(ends, begin.dtype)
        )
        return tf.strings.unsorted_segment_join(
            tf.gather(characters.flat_values, places.flat_values),
            places.value_rowids(),
            tf.size(row),
        )
