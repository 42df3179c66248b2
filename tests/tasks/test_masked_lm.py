"""The masked language model: filling in, training on texts, presets."""

import logging
from pathlib import Path

import keras
import numpy as np
import pytest
import scipy.special
import tensorflow as tf

from keras_bert import (
    BertBackbone,
    BertClassifier,
    BertClassifierPreprocessor,
    BertMaskedLM,
    BertMaskedLMPreprocessor,
    BertPretrainer,
    BertTokenizer,
)
from keras_bert.metrics import minimal_pairs
from keras_bert.tasks.masked_lm import put_in
from keras_bert.text.prompts import MASK
from keras_bert.training import Resume

TINY = Path(__file__).parents[1] / "golden" / "tiny_hf"
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] paris london rome is the capital of france england".split()
WORDS += "italy big city ##s . a".split()
TOKENIZER = BertTokenizer(WORDS)  # one, since each makes graphs of its own at its first text
PAIRS = {"paris": "france", "london": "england", "rome": "italy"}
TEXTS = [f"{city} is the capital of {land}." for city, land in PAIRS.items()]


def masked_lm(length=12, table=20, dtype=None, masking=None, hidden=8, **kwargs):
    backbone = BertBackbone(
        table, 1, 2, hidden, 12, max_sequence_length=16, hidden_dropout=0, dtype=dtype, **kwargs
    )
    text_side = BertMaskedLMPreprocessor(TOKENIZER, length, masking=masking)
    model = BertMaskedLM(backbone, text_side)
    rng = np.random.default_rng(3)
    for weight in model.trainable_weights:
        if weight.path.endswith(("kernel", "embeddings", "table", "output_bias")):
            weight.assign(rng.normal(0, 0.4, weight.shape))
    return model


@pytest.fixture(scope="module")
def untrained():
    return masked_lm()


def tokens(candidates):
    return [candidate.token for candidate in candidates]


# === fill ===


@pytest.mark.slow
def test_learns_to_fill_from_texts():
    keras.utils.set_random_seed(1)
    model = masked_lm(hidden=16)
    model.compile(learning_rate=1e-2)
    texts = ["Paris is the capital of France.", "London, a big city."]
    pooler = model.backbone.pooler.get_weights()
    model.fit(texts * 16, batch_size=16, epochs=80, verbose=0)
    # Nothing trains it here, so it must not decay either.
    np.testing.assert_array_equal(model.backbone.pooler.get_weights()[0], pooler[0])
    for text in texts:
        for word in text.lower().rstrip(".").replace(",", "").split():
            hidden = text.lower().replace(f"{word}", "[MASK]", 1)
            ((best, *others),) = model.fill(hidden)
            assert (best.token, best.id) == (word, WORDS.index(word)) and len(others) == 4
            assert best.text == text.lower() and best.score > others[0].score
    result = model.evaluate(texts, verbose=0, return_dict=True)
    assert result["mlm_accuracy"] == 1 and result["mlm_perplexity"] < 1.5


@pytest.mark.thorough
def test_candidates_are_the_softmax_of_the_logits(untrained):
    text = "[MASK] is [MASK] city"
    ids = [[2, 4, 8, 4, 16, 3]]
    x = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}
    x = {name: np.asarray(v, "int32") for name, v in x.items()}
    logits = np.asarray(untrained(x | {"mask_positions": np.array([[1, 3]], "int32")})["mlm"][0])
    softmax = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    found = untrained.fill(text, top_k=len(WORDS))
    assert len(found) == 2
    for candidates, wanted in zip(found, softmax, strict=True):
        order = np.argsort(-wanted)
        assert [c.id for c in candidates] == order.tolist()
        np.testing.assert_allclose([c.score for c in candidates], wanted[order], rtol=1e-4)
        assert tokens(candidates) == [WORDS[i] for i in order]
    assert tokens(untrained.fill(text, top_k=3)[1]) == tokens(found[1][:3])


@pytest.mark.thorough
def test_targets_are_the_only_candidates(untrained):
    """Scores are those that all tokens share, as transformers' pipeline has it."""
    text = "[MASK] is [MASK] city"
    every = untrained.fill(text, top_k=len(WORDS))
    targets = ["Paris", "city", "is", "a"]
    found = untrained.fill([text], targets=targets)[0]
    for candidates, wanted in zip(found, every, strict=True):
        kept = [c for c in wanted if c.token in [t.lower() for t in targets]]
        assert candidates == kept and len(kept) == 4
    assert untrained.fill(text, 2, targets=targets)[1] == found[1][:2]
    for wrong, message in (
        (["is", "paris city"], r"targets\[1\]='paris city': expected one token, got 'paris city'"),
        (["qqq"], r"targets\[0\]='qqq': expected one token, got '\[UNK\]'"),
        ([""], r"targets\[0\]=''"),
    ):
        with pytest.raises(ValueError, match=message):
            untrained.fill(text, targets=wrong)
    with pytest.raises(ValueError, match="top_k=3: expected 1 to 2, the targets"):
        untrained.fill(text, 3, targets=["is", "city"])
    with pytest.raises(TypeError, match="expected a list of tokens, not a string"):
        untrained.fill(text, targets="city")


@pytest.mark.thorough
def test_an_export_keeps_its_targets(untrained, tmp_path):
    untrained.export(tmp_path / "served", targets=["city", "is", "paris"])
    serve = tf.saved_model.load(tmp_path / "served").signatures["serving_default"]
    found = serve(text=tf.constant(["the [MASK]"]))
    ((*expected,),) = untrained.fill("the [MASK]", targets=["city", "is", "paris"])
    assert [t.decode() for t in found["token"].numpy()[0, 0]] == tokens(expected)
    np.testing.assert_allclose(found["score"][0, 0], [c.score for c in expected], rtol=1e-4)


@pytest.mark.thorough
def test_texts_keep_their_order_and_any_batch_size(untrained):
    texts = [
        "[MASK]",
        "Paris is [MASK] big . " + "the " * 7,
        "The [MASK] of the [MASK]",
        "a [MASK]",
    ]
    together = untrained.fill(texts, top_k=4)
    assert [len(found) for found in together] == [1, 1, 2, 1]
    for batch_size in (1, 3):
        again = untrained.fill(texts, top_k=4, batch_size=batch_size)
        for found, wanted in zip(again, together, strict=True):
            for candidates, others in zip(found, wanted, strict=True):
                assert [c.text for c in candidates] == [c.text for c in others]
                np.testing.assert_allclose(
                    [c.score for c in candidates], [c.score for c in others], rtol=1e-4
                )
    assert untrained.fill([]) == []
    assert untrained.fill(texts[0].encode(), top_k=2) == untrained.fill(texts[0], top_k=2)


def test_many_texts_in_parts(untrained, monkeypatch):
    texts = [" ".join(["the"] * n + ["[MASK]"]) for n in (5, 1, 3, 0, 7)]
    wanted = untrained.fill(texts, top_k=2)
    monkeypatch.setattr(BertMaskedLM, "at_once", 2)
    found = untrained.fill(texts, top_k=2, batch_size=1)
    assert [tokens(c) for f in found for c in f] == [tokens(c) for f in wanted for c in f]


@pytest.mark.thorough
def test_the_window_of_a_long_text_decides(untrained):
    words = ["big"] * 9 + ["[MASK]"] + ["city"] * 9
    ((wanted,),) = [untrained.fill(" ".join(words[4:14]), top_k=4)]
    (found,) = untrained.fill(" ".join(words), top_k=4)
    assert tokens(found) == tokens(wanted)
    np.testing.assert_allclose([c.score for c in found], [c.score for c in wanted], rtol=1e-4)
    assert found[0].text == " ".join(words).replace("[MASK]", found[0].token)
    both = untrained.fill("[MASK] " + "the " * 30 + "[MASK]", top_k=1)
    assert len(both) == 2 and both[1][0].text.startswith("[MASK] the")


@pytest.mark.parametrize(
    ("text", "mask", "token", "wanted"),
    [
        ("A [MASK], a [MASK].", 0, "cat", "A cat, a [MASK]."),
        ("A [MASK], a [MASK].", 1, "cat", "A [MASK], a cat."),
        ("The city [MASK] [MASK]", 0, "##s", "The citys [MASK]"),
        ("[MASK]", 0, "##s", "s"),
        ("\u00c9[MASK][MASK]\u4e2d", 1, "[UNK]", "\u00c9[MASK][UNK]\u4e2d"),
    ],
)
def test_a_token_in_place(text, mask, token, wanted):
    assert put_in(text, mask, token) == wanted


@pytest.mark.thorough
def test_a_table_with_spare_rows_and_half_precision():
    model = masked_lm(table=32, dtype="mixed_bfloat16")
    model.masked_lm_head.output_bias.assign(np.arange(32) / 4.0)  # spare rows would win
    ((*candidates,),) = model.fill("the [MASK]", top_k=len(WORDS))
    assert sorted(c.id for c in candidates) == list(range(len(WORDS)))
    # bfloat16 has three digits; a sum of float32 probabilities has more.
    assert sum(c.score for c in candidates) == pytest.approx(1, abs=1e-5)
    with pytest.raises(ValueError, match="top_k=21: expected 1 to 20"):
        model.fill("the [MASK]", top_k=21)


def test_wrong_prompts_are_named(untrained):
    with pytest.raises(ValueError, match=r"texts\[1\] has no \[MASK\] to fill in: 'no mask'"):
        untrained.fill(["[MASK]", "no mask"])
    for top_k in (0, -1, 2.0):
        with pytest.raises(ValueError, match=f"top_k={top_k}: expected 1 to 20"):
            untrained.fill("[MASK]", top_k=top_k)
    with pytest.raises(TypeError, match=r"texts\[0\]=3 of type int"):
        untrained.fill([3])
    with pytest.raises(ValueError, match="this BertMaskedLM has no preprocessor, whose token"):
        BertMaskedLM(untrained.backbone).fill("[MASK]")


# === predict ===


@pytest.mark.slow
def test_predict_takes_ids(untrained):
    ids = np.array([[2, 5, 4, 3]] * 3, "int32")
    x = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids // ids}
    with pytest.raises(ValueError, match="ids lack mask_positions"):
        untrained.predict(x, verbose=0)
    with pytest.raises(ValueError, match="mask_positions from 2 to 4: expected 0 to 3"):
        untrained.predict(x | {"mask_positions": ids[:, 1:2] * 0 + [[2, 4]]}, verbose=0)
    x["mask_positions"] = np.array([[2], [1], [0]], "int32")
    np.testing.assert_allclose(
        untrained.predict(x, 2, verbose=0)["mlm"], untrained(x)["mlm"], atol=1e-5
    )
    with pytest.raises(TypeError, match="predict takes ids .*got list: for texts .* call fill"):
        untrained.predict(["a text"])
    with pytest.raises(TypeError, match="predict takes ids"):
        untrained.predict(tf.data.Dataset.from_tensor_slices(["a text"]).batch(1))


# === fit and evaluate on texts ===


def test_batches_are_masked_rows_of_the_texts(untrained):
    texts = [*TEXTS, "a big city", "the"]
    batches = untrained.source(texts, batch_size=2).one_pass()
    assert int(batches.cardinality()) == 3
    x, y, weights = (
        {name: np.concatenate([v.numpy() for v in values]) for name, values in part.items()}
        for part in (
            {name: [batch[i][name] for batch in batches] for name in batches.element_spec[i]}
            for i in range(3)
        )
    )
    assert x["token_ids"].shape == (5, 12) and y["mlm"].shape == (5, 2)  # ceil(0.15 * 12)
    whole = untrained.preprocessor.rows_to_mask(texts)["token_ids"].numpy()
    restored = x["token_ids"].copy()
    for row, (positions, ids, row_weights) in enumerate(
        zip(x["mask_positions"], y["mlm"], weights["mlm"], strict=True)
    ):
        for position, id, weight in zip(positions, ids, row_weights, strict=True):
            assert weight in (0, 1) and (weight == 1 or id == position == 0)
            if weight:
                restored[row, position] = id
    np.testing.assert_array_equal(restored, whole)
    assert (weights["mlm"].sum(1) >= 1).all()


@pytest.mark.slow
def test_evaluate_has_fixed_masks_whatever_the_batches(untrained):
    texts = TEXTS * 3 + ["a big city"]
    wanted = untrained.evaluate(texts, verbose=0)
    assert wanted[2] == pytest.approx(np.exp(wanted[0]), rel=1e-4)
    assert untrained.evaluate(texts, batch_size=3, verbose=0) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.thorough
def test_weights_of_texts_and_texts_without_words(untrained):
    """A row without a token to mask gives no loss, and no NaN."""
    wanted = untrained.evaluate(TEXTS, verbose=0)
    more = [*TEXTS, "paris", ""]
    found = untrained.evaluate(more, sample_weight=[1, 1, 1, 0, 1], verbose=0)
    assert found == pytest.approx(wanted, rel=1e-5)
    assert untrained.evaluate([""], verbose=0)[0] == 0


def test_epochs_have_masks_of_their_own_and_come_again(untrained):
    """Fresh masks every epoch, the same from the same seed."""

    def masked(**kwargs):
        batches = untrained.source(TEXTS * 4, batch_size=4, **kwargs).stream().take(6)
        return np.concatenate([x["token_ids"] for x, _, _ in batches])

    found = masked()
    assert (found[:12] != found[12:]).any(1).mean() > 0.5
    np.testing.assert_array_equal(masked(), found)
    assert (masked(seed=1) != found).any()
    assert sorted(map(tuple, masked(shuffle=True))) != sorted(map(tuple, found))


class StopAt(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if self.model.run.done == 4:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_a_resumed_run_sees_the_same_masks(tmp_path):
    weights = []
    for stops in (False, True):
        keras.utils.set_random_seed(5)
        model = masked_lm()
        kwargs = {"batch_size": 4, "epochs": 2, "verbose": 0}
        if stops:
            resume = Resume(tmp_path / "run", every_steps=2)
            with pytest.raises(KeyboardInterrupt):
                model.fit(TEXTS * 4, callbacks=[resume, StopAt()], **kwargs)
            model = masked_lm()
            kwargs["callbacks"] = [Resume(tmp_path / "run", every_steps=2)]
        model.fit(TEXTS * 4, **kwargs)
        assert model.run.done == 6
        weights.append(model.get_weights())
    for a, b in zip(*weights, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_validation_on_texts():
    model = masked_lm()
    kwargs = {"batch_size": 3, "verbose": 0}
    history = model.fit(TEXTS * 2, validation_split=0.5, **kwargs).history
    assert set(history) == {
        *("loss", "mlm_accuracy", "mlm_perplexity"),
        *("val_loss", "val_mlm_accuracy", "val_mlm_perplexity"),
    }
    assert model.run.done == 1
    model.fit(TEXTS, validation_data=(TEXTS, None, [1, 0, 1]), **kwargs)
    wanted = model.evaluate(TEXTS, sample_weight=[1, 0, 1], verbose=0)[0]
    assert model.history.history["val_loss"][0] == pytest.approx(wanted, rel=1e-5)


@pytest.mark.slow
def test_datasets_of_texts_and_pairs():
    model = masked_lm()
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2)
    unknown = dataset.filter(lambda _: True)
    model.fit(unknown, steps_per_epoch=2, epochs=2, verbose=0)
    assert model.run.done == 4
    with pytest.raises(ValueError, match="does not say its size.*pass steps_per_epoch"):
        model.fit(unknown, verbose=0)
    for x in (
        (["a city"], ["the capital"]),
        tf.data.Dataset.from_tensor_slices(((["a city"], ["the capital"]),)).batch(1),
    ):
        ((ids, _, weights),) = model.source(x).one_pass()
        np.testing.assert_array_equal(ids["segment_ids"], [[0] * 4 + [1] * 3 + [0] * 5])
        assert weights["mlm"].numpy().sum() == 1


@pytest.mark.thorough
def test_masking_is_the_preprocessors(untrained):
    model = masked_lm(masking={"rate": 0.5, "mask_share": 1.0, "random_share": 0.0})
    ((x, y, weights),) = model.source(TEXTS).one_pass()
    assert y["mlm"].shape == (3, 6)
    assert weights["mlm"].numpy().sum(1).tolist() == [4, 4, 4]  # of 9: halves go to even
    assert (x["token_ids"].numpy() == WORDS.index("[MASK]")).sum() == 12
    with pytest.raises(TypeError, match="rates"):
        masked_lm(masking={"rates": 0.5}).fit(TEXTS, verbose=0)
    text_side = BertClassifierPreprocessor(TOKENIZER, 12, "bucket")
    plain = BertMaskedLM(untrained.backbone, text_side)
    ((x, *_),) = plain.source(TEXTS).one_pass()
    ((wanted, *_),) = untrained.source(TEXTS).one_pass()
    np.testing.assert_array_equal(x["token_ids"], wanted["token_ids"])
    assert len(plain.fill("[MASK]")[0]) == 5


def test_wrong_data_is_named(untrained):
    with pytest.raises(TypeError, match="expected no labels, got y of type list"):
        untrained.fit(TEXTS, [0, 1, 0])
    with pytest.raises(TypeError, match="expected no labels, got y"):
        untrained.fit(TEXTS, validation_data=(TEXTS, [0, 1, 0]))
    with pytest.raises(TypeError, match="expected texts or a tf.data.Dataset .* got dict"):
        untrained.fit({"token_ids": np.zeros((1, 2), "int32")})
    with pytest.raises(TypeError, match="expected texts or a tf.data.Dataset .* got NoneType"):
        untrained.evaluate()
    with pytest.raises(TypeError, match=r"texts\[1\]=nan"):
        untrained.fit(["a", float("nan")])
    with pytest.raises(ValueError, match="there are no texts"):
        untrained.fit([], verbose=0)
    singles = tf.data.Dataset.from_tensor_slices(TEXTS)
    with pytest.raises(ValueError, match="the dataset gives single texts: .* add .batch"):
        untrained.fit(singles, verbose=0)
    pairs = tf.data.Dataset.from_tensor_slices((TEXTS, TEXTS)).batch(2)
    with pytest.raises(TypeError, match="with texts as x: expected texts alone"):
        untrained.fit(pairs, verbose=0)
    with pytest.raises(ValueError, match="class_weight is not supported"):
        untrained.fit(TEXTS, class_weight={0: 1}, verbose=0)
    with pytest.raises(ValueError, match="has no preprocessor, whose token"):
        BertMaskedLM(untrained.backbone).fit(TEXTS)
    text_side = BertMaskedLMPreprocessor(BertTokenizer(WORDS[:4] + WORDS[5:]), 12)
    with pytest.raises(ValueError, match=r"\[MASK\]"):
        BertMaskedLM(untrained.backbone, text_side).fit(TEXTS, verbose=0)
    with pytest.raises(ValueError, match="sequence_length=17 exceeds the backbone's 16"):
        masked_lm(length=17)


# === presets ===


def assert_same_weights(model, other):
    for part in ("backbone", "masked_lm_head"):
        mine, theirs = getattr(model, part).weights, getattr(other, part).weights
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=a.path)


@pytest.mark.thorough
def test_a_preset_gives_back_all(tmp_path):
    model = masked_lm(masking={"unit": "word"})
    model.save_to_preset(str(tmp_path / "preset"))
    again = BertMaskedLM.from_preset(tmp_path / "preset")
    assert not again.loading_report.new
    assert sorted(again.loading_report.loaded) == sorted(w.path for w in again.weights)
    assert again.fill("the [MASK]") == model.fill("the [MASK]")
    text_side = again.preprocessor
    assert (text_side.sequence_length, text_side.padding) == (12, "bucket")
    assert text_side.masking == {"unit": "word"}
    other = BertMaskedLM.from_preset(
        tmp_path / "preset", sequence_length=9, padding="full", dtype="mixed_bfloat16"
    )
    assert (other.preprocessor.sequence_length, other.preprocessor.padding) == (9, "full")
    assert other.masked_lm_head.compute_dtype == "bfloat16"
    with pytest.raises(ValueError, match="sequence_length=17 exceeds"):
        BertMaskedLM.from_preset(tmp_path / "preset", sequence_length=17)
    fresh = BertMaskedLM.from_preset(tmp_path / "preset", load_weights=False)
    kernels = [m.masked_lm_head.dense.kernel for m in (again, fresh)]
    assert (np.asarray(kernels[0]) != np.asarray(kernels[1])).all()
    model.optimizer.build(model.trainable_variables)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_same_weights(model, loaded)
    assert loaded.preprocessor.masking == {"unit": "word"}


@pytest.mark.parametrize("next_sentence", [True, False])
def test_the_head_of_a_pretrainer(tmp_path, caplog, next_sentence):
    model = masked_lm()
    pretrainer = BertPretrainer(model.backbone, next_sentence, model.preprocessor)
    pretrainer.save_to_preset(str(tmp_path / "preset"))
    again = BertMaskedLM.from_preset(tmp_path / "preset")
    assert not caplog.records and not again.loading_report.new
    assert_same_weights(pretrainer, again)


@pytest.mark.parametrize("next_sentence", [None, True])
def test_a_pretrainer_of_a_masked_language_model(tmp_path, next_sentence):
    model = masked_lm()
    model.save_to_preset(str(tmp_path / "preset"))
    again = BertPretrainer.from_preset(tmp_path / "preset", next_sentence=next_sentence)
    assert again.has_next_sentence is bool(next_sentence)
    assert_same_weights(model, again)
    new = again.next_sentence_head.weights if next_sentence else []
    assert again.loading_report.new == [weight.path for weight in new]


@pytest.mark.thorough
def test_other_forms_get_a_new_head(caplog):
    caplog.set_level(logging.WARNING, "keras_bert")
    model = BertMaskedLM.from_preset(TINY)
    assert model.loading_report.new == [w.path for w in model.masked_lm_head.weights]
    assert len(model.loading_report.new) == 5
    assert "newly initialised: masked_lm_head" in caplog.text
    backbone = BertClassifier.from_preset(TINY).backbone
    for a, b in zip(model.backbone.weights, backbone.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    size = model.preprocessor.tokenizer.vocabulary_size()
    assert len(model.fill("the [MASK]", top_k=size)[0]) == size


# === score ===


def log_probs_in_float64(model, ids, causal=False):
    """log P of each token of a text by the model's weights, a loop over tokens in NumPy's float64.

    The network is written out here: of one row without padding, one head at a time, at dropout 0.
    """
    w = {x.path: np.asarray(x, "float64") for x in model.weights}
    cls, sep, mask = (model.preprocessor.tokenizer.token_to_id(t) for t in ("[CLS]", "[SEP]", MASK))

    def dense(x, name):
        return x @ w[f"{name}/kernel"] + w[f"{name}/bias"]

    def norm(x, name, epsilon=1e-12):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon)
        return x * w[f"{name}/gamma"] + w[f"{name}/beta"]

    def gelu(x):
        return 0.5 * x * (1 + scipy.special.erf(x / np.sqrt(2)))

    words = w["embeddings/word/embeddings"]

    def logits(row, at):
        x = (
            words[row]
            + w["embeddings/position_table"][: len(row)]
            + w["embeddings/segment_table"][0]
        )
        x = norm(x, "embeddings/layer_norm")
        q, k, v = (dense(x, f"block_0/attention/{name}") for name in ("query", "key", "value"))
        parts = []
        for head in np.split(np.arange(q.shape[1]), model.backbone.num_heads):
            scores = q[:, head] @ k[:, head].T / np.sqrt(len(head))
            if causal:
                scores = np.where(np.tri(len(row), dtype=bool), scores, -np.inf)
            scores = np.exp(scores - scores.max(1, keepdims=True))
            parts.append(scores / scores.sum(1, keepdims=True) @ v[:, head])
        x = norm(
            x + dense(np.concatenate(parts, 1), "block_0/attention/output"),
            "block_0/attention_norm",
        )
        y = dense(gelu(dense(x, "block_0/intermediate")), "block_0/feedforward_output")
        x = norm(x + y, "block_0/feedforward_norm")[at]
        x = norm(gelu(dense(x, "masked_lm_head/dense")), "masked_lm_head/layer_norm")
        return (x @ words.T + w["masked_lm_head/output_bias"])[: len(WORDS)]

    found = []
    for place, token in enumerate(ids):
        row = [cls, *ids, sep]
        if not causal:
            row[place + 1] = mask
        values = logits(row, place if causal else place + 1)
        found.append(values[token] - scipy.special.logsumexp(values))
    return found


@pytest.mark.parametrize("causal", [False, True])
def test_score_is_that_of_a_loop_in_float64(causal):
    model = masked_lm(table=25, causal=causal)  # more rows than tokens
    texts = ["paris is the capital of france.", "", "rome", "a big city", "nowhere is"]
    found = model.score(texts, batch_size=3)
    assert [len(score.tokens) for score in found] == [7, 0, 1, 3, 2]
    assert found[0].tokens == "paris is the capital of france .".split()
    assert found[4].tokens == ["[UNK]", "is"]
    for score in found:
        ids = [WORDS.index(token) for token in score.tokens]
        wanted = log_probs_in_float64(model, ids, causal)
        np.testing.assert_allclose(score.log_probs, wanted, rtol=0, atol=2e-6)
        assert score.total == pytest.approx(sum(wanted), abs=1e-5)
    single = model.score(texts[0])
    np.testing.assert_allclose(single.log_probs, found[0].log_probs, rtol=0, atol=1e-6)
    assert model.score([]) == []


def test_long_texts_are_scored_in_windows():
    rng = np.random.default_rng(0)
    words = [str(w) for w in rng.choice(WORDS[5:15], 23)]
    ids = [WORDS.index(word) for word in words]
    room = 10  # tokens of a row of 12
    model = masked_lm(length=12)
    (found,) = model.score([" ".join(words)])
    assert found.tokens == words
    for place in range(23):  # in the middle of its window, or as close as the ends allow
        start = min(max(place - 5, 0), 23 - room)
        window = ids[start : start + room]
        wanted = log_probs_in_float64(model, window)[place - start]
        assert found.log_probs[place] == pytest.approx(wanted, abs=2e-6)
    model = masked_lm(length=12, causal=True)
    (found,) = model.score([" ".join(words)])
    windows = [(0, 0, 10), (5, 10, 15), (10, 15, 20), (15, 20, 23)]
    for start, begin, end in windows:
        wanted = log_probs_in_float64(model, ids[start:end], causal=True)[begin - start :]
        np.testing.assert_allclose(found.log_probs[begin:end], wanted, rtol=0, atol=2e-6)


def test_a_causal_model_scores_and_does_not_fill():
    model = masked_lm(causal=True)
    with pytest.raises(ValueError, match="causal backbone predicts the next token"):
        model.fill("the [MASK]")
    model.compile()
    with pytest.raises(TypeError, match="expected a tf.data.Dataset of batches"):
        model.fit(TEXTS)
    with pytest.raises(TypeError):
        model.score([3])


def test_minimal_pairs_by_a_model(untrained):
    pairs = [{"good": TEXTS[0], "bad": TEXTS[0].replace("is", "of"), "paradigm": "verb"}]
    good, bad = (untrained.score(pairs[0][side]).total for side in ("good", "bad"))
    assert minimal_pairs(untrained, pairs)["accuracy"] == float(good > bad)
