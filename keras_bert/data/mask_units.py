"""Chooses the tokens to mask: single pieces, whole words, or spans of either.

Computed for a whole batch at once in the graph. Each row shuffles its units and takes them in order
until it has enough tokens (`create_masked_lm_predictions` of google-research/bert; for spans, of
google-research/albert).

Axes: N rows, T tokens in a row, P slots for masked tokens, U units of the batch, concatenated.

Imports TensorFlow, so import this module lazily.
"""

import tensorflow as tf


def choose_pieces(
    candidates: tf.Tensor, count: tf.Tensor, slots: int, order: tf.Tensor
) -> tf.Tensor:
    """Chooses single tokens, uniformly.

    Args:
        candidates: bool [N, T], which tokens may be chosen.
        count: int32 [N], number of tokens to choose, if there are enough; at most `slots`.
        slots: P.
        order: int32 [N, T], random bits.

    Returns:
        int32 [N, P], the chosen positions in ascending order, then T in unused slots.
    """
    positions = _shuffled(candidates, slots, order)
    chosen = (tf.range(slots) < count[:, None]) & (positions >= 0)
    positions = tf.where(chosen, positions, candidates.shape[1])
    return -tf.math.top_k(-positions, slots).values  # tf.sort does the same with more ops


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

    Spans start at the units in random order, and end before a unit that would exceed `count`, is
    already chosen, or does not directly follow the previous one.

    Args:
        candidates: bool [N, T], which tokens may be chosen.
        begins: bool [N, T], the candidates at which a unit starts; it ends before the next one, or
            with the candidates.
        count: int32 [N], number of tokens to choose; at most `slots`.
        slots: P.
        order: int32 [N, T], random bits.
        spans: int32 [N, T], number of units in each span, from 1 to `max_span`.
        max_span: maximum number of units in a span.

    Returns:
        `(positions, inside)`: int32 [N, P], the chosen positions in ascending order, then T in
        unused slots; and int32 [N, P], the index of each within its unit, 0 in unused slots.
    """
    rows, length = tf.shape(candidates)[0], candidates.shape[1]
    flat, flat_begins = tf.reshape(candidates, [-1]), tf.reshape(begins, [-1])
    # By token, [N * T]: its unit; between units the previous one, or -1.
    unit_of = tf.cumsum(tf.cast(flat_begins, tf.int32)) - 1
    # By unit, [U + 1]: its start, its number of tokens, whether it directly follows the previous
    # one in the same row. The last is a placeholder that is never available.
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
    """Positions of the first `slots` of each row's candidates [N, T] in random order; then -1."""
    # Each number has the random key in its high and the position in its low bits. T = 512 leaves
    # 22 random bits: two keys tie, and the later position wins, once in four million pairs.
    length = among.shape[1]
    low = (1 << (length - 1).bit_length()) - 1
    keys = (order & (0x7FFFFFFF - low)) | tf.range(length)
    keys = tf.math.top_k(tf.where(among, keys, -1), slots).values
    return tf.where(keys < 0, -1, keys & low)
