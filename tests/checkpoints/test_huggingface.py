"""Hugging Face directories in and out, against what transformers computes.

tests/golden/hf_heads.npz was made by `python tests/checkpoints/transformers_outputs.py --golden
tests/golden/hf_heads.npz` with transformers 5.24.0 and torch 2.14.1 on a CPU, from weights that are
drawn by their names.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert.checkpoints import huggingface
from keras_bert.checkpoints.contents import Contents
from keras_bert.checkpoints.source import Source

from .huggingface_folders import WORDS, make_folder, our_outputs, tensors_of
from .transformers_outputs import GOLDEN_CLASSES

GOLDEN = Path(__file__).parents[1] / "golden"
TINY = GOLDEN / "tiny_hf"
POOLERLESS = ("BertForMaskedLM", "BertForTokenClassification", "BertForQuestionAnswering")


def read(folder: Path, weights: bool = True) -> Contents:
    return huggingface.read(Source(folder), weights)


def edit(folder: Path, **changes) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_tensors(folder: Path, **changes) -> None:
    """Rewrites the tensors; "__" stands for a dot, None takes one out."""
    tensors = load_file(folder / "model.safetensors")
    tensors |= {name.replace("__", "."): value for name, value in changes.items()}
    save_file({n: v for n, v in tensors.items() if v is not None}, folder / "model.safetensors")


def same_tensors(first: Contents, second: Contents) -> None:
    assert first.tensors.keys() == second.tensors.keys()
    for name, value in first.tensors.items():
        np.testing.assert_array_equal(value, second.tensors[name], err_msg=name)


# What transformers computes.


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("kind", "activation"),
    [(kind, "gelu") for kind in GOLDEN_CLASSES]
    + [("BertForPreTraining", "gelu_new")]
    + [
        pytest.param(kind, "gelu_new", marks=pytest.mark.slow)
        for kind in GOLDEN_CLASSES
        if kind != "BertForPreTraining"
    ],
)
def test_every_class_gives_the_logits_of_transformers(kind, activation, tmp_path):
    golden = np.load(GOLDEN / "hf_heads.npz")
    contents = read(make_folder(tmp_path / "hf", kind, hidden_act=activation))
    assert contents.left_over == [] and contents.has("pooler/") == (kind not in POOLERLESS)
    found = our_outputs(contents, golden)
    wanted = {key.split("/")[2]: key for key in golden if key.startswith(f"{kind}/{activation}/")}
    assert wanted and wanted.keys() <= found.keys()
    other = {"gelu": "gelu_new", "gelu_new": "gelu"}[activation]
    for name, key in wanted.items():
        assert abs(found[name] - golden[key]).max() <= 2e-5, name
        # The other form of GELU would have been seen.
        assert abs(golden[key] - golden[f"{kind}/{other}/{name}"]).max() > 2e-4


def test_without_its_pooler_a_bert_model_has_the_same_token_outputs(tmp_path):
    golden = np.load(GOLDEN / "hf_heads.npz")
    folder = make_folder(tmp_path / "hf", "BertModel")
    change_tensors(folder, pooler__dense__weight=None, pooler__dense__bias=None)
    contents = read(folder)
    assert not contents.has("pooler/")
    found = our_outputs(contents, golden)["sequence_output"]
    assert abs(found - golden["BertModel/gelu/sequence_output"]).max() <= 2e-5


# Spellings.


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("prefix", ["bert.", ""])
def test_four_spellings_of_the_names(prefix, old, tmp_path):
    folder = make_folder(tmp_path / "hf")
    wanted = read(folder)
    renamed = {}
    for name, value in load_file(folder / "model.safetensors").items():
        name = name.replace("bert.", prefix)
        if old and "LayerNorm" in name:
            name = name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")
        renamed[name] = value
    renamed[f"{prefix}embeddings.position_ids"] = np.arange(13)[None]
    save_file(renamed, folder / "model.safetensors")
    found = read(folder)
    same_tensors(found, wanted)
    assert found.left_over == []


def test_an_unknown_spelling(tmp_path):
    folder = make_folder(tmp_path / "hf", "BertModel")
    tensors = load_file(folder / "model.safetensors")
    save_file({f"module.{n}": v for n, v in tensors.items()}, folder / "model.safetensors")
    with pytest.raises(
        ValueError, match="tensors of 0 layers.*begin with: module.embeddings.Layer"
    ):
        read(folder)


def test_two_names_of_one_tensor(tmp_path):
    folder = make_folder(tmp_path / "hf")
    change_tensors(folder, embeddings__LayerNorm__gamma=np.ones(20, "float32"))
    with pytest.raises(ValueError, match="embeddings.LayerNorm.* name the same tensor"):
        read(folder)


# Heads.


@pytest.mark.parametrize("bias", [True, False])
def test_a_tied_output_table_may_be_there(bias, tmp_path):
    folder = make_folder(tmp_path / "hf")
    wanted = read(folder)
    tensors = load_file(folder / "model.safetensors")
    change_tensors(
        folder,
        cls__predictions__decoder__weight=tensors["bert.embeddings.word_embeddings.weight"],
        cls__predictions__decoder__bias=tensors["cls.predictions.bias"],
        cls__predictions__bias=tensors["cls.predictions.bias"] if bias else None,
    )
    same_tensors(read(folder), wanted)


@pytest.mark.parametrize("name", ["decoder.weight", "decoder.bias"])
def test_an_output_table_of_its_own_is_refused(name, tmp_path):
    folder = make_folder(tmp_path / "hf")
    tensors = load_file(folder / "model.safetensors")
    first = "cls.predictions.bias" if "bias" in name else "bert.embeddings.word_embeddings.weight"
    other = tensors[first].copy()
    other[-1] += 1e-6
    change_tensors(folder, **{f"cls.predictions.{name}": other})
    with pytest.raises(ValueError, match=f"cls.predictions.{name} differs from .*tie_word"):
        read(folder)
    change_tensors(folder, **{f"cls.predictions.{name}": other[1:]})
    with pytest.raises(ValueError, match=f"cls.predictions.{name}, F32 of shape .30.*not go with"):
        read(folder)


def test_labels_problem_and_dropout(tmp_path):
    folder = make_folder(tmp_path / "hf", "BertForSequenceClassification")
    contents = read(folder)
    assert contents.head == "classifier" and contents.labels == ["name 0", "name 1", "name 2"]
    assert (contents.problem, contents.head_dropout) == ("single_label", 0.1)
    edit(folder, problem_type="multi_label_classification", classifier_dropout=0.3)
    contents = read(folder)
    assert (contents.problem, contents.head_dropout) == ("multi_label", 0.3)
    edit(folder, id2label={"0": "a", "1": "b"})
    with pytest.raises(ValueError, match="2 labels, and the head 3 classes"):
        read(folder)
    edit(folder, id2label=None, problem_type="regression")
    assert read(folder).labels == ["LABEL_0", "LABEL_1", "LABEL_2"]
    assert read(folder).problem == "regression"
    edit(folder, problem_type="ranking")
    with pytest.raises(ValueError, match="problem_type is 'ranking'; expected one of single_label"):
        read(folder)


def test_one_class_is_a_regression(tmp_path):
    folder = make_folder(tmp_path / "hf", "BertForSequenceClassification", id2label=None)
    kernel = tensors_of("BertForSequenceClassification")["classifier.weight"]
    change_tensors(folder, classifier__weight=kernel[:1], classifier__bias=np.ones(1, "float32"))
    assert read(folder).problem == "regression"


@pytest.mark.parametrize(
    ("architectures", "head", "left_over"),
    [
        (["BertForTokenClassification"], "token_classifier", []),
        (["Mine", "BertForSequenceClassification"], "classifier", []),
        (None, "classifier", []),
        (["BertModel"], None, ["classifier.bias", "classifier.weight"]),
        (["Mine"], None, ["classifier.bias", "classifier.weight"]),
    ],
)
def test_the_class_says_what_a_classifier_is_of(architectures, head, left_over, tmp_path):
    folder = make_folder(tmp_path / "hf", "BertForTokenClassification")
    edit(folder, architectures=architectures)
    contents = read(folder)
    assert contents.head == head and contents.left_over == left_over
    assert contents.has("head/") == (head is not None)


@pytest.mark.parametrize("kind", ["BertForQuestionAnswering", "BertForMultipleChoice"])
def test_heads_of_a_fixed_size(kind, tmp_path):
    folder = make_folder(tmp_path / "hf", kind)
    contents = read(folder)
    expected = {"BertForQuestionAnswering": ("span", 0.0), "BertForMultipleChoice": ("choice", 0.1)}
    assert (contents.head, contents.head_dropout) == expected[kind] and contents.labels is None
    layer = "qa_outputs" if contents.head == "span" else "classifier"
    wide = {
        f"{layer}.weight": np.zeros((3, 20), "float32"),
        f"{layer}.bias": np.zeros(3, "float32"),
    }
    change_tensors(folder, **wide)
    with pytest.raises(
        ValueError, match=rf"{layer}.weight has shape \[3, 20\], expected \[[12], 20\]"
    ):
        read(folder)


def test_kernel_and_bias_of_a_head_go_together(tmp_path):
    folder = make_folder(tmp_path / "hf", "BertForTokenClassification", id2label=None)
    change_tensors(folder, classifier__bias=np.zeros(5, "float32"))
    with pytest.raises(ValueError, match=r"weight has shape \[7, 20\], expected \[5, 20\]$"):
        read(folder)
    change_tensors(folder, classifier__bias=None)
    with pytest.raises(ValueError, match="configuration: classifier.bias is missing$"):
        read(folder)


def test_settings_alone_open_no_weights(tmp_path):
    folder = make_folder(tmp_path / "hf", "BertForTokenClassification", torch_dtype="bfloat16")
    (folder / "model.safetensors").write_bytes(b"")
    contents = read(folder, weights=False)
    assert contents.tensors == {} and contents.head == "token_classifier"
    assert len(contents.labels) == 7 and contents.dtype == "bfloat16"
    assert contents.tokenizer is None and contents.vocabulary is None
    assert contents.config["activation"] == "gelu_exact" and contents.config["num_segments"] == 3


# Settings that do not go together, or with the tensors.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt2"}, "expected a BERT encoder.*found model_type 'gpt2'"),
        ({"position_embedding_type": "relative_key"}, "absolute positions.*'relative_key'"),
        ({"is_decoder": True}, "expected a BERT encoder.*is_decoder True"),
        ({"hidden_act": "quick_gelu"}, "hidden_act is 'quick_gelu'; expected one of gelu, "),
        ({"hidden_act": ["gelu"]}, r"hidden_act is \['gelu'\]"),
        ({"num_attention_heads": 3}, "hidden_size 20 is not divisible by num_attention_heads 3"),
        ({"vocab_size": 0}, "vocab_size is 0; expected a number from 1"),
        ({"vocab_size": True}, "vocab_size is True"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000; .* 1 to 1,000"),
        ({"num_hidden_layers": 900}, "num_hidden_layers in config.json is 900, .* 2 layers"),
        ({"hidden_dropout_prob": 1.0}, "hidden_dropout_prob is 1.0; .* less than 1"),
        ({"layer_norm_eps": float("nan")}, "layer_norm_eps is nan; expected a number from 0"),
        ({"layer_norm_eps": 0}, "layer_norm_eps is 0; expected more than 0"),
        ({"architectures": "BertModel"}, "architectures is 'BertModel'; expected a list"),
        (
            {"vocab_size": 30},
            r"word_embeddings.weight has shape \[31, 20\], expected \[30, 20\]",
        ),
        (
            {"hidden_size": 15},
            r"LayerNorm.weight has shape \[20\], expected \[15\]; .* and \d+ more$",
        ),
    ],
)
def test_settings_that_are_wrong(changes, message, tmp_path):
    folder = make_folder(tmp_path / "hf", **changes)
    with pytest.raises(ValueError, match=message) as error:
        read(folder)
    assert str(folder) in str(error.value)


def test_layers_halves_and_extras(tmp_path):
    folder = make_folder(tmp_path / "hf")
    change_tensors(folder, strange__thing=np.ones(3, "float32"), count=np.array([1]))
    assert read(folder).left_over == ["count", "strange.thing"]
    edit(folder, num_hidden_layers=1)
    left_over = read(folder).left_over
    assert len(left_over) == 18 and "bert.encoder.layer.1.output.dense.bias" in left_over
    change_tensors(folder, cls__predictions__bias=None, bert__pooler__dense__bias=None)
    with pytest.raises(ValueError, match="pooler.dense.bias is missing; cls.predictions.bias is"):
        read(folder)


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_weights_of_another_type(dtype, tmp_path):
    folder = make_folder(tmp_path / "hf")
    change_tensors(folder, cls__predictions__bias=np.zeros(31, dtype))
    with pytest.raises(ValueError, match="cls.predictions.bias is of the type .*F32, F16 or BF16"):
        read(folder)


def test_json_nested_without_end(tmp_path):
    folder = make_folder(tmp_path / "hf")
    (folder / "config.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="config.json is not valid JSON"):
        read(folder)


# Out.


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kind", GOLDEN_CLASSES)
def test_written_and_read_again(kind, dtype, tmp_path):
    old = read(make_folder(tmp_path / "hf", kind, hidden_act="gelu_new", layer_norm_eps=1e-7))
    old.vocabulary, old.dtype = WORDS, dtype
    old.tokenizer = {
        "lowercase": False,
        "strip_accents": True,
        "max_word_length": 100,
        "splitting": "bert",
        "special_tokens_in_text": kind == "BertForPreTraining",
    }
    (tmp_path / "new").mkdir()
    notes = huggingface.write(old, tmp_path / "new")
    # Random numbers in float32 are not those of the narrower types.
    assert [note for note in notes if "rounded to" not in note] == []
    assert len(notes) == (dtype != "float32")
    new = read(tmp_path / "new")
    if dtype == "float32":
        same_tensors(old, new)
        assert sorted(load_file(tmp_path / "new" / "model.safetensors")) == sorted(tensors_of(kind))
    (tmp_path / "again").mkdir()
    assert huggingface.write(new, tmp_path / "again") == []
    again = read(tmp_path / "again")
    same_tensors(new, again)
    for name in ("config", "head", "labels", "problem", "head_dropout", "tokenizer", "vocabulary"):
        assert getattr(again, name) == getattr(old, name), name
    assert again.dtype == dtype and again.left_over == []
    config = json.loads((tmp_path / "new" / "config.json").read_text())
    assert config["architectures"] == [kind] and config["hidden_act"] == "gelu_new"
    assert config["dtype"] == config["torch_dtype"] == dtype and config["pad_token_id"] == 0


def everything(tmp_path) -> Contents:
    """Contents with all heads at once."""
    contents = read(make_folder(tmp_path / "all"))
    contents.tensors |= {"head/kernel": np.ones((20, 3), "float32"), "head/bias": np.ones(3)}
    contents.head = "classifier"
    return contents


def test_a_head_goes_before_those_of_pretraining(tmp_path):
    contents = everything(tmp_path)
    (tmp_path / "new").mkdir()
    notes = huggingface.write(contents, tmp_path / "new")
    assert notes == [
        "transformers' BertForSequenceClassification does not have the heads of pre-training: "
        "left out"
    ]
    new = read(tmp_path / "new")
    assert new.head == "classifier" and not new.has("masked_lm_head/")
    assert new.labels == ["LABEL_0", "LABEL_1", "LABEL_2"]


def test_a_pooler_is_left_out_where_the_class_has_none(tmp_path):
    contents = everything(tmp_path)
    contents.head = "token_classifier"
    (tmp_path / "new").mkdir()
    notes = huggingface.write(contents, tmp_path / "new")
    assert any("BertForTokenClassification does not have the pooler" in note for note in notes)
    assert not read(tmp_path / "new").has("pooler/")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.tensors.pop("block_1/attention_norm/beta"), "LayerNorm.bias is missing"),
        (lambda c: c.tensors.pop("head/bias"), "classifier.bias is missing"),
        (lambda c: c.tensors.pop("pooler/bias"), "pooler.dense.bias is missing"),
        (lambda c: setattr(c, "labels", ["a"]), "1 labels are for 3 classes"),
        (lambda c: setattr(c, "dtype", "float8"), "dtype='float8': expected float32, "),
        (lambda c: c.config.update(activation="elu"), "activation 'elu' can't be said"),
        (
            lambda c: (c.tensors["pooler/bias"].fill(1e38), setattr(c, "dtype", "float16")),
            "pooler.dense.bias has numbers too large for float16",
        ),
        (
            lambda c: [c.tensors.pop(f"pooler/{name}") for name in ("kernel", "bias")],
            "BertForSequenceClassification needs a pooler",
        ),
    ],
)
def test_what_cannot_be_written(change, message, tmp_path):
    contents = everything(tmp_path)
    change(contents)
    (tmp_path / "new").mkdir()
    with pytest.raises(ValueError, match=message):
        huggingface.write(contents, tmp_path / "new")


def test_a_head_without_tensors_and_no_pooler(tmp_path):
    contents = read(make_folder(tmp_path / "hf", "BertForTokenClassification"))
    for name in ("head/kernel", "head/bias"):
        del contents.tensors[name]
    (tmp_path / "new").mkdir()
    assert huggingface.write(contents, tmp_path / "new") == [
        "the head 'token_classifier' has no tensors: its settings are left out",
        "there is no pooler: transformers' BertModel will make a new one",
    ]
    assert read(tmp_path / "new").head is None


def test_settings_that_only_the_file_beside_says(tmp_path):
    contents = read(make_folder(tmp_path / "hf", "BertForQuestionAnswering"))
    contents.head_dropout = 0.25
    (tmp_path / "new").mkdir()
    huggingface.write(contents, tmp_path / "new")
    assert read(tmp_path / "new").head_dropout == 0.25
    (tmp_path / "new" / "keras_bert.json").unlink()
    assert read(tmp_path / "new").head_dropout == 0.0
