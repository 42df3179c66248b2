"""Which tokens of each row are masked: single pieces, whole words, or spans of either.

All of it for a whole batch at once in the graph. Each row shuffles its units, and takes one after
the other until it has as many tokens as it is to mask (`create_masked_lm_predictions` of
google-research/bert; for spans, of google-research/albert).

Axes: N rows, T tokens in a row, P slots for masked tokens, U units of the whole batch end to end.

Imports TensorFlow: import this module only where that is at hand.
"""

import tensorflow as tf


def choose_pieces(
    candidates: tf.Tensor, count: tf.Tensor, slots: int, order: tf.Tensor
) -> tf.Tensor:
    """Chooses single tokens, evenly.

    Args:
        candidates: bool [N, T], which tokens may be chosen.
        count: int32 [N], how many to choose, if there are as many; at most `slots`.
        slots: P.
        order: int32 [N, T], random bits.

    Returns:
        int32 [N, P], the chosen positions in order, then T in free slots.
    """
    positions = _shuffled(candidates, slots, order)
    chosen = (tf.range(slots) < count[:, None]) & (positions >= 0)
    positions = tf.where(chosen, positions, candidates.shape[1])
    return -tf.math.top_k(-positions, slots).values  # tf.sort does the same, with more ado


def choose_units(
    candidates: tf.Tensor,
    begins: tf.Tensor,
    count: tf.Tensor,
    slots: int,
    order: tf.Tensor,
    spans: tf.Tensor,
    max_span: int,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Chooses units, or spans of neighbouring units.

    A span begins at each unit in turn, in a random order, and ends before a unit that would exceed
    `count`, is chosen already or does not follow the one before it.

    Args:
        candidates: bool [N, T], which tokens may be chosen.
        begins: bool [N, T], the candidates at which a unit begins; it reaches to the next one, or
            to where the candidates end.
        count: int32 [N], how many tokens to choose; at most `slots`.
        slots: P.
        order: int32 [N, T], random bits.
        spans: int32 [N, T], units that each span would have, from 1 to `max_span`.
        max_span: the most units in a span.

    Returns:
        `(positions, inside)`: int32 [N, P], the chosen positions in order, then T in free slots;
        and int32 [N, P], how many pieces of its unit come before each, 0 in free slots.
    """
    rows, length = tf.shape(candidates)[0], candidates.shape[1]
    flat, flat_begins = tf.reshape(candidates, [-1]), tf.reshape(begins, [-1])
    # By token, [N * T]: its unit. Between units it is one before, or -1.
    unit_of = tf.cumsum(tf.cast(flat_begins, tf.int32)) - 1
    # By unit, [U + 1]: where it begins, its tokens, whether it follows directly on the one before
    # in the same row. The last one stands for none, which is never to be had.
    at = tf.concat([tf.cast(tf.where(flat_begins)[:, 0], tf.int32), [0]], 0)
    none = tf.size(at) - 1
    sizes = tf.math.unsorted_segment_sum(tf.cast(flat, tf.int32), unit_of, none + 1)
    follows = (at == tf.roll(at + sizes, 1, 0)) & (at % length != 0)
    taken = tf.range(none + 1) == none
    # By row and rank, [N, T]: the unit.
    ranked = _shuffled(begins, length, order)
    places = tf.maximum(ranked, 0) + length * tf.range(rows)[:, None]
    ranked = tf.where(ranked < 0, none, tf.gather(unit_of, places))
    ranks = tf.reduce_max(tf.reduce_sum(tf.cast(begins, tf.int32), axis=1))
    step = tf.range(max_span)

    def unfinished(rank, left, taken):
        return (rank < ranks) & tf.reduce_any(left > 0)

    def take(rank, left, taken):
        span = tf.minimum(ranked[:, rank, None] + step, none)  # [N, max_span]
        free = (step < spans[:, rank, None]) & ~tf.gather(taken, span)
        free &= (step == 0) | tf.gather(follows, span)
        total = tf.cumsum(tf.where(free, tf.gather(sizes, span), length + 1), axis=1)
        fits = total <= left[:, None]
        left -= tf.reduce_max(tf.where(fits, total, 0), axis=1)
        span = tf.where(fits, span, none)[..., None]
        return rank + 1, left, tf.tensor_scatter_nd_update(taken, span, fits | True)

    taken = tf.while_loop(unfinished, take, (0, count, taken))[2]

    chosen = flat & tf.gather(taken, tf.maximum(unit_of, 0))
    places = tf.cast(tf.where(chosen)[:, 0], tf.int32)
    inside = places - tf.gather(at, tf.gather(unit_of, places))
    per_row = tf.reduce_sum(tf.cast(tf.reshape(chosen, [-1, length]), tf.int32), axis=1)

    def in_slots(values, free):
        ragged = tf.RaggedTensor.from_row_lengths(values, per_row, validate=False)
        return ragged.to_tensor(default_value=free, shape=[None, slots])

    return in_slots(places % length, length), in_slots(inside, 0)


def _shuffled(among: tf.Tensor, slots: int, order: tf.Tensor) -> tf.Tensor:
    """The first `slots` of each row's places in a random order.

    Args:
        among: bool [N, T], the places.
        slots: at most T.
        order: int32 [N, T], random bits.

    Returns:
        int32 [N, slots], positions; -1 when there are no more.
    """
    # One number is both the random key and, in its low bits, the position. At T = 512 that leaves
    # 22 random bits: two keys tie, and the later position wins, once in four million pairs.
    length = among.shape[1]
    low = (1 << (length - 1).bit_length()) - 1
    keys = (order & (0x7FFFFFFF - low)) | tf.range(length)
    keys = tf.math.top_k(tf.where(among, keys, -1), slots).values
    return tf.where(keys < 0, -1, keys & low)
