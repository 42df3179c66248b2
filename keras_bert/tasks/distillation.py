"""Distillation: a small student learns what a large teacher answers (Hinton et al. 2015)."""

from collections.abc import Mapping, Sequence

import keras
import numpy as np

from keras_bert.arguments import check_above_zero, check_number
from keras_bert.checkpoints.names import weights_by_name
from keras_bert.models.backbone import BertBackbone
from keras_bert.tasks.classifier import BertClassifier
from keras_bert.tasks.from_checkpoint import on_backbone


def soft_labels(logits, y=None, temperature: float = 1.0, share: float = 0.5) -> np.ndarray:
    """Makes the labels that a student learns from, of a teacher's logits and of true labels.

    The teacher is asked once, before training: teacher and student may have different
    vocabularies, the student trains as fast as without a teacher, with sequence packing and
    resuming, and texts without labels serve too (Turc et al. 2019, "Well-read students learn
    better"). The student's cross-entropy with these labels is the weighted sum of both terms.

    Args:
        logits: float [N, K], the teacher's, from `teacher.predict(x)`: classes in the order of its
            `labels`, which the student has to have too.
        y: int [N], ids of the labels, -1 for a text without one; None for texts without labels.
        temperature: divides the logits before the softmax; above 1 the labels are softer.
        share: weight of the teacher's answer where there is a label, from 0 to 1; elsewhere it
            is 1.

    Returns:
        float32 [N, K], rows that sum to 1, as `BertClassifier.fit` takes for y.

    Raises:
        ValueError: if a number is out of range, or shapes do not fit.

    Example:

    >>> student.fit(x, soft_labels(teacher.predict(x), y), epochs=3)
    """
    from scipy.special import softmax

    logits = np.asarray(logits, "float64")
    if logits.ndim != 2:
        raise ValueError(f"logits of shape {logits.shape}: expected [N, K]")
    check_number("share", share, 0, 1)
    check_above_zero("temperature", temperature)
    found = softmax(logits / temperature, axis=1)
    if y is not None:
        y = np.asarray(y)
        if y.shape != logits.shape[:1] or y.dtype.kind not in "iu":
            raise ValueError(f"y {y.dtype} of shape {y.shape}: expected {len(logits)} ids")
        if len(y) and not -1 <= y.min() <= y.max() < logits.shape[1]:
            raise ValueError(f"y from {y.min()} to {y.max()}: expected -1 to {logits.shape[1] - 1}")
        known = np.flatnonzero(y >= 0)
        found[known] *= share
        found[known, y[known]] += 1 - share
    return found.astype("float32")


def keep_blocks(model: keras.Model, blocks: Sequence[int]) -> keras.Model:
    """Makes a copy of a model with some of its encoder blocks, such as a student to distil into.

    Embeddings, pooler and heads are copied too; all weights are trainable. DistilBERT began as
    every other block of BERT (Sanh et al. 2019, section 3).

    Args:
        model: a task, or a `BertBackbone`; it is not changed. The copy has to be compiled again.
        blocks: indices of the blocks to keep, ascending.

    Returns:
        A model of the same class.

    Raises:
        ValueError: if an index is out of range or repeated, or there is none.
    """
    backbone = getattr(model, "backbone", model)
    blocks = [int(i) for i in blocks]
    ascending = blocks and blocks == sorted({*blocks})
    if not ascending or blocks[0] < 0 or blocks[-1] >= backbone.num_layers:
        raise ValueError(
            f"blocks={blocks}: expected ascending indices from 0 to {backbone.num_layers - 1}"
        )
    config = backbone.get_config() | {"num_layers": len(blocks), "dtype": backbone.dtype_policy}
    copied = BertBackbone.from_config(config)
    if model is not backbone:
        copied = on_backbone(model, copied, model.preprocessor)
    old = weights_by_name(model)
    for name, weight in weights_by_name(copied).items():
        first, *rest = name.split("/")
        if first.startswith("block_"):
            first = f"block_{blocks[int(first.removeprefix('block_'))]}"
        weight.assign(old["/".join([first, *rest])])
    return copied


def distiller(
    teacher: BertClassifier,
    student: BertClassifier,
    *,
    hidden: Mapping[int, int] | None = None,
    attention: Mapping[int, int] | None = None,
    temperature: float = 2.0,
    label_weight: float = 0.5,
    hidden_weight: float = 1.0,
    attention_weight: float = 1.0,
) -> keras.distillation.Distiller:
    """Makes a Keras distiller of two classifiers: logits, hidden states and attention.

    The teacher answers every batch, so both need one vocabulary: see `keep_blocks`. Across
    vocabularies, or for speed, use `soft_labels`. Hidden states of padding are set to 0 on both
    sides; if widths differ, a dense layer projects the student's to the teacher's width (Jiao et
    al. 2020, TinyBERT, section 3.1). It is trained with the student and left behind.

    Args:
        teacher: the trained classifier; it is frozen.
        student: the classifier to train, for the same classes. It can be used as before afterwards.
        hidden: which hidden state learns from which, {student's: teacher's}; 0 are the embeddings,
            i the output of block i - 1, counted from 0. Both backbones need
            `output_hidden_states=True`.
        attention: which attention probabilities learn from which, {student's block: teacher's}, by
            the Kullback-Leibler divergence. Both backbones need `output_attentions=True` and the
            same number of heads.
        temperature: of the distillation of the logits.
        label_weight: weight of the loss of the labels, from 0 to 1; all others share the rest.
        hidden_weight: weight of each mean squared error of hidden states, beside 1 of the logits.
        attention_weight: weight of each divergence of attention probabilities.

    Returns:
        A `keras.distillation.Distiller`, which takes ids as `make_rows` gives them. Compile it with
        an optimizer, a loss of logits and metrics.

    Raises:
        ValueError: if the classifiers have different vocabularies or classes, or a state that is
            asked for is missing.

    Example:

    >>> both = distiller(teacher, student, hidden={1: 2, 2: 4, 3: 6})
    >>> loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    >>> both.compile(keras.optimizers.AdamW(5e-5), loss, ["sparse_categorical_accuracy"])
    >>> ids, y, _ = student.make_rows(texts, labels)
    >>> both.fit(ids, y, epochs=3)
    """
    check_above_zero("temperature", temperature)
    _check_same(teacher, student)
    # Keras 3.15 takes its default, "kl_divergence", of the logits instead of their softmax.
    divergence = keras.losses.KLDivergence()
    losses = [keras.distillation.LogitsDistillation(temperature, divergence)]
    weights, taught, teaching = [1.0], {}, {}
    for kind, pairs, loss, weight in (
        ("hidden_states", hidden, keras.losses.MeanSquaredError(), hidden_weight),
        ("attention_probabilities", attention, divergence, attention_weight),
    ):
        check_number(f"{kind} weight", weight)
        for mine, theirs in (pairs or {}).items():
            name = f"{kind}_{mine}"
            taught[name] = _state("student", student, kind, mine)
            teaching[name] = _state("teacher", teacher, kind, theirs)
            losses.append(keras.distillation.FeatureDistillation(loss, name, name))
            weights.append(weight)
    widths = {name: state.shape[-1] for name, state in teaching.items()}
    return keras.distillation.Distiller(
        _with_states(teacher, teaching, widths),
        _with_states(student, taught, widths),
        losses,
        weights,
        student_loss_weight=label_weight,
    )


@keras.saving.register_keras_serializable(package="keras_bert")
class _First(keras.layers.Layer):
    """Its first input; the others become layers of the model, for the distiller to find."""

    def call(self, inputs):
        return inputs[0]


def _with_states(task: BertClassifier, states: dict, widths: dict) -> keras.Model:
    """A model of the logits, in which layers named as the states give them."""
    output = task.backbone.output
    logits = task.head(task.head_dropout(output["pooled_output"]))
    mask = task.backbone.input["padding_mask"]
    found = []
    for name, state in states.items():
        if name.startswith("hidden"):
            state = keras.layers.Activation("linear", dtype="float32")(state)
            if state.shape[-1] != widths[name]:
                state = keras.layers.Dense(widths[name], dtype="float32")(state)
            there = keras.ops.expand_dims(keras.ops.cast(mask, "float32"), -1)
            found.append(keras.layers.Multiply(name=name, dtype="float32")([state, there]))
        else:
            found.append(keras.layers.Activation("linear", dtype="float32", name=name)(state))
    if found:
        logits = _First(dtype="float32")([logits, *found])
    return keras.Model(task.backbone.input, logits)


def _state(who: str, task: BertClassifier, kind: str, index: int):
    states = task.backbone.output.get(kind)
    if states is None:
        raise ValueError(
            f"the {who} gives no {kind}: expected a backbone with "
            f"{'output_hidden_states' if kind == 'hidden_states' else 'output_attentions'}=True, "
            "which from_preset takes"
        )
    if not 0 <= index < len(states):
        raise ValueError(f"{kind} {index} of the {who}: expected 0 to {len(states) - 1}")
    return states[index]


def _check_same(teacher: BertClassifier, student: BertClassifier) -> None:
    for what, values in {
        "classes": [m.num_classes for m in (teacher, student)],
        "labels": [m.labels for m in (teacher, student)],
        "vocabularies": [
            m.preprocessor and m.preprocessor.tokenizer.get_vocabulary() for m in (teacher, student)
        ],
    }.items():
        if values[0] != values[1] and None not in values:
            raise ValueError(
                f"teacher and student have different {what}: expected the same; soft_labels "
                "serves two vocabularies"
            )
