"""Metrics, losses, weights and optimizers of all tasks, beside Keras's own and scikit-learn's."""

import keras
import numpy as np
import pytest
import sklearn.metrics

from keras_bert import (
    BertBackbone,
    BertClassifier,
    BertMaskedLM,
    BertMultipleChoice,
    BertPretrainer,
    BertQuestionAnswerer,
    BertRelationClassifier,
    BertTextEmbedder,
    BertTokenClassifier,
)

V, T, N = 31, 6, 10
TASKS = {
    "classifier": lambda b: BertClassifier(b, 3),
    "two classes": lambda b: BertClassifier(b, 2),
    "multi-label": lambda b: BertClassifier(b, 3, problem="multi_label"),
    "regression": lambda b: BertClassifier(b, 2, problem="regression"),
    "tagger": lambda b: BertTokenClassifier(b, 3),
    "chain": lambda b: BertTokenClassifier(b, 3, crf=True),
    "relations": lambda b: BertRelationClassifier(b, 3),
    "answers": BertQuestionAnswerer,
    "choices": BertMultipleChoice,
    "pairs": lambda b: BertTextEmbedder(b, loss="cosine"),
    "contrastive": lambda b: BertTextEmbedder(b, loss="contrastive"),
    "masked": BertMaskedLM,
    "pretrainer": BertPretrainer,
}


def make(task, **backbone):
    keras.utils.set_random_seed(3)
    settings = {"hidden_dropout": 0.0, "attention_dropout": 0.0} | backbone
    # A wide range of weights, so that predictions are of several classes.
    encoder = BertBackbone(V, 1, 2, 8, 12, max_sequence_length=T, initializer_range=0.7, **settings)
    model = TASKS[task](encoder)
    for layer in model._flatten_layers():
        if layer.name == "head_dropout":
            layer.rate = 0.0
    return model


def ids(*shape, seed=0):
    rng = np.random.default_rng(seed)
    mask = np.ones((*shape, T), "int32")
    mask[..., 4:] = rng.integers(0, 2, (*shape, 1))
    return {
        "token_ids": rng.integers(0, V, (*shape, T)).astype("int32"),
        "segment_ids": np.zeros((*shape, T), "int32"),
        "padding_mask": mask,
    }


def data(task, seed=0):
    """(x, y) of N rows."""
    rng = np.random.default_rng(seed)
    x = ids(*{"choices": (N, 3), "pairs": (N, 2), "contrastive": (N, 2)}.get(task, (N,)))
    if task in ("classifier", "relations", "choices"):
        y = rng.integers(0, 3, N)
    elif task == "two classes":
        y = rng.integers(0, 2, N)
    elif task == "multi-label":
        y = rng.integers(0, 2, (N, 3))
    elif task == "regression":
        y = rng.normal(size=(N, 2)).astype("float32")
    elif task in ("tagger", "chain"):
        y = np.where(x["padding_mask"] == 1, rng.integers(0, 3, (N, T)), -1).astype("int32")
        y[:, 0] = -1
    elif task == "answers":
        y = np.sort(rng.integers(0, 4, (N, 2)), axis=1).astype("int32")
    elif task == "pairs":
        y = rng.uniform(-1, 1, N).astype("float32")
    else:
        y = None
    if task == "relations":
        x["entity_positions"] = np.tile(np.int32([[1, 2]]), (N, 1))
    if task in ("masked", "pretrainer"):
        import tensorflow as tf

        x |= {
            "mask_positions": np.tile(np.int32([[1, 3]]), (N, 1)),
            "mask_ids": rng.integers(0, V, (N, 2)).astype("int32"),
            "mask_weights": rng.integers(0, 2, (N, 2)).astype("float32"),
        }
        if task == "pretrainer":
            x["next_sentence_labels"] = rng.integers(0, 2, N).astype("int32")
        return tf.data.Dataset.from_tensor_slices(x).batch(4), None
    return x, y


def run(model, task, weights=None, verb="evaluate", **kwargs):
    x, y = data(task)
    if task not in ("masked", "pretrainer"):
        kwargs |= {"batch_size": 4, "sample_weight": weights}
    if verb == "evaluate":
        return model.evaluate(x, y, verbose=0, return_dict=True, **kwargs)
    found = model.fit(x, y, verbose=0, shuffle=False, **kwargs).history
    return {name: values[-1] for name, values in found.items()}


# === Metrics ===

M = keras.metrics
EVERY = {
    cls.__name__: cls
    for cls in (getattr(M, name) for name in dir(M))
    if isinstance(cls, type) and issubclass(cls, M.Metric)
}
ARGUMENTS = {
    "IoU": {"num_classes": 3, "target_class_ids": [0, 1]},
    "OneHotIoU": {"num_classes": 3, "target_class_ids": [0, 1]},
    "MeanIoU": {"num_classes": 3},
    "OneHotMeanIoU": {"num_classes": 3},
    "BinaryIoU": {"target_class_ids": [0, 1]},
    "SensitivityAtSpecificity": {"specificity": 0.4},
    "SpecificityAtSensitivity": {"sensitivity": 0.4},
    "PrecisionAtRecall": {"recall": 0.4},
    "RecallAtPrecision": {"precision": 0.4},
    "MeanMetricWrapper": {"fn": keras.losses.mean_squared_error},
}
