import keras
import numpy as np
import pytest
import scipy.special

from keras_bert.metrics.perplexity import Perplexity

ROWS, SLOTS, WORDS = 3, 5, 7


def test_an_even_guess_among_v_ids_has_perplexity_v():
    metric = Perplexity()
    metric.update_state(np.zeros((ROWS, SLOTS), "int32"), np.zeros((ROWS, SLOTS, 63), "float32"))
    assert float(metric.result()) == pytest.approx(63, rel=1e-5)


def test_tokens_count_by_their_weight_over_batches_of_any_size():
    rng = np.random.default_rng(0)
    metric, total, weight = Perplexity(), 0.0, 0.0
    for rows in (3, 1, 11):
        y = rng.integers(0, WORDS, (rows, SLOTS)).astype("int32")
        logits = rng.normal(size=(rows, SLOTS, WORDS))
        w = rng.choice([0, 0.5, 1], (rows, SLOTS))
        metric.update_state(y, logits.astype("float32"), w.astype("float32"))
        log_p = np.take_along_axis(scipy.special.log_softmax(logits, -1), y[..., None], -1)[..., 0]
        total, weight = total - (w * log_p).sum(), weight + w.sum()
    assert float(metric.result()) == pytest.approx(np.exp(total / weight), rel=1e-5)
    metric.reset_state()
    assert float(metric.result()) == 0


def test_slots_without_weight_change_nothing():
    rng = np.random.default_rng(0)
    y, logits = rng.integers(0, WORDS, (ROWS, SLOTS)), rng.normal(size=(ROWS, SLOTS, WORDS))
    few, many = Perplexity(), Perplexity()
    few.update_state(y[:, :2], logits[:, :2])
    many.update_state(y, logits, np.array([[1, 1, 0, 0, 0]] * ROWS, "float32"))
    assert float(few.result()) == pytest.approx(float(many.result()), rel=1e-6)
    nothing = Perplexity()
    nothing.update_state(y, logits, np.zeros((ROWS, SLOTS), "float32"))
    assert float(nothing.result()) == 0


def test_reads_bfloat16_logits_in_float32():
    import tensorflow as tf

    rng = np.random.default_rng(0)
    logits = tf.cast(rng.normal(size=(ROWS, SLOTS, WORDS)), "bfloat16")
    y = np.zeros((ROWS, SLOTS), "int32")
    half, full = Perplexity(), Perplexity()
    half.update_state(y, logits)
    full.update_state(y, tf.cast(logits, "float32"))
    assert float(half.result()) == float(full.result())


def test_travels_through_its_config():
    metric = Perplexity("mlm_perplexity")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(metric))
    assert type(again) is Perplexity and again.get_config() == metric.get_config()
