"""Hidden states, nearest words, projections and probes, against independent computations."""

import csv
from pathlib import Path

import keras
import numpy as np
import pytest
from sklearn.decomposition import PCA

import keras_bert
from keras_bert.checkpoints import open_checkpoint
from keras_bert.explain import hidden_states, nearest_words, probe, project
from tests.tasks.tiny import backbone_settings, made, tokenizer

GOLDEN = Path(__file__).parents[1] / "golden"
TEXTS = ["the cat sat", "a dog slept", "it ran\ton the mat", "who ?", "the mat . a mat"]


@pytest.fixture(scope="module")
def filler():
    keras.utils.set_random_seed(0)
    backbone = keras_bert.BertBackbone(**backbone_settings() | {"initializer_range": 0.4})
    return keras_bert.BertMaskedLM(**made(keras_bert.BertMaskedLM) | {"backbone": backbone})


@pytest.mark.thorough
def test_states_are_the_backbones():
    model = keras_bert.BertClassifier.from_preset(GOLDEN / "tiny_hf")
    other = open_checkpoint(GOLDEN / "tiny_hf").backbone(output_hidden_states=True)
    text = "rain wind the red boats"
    found = hidden_states(model, text)
    wanted = other({n: v[None] for n, v in model.preprocessor(text).items()})["hidden_states"]
    for ours, layer in zip(found.states, wanted, strict=True):
        np.testing.assert_allclose(ours, np.asarray(layer)[0, : len(ours)], atol=1e-5)
    assert len(found.tokens) == found.states.shape[1]


def test_nearest_words(filler):
    words = tokenizer().get_vocabulary()
    table = np.asarray(filler.backbone.token_embedding.embeddings)
    assert [row[0][0] for row in nearest_words(filler, table[[7, 9]])] == [words[7], words[9]]
    assert nearest_words(filler, 3 * table[7], 1)[0][1] == pytest.approx(1, abs=1e-5)
    # The head on the last layer's state of the [MASK] is what `fill` answers with.
    found = hidden_states(filler, "the [MASK] sat")
    (best,) = filler.fill("the [MASK] sat", top_k=len(words))
    wanted = [(c.token, c.score) for c in best if not c.token.startswith("[")][:4]
    got = nearest_words(filler, found.states[-1, 2], 4, by="head")
    assert [token for token, _ in got] == [token for token, _ in wanted]
    np.testing.assert_allclose([s for _, s in got], [s for _, s in wanted], rtol=1e-4)
    with pytest.raises(ValueError, match="states of shape"):
        nearest_words(filler, np.zeros(3))
    with pytest.raises(ValueError, match="by='x'"):
        nearest_words(filler, table[0], by="x")


def test_a_projection_is_of_principal_components(tmp_path):
    embedder = keras_bert.BertTextEmbedder(**made(keras_bert.BertTextEmbedder))
    found = project(embedder, TEXTS, [1, 0, 0, 1, 1])
    np.testing.assert_allclose(found.vectors, embedder.embed(TEXTS), atol=1e-5)
    wanted = PCA(2, svd_solver="full").fit_transform(found.vectors.astype("float64"))
    np.testing.assert_allclose(np.abs(found.points), np.abs(wanted), atol=1e-4)
    page = found.to_html(tmp_path / "map.html").read_text("utf-8")
    assert page.count("<circle") == 5 and "https://" not in page
    pytest.importorskip("matplotlib")
    assert found.to_png(tmp_path / "map.png").read_bytes()[:4] == b"\x89PNG"


def test_tensorboard_reads_the_files(tmp_path, filler):
    found = project(filler, TEXTS, list("aabba"))  # of a task without embeddings of its own
    found.write_projector(tmp_path / "log")
    pytest.importorskip("tensorboard")
    from google.protobuf import text_format
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
    from tensorboard.plugins.projector.projector_plugin import _read_tensor_tsv_file

    config = (tmp_path / "log" / "projector_config.pbtxt").read_text("utf-8")
    (one,) = text_format.Parse(config, ProjectorConfig()).embeddings
    vectors = _read_tensor_tsv_file(str(tmp_path / "log" / one.tensor_path))
    np.testing.assert_allclose(vectors, found.vectors, rtol=1e-5)
    with open(tmp_path / "log" / one.metadata_path, encoding="utf-8", newline="") as file:
        rows = [*csv.reader(file, delimiter="\t")]
    assert rows[0] == ["text", "label"] and len(rows) == 6 and rows[1] == ["the cat sat", "a"]
    assert rows[3][0] == "it ran\\ton the mat"


def test_umap_is_asked_for_where_it_is_missing(filler, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "umap", None)
    with pytest.raises(ImportError, match=r"keras3-bert\[umap\]"):
        project(filler, TEXTS, method="umap")
    with pytest.raises(ValueError, match="method='tsne'"):
        project(filler, TEXTS, method="tsne")
    with pytest.raises(ValueError, match="5 texts and 2 labels"):
        project(filler, TEXTS, [1, 2])


@pytest.mark.thorough
def test_a_probe_finds_the_layer_that_knows(tmp_path):
    """Words in the embeddings; the word before only where attention has been."""
    keras.utils.set_random_seed(0)
    backbone = keras_bert.BertBackbone(
        **backbone_settings()
        | {"hidden_dim": 32, "num_layers": 2, "intermediate_dim": 32, "initializer_range": 0.3}
    )
    rng = np.random.default_rng(0)
    words = "the a cat sat on mat dog slept".split()
    sentences = [rng.choice(words, 6).tolist() for _ in range(150)]
    own = [[word in words[:4] for word in row] for row in sentences]
    found = probe(backbone, sentences, own, tokenizer())
    assert found.scores[0] == found.by_word == 1 and found.majority < 0.7
    # Whether "dog" is anywhere in the sentence: the embedding of a word cannot say.
    context = [["yes" if "dog" in row else "no"] * 6 for row in sentences]
    found = probe(backbone, sentences, context, tokenizer())
    assert found.scores.shape == (3,) and found.names == ["no", "yes"]
    assert max(found.scores[1:]) > found.scores[0] + 0.1
    assert 1 <= found.expected_layer <= 2 and found.words == 180
    assert "polyline" in found.to_html(tmp_path / "probe.html").read_text("utf-8")
    pytest.importorskip("matplotlib")
    assert found.to_png(tmp_path / "probe.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(ValueError, match="tags"):
        probe(backbone, sentences, context[1:], tokenizer())
