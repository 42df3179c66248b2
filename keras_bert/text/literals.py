"""Finds literal tokens in text, such as [E1] or covid-19, in the graph.

Of overlapping matches the leftmost wins, and of those with the same start the longest.

Imports TensorFlow, so import this module lazily.
"""

from collections.abc import Sequence

import tensorflow as tf

NOT_SPECIAL = -1
_BITS = 21  # of a code point


class Literals:
    """A trie of tokens, lists of code points, searched from every character of a batch at once.

    Of duplicates the first counts.
    """

    def __init__(self, tokens: Sequence[Sequence[int]]):
        edges: dict[int, int] = {}  # (node, code point) -> next node; the root is 0
        numbers = [NOT_SPECIAL]  # node -> the token that ends there
        for number, token in enumerate(tokens):
            node = 0
            for code in token:
                node = edges.setdefault(node << _BITS | code, len(numbers))
                if node == len(numbers):
                    numbers.append(NOT_SPECIAL)
            if numbers[node] == NOT_SPECIAL:
                numbers[node] = number
        keys = sorted(edges)
        self._keys = tf.constant(keys, tf.int64)
        self._nodes = tf.constant([edges[key] for key in keys], tf.int64)
        self._numbers = tf.constant(numbers, tf.int32)

    def find(self, code: tf.Tensor, line: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Finds the tokens in the concatenated lines of a batch; no match crosses the end of one.

        Args:
            code: int32 [C], code points.
            line: int32 [C], the line of each.

        Returns:
            (starts, ends, numbers): int64, int64 and int32 [M]; match m is token `numbers[m]` and
            covers the characters from `starts[m]` to `ends[m]`, exclusive.
        """
        code = tf.pad(tf.cast(code, tf.int64), [[0, 1]])
        line = tf.pad(line, [[0, 1]], constant_values=-1)
        size = tf.size(code, tf.int64) - 1

        def step(depth, start, node, found, length):
            place = start + depth
            key = tf.bitwise.left_shift(node, tf.constant(_BITS, tf.int64)) | tf.gather(code, place)
            edge = tf.minimum(tf.searchsorted(self._keys, key), tf.size(self._keys) - 1)
            here = tf.gather(self._keys, edge) == key
            here &= tf.gather(line, place) == tf.gather(line, start)
            start = tf.boolean_mask(start, here)
            node = tf.gather(self._nodes, tf.boolean_mask(edge, here))
            number = tf.gather(self._numbers, node)
            ends = number != NOT_SPECIAL
            whole = tf.boolean_mask(start, ends)[:, None]
            found = tf.tensor_scatter_nd_update(found, whole, tf.boolean_mask(number, ends))
            reach = tf.fill([tf.size(whole)], depth + 1)
            return depth + 1, start, node, found, tf.tensor_scatter_nd_update(length, whole, reach)

        everywhere = tf.range(size)
        state = (
            tf.constant(0, tf.int64),
            everywhere,
            tf.zeros_like(everywhere),
            tf.fill([size], NOT_SPECIAL),
            tf.zeros_like(everywhere),
        )
        shapes = (tf.TensorShape([]), *[tf.TensorShape([None])] * 4)
        _, _, _, found, length = tf.while_loop(
            lambda _, start, *__: tf.size(start) > 0, step, state, shapes
        )
        starts = tf.reshape(tf.where(found != NOT_SPECIAL), [-1])
        ends = starts + tf.gather(length, starts)
        counts = _reached(tf.searchsorted(starts, ends))
        starts, ends = tf.boolean_mask(starts, counts), tf.boolean_mask(ends, counts)
        return starts, ends, tf.gather(found, starts)


def _reached(following: tf.Tensor) -> tf.Tensor:
    """Which of M matches are reachable from the first, by pointer doubling: bool [M].

    `following` has for each the first match that starts at or after its end; M if there is none.
    """
    count = tf.size(following)
    following = tf.concat([following, [count]], 0)
    seen = tf.one_hot(0, count + 1, dtype=tf.int32)

    def double(seen, following):
        next_ones = tf.math.unsorted_segment_max(seen, following, count + 1)
        return tf.maximum(seen, next_ones), tf.gather(following, following)

    seen, _ = tf.while_loop(
        lambda _, following: tf.reduce_any(following != count),
        double,
        (seen, following),
        (tf.TensorShape([None]), tf.TensorShape([None])),
    )
    return seen[:count] > 0
