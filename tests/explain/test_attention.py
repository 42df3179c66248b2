"""Attention maps against transformers' of the same weights; views that need no network."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest

import keras_bert
from keras_bert.checkpoints import open_checkpoint
from keras_bert.explain import attention
from tests.tasks.tiny import backbone_settings, made

GOLDEN = Path(__file__).parents[1] / "golden"
PAIR = ("the cats sat", "a dog slept on the mat")


@pytest.fixture(scope="module")
def task():
    backbone = keras_bert.BertBackbone(**backbone_settings() | {"num_layers": 2})
    return keras_bert.BertClassifier(**made(keras_bert.BertClassifier) | {"backbone": backbone})


@pytest.mark.thorough
def test_maps_are_the_backbones(task):
    found = attention(task, PAIR)
    assert " ".join(found.tokens) == "[CLS] the cat ##s sat [SEP] a dog slept on the mat [SEP]"
    assert found.sides.tolist() == [-1, 0, 0, 0, 0, -1, *[1] * 6, -1]
    assert [PAIR[1][a:b] for a, b in found.spans[6:-1]] == PAIR[1].split()
    other = open_checkpoint(GOLDEN / "tiny_hf").backbone(output_attentions=True)
    model = keras_bert.BertClassifier.from_preset(GOLDEN / "tiny_hf")
    maps = attention(model, "rain wind the red boats").maps
    ids = {n: v[None] for n, v in model.preprocessor("rain wind the red boats").items()}
    wanted = other(ids)["attention_probabilities"]
    length = maps.shape[2]
    for ours, layer in zip(maps, wanted, strict=True):
        np.testing.assert_allclose(ours, np.asarray(layer)[0, :, :length, :length], atol=1e-6)
    np.testing.assert_allclose(maps.sum(axis=-1), 1, atol=1e-5)


def test_rollout_is_a_product(task):
    found = attention(task, PAIR)
    wanted = np.eye(len(found.tokens))
    for layer in range(2):
        mean = sum(found.maps[layer, head].astype("float64") for head in range(2)) / 2
        mixed = mean + np.eye(len(wanted))
        wanted = (mixed / mixed.sum(axis=1, keepdims=True)) @ wanted
    np.testing.assert_allclose(found.rollout(), wanted, atol=1e-6)
    np.testing.assert_allclose(found.rollout(1).sum(axis=1), 1, atol=1e-6)


def test_a_page_holds_the_maps(task, tmp_path):
    found = attention(task, ("the </script> cat", "a dog"))
    page = found.to_html(tmp_path / "attention.html").read_text("utf-8")
    assert not re.search(r"https?://|@import|url\(|src=", page)
    assert page.count("</script>") == 1
    data = json.loads(re.search(r"data = (\{.*\});", page)[1])
    assert data["tokens"] == [*found.tokens]
    assert data["rollout_most"] == pytest.approx(found.rollout().max())
    maps = np.frombuffer(base64.b64decode(data["maps"]), "uint8").reshape(found.maps.shape)
    np.testing.assert_allclose(maps / 255, found.maps, atol=0.5 / 255 + 1e-6)
    assert found._repr_html_().count(data["maps"]) == 1


def test_pictures(task, tmp_path):
    pytest.importorskip("matplotlib")
    found = attention(task, PAIR)
    for layer, head in ((None, None), (1, 0)):
        file = found.to_png(tmp_path / "map.png", layer=layer, head=head)
        assert file.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    with pytest.raises(ValueError, match="layer=2: expected 0 to 1"):
        found.to_png(tmp_path / "map.png", layer=2)


def test_masks_are_special_and_texts_are_checked(task):
    filler = keras_bert.BertMaskedLM(**made(keras_bert.BertMaskedLM))
    assert attention(filler, "the [MASK] sat").tokens[2] == "[MASK]"
    with pytest.raises(TypeError, match="text="):
        attention(task, ["the cat"])


def test_pieces_are_added_to_words(task):
    """Clark et al. 2019, section 4.1: sums over the word attended to, means over the other."""
    found = attention(task, PAIR)
    words = found.by_word()
    assert " ".join(words.tokens) == "[CLS] the cats sat [SEP] a dog slept on the mat [SEP]"
    assert words.spans[2].tolist() == [4, 8]
    assert words.sides.tolist() == [-1, *[0] * 3, -1, *[1] * 6, -1]
    of = [0, 1, 2, 2, *range(3, 12)]  # the word of each token
    wanted = np.zeros([2, 2, 12, 12])
    for i, a in enumerate(of):
        for j, b in enumerate(of):
            wanted[:, :, a, b] += found.maps[:, :, i, j].astype("float64") / of.count(a)
    np.testing.assert_allclose(words.maps, wanted, atol=1e-6)
    np.testing.assert_allclose(words.maps.sum(axis=-1), 1, atol=1e-5)


@pytest.mark.thorough
def test_examples_of_other_forms():
    """A question is read in the window of its answer, relations with markers, the best choice."""
    relator = keras_bert.BertRelationClassifier(**made(keras_bert.BertRelationClassifier))
    found = attention(relator, ("the cat sat on a mat", [[4, 7], [17, 20]]))
    assert (found.sides < 0).sum() == 6  # with two markers around each entity
    chooser = keras_bert.BertMultipleChoice(**made(keras_bert.BertMultipleChoice))
    choices = ["a dog slept", "the mat"]
    best, _ = chooser.choose(["the cat sat"], [choices])
    assert attention(chooser, ("the cat sat", choices)).texts[1] == choices[best[0]]
    answerer = keras_bert.BertQuestionAnswerer(**made(keras_bert.BertQuestionAnswerer))
    context = "the cat sat on a mat " * 9
    answer = answerer.answer("a dog", context)
    found = attention(answerer, ("a dog", context))
    starts, ends = found.spans[found.sides == 1].T
    assert starts.min() <= answer.start and answer.end <= ends.max()
    with pytest.raises(TypeError, match="text="):
        attention(answerer, ("the cat", ["a dog"]))
