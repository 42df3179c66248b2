"""KerasHub's presets read: its own, older ones, and damaged ones, which are refused."""

import json
import shutil

import h5py
import keras_hub
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert import BertMaskedLM
from keras_bert.checkpoints import open_checkpoint, save_checkpoint

from .kerashub_folders import (
    CONFIG,
    TOKENIZER,
    VOCABULARY,
    H,
    backbone_of,
    batch,
    check_same,
    edit,
    far,
    make,
    read,
    write,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A preset with everything in it."""
    folder = tmp_path_factory.mktemp("whole")
    write(make("all"), folder)
    return folder


@pytest.fixture
def copy(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "copy")
    return tmp_path / "copy"


# Presets by KerasHub.


def randomize(model, seed=0):
    rng = np.random.default_rng(seed)
    for weight in model.weights:
        weight.assign(rng.normal(0, 0.3, weight.shape))
    return model


def their_backbone(**kwargs):
    sizes = {name: CONFIG[name] for name in list(CONFIG)[:7]}
    return keras_hub.models.BertBackbone(**sizes, dropout=0.15, **kwargs)


def test_classifier_by_kerashub(tmp_path):
    tokenizer = keras_hub.models.BertTokenizer(VOCABULARY, lowercase=True)
    theirs = keras_hub.models.BertTextClassifier(
        their_backbone(),
        5,
        keras_hub.models.BertTextClassifierPreprocessor(tokenizer, 11),
        activation="softmax",
        dropout=0.35,
    )
    randomize(theirs).save_to_preset(str(tmp_path))
    found = read(tmp_path)
    assert (found.head, found.head_dropout, found.labels) == ("classifier", 0.35, None)
    assert found.problem == "single_label"
    np.testing.assert_array_equal(found.tensors["head/kernel"], theirs.output_dense.kernel)
    np.testing.assert_array_equal(found.tensors["head/bias"], theirs.output_dense.bias)
    assert found.config == CONFIG | {"hidden_dropout": 0.15, "attention_dropout": 0.15}
    assert (found.tokenizer, found.vocabulary) == (TOKENIZER, VOCABULARY)
    assert found.left_over == []  # the optimizer's two numbers among them
    inputs = batch(np.random.default_rng(1))
    pooled = backbone_of(found)(inputs)["pooled_output"]
    logits = np.asarray(pooled) @ found.tensors["head/kernel"] + found.tensors["head/bias"]
    shares = np.exp(logits - logits.max(-1, keepdims=True))
    assert far(shares / shares.sum(-1, keepdims=True), theirs(inputs)) <= 2e-5
    edit(tmp_path / "task.json", activation="sigmoid")
    assert read(tmp_path).problem == "multi_label"


def test_masked_lm_by_kerashub(tmp_path):
    theirs = randomize(keras_hub.models.BertMaskedLM(their_backbone()))
    theirs.save_to_preset(str(tmp_path))
    found = read(tmp_path)
    layer, prefix = theirs.masked_lm_head, "masked_lm_head"
    for name, weight in {
        "dense/kernel": layer._intermediate_dense.kernel,
        "dense/bias": layer._intermediate_dense.bias,
        "layer_norm/gamma": layer._intermediate_layer_norm.gamma,
        "layer_norm/beta": layer._intermediate_layer_norm.beta,
        "output_bias": layer._bias,
    }.items():
        np.testing.assert_array_equal(found.tensors[f"{prefix}/{name}"], weight, err_msg=name)
    assert found.head is None and found.tokenizer is None and found.left_over == []
    # Whatever the backbone has; it is said wherever it can't be computed.
    assert found.masked_lm == {"activation": "gelu_exact", "layer_norm_epsilon": 1e-5}
    assert write(found, tmp_path / "again") == []
    check_same(read(tmp_path / "again"), found)
    for form, words in (("google", "no place in this form"), ("huggingface", "logits differ")):
        notes = save_checkpoint(found, tmp_path / form, form)
        assert sum("masked-LM head" in note and words in note for note in notes) == 1
        assert open_checkpoint(tmp_path / form).contents.masked_lm == found.masked_lm


def test_the_head_computes_as_it_does_in_kerashub(tmp_path):
    theirs = randomize(keras_hub.models.BertMaskedLM(their_backbone()))
    theirs.save_to_preset(str(tmp_path))
    model = BertMaskedLM.from_preset(tmp_path)
    inputs = batch(np.random.default_rng(1))
    inputs["mask_positions"] = np.array([[1, 8], [3, 0], [6, 2]], "int32")
    assert far(model(inputs)["mlm"], theirs(inputs)) <= 2e-5


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_presets_of_narrow_types(dtype, tmp_path):
    theirs = randomize(their_backbone(dtype=dtype))
    theirs.save_to_preset(str(tmp_path))
    found = read(tmp_path)
    assert found.dtype == dtype
    wanted = np.asarray(theirs.token_embedding.embeddings, "float32")
    np.testing.assert_array_equal(found.tensors["embeddings/word/embeddings"], wanted)


@pytest.mark.parametrize("group", ["layers", "_layer_checkpoint_dependencies"])
def test_older_spellings_and_packages(group, copy):
    with h5py.File(copy / "model.weights.h5", "r+") as file:
        for name in ("transformer_encoder", "transformer_encoder_1"):
            attention = file[f"layers/{name}/_self_attention_layer"]
            for part in ("query", "key", "value", "output"):
                attention.move(f"{part}_dense", f"_{part}_dense")
            attention.create_dataset("seed_generator/vars/0", data=[1, 2])
        if group != "layers":
            file.move("layers", group)
    edit(copy / "config.json", registered_name="keras_nlp>BertBackbone")
    contents = make("all")
    check_same(read(copy), contents)
    checkpoint = open_checkpoint(copy)
    assert checkpoint.form == "kerashub"
    check_same(checkpoint.contents, contents)
    if group != "layers":  # KerasHub reads the oldest of them too
        theirs = keras_hub.models.BertBackbone.from_preset(str(copy))
        kernel = theirs.transformer_layers[1]._self_attention_layer.query_dense.kernel
        wanted = contents.tensors["block_1/attention/query/kernel"]
        np.testing.assert_array_equal(np.reshape(kernel, (H, H)), wanted)


def test_settings_alone(copy):
    wanted = read(copy)
    for path in [*copy.glob("*.h5"), *copy.glob("*.safetensors")]:
        path.write_bytes(b"")
    found = read(copy, weights=False)
    assert found.tensors == {} and found.config == CONFIG and found.head == "classifier"
    assert found.vocabulary == wanted.vocabulary and found.problem == wanted.problem


def test_other_tensors_are_named(copy):
    with h5py.File(copy / "model.weights.h5", "r+") as file:
        file["layers/extra/vars/0"] = [1.0]
        file["layers/elsewhere"] = h5py.SoftLink("/layers/dense")
        file["layers/circle"] = file["layers"]
    with h5py.File(copy / "task.weights.h5", "r+") as file:
        file["layers/bert_backbone/layers/dense/vars/1"] = [1.0]  # as KerasHub 0.17 did
    edit(copy / "task.json", registered_name="mine>Strange")
    (copy / "keras_bert.json").unlink()
    assert read(copy).left_over == [
        "model.weights.h5/layers/elsewhere",
        "model.weights.h5/layers/extra/vars/0",
        "task.weights.h5/layers/dense/vars/0",
        "task.weights.h5/layers/dense/vars/1",
    ]


# Refused.


def config(**changes):
    return lambda folder: edit(folder / "config.json", **changes)


def text(name, content):
    return lambda folder: (folder / name).write_text(content)


def beside(**changes):
    def change(folder):
        path = folder / "keras_bert.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def heads(change):
    def damage(folder):
        path = folder / "keras_bert_heads.safetensors"
        save_file(change(load_file(path)), path)

    return damage


def weights(change, name="layers/dense/vars/0"):
    """Puts something else into the place of a dataset."""

    def damage(folder):
        outside = folder / "outside"
        np.zeros((H, H), "float32").tofile(outside)
        with h5py.File(folder / "model.weights.h5", "r+") as file:
            value = file[name][()]
            del file[name]
            change(file, name, value, str(outside))

    return damage


def layout(values, outside):
    layout = h5py.VirtualLayout(values.shape, values.dtype)
    layout[:] = h5py.VirtualSource(outside, "x", values.shape)
    return layout


BAD = {
    "class": (
        config(registered_name="keras_hub>RobertaBackbone"),
        "BertBackbone of KerasHub, found RobertaBackbone",
    ),
    "package": (config(registered_name="mine>BertBackbone"), "found mine>BertBackbone"),
    "no config": (
        text("config.json", '{"registered_name": "keras_hub>BertBackbone"}'),
        "no config",
    ),
    "more rows": (config(vocabulary_size=37), r"reversible_embedding/vars/0 has shape \(31, 12\)"),
    "fewer layers": (config(num_layers=1), "num_layers in config.json is 1, and there is more"),
    "more layers": (config(num_layers=3), "transformer_encoder_2/.*missing; .* and 11 more"),
    "other heads": (config(num_heads=2), r"query_dense/vars/0 has shape \(12, 3, 4\)"),
    "odd heads": (config(num_heads=5), "hidden_dim 12 is not divisible by num_heads 5"),
    "huge": (
        config(hidden_dim=999_999, num_heads=1),
        "109,888 bytes; .* takes 16,000,217,999,766 at least",
    ),
    "very huge": (config(num_layers=10**30), "num_layers is 1000000"),
    "negative": (config(num_segments=-3), "num_segments is -3"),
    "bool": (config(num_segments=True), "num_segments is True"),
    "dropout": (config(dropout=float("nan")), "dropout is nan"),
    "nested": (text("config.json", "[" * 100_000), "nested too deeply|not valid JSON"),
    "too many tokens": (
        text("assets/tokenizer/vocabulary.txt", "\n".join(map(str, range(31))) + "\n[UNK]"),
        "32 tokens for the 31 rows of the word table",
    ),
    "classes": (lambda folder: edit(folder / "task.json", num_classes=4), r"shape \(12, 3\), exp"),
    "classes of what": (lambda folder: edit(folder / "task.json", num_classes="3"), "num_classes"),
    "presplit": (lambda folder: edit(folder / "tokenizer.json", split=False), "'split': False"),
    "lowercase": (lambda folder: edit(folder / "tokenizer.json", lowercase="no"), "'lowercase'"),
    "labels": (beside(labels=["a", "b"]), "2 labels are for 3 classes"),
    "label": (beside(labels=[[1], 2, 3]), "unexpected labels"),
    "problem": (beside(problem="hard"), "unexpected problem"),
    "dtype": (beside(dtype="int8"), "unexpected dtype"),
    "share": (beside(head_dropout=1.5), "unexpected head_dropout"),
    "rule": (beside(tokenizer={"lowercase": True, "path": "/"}), "unexpected tokenizer"),
    "epsilon": (beside(config={"layer_norm_epsilon": "small"}), "unexpected config"),
    "two heads": (beside(head="span"), "has the head 'span'; task.json has 'classifier'"),
    "strange head": (heads(lambda t: t | {"x/kernel": t.pop(next(iter(t)))}), "x/kernel is none"),
    "head twice": (heads(lambda t: t | {"head/bias": np.zeros(3, "float32")}), "head/bias is none"),
    "head's shape": (
        heads(lambda t: t | {"next_sentence_head/dense/bias": np.zeros(3, "float32")}),
        r"bias has shape \[3\], expected \[2\]",
    ),
    "half a head": (
        heads(lambda t: {n: v for n, v in t.items() if n != "masked_lm_head/output_bias"}),
        "masked_lm_head/output_bias is missing",
    ),
    "half a pooler": (weights(lambda file, *_: None), "half of a pooler"),
    "no table": (
        weights(lambda file, *_: None, "layers/embedding/vars/0"),
        "layers/embedding/vars/0 is missing",
    ),
    "other file": (
        weights(
            lambda file, name, value, outside: file.create_dataset(
                name, value.shape, "<f4", external=[(outside, 0, value.nbytes)]
            )
        ),
        "outside of the file",
    ),
    "virtual": (
        weights(
            lambda file, name, value, outside: file.create_virtual_dataset(
                name, layout(value, outside)
            )
        ),
        "outside of the file",
    ),
    "external link": (
        weights(
            lambda file, name, value, outside: file.__setitem__(
                name, h5py.ExternalLink(outside, "/")
            )
        ),
        "is a link",
    ),
    "soft link": (
        weights(lambda file, name, *_: file.__setitem__(name, h5py.SoftLink("/layers"))),
        "is a link",
    ),
    "compressed": (
        weights(lambda f, name, value, _: f.create_dataset(name, data=value, compression="gzip")),
        "compressed",
    ),
    "nothing stored": (
        weights(lambda file, name, value, _: file.create_dataset(name, value.shape, "<f4")),
        "needs 576 bytes; 0 are said to lie",
    ),
    "doubles": (
        weights(lambda file, name, value, _: file.create_dataset(name, data=value.astype("f8"))),
        "is of type float64",
    ),
    "whole numbers": (
        weights(lambda file, name, value, _: file.create_dataset(name, data=value.astype("i4"))),
        "is of type int32",
    ),
    "group": (weights(lambda file, name, *_: file.create_group(name)), "is no dataset"),
    "not HDF5": (text("model.weights.h5", "x" * 99_999), "is not a whole .weights.h5 file"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_end_in_one_error(case, copy):
    damage, message = BAD[case]
    damage(copy)
    with pytest.raises(ValueError, match=message) as caught:
        read(copy)
    assert str(copy) in str(caught.value)


@pytest.mark.parametrize(
    "name", ["config.json", "model.weights.h5", "assets/tokenizer/vocabulary.txt"]
)
def test_missing_files(name, copy):
    (copy / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"has no {name}"):
        read(copy)


@pytest.mark.parametrize("count", [60, pytest.param(1500, marks=pytest.mark.slow)])
def test_damaged_weights(count, copy):
    """Bits and bytes changed, and files cut off: an error of ours, or other numbers."""
    path, rng, refused = copy / "model.weights.h5", np.random.default_rng(0), 0
    content = path.read_bytes()
    used = np.flatnonzero(np.frombuffer(content, "u1"))  # most of the file is empty
    for i in range(count):
        data = bytearray(content)
        for at in rng.choice(used, rng.integers(1, 9)):
            data[at : at + 1] = rng.bytes(1)
        path.write_bytes(data[: rng.integers(len(data))] if i % 5 == 0 else data)
        try:
            read(copy)
        except ValueError as error:
            assert str(path) in str(error)
            refused += 1
    assert refused > count / 3
