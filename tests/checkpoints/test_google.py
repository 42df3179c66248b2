"""The original form: google-research/bert's TensorFlow 1 checkpoints, read and written."""

import dataclasses
import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert import BertBackbone, BertPretrainer
from keras_bert.checkpoints import google, open_checkpoint
from keras_bert.checkpoints.contents import Contents
from keras_bert.checkpoints.names import expand, weights_by_name
from keras_bert.checkpoints.source import Source
from keras_bert.checkpoints.tensorflow_files import (
    find_prefix,
    read_index,
    read_tensors,
)

V, H, INNER, P, S, LAYERS = 31, 6, 10, 11, 3, 2
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuv"]  # 27 of 31 rows
CONFIG = {
    "attention_probs_dropout_prob": 0.125,
    "directionality": "bidi",  # in the multilingual model; means nothing to modeling.py
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.25,
    "hidden_size": H,
    "initializer_range": 0.03,
    "intermediate_size": INNER,
    "max_position_embeddings": P,
    "num_attention_heads": 3,
    "num_hidden_layers": LAYERS,
    "pooler_fc_size": 768,
    "type_vocab_size": S,
    "vocab_size": V,
}
READ_CONFIG = {
    "vocabulary_size": V,
    "num_layers": LAYERS,
    "num_heads": 3,
    "hidden_dim": H,
    "intermediate_dim": INNER,
    "max_sequence_length": P,
    "num_segments": S,
    "activation": "gelu_tanh",
    "hidden_dropout": 0.25,
    "attention_dropout": 0.125,
    "initializer_range": 0.03,
    "layer_norm_epsilon": 1e-12,
}


def dense(theirs, ours, inputs, outputs):
    return {f"{theirs}/kernel": (f"{ours}/kernel", (inputs, outputs))} | {
        f"{theirs}/bias": (f"{ours}/bias", (outputs,))
    }


def norm(theirs, ours):
    return {f"{theirs}/LayerNorm/{part}": (f"{ours}/{part}", (H,)) for part in ("gamma", "beta")}


def spelled_out(heads=True):
    """{their name: (our name, their shape)}, written down apart from the module's table."""
    names = {
        "bert/embeddings/word_embeddings": ("embeddings/word/embeddings", (V, H)),
        "bert/embeddings/position_embeddings": ("embeddings/position_table", (P, H)),
        "bert/embeddings/token_type_embeddings": ("embeddings/segment_table", (S, H)),
        **norm("bert/embeddings", "embeddings/layer_norm"),
        **dense("bert/pooler/dense", "pooler", H, H),
    }
    for i in range(LAYERS):
        layer, block = f"bert/encoder/layer_{i}", f"block_{i}"
        for part in ("query", "key", "value"):
            names |= dense(f"{layer}/attention/self/{part}", f"{block}/attention/{part}", H, H)
        names |= dense(f"{layer}/attention/output/dense", f"{block}/attention/output", H, H)
        names |= norm(f"{layer}/attention/output", f"{block}/attention_norm")
        names |= dense(f"{layer}/intermediate/dense", f"{block}/intermediate", H, INNER)
        names |= dense(f"{layer}/output/dense", f"{block}/feedforward_output", INNER, H)
        names |= norm(f"{layer}/output", f"{block}/feedforward_norm")
    if heads:
        transform = "cls/predictions/transform"
        names |= dense(f"{transform}/dense", "masked_lm_head/dense", H, H)
        names |= norm(transform, "masked_lm_head/layer_norm")
        names["cls/predictions/output_bias"] = ("masked_lm_head/output_bias", (V,))
        next_sentence = "next_sentence_head/dense"
        names["cls/seq_relationship/output_weights"] = (f"{next_sentence}/kernel", (2, H))
        names["cls/seq_relationship/output_bias"] = (f"{next_sentence}/bias", (2,))
    return names


def numbers(shape):
    return np.random.normal(size=shape).astype("float32")


def save(prefix, tensors):
    names = sorted(tensors)
    values = [tf.constant(tensors[name]) for name in names]
    tf.raw_ops.SaveV2(
        prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=values
    )


def variables(heads=True):
    """A checkpoint's variables, with Adam's slots as run_pretraining.py leaves them."""
    tensors = {name: numbers(shape) for name, (_, shape) in spelled_out(heads).items()}
    slots = {f"{n}/adam_{m}": np.zeros_like(v) for n, v in tensors.items() for m in "mv"}
    return tensors | slots | {"global_step": np.int64(20)}


def original(folder, tensors=None, prefix="bert_model.ckpt", **changes):
    """Makes a folder as google-research/bert does, without our writer."""
    folder.mkdir(exist_ok=True)
    (folder / "bert_config.json").write_text(json.dumps(CONFIG | changes))
    (folder / "vocab.txt").write_text("\n".join(TOKENS))
    tensors = variables() if tensors is None else tensors
    save(folder / prefix, tensors)
    return folder


def contents(head=None, classes=3, pretraining=False, **changes):
    tensors = {}
    for theirs, (ours, shape) in spelled_out(pretraining).items():
        tensors[ours] = numbers(shape[::-1] if theirs.endswith("output_weights") else shape)
    if head:
        tensors |= {"head/kernel": numbers((H, classes)), "head/bias": numbers(classes)}
    text = {
        "lowercase": True,
        "strip_accents": None,
        "max_word_length": 200,
        "splitting": "bert",
        "special_tokens_in_text": False,
    }
    values = {"tokenizer": text, "vocabulary": TOKENS} | changes
    return Contents("made up", dict(READ_CONFIG), tensors, head, **values)


def assert_same(found, expected):
    assert found.tensors.keys() == expected.tensors.keys()
    for name, value in expected.tensors.items():
        assert found.tensors[name].dtype == np.float32
        np.testing.assert_array_equal(found.tensors[name], value, err_msg=name)
    for field in dataclasses.fields(Contents):
        if field.name not in ("source", "tensors"):
            assert getattr(found, field.name) == getattr(expected, field.name), field.name


def message(error, folder, **arguments):
    with pytest.raises(error) as caught:
        google.read(Source(folder), **arguments)
    return str(caught.value)


# Reading


def test_names_are_those_of_the_models_weights():
    keras.utils.set_random_seed(0)
    config = dict(READ_CONFIG, num_layers=3)
    weights = weights_by_name(BertPretrainer(BertBackbone(**config)))
    assert {row.ours for row in expand(google.NAMES, 3)} == set(weights)


def test_reads_an_original_checkpoint(tmp_path):
    tensors = variables()
    found = google.read(Source(original(tmp_path / "bert", tensors)))
    assert found.config == READ_CONFIG
    assert (found.head, found.labels, found.dtype) == (None, None, "float32")
    assert found.vocabulary == TOKENS and found.tokenizer == contents().tokenizer
    assert found.left_over == []  # slots and step are known to mean nothing
    names = spelled_out()
    assert found.tensors.keys() == {ours for ours, _ in names.values()}
    for theirs, (ours, _) in names.items():
        value = tensors[theirs].T if theirs.endswith("output_weights") else tensors[theirs]
        np.testing.assert_array_equal(found.tensors[ours], value, err_msg=ours)


def test_the_published_toy_checkpoint(shared_dir):
    """The tiny file of CyberZHG/keras-bert, written by TensorFlow 1."""
    folder = shared_dir / "data" / "tiny_checkpoints" / "keras_bert_tf1"
    found = google.read(Source(folder))
    assert found.config["vocabulary_size"] == 15 and len(found.tensors) == 46
    assert found.left_over == [] and found.tokenizer["lowercase"]
    reader = tf.train.load_checkpoint(str(folder / "bert_model.ckpt"))
    for row in expand(google.NAMES, 2):
        value = reader.get_tensor(row.theirs)
        value = value.T if row.layout == "transposed" else value
        np.testing.assert_array_equal(found.tensors[row.ours], value, err_msg=row.ours)
    for prefix in ("bert_model.ckpt", find_prefix(folder)):
        assert_same(google.read(Source(folder), prefix=prefix), found)


def test_settings_alone_open_no_weight_file(tmp_path):
    folder = original(tmp_path / "bert")
    for path in folder.glob("bert_model.ckpt*"):
        path.unlink()
    found = google.read(Source(folder), weights=False)
    assert found.config == READ_CONFIG and found.tensors == {} and found.vocabulary == TOKENS


def test_row_0_of_the_next_sentence_head_is_is_next(tmp_path):
    tensors = variables()
    tensors["cls/seq_relationship/output_bias"] = np.array([7, -7], "float32")
    tensors["cls/seq_relationship/output_weights"][0] = 5
    found = google.read(Source(original(tmp_path / "bert", tensors)))
    np.testing.assert_array_equal(found.tensors["next_sentence_head/dense/bias"], [7, -7])
    np.testing.assert_array_equal(found.tensors["next_sentence_head/dense/kernel"][:, 0], [5] * H)
    google.write(found, tmp_path)
    written = tf.train.load_checkpoint(str(tmp_path / "bert_model.ckpt"))
    name = "cls/seq_relationship/output_weights"
    np.testing.assert_array_equal(written.get_tensor(name), tensors[name])


def test_prefix_among_several(tmp_path):
    folder = original(tmp_path / "bert", prefix="model.ckpt-9")
    save(folder / "model.ckpt-10", variables())
    save(folder / "model.ckpt-100", variables())
    save(folder / "other.ckpt", variables())
    assert find_prefix(folder) == "model.ckpt-100"
    text = 'model_checkpoint_path: "/somewhere/else/model.ckpt-10"\n'
    text += 'all_model_checkpoint_paths: "model.ckpt-9"\n'
    (folder / "checkpoint").write_text(text)
    assert find_prefix(folder) == "model.ckpt-10"
    (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-11"\n')
    assert find_prefix(folder) == "model.ckpt-100"
    (folder / "checkpoint").write_bytes(b"\xff\xfe\0")
    assert find_prefix(folder) == "model.ckpt-100"
    by_prefix = google.read(Source(folder), prefix="model.ckpt-9")
    first = google.read(Source(original(tmp_path / "bert")))
    assert find_prefix(folder) == "bert_model.ckpt"
    name = "pooler/kernel"
    assert (first.tensors[name] != by_prefix.tensors[name]).all()


def test_where_nothing_fits(tmp_path):
    folder = original(tmp_path / "bert", {"dense/kernel": numbers((2, 3)), "other": numbers(3)})
    text = message(ValueError, folder)
    assert "bert/embeddings/word_embeddings is missing" in text
    assert "2 variables begin with: dense/kernel, other" in text
    assert "Files: bert_config.json, bert_model.ckpt.data-00000-of-00001, bert_model" in text
    assert "has no model.ckpt-7.index; found: bert_config.json, " in message(
        FileNotFoundError, folder, prefix="model.ckpt-7"
    )
    (folder / "bert_model.ckpt.index").unlink()
    text = message(FileNotFoundError, folder)
    assert "expected bert_model.ckpt.index" in text and "vocab.txt" in text


def test_a_missing_layer_is_an_error_with_names(tmp_path):
    tensors = {name: v for name, v in variables().items() if "layer_1/" not in name}
    text = message(ValueError, original(tmp_path / "bert", tensors))
    assert "bert/encoder/layer_1/attention/self/query/kernel is missing" in text
    assert "and 8 more" in text and "bert_model.ckpt" in text


def test_other_variables_are_listed(tmp_path):
    tensors = variables() | {
        "bert/extra/kernel": numbers((3, 2)),
        "a/name": tf.constant(["text"]),  # of another type altogether
        "count": np.int32(3),
        "bert/pooler/dense/kernel/lamb_m": numbers((H, H)),
        "beta1_power": np.float32(0.9),
    }
    found = google.read(Source(original(tmp_path / "bert", tensors)))
    assert found.left_over == ["a/name", "bert/extra/kernel", "count"]


def test_pooler_and_heads_may_be_missing_but_not_half_of_one(tmp_path):
    tensors = {n: v for n, v in variables(heads=False).items() if "pooler" not in n}
    found = google.read(Source(original(tmp_path / "bert", tensors)))
    assert not found.has("pooler/") and not found.has("masked_lm_head/")
    tensors["bert/pooler/dense/kernel"] = numbers((H, H))
    text = message(ValueError, original(tmp_path / "bert", tensors))
    assert "bert/pooler/dense/bias is missing" in text


@pytest.mark.parametrize(
    "names, rows, head, problem",
    [
        (("output_weights", "output_bias"), 3, "classifier", "single_label"),
        (("output_weights", "output_bias"), 1, "classifier", "regression"),
        (("cls/squad/output_weights", "cls/squad/output_bias"), 2, "span", "single_label"),
    ],
)
def test_heads_of_run_classifier_and_run_squad(tmp_path, names, rows, head, problem):
    tensors = variables(heads=False)
    tensors |= {names[0]: numbers((rows, H)), names[1]: numbers(rows)}
    found = google.read(Source(original(tmp_path / "bert", tensors)))
    assert (found.head, found.problem, found.left_over) == (head, problem, [])
    np.testing.assert_array_equal(found.tensors["head/kernel"], tensors[names[0]].T)
    np.testing.assert_array_equal(found.tensors["head/bias"], tensors[names[1]])


@pytest.mark.parametrize(
    "dtype, stored", [("float16", np.float16), ("bfloat16", tf.bfloat16.as_numpy_dtype)]
)
def test_half_precision_becomes_float32_exactly(tmp_path, dtype, stored):
    tensors = {name: value.astype(stored) for name, value in variables(heads=False).items()}
    found = google.read(Source(original(tmp_path / "bert", tensors)))
    assert found.dtype == dtype
    for name in ("bert/pooler/dense/kernel", "bert/pooler/dense/bias"):
        expected = tensors[name].astype("float32")
        np.testing.assert_array_equal(found.tensors[spelled_out()[name][0]], expected)


@pytest.mark.parametrize(
    "tokens, lowercase",
    [
        (["[MASK]", "the", "##s"], True),
        (["[MASK]", "[unused1]", "<S>", "<T>"], True),  # the Chinese model's
        (["ℝ", "##ℝ"], True),  # the uncased model's: upper-case, but it has no lower case
        (["the", "The"], False),
        (["##É"], False),
    ],
)
def test_case_by_the_vocabulary(tmp_path, tokens, lowercase):
    folder = original(tmp_path / "bert")
    (folder / "vocab.txt").write_text("\n".join(["[UNK]", *tokens]), encoding="utf-8")
    assert google.read(Source(folder), weights=False).tokenizer["lowercase"] is lowercase


def test_case_of_the_published_vocabularies(tmp_path, shared_dir):
    folder = original(tmp_path / "bert", vocab_size=200_000)
    cased = {"base-uncased": False, "base-cased": True, "base-chinese": False}
    for name, expected in (cased | {"base-multilingual-cased": True}).items():
        vocabulary = shared_dir / "data" / "vocab" / f"bert-{name}-vocab.txt"
        shutil.copyfile(vocabulary, folder / "vocab.txt")
        found = google.read(Source(folder), weights=False)
        assert found.tokenizer["lowercase"] is not expected, name


@pytest.mark.parametrize(
    "theirs, ours", [("gelu", "gelu_tanh"), ("GELU", "gelu_tanh"), ("relu", "relu")]
)
def test_activation(tmp_path, theirs, ours):
    folder = original(tmp_path / "bert", hidden_act=theirs)
    assert google.read(Source(folder), weights=False).config["activation"] == ours


def test_several_data_files_and_many_variables(tmp_path):
    """Two shards as a TPU's host leaves them, and an index of several blocks."""
    many = {f"{'scope/' * 20}{i}": np.float32([i, -i]) for i in range(5_000)}
    save(tmp_path / "a", many)
    save(tmp_path / "b", {"last": numbers((3, 7))})
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(tmp_path / "a"), str(tmp_path / "b")],
        destination_prefix=str(tmp_path / "model.ckpt"),
    )
    assert (tmp_path / "model.ckpt.data-00001-of-00002").is_file()
    index = read_index(tmp_path / "model.ckpt.index")
    expected = {name: tuple(s) for name, s in tf.train.list_variables(str(tmp_path / "model.ckpt"))}
    assert {name: variable.shape for name, variable in index.items()} == expected
    names = ["last", *list(many)[::500]]
    found = read_tensors("model.ckpt", index, names, tmp_path.joinpath)
    for name in names:
        value = tf.train.load_variable(str(tmp_path / "model.ckpt"), name)
        np.testing.assert_array_equal(found[name], value)


# Writing


@pytest.mark.parametrize("head", [None, "classifier", "token_classifier", "span", "choice"])
def test_tensorflow_reads_the_same_bits(tmp_path, head):
    classes = {"span": 2, "choice": 1}.get(head, 5)
    made = contents(head, classes, pretraining=True)
    google.write(made, tmp_path)
    reader = tf.train.load_checkpoint(str(tmp_path / "bert_model.ckpt"))
    names = {theirs: ours for theirs, (ours, _) in spelled_out().items()}
    if head:
        scope = "cls/squad/" if head == "span" else ""
        names |= {f"{scope}output_weights": "head/kernel", f"{scope}output_bias": "head/bias"}
    assert set(reader.get_variable_to_shape_map()) == set(names)
    for theirs, ours in names.items():
        value = reader.get_tensor(theirs)
        value = value.T if theirs.endswith("output_weights") else value
        assert value.dtype == np.float32
        np.testing.assert_array_equal(value, made.tensors[ours], err_msg=theirs)
    written = json.loads((tmp_path / "bert_config.json").read_text())
    known = {k: v for k, v in CONFIG.items() if k not in ("directionality", "pooler_fc_size")}
    assert written == known
    assert (tmp_path / "vocab.txt").read_text().splitlines() == TOKENS


@pytest.mark.parametrize(
    "head, changes",
    [
        (None, {}),
        (None, {"pretraining": True}),
        (None, {"tokenizer": None, "vocabulary": None}),
        ("classifier", {"labels": ["bad", "middling", "gut ✓"], "head_dropout": 0.25}),
        ("classifier", {"problem": "multi_label", "dtype": "bfloat16"}),
        ("classifier", {"classes": 1, "problem": "regression"}),
        ("token_classifier", {"labels": ["O", "B-X", "I-X"], "head_dropout": 0}),
        ("span", {"classes": 2, "dtype": "float16"}),
        ("choice", {"classes": 1}),
    ],
)
def test_what_is_written_comes_back(tmp_path, head, changes):
    made = contents(head, **changes)
    google.write(made, tmp_path)
    assert_same(google.read(Source(tmp_path)), made)


def test_settings_that_the_form_lacks_come_back_and_are_noted(tmp_path):
    made = contents("choice", 1, head_dropout=0.25, dtype="float16")
    made.config |= {"activation": "gelu_exact", "layer_norm_epsilon": 1e-5}
    made.tokenizer = {
        "lowercase": False,
        "strip_accents": True,
        "max_word_length": 100,
        "splitting": "spaces",
        "special_tokens_in_text": True,
    }
    notes = google.write(made, tmp_path)
    assert_same(google.read(Source(tmp_path)), made)
    assert json.loads((tmp_path / "bert_config.json").read_text())["hidden_act"] == "gelu"
    for word in ("gelu", "1e-05", "float16", "choice", "head_dropout", *made.tokenizer):
        assert sum(word in note for note in notes) == 1, (word, notes)
    # Without the sidecar, what the form says counts.
    (tmp_path / "keras_bert.json").unlink()
    found = google.read(Source(tmp_path))
    assert (found.config["activation"], found.config["layer_norm_epsilon"]) == ("gelu_tanh", 1e-12)
    assert (found.head, found.problem) == ("classifier", "regression")


def test_an_activation_that_the_original_lacks(tmp_path):
    made = contents()
    made.config["activation"] = "silu"
    assert "silu" in google.write(made, tmp_path)[0]
    assert_same(google.read(Source(tmp_path)), made)
    (tmp_path / "keras_bert.json").unlink()
    assert "hidden_act is 'silu'; expected one of gelu, relu" in message(ValueError, tmp_path)


def test_nothing_to_note_about_what_the_form_can_hold(tmp_path):
    assert google.write(contents("classifier"), tmp_path) == []


@pytest.mark.parametrize(
    "change, expected",
    [
        (lambda c: c.tensors.pop("pooler/bias"), "bert/pooler/dense/bias is missing"),
        (
            lambda c: c.config.update(num_heads=4),
            "hidden_size 6 is not divisible by num_attention_heads 4",
        ),
        (lambda c: c.config.update(vocabulary_size=30), r"\[31, 6\], expected \[30, 6\]"),
        (lambda c: setattr(c, "labels", ["one"]), "1 labels are for 3 classes"),
        (lambda c: setattr(c, "vocabulary", TOKENS * 2), "54 tokens for the 31 rows"),
        (lambda c: setattr(c, "vocabulary", None), "a tokenizer without a vocabulary"),
        (lambda c: setattr(c, "vocabulary", ["[UNK]", "a\nb"]), "without a line end"),
    ],
)
def test_writes_nothing_that_does_not_fit(tmp_path, change, expected):
    made = contents("classifier")
    change(made)
    with pytest.raises(ValueError, match=expected):
        google.write(made, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_notes_what_it_does_not_write(tmp_path):
    made = contents()
    made.tensors["adapter/kernel"] = numbers((3, 2))
    assert google.write(made, tmp_path)[0].startswith("adapter/kernel has no place")


# Damage


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"num_hidden_layers": 3}, "bert/encoder/layer_2/attention/self/query/kernel is missing"),
        ({"num_hidden_layers": 1}, "num_hidden_layers is 1, but there is a layer_1"),
        ({"vocab_size": 32}, "word_embeddings has shape [31, 6], expected [32, 6]"),
        ({"vocab_size": 26}, "vocab.txt has 27 tokens for the 26 rows"),
        ({"hidden_size": 9}, "word_embeddings has shape [31, 6], expected [31, 9]"),
        ({"intermediate_size": 11}, "kernel has shape [6, 10], expected [6, 11]"),
        ({"max_position_embeddings": 12}, "has shape [11, 6], expected [12, 6]"),
        ({"num_attention_heads": 4}, "hidden_size 6 is not divisible by num_attention_heads 4"),
        (
            {"num_attention_heads": 0},
            "num_attention_heads is 0; expected a number from 1 to 1,000,000",
        ),
        (
            {"num_hidden_layers": 10**9},
            "num_hidden_layers is 1000000000; expected a number from 1 to 1,000",
        ),
        ({"num_hidden_layers": True}, "num_hidden_layers is True; expected"),
        ({"vocab_size": "31"}, "vocab_size is '31'; expected"),
        (
            {"hidden_dropout_prob": float("nan")},
            "hidden_dropout_prob is nan; expected a number from 0 to less than 1",
        ),
        ({"hidden_dropout_prob": None}, "hidden_dropout_prob is None"),
        ({"hidden_act": "swish"}, "hidden_act is 'swish'; expected one of gelu, relu"),
        ({"hidden_act": None}, "hidden_act is None"),
    ],
)
def test_a_config_that_does_not_fit(tmp_path, changes, expected):
    text = message(ValueError, original(tmp_path / "bert", **changes))
    assert expected in text and str(tmp_path) in text


def test_a_config_that_is_none(tmp_path):
    folder = original(tmp_path / "bert")
    path = folder / "bert_config.json"
    path.write_text("{'vocab_size': 31}")
    assert "bert_config.json is not valid JSON" in message(ValueError, folder)
    path.write_text('{"vocab_size": ' + "[" * 100_000)
    assert "bert_config.json is not valid JSON" in message(ValueError, folder)
    path.write_text("[1]")
    assert "expected a JSON object, found list" in message(ValueError, folder)
    path.write_text(json.dumps({k: v for k, v in CONFIG.items() if "size" not in k}))
    text = message(ValueError, folder)
    assert "has no vocab_size, hidden_size, intermediate_size, type_vocab_size; found:" in text
    path.unlink()
    assert "has no bert_config.json; found: " in message(FileNotFoundError, folder)


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"head": "classifier"}, "output_weights is missing"),
        ({"head": "span"}, "squad/output_weights has shape [3, 6], expected [2, 6]"),
        ({"head": "choice"}, "; output_bias has shape [3], expected [1]"),
        ({"head": "token_classifier", "labels": ["O"]}, "1 labels are for 3 classes"),
        ({"problem": "none"}, "keras_bert.json: unexpected problem: 'none'"),
        ({"dtype": "int8"}, "unexpected dtype: 'int8'"),
        ({"labels": [[1]]}, "unexpected labels: [[1]]"),
        ({"head_dropout": 1.5}, "unexpected head_dropout: 1.5"),
        ({"tokenizer": {"lower": True}}, "unexpected tokenizer: {'lower': True}"),
        ({"tokenizer": {"max_word_length": 0}}, "unexpected tokenizer"),
        ({"config": {"hidden_dropout": "x"}}, "unexpected config: {'hidden_dropout': 'x'}"),
        ({"config": {"layer_norm_epsilon": 0}}, "unexpected config: {'layer_norm_epsilon': 0}"),
        ({"config": {"num_layers": 2}}, "unexpected config: {'num_layers': 2}"),
        ({"masked_lm": {"hidden_dropout": 0.1}}, "unexpected masked_lm: {'hidden_dropout': 0.1}"),
        ({"head": "poet", "more": 1}, "unexpected head: 'poet'; more: 1"),
    ],
)
def test_a_sidecar_that_does_not_fit(tmp_path, changes, expected):
    tensors = variables(heads=False)
    if changes.get("head") != "classifier":
        scope = "cls/squad/" if changes.get("head") == "span" else ""
        tensors |= {f"{scope}output_weights": numbers((3, H)), f"{scope}output_bias": numbers(3)}
    folder = original(tmp_path / "bert", tensors)
    (folder / "keras_bert.json").write_text(json.dumps({"version": 1} | changes))
    assert expected in message(ValueError, folder)


def test_a_tokenizer_without_its_vocabulary(tmp_path):
    google.write(contents(), tmp_path)
    (tmp_path / "vocab.txt").unlink()
    assert "has no vocab.txt; found: " in message(FileNotFoundError, tmp_path)


def test_a_cut_index_and_cut_or_missing_data(tmp_path):
    folder = original(tmp_path / "bert")
    index, data = (folder / f"bert_model.ckpt.{n}" for n in ("index", "data-00000-of-00001"))
    whole_index, whole_data = index.read_bytes(), data.read_bytes()
    for size in (0, 10, 48, len(whole_index) - 1):
        index.write_bytes(whole_index[:size])
        assert f"{index} is not the whole index" in message(ValueError, folder)
    index.write_bytes(whole_index)
    for size in (0, 10, len(whole_data) - 1):  # the last 8 bytes are the global step's
        data.write_bytes(whole_data[:size])
        assert f"{data} has {size} bytes; " in message(ValueError, folder)
    data.write_bytes(whole_data[:4] + bytes([whole_data[4] ^ 1]) + whole_data[5:])
    assert f"{data} is damaged: the numbers of bert/embeddings/La" in message(ValueError, folder)
    data.unlink()
    assert f"has no {data.name}; found: " in message(FileNotFoundError, folder)


def test_checkpoints_of_the_model_garden_are_named_as_another_form(tmp_path):
    """TensorFlow 2 saves by objects; with a bert_config.json beside it and without."""
    module = tf.Module()
    module.table = tf.Variable(tf.zeros([7, 4]))
    tf.train.Checkpoint(model=module).write(str(tmp_path / "bert_model.ckpt"))
    for _ in range(2):
        with pytest.raises(
            ValueError, match="object-based checkpoint of TensorFlow 2.*another form"
        ):
            open_checkpoint(tmp_path)
        (tmp_path / "bert_config.json").write_text(json.dumps(CONFIG))
    served = tmp_path / "served"
    tf.saved_model.save(module, str(served))
    with pytest.raises(ValueError, match="is a SavedModel.*another form"):
        open_checkpoint(served)
