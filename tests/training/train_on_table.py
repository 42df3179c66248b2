"""Trains a tiny classifier on files; run by test_table_workers.py, alone or as one of two workers.

Writes OUT with weights and losses, and the names of the pieces that this process read.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras  # noqa: E402
import numpy as np  # noqa: E402

from keras_bert import BertBackbone, BertClassifier, training  # noqa: E402
from keras_bert.data import table_rows  # noqa: E402

out, files, packing = sys.argv[1:]
strategy = training.strategy("auto")  # first: see `strategy`
table_rows.PIECE_ROWS = 10
read = []
original = table_rows.TableReader.read


def reading(self, index, piece, opened=None):
    read.append(piece)
    return original(self, index, piece, opened)


table_rows.TableReader.read = reading
keras.utils.set_random_seed(5)
with strategy.scope():
    from tests.tasks import tiny

    backbone = BertBackbone(**tiny.backbone_settings())
    preprocessor = tiny.text_side(BertClassifier.preprocessor_cls)
    model = BertClassifier(backbone, labels=["a", "b"], preprocessor=preprocessor, dropout=0.0)
model.compile(learning_rate=2e-3, packing=packing == "packing")
history = model.fit(files, batch_size=24, epochs=2, seed=3, verbose=0)
weights = {f"weight{i:03d}": w for i, w in enumerate(model.get_weights())}
np.savez(out, losses=history.history["loss"], steps=model.run.done, read=sorted({*read}), **weights)
