import keras
import numpy as np
import pytest

from keras_bert.layers import Dropout
from keras_bert.layers.dropout import FACTORS, kept_units


def dropped(rows, columns, rate, seed):
    return ~np.asarray(kept_units((rows, columns), rate, np.array(seed, "int64")))


def deviations(share, expected, size):
    """How many standard deviations a share of so many draws is off."""
    return abs(share - expected) / np.sqrt(expected * (1 - expected) / size)


def test_units_are_those_of_the_hash_in_whole_numbers():
    """Against Python's own integers, of any size."""

    def mixed(x):
        for shift, factor in zip((16, 15), FACTORS, strict=True):
            x = (x ^ x >> shift) * factor % 2**32
        return x ^ x >> 15

    seed, rate = (2**40 + 12345, 7), 0.3
    key = mixed((mixed(seed[0] % 2**32) + seed[1]) % 2**32)
    expected = np.zeros((2, 3, 5), bool)
    for row in range(6):
        for column in range(5):
            places = (row, mixed((key + 1) % 2**32)), (column, mixed((key + 2) % 2**32))
            row_hash, column_hash = ((n + start) * FACTORS[0] % 2**32 for n, start in places)
            x = (row_hash ^ row_hash >> 15 | 1) * (column_hash ^ column_hash >> 15) % 2**32
            expected[row // 3, row % 3, column] = x >= round(rate * 2**32)
    assert np.array_equal(kept_units((2, 3, 5), rate, np.array(seed, "int64")), expected)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_the_share_is_right_everywhere(rate):
    rows, columns = 2000, 384
    found = dropped(rows, columns, rate, (3, 0))
    assert deviations(found.mean(), rate, found.size) < 4
    for axis, size in ((0, rows), (1, columns)):
        chi = ((found.mean(axis) - rate) ** 2).mean() / (rate * (1 - rate) / size)
        assert 0.8 < chi < 1.25  # the variance of single rows and columns is that of chance


@pytest.mark.parametrize(
    "other", [(3, 1), (3, 2), (4, 0), (0, 3), (3, 256), (3 + 1_000_003, 0), (3 + 2**31, 0)]
)
def test_seeds_have_nothing_to_do_with_each_other(other):
    shape, rate = (1000, 384), 0.1
    both = dropped(*shape, rate, (3, 0)) & dropped(*shape, rate, other)
    assert deviations(both.mean(), rate**2, both.size) < 4


def test_neighbours_have_nothing_to_do_with_each_other():
    found = dropped(2000, 384, 0.1, (3, 0))
    for a, b in (
        (found[1:], found[:-1]),
        (found[:, 1:], found[:, :-1]),
        (found[1:, 1:], found[:-1, :-1]),
    ):
        assert deviations((a & b).mean(), 0.01, a.size) < 4
    square = found[1:, 1:] & found[:-1, :-1] & found[1:, :-1] & found[:-1, 1:]
    assert deviations(square.mean(), 1e-4, square.size) < 4


def test_no_two_rows_or_columns_are_alike():
    """The largest correlation of all pairs is that of chance."""
    found = dropped(1500, 1000, 0.1, (3, 0))
    z = (found - 0.1) / 0.3
    for x in (z, z.T):
        pairs = np.triu_indices(len(x), 1)
        products = (x @ x.T / np.sqrt(x.shape[1]))[pairs]
        assert abs(products.var() - 1) < 0.01
        assert np.abs(products).max() < 9  # 7 at random: the tail is not that of a normal variable


def test_one_unit_over_many_steps():
    found = np.stack([dropped(30, 40, 0.1, (3, step)) for step in range(200)])
    assert deviations(found.mean(), 0.1, found.size) < 4
    for apart in (1, 2, 8):
        both = found[apart:] & found[:-apart]
        assert deviations(both.mean(), 0.01, both.size) < 4


def test_the_mean_stays_in_bfloat16():
    x = np.linspace(1, 2, 200_000, dtype="float32").reshape(400, 500)
    layer = Dropout(0.1, seed=1, dtype="bfloat16")
    y = keras.ops.cast(layer(keras.ops.cast(x, "bfloat16"), training=True), "float32")
    kept = np.asarray(y) != 0
    assert np.asarray(y)[kept].mean() == pytest.approx(x[kept].mean() / 0.9, rel=1e-4)


def test_nothing_is_dropped_at_inference_or_at_rate_zero():
    x = np.ones((5, 7), "float32")
    assert np.array_equal(Dropout(0.5)(x), x)
    assert np.array_equal(Dropout(0.0)(x, training=True), x)
    assert not Dropout(0.0).variables


def test_a_seed_repeats_and_calls_differ():
    x = np.ones((50, 50), "float32")
    first, second = Dropout(0.5, seed=4), Dropout(0.5, seed=4)
    one, two = (np.asarray(first(x, training=True)) for _ in range(2))
    assert np.array_equal(one, second(x, training=True))
    assert not np.array_equal(one, two)


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_rates_out_of_range(rate):
    with pytest.raises(ValueError, match="rate=.*: expected a number from 0 to below 1"):
        Dropout(rate)
