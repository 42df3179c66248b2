"""Rows in memory take as much as they have tokens, whatever `sequence_length` is."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert
from keras_bert import BertBackbone, BertTokenizer

# The subject is how rows are held between their text and the step.
pytestmark = pytest.mark.usefixtures("eager")

VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] $ # a red cat the blue dog saw car one".split()
SHORT = [f"a red cat saw {'one ' * (i % 3)}car" for i in range(30)]
LONG = ["the blue dog saw " + "a car " * 150]
TEXTS = SHORT[:17] + LONG + SHORT[17:]
COUNT = len(TEXTS)
TASKS = {  # arguments of the task; examples and labels
    "BertTokenClassifier": (
        {"labels": ["O", "X"]},
        [text.split() for text in TEXTS],
        [["O", "X"] * (len(text.split()) // 2) + ["O"] * (len(text.split()) % 2) for text in TEXTS],
    ),
    "BertQuestionAnswerer": (
        {},
        (["a cat"] * COUNT, TEXTS),
        [(text.split()[0], 0) for text in TEXTS],
    ),
    "BertMultipleChoice": (
        {},
        (TEXTS, [["red", f"blue {'dog ' * (i % 5)}"] for i in range(COUNT)]),
        np.arange(COUNT) % 2,
    ),
    "BertRelationClassifier": (
        {"num_classes": 2},
        (TEXTS, [[(0, 1), (2, 5)]] * COUNT),
        np.arange(COUNT) % 2,
    ),
}
LENGTH = 40  # in training
tasks = pytest.mark.parametrize("task", TASKS)


def made(task, sequence_length=512, **kwargs):
    keras.utils.set_random_seed(3)
    kind, (settings, *_) = getattr(keras_bert, task), TASKS[task]
    backbone = BertBackbone(
        len(VOCABULARY), 1, 2, 8, 12, 512, hidden_dropout=0.0, attention_dropout=0.0
    )
    if task == "BertQuestionAnswerer":
        kwargs["max_question_length"] = 5
    text_side = kind.preprocessor_cls(BertTokenizer(VOCABULARY), sequence_length, **kwargs)
    model = kind(backbone, preprocessor=text_side, **settings)
    model.compile(keras.optimizers.SGD(0.1))
    return model


def values_of(part):
    """How many numbers a structure of columns holds."""
    columns = [column for column in tf.nest.flatten(part) if column is not None]
    return sum(np.size(getattr(column, "flat_values", column)) for column in columns)


@pytest.mark.one_quick
@tasks
def test_memory_goes_by_tokens(task):
    _, x, y = TASKS[task]
    model = made(task)
    y = y if task in ("BertTokenClassifier", "BertQuestionAnswerer") else model.encode_labels(y)
    rows = model.ragged_rows(x, y)
    words = sum(len(text.split()) for text in TEXTS)
    # Ids, tags and weights of each word twice (choices), and some for questions and [SEP].
    assert values_of(rows) < 5 * (2 * words + 12 * 2 * COUNT)
    assert values_of(rows) < values_of(3 * [np.zeros((COUNT, 512))]) / 3
    assert values_of(made(task, 480).ragged_rows(x, y)) == pytest.approx(values_of(rows), rel=0.1)


@pytest.mark.one_quick
@tasks
@pytest.mark.parametrize(
    ("settings", "padding"),
    [
        ({}, "bucket"),
        ({"packing": True}, "full"),
        pytest.param({"jit_compile": True}, "full", marks=pytest.mark.slow),
    ],
)
def test_training_on_rows_is_training_on_their_ids(task, settings, padding):
    if task == "BertMultipleChoice" and "packing" in settings:
        settings = {"accumulation_steps": 2}
    _, x, y = TASKS[task]
    found = []
    for dense in (False, True):
        model = made(task, LENGTH, padding=padding)
        model.compile(keras.optimizers.SGD(0.1), **settings)
        data, labels, weights = x, y, None
        if dense:
            data, labels, weights = model.make_rows(x, y)
            weights = None  # by the labels
        kwargs = {"sample_weight": weights, "batch_size": 6, "verbose": 0}
        history = model.fit(data, labels, **kwargs).history
        found.append([history["loss"], model.evaluate(data, labels, **kwargs)])
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4)
