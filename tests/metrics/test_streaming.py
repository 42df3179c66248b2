import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.stats import pearsonr
from sklearn.metrics import f1_score, matthews_corrcoef

from keras_bert.metrics import F1, MatthewsCorrelation, PearsonCorrelation, double_float

ROWS = 13


def classes_and_weights(rows, classes, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, rows).astype("int32")
    logits = rng.normal(size=(rows, classes)).astype("float32")
    logits[np.arange(rows), labels] += 1
    weights = (3 * rng.random(rows)).astype("float32")
    weights[rng.random(rows) < 0.1] = 0
    return labels, logits, weights


def numbers(rows, mean, spread, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(mean, spread, rows).astype("float32")
    return x, (0.5 * x + rng.normal(mean, spread, rows)).astype("float32")


def weighted_pearson(x, y, w):
    """What scipy gives for equal weights, in float64."""
    x, y, w = (np.asarray(v, "float64") for v in (x, y, w))
    x, y = x - np.average(x, weights=w), y - np.average(y, weights=w)
    return (w * x * y).sum() / np.sqrt((w * x * x).sum() * (w * y * y).sum())


def whole(labels, logits, weights):
    """scikit-learn's figures of the rows that have a weight."""
    counts = weights > 0
    labels, found, weights = labels[counts], logits.argmax(axis=1)[counts], weights[counts]
    return {
        "matthews": matthews_corrcoef(labels, found, sample_weight=weights),
        "macro_f1": f1_score(labels, found, average="macro", sample_weight=weights),
    }


def stream(metric, *columns, update=None, rows=ROWS):
    for start in range(0, len(columns[0]), rows):
        (update or metric.update_state)(*(column[start : start + rows] for column in columns))
    return float(metric.result())


def compiled(metric, xla):
    function = tf.function(metric.update_state, jit_compile=xla, reduce_retracing=True)
    return lambda *columns: function(*map(tf.constant, columns))


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "classes, way", [(2, "eager"), (3, "eager"), (2, "graph"), (3, "xla"), (7, "xla")]
)
def test_classes_as_scikit_learn_over_odd_batches_with_weights(classes, way):
    columns = classes_and_weights(133 if way == "eager" else 1500, classes)
    expected = whole(*columns)
    metrics = {"matthews": MatthewsCorrelation(classes), "macro_f1": F1(classes, "macro")}
    if classes == 2:
        labels, logits, weights = columns
        metrics["f1"] = F1()
        expected["f1"] = f1_score(labels, logits.argmax(1), sample_weight=weights)
    for name, metric in metrics.items():
        update = None if way == "eager" else compiled(metric, way == "xla")
        assert stream(metric, *columns, update=update) == pytest.approx(expected[name], abs=1e-6)


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "mean, spread, way",
    [
        (2.5, 1.5, "eager"),
        (2.4, 0.02, "graph"),
        (2.4, 0.02, "xla"),
        (0, 1e-3, "xla"),
        (-300, 3, "xla"),
    ],
)
def test_pearson_as_scipy_over_odd_batches_with_weights(mean, spread, way):
    rows = 133 if way == "eager" else 1500
    x, y = numbers(rows, mean, spread)
    weights = classes_and_weights(rows, 2)[2]
    metric = PearsonCorrelation()
    update = None if way == "eager" else compiled(metric, way == "xla")
    found = stream(metric, x, y[:, None], weights, update=update)
    assert found == pytest.approx(weighted_pearson(x, y, weights), abs=1e-6)
    metric.reset_state()
    found = stream(metric, x, y, update=update)
    assert found == pytest.approx(pearsonr(*np.array([x, y], "float64")).statistic, abs=1e-6)


@pytest.mark.slow  # another backend is imported in a process of its own
@pytest.mark.parametrize("backend", ["jax", pytest.param("torch", marks=pytest.mark.interop)])
def test_other_backends(backend, tmp_path):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    labels, logits, weights = classes_and_weights(403, 3)
    x, y = numbers(403, 2.4, 0.02)
    np.savez(tmp_path / "data.npz", labels=labels, logits=logits, weights=weights, x=x, y=y)
    script = Path(__file__).with_name("stream_on_backend.py")
    root = str(script.parent.parent.parent)
    result = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "data.npz")],
        env=os.environ | {"KERAS_BACKEND": backend, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout.splitlines()[-1])
    assert found.pop("backend") == backend
    expected = whole(labels, logits, weights) | {"pearson": weighted_pearson(x, y, weights)}
    assert found == pytest.approx(expected, abs=1e-6)


def test_rare_classes_keep_their_digits():
    """12 positives in 100,000 rows: where differences of products would lose everything."""
    labels = np.zeros(100_000, "int32")
    labels[::8000] = 1
    logits = np.eye(2, dtype="float32")[labels]
    logits[[0, 5, 77]] = 1 - logits[[0, 5, 77]]
    found = stream(MatthewsCorrelation(), labels, logits, rows=9999)
    assert found == pytest.approx(matthews_corrcoef(labels, logits.argmax(1)), abs=1e-6)


def test_many_batches_do_not_wear_the_sums_away():
    """A weight that float32 cannot add to its sum: 500 times 0.1 beside 3e7."""
    metric = F1()
    ones = np.ones(1, "int32"), np.eye(2, dtype="float32")[[1]]
    metric.update_state(*ones, np.array([3e7], "float32"))
    update = compiled(metric, xla=True)
    for _ in range(500):
        update(*ones, np.array([0.1], "float32"))
    total = np.float64(metric.high[0, 1]) + np.float64(metric.low[0, 1])
    assert total == pytest.approx(3e7 + 500 * np.float64(np.float32(0.1)), abs=1e-2)


@pytest.mark.parametrize("make", [MatthewsCorrelation, F1])
def test_shapes_of_labels_and_weights(make):
    labels, logits, weights = classes_and_weights(15, 2)
    expected = stream(make(), labels, logits, weights)
    assert stream(make(), labels[:, None], logits, weights) == expected
    assert stream(make(), labels[:, None], logits, weights[:, None]) == expected
    assert stream(make(), labels, logits, weights[:, None]) == expected
    by_token = labels.reshape(3, 5), logits.reshape(3, 5, 2), weights.reshape(3, 5)
    assert stream(make(), *by_token) == pytest.approx(expected, abs=1e-6)
    per_row = np.array([1, 0, 2], "float32")
    assert stream(make(), *by_token[:2], per_row) == pytest.approx(
        stream(make(), labels, logits, per_row.repeat(5)), abs=1e-6
    )


def test_a_column_of_predictions_does_not_broadcast():
    assert stream(PearsonCorrelation(), np.array([1, 2]), np.array([[1.0], [2.0]])) == 1
    with pytest.raises(ValueError, match="2 labels, but 3 predictions"):
        PearsonCorrelation().update_state([1, 2], [1.0, 2.0, 3.0])


def test_rows_without_weight_count_nowhere_whatever_lies_in_them():
    labels, logits, weights = classes_and_weights(11, 2)
    labels[weights == 0], logits[weights == 0] = -100, np.nan
    weights[3], labels[3], logits[3] = 0, 7, np.nan
    counts = weights > 0
    for make in (MatthewsCorrelation, F1):
        assert stream(make(), labels, logits, weights) == pytest.approx(
            stream(make(), labels[counts], logits[counts], weights[counts]), abs=1e-6
        )
    x, y = numbers(11, 2, 1)
    x[3], y[~counts] = np.inf, np.nan
    assert stream(PearsonCorrelation(), x, y, weights) == pytest.approx(
        weighted_pearson(x[counts], y[counts], weights[counts]), abs=1e-6
    )


def test_bad_values_that_count_make_nan():
    labels, logits, _ = classes_and_weights(11, 2)
    for make in (MatthewsCorrelation, F1):
        for wrong in (2, -1):
            assert np.isnan(
                stream(make(), np.append(labels, wrong), np.append(logits, logits[:1], 0))
            )
        broken = logits.copy()
        broken[4, 0] = np.nan
        assert np.isnan(stream(make(), labels, broken))
    x, y = numbers(11, 2, 1)
    for bad in (np.nan, np.inf):
        assert np.isnan(stream(PearsonCorrelation(), np.append(x, bad), np.append(y, 1)))
        assert np.isnan(stream(PearsonCorrelation(), np.append(x, 1), np.append(y, bad)))


def test_what_is_undefined_is_0():
    labels, logits, _ = classes_and_weights(30, 2)
    constant = np.tile(np.float32([[1, 0]]), (30, 1))
    for metric in (MatthewsCorrelation(), F1(), F1(average="macro"), PearsonCorrelation()):
        assert float(metric.result()) == 0  # nothing was added
    assert stream(MatthewsCorrelation(), labels, constant) == 0
    assert stream(MatthewsCorrelation(), np.zeros(30, "int32"), logits) == 0
    assert stream(F1(), np.zeros(30, "int32"), constant) == 0
    assert stream(F1(average="macro"), np.zeros(30, "int32"), constant) == 1  # of one class


def test_equal_predictions_have_no_correlation():
    """However the batches and weights fall: rounding must not look like a spread."""
    rng = np.random.default_rng(0)
    for value in (2.37, -1e6):
        x = rng.normal(2.5, 1.5, 1300).astype("float32")
        weights = (rng.random(1300) + 0.01).astype("float32")
        y = np.full(1300, value, "float32")
        metric = PearsonCorrelation()
        update = compiled(metric, xla=True)
        assert stream(metric, x, y, weights, update=update) == 0
        metric.reset_state()
        assert stream(metric, y, x, weights, update=update) == 0


def test_states_of_replicas_add_up():
    labels, logits, weights = classes_and_weights(403, 3)
    x, y = numbers(403, 2.4, 0.02)
    for make, columns, expected in (
        (lambda: MatthewsCorrelation(3), (labels, logits, weights), "matthews"),
        (lambda: F1(3, "macro"), (labels, logits, weights), "macro_f1"),
        (PearsonCorrelation, (x, y, weights), None),
    ):
        replicas = [make() for _ in range(4)]
        for i, metric in enumerate(replicas):
            stream(metric, *(column[i::4] for column in columns))
        together = make()
        for i, variable in enumerate(together.variables):
            variable.assign(np.sum([r.variables[i].numpy() for r in replicas], axis=0))
        right = whole(*columns)[expected] if expected else weighted_pearson(*columns)
        assert float(together.result()) == pytest.approx(right, abs=1e-6)


def test_in_a_model_that_keras_evaluates():
    labels, logits, weights = classes_and_weights(47, 3)
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Identity()])
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[MatthewsCorrelation(3), F1(3, "macro", name="macro_f1")],
        jit_compile=True,
    )
    for _ in range(2):  # reset in between
        found = model.evaluate(
            logits, labels, sample_weight=weights, batch_size=13, verbose=0, return_dict=True
        )
        del found["loss"]
        assert found == pytest.approx(whole(labels, logits, weights), abs=1e-6)


@pytest.mark.parametrize(
    "metric",
    [MatthewsCorrelation(3, "mcc"), F1(3, "macro", "f"), F1(), PearsonCorrelation("r")],
)
def test_travels_through_its_config(metric):
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(metric))
    assert type(again) is type(metric) and again.get_config() == metric.get_config()
    assert {v.dtype for v in again.variables} == {"float32"}


def test_what_cannot_be_made_or_fed():
    with pytest.raises(ValueError, match="num_classes=1: expected a whole number, 2 or more"):
        MatthewsCorrelation(1)
    with pytest.raises(ValueError, match="of two classes, not 3"):
        F1(3)
    with pytest.raises(ValueError, match="average='micro': expected one of binary, macro"):
        F1(average="micro")
    with pytest.raises(ValueError, match=r"f1 was made for 2 classes, .* shape \(1, 3\)"):
        F1().update_state([0], np.zeros((1, 3)))


def test_pairs_have_nearly_twice_the_digits():
    rng = np.random.default_rng(0)
    a, b, c, d = (rng.normal(size=997).astype("float32") * 10.0**k for k in (0, 2, 3, 0))
    a, b, c, d = (v.astype("float32") for v in (a, b, c, d))

    @tf.function(jit_compile=True)
    def calculate(a, b, c, d):
        exact, multiply = double_float.exact, double_float.multiply
        total = double_float.subtract(multiply(exact(a), exact(b)), multiply(exact(c), exact(d)))
        return double_float.for_adding_up(total)

    high, low = (part.numpy().astype("float64") for part in calculate(a, b, c, d))
    a, b, c, d = (v.astype("float64") for v in (a, b, c, d))
    size = np.abs(a * b) + np.abs(c * d)
    assert np.max(np.abs(high + low - (a * b - c * d)) / size) < 2.0**-38
    assert np.all(high.astype("float32").view("int32") & 0xFF == 0)  # 16 bits
