"""Small Hugging Face directories, and what our layers make of their contents."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from keras_bert import BertBackbone
from keras_bert.checkpoints import huggingface_config, huggingface_names
from keras_bert.checkpoints.contents import MASKED_LM, NEXT_SENTENCE, Contents
from keras_bert.checkpoints.names import expand, weights_by_name
from keras_bert.checkpoints.shapes import shapes_of
from keras_bert.layers.heads import MaskedLMHead, NextSentenceHead

from .transformers_outputs import GOLDEN_CLASSES, GOLDEN_CONFIG, golden_tensor

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the a cat ##s rain ##ing é e 人 . ! , b ##c x".split()


def tensors_of(kind: str) -> dict[str, np.ndarray]:
    """The golden tensors of transformers' class, by the names in its file."""
    head = huggingface_config.CLASSES[kind]
    sizes = {
        "vocabulary_size": GOLDEN_CONFIG["vocab_size"],
        "hidden_dim": GOLDEN_CONFIG["hidden_size"],
        "intermediate_dim": GOLDEN_CONFIG["intermediate_size"],
        "max_sequence_length": GOLDEN_CONFIG["max_position_embeddings"],
        "num_segments": GOLDEN_CONFIG["type_vocab_size"],
    }
    sizes["num_heads"] = GOLDEN_CONFIG["num_attention_heads"]
    rows = expand(huggingface_names.table(head), GOLDEN_CONFIG["num_hidden_layers"])
    tensors = {}
    for row, shape in shapes_of(rows, sizes, GOLDEN_CLASSES[kind] or 1).items():
        if row.theirs.startswith("pooler.") and kind in huggingface_config.WITHOUT_POOLER:
            continue
        if row.ours.startswith(MASKED_LM) and kind not in ("BertForPreTraining", "BertForMaskedLM"):
            continue
        nsp = ("BertForPreTraining", "BertForNextSentencePrediction")
        if row.ours.startswith(NEXT_SENTENCE) and kind not in nsp:
            continue
        name = row.theirs if kind == "BertModel" else huggingface_names.full_name(row.theirs)
        tensors[name] = golden_tensor(row.theirs, shape)
    return tensors


def make_folder(folder: Path, kind: str = "BertForPreTraining", **changes) -> Path:
    """Writes config.json and model.safetensors of a class, as transformers would.

    Args:
        folder: to make.
        kind: transformers' class.
        **changes: keys of config.json; None takes one out.
    """
    folder.mkdir(exist_ok=True)
    config = {
        **GOLDEN_CONFIG,
        "architectures": [kind],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.2,
        "classifier_dropout": None,
        "layer_norm_eps": 1e-12,
    }
    if huggingface_config.CLASSES[kind] in ("classifier", "token_classifier"):
        names = [f"name {i}" for i in range(GOLDEN_CLASSES[kind])]
        config["id2label"] = {str(i): name for i, name in enumerate(names)}
    config = {key: value for key, value in (config | changes).items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors_of(kind), folder / "model.safetensors", {"format": "pt"})
    return folder


def our_outputs(contents: Contents, ids: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Runs our layers on a checkpoint, under the names of `transformers_outputs.outputs`."""
    backbone = BertBackbone(**contents.config)
    _assign(weights_by_name(backbone), contents.tensors)
    output = backbone({name: ids[name] for name in ("token_ids", "segment_ids", "padding_mask")})
    sequence, pooled = output["sequence_output"], output["pooled_output"]
    found = {"sequence_output": sequence}
    if contents.has("pooler/"):
        found["pooled_output"] = pooled
    if contents.has(MASKED_LM):
        config = contents.config
        head = MaskedLMHead(
            backbone.embeddings, config["activation"], config["layer_norm_epsilon"], name="m"
        )
        rows, length = ids["token_ids"].shape
        positions = np.broadcast_to(np.arange(length), (rows, length))
        head.build(sequence.shape)
        _assign(_weights_of(head, MASKED_LM), contents.tensors)
        found["masked_lm"] = head(sequence, positions)
    if contents.has(NEXT_SENTENCE):
        head = NextSentenceHead(name="n")
        head.build(pooled.shape)
        _assign(_weights_of(head, NEXT_SENTENCE), contents.tensors)
        found["next_sentence"] = head(pooled)
    if contents.has("head/"):
        x = np.asarray(pooled if contents.head in ("classifier", "choice") else sequence)
        found["head"] = x @ contents.tensors["head/kernel"] + contents.tensors["head/bias"]
    return {name: np.asarray(value) for name, value in found.items()}


def _weights_of(layer, prefix: str) -> dict:
    return {prefix + w.path.removeprefix(f"{layer.name}/"): w for w in layer.weights}


def _assign(weights: dict, tensors: dict[str, np.ndarray]) -> None:
    for name, weight in weights.items():
        if name in tensors or not name.startswith("pooler/"):
            weight.assign(tensors[name])
