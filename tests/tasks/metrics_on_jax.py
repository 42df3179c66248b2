"""Metrics, losses and weights of a classifier on JAX; run by test_metrics_and_losses.py.

Takes ids, labels and logits from one .npz file, and writes what was found to another.
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras  # noqa: E402
import numpy as np  # noqa: E402

from keras_bert import BertBackbone, BertClassifier  # noqa: E402

V, T, N = 31, 6, 10


def make(**kwargs):
    keras.utils.set_random_seed(3)
    settings = {"hidden_dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.7}
    return BertClassifier(BertBackbone(V, 1, 2, 8, 12, T, **settings), dropout=0.0, **kwargs)


rng = np.random.default_rng(0)
ones = np.ones((N, T), "int32")
x = {"token_ids": rng.integers(0, V, (N, T)).astype("int32")}
x |= {"segment_ids": 0 * ones, "padding_mask": ones}
y, soft = rng.integers(0, 2, N), rng.dirichlet(np.ones(2), N)
M = keras.metrics
model = make(num_classes=2)
found = {"y": y, "soft": soft, "logits": model.predict(x, verbose=0)}


def losses(compiled=None, labels=y, **kwargs):
    sgd = keras.optimizers.SGD(0.0)
    model.compile(sgd, **{"metrics": None, **(compiled or {})})
    given = {"x": x, "y": labels, "batch_size": 5, "verbose": 0}
    return model.fit(**given, shuffle=False, **kwargs).history["loss"][-1]


metrics = [M.Precision(name="precision"), M.AUC(name="auc"), M.F1Score("macro", name="f1")]
model.compile(metrics=[*metrics, M.R2Score(name="r2")])
found |= model.evaluate(x, y, batch_size=5, verbose=0, return_dict=True)
found["smoothed"] = losses({"label_smoothing": 0.1})
own = keras.losses.CategoricalCrossentropy(
    from_logits=True, label_smoothing=0.1, reduction="mean_with_sample_weight"
)
found["own"] = losses({"loss": own})
found["of_soft"] = losses(labels=soft)
found["balanced"] = losses(class_weight="balanced")


def message(call):
    try:
        call()
    except ValueError as error:
        return str(error)
    return ""


found["nan"] = message(lambda: losses(sample_weight=np.where(np.arange(N) == 7, np.nan, 1.0)))
several = make(num_classes=3, problem="multi_label")
marks = rng.integers(0, 2, (N, 3))
given = {"sample_weight": np.ones((N, 3)), "verbose": 0}
found["by_label"] = message(lambda: several.fit(x, marks, **given))
np.savez(sys.argv[1], **found)
