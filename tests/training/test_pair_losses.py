"""Losses of pairs, beside what they are by definition."""

import numpy as np
import pytest

from keras_bert.training.pair_losses import CosinePearson, CosineSquaredError, InBatchNegatives


def pairs(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 2, 5)).astype("float32")


def cosine(a, b):
    return float(np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))


def test_the_squared_error_of_the_cosine():
    x, scores = pairs(7), np.linspace(-1, 1, 7).astype("float32")
    expected = [(cosine(*pair) - score) ** 2 for pair, score in zip(x, scores, strict=True)]
    np.testing.assert_allclose(CosineSquaredError().call(scores, x), expected, rtol=1e-4)
    metric = CosinePearson()
    metric.update_state(scores[:3], x[:3])
    metric.update_state(scores[3:], x[3:])
    found = np.corrcoef(scores, [cosine(*pair) for pair in x])[0, 1]
    np.testing.assert_allclose(metric.result(), found, rtol=1e-4)


@pytest.mark.parametrize("scale", [20.0, 3.0])
def test_the_positives_of_other_rows_are_negatives(scale):
    x = pairs(5)
    expected = []
    for row in range(5):
        logits = [scale * cosine(x[row, 0], x[other, 1]) for other in range(5)]
        expected.append(np.log(np.sum(np.exp(logits))) - logits[row])
    found = InBatchNegatives(scale).call(np.array([4, 9, 0, 1, 7]), x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("negatives", [1, 3])
def test_negatives_of_all_rows_join_the_positives(negatives):
    """As sentence-transformers' MultipleNegativesRankingLoss has triplets and longer rows."""
    x = np.random.default_rng(0).normal(size=(4, 2 + negatives, 5)).astype("float32")
    expected = []
    for row in range(4):
        logits = [
            20 * cosine(x[row, 0], x[i, j]) for j in range(1, 2 + negatives) for i in range(4)
        ]
        expected.append(np.log(np.sum(np.exp(logits))) - logits[row])
    found = InBatchNegatives().call(np.array([4, 9, 0, 1]), x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    filled = InBatchNegatives().call(np.array([4, 9, 0, 1, 9]), x[[0, 1, 2, 3, 1]])
    np.testing.assert_allclose(filled, np.array(expected)[[0, 1, 2, 3, 1]], rtol=1e-4, atol=1e-5)


def test_copies_that_fill_a_batch_up_are_no_negatives():
    x = pairs(5)
    alone = InBatchNegatives().call(np.arange(3), x[:3])
    filled = InBatchNegatives().call(np.array([0, 1, 2, 0, 2]), x[[0, 1, 2, 0, 2]])
    np.testing.assert_allclose(filled[:3], alone, rtol=1e-5)
    np.testing.assert_allclose(filled[3:], np.asarray(alone)[[0, 2]], rtol=1e-5)


def test_what_are_no_pairs():
    with pytest.raises(ValueError, match=r"shape \(3, 5\); expected those of pairs"):
        InBatchNegatives().call(np.arange(3), pairs(3)[:, 0])
