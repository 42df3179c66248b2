"""Reading checkpoints of each form, and refusing what is damaged."""

import json
import os
import shutil
from pathlib import Path

import keras_hub
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert import BertClassifier
from keras_bert.atomic import write_folder
from keras_bert.checkpoints import open_checkpoint

TINY = Path(__file__).parents[1] / "golden" / "tiny_hf"
INPUTS = ("token_ids", "segment_ids", "padding_mask")


@pytest.fixture
def copy(tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(TINY, folder)
    return folder


@pytest.fixture
def batch():
    golden = np.load(TINY.with_suffix(".npz"))
    return {name: golden[name] for name in INPUTS}


def edit(path, **changes):
    content = json.loads(path.read_text())
    content.update(changes)
    path.write_text(json.dumps(content))


def rename(folder, change):
    """Rewrites the tensors under other names; None drops one."""
    tensors = load_file(folder / "model.safetensors")
    renamed = {change(name): value for name, value in tensors.items()}
    renamed.pop(None, None)
    save_file(renamed, folder / "model.safetensors")


@pytest.mark.one_quick
@pytest.mark.parametrize("prefix", ["bert.", ""])
@pytest.mark.parametrize("old", [True, False])
def test_four_spellings_of_hugging_face_names(copy, batch, prefix, old):
    def spell(name):
        name = name.replace("bert.", prefix)
        if old and "LayerNorm" in name:
            name = name.replace(".weight", ".gamma").replace(".bias", ".beta")
        return name

    rename(copy, spell)
    expected = BertClassifier.from_preset(TINY).predict(batch, verbose=0)
    found = BertClassifier.from_preset(copy).predict(batch, verbose=0)
    np.testing.assert_array_equal(found, expected)


def test_sharded_safetensors(copy, batch):
    tensors = load_file(copy / "model.safetensors")
    names = sorted(tensors)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in parts.items():
        save_file({name: tensors[name] for name in part}, copy / file)
    index = {"weight_map": {name: file for file, part in parts.items() for name in part}}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    (copy / "model.safetensors").unlink()
    expected = BertClassifier.from_preset(TINY).predict(batch, verbose=0)
    np.testing.assert_array_equal(
        BertClassifier.from_preset(copy).predict(batch, verbose=0), expected
    )
    (copy / "b.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="has no b.safetensors; found: "):
        BertClassifier.from_preset(copy)


def test_missing_pooler_is_new_and_said(copy, caplog):
    rename(copy, lambda name: None if "pooler" in name else name)
    model = BertClassifier.from_preset(copy)
    assert model.loading_report.new == ["pooler/kernel", "pooler/bias"]
    assert "newly initialised: pooler/kernel, pooler/bias" in caplog.text


def test_missing_weight_raises_and_extra_is_listed(copy):
    rename(copy, lambda n: n.replace("layer.1.output.dense.weight", "layer.9.output.dense.weight"))
    with pytest.raises(ValueError, match="encoder.layer.1.output.dense.weight is missing"):
        BertClassifier.from_preset(copy)
    rename(copy, lambda n: n.replace("layer.9.output.dense.weight", "layer.1.output.dense.weight"))
    tensors = load_file(copy / "model.safetensors")
    save_file({**tensors, "extra": np.ones(3)}, copy / "model.safetensors")
    assert BertClassifier.from_preset(copy).loading_report.left_over == ["extra"]


def test_every_weight_takes_a_value():
    checkpoint = open_checkpoint(TINY)
    new = checkpoint.backbone(load_weights=False)
    loaded = checkpoint.backbone()
    for before, after in zip(new.weights, loaded.weights, strict=True):
        assert (np.asarray(before) != np.asarray(after)).all(), after.path


def test_another_number_of_classes(copy):
    with pytest.raises(ValueError, match="3 classes .* not for 5 .*skip_mismatch=True"):
        BertClassifier.from_preset(copy, num_classes=5)
    model = BertClassifier.from_preset(copy, num_classes=5, skip_mismatch=True)
    assert model.loading_report.new == ["head/kernel", "head/bias"] and model.labels is None
    with pytest.raises(ValueError, match="skip_mismatch"):
        BertClassifier.from_preset(copy, labels=["thaw", "storm", "calm"])


def test_encoder_alone_needs_the_number_of_classes(copy):
    edit(copy / "config.json", architectures=["BertModel"])
    with pytest.raises(ValueError, match="no head, so the number .*not known: pass num_classes="):
        BertClassifier.from_preset(copy)


def test_activation_by_origin(copy):
    edit(copy / "config.json", hidden_act="gelu_new")
    assert open_checkpoint(copy).backbone().activation == "gelu_tanh"
    assert open_checkpoint(TINY).backbone().activation == "gelu_exact"


def test_tokenizer_settings_of_hugging_face(copy):
    settings = {"do_lower_case": False, "strip_accents": False}
    (copy / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = open_checkpoint(copy).tokenizer()
    assert (tokenizer.lowercase, tokenizer.strip_accents) == (False, False)
    words = (copy / "vocab.txt").read_text().split("\n")[:-1]
    (copy / "vocab.txt").unlink()
    (copy / "tokenizer_config.json").unlink()
    model = {"type": "WordPiece", "vocab": {w: i for i, w in enumerate(words)}}
    model["max_input_chars_per_word"] = 7
    normalizer = {"type": "BertNormalizer", "lowercase": True, "strip_accents": None}
    (copy / "tokenizer.json").write_text(json.dumps({"model": model, "normalizer": normalizer}))
    tokenizer = open_checkpoint(copy).tokenizer()
    assert tokenizer.get_vocabulary() == words
    assert (tokenizer.lowercase, tokenizer.max_word_length) == (True, 7)
    # A tokenizer_config.json that says nothing of case leaves it to tokenizer.json.
    (copy / "tokenizer_config.json").write_text("{}")
    edit(copy / "tokenizer.json", normalizer={"lowercase": False, "strip_accents": False})
    tokenizer = open_checkpoint(copy).tokenizer()
    assert (tokenizer.lowercase, tokenizer.strip_accents) == (False, False)


def test_kerashub_preset(tmp_path):
    rng = np.random.default_rng(0)
    theirs = keras_hub.models.BertBackbone(17, 2, 5, 20, 28, max_sequence_length=13)
    for weight in theirs.weights:
        weight.assign(rng.normal(0, 0.3, weight.shape))
    words = (TINY / "vocab.txt").read_text().split()
    theirs.save_to_preset(str(tmp_path))
    keras_hub.tokenizers.BertTokenizer(words, lowercase=True).save_to_preset(str(tmp_path))
    model = BertClassifier.from_preset(tmp_path, num_classes=2)
    assert model.backbone.activation == "gelu_tanh"
    mask = (np.arange(11) < np.array([[11], [4]])).astype("int32")
    batch = {
        "token_ids": rng.integers(0, 17, (2, 11)),
        "segment_ids": rng.integers(0, 2, (2, 11)),
        "padding_mask": mask,
    }
    expected, found = theirs(batch), model.backbone(batch)
    tokens = mask.astype(bool)
    for name, keep in (("sequence_output", tokens), ("pooled_output", slice(None))):
        wanted = np.asarray(expected[name])[keep]
        np.testing.assert_allclose(np.asarray(found[name])[keep], wanted, atol=1e-5)
    assert model.preprocessor.tokenizer(["the boats"]).to_list() == [[7, 13, 11]]


# Refused.


def test_nothing_there():
    with pytest.raises(FileNotFoundError, match="source 'no/where' is not a folder.*bert_tiny_en"):
        BertClassifier.from_preset("no/where", num_classes=2)


def test_a_misspelt_name_or_argument_is_told():
    with pytest.raises(FileNotFoundError, match="did you mean 'bert_mini_en_public_domain'?"):
        BertClassifier.from_preset("bert_mini_en_public_domian", num_classes=2)
    with pytest.raises(TypeError, match="unknown argument sequence_lenght"):
        BertClassifier.from_preset("bert_mini_en_public_domain", num_classes=2, sequence_lenght=64)


def test_empty_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no config.json; found: nothing"):
        BertClassifier.from_preset(tmp_path, num_classes=2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "config.json is not valid JSON"),
        ("[]", "expected a JSON object, found list"),
        ("{}", "describes no BERT.*found keys none"),
        ('{"model_type": "gpt2"}', "expected a BERT encoder.*found model_type 'gpt2'"),
        ('{"model_type": "bert"}', "has no key 'vocab_size', .*'hidden_act'"),
    ],
)
def test_wrong_config(copy, content, message):
    (copy / "config.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        BertClassifier.from_preset(copy, num_classes=2)


def test_truncated_weights(copy):
    whole = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="model.safetensors is not a whole safetensors file"):
        BertClassifier.from_preset(copy)


def test_config_that_disagrees_with_its_tensors(copy):
    edit(copy / "config.json", intermediate_size=30)
    with pytest.raises(ValueError, match="weight has shape .28, 20., expected .30, 20."):
        BertClassifier.from_preset(copy)


def test_sequence_longer_than_the_positions(copy):
    with pytest.raises(ValueError, match="sequence_length=600 exceeds the backbone's 13"):
        BertClassifier.from_preset(copy, sequence_length=600)


@pytest.fixture
def ours(tmp_path):
    BertClassifier.from_preset(TINY).save_to_preset(tmp_path / "ours")
    return tmp_path / "ours"


def test_our_preset_is_read_back_bit_by_bit(ours):
    first, again = BertClassifier.from_preset(TINY), BertClassifier.from_preset(ours)
    for a, b in zip(first.weights, again.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    assert again.labels == ["calm", "storm", "thaw"]


def test_layers_of_a_preset_can_be_drawn_anew(ours):
    """Weights are read into zeros, which is not what their initializers go on to give."""
    backbone = BertClassifier.from_preset(ours).backbone
    dense, deviation = backbone.blocks[-1].intermediate, backbone.get_config()["initializer_range"]
    drawn = np.asarray(dense.kernel_initializer(dense.kernel.shape))
    assert 0.7 * deviation < drawn.std() < 1.1 * deviation  # cut at two deviations: 0.88
    assert np.asarray(dense.kernel).any()


def test_a_preset_cannot_choose_what_is_imported(ours):
    for name in ("os>system", "keras_hub>GemmaBackbone"):
        edit(ours / "tokenizer.json", registered_name=name)
        with pytest.raises(ValueError, match=f"expected the settings of .*found '{name}'"):
            BertClassifier.from_preset(ours)


def test_a_dtype_cannot_choose_what_is_imported(ours):
    config = json.loads((ours / "config.json").read_text())
    config["config"]["dtype"] = {"module": "os", "class_name": "system", "config": {}}
    (ours / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="not one of Keras's dtype policies"):
        BertClassifier.from_preset(ours)


def test_shards_cannot_lead_out_of_the_folder(copy):
    index = {"weight_map": {"x": "../../etc/passwd"}}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="leads out of the checkpoint"):
        BertClassifier.from_preset(copy)


def test_damaged_weights_of_ours(ours):
    (ours / "model.weights.h5").write_bytes(b"no weights")
    with pytest.raises(ValueError, match="model.weights.h5 is not a whole .weights.h5 file"):
        BertClassifier.from_preset(ours)


def test_weights_that_would_be_split_are_not_saved(ours):
    model, before = BertClassifier.from_preset(ours), sorted(p.name for p in ours.rglob("*"))
    with pytest.raises(ValueError, match="more than max_shard_size=1e-05 GB and would be split"):
        model.save_to_preset(ours, max_shard_size=1e-5)
    assert sorted(p.name for p in ours.rglob("*")) == before


def test_a_failed_save_leaves_the_old_preset(ours):
    def fail(path):
        Path(path, "half").write_text("half")
        raise RuntimeError("disk full")

    before = sorted(p.name for p in ours.rglob("*"))
    with pytest.raises(RuntimeError, match="disk full"):
        write_folder(ours, fail, ("*",))
    assert sorted(p.name for p in ours.rglob("*")) == before
    assert [p.name for p in ours.parent.iterdir()] == ["ours"]


def test_a_save_that_fails_at_the_last_step_brings_the_old_preset_back(ours, monkeypatch):
    replace = os.replace

    def fail(source, target):
        if Path(source).name == "new":
            raise OSError("no space")
        replace(source, target)

    before = sorted(p.name for p in ours.rglob("*"))
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        write_folder(ours, lambda path: None, ("*",))
    assert sorted(p.name for p in ours.rglob("*")) == before


def test_a_link_is_followed(ours, tmp_path):
    (tmp_path / "current").symlink_to(ours)
    (ours / "metadata.json").unlink()
    BertClassifier.from_preset(ours).save_to_preset(tmp_path / "current")
    assert (tmp_path / "current").is_symlink() and (ours / "metadata.json").is_file()


def test_an_export_does_not_replace_a_preset(ours):
    with pytest.raises(FileExistsError, match="config.json"):
        BertClassifier.from_preset(ours).export(ours)
    assert (ours / "task.weights.h5").is_file()


def test_a_preset_does_not_replace_a_hugging_face_directory(copy):
    with pytest.raises(FileExistsError, match="model.safetensors"):
        BertClassifier.from_preset(copy).save_to_preset(copy)


@pytest.mark.thorough
def test_a_preset_for_ids_alone(tmp_path, batch):
    model = BertClassifier(BertClassifier.from_preset(TINY).backbone, 3)
    model.save_to_preset(tmp_path / "ids")
    again = BertClassifier.from_preset(tmp_path / "ids")
    assert again.preprocessor is None
    np.testing.assert_array_equal(again.predict(batch, verbose=0), model.predict(batch, verbose=0))


def test_generic_label_names_are_no_names(copy):
    names = {str(i): f"LABEL_{i}" for i in range(3)}
    edit(copy / "config.json", id2label=names)
    assert BertClassifier.from_preset(copy).labels is None
    named = BertClassifier.from_preset(copy, labels=["a", "b", "c"])
    assert named.labels == ["a", "b", "c"] and named.loading_report.new == []


@pytest.mark.thorough
def test_several_labels_for_a_text(copy, batch):
    edit(copy / "config.json", problem_type="multi_label_classification")
    model = BertClassifier.from_preset(copy)
    assert model.problem == "multi_label" and model.loading_report.new == []
    expected = BertClassifier.from_preset(TINY).predict(batch, verbose=0)
    np.testing.assert_array_equal(model.predict(batch, verbose=0), expected)
    with pytest.raises(ValueError, match="problem 'multi_label', not for 'single_label'"):
        BertClassifier.from_preset(copy, problem="single_label")
    other = BertClassifier.from_preset(copy, problem="regression", skip_mismatch=True)
    assert other.num_classes == 1 and other.loading_report.skipped == ["head/kernel", "head/bias"]


def test_label_ids_with_a_gap(copy):
    edit(copy / "config.json", id2label={"1": "a", "2": "b", "3": "c"})
    with pytest.raises(ValueError, match="id2label has the keys 1, 2, 3; expected 0 to 2"):
        BertClassifier.from_preset(copy)


def test_a_tokenizer_with_another_rule(copy):
    (copy / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "AlbertTokenizer"}))
    with pytest.raises(ValueError, match="only BERT's own rule"):
        BertClassifier.from_preset(copy)


def test_other_peoples_folders_are_not_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("...")
    with pytest.raises(FileExistsError, match="is not replaced because it contains chapter1.tex"):
        BertClassifier.from_preset(TINY).save_to_preset(tmp_path / "thesis")
