"""Directories of sentence-transformers: what its files say, in the spellings of its versions."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import save_file

from keras_bert import BertMaskedLM, save_checkpoint
from keras_bert.checkpoints.sentence_transformers import read_embedding_settings
from keras_bert.tasks.conversion import convert_checkpoint
from keras_bert.tasks.text_embedder import BertTextEmbedder

TINY = Path(__file__).parents[1] / "golden" / "tiny_one_block"
OLD = "sentence_transformers.models."
SWITCHES = {
    f"pooling_mode_{name}": False for name in ("cls_token", "mean_tokens", "max_tokens")
}  # fmt: skip


def write(folder, pooling, modules=("Transformer", "Pooling"), model="", prefix=OLD, **files):
    """A directory; `files` are more JSON files by their names without the ending."""
    folder.mkdir(exist_ok=True)
    places = {"Transformer": model, "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    listed = [
        {"idx": i, "name": str(i), "path": places.get(kind, f"{i}_{kind}"), "type": prefix + kind}
        for i, kind in enumerate(modules)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    shutil.copytree(TINY, folder / model, dirs_exist_ok=True)
    for name, values in files.items():
        (folder / model / f"{name}.json").write_text(json.dumps(values))
    return folder


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        (SWITCHES | {"pooling_mode_cls_token": True}, "cls"),
        (SWITCHES | {"pooling_mode_mean_tokens": True, "pooling_mode_lasttoken": False}, "mean"),
        (SWITCHES | {"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": "mean", "embedding_dimension": 20, "include_prompt": True}, "mean"),
        ({"pooling_mode": ["cls"]}, "cls"),
    ],
)
def test_poolings_of_all_versions(tmp_path, pooling, expected):
    found = read_embedding_settings(write(tmp_path / "st", pooling))
    assert (found.pooling, found.normalize, found.sequence_length) == ([expected], False, None)
    assert found.lowercase is False


def test_the_model_in_a_folder_of_its_own_and_what_text_is(tmp_path):
    folder = write(
        tmp_path / "st",
        {"pooling_mode": "max"},
        ("Transformer", "Pooling", "Normalize"),
        model="0_Transformer",
        prefix="sentence_transformers.base.modules.some.",
        sentence_bert_config={"max_seq_length": 9, "do_lower_case": True},
        tokenizer_config={"model_max_length": 11, "do_lower_case": False},
    )
    found = read_embedding_settings(folder)
    assert found == (folder / "0_Transformer", ["max"], [], True, 9, True, {}, None)
    model = BertTextEmbedder.from_preset(folder)
    assert (model.pooling, model.normalize, model.preprocessor.sequence_length) == ("max", True, 9)
    assert model.preprocessor.tokenizer.lowercase
    assert not model.preprocessor.tokenizer.strip_accents
    np.testing.assert_allclose(np.linalg.norm(model.embed(["RAIN", "the"]), axis=1), 1, rtol=1e-5)
    other = BertTextEmbedder.from_preset(folder, pooling="cls", normalize=False, sequence_length=5)
    assert (other.pooling, other.normalize, other.preprocessor.sequence_length) == ("cls", False, 5)


def test_a_limit_that_is_none(tmp_path):
    folder = write(
        tmp_path / "st", {"pooling_mode": "mean"}, tokenizer_config={"model_max_length": 1e30}
    )
    assert read_embedding_settings(folder).sequence_length is None
    assert BertTextEmbedder.from_preset(folder).preprocessor.sequence_length == 13


def test_other_checkpoints_are_none():
    assert read_embedding_settings(TINY) is None
    assert read_embedding_settings("bert_tiny_en_uncased") is None


MEAN = {"pooling_mode": "mean"}


@pytest.mark.parametrize(
    ("pooling", "modules", "match"),
    [
        (MEAN, ("Transformer", "Pooling", "LayerNorm"), "modules are Transformer, Pooling, Lay"),
        (MEAN, ("Transformer", "Pooling", "Normalize", "Dense"), "Normalize, Dense; expected"),
        (MEAN, ("Transformer",), "the modules are Transformer; expected"),
        (MEAN, ("CLIPModel",), "the modules are CLIPModel"),
        ({"pooling_mode": "lasttoken"}, ("Transformer", "Pooling"), "1_Pooling.*lasttoken'; exp"),
        (SWITCHES, ("Transformer", "Pooling"), r"pooling by \[\]"),
        ({"pooling_mode": 3}, ("Transformer", "Pooling"), "pooling by 3"),
    ],
)
def test_what_is_not_supported(tmp_path, pooling, modules, match):
    with pytest.raises(ValueError, match=match):
        BertTextEmbedder.from_preset(write(tmp_path / "st", pooling, modules))


def add_dense(folder, place, width, units, activation, bias=True, seed=0):
    """A Dense module as sentence-transformers saves it; gives its arithmetic."""
    rng = np.random.default_rng(seed)
    kernel, offset = rng.normal(size=(units, width)), rng.normal(size=units) * bias
    (folder / place).mkdir()
    kinds = {"Tanh": "torch.nn.modules.activation.Tanh", "Identity": "torch.nn.Identity"}
    config = {"in_features": width, "out_features": units, "bias": bias}
    config["activation_function"] = kinds[activation]
    (folder / place / "config.json").write_text(json.dumps(config))
    tensors = {"linear.weight": kernel.astype("float32")}
    if bias:
        tensors["linear.bias"] = offset.astype("float32")
    save_file(tensors, folder / place / "model.safetensors")

    def apply(x):
        x = x @ kernel.T + offset
        return np.tanh(x) if activation == "Tanh" else x

    return apply


def states_of(texts):
    """Token states and mask of the tiny model, for pooling by hand."""
    task = BertTextEmbedder.from_preset(TINY)
    rows = {name: value.numpy()[:, 0] for name, value in task.preprocessor(texts).items()}
    return np.asarray(task.backbone(rows)["sequence_output"], "float64"), rows["padding_mask"]


@pytest.mark.thorough
def test_dense_layers_and_several_poolings(tmp_path):
    """The vectors of several poolings stand side by side, [CLS] first, then maximum and mean."""
    switches = SWITCHES | {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}
    modules = ("Transformer", "Pooling", "Dense", "Dense", "Normalize")
    folder = write(tmp_path / "st", switches, modules)
    first = add_dense(folder, "2_Dense", 40, 7, "Tanh")
    second = add_dense(folder, "3_Dense", 7, 5, "Identity", bias=False, seed=1)
    texts = ["rain wind", "the boat the rain", ""]
    states, mask = states_of(texts)
    means = (states * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
    expected = second(first(np.concatenate([states[:, 0], means], axis=1)))
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    model = BertTextEmbedder.from_preset(folder)
    assert model.pooling == ["cls", "mean"] and not model.loading_report.new
    np.testing.assert_allclose(model.embed(texts), expected, atol=1e-5)
    assert model.search(texts[0], texts, 1)[0] == [0] and model.embed([]).shape == (0, 5)
    # Our own preset and file, and what we write for that library.
    model.save_to_preset(str(tmp_path / "ours"))
    model.save(tmp_path / "file.keras")
    save_checkpoint(model, tmp_path / "theirs", "sentence_transformers")
    for loaded in (
        BertTextEmbedder.from_preset(tmp_path / "ours"),
        BertTextEmbedder.from_preset(tmp_path / "theirs"),
        keras.saving.load_model(tmp_path / "file.keras"),
    ):
        np.testing.assert_allclose(loaded.embed(texts), expected, atol=1e-5)
    model.export(tmp_path / "served")
    serve = tf.saved_model.load(tmp_path / "served").signatures["serving_default"]
    np.testing.assert_allclose(serve(text=tf.constant(texts))["embedding"], expected, atol=1e-5)
    config = json.loads((tmp_path / "theirs" / "2_Dense" / "config.json").read_text())
    assert config["activation_function"] == "torch.nn.modules.activation.Tanh"
    listed = json.loads((tmp_path / "theirs" / "modules.json").read_text())
    assert [m["type"].split(".")[-1] for m in listed] == [*modules]
    pooling = json.loads((tmp_path / "theirs" / "1_Pooling" / "config.json").read_text())
    assert pooling["pooling_mode_cls_token"] and not pooling["pooling_mode_max_tokens"]
    before = model.dense_layers[0].get_weights()[0]
    model.fit((texts[:2], texts[:2][::-1]), verbose=0)
    assert not np.array_equal(before, model.dense_layers[0].get_weights()[0])


@pytest.mark.thorough
def test_prompts(tmp_path):
    prompts = {"query": "the ", "passage": "rain ", "none": ""}
    settings = {"prompts": prompts, "default_prompt_name": "query"}
    folder = write(tmp_path / "st", MEAN, config_sentence_transformers=settings)
    model, plain = BertTextEmbedder.from_preset(folder), BertTextEmbedder.from_preset(TINY)
    assert model.prompts == {"query": "the ", "passage": "rain "}
    for prompt, text in ((None, "the wind"), ("passage", "rain wind"), ("", "wind")):
        expected = plain.embed(text)
        np.testing.assert_allclose(model.embed("wind", prompt=prompt), expected, atol=1e-6)
        np.testing.assert_allclose(model.embed([b"wind"], prompt=prompt)[0], expected, atol=1e-6)
    with pytest.raises(ValueError, match="prompt='title': expected one of query, passage"):
        model.embed("wind", prompt="title")
    save_checkpoint(model, tmp_path / "again", "sentence_transformers")
    model.save_to_preset(str(tmp_path / "ours"))
    for place in ("again", "ours"):
        loaded = BertTextEmbedder.from_preset(tmp_path / place)
        assert (loaded.prompts, loaded.default_prompt) == (model.prompts, "query")
    model.export(tmp_path / "served")
    serve = tf.saved_model.load(tmp_path / "served").signatures["serving_default"]
    found = serve(text=tf.constant(["wind"]))["embedding"][0]
    np.testing.assert_allclose(found, plain.embed("the wind"), atol=1e-6)


def test_damage(tmp_path):
    for config, message in (
        ({"default_prompt_name": "query"}, "there is no prompt 'query'"),
        ({"prompts": {"query": 3}}, "prompts are"),
    ):
        folder = write(tmp_path / "st", MEAN, config_sentence_transformers=config)
        with pytest.raises(ValueError, match=message):
            BertTextEmbedder.from_preset(folder)
    (folder / "config_sentence_transformers.json").unlink()
    dense = write(tmp_path / "dense", MEAN, ("Transformer", "Pooling", "Dense"))
    add_dense(dense, "2_Dense", 20, 5, "Tanh")
    config = json.loads((dense / "2_Dense" / "config.json").read_text())
    for change, message in (
        ({"in_features": 21}, "2_Dense: tensors of shapes.*expected a layer .5, 21."),
        ({"activation_function": "os.system"}, "activation_function is 'system'; expected"),
    ):
        (dense / "2_Dense" / "config.json").write_text(json.dumps(config | change))
        with pytest.raises(ValueError, match=message):
            BertTextEmbedder.from_preset(dense)
    with pytest.raises(ValueError, match="expected a BertTextEmbedder"):
        save_checkpoint(BertMaskedLM.from_preset(TINY), tmp_path / "x", "sentence_transformers")
    pooled = BertTextEmbedder.from_preset(TINY, pooling="pooler")
    with pytest.raises(ValueError, match="no pooling 'pooler'"):
        save_checkpoint(pooled, tmp_path / "x", "sentence_transformers")
    for damage in ("{", "3", '[{"type": "a"}]', '{"a": 1}'):
        (folder / "modules.json").write_text(damage)
        with pytest.raises(ValueError, match="modules.json.*(not valid JSON|expected a JSON list)"):
            BertTextEmbedder.from_preset(folder)


SCRIPT = """
import sys
import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.{home} import Transformer, Pooling, Normalize
texts = open(sys.argv[2], encoding="utf-8").read().split("\\n")
for mode in sys.argv[4:]:
    parts = [Transformer(sys.argv[1], max_seq_length=11)]
    parts += [Pooling({width}, pooling_mode=mode)] + [Normalize()] * (mode == "max")
    model = SentenceTransformer(modules=parts, device="cpu")
    model.save(f"{{sys.argv[3]}}/{{mode}}")
    np.save(f"{{sys.argv[3]}}/{{mode}}.npy", model.encode(texts))
"""


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("sentence_transformers") is None, reason="needs sentence-transformers"
)
def test_what_sentence_transformers_saves_and_computes(tmp_path):
    """In a process of its own, as for transformers: PyTorch and TensorFlow may crash in one."""
    texts = ["rain", "The red boat froze", "a harbour a boat " * 9, "wind the rain", "café ä"]
    (tmp_path / "texts").write_text("\n".join(texts), encoding="utf-8")
    modes = ["cls", "mean", "max"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(home="models", width=20), str(TINY),
         str(tmp_path / "texts"), str(tmp_path), *modes],
        capture_output=True, text=True, timeout=3600,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "USE_TF": "0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    for mode in modes:
        model = BertTextEmbedder.from_preset(tmp_path / mode)
        assert (model.pooling, model.normalize) == (mode, mode == "max")
        assert model.preprocessor.sequence_length == 11
        expected = np.load(tmp_path / f"{mode}.npy")
        assert np.abs(model.embed(texts) - expected).max() <= 1e-5, mode


def test_a_conversion_keeps_how_embeddings_are_made(tmp_path):
    modules = ("Transformer", "Pooling", "Normalize")
    folder = write(tmp_path / "st", {"pooling_mode": "max"}, modules, model="0_Transformer")
    convert_checkpoint(folder, tmp_path / "ours", "keras_bert")
    ours, theirs = (BertTextEmbedder.from_preset(f) for f in (tmp_path / "ours", folder))
    texts = ["rain wind", "the boat"]
    np.testing.assert_array_equal(ours.embed(texts), theirs.embed(texts))
    assert ours.pooling == "max" and ours.normalize
    notes = convert_checkpoint(folder, tmp_path / "hf", "huggingface")
    assert any("pooling max, normalize=True" in note for note in notes)
