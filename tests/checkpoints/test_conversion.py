"""From form to form and back: bit for bit, with heads, labels, vocabulary and settings."""

import json

import numpy as np
import pytest

import keras_bert
from keras_bert.checkpoints import contents_of, open_checkpoint, save_checkpoint
from keras_bert.checkpoints.contents import Contents
from keras_bert.checkpoints.names import weights_by_name
from keras_bert.tasks.conversion import convert_checkpoint
from keras_bert_cli.main import run

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "Éa", "sat"]
CONFIG = {
    "vocabulary_size": 12,  # two rows more than tokens, as padded tables have
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
    "max_sequence_length": 10,
    "num_segments": 2,
    "activation": "gelu_exact",
    "hidden_dropout": 0.1,
    "attention_dropout": 0.2,
    "layer_norm_epsilon": 1e-7,
    "initializer_range": 0.03,
}
KINDS = {
    "backbone": {},
    "pretrainer": {"mlm": True, "nsp": True},
    "masked_lm": {"mlm": True},
    "classifier": {"head": "classifier", "classes": 3, "labels": ["bad", "good", "so-so"]},
    "token_classifier": {"head": "token_classifier", "classes": 3, "labels": ["O", "B-X", "I-X"]},
    "span": {"head": "span", "classes": 2},
    "choice": {"head": "choice", "classes": 1},
}
# What transformers' classes have no pooler for.
POOLERLESS = ("masked_lm", "token_classifier", "span")


def make(kind, pooler=True):
    """Contents with random tensors for one kind of model."""
    what, rng = KINDS[kind], np.random.default_rng(0)
    backbone = keras_bert.BertBackbone(**CONFIG)
    shapes = {name: tuple(weight.shape) for name, weight in weights_by_name(backbone).items()}
    if not pooler:
        shapes = {name: shape for name, shape in shapes.items() if "pooler" not in name}
    if what.get("mlm"):
        shapes |= {"masked_lm_head/dense/kernel": (8, 8), "masked_lm_head/output_bias": (12,)}
        names = ("dense/bias", "layer_norm/gamma", "layer_norm/beta")
        shapes |= {f"masked_lm_head/{name}": (8,) for name in names}
    if what.get("nsp"):
        shapes |= {"next_sentence_head/dense/kernel": (8, 2), "next_sentence_head/dense/bias": (2,)}
    if what.get("head"):
        shapes |= {"head/kernel": (8, what["classes"]), "head/bias": (what["classes"],)}
    return Contents(
        source="made up",
        config=dict(CONFIG),
        tensors={n: rng.normal(0, 0.2, s).astype("float32") for n, s in shapes.items()},
        head=what.get("head"),
        labels=what.get("labels"),
        head_dropout=0.3 if what.get("head") else None,
        tokenizer={
            "lowercase": False,
            "strip_accents": None,
            "special_tokens_in_text": False,
            "max_word_length": 100,
            "splitting": "bert",
        },
        vocabulary=list(VOCABULARY),
    )


def check_same(old: Contents, new: Contents, settings: bool = True):
    assert old.tensors.keys() == new.tensors.keys()
    for name, tensor in old.tensors.items():
        np.testing.assert_array_equal(tensor, new.tensors[name], err_msg=name)
    assert new.vocabulary == old.vocabulary
    assert not new.left_over
    if settings:
        for name in ("config", "head", "labels", "problem", "head_dropout", "dtype"):
            assert getattr(new, name) == getattr(old, name), name
        unset = keras_bert.BertTokenizer(VOCABULARY).get_config()
        for name, value in (new.tokenizer or {}).items():  # what the old one leaves out is unset
            assert value == (old.tokenizer or {}).get(name, unset[name]), name
        assert (new.tokenizer is None) == (old.tokenizer is None)


@pytest.mark.parametrize(
    "kind",
    [
        "pretrainer",
        "span",
        *(
            pytest.param(k, marks=pytest.mark.slow)
            for k in KINDS
            if k not in ("pretrainer", "span")
        ),
    ],
)
def test_around_without_a_model(kind, tmp_path):
    """Google, Hugging Face, KerasHub, Google: every head, bit for bit."""
    old = make(kind, pooler=kind not in POOLERLESS)
    save_checkpoint(old, tmp_path / "google", "google")
    convert_checkpoint(tmp_path / "google", tmp_path / "hf", "huggingface")
    convert_checkpoint(tmp_path / "hf", tmp_path / "hub", "kerashub")
    convert_checkpoint(tmp_path / "hub", tmp_path / "again", "google")
    for folder in ("google", "hf", "hub", "again"):
        check_same(old, open_checkpoint(tmp_path / folder).contents)


SLOW = pytest.mark.slow


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "task"),
    [
        ("pretrainer", keras_bert.BertPretrainer),
        pytest.param("classifier", keras_bert.BertClassifier, marks=SLOW),
        pytest.param("token_classifier", keras_bert.BertTokenClassifier, marks=SLOW),
        pytest.param("span", keras_bert.BertQuestionAnswerer, marks=SLOW),
        pytest.param("choice", keras_bert.BertMultipleChoice, marks=SLOW),
    ],
)
def test_around_through_presets_of_ours(kind, task, tmp_path):
    old = make(kind, pooler=kind not in POOLERLESS)
    save_checkpoint(old, tmp_path / "google", "google")
    steps = ["google", "ours1", "hf", "ours2", "hub", "ours3", "again"]
    forms = ["keras_bert", "huggingface", "keras_bert", "kerashub", "keras_bert", "google"]
    for before, after, form in zip(steps, steps[1:], forms, strict=False):
        convert_checkpoint(tmp_path / before, tmp_path / after, form)
    again = open_checkpoint(tmp_path / "again").contents
    if kind in POOLERLESS:  # a model of ours has made a new one
        again.tensors = {n: v for n, v in again.tensors.items() if not n.startswith("pooler/")}
    check_same(old, again)
    rng = np.random.default_rng(1)
    batch = {
        "token_ids": rng.integers(0, 12, (3, 9)).astype("int32"),
        "segment_ids": rng.integers(0, 2, (3, 9)).astype("int32"),
        "padding_mask": (np.arange(9) < [[9], [7], [4]]).astype("int32"),
    }
    if kind == "choice":
        batch = {name: value[:, None] for name, value in batch.items()}  # of one choice
    if kind == "pretrainer":
        batch["mask_positions"] = np.array([[1, 2], [3, 4], [0, 1]], "int32")
    first, last = (
        task.from_preset(tmp_path / name)(batch, training=False) for name in ("google", "ours3")
    )
    first, last = (value if isinstance(value, dict) else {"": value} for value in (first, last))
    for name, value in first.items():
        np.testing.assert_allclose(value, last[name], atol=1e-6)


def test_a_model_is_written_with_its_labels(tmp_path):
    tokenizer = keras_bert.BertTokenizer(VOCABULARY, lowercase=False)
    model = keras_bert.BertClassifier(
        keras_bert.BertBackbone(**CONFIG),
        labels=["bad", "good"],
        preprocessor=keras_bert.BertClassifierPreprocessor(tokenizer, 10),
    )
    for form in ("google", "huggingface", "kerashub"):
        save_checkpoint(model, tmp_path / form, form)
        again = keras_bert.BertClassifier.from_preset(tmp_path / form)
        assert again.labels == ["bad", "good"]
        assert not again.loading_report.new and not again.loading_report.left_over
        check_same(contents_of(model), contents_of(again))


def test_numbers_of_another_type_stay_exact(tmp_path):
    old = make("classifier")
    old.dtype = "float16"
    old.tensors = {n: t.astype("float16").astype("float32") for n, t in old.tensors.items()}
    save_checkpoint(old, tmp_path / "hf", "huggingface")
    check_same(old, open_checkpoint(tmp_path / "hf").contents)


def test_original_files_by_folder_prefix_and_index(tmp_path):
    save_checkpoint(make("pretrainer"), tmp_path / "google", "google")
    prefix = tmp_path / "google" / "bert_model.ckpt"
    for path in (tmp_path / "google", prefix, f"{prefix}.index"):
        model = keras_bert.BertPretrainer.from_preset(path)
        assert not model.loading_report.new


def test_next_sentence_order_is_the_originals(tmp_path):
    old = make("pretrainer")
    old.tensors["next_sentence_head/dense/kernel"][:] = 0
    old.tensors["next_sentence_head/dense/bias"][:] = [3, -3]
    save_checkpoint(old, tmp_path / "google", "google")
    model = keras_bert.BertPretrainer.from_preset(tmp_path / "google")
    assert model.next_sentence("the cat", "sat") > 0.99


def test_no_head_for_next_sentences_is_needed(tmp_path):
    save_checkpoint(make("masked_lm"), tmp_path / "google", "google")
    model = keras_bert.BertPretrainer.from_preset(tmp_path / "google", next_sentence=False)
    assert list(model.output) == ["mlm"] and not model.loading_report.new


def test_the_command(tmp_path, capsys):
    save_checkpoint(make("classifier"), tmp_path / "google", "google")
    target = str(tmp_path / "hf")
    assert run(["convert", str(tmp_path / "google"), target, "--to", "huggingface"]) == 0
    assert "hf: huggingface" in capsys.readouterr().out
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert run(["convert", "x", "y", "--to", "onnx"]) == 2


def test_what_cannot_be_written(tmp_path):
    model = keras_bert.BertClassifier(keras_bert.BertBackbone(**CONFIG), num_classes=2)
    with pytest.raises(ValueError, match="form='onnx': expected one of google"):
        save_checkpoint(model, tmp_path / "x", "onnx")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.docx").touch()
    with pytest.raises(FileExistsError, match=r"thesis\.docx"):
        save_checkpoint(model, tmp_path / "mine", "huggingface")
    model.backbone.enable_lora(2)
    with pytest.raises(ValueError, match="call merge_lora first"):
        save_checkpoint(model, tmp_path / "x", "huggingface")
    adapted = keras_bert.BertBackbone(**CONFIG, adapter_dim=2)
    with pytest.raises(ValueError, match="has adapters"):
        save_checkpoint(adapted, tmp_path / "x", "google")
    assert not (tmp_path / "x").exists()


def test_a_classifier_of_other_classes_is_named_in_the_report(tmp_path):
    save_checkpoint(make("classifier"), tmp_path / "google", "google")
    model = keras_bert.BertClassifier.from_preset(
        tmp_path / "google", num_classes=5, skip_mismatch=True
    )
    assert model.loading_report.skipped == ["head/kernel", "head/bias"]
    assert "skipped by skip_mismatch: head/kernel" in str(model.loading_report)
