"""Kept results, folds, intervals, averages of runs."""

import json
import time

import keras
import numpy as np
import pytest
from scipy import stats

from keras_bert.training import (
    Results,
    average_probabilities,
    average_weights,
    folds,
    interval,
    read_results,
    results_table,
)


def test_interval_is_student_s():
    values = [0.81, 0.84, 0.79, 0.83, 0.80]
    found = interval(values, 0.9)
    low, high = stats.t.interval(0.9, 4, np.mean(values), stats.sem(values))
    assert found[:1] + found[2:4] == pytest.approx((np.mean(values), low, high))
    assert found.deviation == pytest.approx(np.std(values)) and found.count == 5
    assert interval(values).text() == "0.814 ± 0.019 [0.788, 0.840]"
    assert interval([0.5]).text(2) == "0.50"
    with pytest.raises(ValueError, match="finite"):
        interval([0.1, np.nan])
    with pytest.raises(ValueError, match="finite"):
        interval([])
    with pytest.raises(ValueError, match="level=1"):
        interval(values, 1)


def test_folds_cover_all_and_keep_classes():
    y = ["a"] * 10 + ["b"] * 5
    parts = folds(y, 5, seed=3)
    assert sorted(np.concatenate([held for _, held in parts])) == list(range(15))
    for train, held in parts:
        assert {*train} | {*held} == {*range(15)} and not {*train} & {*held}
        assert [y[i] for i in held].count("b") == 1
    assert all(map(np.array_equal, parts[0], folds(y, 5, seed=3)[0]))
    assert not np.array_equal(parts[0][1], folds(y, 5, seed=4)[0][1])
    assert len(folds(np.linspace(0, 1, 7), 3)) == 3
    with pytest.raises(ValueError, match="5, the examples of class 'b'"):
        folds(y, 6)


def test_results_are_not_repeated(tmp_path, capsys):
    calls = []

    def work():
        calls.append(1)
        return {"score": 0.5 + len(calls) / 10}

    first = Results(tmp_path / "a.jsonl", total=3)
    assert first.run(work, seed=0) == first.run(work, seed=0) == {"score": 0.6}
    assert "1 of 3: {'seed': 0} {'score': 0.6}" in capsys.readouterr().err
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write('{"run": {"seed": 9}, "resu')  # an interrupted process
    other = Results(tmp_path / "b.jsonl", end=time.time() - 1)  # another process
    assert other.run(work, seed=0) == {"score": 0.6}
    assert other.run(work, seed=1) is None and len(calls) == 1  # the time is over
    assert other.rows() == [{"seed": 0, "score": 0.6}]
    after = Results(tmp_path / "a.jsonl")
    assert after.run(work, seed=2) == {"score": 0.7}
    assert [row["run"]["seed"] for row in read_results(tmp_path / "a.jsonl")] == [0, 2]
    with pytest.raises(ValueError, match="cannot be kept"):
        first.run(lambda: {"score": float("nan")}, seed=5)
    (tmp_path / "c.jsonl").write_text("{\n" + json.dumps({"run": {}}) + "\n")
    with pytest.raises(ValueError, match="c.jsonl, line 1"):
        Results(tmp_path / "a.jsonl")


def test_table_pairs_runs_by_seed():
    rows = [
        {"task": "t", "way": way, "seed": seed, "score": base + seed / 100}
        for way, base in (("none", 0.5), ("more", 0.6))
        for seed in (2, 0, 1)
    ]
    rows += [{"task": "t", "way": "new", "seed": 0, "score": 0.75, "f1": 0.25}]
    lines = results_table(rows, ["task", "way"], ["score", "f1"], against={"way": "none"})
    assert lines.split("\n") == [
        "| task | way | runs | score | f1 | score, difference |",
        "|---|---|---|---|---|---|",
        "| t | none | 3 | 0.510 ± 0.008 [0.485, 0.535] | - |  |",
        "| t | more | 3 | 0.610 ± 0.008 [0.585, 0.635] | - | +0.100 [+0.100, +0.100] |",
        "| t | new | 1 | 0.750 | 0.250 | - |",
    ]


def test_averages(tmp_path):
    def make():
        return keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])

    model, other, third = make(), make(), make()
    expected = [
        np.mean(values, axis=0)
        for values in zip(
            model.get_weights(), other.get_weights(), third.get_weights(), strict=True
        )
    ]
    third.save_weights(tmp_path / "third.weights.h5")
    count = average_weights(model, [tmp_path / "third.weights.h5", model, other.get_weights()])
    assert count == 3
    for weight, value in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_allclose(weight, value, rtol=1e-6)
    with pytest.raises(ValueError, match="one or more"):
        average_weights(model, [])
    wide = keras.Sequential([keras.Input((3,)), keras.layers.Dense(5)])
    with pytest.raises(ValueError, match=r"members\[0\] has weights of other shapes"):
        average_weights(model, [wide])
    with pytest.raises(ValueError, match=r"members\[1\] has weights of other shapes"):
        average_weights(model, [tmp_path / "third.weights.h5", wide])
    model.labels, other.labels = ["a", "b"], ["b", "a"]
    with pytest.raises(ValueError, match=r"members\[0\].labels=\[.*: expected \["):
        average_weights(model, [other])
    for weight, value in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_allclose(weight, value, rtol=1e-6)
    a, b = np.array([[0.0, np.log(3)]]), np.array([[0.0, 0.0]])
    np.testing.assert_allclose(average_probabilities([a, b]), [[0.375, 0.625]])
    with pytest.raises(ValueError, match="all alike"):
        average_probabilities([a, b[0]])
