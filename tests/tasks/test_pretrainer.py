import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import (
    SIZES,
    BertBackbone,
    BertClassifier,
    BertMaskedLMPreprocessor,
    BertPretrainer,
    BertTokenizer,
)

ROWS, TOKENS, SLOTS, HIDDEN, WORDS = 3, 7, 5, 11, 63


def pretrainer(layers=1, dtype=None, dropout=0.1, positions=TOKENS, **kwargs):
    backbone = BertBackbone(
        WORDS,
        layers,
        1,
        HIDDEN,
        13,
        max_sequence_length=positions,
        hidden_dropout=dropout,
        attention_dropout=dropout,
        dtype=dtype,
    )
    return BertPretrainer(backbone, **kwargs)


def batch(rows=ROWS, seed=0, **changes):
    """A batch by the contract whose answers can be learned: a masked id tells what it hid."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(5, WORDS, (rows, TOKENS))
    positions = np.sort(rng.permuted(np.tile(np.arange(TOKENS), (rows, 1)), axis=1)[:, :SLOTS], 1)
    given = {
        "token_ids": tokens,
        "segment_ids": np.repeat([[0, 0, 0, 1, 1, 1, 1]], rows, 0),
        "padding_mask": np.ones((rows, TOKENS)),
        "mask_positions": positions,
        "mask_ids": np.take_along_axis(tokens, positions, 1) % 7,
        "next_sentence_labels": tokens[:, 0] % 2,
    }
    given = {name: value.astype("int32") for name, value in given.items()}
    weights = np.repeat([[1, 1, 1, 0, 0]], rows, 0).astype("float32")
    return given | {"mask_weights": weights} | changes


def stream(given, size=None):
    return tf.data.Dataset.from_tensor_slices(given).batch(size or len(given["token_ids"]))


def randomize(model, seed=3):
    rng = np.random.default_rng(seed)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(0, 0.3, weight.shape))


def inputs(**changes):
    return BertPretrainer.pack(batch(**changes))[0]


def test_logits_are_the_heads_on_the_backbone():
    model = pretrainer()
    randomize(model)
    x = inputs()
    outputs = model(x)
    encoded = model.backbone({k: v for k, v in x.items() if k != "mask_positions"})
    wanted = model.masked_lm_head(encoded["sequence_output"], x["mask_positions"])
    assert outputs["mlm"].shape == (ROWS, SLOTS, WORDS) and outputs["nsp"].shape == (ROWS, 2)
    np.testing.assert_allclose(outputs["mlm"], wanted, atol=1e-5)
    wanted = model.next_sentence_head(encoded["pooled_output"])
    np.testing.assert_allclose(outputs["nsp"], wanted, atol=1e-5)


def test_the_word_table_is_one_weight_used_twice():
    model = pretrainer(dropout=0)
    randomize(model)
    table = model.backbone.embeddings.word.embeddings
    assert sum(weight is table for weight in model.weights) == 1
    assert len(model.weights) == len({id(weight) for weight in model.weights})
    assert [w.shape for w in model.trainable_weights].count((WORDS, HIDDEN)) == 1
    x, y, weights = BertPretrainer.pack(batch())
    used = np.unique(x["token_ids"])

    def gradient(stop_output=False, stop_input=False):
        with tf.GradientTape() as tape:
            encoded = model.backbone({k: v for k, v in x.items() if k != "mask_positions"})
            states = encoded["sequence_output"]
            states = tf.stop_gradient(states) if stop_input else states
            logits = model.masked_lm_head(states, x["mask_positions"])
            if stop_output:  # only the rows of the input remain
                head = model.masked_lm_head
                one_hot = tf.one_hot(x["mask_positions"], TOKENS)
                hidden = head.layer_norm(head.dense(one_hot @ states))
                logits = hidden @ tf.stop_gradient(tf.transpose(table.value)) + head.output_bias
            loss = model.default_loss()["mlm"](y["mlm"], logits, weights["mlm"])
        return np.asarray(tf.convert_to_tensor(tape.gradient(loss, table.value)))

    whole, from_output, from_input = gradient(), gradient(stop_input=True), gradient(True)
    np.testing.assert_allclose(whole, from_output + from_input, atol=1e-5)
    unused = np.setdiff1d(np.arange(WORDS), used)
    assert not from_input[unused].any() and from_input[used].any()
    assert (abs(from_output).max(1) > 0).all()  # the softmax reaches every row


@pytest.mark.parametrize("slots", [4, 6, 9])
def test_loss_of_an_even_guess_is_the_log_of_the_vocabulary(slots):
    """Free slots are not counted, however many."""
    loss = pretrainer().default_loss()["mlm"]
    weights = np.zeros((1, slots), "float32")
    weights[:, :2] = 1
    value = loss(np.zeros((1, slots), "int32"), np.zeros((1, slots, 63), "float32"), weights)
    assert float(value) == pytest.approx(4.1431, abs=1e-4)


@pytest.mark.thorough
def test_free_slots_change_neither_loss_nor_metrics():
    """Whatever they hold, and however many there are."""
    model = pretrainer()
    randomize(model)
    few = batch()
    more = {
        name: np.concatenate([few[name], np.zeros((ROWS, 4), few[name].dtype)], 1)
        for name in ("mask_positions", "mask_ids", "mask_weights")
    }
    wanted = model.evaluate(stream(few), verbose=0, return_dict=True)
    assert wanted["loss"] == pytest.approx(wanted["mlm_loss"] + wanted["nsp_loss"], rel=1e-5)
    assert wanted["mlm_perplexity"] == pytest.approx(np.exp(wanted["mlm_loss"]), rel=1e-4)
    got = model.evaluate(stream(few | more), verbose=0, return_dict=True)
    assert got == pytest.approx(wanted, rel=1e-5)
    changed = few["mask_ids"].copy()
    changed[:, 3:] = 9  # targets of slots without weight
    got = model.evaluate(stream(few | {"mask_ids": changed}), verbose=0, return_dict=True)
    assert got == pytest.approx(wanted, rel=1e-5)


@pytest.mark.one_quick
@pytest.mark.parametrize("next_sentence", [True, False])
def test_accuracy_counts_slots_with_weight_alone(next_sentence):
    """Weights 1 1 0 0; right, wrong, and two that do not matter give one half."""
    model = pretrainer(next_sentence=next_sentence)
    randomize(model)
    positions, weights = np.array([[1, 2, 3, 4]], "int32"), np.array([[1, 1, 0, 0]], "float32")
    given = batch(1, mask_positions=positions, mask_weights=weights, mask_ids=positions)
    guesses = np.asarray(model(BertPretrainer.pack(given)[0])["mlm"]).argmax(-1)
    for last in ([0, 0], [1, 1], [0, 1]):
        given["mask_ids"] = ((guesses + [[0, 1, *last]]) % WORDS).astype("int32")
        result = model.evaluate(stream(given), verbose=0, return_dict=True)
        assert result["mlm_accuracy"] == 0.5


@pytest.mark.thorough
def test_masked_language_model_alone():
    """No weights, output, loss or labels of next sentences."""
    model = pretrainer(next_sentence=False)
    assert not [w.path for w in model.weights if "next_sentence" in w.path]
    given = batch()
    del given["next_sentence_labels"]
    assert set(model(BertPretrainer.pack(given, next_sentence=False)[0])) == {"mlm"}
    history = model.fit(stream(given), verbose=0).history
    assert set(history) == {"loss", "mlm_accuracy", "mlm_perplexity"}
    with_labels = model.evaluate(stream(batch()), verbose=0)  # labels are passed over
    assert model.evaluate(stream(given), verbose=0) == pytest.approx(with_labels)


@pytest.mark.slow
def test_forward_and_backward_compile_with_xla():
    model = pretrainer(dtype="mixed_bfloat16")
    x, y, weights = BertPretrainer.pack(batch())
    losses = model.default_loss()
    fixed = [v.value for v in model.non_trainable_variables]

    def step(trained, x):
        with tf.GradientTape() as tape:
            tape.watch(trained)
            outputs, _ = model.stateless_call(trained, fixed, x, training=True)
            loss = sum(losses[name](y[name], outputs[name], weights[name]) for name in outputs)
        return loss, tape.gradient(loss, trained)

    trained = [tf.convert_to_tensor(v.value) for v in model.trainable_variables]
    x = {name: tf.constant(value) for name, value in x.items()}
    loss, gradients = tf.function(step, jit_compile=True)(trained, x)
    assert np.isfinite(loss) and float(loss) == pytest.approx(np.log(63) + np.log(2), rel=0.05)
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    paths = [v.path for v in model.trainable_variables]
    for path, gradient in zip(paths, gradients, strict=True):
        # A shift of all keys alike does not change a softmax.
        assert path.endswith("key/bias") or abs(np.asarray(gradient)).max() > 0, path


def test_learns_from_a_stream_without_end():
    keras.utils.set_random_seed(1)
    model = pretrainer()
    model.compile(learning_rate=2e-2)
    data = stream(batch(160), 32)
    before = model.evaluate(data, verbose=0, return_dict=True)
    model.fit(data.repeat(), steps_per_epoch=20, epochs=2, validation_data=data, verbose=0)
    after = model.evaluate(data, verbose=0, return_dict=True)
    assert set(after) == {
        "loss",
        "mlm_loss",
        "nsp_loss",
        "mlm_accuracy",
        "mlm_perplexity",
        "nsp_accuracy",
    }
    assert before["loss"] == pytest.approx(np.log(63) + np.log(2), rel=0.05)
    assert after["mlm_loss"] < 0.7 * before["mlm_loss"]
    assert all(np.isfinite(value) for value in after.values())
    assert all(np.isfinite(w).all() for w in model.get_weights())


def test_bfloat16_logits_make_a_float32_loss():
    model = pretrainer(dtype="mixed_bfloat16")
    x, y, weights = BertPretrainer.pack(batch())
    outputs = model(x)
    assert outputs["mlm"].dtype == "bfloat16" and outputs["nsp"].dtype == "float32"
    loss = model.default_loss()["mlm"](y["mlm"], outputs["mlm"], weights["mlm"])
    assert loss.dtype == "float32" and np.isfinite(loss)


def test_pack_gives_the_same_from_arrays_and_in_a_pipeline():
    given = batch()
    triple = BertPretrainer.pack(given)
    assert set(triple[0]) == {"token_ids", "segment_ids", "padding_mask", "mask_positions"}
    np.testing.assert_array_equal(triple[2]["nsp"], np.ones(ROWS, "float32"))
    (mapped,) = stream(given).map(BertPretrainer.pack)
    for mine, theirs in zip(keras.tree.flatten(triple), keras.tree.flatten(mapped), strict=True):
        assert mine.dtype.name == theirs.dtype.name
        np.testing.assert_array_equal(mine, theirs)
    packed = given | {"sequence_ids": given["segment_ids"], "position_ids": given["segment_ids"]}
    assert {"sequence_ids", "position_ids"} < set(BertPretrainer.pack(packed)[0])


@pytest.mark.thorough
def test_bad_batches_are_named():
    model = pretrainer()
    given = batch()
    with pytest.raises(TypeError, match="expected a tf.data.Dataset .* got dict"):
        model.fit(given)
    with pytest.raises(TypeError, match="expected a tf.data.Dataset .* got list"):
        model.evaluate(["a text"])
    without = {name: value for name, value in given.items() if name != "next_sentence_labels"}
    with pytest.raises(ValueError, match=r"missing \['next_sentence_labels'\]"):
        model.fit(stream(without), verbose=0)
    with pytest.raises(ValueError, match="token_ids of dtype int64"):
        model.fit(stream(given | {"token_ids": given["token_ids"].astype("int64")}), verbose=0)
    with pytest.raises(TypeError, match=r"the dataset gives \(x, y\); expected one dict"):
        model.fit(stream(given).map(lambda x: (x, x["mask_ids"])), verbose=0)
    beyond = given | {"mask_positions": given["mask_positions"] + 1}
    with pytest.raises(tf.errors.InvalidArgumentError, match="mask_positions: expected 0 to T - 1"):
        model.evaluate(stream(beyond), verbose=0)


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("token_ids", WORDS, "0 to 62"),  # a record of another vocabulary
        ("mask_ids", WORDS, "0 to 62"),
        ("segment_ids", 2, "0 to 1"),
        ("next_sentence_labels", 2, "0 to 1"),
        ("next_sentence_labels", -1, "0 to 1"),
    ],
)
def test_ids_out_of_range_are_named(name, value, expected):
    given = batch()
    given[name] = np.full_like(given[name], value)
    batches = pretrainer().source(stream(given)).one_pass()
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{name}: expected {expected}"):
        next(iter(batches))


def test_more_tokens_than_positions_are_named():
    model, given = pretrainer(positions=TOKENS - 1), batch()
    message = "token_ids are longer than the 6 positions of the model"
    with pytest.raises(ValueError, match=f"{message}: they have 7 tokens"):
        model.fit(stream(given), verbose=0)
    spec = {name: tf.TensorSpec([None] * v.ndim, v.dtype) for name, v in given.items()}
    unknown = tf.data.Dataset.from_generator(lambda: iter([given]), output_signature=spec)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        next(iter(model.source(unknown).one_pass()))
    positions = np.repeat([np.arange(TOKENS) % 3], ROWS, 0).astype("int32")
    assert next(iter(model.source(stream(given | {"position_ids": positions})).one_pass()))


@pytest.mark.slow
def test_longer_rows_later_keep_weights_and_positions():
    """Phase 2: the position table has all its rows from the start."""
    model = pretrainer(positions=2 * TOKENS)
    table = model.backbone.embeddings.position_table
    before = np.asarray(table).copy()
    model.compile(weight_decay=0.0)
    model.fit(stream(batch()), verbose=0)
    first = np.asarray(table).copy()
    assert (first[:TOKENS] != before[:TOKENS]).any(1).all()
    np.testing.assert_array_equal(first[TOKENS:], before[TOKENS:])  # not used, not trained
    given = batch()
    for name in ("token_ids", "segment_ids", "padding_mask"):
        given[name] = np.concatenate([given[name]] * 2, 1)
    model.fit(stream(given), verbose=0)
    assert (np.asarray(table) != first).any(1).all()
    longer = model(BertPretrainer.pack(given)[0])["mlm"]
    assert longer.shape == (ROWS, SLOTS, WORDS)


@pytest.mark.thorough
@pytest.mark.parametrize("next_sentence", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_metrics_are_weighted_over_batches_of_any_size(next_sentence):
    model = pretrainer(next_sentence=next_sentence)
    randomize(model)
    given = batch(7)
    given["mask_weights"] = np.random.default_rng(2).integers(0, 2, (7, SLOTS)).astype("float32")
    if not next_sentence:
        del given["next_sentence_labels"]
    x, y, weights = BertPretrainer.pack(given, next_sentence)
    wanted, outputs = {}, model(x)
    for name, logits in outputs.items():
        losses = keras.losses.sparse_categorical_crossentropy(y[name], logits, from_logits=True)
        right = np.asarray(logits).argmax(-1) == y[name]
        wanted[f"{name}_loss"] = np.average(losses, weights=weights[name])
        wanted[f"{name}_accuracy"] = np.average(right, weights=weights[name])
    wanted["mlm_perplexity"] = np.exp(wanted["mlm_loss"])
    wanted["loss"] = wanted["mlm_loss"] + wanted.get("nsp_loss", 0)
    if not next_sentence:
        del wanted["mlm_loss"]
    found = model.evaluate(stream(given, 3), verbose=0, return_dict=True)  # of 3, 3 and 1
    assert found == pytest.approx(wanted, rel=1e-4)


def test_predict_needs_no_targets():
    model = pretrainer()
    x = inputs()
    outputs = model.predict(stream(x, 2), verbose=0)
    for name, value in model(x).items():
        np.testing.assert_allclose(outputs[name], value, atol=1e-5)


def save(model, path):
    randomize(model)
    model.save_to_preset(str(path))
    return model(inputs())


def test_a_preset_gives_back_heads_and_backbone(tmp_path):
    model = pretrainer()
    wanted = save(model, tmp_path / "preset")
    again = BertPretrainer.from_preset(tmp_path / "preset")
    assert not again.loading_report.new
    assert sorted(again.loading_report.loaded) == sorted(w.path for w in again.weights)
    for name, value in again(inputs()).items():
        np.testing.assert_array_equal(value, wanted[name])
    fresh = BertPretrainer.from_preset(tmp_path / "preset", load_weights=False)
    assert abs(fresh(inputs())["mlm"] - wanted["mlm"]).numpy().max() > 1e-2


@pytest.mark.parametrize("saved", [True, False])
def test_the_next_sentence_head_can_be_left_out_or_added(tmp_path, caplog, saved):
    wanted = save(pretrainer(next_sentence=saved), tmp_path / "preset")
    assert BertPretrainer.from_preset(tmp_path / "preset").has_next_sentence is saved
    caplog.clear()
    again = BertPretrainer.from_preset(tmp_path / "preset", next_sentence=not saved)
    outputs = again(inputs())
    np.testing.assert_array_equal(outputs["mlm"], wanted["mlm"])
    assert ("nsp" in outputs) is not saved
    new = [] if saved else [w.path for w in again.next_sentence_head.weights]
    assert again.loading_report.new == new
    assert bool(caplog.records) is not saved


def test_a_bare_backbone_gets_new_heads(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "keras_bert")
    backbone = pretrainer().backbone
    backbone.save_to_preset(str(tmp_path / "preset"))
    model = BertPretrainer.from_preset(tmp_path / "preset", dtype="mixed_bfloat16")
    assert len(model.loading_report.new) == 7 and "masked_lm_head" in caplog.text
    assert model(inputs())["mlm"].dtype == "bfloat16"


@pytest.mark.slow
def test_keras_file_goes_on_training(tmp_path):
    model = pretrainer()
    model.fit(stream(batch()), verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    for name, value in again(inputs()).items():
        np.testing.assert_array_equal(value, model(inputs())[name])
    table = again.backbone.embeddings.word.embeddings
    before = np.asarray(table).copy()
    history = again.fit(stream(batch()), verbose=0).history
    assert "mlm_accuracy" in history and abs(np.asarray(table) - before).max() > 0


@pytest.mark.slow
def test_a_frozen_table_stays():
    model = pretrainer()
    model.backbone.freeze(0)
    model.compile(learning_rate=1e-2)
    before = np.asarray(model.backbone.embeddings.word.embeddings).copy()
    model.fit(stream(batch()), verbose=0)
    np.testing.assert_array_equal(model.backbone.embeddings.word.embeddings, before)
    assert np.asarray(model.masked_lm_head.output_bias).any()


# === Texts ===

VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] rain falls and the boat ##s go home".split()
TOKENIZER = BertTokenizer(VOCABULARY)


def with_texts(length=TOKENS, **kwargs):
    return pretrainer(preprocessor=BertMaskedLMPreprocessor(TOKENIZER, length), **kwargs)


@pytest.mark.slow
def test_next_sentence_is_the_share_of_class_0():
    """Class 0, it is the next; class 1, it is a random one."""
    model = with_texts()
    randomize(model)
    firsts = ["rain falls", "the boat", "rain", "the boats go"]
    seconds = ["the boats go home", "go", "", "and rain falls"]
    x = {name: value.numpy() for name, value in model.preprocessor((firsts, seconds)).items()}
    nsp = np.asarray(model(x | {"mask_positions": np.zeros((4, 1), "int32")})["nsp"])
    wanted = np.exp(nsp[:, 0]) / np.exp(nsp).sum(1)
    found = model.next_sentence(firsts, seconds)
    assert found.shape == (4,) and found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    np.testing.assert_allclose(model.next_sentence(firsts, seconds, 3), wanted, rtol=1e-4)
    alone = model.next_sentence(firsts[0], seconds[0])
    assert isinstance(alone, float) and alone == pytest.approx(wanted[0], rel=1e-4)
    assert model.next_sentence([], []).shape == (0,)
    model.next_sentence_head.dense.kernel.assign(np.zeros((HIDDEN, 2)))
    for bias, probability in (([200, -200], 1), ([-200, 200], 0), ([0, np.log(3)], 0.25)):
        model.next_sentence_head.dense.bias.assign(bias)
        assert model.next_sentence("rain", "falls") == pytest.approx(probability, abs=1e-6)


@pytest.mark.thorough
def test_fill_is_that_of_the_masked_language_model():
    model = with_texts(dtype="mixed_bfloat16")
    (candidates,) = model.fill("the [MASK] go home", top_k=len(VOCABULARY))
    assert sum(c.score for c in candidates) == pytest.approx(1, abs=1e-5)
    assert {c.token for c in candidates} == set(VOCABULARY)


def test_verbs_that_a_model_lacks():
    model = pretrainer()
    for verb, arguments in (("fill", ["[MASK]"]), ("next_sentence", ["rain", "falls"])):
        with pytest.raises(ValueError, match="BertPretrainer has no preprocessor, whose token"):
            getattr(model, verb)(*arguments)
    with pytest.raises(ValueError, match="made with next_sentence=False"):
        with_texts(next_sentence=False).next_sentence("rain", "falls")
    model = with_texts()
    with pytest.raises(ValueError, match="2 first texts but 1 second"):
        model.next_sentence(["rain", "falls"], ["and"])
    with pytest.raises(TypeError, match="tuple of strings is ambiguous"):
        model.next_sentence("rain", ["falls"])
    with pytest.raises(TypeError, match="expected a tf.data.Dataset .* got list"):
        model.fit(["rain falls"])
    with pytest.raises(TypeError, match="expected a tf.data.Dataset .* got texts in"):
        model.fit(tf.data.Dataset.from_tensor_slices(["rain falls"]).batch(1))
    with pytest.raises(ValueError, match="sequence_length=8 exceeds the backbone's 7"):
        with_texts(8)


@pytest.mark.slow
def test_without_next_sentences_texts_are_masked():
    model = with_texts(next_sentence=False)
    loss, *_ = model.evaluate(["rain falls", "the boats go home"], verbose=0)
    assert loss == pytest.approx(np.log(WORDS), rel=0.05)


@pytest.mark.thorough
def test_a_preset_keeps_the_text_side(tmp_path):
    model = with_texts()
    randomize(model)
    model.save_to_preset(str(tmp_path / "preset"))
    again = BertPretrainer.from_preset(tmp_path / "preset")
    assert again.next_sentence("rain", "the boat") == model.next_sentence("rain", "the boat")
    assert again.preprocessor.sequence_length == TOKENS
    shorter = BertPretrainer.from_preset(
        tmp_path / "preset", next_sentence=False, sequence_length=5
    )
    assert shorter.preprocessor.sequence_length == 5 and not shorter.has_next_sentence


@pytest.mark.slow
def test_a_classifier_takes_the_backbone(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "keras_bert")
    model = with_texts()
    randomize(model)
    model.save_to_preset(str(tmp_path / "preset"))
    classifier = BertClassifier.from_preset(tmp_path / "preset", num_classes=3)
    for mine, theirs in zip(classifier.backbone.weights, model.backbone.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert classifier.loading_report.new == ["head/kernel", "head/bias"]
    assert not classifier.loading_report.left_over
    (record,) = caplog.records
    assert record.getMessage().endswith("weights loaded; newly initialised: head/kernel, head/bias")
    assert classifier.predict(["rain falls"], verbose=0).shape == (1, 3)


def test_sizes_take_any_vocabulary():
    backbone = BertBackbone.from_size("mini", vocabulary_size=8192)
    assert backbone.vocabulary_size == 8192
    for name, value in SIZES["mini"].items():
        assert getattr(backbone, name) == value
