"""Relations: where the markers stand, what is cut, which states the head reads, training."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertTokenizer
from keras_bert.checkpoints import save_checkpoint
from keras_bert.data.relations import RelationExamples, Span
from keras_bert.tasks.relation_classifier import BertRelationClassifier
from keras_bert.text.relation_preprocessor import BertRelationPreprocessor

SIGNS = "[PAD] [UNK] [CLS] [SEP] [MASK] $ # the key was in a drawer by her . ##s box é".split()
UNUSED = [*SIGNS, *(f"[unused{i}]" for i in range(1, 5))]
TEXT = "the keys was in a drawer ."
SPANS = [(4, 7), (18, 24)]  # key, drawer


def preprocessor(sequence_length=32, padding="bucket", vocabulary=SIGNS, **kwargs):
    return BertRelationPreprocessor(BertTokenizer(vocabulary), sequence_length, padding, **kwargs)


def tokens(rows, row=0, vocabulary=SIGNS):
    names = [vocabulary[i] for i in np.asarray(rows["token_ids"])[row]]
    return " ".join(names).removesuffix(" [PAD]" * names.count("[PAD]"))


def test_markers_stand_around_both_entities():
    rows = preprocessor()(([TEXT, TEXT], [SPANS, SPANS[::-1]]))
    # A marker within a word parts it: "keys" is "key" and "s", which is no token.
    expected = "[CLS] the $ key $ [UNK] was in a # drawer # . [SEP]"
    assert tokens(rows) == expected
    swapped = "[CLS] the # key # [UNK] was in a $ drawer $ . [SEP]"
    assert tokens(rows, 1) == swapped
    assert rows["entity_positions"].numpy().tolist() == [[2, 9], [9, 2]]
    assert rows["padding_mask"].numpy().sum(axis=1).tolist() == [14, 14]
    assert rows["segment_ids"].numpy().sum() == 0
    unused = preprocessor(vocabulary=UNUSED)(([TEXT], [SPANS]))
    assert "[unused1] key [unused2]" in tokens(unused, 0, UNUSED)
    assert "[unused3] drawer [unused4]" in tokens(unused, 0, UNUSED)
    own = preprocessor(vocabulary=UNUSED, markers=("[MASK]", "by", "a", "her"))
    assert tokens(own(([TEXT], [SPANS])), 0, UNUSED) == (
        "[CLS] the [MASK] key by [UNK] was in a a drawer her . [SEP]"
    )


def test_characters_are_counted_not_bytes():
    text = "é é key é box"
    rows = preprocessor()(([text], [[(4, 7), (10, 13)]]))
    assert tokens(rows) == "[CLS] [UNK] [UNK] $ key $ [UNK] # box # [SEP]"
    # At the ends of the text, and side by side.
    rows = preprocessor()((["keybox"], [[(0, 3), (3, 6)]]))
    assert tokens(rows) == "[CLS] $ key $ # box # [SEP]"


LONG = "a in a by the key was in the a drawer by her the box ."
LONG_SPANS = [(14, 17), (31, 37)]


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (22, "a in a by the $ key $ was in the a # drawer # by her the box ."),
        (20, "in a by the $ key $ was in the a # drawer # by her the box"),
        (19, "in a by the $ key $ was in the a # drawer # by her the"),
        (18, "a by the $ key $ was in the a # drawer # by her the"),
        (13, "the $ key $ was in the a # drawer #"),
        (12, "$ key $ was in the a # drawer #"),
        (11, "$ key $ was in a # drawer #"),
        (10, "$ key $ was a # drawer #"),
        (9, "$ key $ was # drawer #"),
        (8, "$ key $ # drawer #"),
    ],
)
def test_what_is_cut_of_a_sentence_that_is_too_long(length, expected):
    rows = preprocessor(length, "full")(([LONG], [LONG_SPANS]))
    assert rows["token_ids"].shape == (1, length)
    assert tokens(rows) == f"[CLS] {expected} [SEP]"
    first, second = rows["entity_positions"][0].numpy()
    found = tokens(rows).split()
    assert (found[first], found[first + 1]) == ("$", "key")
    assert (found[second], found[second + 1]) == ("#", "drawer")


@pytest.mark.slow
def test_the_same_in_a_graph_of_any_size():
    text_side = preprocessor(13, "bucket")
    signature = [tf.TensorSpec([None], tf.string), tf.TensorSpec([None, 2, 2], tf.int32)]
    pack = tf.function(lambda *x: text_side.pack(x), signature)
    texts, spans = [LONG, TEXT, "keybox"], [LONG_SPANS, SPANS[::-1], [(0, 3), (3, 6)]]
    for size in (3, 1, 2):
        found = pack(tf.constant(texts[:size]), tf.constant(spans[:size]))
        for row in range(size):
            alone = text_side(([texts[row]], [spans[row]]))
            assert tokens(found, row) == tokens(alone)
            np.testing.assert_array_equal(
                found["entity_positions"][row], alone["entity_positions"][0]
            )
    with pytest.raises(tf.errors.InvalidArgumentError, match="are outside their text, in row"):
        pack(tf.constant(["key"]), tf.constant([[[0, 1], [2, 9]]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="do not fit into 13 tokens"):
        pack(tf.constant(["box " * 9 + "key"]), tf.constant([[[0, 35], [36, 39]]]))


def made(**kwargs):
    keras.utils.set_random_seed(3)
    backbone = BertBackbone(len(SIGNS), 1, 2, 16, 24, 32, hidden_dropout=0.0, attention_dropout=0.0)
    return BertRelationClassifier(
        backbone, preprocessor=preprocessor(), dropout=0.0, **{"num_classes": 3, **kwargs}
    )


def relations(count, seed=0):
    """The relation is that of what stands between the entities, and of which is in front."""
    rng = np.random.default_rng(seed)
    data = RelationExamples([], [], [], [], [], [], [])
    for row in range(count):
        way, swapped = ("in", "by")[rng.integers(2)], bool(rng.integers(2))
        text = f"the key was {way} a box ."
        first, second = Span(4, 7), Span(17, 20)
        data.ids.append(row)
        data.texts.append(text)
        data.entities.append((second, first) if swapped else (first, second))
        label = "Other" if way == "by" else f"In({'e2,e1' if swapped else 'e1,e2'})"
        data.labels.append(label)
        data.lines.append(4 * row + 1)
    return data


@pytest.fixture(scope="module")
def fitted():
    model = made()
    model.compile(learning_rate=5e-3)
    data = relations(128)
    model.fit(data, batch_size=16, epochs=15, validation_data=data.head(32), verbose=0)
    return model


def test_relations_are_learnt(fitted):
    data = relations(40, seed=1)
    assert fitted.labels == ["In(e1,e2)", "In(e2,e1)", "Other"]
    labels, probabilities = fitted.relate(data)
    assert np.mean(np.array(labels) == data.labels) > 0.95
    assert probabilities.dtype == np.float32 and (probabilities > 1 / 3).all()
    label, probability = fitted.relate(data.texts[0], data.entities[0])
    assert label == labels[0] and probability == pytest.approx(probabilities[0], rel=1e-4)
    found = fitted.evaluate((data.texts, data.entities), data.labels, verbose=0)
    assert found[1] == pytest.approx(np.mean(np.array(labels) == data.labels))
    columns = (data.texts, np.array(data.entities)), fitted.encode_labels(data.labels)
    dataset = tf.data.Dataset.from_tensor_slices(columns).batch(9)
    np.testing.assert_allclose(fitted.evaluate(dataset, verbose=0), found, rtol=1e-4)


def test_the_head_reads_the_states_of_the_opening_markers(fitted):
    data = relations(7, seed=2)
    ids = {n: np.asarray(v) for n, v in fitted.make_rows((data.texts, data.entities))[0].items()}
    places = ids.pop("entity_positions")
    states = np.asarray(fitted.backbone(ids)["sequence_output"])
    rows = np.arange(7)
    joined = np.concatenate([states[rows, places[:, 0]], states[rows, places[:, 1]]], axis=1)
    by_hand = joined @ np.asarray(fitted.head.kernel) + np.asarray(fitted.head.bias)
    found = fitted.predict(data, batch_size=3, verbose=0)
    np.testing.assert_allclose(found, by_hand, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", ["preset", "keras"])
def test_saved_and_read_back(fitted, tmp_path, form):
    data, path = relations(5, seed=3), tmp_path / "model"
    if form == "keras":
        fitted.save(path.with_suffix(".keras"))
        loaded = keras.saving.load_model(path.with_suffix(".keras"))
    else:
        fitted.save_to_preset(str(path))
        loaded = BertRelationClassifier.from_preset(path)
        assert not loaded.loading_report.new
    assert loaded.labels == fitted.labels
    assert loaded.preprocessor.sequence_length == 32 and loaded.preprocessor.markers is None
    expected = fitted.predict(data, verbose=0)
    np.testing.assert_allclose(loaded.predict(data, verbose=0), expected, rtol=1e-5, atol=1e-5)


SLOW = [pytest.param(form, marks=pytest.mark.slow) for form in ("google", "kerashub")]


@pytest.mark.parametrize("form", ["huggingface", *SLOW])
def test_other_forms_hold_the_backbone_and_say_so(fitted, tmp_path, form):
    notes = save_checkpoint(fitted, tmp_path / form, form)
    assert "no other form has a place for a head of relations: it is left out" in notes
    with pytest.raises(ValueError, match="holds .*number of classes is not known: pass num_c"):
        BertRelationClassifier.from_preset(tmp_path / form)
    loaded = BertRelationClassifier.from_preset(tmp_path / form, labels=fitted.labels)
    assert loaded.loading_report.new == [weight.path for weight in loaded.head.weights]
    np.testing.assert_array_equal(
        loaded.backbone.embeddings.word.embeddings, fitted.backbone.embeddings.word.embeddings
    )


@pytest.mark.parametrize(
    ("texts", "spans", "match"),
    [
        ([TEXT] * 2, [SPANS, [(4, 7), (6, 9)]], r"spans of row 1 overlap: \[\[4, 7\], \[6, 9\]\]"),
        ([TEXT], [[(4, 7), (18, 99)]], r"spans of row 0: \(18, 99\) holds no text; expected char"),
        ([TEXT], [[(7, 4), (18, 24)]], r"\(7, 4\) holds no text"),
        ([TEXT], [[(3, 4), (18, 24)]], r"\(3, 4\) holds no text"),
        ([TEXT], [[(4, 7)]], "expected two pairs"),
        ([TEXT], [[(4, 7), (18, 24.5)]], "expected two pairs"),
        ([TEXT] * 2, [SPANS], "2 texts, but spans of 1"),
        ([TEXT, "box " * 31 + "key"], [SPANS, [(0, 123), (124, 127)]], "of row 1 do not fit into"),
    ],
)
def test_errors_name_the_row(fitted, texts, spans, match):
    with pytest.raises(ValueError, match=match):
        fitted.fit((texts, spans), ["Other"] * len(texts))


def test_other_errors(fitted):
    data = relations(3)
    data.entities[2] = (Span(0, 0), Span(4, 7))
    with pytest.raises(ValueError, match=r"row 2 \(line 9\): \(0, 0\) holds no text"):
        fitted.fit(data)
    with pytest.raises(ValueError, match="label 'Out' in row 0 is unknown; expected In"):
        fitted.fit(([TEXT], [SPANS]), ["Out"])
    with pytest.raises(ValueError, match="expected a tuple .texts, spans., got list"):
        fitted.fit([TEXT], ["Other"])
    with pytest.raises(
        ValueError,
        match="markers=None: expected four .*None takes .unused1. to .unused4., or . and #",
    ):
        preprocessor(vocabulary=[t for t in SIGNS if t != "#"])
    with pytest.raises(
        ValueError, match="markers=.'<e1>', .*: expected four tokens of the vocabulary"
    ):
        preprocessor(markers=("<e1>", "$", "#", "#"))
    with pytest.raises(ValueError, match="expected four tokens"):
        preprocessor(markers=("$", "#"))
    with pytest.raises(ValueError, match="expected four tokens"):
        preprocessor(markers="$$##")  # not four markers of a character each
    with pytest.raises(ValueError, match="sequence_length=7: expected a whole number, 8 or more"):
        preprocessor(7)
    rows = fitted.make_rows(([TEXT], [SPANS]))[0]
    rows["entity_positions"] = np.array([[2, 77]], "int32")
    with pytest.raises(ValueError, match="entity_positions from 2 to 77: expected 0 to 31"):
        fitted.predict(rows)
    far = (["box " * 31 + "key"], [[(0, 123), (124, 127)]])
    for ask in (fitted.predict, lambda x: fitted.relate(*x)):
        with pytest.raises(ValueError, match="of row 0 do not fit into"):
            ask(far)
    assert fitted.relate([], [])[0] == []


@pytest.mark.thorough
def test_markers_stand_around_the_entities_of_the_public_task(shared_dir):
    from keras_bert.data.relations import read_relations

    tokenizer = BertTokenizer(str(shared_dir / "data" / "vocab" / "bert-base-uncased-vocab.txt"))
    folder = shared_dir / "data" / "relation" / "semeval2010_task8"
    data = read_relations(folder / "TEST_FILE_FULL.TXT.gz").head(60)
    side = BertRelationPreprocessor(tokenizer, 64, "full")
    rows = {n: np.asarray(v) for n, v in side((data.texts, np.array(data.entities))).items()}
    markers = side.marker_ids()
    assert [tokenizer.id_to_token(i) for i in markers] == [f"[unused{i}]" for i in range(1, 5)]
    for row, (text, pair) in enumerate(zip(data.texts, data.entities, strict=True)):
        ids = rows["token_ids"][row].tolist()
        for number, span in enumerate(pair):
            opened, closed = (ids.index(i) for i in markers[2 * number : 2 * number + 2])
            assert opened == rows["entity_positions"][row, number]
            pieces = tokenizer.tokenize(text[span.start : span.end]).numpy().tolist()
            assert ids[opened + 1 : closed] == pieces
        # Without markers the row is that of the sentence, but where a marker parts a word.
        plain = [i for i in ids if i not in (*markers, tokenizer.pad_token_id)]
        cut = sorted(pair)
        parts = [text[: cut[0][0]], text[cut[0][0] : cut[0][1]], text[cut[0][1] : cut[1][0]]]
        parts += [text[cut[1][0] : cut[1][1]], text[cut[1][1] :]]
        pieces = [i for part in parts for i in tokenizer.tokenize(part).numpy().tolist()]
        if len(pieces) <= 58:
            assert plain == [tokenizer.cls_token_id, *pieces, tokenizer.sep_token_id]
