"""Other numbers of positions and words, and nothing else changed."""

import numpy as np
import pytest

from keras_bert import (
    BertBackbone,
    BertClassifier,
    BertClassifierPreprocessor,
    BertMaskedLM,
    BertMaskedLMPreprocessor,
    BertPretrainer,
    BertRelationClassifier,
    BertRelationPreprocessor,
    BertTokenizer,
    resize,
)
from keras_bert.checkpoints.names import weights_by_name

# The subject is tables of weights and vocabularies.
pytestmark = pytest.mark.usefixtures("eager")

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s"]
POSITIONS, WORDS = "embeddings/position_table", "embeddings/word/embeddings"


def backbone(rows=8):
    return BertBackbone(rows, 1, 2, 8, 16, max_sequence_length=6)


def pretrainer(rows=8):
    model = BertPretrainer(
        backbone(rows), preprocessor=BertMaskedLMPreprocessor(BertTokenizer(VOCABULARY), 6)
    )
    rng = np.random.default_rng(0)
    for weight in model.weights:
        if "seed" not in weight.name:
            weight.assign(rng.normal(size=weight.shape))
    return model


def values(model):
    return {name: np.asarray(weight) for name, weight in weights_by_name(model).items()}


def same_but(old, new, *changed):
    assert old.keys() == new.keys()
    for name in old.keys() - {*changed}:
        np.testing.assert_array_equal(old[name], new[name], err_msg=name)


@pytest.mark.parametrize("method", ["tile", "interpolate", "new"])
def test_more_positions(method):
    model = pretrainer()
    bigger = resize(model, max_sequence_length=11, positions=method)
    old, new = values(model), values(bigger)
    same_but(old, new, POSITIONS)
    table, found = old[POSITIONS], new[POSITIONS]
    assert found.shape == (11, 8)
    if method == "interpolate":
        np.testing.assert_allclose(found[::2], table, atol=1e-6)
        np.testing.assert_allclose(found[1], (table[0] + table[1]) / 2, atol=1e-6)
    else:
        np.testing.assert_array_equal(found[:6], table)
    if method == "tile":
        np.testing.assert_array_equal(found[6:], table[:5])
    if method == "new":
        assert 0 < np.abs(found[6:]).max() <= 0.04
        again = resize(model, max_sequence_length=11, positions="new")
        np.testing.assert_array_equal(values(again)[POSITIONS], found)
    assert bigger.preprocessor.sequence_length == 11
    assert f"6 to 11 rows by positions='{method}'" in str(bigger.loading_report)


def test_fewer_positions_give_the_same_answers_to_short_texts():
    model = BertClassifier(
        backbone(),
        num_classes=2,
        preprocessor=BertClassifierPreprocessor(BertTokenizer(VOCABULARY), 5),
    )
    smaller = resize(model, max_sequence_length=5, positions="cut")
    same_but(values(model), values(smaller), POSITIONS)
    texts = ["the cat", "cats"]
    np.testing.assert_array_equal(
        model.predict(texts, verbose=0), smaller.predict(texts, verbose=0)
    )


@pytest.mark.one_quick
@pytest.mark.parametrize("rows", [8, 9, 12])
def test_new_tokens_are_read_and_can_be_filled_in(rows):
    model = pretrainer(rows)
    bigger = resize(model, new_tokens=["dog", "mat"])
    old, new = values(model), values(bigger)
    same_but(old, new, WORDS, "masked_lm_head/output_bias")
    assert new[WORDS].shape == (max(rows, 10), 8)
    np.testing.assert_array_equal(new[WORDS][:8], old[WORDS][:8])
    np.testing.assert_allclose(new[WORDS][8:10], [old[WORDS][:8].mean(0)] * 2, atol=1e-6)
    np.testing.assert_array_equal(new[WORDS][10:], old[WORDS][10:])
    assert bigger.preprocessor.tokenizer("the dog").numpy().tolist() == [5, 8]
    tokens = {candidate.token for candidate in bigger.fill("the [MASK]", top_k=10)[0]}
    assert {"dog", "mat"} <= tokens


def test_a_backbone_alone():
    model = backbone()
    assert resize(model, max_sequence_length=4, positions="cut").max_sequence_length == 4
    assert model.max_sequence_length == 6


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "nothing to do"),
        ({"max_sequence_length": 9}, "positions=None: from 6 to 9 positions, expected one of new"),
        ({"max_sequence_length": 9, "positions": "cut"}, "positions='cut': from 6 to 9"),
        ({"max_sequence_length": 4, "positions": "tile"}, "expected one of cut"),
        ({"max_sequence_length": 0, "positions": "cut"}, "expected a whole number, 1 or more"),
        ({"new_tokens": ["dog"], "tokens": "zero"}, "tokens='zero': expected one of mean, new"),
        ({"new_tokens": ["dog", "cat", "dog"]}, "'cat', 'dog' are there already"),
    ],
)
def test_bad_settings(arguments, message):
    with pytest.raises(ValueError, match=message):
        resize(pretrainer(), **arguments)


def test_new_tokens_need_a_preprocessor():
    with pytest.raises(ValueError, match="for a task with a preprocessor"):
        resize(backbone(), new_tokens=["dog"])


CORPUS = ["The cats chased mats", "abcd ＡＢ", "Äbcd, the 北京 dog! ([UNK])"]
LARGE = [
    *"[PAD] [unused0] [UNK] [CLS] [SEP] [MASK] the a cat dog mat ##s chase ##d mouse".split(),
    *", ! ( ) 北 人".split(),
    *"abc ab ##cd ##c a##b house ##hold [unused1] [unused2] [unused3] [unused4] abcd##".split(),
    *(f"word{i}" for i in range(200)),
]


def large(task=BertMaskedLM, side=BertMaskedLMPreprocessor, rows=None, **kwargs):
    text_side = side(BertTokenizer(LARGE, special_tokens_in_text=False), 16)
    model = task(
        BertBackbone(rows or len(LARGE), 1, 2, 8, 16, 16), preprocessor=text_side, **kwargs
    )
    rng = np.random.default_rng(0)
    for weight in model.weights:
        if "seed" not in weight.name:
            weight.assign(rng.normal(size=weight.shape))
    return model


@pytest.mark.one_quick
@pytest.mark.parametrize("rows", [len(LARGE), len(LARGE) + 11])
@pytest.mark.parametrize("form", [list, iter, np.array])
def test_a_vocabulary_is_cut_down_to_a_corpus(rows, form, tmp_path):
    model = large(rows=rows)
    smaller = resize(model, corpus=form(CORPUS), keep_tokens=["house"])
    old, new = values(model), values(smaller)
    same_but(old, new, WORDS, "masked_lm_head/output_bias")
    kept = smaller.preprocessor.tokenizer.get_vocabulary()
    # "abcd" is [UNK] since "abc" fits on first: without it "ab" and "##cd" would be found.
    assert {"abc", "house", "cat", "##s", "[MASK]"} <= {*kept} and "word7" not in kept
    assert len(kept) < 25 and kept == [token for token in LARGE if token in kept]
    ids = [LARGE.index(token) for token in kept]
    for name in (WORDS, "masked_lm_head/output_bias"):
        np.testing.assert_array_equal(new[name], old[name][ids])
    before = [[LARGE[i] for i in row] for row in model.preprocessor.tokenizer(CORPUS).to_list()]
    after = [[kept[i] for i in row] for row in smaller.preprocessor.tokenizer(CORPUS).to_list()]
    assert before == after and "[UNK]" in before[1]
    # The same states, and the same scores of tokens but for the sum that they share.
    one, two = (
        m.fill("the [MASK] cats", top_k=len(kept), targets=kept)[0] for m in (model, smaller)
    )
    assert [c.token for c in one] == [c.token for c in two]
    ratios = np.array([c.score for c in one]) / [c.score for c in two]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-4)
    smaller.save_to_preset(str(tmp_path / "small"))
    loaded = BertMaskedLM.from_preset(tmp_path / "small")
    assert loaded.fill("the [MASK]", top_k=3) == smaller.fill("the [MASK]", top_k=3)
    assert "rows, the tokens that a corpus uses" in str(smaller.loading_report)


@pytest.mark.thorough
def test_outputs_of_a_task_stay_the_same():
    model = large(BertClassifier, BertClassifierPreprocessor, num_classes=3)
    smaller = resize(model, corpus=CORPUS)
    np.testing.assert_array_equal(
        model.predict(CORPUS, verbose=0), smaller.predict(CORPUS, verbose=0)
    )
    relations = large(BertRelationClassifier, BertRelationPreprocessor, num_classes=2)
    smaller = resize(relations, corpus=CORPUS)
    data = (CORPUS[:1], [[(4, 8), (16, 20)]])
    np.testing.assert_array_equal(
        relations.predict(data, verbose=0), smaller.predict(data, verbose=0)
    )


def test_random_texts_are_cut_as_before():
    rng = np.random.default_rng(0)
    pieces = [t.removeprefix("##") for t in LARGE[6:30]] + [" ", " ", "q"]
    texts = ["".join(rng.choice(pieces, rng.integers(0, 12))) for _ in range(300)]
    model = large()
    smaller = resize(model, corpus=texts[:150], new_tokens=["tokyo"])
    vocabulary = smaller.preprocessor.tokenizer.get_vocabulary()
    assert vocabulary[-1] == "tokyo" and smaller.backbone.vocabulary_size == len(vocabulary)
    before, after = (
        [
            [m.preprocessor.tokenizer.id_to_token(i) for i in row]
            for row in m.preprocessor.tokenizer(texts[:150]).to_list()
        ]
        for m in (model, smaller)
    )
    assert before == after


def test_a_corpus_that_is_none():
    for corpus, error, message in (
        ([], ValueError, "corpus holds no texts"),
        ("the cat", TypeError, "corpus is one string"),
        (["the", 3], TypeError, "text 1 is 3; expected a str"),
    ):
        with pytest.raises(error, match=message):
            resize(pretrainer(), corpus=corpus)
    with pytest.raises(ValueError, match="'dog' is not in the vocabulary"):
        resize(pretrainer(), corpus=["the"], keep_tokens=["dog"])
    with pytest.raises(ValueError, match="for a task with a preprocessor"):
        resize(backbone(), corpus=["the"])


def test_a_task_with_a_frozen_head_is_copied():
    model = pretrainer()
    model.masked_lm_head.trainable = False
    assert "frozen" in model.get_config()
    copied = resize(model, new_tokens=["mat"])
    found, expected = values(copied), values(model)
    name = "masked_lm_head/dense/kernel"
    np.testing.assert_array_equal(found[name], expected[name])
    assert len(found[WORDS]) == len(expected[WORDS]) + 1


def test_a_copy_keeps_the_settings_of_the_tasks_that_its_own_derives_from():
    class Shouting(BertPretrainer):
        def __init__(self, backbone, voice="loud", **kwargs):
            self.voice = voice
            super().__init__(backbone, **kwargs)

    model = Shouting(backbone(), voice="louder", next_sentence=False, head_epsilon=1e-5)
    assert {"voice": "louder", "head_epsilon": 1e-5}.items() <= model.get_config().items()
    copy = resize(model, max_sequence_length=5, positions="cut")
    assert (copy.voice, copy.head_epsilon) == ("louder", 1e-5)
    assert not copy.has_next_sentence
