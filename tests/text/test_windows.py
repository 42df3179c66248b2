"""Windows against the original's loops, walked in plain Python."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.text import windows


def by_loops(lengths, size, stride):
    """run_squad.py's loop; a text without pieces gets a window too."""
    found = []
    for text, length in enumerate(lengths):
        start = 0
        while True:
            count = min(length - start, size)
            found.append((text, start, count))
            if start + count == length:
                break
            start += min(count, stride)
    return found


def most_context_by_loops(spans, window, position):
    """run_squad.py's `_check_is_max_context`, for spans (start, length) of one text."""
    best, best_span = None, None
    for number, (start, length) in enumerate(spans):
        end = start + length - 1
        if not start <= position <= end:
            continue
        score = min(position - start, end - position) + 0.01 * length
        if best is None or score > best:
            best, best_span = score, number
    return window == best_span


def test_the_issues_example():
    """30 pieces, 20 tokens a row of which 5 are a question."""
    found = windows.cut([30], size=12, stride=6)
    assert found.start.numpy().tolist() == [0, 6, 12, 18]
    assert found.length.numpy().tolist() == [12, 12, 12, 12]


@pytest.mark.parametrize(("size", "stride"), [(1, 1), (3, 1), (7, 3), (12, 6), (12, 12), (5, 9)])
def test_as_the_original(size, stride):
    lengths = [0, 1, 2, 3, 5, 6, 7, 8, 11, 12, 13, 17, 18, 19, 29, 30, 31]
    found = windows.cut(lengths, size, stride)
    spans = list(zip(*(part.numpy().tolist() for part in found), strict=True))
    assert spans == by_loops(lengths, size, stride)

    best = windows.has_most_context(found, lengths, width=size + 2).numpy()
    for row, (text, start, length) in enumerate(spans):
        mine = [(begin, count) for other, begin, count in spans if other == text]
        number = mine.index((start, length))
        expected = [most_context_by_loops(mine, number, start + i) for i in range(length)]
        assert best[row].tolist() == expected + [False] * (size + 2 - length)
    assert best.sum() == sum(lengths)  # every piece once


def test_in_a_graph_with_sizes_of_their_own():
    lengths, sizes = [9, 4, 20], [4, 4, 7]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)] * 2)
    def cut(lengths, sizes):
        return tuple(windows.cut(lengths, sizes, 5))

    text, start, length = (part.numpy() for part in cut(lengths, sizes))
    for i, (all_of_it, size) in enumerate(zip(lengths, sizes, strict=True)):
        expected = [(s, n) for _, s, n in by_loops([all_of_it], size, 5)]
        mine = zip(start[text == i].tolist(), length[text == i].tolist(), strict=True)
        assert list(mine) == expected


def test_no_text_at_all():
    assert [part.shape[0] for part in windows.cut(np.zeros(0, "int32"), 4, 2)] == [0, 0, 0]


def test_windows_without_room():
    with pytest.raises(ValueError, match="stride=0: expected a whole number, 1 or more"):
        windows.cut([3], 4, 0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="no room for text"):
        windows.cut([3, 3], np.array([4, 0]), 2)
