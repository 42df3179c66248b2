"""Multiple choice: rows, scores that go with the choices, training, every form of checkpoint."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertTokenizer
from keras_bert.checkpoints import save_checkpoint
from keras_bert.data.choices import ChoiceExamples
from keras_bert.tasks.multiple_choice import BertMultipleChoice
from keras_bert.text.multiple_choice_preprocessor import (
    BertMultipleChoicePreprocessor,
    best_choices,
)

VOCAB = "[PAD] [UNK] [CLS] [SEP] [MASK] it rains . she runs sings ##ing dry wet the".split()
CONTEXTS = ["it rains .", "the dry", "she sings", "wet"]
CHOICES = [
    ["she runs", "dry", "wet wet wet wet"],
    ["it rains", "rains", "the"],
    ["she", "sings .", "runs"],
    ["wet", "dry", "the the"],
]


def made(sequence_length=16, padding="bucket", **kwargs):
    keras.utils.set_random_seed(3)
    backbone = BertBackbone(
        len(VOCAB), 1, 2, 16, 24, 32, hidden_dropout=0.0, attention_dropout=0.0, **kwargs
    )
    preprocessor = BertMultipleChoicePreprocessor(BertTokenizer(VOCAB), sequence_length, padding)
    model = BertMultipleChoice(backbone, preprocessor, 0.0)
    model.head.kernel.assign(np.random.default_rng(0).normal(size=(16, 1)))
    model.backbone.pooler.kernel.assign(np.random.default_rng(1).normal(size=(16, 16)))
    return model


@pytest.fixture(scope="module")
def model():
    return made()


def test_each_choice_is_a_row_after_its_context():
    preprocessor = BertMultipleChoicePreprocessor(BertTokenizer(VOCAB), 11, "full")
    rows = preprocessor((CONTEXTS[:1], [["she runs", "running"]]))
    assert rows["token_ids"].shape == (1, 2, 11)
    names = [[VOCAB[i] for i in row] for row in rows["token_ids"][0].numpy()]
    assert " ".join(names[0]) == "[CLS] it rains . [SEP] she runs [SEP] [PAD] [PAD] [PAD]"
    assert " ".join(names[1][:7]) == "[CLS] it rains . [SEP] [UNK] [SEP]"
    assert rows["segment_ids"][0, 0].numpy().tolist() == [0] * 5 + [1] * 3 + [0] * 3
    assert rows["padding_mask"][0, 1].numpy().tolist() == [1] * 7 + [0] * 4
    one = preprocessor((CONTEXTS[0], ["she runs", "running"]))
    np.testing.assert_array_equal(one["token_ids"], rows["token_ids"][0])


def test_rows_are_made_in_a_graph_of_any_size():
    preprocessor = BertMultipleChoicePreprocessor(BertTokenizer(VOCAB), 7, "bucket")
    signature = [tf.TensorSpec([None], tf.string), tf.TensorSpec([None, None], tf.string)]
    pack = tf.function(lambda *x: preprocessor.pack(x), signature)
    for size, count in ((4, 3), (1, 2), (3, 1)):
        x = (CONTEXTS[:size], [row[:count] for row in CHOICES[:size]])
        found, expected = pack(*map(tf.constant, x)), preprocessor.pack(x)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)
    # The longer text is cut at its end: 3 + 4 pieces, room for 4.
    row = pack(tf.constant(CONTEXTS[:1]), tf.constant([CHOICES[0][2:]]))["token_ids"][0, 0]
    assert [VOCAB[i] for i in row.numpy()] == "[CLS] it rains [SEP] wet wet [SEP]".split()


def test_logits_permute_with_the_choices(model):
    rng = np.random.default_rng(0)
    mask = (np.arange(16) < rng.integers(2, 17, (8, 4, 1))).astype("int32")
    ids = {
        "token_ids": rng.integers(5, len(VOCAB), (8, 4, 16)).astype("int32") * mask,
        "segment_ids": (np.arange(16) > 5).astype("int32") * mask,
        "padding_mask": mask,
    }
    logits = model.predict(ids, verbose=0)
    assert logits.shape == (8, 4) and logits.std() > 0.1
    order = [2, 0, 3, 1]
    permuted = model.predict({name: value[:, order] for name, value in ids.items()}, verbose=0)
    np.testing.assert_allclose(permuted, logits[:, order], rtol=1e-5, atol=1e-6)
    # Each row by itself, and the head by hand.
    flat = {name: value.reshape(32, 16) for name, value in ids.items()}
    np.testing.assert_allclose(model(flat), logits.ravel(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"shape \(32, 16\): expected .examples, choices, tokens"):
        model.predict(flat)
    pooled = np.asarray(model.backbone(flat)["pooled_output"])
    by_hand = pooled @ np.asarray(model.head.kernel) + np.asarray(model.head.bias)
    np.testing.assert_allclose(by_hand.reshape(8, 4), logits, rtol=1e-5, atol=1e-5)
    probabilities = best_choices(logits)["probabilities"].numpy()
    exponents = np.exp(logits.astype("float64"))
    np.testing.assert_allclose(probabilities, exponents / exponents.sum(1, keepdims=True), 1e-5)
    labels = rng.integers(0, 4, 8)
    losses = -np.log(probabilities[np.arange(8), labels])
    found = model.evaluate(ids, labels, batch_size=3, verbose=0)
    np.testing.assert_allclose(found[0], losses.mean(), rtol=1e-5)
    np.testing.assert_allclose(found[1], np.mean(logits.argmax(1) == labels), rtol=1e-6)
    with pytest.raises(ValueError, match="label 4 in row 7 is no choice; expected 0 to 3"):
        model.fit(ids, [0, 1, 2, 3, 0, 1, 2, 4])


def test_answers_do_not_depend_on_their_batch(model):
    chosen, probabilities = model.choose(CONTEXTS, CHOICES, batch_size=3)
    assert probabilities.dtype == np.float32 and probabilities.shape == (4, 3)
    assert chosen == probabilities.argmax(axis=1).tolist()
    for row in range(4):
        one, its = model.choose(CONTEXTS[row], CHOICES[row])
        assert one == chosen[row]
        np.testing.assert_allclose(its, probabilities[row], rtol=1e-5)
    # As many choices as a row has tokens, and empty data.
    many = [(CHOICES[0] * 6)[:16]]
    assert model.predict((CONTEXTS[:1], many), verbose=0).shape == (1, 16)
    assert model.choose([], [])[0] == []
    contexts, choices = (np.array(v, object) for v in (CONTEXTS, CHOICES))
    assert model.choose(contexts, choices)[0] == chosen


RAGGED = [["dry", "it rains"], CHOICES[1] + ["wet"], CHOICES[2], CHOICES[3][:2]]


@pytest.mark.one_quick
@pytest.mark.parametrize("form", ["lists", "padded", "ids", "dataset", "ragged", "xla"])
def test_numbers_of_choices_may_differ(model, form):
    """Each example answers as it does alone, and the loss is the mean of their own."""
    alone = [model.choose(*pair)[1] for pair in zip(CONTEXTS, RAGGED, strict=True)]
    labels = [1, 3, 0, 1]
    loss = np.mean([-np.log(p[label]) for p, label in zip(alone, labels, strict=True)])
    padded = [row + [""] * (4 - len(row)) for row in RAGGED]
    x, y = {
        "lists": ((CONTEXTS, RAGGED), labels),
        "padded": ((CONTEXTS, padded), labels),
        "ids": (model.preprocessor((CONTEXTS, padded)), labels),
        "xla": ((CONTEXTS, RAGGED), labels),
    }.get(form, (None, None))
    if form == "dataset":
        x = tf.data.Dataset.from_tensor_slices(((CONTEXTS, padded), labels)).batch(3)
    if form == "ragged":
        columns = (CONTEXTS, tf.ragged.constant(RAGGED))
        x = tf.data.Dataset.from_tensor_slices((columns, labels)).batch(3)
    model.compile(jit_compile=form == "xla", optimizer="sgd")
    found = model.evaluate(x, y, verbose=0)
    np.testing.assert_allclose(found[0], loss, rtol=1e-5)
    if isinstance(x, tuple):
        for row, probabilities in enumerate(model.choose(*x)[1]):
            count = len(RAGGED[row])
            np.testing.assert_allclose(probabilities[:count], alone[row], rtol=1e-5)
            assert probabilities[count:].tolist() == [0.0] * (4 - count)


@pytest.mark.thorough
def test_shares_of_choices_that_are_not_there_are_refused():
    model = made()
    model.compile(label_smoothing=0.1)
    with pytest.raises(ValueError, match="label_smoothing needs as many choices"):
        model.fit((CONTEXTS, RAGGED), [1, 3, 0, 1], verbose=0)
    model.compile()
    soft = np.eye(4, dtype="float32")[[1, 3, 0, 1]]
    hard = model.evaluate((CONTEXTS, RAGGED), [1, 3, 0, 1], verbose=0)
    np.testing.assert_allclose(model.evaluate((CONTEXTS, RAGGED), soft, verbose=0), hard, rtol=1e-5)
    assert model.scores((CONTEXTS, RAGGED), soft)["accuracy"] == pytest.approx(hard[1])
    with pytest.raises(ValueError, match="labels of row 0 give a choice that is none a share"):
        model.fit((CONTEXTS, RAGGED), soft[[1, 1, 1, 1]], verbose=0)


@pytest.mark.thorough
def test_choices_that_are_not_there_teach_nothing():
    """The step is that of the examples each by itself, of one weight."""
    updates = []
    for batch in ("together", "alone"):
        model = made()
        model.compile(optimizer=keras.optimizers.SGD(1.0), accumulation_steps=1)
        before = [np.array(v) for v in model.get_weights()]
        total = [0.0] * len(before)
        parts = [slice(None)] if batch == "together" else [slice(i, i + 1) for i in range(4)]
        for part in parts:
            model.set_weights(before)
            model.fit((CONTEXTS[part], RAGGED[part]), [1, 3, 0, 1][part], verbose=0)
            for i, (new, old) in enumerate(zip(model.get_weights(), before, strict=True)):
                total[i] = total[i] + (new - old) / len(parts)
        updates.append(total)
    for one, other in zip(*updates, strict=True):
        assert np.isfinite(one).all()
        np.testing.assert_allclose(one, other, atol=2e-5)


@pytest.mark.thorough
def test_a_served_graph_gives_an_empty_choice_no_share(model, tmp_path):
    model.export(tmp_path / "served")
    serve = tf.saved_model.load(tmp_path / "served").signatures["serving_default"]
    padded = [row + [""] * (4 - len(row)) for row in RAGGED]
    found = serve(context=tf.constant(CONTEXTS), choices=tf.constant(padded))
    chosen, probabilities = model.choose(CONTEXTS, RAGGED)
    assert found["choice"].numpy().tolist() == chosen
    np.testing.assert_allclose(found["probabilities"], probabilities, rtol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="less than two"):
        serve(context=tf.constant(["a"]), choices=tf.constant([["a", ""]]))


def choice_examples(count, seed=0):
    """The right choice says what the context says."""
    rng = np.random.default_rng(seed)
    words = ["rains", "runs", "sings", "dry", "wet"]
    data = ChoiceExamples([], [], [], [], [])
    for row in range(count):
        picked = rng.choice(words, 4, replace=False).tolist()
        label = int(rng.integers(4))
        data.contexts.append(f"it {picked[label]}")
        data.starts.append("she" if row % 2 else "")
        data.endings.append(tuple(picked))
        data.labels.append(label)
        data.lines.append(row + 2)
    return data


@pytest.fixture(scope="module")
def fitted():
    model = made()
    model.compile(learning_rate=5e-3)
    data = choice_examples(256)
    model.history_of_fit = model.fit(
        data, batch_size=16, epochs=25, validation_data=data.head(32), verbose=0
    ).history
    return model


def test_choices_are_learnt(fitted):
    data = choice_examples(64, seed=1)
    accuracy = np.mean(np.equal(fitted.choose(data)[0], data.labels))
    assert accuracy > 0.8  # by chance 0.25
    assert fitted.history_of_fit["val_accuracy"][-1] > 0.8
    found = fitted.evaluate(data, verbose=0)
    np.testing.assert_allclose(found[1], accuracy, rtol=1e-6)


@pytest.mark.thorough
def test_datasets_of_strings_give_the_same(fitted):
    data = choice_examples(7, seed=2)
    columns = (data.contexts, data.choices)
    dataset = tf.data.Dataset.from_tensor_slices((columns, data.labels)).batch(3)
    expected = fitted.evaluate(columns, data.labels, verbose=0)
    np.testing.assert_allclose(fitted.evaluate(dataset, verbose=0), expected, rtol=1e-5)
    unlabelled = dataset.map(lambda x, y: (x,))
    np.testing.assert_allclose(
        fitted.predict(unlabelled, verbose=0), fitted.predict(columns, verbose=0), rtol=1e-4
    )


SLOW = [pytest.param(form, marks=pytest.mark.slow) for form in ("google", "kerashub")]


@pytest.mark.one_quick
@pytest.mark.parametrize("form", ["preset", "keras", "huggingface", *SLOW])
def test_saved_and_read_back(fitted, tmp_path, form):
    data, path = choice_examples(5, seed=3), tmp_path / "model"
    if form == "keras":
        fitted.save(path.with_suffix(".keras"))
        loaded = keras.saving.load_model(path.with_suffix(".keras"))
    else:
        if form == "preset":
            fitted.save_to_preset(str(path))
        else:
            save_checkpoint(fitted, path, form)
        loaded = BertMultipleChoice.from_preset(path, sequence_length=16)
        assert not loaded.loading_report.new and not loaded.loading_report.left_over
        assert loaded.dropout == 0.0
    expected = fitted.predict(data, verbose=0)
    np.testing.assert_allclose(loaded.predict(data, verbose=0), expected, rtol=1e-5, atol=1e-5)
    assert loaded.preprocessor.sequence_length == 16


def test_a_head_of_another_kind_is_left_out(tmp_path, fitted):
    from keras_bert import BertClassifier

    classifier = BertClassifier(fitted.backbone, 3, preprocessor=None)
    save_checkpoint(classifier, tmp_path / "hf", "huggingface")
    loaded = BertMultipleChoice.from_preset(tmp_path / "hf")
    assert loaded.loading_report.new == [weight.path for weight in loaded.head.weights]
    assert "head/kernel" in loaded.loading_report.left_over
    assert loaded.preprocessor is None
    with pytest.raises(ValueError, match="has no preprocessor.*BertMultipleChoicePreprocessor"):
        loaded.choose(CONTEXTS, CHOICES)


@pytest.mark.parametrize(
    ("contexts", "choices", "labels", "match"),
    [
        (CONTEXTS[:2], [["a", "b"], ["a", "b", "c"]], [2, 1], "label 2 in row 0.* 0 to 1"),
        (CONTEXTS[:1], [["a", "", "b"]], [1], "label 1 in row 0 is no choice"),
        (CONTEXTS[:2], [["a", "b"], ["a"]], [0, 0], "row 1 has 1 choices that are not empty"),
        (CONTEXTS[:1], [["a", ""]], [0], "row 0 has 1 choices that are not empty"),
        (CONTEXTS[:2], CHOICES[:1], [0, 0], "2 contexts but 1 lists of choices"),
        (CONTEXTS[:2], CHOICES[:2], [0, 3], "label 3 in row 1 is no choice; expected 0 to 2"),
        (CONTEXTS[:2], CHOICES[:2], [0, -1], "label -1 in row 1"),
        (CONTEXTS[:2], CHOICES[:2], ["a", "b"], "expected the number of the right choice"),
        (CONTEXTS[:2], CHOICES[:2], [0.5, 1], "expected the number of the right choice"),
    ],
)
def test_errors_name_the_row(model, contexts, choices, labels, match):
    with pytest.raises(ValueError, match=match):
        model.fit((contexts, choices), labels)


def test_errors_name_the_line_and_the_text(model):
    data = choice_examples(3)
    data.endings[2], data.starts[2] = ("dry", "", "", ""), ""
    with pytest.raises(ValueError, match=r"row 2 \(line 4\) has 1 choices.*expected 2 or more"):
        model.fit(data)
    with pytest.raises(ValueError, match=r"row 2 \(line 4\) has 1 choices"):
        model.choose(data)
    with pytest.raises(TypeError, match=r"choices of row 1: choices\[2\]=nan of type float"):
        model.choose(CONTEXTS[:2], [CHOICES[0], ["a", "b", float("nan")]])
    for missing in (None, np.nan):
        with pytest.raises(TypeError, match=r"choices of row 1: choices=(None|nan) of type .*list"):
            model.predict((["a", "b"], [["b", "c"], missing]))
    with pytest.raises(TypeError, match="the choices of row 0 are one string"):
        model.choose(CONTEXTS[:1], ["dry"])
    with pytest.raises(ValueError, match="expected a tuple .contexts, choices., got list"):
        model.fit(CONTEXTS, [0, 0, 0, 0])
    with pytest.raises(ValueError, match="y is missing"):
        model.fit((CONTEXTS, CHOICES))
    with pytest.raises(ValueError, match="labels of length 1: expected 4, as many as texts"):
        model.scores((CONTEXTS, CHOICES), [0])
    with pytest.raises(ValueError, match="class_weight is not supported"):
        model.fit((CONTEXTS, CHOICES), [0, 1, 2, 0], class_weight={0: 2.0})
    ids = np.ones((2, 3, 7), "int32")
    with pytest.raises(ValueError, match="'segment_ids' has shape.*expected three axes"):
        model({"token_ids": ids, "segment_ids": ids[0], "padding_mask": ids})
    with pytest.raises(ValueError, match="token_ids from 99 to 99"):
        model.predict({n: ids * (99 if n == "token_ids" else 1) for n in SMALL})


SMALL = ("token_ids", "segment_ids", "padding_mask")


@pytest.mark.thorough
def test_mixed_precision_keeps_float32_logits():
    model = made(dtype="mixed_bfloat16")
    rows = model.preprocessor((CONTEXTS, CHOICES))
    assert model(rows).dtype == "float32" and model(rows).shape == (4, 3)
