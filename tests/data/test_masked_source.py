"""Masks of a stream: fresh in every epoch, and the same however the stream is read."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.data.masked_source import MaskedSource
from keras_bert.data.sources import DatasetSource, RowSource

ROWS, BATCH = 300, 7


def mask(row, draws_for, weight, seed):
    draws = tf.random.stateless_uniform(tf.shape(row)[:1], seed)
    return {"row": row, "draw": draws}, draws_for, weight


def rows(shuffle=True, batch=BATCH, seed=5):
    x = {"row": np.arange(ROWS)[:, None]}
    ones = np.ones(ROWS, "float32")
    source = RowSource(x, ones, ones, batch, lambda x, y, w: (x["row"], y, w), shuffle, 1, False)
    return MaskedSource(source, mask, seed)


def read(batches, count=None):
    found = [x for x, _, _ in batches.take(count or -1).as_numpy_iterator()]
    return [np.concatenate([x[name].ravel() for x in found]) for name in ("row", "draw")]


def test_every_epoch_has_its_own_masks():
    source = rows()
    assert source.steps == 43 and source.batch_size == BATCH and source.size == ROWS
    row, draw = read(source.stream(), 2 * source.steps)
    first, second = (
        dict(zip(row[part], draw[part], strict=True))
        for part in (slice(0, ROWS), slice(ROWS, None))
    )
    assert set(first) == set(second) == set(range(ROWS))
    assert np.mean([first[i] == second[i] for i in range(ROWS)]) < 0.01
    again = read(rows().stream(), 2 * source.steps)
    np.testing.assert_array_equal(again, [row, draw])
    assert (read(rows(seed=6).stream(), source.steps)[1] != draw[:ROWS]).mean() > 0.99


def test_a_stream_goes_on_where_it_was_left():
    whole = read(rows().stream(), 60)
    for first in (1, 43, 50):
        skipped = read(rows().stream().take(first))[0].size
        rest = read(rows().stream(first), 60 - first)
        np.testing.assert_array_equal(rest, [column[skipped:] for column in whole])


def test_one_pass_does_not_depend_on_the_batch_size():
    wanted = read(rows(False).one_pass())
    np.testing.assert_array_equal(wanted[0], np.arange(ROWS))
    for batch in (1, 64, 256, 299, 1000):
        source = rows(False, batch)
        batches = source.one_pass()
        assert int(batches.cardinality()) == source.steps == -(-ROWS // batch)
        np.testing.assert_array_equal(read(batches), wanted)


@pytest.mark.parametrize("known", [True, False])
def test_a_dataset_gets_masks_by_batch(known):
    dataset = tf.data.Dataset.range(20).batch(6)
    if not known:
        dataset = dataset.filter(lambda _: True)

    def prepare(row):
        return row[:, None], row, tf.ones_like(row, tf.float32)

    source = MaskedSource(DatasetSource(dataset, prepare), mask, 3)
    assert source.steps == (4 if known else None) and not source.endless
    row, draw = read(source.stream(), 8)
    np.testing.assert_array_equal(row, [*range(20)] * 2)
    assert (draw[:20] != draw[20:]).all()
    np.testing.assert_array_equal(read(source.one_pass()), [row[:20], draw[:20]])
    np.testing.assert_array_equal(read(source.stream(5), 3)[1], draw[26:])
