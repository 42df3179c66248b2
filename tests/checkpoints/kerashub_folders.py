"""Contents of made-up models, and KerasHub's presets of them."""

import functools
import json

import numpy as np

from keras_bert import BertBackbone
from keras_bert.checkpoints import kerashub
from keras_bert.checkpoints.contents import Contents
from keras_bert.checkpoints.names import weights_by_name
from keras_bert.checkpoints.source import Source

H, INNER, WORDS = 12, 20, 31
CONFIG = {
    "vocabulary_size": WORDS,
    "num_layers": 2,
    "num_heads": 3,
    "hidden_dim": H,
    "intermediate_dim": INNER,
    "max_sequence_length": 11,
    "num_segments": 3,
    "activation": "gelu_tanh",
    "hidden_dropout": 0.1,
    "attention_dropout": 0.1,
    "layer_norm_epsilon": 1e-12,
    "initializer_range": 0.02,
}
# Two tokens fewer than rows.
VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "cat",
    "##s",
    "sat",
    "un",
    "##aff",
]
VOCABULARY += [*"abcdefghijklm", "##able", "deja", "déjà", "É", "!"]
TOKENIZER = {
    "lowercase": True,
    "strip_accents": True,
    "max_word_length": 100,
    "splitting": "bert",
    "special_tokens_in_text": False,
}
MASKED_LM = {
    "masked_lm_head/dense/kernel": (H, H),
    "masked_lm_head/dense/bias": (H,),
    "masked_lm_head/layer_norm/gamma": (H,),
    "masked_lm_head/layer_norm/beta": (H,),
    "masked_lm_head/output_bias": (WORDS,),
}
NEXT_SENTENCE = {"next_sentence_head/dense/kernel": (H, 2), "next_sentence_head/dense/bias": (2,)}


def head(classes):
    return {"head/kernel": (H, classes), "head/bias": (classes,)}


# kind: (head, shapes of its tensors, other fields).
KINDS = {
    "backbone": (None, {}, {}),
    "masked_lm": (None, MASKED_LM, {}),
    "pretrainer": (None, MASKED_LM | NEXT_SENTENCE, {}),
    "classifier": ("classifier", head(5), {"labels": list("vwxyz"), "head_dropout": 0.3}),
    "regression": ("classifier", head(1), {"problem": "regression", "head_dropout": None}),
    "all": ("classifier", head(3) | MASKED_LM | NEXT_SENTENCE, {"problem": "multi_label"}),
    "tagger": ("token_classifier", head(3), {"labels": ["O", "B", "I"], "head_dropout": 0.1}),
    "span": ("span", head(2) | MASKED_LM, {}),
    "choice": ("choice", head(1), {"dtype": "float16"}),
}
FIELDS = (
    "config",
    "masked_lm",
    "head",
    "labels",
    "problem",
    "head_dropout",
    "tokenizer",
    "vocabulary",
    "dtype",
)


@functools.cache
def backbone_shapes():
    weights = weights_by_name(BertBackbone(**CONFIG))
    return {name: tuple(weight.shape) for name, weight in weights.items()}


def make(kind, **changes):
    """Contents of one kind with random tensors; all of a backbone's."""
    name, shapes, fields = KINDS[kind]
    rng, config = np.random.default_rng(0), CONFIG | changes.pop("config", {})
    shapes = backbone_shapes() | shapes
    tensors = {n: rng.normal(0, 0.2, s).astype("float32") for n, s in shapes.items()}
    values = {"tokenizer": dict(TOKENIZER), "vocabulary": list(VOCABULARY), **fields, **changes}
    return Contents("made up", config, tensors, name, **values)


def write(contents, folder):
    folder.mkdir(exist_ok=True)
    return kerashub.write(contents, folder)


def read(folder, **kwargs):
    return kerashub.read(Source(folder), **kwargs)


def check_same(found, wanted):
    assert found.tensors.keys() == wanted.tensors.keys()
    for name, tensor in wanted.tensors.items():
        assert found.tensors[name].dtype == np.float32
        np.testing.assert_array_equal(found.tensors[name], tensor, err_msg=name)
    for name in FIELDS:
        assert getattr(found, name) == getattr(wanted, name), name
    assert found.left_over == []


def batch(rng):
    mask = (np.arange(9) < np.array([[9], [4], [7]])).astype("int32")
    return {
        "token_ids": rng.integers(0, WORDS, (3, 9)).astype("int32"),
        "segment_ids": rng.integers(0, 3, (3, 9)).astype("int32"),
        "padding_mask": mask,
    }


def backbone_of(contents):
    backbone = BertBackbone(**contents.config)
    for name, weight in weights_by_name(backbone).items():
        weight.assign(contents.tensors[name])
    return backbone


def far(found, wanted):
    """The largest difference."""
    return float(np.abs(np.asarray(found) - np.asarray(wanted)).max())


def edit(path, **changes):
    values = json.loads(path.read_text())
    for name, value in changes.items():
        (values if name == "registered_name" else values["config"])[name] = value
    path.write_text(json.dumps(values))
