"""The chain's loss against the sum over all paths, in float64."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.layers.crf import CRF, CRFLoss

LENGTH, COUNT = 5, 3
LABELS = np.array(
    [
        [0, 2, 2, 1, 0],
        [0, -1, 2, 1, -1],  # a gap joins its neighbours
        [-1, 1, -1, -1, -1],
        [-1, -1, -1, -1, -1],
        [2, 1, 0, -1, -1],
        [-1, 1, 1, 0, 2],
        [1, -1, -1, -1, 1],
    ]
)


@pytest.fixture
def chain():
    layer = CRF(COUNT, initializer_range=1.0, dtype="float64")
    layer.build((None, None, COUNT))
    return layer


@pytest.fixture
def emissions():
    return np.random.default_rng(1).normal(0, 2, (len(LABELS), LENGTH, COUNT))


def by_enumeration(emissions, labels, transitions, start, end):
    """-log of the labels' share among all paths over the positions that have a label."""
    places = [t for t in range(LENGTH) if labels[t] >= 0]
    if not places:
        return tf.constant(0.0, tf.float64)

    paths = np.array(list(itertools.product(range(COUNT), repeat=len(places))))  # [paths, places]
    scores = tf.gather(start, paths[:, 0]) + tf.gather(end, paths[:, -1])
    for place, column in zip(places, paths.T, strict=True):
        scores += tf.gather(emissions[place], column)
    for before, column in itertools.pairwise(paths.T):
        scores += tf.gather_nd(transitions, np.stack([before, column], axis=1))
    (right,) = np.flatnonzero((paths == labels[places]).all(axis=1))
    return tf.reduce_logsumexp(scores) - scores[right]


def test_loss_and_gradients_are_those_of_all_paths(chain, emissions):
    weights = [chain.transitions.value, chain.start.value, chain.end.value]
    emissions = tf.constant(emissions)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([emissions, *weights])
        shares = chain.token_losses(LABELS, emissions)
        expected = tf.stack(
            [by_enumeration(emissions[i], row, *weights) for i, row in enumerate(LABELS)]
        )
        losses = tf.reduce_sum(shares, axis=1)
    np.testing.assert_allclose(losses, expected, atol=1e-12)
    assert losses[3] == 0 and float(losses[0]) > 0.1
    assert (shares.numpy()[LABELS < 0] == 0).all()
    for source in (emissions, *weights):
        wanted = tf.convert_to_tensor(tape.gradient(expected, source))
        np.testing.assert_allclose(tape.gradient(losses, source), wanted, atol=1e-12)
        assert np.abs(wanted).max() > 0.1
    assert (tape.gradient(losses, emissions).numpy()[LABELS < 0] == 0).all()


def test_shares_are_what_a_longer_sentence_adds(chain, emissions):
    shares = np.asarray(chain.token_losses(LABELS, emissions))
    for length in range(1, LENGTH + 1):
        shorter = chain.token_losses(LABELS[:, :length], emissions[:, :length])
        np.testing.assert_allclose(np.sum(shorter, axis=1), shares[:, :length].sum(1), atol=1e-12)


def test_the_loss_is_the_mean_over_labelled_positions(chain, emissions):
    shares = np.asarray(chain.token_losses(LABELS, emissions))
    labelled = LABELS >= 0
    found = CRFLoss(chain)(LABELS, emissions, sample_weight=labelled.astype("float32"))
    np.testing.assert_allclose(found, shares.sum() / labelled.sum(), rtol=1e-5)


def test_a_call_changes_nothing_and_the_config_comes_back(chain, emissions):
    np.testing.assert_array_equal(chain(emissions), emissions)
    again = CRF.from_config(chain.get_config())
    assert again.num_labels == COUNT and again.dtype == "float64"
    assert [w.path.split("/")[-1] for w in chain.weights] == ["transitions", "start", "end"]
