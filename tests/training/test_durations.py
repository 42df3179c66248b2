import re

import pytest

from keras_bert.training.durations import total_steps


@pytest.mark.parametrize(
    ("rows", "batch_size", "duration", "want"),
    [
        (100, 32, {"steps": 7}, 7),
        (None, 32, {"steps": 7}, 7),
        (96, 32, {"epochs": 3}, 9),
        (97, 32, {"epochs": 3}, 12),  # the last batch of an epoch may be small
        (97, 32, {"epochs": 0.5}, 2),
        (97, 32, {"epochs": 0.6}, 3),
        (100, 1, {"epochs": 0.07}, 7),  # 7.000000000000001 in floats
        (3, 32, {"epochs": 1e-9}, 1),
        (3, 32, {"epochs": 2}, 2),
        (100, 32, {"examples": 64}, 2),
        (None, 32, {"examples": 65}, 3),
    ],
)
def test_total_steps(rows, batch_size, duration, want):
    found = total_steps(rows, batch_size, **duration)
    assert found == want and type(found) is int


@pytest.mark.parametrize(
    ("rows", "batch_size", "duration", "message"),
    [
        (9, 4, {}, "got none: expected exactly one of steps, epochs, examples"),
        (
            9,
            4,
            {"steps": 100, "epochs": 3},
            "got steps=100 and epochs=3: expected exactly one of steps, epochs, examples",
        ),
        (None, 4, {"epochs": 3}, "epochs=3, but the number of rows is unknown: pass steps or ex"),
        (9, 4, {"steps": 0}, "steps=0: expected a whole number above 0"),
        (9, 4, {"steps": 2.5}, "steps=2.5: expected a whole number above 0"),
        (9, 4, {"examples": -1}, "examples=-1: expected a whole number above 0"),
        (9, 4, {"epochs": 0}, "epochs=0: expected a number above 0"),
        (9, 4, {"epochs": float("inf")}, "epochs=inf: expected a number above 0"),
        (0, 4, {"epochs": 1}, "rows=0: expected a whole number above 0"),
        (9, 0, {"epochs": 1}, "batch_size=0: expected a whole number above 0"),
    ],
)
def test_durations_that_do_not_fit(rows, batch_size, duration, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        total_steps(rows, batch_size, **duration)
