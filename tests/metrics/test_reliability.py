"""Calibration by hand, and the temperature of logits that were drawn with a known one."""

import numpy as np
import pytest

from keras_bert.metrics import best_temperature, calibration


def test_calibration_by_hand():
    confidence, correct = [0.95, 0.91, 0.6, 1.0], [True, False, True, True]
    found = calibration(confidence, correct)
    assert found.count.tolist() == [0] * 6 + [1, 0, 0, 3]
    assert found.confidence[6] == pytest.approx(0.6) and found.accuracy[6] == 1
    assert found.confidence[9] == pytest.approx((0.95 + 0.91 + 1.0) / 3)
    assert found.accuracy[9] == pytest.approx(2 / 3)
    assert found.expected_error == pytest.approx(0.25 * 0.4 + 0.75 * abs(2.86 / 3 - 2 / 3))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_that_labels_were_drawn_with(temperature):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(20_000, 5)) * 3
    chances = np.exp(logits / temperature)
    chances /= chances.sum(axis=1, keepdims=True)
    labels = (rng.random((len(logits), 1)) > chances.cumsum(axis=1)).sum(axis=1)
    assert best_temperature(logits, labels) == pytest.approx(temperature, rel=0.04)
    assert best_temperature(logits, chances) == pytest.approx(temperature, rel=1e-3)
    given = rng.random(logits.shape) < 1 / (1 + np.exp(-logits / temperature))
    assert best_temperature(logits, given) == pytest.approx(temperature, rel=0.04)


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (np.zeros((3, 2)), [0, 1], "labels of shape"),
        (np.zeros((0, 2)), np.zeros(0, int), "Nothing to score"),
        (np.full((2, 2), np.nan), [0, 1], "logit nan of example 0, class 0: expected a finite"),
    ],
)
def test_wrong_logits(logits, labels, message):
    with pytest.raises(ValueError, match=message):
        best_temperature(logits, labels)


def test_wrong_confidences():
    with pytest.raises(ValueError, match="confidence"):
        calibration([0.5, 1.2], [1, 0])
    with pytest.raises(ValueError, match="confidence"):
        calibration([0.5], [1, 0])
