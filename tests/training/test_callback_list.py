import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertClassifier
from keras_bert.training.callback_list import CallbackList, UnreadLogs


class Scalar:
    """Stands in for a scalar on a device, and counts how often it is read."""

    shape = ()

    def __init__(self, value):
        self.value, self.reads = value, 0

    def __float__(self):
        self.reads += 1
        return self.value


def model():
    backbone = BertBackbone(31, 1, 2, 12, 24, max_sequence_length=8)
    made = BertClassifier(backbone, num_classes=2)
    made.compile(learning_rate=1e-3)
    return made


def rows(count=12):
    x = {name: np.ones((count, 8), "int32") for name in ("token_ids", "padding_mask")}
    return x | {"segment_ids": np.zeros((count, 8), "int32")}, np.arange(count) % 2


def test_logs_that_nobody_looks_at_are_not_read():
    scalar = Scalar(0.5)
    made = CallbackList([keras.callbacks.Callback()], model(), verbose=0)
    for batch in range(5):
        made.on_train_batch_end(batch, {"loss": scalar})
        made.on_test_batch_end(batch, {"loss": scalar})
        made.on_predict_batch_end(batch, {"outputs": scalar})
    assert scalar.reads == 0


def test_a_progress_bar_reads_twice_a_second(monkeypatch, capsys):
    now = 100.0
    monkeypatch.setattr("keras_bert.training.callback_list.time.monotonic", lambda: now)
    scalar = Scalar(0.5)
    made = CallbackList([], model(), verbose=1, steps=20)
    made.on_epoch_begin(0)
    for batch in range(20):
        made.on_train_batch_end(batch, {"loss": scalar})
        now += 0.1
    assert scalar.reads == 4
    assert "loss: 0.5000" in capsys.readouterr().out


@pytest.mark.parametrize(
    "look",
    [
        lambda logs: logs["loss"],
        lambda logs: logs.get("loss"),
        lambda logs: dict(logs)["loss"],
        lambda logs: {**logs}["loss"],
        lambda logs: dict(logs.items())["loss"],
        lambda logs: list(logs.values())[0],
        lambda logs: logs.copy()["loss"],
        lambda logs: logs.pop("loss"),
    ],
)
def test_logs_are_numbers_wherever_one_looks(look):
    found = look(UnreadLogs({"loss": tf.constant(0.25), "outputs": tf.ones((2, 3))}))
    assert type(found) is float and found == 0.25


def test_what_is_no_scalar_stays():
    logs = UnreadLogs({"outputs": tf.ones((2, 3)), "size": 3})
    assert logs["outputs"].shape == (2, 3)
    assert logs["size"] == 3
    assert logs.get("other") is None and logs.get("other", 1) == 1
    with pytest.raises(KeyError):
        logs["other"]
    with pytest.raises(KeyError):
        logs.pop("other")


@pytest.mark.thorough
def test_callbacks_get_the_logs_of_every_batch():
    seen = {"train": [], "test": [], "predict": [], "epoch": []}

    class Watch(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            seen["train"].append(logs["loss"])

        def on_test_batch_end(self, batch, logs=None):
            seen["test"].append(logs["loss"])

        def on_predict_batch_end(self, batch, logs=None):
            seen["predict"].append(logs["outputs"].shape)

        def on_epoch_end(self, epoch, logs=None):
            seen["epoch"].append(logs)

    made, (x, y) = model(), rows()
    history = made.fit(
        x, y, batch_size=4, epochs=2, validation_data=(x, y), callbacks=[Watch()], verbose=0
    )
    assert len(seen["train"]) == 6 and len(seen["test"]) == 6
    assert all(type(loss) is float and np.isfinite(loss) for loss in seen["train"] + seen["test"])
    assert seen["train"][2] == pytest.approx(history.history["loss"][0])
    assert seen["epoch"][1].keys() == history.history.keys()
    found = made.evaluate(x, y, batch_size=4, callbacks=[Watch()], return_dict=True, verbose=0)
    assert found["loss"] == pytest.approx(seen["test"][-1]) and len(seen["test"]) == 9
    made.predict(x, batch_size=4, callbacks=[Watch()], verbose=0)
    assert seen["predict"] == [(4, 2)] * 3


@pytest.mark.thorough
def test_bars_show_all_batches_and_the_last_logs(capsys):
    made, (x, y) = model(), rows()
    made.fit(x, y, batch_size=4, validation_data=(x, y), verbose=1)
    shown = capsys.readouterr().out
    assert "3/3" in shown and "val_loss" in shown and "accuracy" in shown
    made.evaluate(x, y, batch_size=4, verbose=1)
    assert "3/3" in capsys.readouterr().out
    made.predict(x, batch_size=4, verbose=1)
    assert "3/3" in capsys.readouterr().out
    made.fit(x, y, batch_size=4, steps=5, verbose=2)  # an epoch and two steps
    shown = capsys.readouterr().out
    assert [line.split(" - ")[0] for line in shown.splitlines() if "/" in line] == [
        "Epoch 1/2",
        "3/3",
        "Epoch 2/2",
        "2/2",
    ]


def test_printed_logs_are_numbers():
    assert repr(UnreadLogs({"loss": tf.constant(0.25)})) == "{'loss': 0.25}"
    assert f"{UnreadLogs({'loss': tf.constant([0.5])})}" == "{'loss': 0.5}"


@pytest.mark.usefixtures("eager")
def test_what_a_callback_adds_the_next_one_sees():
    seen = []
    add = keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, logs: logs.update(rate=2.0))
    look = keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, logs: seen.append(logs))
    made, (x, y) = model(), rows()
    made.fit(x, y, batch_size=12, callbacks=[add, look], verbose=0)
    assert seen[0]["rate"] == 2.0 and seen[0].setdefault("loss") > 0
    assert seen[0].popitem() == ("rate", 2.0)


@pytest.mark.usefixtures("eager")
def test_one_callback_alone():
    made, (x, y) = model(), rows()
    seen = []
    watch = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: seen.append(epoch))
    made.fit(x, y, callbacks=watch, verbose=0)
    made.fit(x, y, callbacks=keras.callbacks.CallbackList([watch]), verbose=0)
    assert seen == [0, 0]
