"""Trains a tiny token classifier with a chain on the JAX backend; run by test_token_classifier.py.

Writes the chain's weights before and after one step, and the predicted tags, to one .npz file.
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras  # noqa: E402
import numpy as np  # noqa: E402

from keras_bert import (  # noqa: E402
    BertBackbone,
    BertTokenClassifier,
    BertTokenClassifierPreprocessor,
    BertTokenizer,
)

VOCAB = "[PAD] [UNK] [CLS] [SEP] [MASK] ada grace met".split()
words = [["ada", "met", "grace"], ["grace"], ["met", "ada"]] * 3
tags = [["B-PER", "O", "B-PER"], ["B-PER"], ["O", "B-PER"]] * 3

keras.utils.set_random_seed(5)
backbone = BertBackbone(len(VOCAB), 1, 2, 12, 24, 11, hidden_dropout=0.0, attention_dropout=0.0)
text_side = BertTokenClassifierPreprocessor(BertTokenizer(VOCAB), 8)
model = BertTokenClassifier(
    backbone, labels=["O", "B-PER"], preprocessor=text_side, dropout=0.0, crf=True
)
ids, labels, weights = model.make_rows(words, tags)


def chain():
    return [np.asarray(weight) for weight in model.chain.weights]


found = {"emissions": model.predict(ids, verbose=0), "labels": labels}
found |= {f"before{i}": value for i, value in enumerate(chain())}
model.compile(optimizer=keras.optimizers.SGD(0.5))
history = model.fit(words, tags, batch_size=9, verbose=0)
found["loss"] = np.array(history.history["loss"])
found |= {f"after{i}": value for i, value in enumerate(chain())}
model.compile(learning_rate=3e-2)
model.fit(words, tags, batch_size=3, epochs=15, verbose=0)
found["right"] = np.array([model.predict_tags(words) == tags])
found["entities"] = np.array([entity[:2] for entity in model.tag("Grace met Ada")])
np.savez(sys.argv[1], **found)
