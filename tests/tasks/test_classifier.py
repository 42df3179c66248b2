import json
import logging
import subprocess
import sys
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertClassifier, BertClassifierPreprocessor, BertTokenizer
from keras_bert.training import AdamW

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] calm storm wind rain the a boat ##s not".split()


def classifier(num_classes=2, length=12, padding="full", dtype=None, dropout=0.0, **kwargs):
    backbone = BertBackbone(
        len(WORDS), 1, 3, 12, 20, 16, hidden_dropout=dropout, attention_dropout=dropout, dtype=dtype
    )
    preprocessor = BertClassifierPreprocessor(BertTokenizer(WORDS), length, padding)
    kwargs |= {"preprocessor": preprocessor, "dropout": dropout}
    return BertClassifier(backbone, num_classes, **kwargs)


def weather(size=96, seed=0):
    """Texts of calm or storm, hidden among other words."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, size)
    texts = [
        " ".join(rng.permutation([*rng.choice(WORDS[7:12], 4), ("calm", "storm")[label]]))
        for label in labels
    ]
    return texts, labels


def run(script: str, *arguments) -> str:
    """Runs Python code in a fresh process and gives what it prints."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def trained():
    keras.utils.set_random_seed(1)
    model = classifier(labels=["calm", "storm"], padding="bucket")
    model.compile(learning_rate=5e-3)
    texts, labels = weather(192)
    names = [model.labels[i] for i in labels]
    model.fit(texts, names, batch_size=16, epochs=8, verbose=0)
    return model


@pytest.mark.thorough
def test_probabilities_of_several_labels_by_name(trained):
    texts, _ = weather(5)
    logits = trained.predict(texts, verbose=0).astype("float64")
    softmax = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    found = trained.classify(texts, top_k="all", verbose=0)
    for row, expected in zip(found, softmax, strict=True):
        assert row == pytest.approx(dict(zip(trained.labels, expected, strict=True)), rel=1e-5)
        assert [*row.values()] == sorted(row.values(), reverse=True)
    best = trained.classify(texts, top_k=1, verbose=0)
    labels, probabilities = trained.classify(texts, verbose=0)
    for row, name, probability in zip(best, labels, probabilities, strict=True):
        assert row == pytest.approx({name: probability}, rel=1e-6)
    assert trained.classify(texts[0], top_k=2, verbose=0) == pytest.approx(found[0])
    assert trained.classify([], top_k=2) == []
    for top_k in (0, 3, 1.5, "both"):
        with pytest.raises(ValueError, match=f"top_k={top_k!r}: expected 1 to 2"):
            trained.classify(texts, top_k=top_k, verbose=0)
    several = classifier(3, padding="bucket", problem="multi_label")
    sigmoid = 1 / (1 + np.exp(-several.predict(texts[:1], verbose=0)[0]))
    found = several.classify(texts[0], top_k="all", verbose=0)
    assert found == pytest.approx(dict(enumerate(sigmoid.tolist())), rel=1e-5)


def test_learns_from_texts_and_label_names(trained):
    texts, labels = weather(seed=1)
    found, probabilities = trained.classify(texts, verbose=0)
    assert np.mean([trained.labels.index(name) for name in found] == labels) > 0.95
    logits = trained.predict(texts, verbose=0)
    assert logits.shape == (96, 2) and logits.dtype == np.float32
    softmax = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(probabilities, softmax.max(1), rtol=1e-5)
    loss, accuracy = trained.evaluate(texts, labels, verbose=0)
    assert accuracy == pytest.approx(np.mean(logits.argmax(1) == labels))
    assert loss == pytest.approx(-np.log(softmax[np.arange(96), labels]).mean(), rel=1e-4)


def test_predictions_keep_the_order_of_rows_and_any_batch_size(trained):
    texts = ["the boats " * n + "calm" for n in (5, 1, 9, 3, 7, 2, 8)]
    together = trained.predict(texts, verbose=0)
    alone = np.stack([trained.predict(text, verbose=0) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(trained.predict(texts, 3, verbose=0), alone, atol=1e-5)
    label, probability = trained.classify("rain storm", verbose=0)
    assert label in trained.labels and 0.5 <= probability <= 1


@pytest.mark.thorough
def test_texts_ids_and_datasets_give_the_same(trained):
    texts, labels = weather(20)
    expected = trained.predict(texts, verbose=0)
    ids = {k: np.asarray(v) for k, v in trained.preprocessor(texts).items()}
    np.testing.assert_allclose(trained.predict(ids, verbose=0), expected, atol=1e-5)
    dataset = tf.data.Dataset.from_tensor_slices((texts, labels)).batch(7)
    np.testing.assert_allclose(trained.predict(dataset, verbose=0), expected, atol=1e-5)
    wanted = trained.evaluate(texts, labels, verbose=0)
    np.testing.assert_allclose(trained.evaluate(ids, labels, verbose=0), wanted, rtol=1e-5)
    np.testing.assert_allclose(trained.evaluate(dataset, verbose=0), wanted, rtol=1e-5)


@pytest.mark.thorough
def test_one_batch_sees_what_has_changed(trained):
    model = classifier()
    model.copy_state(trained)
    texts, _ = weather(6)
    ids = {k: np.asarray(v) for k, v in model.preprocessor(texts).items()}
    expected = model.predict(texts, verbose=0)
    for kind in ("int32", "int64", "int8", "int32"):
        x = {name: value.astype(kind) for name, value in ids.items()}
        np.testing.assert_allclose(model.predict(x, verbose=0), expected, atol=1e-5)
    tokens = model.preprocessor.tokenizer.get_vocabulary()
    model.preprocessor.tokenizer.set_vocabulary([*tokens[:5], *reversed(tokens[5:])])
    piped = model.predict(texts, verbose=0, callbacks=[])  # which is not for one batch alone
    assert abs(piped - expected).max() > 1e-4
    np.testing.assert_allclose(model.predict(texts, verbose=0), piped, atol=1e-6)
    model.set_weights([w * 0 for w in model.get_weights()])
    np.testing.assert_array_equal(model.predict(texts, verbose=0), 0 * piped)


@pytest.mark.thorough
def test_label_names_in_a_dataset(trained):
    texts, labels = weather(12)
    names = [trained.labels[i] for i in labels]
    dataset = tf.data.Dataset.from_tensor_slices((texts, names)).batch(5)
    wanted = trained.evaluate(texts, labels, verbose=0)
    np.testing.assert_allclose(trained.evaluate(dataset, verbose=0), wanted, rtol=1e-5)
    unknown = tf.data.Dataset.from_tensor_slices((texts, ["sunny"] * 12)).batch(5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="unknown label.*sunny"):
        trained.evaluate(unknown, verbose=0)
    with pytest.raises(ValueError, match="labels are names"):
        classifier().evaluate(dataset, verbose=0)


@pytest.mark.thorough
def test_pairs():
    model = classifier()
    firsts, seconds = ["a boat", "the wind", "rain"], ["storm", "calm calm", "the boats"]
    logits = model.predict((firsts, seconds), verbose=0)
    assert logits.shape == (3, 2)
    swapped = model.predict((seconds, firsts), verbose=0)
    assert abs(logits - swapped).max() > 1e-6
    history = model.fit((firsts, seconds), [0, 1, 0], verbose=0)
    assert np.isfinite(history.history["loss"]).all()


@pytest.mark.thorough
def test_fit_is_repeatable_by_seed_and_shuffles():
    texts, labels = weather(32)
    weights = []
    keras.utils.set_random_seed(3)
    model = classifier(dropout=0.1)
    start = [np.array(v) for v in model.variables]  # with the state of dropout
    for seed in (5, 5, 6):
        for variable, value in zip(model.variables, start, strict=True):
            variable.assign(value)
        model.fit(texts, labels, batch_size=4, seed=seed, verbose=0)
        weights.append(np.concatenate([np.ravel(w) for w in model.get_weights()]))
    np.testing.assert_array_equal(weights[0], weights[1])
    assert abs(weights[0] - weights[2]).max() > 0


@pytest.mark.slow
def test_fit_again_starts_the_schedule_again_without_a_new_trace():
    texts, labels = weather(32)
    model = classifier()
    model.fit(texts, labels, batch_size=8, epochs=2, verbose=0)
    optimizer, function = model.optimizer, model.train_function
    assert int(optimizer.iterations) == 8
    assert float(optimizer.learning_rate) == 0  # run out
    model.fit(texts, labels, batch_size=8, epochs=2, verbose=0)
    assert model.optimizer is optimizer and model.train_function is function
    assert int(optimizer.iterations) == 8
    model.fit(texts, labels, batch_size=8, epochs=3, verbose=0)
    # Of another length too: it is a value of the schedule, no constant of the function.
    assert model.optimizer is optimizer and model.train_function is function
    assert int(optimizer.iterations) == 12


@pytest.mark.slow
def test_new_weights_in_a_compiled_model_train_as_a_new_model():
    texts, labels = weather(32)
    outputs = []
    for reuse in (True, False):
        keras.utils.set_random_seed(1)
        model = classifier(dropout=0.1)
        if reuse:
            model.fit(texts, labels, batch_size=8, verbose=0)
            keras.utils.set_random_seed(1)
            model.copy_state(classifier(dropout=0.1))
        model.fit(texts, labels, batch_size=8, verbose=0)
        outputs.append(model.predict(texts, verbose=0))
    np.testing.assert_array_equal(*outputs)


@pytest.mark.slow
def test_the_users_own_optimizer_is_kept():
    texts, labels = weather(16)
    model, optimizer = classifier(), keras.optimizers.SGD(0.1)
    model.compile(optimizer)
    model.fit(texts, labels, batch_size=8, verbose=0)
    assert model.optimizer is optimizer and int(optimizer.iterations) == 2


def test_first_loss_is_that_of_chance():
    texts, _ = weather(60)
    model = classifier(num_classes=3)
    loss, _ = model.evaluate(texts, [0, 1, 2] * 20, verbose=0)
    assert loss == pytest.approx(np.log(3), abs=0.02)


@pytest.mark.parametrize(
    "loss",
    [
        "sparse_categorical_crossentropy",
        "SparseCategoricalCrossentropy",
        keras.losses.sparse_categorical_crossentropy,
        keras.losses.SparseCategoricalCrossentropy(),
        keras.losses.CategoricalCrossentropy(from_logits=False),
    ],
)
def test_a_loss_on_probabilities_is_refused(loss):
    with pytest.raises(ValueError, match="expects probabilities.*from_logits=True"):
        classifier().compile(loss=loss)


@pytest.mark.slow
def test_float16_stays_finite_with_a_batch_of_one():
    texts, labels = weather(40)
    model = classifier(dtype="mixed_float16", dropout=0.1)
    history = model.fit(texts, labels, batch_size=1, epochs=5, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    assert isinstance(model.optimizer.inner_optimizer, AdamW)
    assert all(np.isfinite(weight).all() for weight in model.get_weights())


@pytest.mark.slow
def test_class_and_sample_weights():
    texts, labels = weather(12)
    model = classifier(labels=["calm", "storm"])
    model.compile(keras.optimizers.SGD(0.0))
    plain = model.evaluate(texts, labels, verbose=0)[0]
    each = [model.evaluate([t], [y], verbose=0)[0] for t, y in zip(texts, labels, strict=True)]
    assert plain == pytest.approx(np.mean(each), rel=1e-4)
    weights = np.where(labels == 1, 3.0, 0.5)
    weighted = model.evaluate(texts, labels, sample_weight=weights, verbose=0)[0]
    assert weighted == pytest.approx(np.average(each, weights=weights), rel=1e-4)
    # By class, under the labels' names.
    history = model.fit(texts, labels, class_weight={"calm": 0.5, "storm": 3.0}, verbose=0)
    assert history.history["loss"][0] == pytest.approx(np.average(each, weights=weights), rel=1e-4)


def test_weights_of_some_classes_leave_the_others_at_one():
    model = classifier(labels=["calm", "storm"])
    assert model.encode_class_weight({"storm": 3.0}) == {0: 1.0, 1: 3.0}
    with pytest.raises(ValueError, match="'sunny' in row 0 is unknown"):
        model.encode_class_weight({"sunny": 3.0})
    unnamed = classifier(num_classes=2)  # whose names are those of the labels, not of the weights
    texts = ["rain", "sun"] * 2
    source = unnamed.source(texts, ["storm", "calm"] * 2, class_weight={"calm": 2.0})
    assert unnamed.labels == ["calm", "storm"]
    _, ids, weights = next(source.one_pass().as_numpy_iterator())
    np.testing.assert_array_equal(weights, np.where(ids == 0, 2.0, 1.0))


@pytest.mark.thorough
def test_a_wait_for_compilation_is_told(capsys):
    texts, labels = weather(4)
    model = classifier()
    model.fit(texts, labels, verbose=0)
    assert capsys.readouterr().err == ""
    model.compile()
    model.fit(texts, labels, verbose=2)
    told = "tracing and compiling the step: some seconds, on a GPU up to a minute\n"
    assert capsys.readouterr().err == told
    model.fit(texts, labels, verbose=2)  # with what is compiled
    assert capsys.readouterr().err == ""


def test_a_misspelt_argument_is_told():
    with pytest.raises(TypeError, match="unknown argument dropuot: BertClassifier has none"):
        classifier(dropuot=0.3)


@pytest.mark.slow
def test_names_that_only_the_validation_rows_have():
    texts, _ = weather(20)
    model = classifier(num_classes=3)
    model.fit(texts, ["a"] * 8 + ["b"] * 8 + ["c"] * 4, validation_split=0.2, verbose=0)
    assert model.labels == ["a", "b", "c"]


def test_a_failed_fit_teaches_no_names():
    model = classifier()
    with pytest.raises(TypeError):
        model.fit(["a boat", None], ["x", "y"], verbose=0)
    assert model.labels is None


def test_nothing_to_predict(trained):
    assert trained.predict([]).shape == (0, 2)


@pytest.mark.thorough
def test_a_dataset_of_pairs():
    model, texts = classifier(), weather(6)[0]
    dataset = tf.data.Dataset.from_tensor_slices(((texts, texts[::-1]),)).batch(4)
    expected = model.predict((texts, texts[::-1]), verbose=0)
    np.testing.assert_allclose(model.predict(dataset, verbose=0), expected, atol=1e-5)
    flat = tf.data.Dataset.from_tensor_slices((texts, texts[::-1])).batch(4)
    with pytest.raises(ValueError, match="on pairs it has to give"):
        model.predict(flat, verbose=0)


@pytest.mark.thorough
def test_validation_split_takes_the_end():
    texts, labels = weather(20)
    model = classifier()
    model.compile(keras.optimizers.SGD(0.0))
    history = model.fit(texts, labels, validation_split=0.25, verbose=0)
    expected = model.evaluate(texts[15:], labels[15:], verbose=0)[0]
    assert history.history["val_loss"][0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_freezing_and_lora():
    texts, labels = weather(32)
    model = classifier()
    model.backbone.freeze()
    before = np.asarray(model.backbone.weights[0]).copy()
    model.fit(texts, labels, verbose=0)
    np.testing.assert_array_equal(model.backbone.weights[0], before)
    model = classifier()
    model.backbone.enable_lora(rank=2)
    model.fit(texts, labels, verbose=0)
    trained = [w.path for w in model.trainable_weights]
    assert any("lora_kernel_b" in path for path in trained)
    assert not any(path.endswith("word/embeddings") for path in trained)
    moved = [w for w in model.trainable_weights if "lora_kernel_b" in w.path]
    assert all(np.abs(w).max() > 0 for w in moved)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Your input ran out of data")  # how Keras learns the size
def test_unknown_dataset_size_trains_at_a_constant_rate(caplog):
    texts, labels = weather(16)
    spec = (tf.TensorSpec([None], tf.string), tf.TensorSpec([None], tf.int32))
    dataset = tf.data.Dataset.from_generator(
        lambda: ((texts[i : i + 8], labels[i : i + 8]) for i in (0, 8)), output_signature=spec
    )
    model = classifier()
    with caplog.at_level(logging.WARNING, "keras_bert"):
        model.fit(dataset, epochs=1, verbose=0)
    assert "pass steps_per_epoch" in caplog.text
    assert float(model.optimizer.learning_rate) == pytest.approx(5e-5)


# Saving.


def test_preset_round_trip(trained, tmp_path):  # settings and ids travel
    trained.save_to_preset(tmp_path / "preset")
    texts, _ = weather(12)
    script = (
        "import sys, json, keras_bert\n"
        "model = keras_bert.BertClassifier.from_preset(sys.argv[1])\n"
        "logits = model.predict(json.loads(sys.argv[2]), verbose=0)\n"
        "print(json.dumps([logits.tolist(), model.labels, model.preprocessor.padding,"
        " model.preprocessor.sequence_length, model.loading_report.new]))\n"
    )
    output = json.loads(run(script, tmp_path / "preset", json.dumps(texts)).splitlines()[-1])
    np.testing.assert_allclose(output[0], trained.predict(texts, verbose=0), atol=1e-6)
    assert output[1:] == [["calm", "storm"], "bucket", 12, []]
    files = {p.name for p in (tmp_path / "preset").rglob("*") if p.is_file()}
    assert {"config.json", "model.weights.h5", "task.json", "vocab.txt"} <= files
    assert [p.name for p in tmp_path.iterdir()] == ["preset"]  # nothing half-written is left


@pytest.mark.slow
def test_keras_file_loads_in_a_fresh_process(trained, tmp_path):
    trained.save(tmp_path / "model.keras")
    texts, labels = weather(12)
    script = (
        "import sys, json, keras, keras_bert\n"
        "model = keras.models.load_model(sys.argv[1])\n"
        "texts, labels = json.loads(sys.argv[2])\n"
        "logits = model.predict(texts, verbose=0)\n"
        "model.fit(texts, labels, verbose=0)\n"
        "print(json.dumps([logits.tolist(), model.labels, model.schedule['learning_rate']]))\n"
    )
    arguments = json.dumps([texts, labels.tolist()])
    output = run(script, tmp_path / "model.keras", arguments).splitlines()[-1]
    logits, names, rate = json.loads(output)
    np.testing.assert_allclose(logits, trained.predict(texts, verbose=0), atol=1e-6)
    assert names == ["calm", "storm"] and rate == 5e-3


@pytest.mark.slow
def test_lora_is_merged_into_a_preset(tmp_path):
    texts, labels = weather(16)
    model = classifier()
    model.backbone.enable_lora(rank=2)
    model.compile(learning_rate=0.05)
    model.fit(texts, labels, epochs=3, verbose=0)
    model.save_to_preset(tmp_path / "preset")
    again = BertClassifier.from_preset(tmp_path / "preset")
    expected = model.predict(texts, verbose=0)
    np.testing.assert_allclose(again.predict(texts, verbose=0), expected, atol=1e-5)


# Bad input: one clear error that names what came and what was expected.


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (["calm", "rain"], ["calm", "sunny"], "label 'sunny' in row 1 is unknown.*calm, storm"),
        (["calm", "rain"], [0, 2], "label 2 in row 1 is unknown; expected ids 0 to 1"),
        (["calm", "rain"], [0.0, 0.5], "label 0.5 in row 1 is unknown"),
        (["calm", "rain"], [0], "labels of length 1: expected 2, as many as texts"),
        ([], [], "there are no texts"),
        ((["calm"], ["rain", "storm"]), [0], "1 first texts but 2 second texts"),
        ((["a"], ["a"], ["a"]), [0], "expected \\(firsts, seconds\\), got a tuple of 3"),
        (["calm"], [[0, 1, 0, 0, 0]], "labels of shape \\(1, 5\\): expected one a row"),
        (["calm"], None, "y is missing"),
        (["calm", "rain"], np.array(["calm", None], object), "label None in row 1 is a NoneType"),
        (["calm", "\ud83d"], [0, 1], "texts\\[1\\] cannot be encoded as UTF-8"),
    ],
)
def test_bad_rows(trained, texts, labels, message):
    with pytest.raises(ValueError, match=message):
        trained.fit(texts, labels, verbose=0)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["calm", float("nan")], "texts\\[1\\]=nan of type float: expected a str"),
        (("a boat", "calm"), "a tuple of strings is ambiguous"),
        (tf.constant("rain"), "texts=.*: expected a list of strings, not a string"),
        (
            types.SimpleNamespace(columns=["text", "label"]),
            "texts of type SimpleNamespace: expected one column",
        ),
    ],
)
def test_bad_texts(trained, texts, message):
    with pytest.raises(TypeError, match=message):
        trained.predict(texts)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("token_ids", 99, "token_ids from 0 to 99: expected 0 to 13"),
        ("segment_ids", 2, "segment_ids from 0 to 2: expected 0 to 1"),
    ],
)
def test_bad_ids(trained, name, value, message):
    ids = {k: np.array(v) for k, v in trained.preprocessor(["a boat"]).items()}
    ids[name][0, 1] = value
    with pytest.raises(ValueError, match=message):
        trained.predict(ids)


def test_missing_ids(trained):
    with pytest.raises(ValueError, match="ids lack padding_mask, segment_ids; got token_ids"):
        trained.predict({"token_ids": np.ones((1, 3), "int32")})


def test_ids_past_the_position_table(trained):
    ids = {k: np.ones((1, 17), "int32") for k in ("token_ids", "segment_ids", "padding_mask")}
    with pytest.raises(ValueError, match="17 long, but the model has 16 positions"):
        trained.predict(ids)


def test_constructor_checks():
    backbone = BertBackbone(len(WORDS), 1, 2, 4, 8, max_sequence_length=16)
    tokenizer = BertTokenizer(WORDS)
    with pytest.raises(ValueError, match="labels=None: expected 2 or more classes, and as many"):
        BertClassifier(backbone)
    with pytest.raises(TypeError, match="labels hold None of type NoneType"):
        BertClassifier(backbone, labels=[None, 2])
    with pytest.raises(ValueError, match="num_classes=3, labels="):
        BertClassifier(backbone, 3, ["a", "b"])
    with pytest.raises(ValueError, match="sequence_length=32 exceeds the backbone's 16 positions"):
        BertClassifier(backbone, 2, preprocessor=BertClassifierPreprocessor(tokenizer, 32))
    larger = BertClassifierPreprocessor(BertTokenizer([*WORDS, "hail"]), 8)
    with pytest.raises(ValueError, match="15 tokens.*only 14 rows"):
        BertClassifier(backbone, 2, preprocessor=larger)
    with pytest.raises(ValueError, match="no preprocessor.*or pass a dict of ids"):
        BertClassifier(backbone, 2).predict(["a boat"])


def test_unbatched_dataset_raises(trained):
    dataset = tf.data.Dataset.from_tensor_slices((["a"], [0]))
    with pytest.raises(ValueError, match="expected batches; add .batch"):
        trained.fit(dataset)
    with pytest.raises(ValueError, match="brings its own labels"):
        trained.fit(dataset.batch(1), [0])
