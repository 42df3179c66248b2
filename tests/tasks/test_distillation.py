"""Students: labels of a teacher, blocks of a teacher, and Keras's distiller."""

from pathlib import Path

import keras
import numpy as np
import pytest
from scipy.special import log_softmax, softmax

import keras_bert
from keras_bert.tasks.distillation import distiller, keep_blocks, soft_labels

TINY = str(Path(__file__).parents[1] / "golden" / "tiny_hf")
TEXTS = ["the harbour froze", "rain", "a red boat in the wind", "rain and wind"]


def classifier(**settings):
    return keras_bert.BertClassifier.from_preset(
        TINY, sequence_length=9, padding="full", hidden_dropout=0.0, attention_dropout=0.0,
        dropout=0.0, **settings,
    )  # fmt: skip


@pytest.fixture(scope="module")
def teacher():
    return classifier(output_hidden_states=True, output_attentions=True)


def test_soft_labels():
    logits = np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 3.0]])
    np.testing.assert_allclose(soft_labels(logits), softmax(logits, 1), rtol=1e-6)
    found = soft_labels(logits, [-1, 0], temperature=2.0, share=0.25)
    right = softmax(logits / 2, 1)
    right[1] = 0.25 * right[1] + 0.75 * np.eye(3)[0]
    np.testing.assert_allclose(found, right, rtol=1e-6)
    for arguments, message in (
        ({"y": [0]}, r"of shape \(1,\)"),
        ({"y": [0, 3]}, "from 0 to 3"),
        ({"y": [0, 1], "share": 2}, "share=2"),
        ({"temperature": 0}, "temperature=0"),
    ):
        with pytest.raises(ValueError, match=message):
            soft_labels(logits, **arguments)


def test_first_blocks_give_the_same_states(teacher):
    ids, _, _ = teacher.make_rows(TEXTS)
    states = teacher.backbone(ids)["hidden_states"]
    student = keep_blocks(teacher, [0, 1])
    assert student.labels == teacher.labels and student.backbone.num_layers == 2
    np.testing.assert_allclose(student.backbone(ids)["hidden_states"][2], states[2], atol=1e-6)
    last = keep_blocks(teacher.backbone, [2])
    assert not np.allclose(last(ids)["sequence_output"], states[1], atol=1e-3)
    np.testing.assert_allclose(  # the block itself, on what it did not see before
        last(ids)["sequence_output"],
        teacher.backbone.blocks[2](states[0], teacher.backbone.attention_mask(ids["padding_mask"]))[
            0
        ],
        atol=1e-6,
    )
    for blocks in ([], [1, 0], [0, 0], [3]):
        with pytest.raises(ValueError, match="ascending indices from 0 to 2"):
            keep_blocks(teacher, blocks)


@pytest.mark.thorough
def test_distiller_adds_up_three_losses(teacher):
    student = keep_blocks(teacher, [0, 2])
    ids, y, _ = student.make_rows(TEXTS, [0, 1, 2, 1])
    both = distiller(
        teacher, student, hidden={1: 1, 2: 3}, attention={1: 2}, temperature=3.0,
        label_weight=0.25, hidden_weight=2.0, attention_weight=0.5,
    )  # fmt: skip
    both.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    outputs = [model.backbone(ids) for model in (teacher, student)]
    logits = [np.asarray(model(ids)) for model in (teacher, student)]
    loss = float(both.compute_loss(ids, y, both(ids, training=True), training=True))

    labels = -log_softmax(logits[1], 1)[np.arange(4), y].mean()
    p, q = softmax(logits[0] / 3, 1), softmax(logits[1] / 3, 1)
    soft = 9 * (p * np.log(p / q)).sum(1).mean()
    mask = ids["padding_mask"][..., None]
    hidden = sum(
        np.mean(((outputs[0]["hidden_states"][t] - outputs[1]["hidden_states"][s]) * mask) ** 2)
        for s, t in ((1, 1), (2, 3))
    )
    a, b = (
        np.clip(one["attention_probabilities"][i], 1e-7, 1)
        for one, i in zip(outputs, (2, 1), strict=True)
    )
    attention = (a * np.log(a / b)).sum(-1).mean()
    right = 0.25 * labels + 0.75 * (soft + 2 * hidden + 0.5 * attention)
    assert loss == pytest.approx(right, rel=1e-4)

    before = [w.copy() for w in teacher.get_weights()]
    own = student.get_weights()
    both.fit(ids, y, batch_size=2, verbose=0)
    assert all(map(np.array_equal, before, teacher.get_weights()))
    assert not all(map(np.array_equal, own, student.get_weights()))
    np.testing.assert_allclose(both.student(ids), student(ids), atol=1e-6)


def test_projection_of_a_narrow_student(teacher):
    shape = teacher.backbone.get_config() | {"hidden_dim": 6, "num_heads": 2, "num_layers": 1}
    student = keras_bert.BertClassifier(
        keras_bert.BertBackbone.from_config(shape),
        labels=teacher.labels,
        preprocessor=teacher.preprocessor,
    )
    both = distiller(teacher, student, hidden={1: 3})
    more = len(both.student.trainable_weights) - len(student.trainable_weights)
    assert more == 2  # kernel and bias of the projection


def test_errors(teacher):
    other = keras_bert.resize(teacher, new_tokens=["zebra"])
    for student, arguments, message in (
        (other, {}, "different vocabularies"),
        (keep_blocks(teacher, [0]), {"hidden": {2: 3}}, "hidden_states 2 of the student"),
        (classifier(), {"attention": {0: 0}}, "output_attentions=True"),
        (teacher, {"temperature": 0}, "temperature=0"),
    ):
        with pytest.raises(ValueError, match=message):
            distiller(teacher, student, **arguments)
