"""Trains layers of BERT-Large's size on eight host devices of JAX, divided in several ways; run by
test_jax.py.

Writes losses, weights and predictions of each way to one .npz file.
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras  # noqa: E402
import numpy as np  # noqa: E402

from keras_bert import BertBackbone, BertClassifier, training  # noqa: E402

(out,) = sys.argv[1:]
distribution = keras.distribution
devices = distribution.list_devices()
assert len(devices) == 8
ROWS, BATCH, T, V = 22, 8, 7, 31  # the last batch of an epoch is not full
rng = np.random.default_rng(3)
x = {
    "token_ids": rng.integers(0, V, (ROWS, T), "int32"),
    "segment_ids": rng.integers(0, 2, (ROWS, T), "int32"),
    "padding_mask": (np.arange(T) < rng.integers(2, T + 1, (ROWS, 1))).astype("int32"),
}
y = rng.integers(0, 3, ROWS)
found = {}


def train(name, divided):
    distribution.set_distribution(divided)
    keras.utils.set_random_seed(5)
    model = BertClassifier(
        BertBackbone(V, 2, 16, 1024, 4096, max_sequence_length=11), num_classes=3
    )
    model.compile(learning_rate=1e-3)
    history = model.fit(x, y, batch_size=BATCH, epochs=2, verbose=0)
    found[f"{name}.losses"] = np.array(history.history["loss"], "float64")
    some = {key: value[: 2 * BATCH] for key, value in x.items()}
    found[f"{name}.predicted"] = model.predict(some, batch_size=BATCH, verbose=0)
    found[f"{name}.replicas"] = np.array(model.step.replica_count)
    for i, weight in enumerate(model.get_weights()):
        found[f"{name}.weight{i:03d}"] = weight


def mesh(*sizes):
    return distribution.DeviceMesh(sizes, ("batch", "model"), devices)


def model_parallel(*sizes):
    layouts = training.layout_map(mesh(*sizes))
    return distribution.ModelParallel(layout_map=layouts, auto_shard_dataset=False)


train("one", None)
train("2x4", model_parallel(2, 4))
train("1x8", model_parallel(1, 8))
train("data", distribution.DataParallel(devices=devices, auto_shard_dataset=False))
np.savez(out, **found)
