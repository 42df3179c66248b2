"""The schedules against plain Python."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert.training.optimizers import AdamW
from keras_bert.training.schedules import ShareSchedule, WarmupDecay, decay_factor


def curve(share, decay, power=1.0, end=0.0):
    share = min(max(share, 0.0), 1.0)
    left = {
        "linear": 1 - share,
        "polynomial": (1 - share) ** power,
        "cosine": 0.5 * (1 + math.cos(math.pi * share)),
        "constant": 1.0,
    }[decay]
    return end + (1 - end) * left


SHAPES = [
    ("linear", 1.0, 0.0),
    ("linear", 1.0, 0.1),
    ("polynomial", 2.0, 0.0),
    ("polynomial", 0.5, 0.25),
    ("cosine", 1.0, 0.0),
    ("cosine", 1.0, 0.1),
    ("constant", 1.0, 0.0),
]


def test_reaches_its_peak_and_zero_without_a_drop():
    schedule = WarmupDecay(2.0, total_steps=20, warmup_steps=4)
    rates = [float(schedule(step)) for step in range(22)]
    np.testing.assert_allclose(rates[:4], [0.5, 1.0, 1.5, 2.0])
    np.testing.assert_allclose(rates[4:], [*(2.0 * (20 - t) / 16 for t in range(4, 20)), 0, 0])
    assert rates[20] == rates[21] == 0
    assert float(WarmupDecay(2.0, None, 2)(0)) == 1.0
    assert float(WarmupDecay(2.0, None, 2)(1000)) == 2.0
    assert float(WarmupDecay(2.0, 5)(0)) == 2.0


@pytest.mark.parametrize(("decay", "power", "end"), SHAPES)
def test_curves_match_plain_python(decay, power, end):
    shares = np.linspace(-0.2, 1.2, 29)
    want = [curve(share, decay, power, end) for share in shares]
    np.testing.assert_allclose(decay_factor(shares, decay, power, end), want, atol=2e-7)

    schedule = WarmupDecay(3.0, 23, 5, decay, power, end)
    steps = tf.range(30, dtype=tf.int64)
    want = [
        3.0 * ((t + 1) / 5 if t < 5 else curve((t - 5) / 18, decay, power, end)) for t in range(30)
    ]
    np.testing.assert_allclose(schedule(steps), want, atol=1e-6)
    assert float(schedule(29)) == pytest.approx(3.0 if decay == "constant" else 3.0 * end)


@pytest.mark.parametrize("decay", ["linear", "cosine"])
def test_a_trapezoid_holds_its_peak(decay):
    schedule = WarmupDecay(3.0, 25, 5, decay, hold=0.6)
    want = [3.0 * (t + 1) / 5 for t in range(5)] + [3.0] * 12
    want += [3.0 * curve((t - 17) / 8, decay) for t in range(17, 30)]
    np.testing.assert_allclose([schedule(t) for t in range(30)], want, atol=1e-6)
    shares = ShareSchedule(3.0, 0.2, decay, hold=0.6)
    for share, wanted in ((0.1, 1.5), (0.2, 3.0), (0.68, 3.0), (0.84, 3 * curve(0.5, decay))):
        shares.share.assign(share)
        assert float(shares(0)) == pytest.approx(wanted, abs=1e-5)
    for made in (schedule, shares):
        config = keras.optimizers.schedules.serialize(made)
        assert keras.optimizers.schedules.deserialize(config).hold == 0.6
    for wrong in ({"hold": 1.0}, {"hold": -0.1}, {"hold": 0.5, "decay": "constant"}):
        with pytest.raises(ValueError, match="hold=.*expected a share"):
            ShareSchedule(1.0, **wrong)


@pytest.mark.parametrize(("decay", "power"), [("linear", 1.0), ("polynomial", 2.0)])
def test_the_original_jumps_down_at_the_end_of_warm_up(decay, power):
    schedule = WarmupDecay(3.0, 23, 5, decay, power, original=True)
    rates = [float(schedule(t)) for t in range(26)]
    want = [3.0 * (t / 5 if t < 5 else max(0, 1 - t / 23) ** power) for t in range(26)]
    np.testing.assert_allclose(rates, want, atol=1e-6)
    assert rates[0] == 0
    assert rates[4] == pytest.approx(2.4) and rates[5] == pytest.approx(3 * (18 / 23) ** power)
    np.testing.assert_allclose(
        [WarmupDecay(3.0, 23, original=True)(t) for t in (0, 1)], [3, 3 * 22 / 23], rtol=1e-6
    )


@pytest.mark.parametrize("warmup", [0.0, 0.3])
@pytest.mark.parametrize(("decay", "power", "end"), SHAPES)
def test_share_schedule(decay, power, end, warmup):
    schedule = ShareSchedule(3.0, warmup, decay, power, end)
    for share in (0.0, 0.0001, 0.15, 0.3, 0.5, 0.99, 1.0, 1.1):
        schedule.share.assign(share)
        want = curve((share - warmup) / (1 - warmup), decay, power, end)
        if share < warmup:
            want = max(share / warmup, 1e-3)
        for step in (0, 10**6):
            assert float(schedule(step)) == pytest.approx(3.0 * want, abs=1e-6)


def test_a_share_set_from_outside_reaches_a_traced_function():
    schedule = ShareSchedule(1.0, 0.5)
    optimizer = AdamW(schedule)
    optimizer.build([keras.Variable(np.ones((2, 2)))])
    assert not any(v is schedule.share for v in optimizer.variables)
    read = tf.function(lambda: tf.convert_to_tensor(optimizer.learning_rate))
    found = []
    for share in (0.25, 0.5, 0.75):
        schedule.share.assign(share)
        found.append(float(read()))
    np.testing.assert_allclose(found, [0.5, 1.0, 0.5], rtol=1e-6)


def test_schedules_travel_through_their_config():
    schedules = [
        WarmupDecay(0.1, 30, 5, "polynomial", 2.0, 0.1, original=True),
        WarmupDecay(0.1, None),
        ShareSchedule(0.1, 0.2, "polynomial", 3.0, 0.05),
    ]
    schedules[2].share.assign(0.5)
    for schedule in schedules:
        config = keras.optimizers.schedules.serialize(schedule)
        again = keras.optimizers.schedules.deserialize(config)
        assert type(again) is type(schedule) and again.get_config() == schedule.get_config()
    assert float(again.share) == 0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"total_steps": 5, "warmup_steps": 5}, "warmup_steps=5, total_steps=5: expected"),
        ({"total_steps": 0}, "warmup_steps=0, total_steps=0"),
        ({"warmup_steps": -1}, "warmup_steps=-1"),
        ({"decay": "exponential"}, "decay='exponential': expected one of linear, polynomial"),
        ({"power": 2.0}, "power=2.0 with decay='linear'"),
        ({"decay": "polynomial", "power": 0.0}, "power=0.0 with decay='polynomial'"),
        ({"end": 1.5}, "end=1.5 with decay='linear'"),
        ({"decay": "constant", "end": 0.1}, "end=0.1 with decay='constant'"),
        ({"peak": float("nan")}, "peak=nan"),
        ({"decay": "cosine", "original": True}, "original=True with decay='cosine'"),
        ({"total_steps": None, "original": True}, "decay='linear', total_steps=None"),
    ],
)
def test_settings_that_do_not_fit(setting, message):
    with pytest.raises(ValueError, match=message):
        WarmupDecay(**{"peak": 1.0, "total_steps": 9, **setting})


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"warmup": 1.0}, "warmup=1.0: expected a number from 0 to below 1"),
        ({"warmup": -0.1}, "warmup=-0.1"),
        ({"power": 2.0}, "power=2.0 with decay='linear'"),
    ],
)
def test_shares_that_do_not_fit(setting, message):
    with pytest.raises(ValueError, match=message):
        ShareSchedule(1.0, **setting)
