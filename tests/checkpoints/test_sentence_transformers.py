"""Directories of sentence-transformers: what its files say, in the spellings of its versions."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from keras_bert.checkpoints.sentence_transformers import read_embedding_settings
from keras_bert.tasks.conversion import convert_checkpoint
from keras_bert.tasks.text_embedder import BertTextEmbedder

TINY = Path(__file__).parents[1] / "golden" / "tiny_hf"
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
    assert (found.pooling, found.normalize, found.sequence_length) == (expected, False, None)
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
    assert found == (folder / "0_Transformer", "max", True, 9, True)
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
        (MEAN, ("Transformer", "Pooling", "Dense"), "modules are Transformer, Pooling, Dense; exp"),
        (MEAN, ("Transformer",), "the modules are Transformer; expected"),
        (MEAN, ("CLIPModel",), "the modules are CLIPModel"),
        ({"pooling_mode": "lasttoken"}, ("Transformer", "Pooling"), "1_Pooling.*lasttoken'; exp"),
        (
            SWITCHES | {"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True},
            ("Transformer", "Pooling"),
            r"pooling by \['cls', 'max'\]",
        ),
        (SWITCHES, ("Transformer", "Pooling"), r"pooling by \[\]"),
        ({"pooling_mode": 3}, ("Transformer", "Pooling"), "pooling by 3"),
    ],
)
def test_what_is_not_supported(tmp_path, pooling, modules, match):
    with pytest.raises(ValueError, match=match):
        BertTextEmbedder.from_preset(write(tmp_path / "st", pooling, modules))


def test_prompts_and_damage(tmp_path):
    folder = write(
        tmp_path / "st", MEAN, config_sentence_transformers={"default_prompt_name": "query"}
    )
    with pytest.raises(ValueError, match="puts the prompt 'query' before every text"):
        BertTextEmbedder.from_preset(folder)
    for damage in ("{", "3", '[{"type": "a"}]', '{"a": 1}'):
        (folder / "modules.json").write_text(damage)
        with pytest.raises(ValueError, match="modules.json: expected a JSON list of modules"):
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
    assert any("pooling 'max', normalize=True" in note for note in notes)
