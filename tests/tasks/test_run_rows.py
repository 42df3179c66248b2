"""Predictions of any number of rows: as of each row alone, without a pipeline's cost a call."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.serving.made import KINDS, TEXTS, asked, check, make, said

MANY = [f"{text} {'boats ' * (i % 7)}" for i, text in enumerate(TEXTS * 12)]  # 72: three batches


@pytest.fixture
def no_pipeline(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a pipeline was made, which costs as much as many batches")

    monkeypatch.setattr(keras.Model, "predict", refuse)
    monkeypatch.setattr(tf.data.Dataset, "from_tensor_slices", refuse)


@pytest.mark.one_quick
@pytest.mark.parametrize("kind", KINDS)
def test_many_rows_are_answered_as_each_alone(kind, no_pipeline):
    model = make(kind)
    for signature, inputs in asked(kind, MANY).items():
        found = said(kind, model, signature, inputs)
        some = [0, 1, 7, 35, 64, 71]
        alone = {
            name: [said(kind, model, signature, one)[name][0] for one in _each(inputs, some)]
            for name in found
        }
        check({name: [rows[i] for i in some] for name, rows in found.items()}, alone, signature)


def _each(inputs, rows):
    return [{name: column[i : i + 1] for name, column in inputs.items()} for i in rows]


@pytest.mark.parametrize("jit_compile", [False, True])
def test_ids_of_any_number_stay_in_order(jit_compile, no_pipeline):
    model = make("classifier")
    model.compile(jit_compile=jit_compile)
    ids = {name: value.numpy() for name, value in model.preprocessor(MANY).items()}
    expected = model(ids, training=False)
    for rows in (1, 31, 32, 33, 64, 72):
        few = {name: value[:rows] for name, value in ids.items()}
        found = model.predict(few, verbose=0)
        np.testing.assert_allclose(found, expected[:rows], atol=1e-5)


def test_callbacks_see_each_batch(no_pipeline, capsys):
    class Seen(keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.batches, self.rows, self.ends = [], 0, 0

        def on_predict_batch_end(self, batch, logs=None):
            self.batches.append(batch)
            self.rows += len(logs["outputs"])

        def on_predict_end(self, logs=None):
            self.ends += 1

    model, seen = make("classifier"), Seen()
    model.predict(MANY, callbacks=[seen], verbose=0)
    model.predict(MANY[:5], callbacks=[seen], verbose=0)
    assert (seen.batches, seen.rows, seen.ends) == ([0, 1, 2, 0], 77, 2)
    assert capsys.readouterr().out == ""
    model.predict(MANY, verbose=1)
    assert "3/3" in capsys.readouterr().out
    model.predict(MANY[:32], verbose=1)
    assert capsys.readouterr().out == ""


def test_an_error_in_a_batch_ends_the_call(monkeypatch):
    model = make("classifier")
    before = model.predict(MANY, verbose=0)

    class Stopped(keras.callbacks.Callback):
        def on_predict_batch_end(self, batch, logs=None):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.predict(MANY, callbacks=[Stopped()], verbose=0)
    np.testing.assert_array_equal(model.predict(MANY, verbose=0), before)


@pytest.mark.one_quick
@pytest.mark.parametrize("eagerly", [False, True])
def test_steps_are_batches_of_the_first_rows(eagerly):
    model = make("classifier")
    expected = model.predict(MANY, 8, verbose=0)
    model.run_eagerly = eagerly
    begins = []
    callback = keras.callbacks.LambdaCallback()
    callback.on_predict_begin = lambda logs=None: begins.append(logs)
    found = model.predict(MANY, 8, steps=2, verbose=0, callbacks=[callback])
    np.testing.assert_allclose(found, expected[:16], atol=1e-5)
    assert len(begins) == 1
    ids = {name: value.numpy() for name, value in model.preprocessor(MANY).items()}
    np.testing.assert_allclose(model.predict(ids, 8, steps=1, verbose=0), expected[:8], atol=1e-5)
