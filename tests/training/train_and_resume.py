"""Trains a tiny classifier on texts, saving as it goes; run, killed and run again by tests."""

import argparse
import os
import signal
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("preset")
parser.add_argument("out", help="file for the weights in the end")
parser.add_argument("--checkpoints", help="folder; without it nothing is saved")
parser.add_argument("--kill_at", type=int, nargs="*", default=[], help="kill -9 after these steps")
parser.add_argument("--terminate_at", type=int, help="SIGTERM in this step")
args = parser.parse_args()

import keras  # noqa: E402
import numpy as np  # noqa: E402

from keras_bert import BertClassifier  # noqa: E402
from keras_bert.training import Resume  # noqa: E402

WORDS = "the cat sat on a mat and looked at another dog in old green houses".split()
rng = np.random.default_rng(2)
texts = [" ".join(rng.choice(WORDS, rng.integers(2, 12))) for _ in range(29)]
labels = rng.integers(0, 2, len(texts))

keras.utils.set_random_seed(4)
model = BertClassifier.from_preset(args.preset, num_classes=2, skip_mismatch=True)
model.compile(learning_rate=1e-3)


class Interrupt(keras.callbacks.Callback):
    """Stops the process the hard way, after the callbacks before it have run."""

    def on_train_batch_end(self, batch, logs=None):
        done = self.model.run.done
        if done in args.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if done == args.terminate_at:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.1)


callbacks = [Interrupt()]
if args.checkpoints:
    callbacks = [Resume(args.checkpoints, every_steps=3, keep=2), *callbacks]
history = model.fit(texts, labels, batch_size=4, epochs=3, callbacks=callbacks, verbose=0)
np.savez(
    args.out,
    losses=np.array(history.history["loss"], "float64"),
    rate=np.array(model.optimizer.learning_rate),
    updates=np.array(model.optimizer.iterations),
    **{f"weight{i:03d}": np.asarray(w) for i, w in enumerate(model.get_weights())},
)
