"""Trains a tiny classifier on the JAX backend in several ways; run by test_jax.py.

Writes the weights and losses of each way to one .npz file.
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras  # noqa: E402
import numpy as np  # noqa: E402

from keras_bert import BertBackbone, BertClassifier, training  # noqa: E402

out, checkpoints = sys.argv[1:]
rng = np.random.default_rng(3)
ROWS, BATCH, EPOCHS = 22, 4, 3  # the last batch of an epoch is not full
x = {
    "token_ids": rng.integers(0, 31, (ROWS, 7), "int32"),
    "segment_ids": rng.integers(0, 2, (ROWS, 7), "int32"),
    "padding_mask": (np.arange(7) < rng.integers(2, 8, (ROWS, 1))).astype("int32"),
}
y = rng.integers(0, 3, ROWS)
weights = rng.uniform(0.2, 2.0, ROWS).astype("float32")
found = {}


def train(name, epochs=EPOCHS, **kwargs):
    keras.utils.set_random_seed(5)
    backbone = BertBackbone(31, 2, 2, 12, 24, max_sequence_length=11, hidden_dropout=0.0)
    model = BertClassifier(backbone, num_classes=3, dropout=0.0)
    model.compile(learning_rate=1e-3)
    history = model.fit(
        x, y, sample_weight=weights, batch_size=BATCH, epochs=epochs, verbose=0, **kwargs
    )
    found[f"{name}.losses"] = np.array(history.history["loss"], "float64")
    for i, weight in enumerate(model.get_weights()):
        found[f"{name}.weight{i:03d}"] = weight
    return model


model = train("whole")
found["evaluated"] = np.array(model.evaluate(x, y, verbose=0))
found["predicted"] = model.predict(x, verbose=0)


class Stop(keras.callbacks.Callback):
    """Ends the run in the middle of the second epoch, as a machine that goes away would."""

    def on_train_batch_end(self, batch, logs=None):
        if self.model.run.done == 9:
            raise InterruptedError


resume = training.Resume(checkpoints, every_steps=4)
try:
    train("stopped", callbacks=[resume, Stop()])
    raise AssertionError("the run was not stopped")
except InterruptedError:
    pass
train("resumed", callbacks=[training.Resume(checkpoints, every_steps=4)])

with training.strategy("auto").scope():
    model = train("shared_out")
found["devices"] = np.array(model.step.replica_count)
np.savez(out, **found)
