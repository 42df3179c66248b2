"""Several texts in one row of the encoder: outputs, losses and gradients are those of the texts."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import (
    BertBackbone,
    BertClassifier,
    BertClassifierPreprocessor,
    BertMaskedLM,
    BertMaskedLMPreprocessor,
    BertPretrainer,
    BertQuestionAnswerer,
    BertQuestionAnswererPreprocessor,
    BertTextEmbedder,
    BertTokenClassifier,
    BertTokenizer,
)
from keras_bert.data.packed_rows import PackedSource
from keras_bert.tasks import BertTask
from keras_bert.tasks import task as tasks_task
from keras_bert.training import AdamW, strategy

WORDS = "rain wind storm harbour boats calm sun sea".split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]


def backbone(**settings):
    keras.utils.set_random_seed(2)
    settings = {"hidden_dropout": 0.0, "attention_dropout": 0.0} | settings
    return BertBackbone(len(VOCABULARY), 1, 2, 12, 20, max_sequence_length=32, **settings)


def preprocessor():
    return BertClassifierPreprocessor(BertTokenizer(VOCABULARY), sequence_length=32)


def texts(count, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.geometric(0.2))) for _ in range(count)]


def ids(count, seed=0):
    rng = np.random.default_rng(seed)
    lengths = np.minimum(rng.geometric(0.15, count), 16)
    mask = (np.arange(16) < lengths[:, None]).astype("int32")
    tokens = rng.integers(5, len(VOCABULARY), mask.shape).astype("int32") * mask
    return {"token_ids": tokens, "segment_ids": mask * (tokens % 2), "padding_mask": mask}


def pair_of(make):
    """The same model twice, the second one packing."""
    models = []
    for packing in (False, True):
        model = make()
        model.compile(AdamW(1e-2), packing=packing)
        models.append(model)
    return models


def classifier(**settings):
    return BertClassifier(backbone(), preprocessor=preprocessor(), dropout=0.0, **settings)


class TwoOutputs(BertTask):
    """The length of a text as a class and as a number."""

    backbone_cls, preprocessor_cls = BertBackbone, BertClassifierPreprocessor
    output_kind = {"class": "classes", "number": "numbers"}

    def __init__(self, backbone, preprocessor=None, **kwargs):
        self.backbone, self.preprocessor = backbone, preprocessor
        pooled = self.encode(backbone.input)["pooled_output"]
        heads = {"class": 3, "number": 1}
        outputs = {
            n: keras.layers.Dense(k, name=n, dtype="float32")(pooled) for n, k in heads.items()
        }
        super().__init__(inputs=backbone.input, outputs=outputs, **kwargs)

    def default_loss(self):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return {"class": loss, "number": keras.losses.MeanSquaredError()}

    def default_metrics(self):
        return None

    def encode_labels(self, y):
        return {
            "class": np.asarray(y["class"], "int32"),
            "number": np.asarray(y["number"], "float32"),
        }


def test_labels_of_several_outputs(eager):
    plain, packing = pair_of(lambda: TwoOutputs(backbone(), preprocessor()))
    rows = texts(23)
    lengths = np.array([len(text.split()) for text in rows])
    labels = {"class": np.minimum(lengths, 5) // 2, "number": lengths / 8}
    found, wanted = (
        m.evaluate(rows, labels, verbose=0, return_dict=True) for m in (packing, plain)
    )
    assert {"class_loss", "number_loss"} <= {*found}
    np.testing.assert_allclose([found[n] for n in wanted], [*wanted.values()], rtol=1e-5)


def test_texts_that_are_not_shuffled_fill_rows_in_their_order():
    model = classifier(num_classes=3)
    model.compile(packing=True)
    rows = texts(200)
    source = model.source(rows, np.arange(200) % 3, None, 16)
    assert (np.diff(source.members[:, 0]) > 0).all()  # the first text of a row
    from_the_longest = model.source(rows, None, None, 16)
    assert (np.diff(from_the_longest.members[:, 0]) < 0).any()


@pytest.mark.thorough
def test_predictions_and_scores_are_those_of_rows_alone():
    plain, packing = pair_of(lambda: classifier(num_classes=3))
    rows, labels = texts(70), np.arange(70) % 3
    assert isinstance(packing.source(rows, labels), PackedSource)
    expected = plain.predict(rows, verbose=0)
    for batch_size in (70, 7):
        found = packing.predict(rows, batch_size, verbose=0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    pairs = (rows, rows[::-1])
    np.testing.assert_allclose(
        packing.predict(pairs, verbose=0), plain.predict(pairs, verbose=0), rtol=0, atol=1e-5
    )
    weights = np.arange(70) % 4
    for model in (plain, packing):
        model.scores = model.evaluate(rows, labels, 16, weights, verbose=0)
    np.testing.assert_allclose(packing.scores, plain.scores, rtol=1e-5)


@pytest.mark.one_quick
@pytest.mark.parametrize("batch_size", [100, 40])
def test_predictions_under_a_strategy_are_in_the_order_of_the_texts(batch_size):
    with strategy("one").scope():
        packing = classifier(num_classes=3)
        packing.compile(AdamW(1e-2), packing=True)
    plain, rows = classifier(num_classes=3), texts(70)
    expected = plain.predict(rows, verbose=0)
    found = packing.predict(rows, batch_size, verbose=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    (labels, odds), (wanted, wanted_odds) = (m.classify(rows, batch_size) for m in (packing, plain))
    np.testing.assert_array_equal(labels, wanted)
    np.testing.assert_allclose(odds, wanted_odds, rtol=0, atol=1e-5)


@pytest.mark.one_quick
@pytest.mark.parametrize("given", [texts, ids])
@pytest.mark.parametrize("labelled", [False, True])
def test_all_batches_have_one_shape_that_is_known(given, labelled):
    """Without it XLA would compile for each batch, and kernels for GPUs would not be used."""
    model = classifier(num_classes=2)
    model.compile(packing=True, jit_compile=True)
    labels = np.arange(70) % 2 if labelled else None
    source = model.source(given(70), labels, batch_size=8)
    assert isinstance(source, PackedSource)
    specs = tf.nest.flatten(source.one_pass().element_spec)
    assert all(spec.shape.is_fully_defined() for spec in specs)
    shapes = {tuple(v.shape for v in tf.nest.flatten(b)) for b in source.one_pass()}
    assert shapes == {tuple(tuple(spec.shape) for spec in specs)}


def test_predictions_fill_rows_but_take_no_more_memory():
    model = classifier(num_classes=2)
    model.compile(packing=True)
    many, few = (model.source(["rain wind"] * n, batch_size=64) for n in (5000, 70))
    assert many.batch_size == 64 * 32 // 128, "as many tokens as rows of 32 without packing"
    assert few.batch_size == 4 and len(few.members) == 3, "rows for the texts that there are"
    tagger = BertTokenClassifier(backbone(), num_classes=2)
    tagger.compile(packing=True)
    by_token = tagger.source(ids(5000), batch_size=64, labelled=False)
    texts_per_row = 5000 / len(by_token.members)
    assert by_token.batch_size == round(64 / texts_per_row), "heads read all tokens of the texts"


@pytest.mark.thorough
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_step_on_all_rows_is_the_same(compiled):
    """One batch that holds all rows, so that order and company of rows make no difference."""
    x, y = ids(23), np.arange(23) % 2
    weights = (np.arange(23) % 5).astype("float32")
    trained = []
    for packing in (False, True):
        model = BertClassifier(backbone(), num_classes=2, dropout=0.0)
        model.compile(keras.optimizers.SGD(0.5), packing=packing, jit_compile=compiled)
        history = model.fit(x, y, 23, epochs=3, sample_weight=weights, verbose=0).history
        counted = model.counters.read()
        assert counted["rows"] == 3 * (weights > 0).sum()
        assert (counted["slots"] < 3 * x["padding_mask"].size) == packing
        assert history["loss"][2] < history["loss"][0]
        trained.append((model.get_weights(), history))
    (plain, expected), (packed, found) = trained
    for a, b in zip(plain, packed, strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found["loss"], expected["loss"], rtol=0, atol=1e-5)


def test_every_text_is_seen_once_an_epoch():
    rows = texts(150)
    model = classifier(num_classes=150)
    model.compile(packing=True)
    source = model.source(rows, np.arange(150), None, 16, shuffle=True, seed=3)
    batches = list(source.one_pass().as_numpy_iterator())
    assert source.steps == len(batches)
    seen = [y[w > 0] for _, y, w in batches]
    assert sorted(np.concatenate(seen)) == list(range(150))
    in_the_mean = np.mean([len(part) for part in seen])
    assert 12 <= in_the_mean <= 20
    again = next(iter(source.stream(source.steps + 2)))[1]
    expected = list(source.stream(0).take(source.steps + 3))[-1][1]
    np.testing.assert_array_equal(again, expected)
    orders = [batches[0][1], next(iter(source.stream(source.steps)))[1].numpy()]
    assert not np.array_equal(*(order[:20] for order in orders))
    tokens = sum((x["packed_from"] >= 0).sum() for x, _, w in batches)
    lengths = model.preprocessor(tf.constant(rows))["padding_mask"].numpy().sum()
    assert tokens == lengths


def texts_of_rows(x, y, weights):
    """Each text of packed rows: (token ids, places of its masks, ids there, their weights)."""
    for row in range(len(x["token_ids"])):
        real, at = x["padding_mask"][row] > 0, x["mask_positions"][row]
        masked = weights["mlm"][row] > 0
        for text in np.unique(x["sequence_ids"][row][real]):
            cells = np.flatnonzero(real & (x["sequence_ids"][row] == text))
            assert list(x["position_ids"][row][cells]) == list(range(len(cells)))
            mine = masked & np.isin(at, cells)
            ids, wanted = x["token_ids"][row][cells], y["mlm"][row][mine]
            yield ids, at[mine] - cells[0], wanted, weights["mlm"][row][mine], (row, mine)


@pytest.mark.thorough
def test_masked_texts_share_rows_in_training():
    rows = texts(60)
    model = BertMaskedLM(
        backbone(), BertMaskedLMPreprocessor(BertTokenizer(VOCABULARY), 32, masking={"rate": 0.3})
    )
    model.compile(packing=True, learning_rate=1e-2)  # with the default, masks decide the loss
    source = model.source(rows, np.arange(60), np.arange(60) + 1.0, 16, shuffle=True, seed=3)
    batches = list(source.stream(0).take(2 * source.steps).as_numpy_iterator())
    lengths = model.preprocessor(tf.constant(rows))["padding_mask"].numpy().sum(axis=1)
    x, y, weights = batches[0]
    assert x["token_ids"].shape[1] == 128  # rows of 32 tokens, which one text fills, are too short
    # What the head says of masked places is what it says of texts in rows of their own.
    logits = model(x)["mlm"].numpy()
    for ids, places, _, _, (row, mine) in list(texts_of_rows(x, y, weights))[::5]:
        alone = {
            "token_ids": ids[None],
            "segment_ids": 0 * ids[None],
            "mask_positions": places[None],
        }
        alone["padding_mask"] = 1 + alone["segment_ids"]
        expected = model(alone)["mlm"].numpy()[0]
        np.testing.assert_allclose(logits[row][mine], expected, rtol=0, atol=1e-5)
    # Each text comes once an epoch, with as many masks as the rule says, under its own weight, and
    # with other masks in the next epoch.
    seen = []
    for epoch in (batches[: source.steps], batches[source.steps :]):
        found = {}
        for batch in epoch:
            for ids, places, wanted, text_weights, _ in texts_of_rows(*batch):
                (weight,) = np.unique(text_weights)  # none where a row fills up the batch
                number = int(weight) - 1
                assert len(places) == max(1, round(0.3 * lengths[number])) and number not in found
                ids = ids.copy()
                ids[places] = wanted
                found[number] = (ids.tolist(), places.tolist())
        assert sorted(found) == list(range(60))
        seen.append(found)
    tokenizer = model.preprocessor.tokenizer
    for number, text in enumerate(rows):
        expected = [2, *tokenizer([text])[0].numpy()[:30], 3]
        assert seen[0][number][0] == seen[1][number][0] == expected
    assert np.mean([seen[0][n][1] != seen[1][n][1] for n in range(60)]) > 0.5
    # A run that goes on sees what an unbroken one does.
    again = next(source.stream(source.steps + 1).as_numpy_iterator())
    keras.tree.map_structure(np.testing.assert_array_equal, again, batches[source.steps + 1])
    # Scores are of texts in rows of their own, whose masks do not depend on their batch.
    assert not hasattr(model.source(rows, np.arange(60)), "texts_per_step")
    history = model.fit(rows, batch_size=16, epochs=2, verbose=0).history["loss"]
    assert history[1] < history[0]


@pytest.mark.thorough
def test_next_sentences_are_those_of_rows_alone():
    firsts, seconds, found = texts(40), texts(40, seed=1), []
    for packing in (False, True):
        model = BertPretrainer(backbone(), preprocessor=preprocessor())
        model.compile(packing=packing)
        found.append(model.next_sentence(firsts, seconds, batch_size=16))
    np.testing.assert_allclose(*found, rtol=0, atol=1e-5)


@pytest.mark.thorough
def test_examples_are_texts_also_where_texts_share_rows():
    for make in (
        lambda: classifier(num_classes=2),
        lambda: BertMaskedLM(
            backbone(), BertMaskedLMPreprocessor(BertTokenizer(VOCABULARY), sequence_length=32)
        ),
    ):
        model = make()
        model.compile(packing=True)
        labels = {} if isinstance(model, BertMaskedLM) else {"y": np.zeros(160, "int32")}
        model.fit(texts(160), **labels, batch_size=32, examples=64, verbose=0)
        assert model.run.done == 2


@pytest.mark.slow
def test_dropout_and_label_names_train():
    model = BertClassifier(
        backbone(hidden_dropout=0.1, attention_dropout=0.1),
        preprocessor=preprocessor(),
        labels=["dry", "wet"],
    )
    model.compile(learning_rate=5e-3, packing=True)
    rows = texts(96)
    labels = ["wet" if "rain" in row else "dry" for row in rows]
    model.fit(rows, labels, batch_size=8, epochs=16, class_weight={"wet": 2.0}, verbose=0)
    found, _ = model.classify(rows, verbose=0)
    assert np.mean(np.array(found) == labels) > 0.9


@pytest.mark.thorough
def test_heads_over_tokens_see_their_own_text():
    x = ids(30)
    longest = x["token_ids"].shape[1]
    plain, packing = pair_of(lambda: BertTokenClassifier(backbone(), num_classes=3))
    expected, found = (m.predict(x, 8, verbose=0) for m in (plain, packing))
    real = x["padding_mask"][:, :, None] != 0
    np.testing.assert_allclose(found * real, expected * real, rtol=0, atol=1e-5)
    y = np.where(x["padding_mask"], x["token_ids"] % 3, -1)
    assert packing.fit(x, y, batch_size=8, epochs=2, verbose=0).history["loss"][1] > 0
    plain, packing = pair_of(lambda: BertQuestionAnswerer(backbone()))
    expected, found = (m.predict(x, 8, verbose=0) for m in (plain, packing))
    assert found["start"].shape == (30, longest)
    for name in ("start", "end"):
        real = x["padding_mask"] != 0
        np.testing.assert_allclose(found[name][real], expected[name][real], rtol=0, atol=1e-5)


def test_automatic_packing_is_for_accelerators():
    model = classifier(num_classes=2)
    assert not model.compiles_for_accelerator  # these tests run on a CPU
    assert not isinstance(model.source(texts(20), np.zeros(20, "int32")), PackedSource)
    model.compiles_for_accelerator = True
    assert isinstance(model.source(texts(20), np.zeros(20, "int32")), PackedSource)
    full = [" ".join(WORDS * 4)] * 20  # nothing to save
    assert not isinstance(model.source(full, np.zeros(20, "int32")), PackedSource)


def test_what_cannot_be_packed_is_named():
    model = BertClassifier(backbone(), num_classes=2)
    model.compile(packing=True)
    x = ids(5)
    with pytest.raises(ValueError, match="packing=True: the ids bring position_ids"):
        model.predict(x | {"position_ids": x["token_ids"] * 0}, 2, verbose=0)
    holes = x | {"padding_mask": x["padding_mask"][:, ::-1]}
    with pytest.raises(ValueError, match="packing=True: the ids have tokens after padding"):
        model.predict(holes, 2, verbose=0)
    with pytest.raises(ValueError, match="packing='yes': expected 'auto', True or False"):
        model.compile(packing="yes")
    embedder = BertTextEmbedder(backbone(), preprocessor=None)
    embedder.compile(packing=True)
    with pytest.raises(ValueError, match="packing=True: a BertTextEmbedder has batches of its own"):
        embedder.predict(x, 2, verbose=0)
    inputs = x | {"packed_from": np.zeros((1, 8), "int32"), "sequence_ids": x["token_ids"]}
    with pytest.raises(ValueError, match="got sequence_ids together with packed_from"):
        model.backbone(inputs)


def test_a_text_without_tokens_and_one_that_fills_a_row():
    x = ids(6)
    x["padding_mask"][2] = 0
    x["padding_mask"][4] = 1
    plain, packing = pair_of(lambda: BertClassifier(backbone(), num_classes=2))
    expected, found = (m.predict(x, 3, verbose=0) for m in (plain, packing))
    assert np.isfinite(found).all()
    others = [0, 1, 3, 4, 5]
    np.testing.assert_allclose(found[others], expected[others], rtol=0, atol=1e-5)


@pytest.mark.thorough
def test_bucketed_rows_keep_their_width():
    """Few rows and many, full ones and short ones: what packs and what does not look the same."""

    def answerer():
        text_side = BertQuestionAnswererPreprocessor(
            BertTokenizer(VOCABULARY), sequence_length=32, stride=8, max_question_length=4
        )
        return BertQuestionAnswerer(backbone(), preprocessor=text_side)

    plain, packing = pair_of(answerer)
    assert packing.preprocessor.padding == "bucket"
    contexts = texts(20)
    questions = ["rain wind"] * 20
    for count in (1, 20):
        asked = (questions[:count], contexts[:count])
        expected, found = (m.answer(*asked, batch_size=8) for m in (plain, packing))
        assert [a.text for a in found] == [a.text for a in expected]
    packing.compile(packing="auto")
    packing.compiles_for_accelerator = True
    full = [" ".join(WORDS * 4)] * 18 + contexts[:2]  # too little to save
    expected, found = (m.answer(questions, full, batch_size=8) for m in (plain, packing))
    assert [a.text for a in found] == [a.text for a in expected]


@pytest.mark.one_quick
@pytest.mark.parametrize("form", ["int8", "bool", "twos"])
def test_masks_of_other_forms(form):
    plain, packing = pair_of(lambda: BertClassifier(backbone(), num_classes=2))
    x = ids(20)
    expected = plain.predict(x, 8, verbose=0)
    mask = x["padding_mask"]
    mask = {"int8": mask.astype("int8"), "bool": mask != 0, "twos": mask * 2}[form]
    found = packing.predict(x | {"padding_mask": mask}, 8, verbose=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_batches_are_about_as_large_as_asked():
    model = BertClassifier(backbone(), num_classes=2)
    x, y = ids(400), np.zeros(400, "int32")
    for batch_size, steps in ((4, 1), (8, 1), (32, 4), (32, 8)):
        model.compile(packing=True, accumulation_steps=steps)
        source = model.source(x, y, None, batch_size)
        assert source.batch_size % steps == 0
        assert source.texts_per_step == pytest.approx(batch_size, rel=0.35)


def test_long_tokenizing_shows_how_far_it_is(monkeypatch, capsys):
    model = classifier(num_classes=2)
    model.compile(packing=True)
    rows = texts(70)
    model.source(rows, np.zeros(70, "int32"))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(tasks_task, "SILENT_SECONDS", -1)
    monkeypatch.setattr(tasks_task, "CHUNK", 32)
    model.source(rows, np.zeros(70, "int32"))
    shown = capsys.readouterr()
    assert "tokenizing: 100%" in shown.err and "70/70" in shown.err and shown.out == ""


def test_unshuffled_texts_stay_near_their_place():
    model = BertClassifier(backbone(), num_classes=400)
    model.compile(packing=True)
    source = model.source(ids(400), np.arange(400), None, 16)
    seen = np.concatenate([y[w > 0] for _, y, w in source.one_pass().as_numpy_iterator()])
    assert abs(seen - np.arange(400)).max() < 5 * 16
