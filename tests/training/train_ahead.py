"""Trains on two logical CPU devices by the functions that serve several GPUs; run by test_replicas.

XLA cannot exchange gradients between CPU devices. So both replicas get the same rows, and a sum
over them is twice the part of one. Writes weights, losses and logs of two devices and of one.
"""

import gc
import os
import sys
import threading

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)

from keras_bert import BertBackbone, BertClassifier, training  # noqa: E402
from keras_bert.training import replicas  # noqa: E402

ROWS, T, V = 6, 7, 31
rng = np.random.default_rng(3)
x = {
    "token_ids": rng.integers(1, V, (ROWS, T)).astype("int32"),
    "segment_ids": rng.integers(0, 2, (ROWS, T)).astype("int32"),
    "padding_mask": (np.arange(T) < rng.integers(2, T + 1, (ROWS, 1))).astype("int32"),
}
y = rng.integers(0, 3, ROWS)
# Batches of 4 rows, of which the second half is the first once more.
places = np.arange(ROWS).reshape(-1, 2)
places = np.concatenate([places, places], axis=1).reshape(-1)
x, y = {name: ids[places] for name, ids in x.items()}, y[places]


class Logs(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.found = []

    def on_train_batch_end(self, batch, logs=None):
        self.found.append([logs["loss"], logs["accuracy"], self.model.counters.read()["loss"]])


def train(strategy):
    keras.utils.set_random_seed(5)
    with strategy.scope():
        backbone = BertBackbone(
            V, 1, 3, 21, 11, max_sequence_length=13, hidden_dropout=0.0, attention_dropout=0.0
        )
        model = BertClassifier(backbone, num_classes=3, dropout=0.0)
        model.compile(learning_rate=2e-3, jit_compile=True)
    logs = Logs()
    history = model.fit(
        x, y, batch_size=4, epochs=3, shuffle=False, verbose=0, callbacks=[logs]
    ).history
    weights = {f"weight.{i}": value for i, value in enumerate(model.get_weights())}
    return weights | {"logs": np.array(logs.found), "losses": np.array(history["loss"])}


one = train(training.strategy("one", devices=["CPU:0"]))
replicas.xla_adds_up = lambda strategy: True
replicas.add_up_packed = lambda packed: [2 * v for v in packed] if replicas.count() > 1 else packed
two = train(training.strategy("mirrored", devices=["CPU:1", "CPU:2"]))
# Threads that copied batches end with them, and with them the batches are freed.
gc.collect()
assert {thread.name for thread in threading.enumerate()} == {"MainThread"}, threading.enumerate()
np.savez(sys.argv[1], **one)
np.savez(sys.argv[2], **two)
