"""Best-fit packing of lengths, against plain rules."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.data.packed_rows import pack_lengths, packable_lengths, packed_from


def check(lengths, members, row_length):
    """Each text once, in a row that holds it; gives the share of cells with tokens."""
    placed = members[members >= 0]
    assert sorted(placed) == list(range(len(lengths)))
    sizes = np.where(members >= 0, np.append(lengths, 0)[members], 0).sum(axis=1)
    assert sizes.max(initial=0) <= row_length
    assert (np.diff((members >= 0).astype(int), axis=1) <= 0).all()  # gaps only at the end
    return sum(lengths) / (len(members) * row_length)


def plain_best_fit(lengths, row_length):
    """The rule by itself: each into the fullest row with room."""
    rows = []
    for length in lengths:
        fitting = [row for row in rows if sum(row) + length <= row_length]
        if fitting:
            max(fitting, key=sum).append(length)
        else:
            rows.append([length])
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_those_of_the_plain_rule(seed):
    lengths = np.random.default_rng(seed).integers(1, 41, 300)
    members = pack_lengths(lengths, 40)
    check(lengths, members, 40)
    assert len(members) == len(plain_best_fit(sorted(lengths.tolist(), reverse=True), 40))
    order = np.random.default_rng(seed + 10).permutation(300)
    members = pack_lengths(lengths, 40, order=order)
    check(lengths, members, 40)
    sums = sorted(lengths[row[row >= 0]].sum() for row in members)
    assert sums == sorted(map(sum, plain_best_fit(lengths[order].tolist(), 40)))


@pytest.mark.parametrize(("mean", "width"), [(11, 128), (25, 128), (53, 128), (70, 512)])
def test_short_texts_fill_rows(mean, width):
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.gamma(4, mean / 4, 20_000).astype(int), 3, width)
    assert check(lengths, pack_lengths(lengths, width), width) > 0.96


def weights_of_fifths(lengths, members, rows_in_a_batch):
    """The mean weight of a text in the mean of its batch, by fifths of the lengths; 1 is fair."""
    weights = np.zeros(len(lengths))
    for seed in range(20):
        rows = np.random.default_rng(seed).permutation(len(members))
        for start in range(0, len(rows) - rows_in_a_batch + 1, rows_in_a_batch):
            texts = members[rows[start : start + rows_in_a_batch]]
            texts = texts[texts >= 0]
            weights[texts] += 1 / len(texts)
    fifths = np.array_split(weights[np.argsort(lengths, kind="stable")], 5)
    return np.array([np.mean(fifth) for fifth in fifths]) / np.mean(weights)


def test_rows_in_a_random_order_weigh_short_and_long_texts_alike():
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.gamma(2, 7, 20_000).astype(int), 3, 64)  # as of SST-2
    members = pack_lengths(lengths, 128, most=19, order=rng.permutation(20_000))
    assert check(lengths, members, 128) > 0.98
    found = weights_of_fifths(lengths, members, 4)
    np.testing.assert_allclose(found, 1, atol=0.05)
    by_length = weights_of_fifths(lengths, pack_lengths(lengths, 128, most=19), 4)
    assert by_length[0] < 0.9 and by_length[-1] > 1.15


def test_blocks_and_most_texts():
    lengths = np.random.default_rng(1).integers(1, 9, 1000)
    members = pack_lengths(lengths, 32, most=5, block=100)
    check(lengths, members, 32)
    assert members.shape[1] == 5
    for row in members:
        assert len({text // 100 for text in row[row >= 0]}) == 1


def test_edges():
    assert pack_lengths([], 8).shape == (0, 1)
    assert pack_lengths([0, 0], 8).tolist() == [[0, 1]]
    assert pack_lengths([8, 8], 8).tolist() == [[0], [1]]
    for length in (9, -1):
        message = f"text 1 of {length} tokens: expected 0 to 8"
        with pytest.raises(ValueError, match=message):
            pack_lengths([3, length], 8)


def test_cells():
    lengths = tf.constant([[3, 0, 2], [1, 4, 0]])
    found = packed_from(lengths, 10, 7).numpy().tolist()
    assert found == [[0, 1, 2, 20, 21, -1, -1], [0, 10, 11, 12, 13, -1, -1]]


def test_lengths_of_masks():
    assert packable_lengths(np.array([[1, 1, 0], [0, 0, 0]])).tolist() == [2, 0]
    assert packable_lengths(np.array([[1, 0, 1]])) is None
