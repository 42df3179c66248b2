"""Presets of ours from strangers: settings that ask for much, or name what is to be called."""

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from keras_bert import BertClassifier
from keras_bert.checkpoints import open_checkpoint
from tests.security.limits import soon_and_small

TINY = Path(__file__).parents[1] / "golden" / "tiny_hf"
CALL = {"module": "os", "class_name": "system", "config": "true", "registered_name": "system"}
FUNCTION = {"module": "builtins", "class_name": "function", "config": "exec"}
LAMBDA = {"module": "keras.layers", "class_name": "Lambda", "config": {"function": CALL}}
CLASSES = {
    "task": "BertClassifier",
    "preprocessor": "BertClassifierPreprocessor",
    "tokenizer": "BertTokenizer",
}
KERNEL = "layers/dense/vars/0"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets") / "whole"
    BertClassifier.from_preset(TINY).save_to_preset(folder)
    return folder


@pytest.fixture
def preset(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "preset")


@pytest.fixture(autouse=True)
def limited():
    with soon_and_small(kilobytes=300_000):
        yield


def put(path, key, value):
    content = json.loads(path.read_text())
    content["config"][key] = value
    path.write_text(json.dumps(content))


def policy(kind, **config):
    return {"module": "keras", "class_name": kind, "config": config, "registered_name": None}


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("vocabulary_size", [10**12, -3, 0, float("nan"), "7", True, None]),
        ("num_layers", [10**12, -1, 0, True, 2.0]),
        ("num_heads", [0, 3]),
        ("hidden_dim", [0, 10**7]),
        ("intermediate_dim", [0, 10**12, {}]),
        ("max_sequence_length", [10**12]),
        ("num_segments", [-1]),
        ("hidden_dropout", [2, float("nan"), CALL]),
        ("layer_norm_epsilon", [0, float("inf")]),
        ("initializer_range", [-1, CALL]),
        ("adapter_dim", [0, 10**9, True]),
        ("output_hidden_states", ["x"]),
        ("gradient_checkpointing", [CALL]),
        ("causal", ["yes", 1, CALL]),
        ("activation", [CALL, FUNCTION, LAMBDA, "os>system", "exec", ["relu"], None]),
    ],
)
def test_settings_of_a_backbone(preset, key, values):
    for value in values:
        put(preset / "config.json", key, value)
        for load_weights in (True, False):
            with pytest.raises(ValueError, match=f"config.json: .*{key}"):
                open_checkpoint(preset).backbone(load_weights)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_layers": 900}, "num_layers is 900, and .*model.weights.h5 has 3"),
        ({"num_layers": 2}, "num_layers is 2, and .*model.weights.h5 has 3"),  # not left out
        ({"vocabulary_size": 10**7}, "a model of the sizes in config.json has 200,0"),
        ({"hidden_dim": 10**6}, "a model of the sizes in config.json has 1[0-9,]{15}"),
        ({"__class__": "x"}, "has the unknown settings __class__"),
    ],
)
def test_sizes_that_the_file_of_weights_has_not(preset, changes, message):
    for key, value in changes.items():
        put(preset / "config.json", key, value)
    with pytest.raises(ValueError, match=message):
        open_checkpoint(preset).backbone()


@pytest.mark.parametrize(
    "value",
    [
        CALL,
        FUNCTION,
        LAMBDA,
        5,
        ["float32"],
        "no type",
        policy("DTypePolicyMap", default_policy=CALL, policy_map={}),
        policy("DTypePolicyMap", default_policy=LAMBDA, policy_map={}),
        policy("DTypePolicyMap", default_policy=None, policy_map=[CALL]),
        policy("DTypePolicyMap", default_policy=None, policy_map={"x": {"y": CALL}}),
        policy("DTypePolicy", name=CALL),
        policy("DTypePolicy", name="float32") | {"registered_name": "keras_bert>BertTokenizer"},
        policy("DTypePolicy") | {"config": "x"},
    ],
)
def test_dtypes(preset, value):
    put(preset / "config.json", "dtype", value)
    with pytest.raises(ValueError, match=r"preset: dtype .*DTypePolicy|preset: dtype .*policies"):
        open_checkpoint(preset).backbone()


@pytest.mark.parametrize(
    ("file", "key", "values"),
    [
        ("task", "num_classes", [10**12, 0, -1, "x", True, float("nan"), 10**6]),
        ("task", "labels", [5, "abc", [1, None, 3], ["one"], CALL, [[1], [2]]]),
        ("task", "dropout", [CALL, "x", 2, float("nan")]),
        ("task", "problem", [CALL, "x"]),
        ("task", "thresholds", [5, [1, 2], [CALL]]),
        ("preprocessor", "sequence_length", [10**12, 0, "x", True, 8.5, None]),
        ("preprocessor", "padding", [CALL, 5]),
        ("tokenizer", "name", [5, CALL]),
        ("tokenizer", "config_file", [None, CALL]),
        ("tokenizer", "lowercase", ["x", CALL]),
        ("tokenizer", "strip_accents", [5]),
        ("tokenizer", "max_word_length", [10**18, 0, float("nan")]),
        ("tokenizer", "special_tokens_in_text", [CALL]),
    ],
)
def test_settings_of_task_and_text(preset, file, key, values):
    for value in values:
        put(preset / f"{file}.json", key, value)
        with pytest.raises(ValueError, match=rf"{file}\.json: .*{key}|labels"):
            open_checkpoint(preset).settings(f"{file}.json", CLASSES[file])


def test_a_vocabulary_elsewhere_is_not_read(preset):
    """Paths in tokenizer.json mean nothing: the vocabulary is the preset's own."""
    for key in ("vocabulary", "config_file"):
        put(preset / "tokenizer.json", key, "/etc/passwd")
    tokens = open_checkpoint(preset).tokenizer().get_vocabulary()
    assert tokens == (TINY / "vocab.txt").read_text().split("\n")[:-1]


def test_more_tokens_than_rows(preset):
    """Their ids would be read from beyond the word table, on a GPU without an error."""
    path = preset / "assets" / "tokenizer" / "vocab.txt"
    path.write_text(path.read_text() + "a\nb\nc\n")
    with pytest.raises(ValueError, match="vocab.txt has 18 tokens for the 17 rows"):
        BertClassifier.from_preset(preset)


def test_a_nested_tokenizer_is_not_made(preset):
    """preprocessor.json describes its tokenizer, and task.json everything, once more."""
    put(preset / "preprocessor.json", "tokenizer", CALL)
    put(preset / "task.json", "backbone", LAMBDA)
    put(preset / "task.json", "preprocessor", CALL)
    assert BertClassifier.from_preset(preset).preprocessor.tokenizer.vocabulary_size() == 15


# Files of weights.


def other_file(folder):
    with h5py.File(folder / "other.h5", "w") as file:
        file[KERNEL] = np.ones((20, 20), "f4")
    (folder / "raw").write_bytes(bytes(1600))
    return str(folder / "other.h5")


def made(file, **arguments):
    del file[KERNEL]
    file.create_dataset(KERNEL, **arguments)


def linked(file, name, link):
    del file[name]
    file[name] = link


def virtual(file, folder):
    layout = h5py.VirtualLayout((20, 20), "f4")
    layout[:] = h5py.VirtualSource(other_file(folder), KERNEL, (20, 20))
    del file[KERNEL]
    file.create_virtual_dataset(KERNEL, layout)


ZEROS = {"chunks": (8000, 2000), "compression": "gzip"}
H5_ATTACKS = {
    "a link to another file": lambda f, d: linked(
        f, KERNEL, h5py.ExternalLink(other_file(d), KERNEL)
    ),
    "a group in another file": lambda f, d: linked(
        f, "layers/dense", h5py.ExternalLink(other_file(d), "layers/dense")
    ),
    "a link within": lambda f, d: linked(f, KERNEL, h5py.SoftLink("/layers")),
    "numbers in another file": lambda f, d: made(
        f, shape=(20, 20), dtype="f4", external=[(str(d / "raw"), 0, 1600)]
    ),
    "numbers of other datasets": virtual,
    "terabytes that are not there": lambda f, d: made(f, shape=(2**20, 2**20), dtype="f4"),
    "terabytes in chunks": lambda f, d: made(
        f, shape=(2**20, 2**20), dtype="i1", chunks=(64, 64), compression="gzip"
    ),
    "zeros packed": lambda f, d: made(f, data=np.zeros((12000, 8000), "i1"), **ZEROS),
    "zeros packed elsewhere": lambda f, d: f.create_dataset(
        "layers/more/vars/0", data=np.zeros((12000, 8000), "i1"), **ZEROS
    ),
    "another compression": lambda f, d: f.create_dataset(
        "layers/more/vars/0", data=np.ones((20, 20), "i1"), compression="lzf"
    ),
    "strings": lambda f, d: made(f, shape=(20, 20), dtype=h5py.string_dtype()),
    "references": lambda f, d: made(f, shape=(20, 20), dtype=h5py.ref_dtype),
    "records": lambda f, d: made(f, data=np.zeros((20, 20), [("a", "f4")])),
    "nothing": lambda f, d: made(f, data=h5py.Empty("f4")),
}


@pytest.mark.parametrize("attack", H5_ATTACKS)
def test_files_of_weights(preset, tmp_path, attack):
    with h5py.File(preset / "model.weights.h5", "r+") as file:
        H5_ATTACKS[attack](file, tmp_path)
    with pytest.raises(ValueError, match=r"model.weights.h5 .*layers/(dense|more)"):
        open_checkpoint(preset).backbone()


def test_the_file_of_a_head(preset, tmp_path):
    with h5py.File(preset / "task.weights.h5", "r+") as file:
        file["layers/more"] = h5py.ExternalLink(other_file(tmp_path), KERNEL)
    with pytest.raises(ValueError, match="task.weights.h5 layers/more is a link"):
        BertClassifier.from_preset(preset)


def test_the_same_bytes_many_times(preset):
    """Datasets that lie over each other would make a small file hold a large model."""
    with h5py.File(preset / "model.weights.h5", "r+") as file:
        for i in range(2000):
            file[f"layers/again_{i}"] = file[KERNEL]
    with pytest.raises(ValueError, match=r"has [0-9,]+ bytes and, up to layers/.*, claims"):
        open_checkpoint(preset).backbone()


def test_groups_that_hold_each_other(preset):
    with h5py.File(preset / "model.weights.h5", "r+") as file:
        file["layers/dense/again"] = file["layers"]
        for i in range(40):  # 2^40 paths
            file.require_group(f"x{i + 1}")
            file[f"x{i}/a"] = file[f"x{i}/b"] = file[f"x{i + 1}"]
    BertClassifier.from_preset(preset)
