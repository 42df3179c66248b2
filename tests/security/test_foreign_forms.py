"""Checkpoints of other forms from strangers: names, code, special files, vocabularies."""

import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from keras_bert import BertTextEmbedder
from keras_bert.checkpoints import open_checkpoint, save_checkpoint
from keras_bert.checkpoints.source import Source
from keras_bert.text.vocabulary import read_vocabulary
from tests.checkpoints.test_conversion import make

TINY = Path(__file__).parents[1] / "golden" / "tiny_hf"
DEEP = "[" * 100_000 + "]" * 100_000
OUT = ["../outside", "0/../../outside", "{}/outside"]


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(TINY, tmp_path / "outside")
    return shutil.copytree(TINY, tmp_path / "copy")


@pytest.fixture(autouse=True)
def soon():
    start = time.monotonic()
    yield
    assert time.monotonic() - start < 20


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


# Code.


def test_code_that_a_checkpoint_brings_is_not_imported(copy):
    """What trust_remote_code is for in transformers."""
    (copy / "evil.py").write_text("raise SystemExit('run')")
    code = {"AutoModel": "evil.Model", "AutoConfig": "evil.Config", "AutoTokenizer": ["evil.T"]}
    edit(copy / "config.json", auto_map=code, trust_remote_code=True, custom_pipelines=code)
    (copy / "tokenizer_config.json").write_text(json.dumps({"auto_map": code}))
    open_checkpoint(copy).backbone()
    assert "evil" not in sys.modules


@pytest.mark.parametrize("form", ["kerashub", "keras_nlp"])
def test_classes_and_modules_of_a_kerashub_preset_are_compared_alone(tmp_path, form):
    save_checkpoint(make("classifier"), tmp_path / "preset", "kerashub")
    path = tmp_path / "preset" / "config.json"
    config = json.loads(path.read_text())
    config["module"], config["class_name"] = "antigravity", "Lambda"  # opens a browser
    if form == "keras_nlp":
        config["registered_name"] = "keras_nlp>BertBackbone"
    path.write_text(json.dumps(config))
    open_checkpoint(tmp_path / "preset").backbone()
    assert "antigravity" not in sys.modules
    for name in ("keras_hub>GemmaBackbone", "keras>Lambda", "builtins>exec", None, ["x"]):
        edit(path, registered_name=name)
        with pytest.raises(ValueError, match="config.json"):
            open_checkpoint(tmp_path / "preset")


def test_modules_of_sentence_transformers_are_compared_alone(copy):
    listed = [("antigravity.Transformer", ""), ("os.system.Pooling", "1_Pooling")]
    write_modules(copy, listed)
    BertTextEmbedder.from_preset(copy)
    assert "antigravity" not in sys.modules
    write_modules(copy, [*listed, ("os.system", "2")])
    with pytest.raises(ValueError, match="modules.json: the modules are Transformer, Pooling"):
        BertTextEmbedder.from_preset(copy)


def write_modules(folder, listed):
    modules = [{"type": kind, "path": path} for kind, path in listed]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "mean"}')


# Names of files.


@pytest.mark.parametrize("path", [*OUT, "a" * 5000, "\x1b[31m", "a\0b"])
def test_folders_of_modules(copy, path):
    path = path.format(copy.parent)
    for listed in ((path, "1_Pooling"), ("", path)):
        write_modules(copy, zip(("Transformer", "Pooling"), listed, strict=True))
        with pytest.raises((ValueError, FileNotFoundError), match="leads out|is no name|has no"):
            BertTextEmbedder.from_preset(copy)


@pytest.mark.parametrize("name", [*OUT, "\\\\server\\x", "~/x", ".", "", "a\0b", "x" * 5000, 5])
@pytest.mark.parametrize("index", ["model.safetensors", "pytorch_model.bin"])
def test_shards(copy, index, name):
    (copy / "model.safetensors").unlink()
    name = name.format(copy.parent) if isinstance(name, str) else name
    (copy / f"{index}.index.json").write_text(json.dumps({"weight_map": {"x": name}}))
    with pytest.raises((ValueError, FileNotFoundError), match="leads out|is no name|has no"):
        open_checkpoint(copy)


def test_a_checkpoint_file_of_google_names_no_other_folder(tmp_path):
    save_checkpoint(make("pretrainer"), tmp_path / "whole", "google")
    save_checkpoint(make("pretrainer"), tmp_path / "outside", "google")
    for path in (tmp_path / "whole").glob("bert_model.ckpt.*"):
        path.rename(path.with_name(path.name.replace("bert_model", "mine")))
    for said in (
        "../outside/bert_model.ckpt",
        f"{tmp_path}/outside/bert_model.ckpt",
        "\0",
        "x" * 9,
    ):
        (tmp_path / "whole" / "checkpoint").write_text(f'model_checkpoint_path: "{said}"\n')
        open_checkpoint(tmp_path / "whole").backbone()  # the one in the folder
        for path in (tmp_path / "whole").glob("mine.ckpt.data*"):
            assert path.is_file()


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "a/../../b", "a\nb", "a\0b", "x" * 300, "x" * 5000]
)
def test_a_source_gives_no_other_files(copy, name):
    with pytest.raises(ValueError, match="leads out|is no name"):
        Source(copy).path(name)


# What is no plain file.


@pytest.mark.parametrize("name", ["vocab.txt", "config.json", "model.safetensors"])
@pytest.mark.parametrize("kind", ["pipe", "device", "loop", "folder"])
def test_files_without_end_are_not_opened(copy, name, kind):
    (copy / name).unlink()
    if kind == "pipe":
        os.mkfifo(copy / name)
    elif kind == "folder":
        (copy / name).mkdir()
    else:
        (copy / name).symlink_to("/dev/zero" if kind == "device" else name)
    if name == "vocab.txt":  # as if there were none
        assert open_checkpoint(copy).contents.vocabulary is None
    else:
        with pytest.raises((FileNotFoundError, ValueError), match=f"{name}"):
            open_checkpoint(copy)


def test_links_are_followed_and_what_they_lead_to_is_checked(copy, tmp_path):
    """Caches are made of links, Hugging Face's among them; a link to a secret is no vocabulary."""
    (tmp_path / "blob").write_bytes((copy / "vocab.txt").read_bytes())
    (tmp_path / "secret").write_text("key one\nkey two\n")
    for target, right in (("blob", True), ("secret", False)):
        (copy / "vocab.txt").unlink()
        (copy / "vocab.txt").symlink_to(tmp_path / target)
        if right:
            assert open_checkpoint(copy).contents.vocabulary
            continue
        with pytest.raises(ValueError, match="vocab.txt: expected a vocabulary") as found:
            open_checkpoint(copy)
        assert "key two" not in str(found.value)


# Vocabularies and JSON.


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[UNK]" + b"\n" * 10_000_001, "more than 10,000,000 lines"),
        (b"[UNK]\nt\n" * 1_000_000, "tokens for the 17 rows of the word table"),
        (b"[UNK]\na\0\n", "token 1: .*NUL"),
        (b"[UNK]\n\xff\xfe\n", "line 2: .*0xff"),
        ("[UNK]\n\ud800\n".encode("utf-8", "surrogatepass"), "line 2: .*0xed"),
        ("[UNK]\na\n".encode("utf-16"), "line 1: .*UTF-8"),
        (b"a" * 50_000_000, "none of its 1 lines"),
        (b"", "it is empty"),
    ],
)
def test_vocabularies(copy, content, message):
    (copy / "vocab.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        open_checkpoint(copy)


def test_doubles_keep_their_rows(tmp_path):
    (tmp_path / "vocab.txt").write_text("[UNK]\na\na\n[UNK]\n")
    assert read_vocabulary(tmp_path / "vocab.txt") == ["[UNK]", "a", "a", "[UNK]"]


@pytest.mark.parametrize(
    "name",
    ["config.json", "tokenizer_config.json", "tokenizer.json", "special_tokens_map.json"]
    + ["added_tokens.json", "model.safetensors.index.json", "modules.json", "keras_bert.json"],
)
@pytest.mark.parametrize("text", [DEEP, '{"a": %s}' % ("9" * 5000), "\0", '{"a": "\\ud800', "5"])
def test_json(copy, name, text):
    (copy / name).write_text(text)
    with pytest.raises(ValueError, match=name):
        BertTextEmbedder.from_preset(copy)
