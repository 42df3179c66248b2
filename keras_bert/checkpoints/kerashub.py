"""KerasHub's BERT presets, by name, address or folder."""

from collections.abc import Iterator
from typing import Any

import keras_hub
import numpy as np

from keras_bert.checkpoints.source import Source
from keras_bert.checkpoints.tensors import Slot
from keras_bert.models.backbone import BertBackbone

_KEYS = (
    "vocabulary_size",
    "num_layers",
    "num_heads",
    "hidden_dim",
    "intermediate_dim",
    "max_sequence_length",
    "num_segments",
)


def backbone_config(source: Source) -> dict[str, Any]:
    """Turns config.json into `BertBackbone` arguments: KerasHub's BERT has the tanh GELU.

    Raises:
        ValueError: for a missing key.
    """
    config = source.json("config.json")["config"]
    missing = [key for key in _KEYS if key not in config]
    if missing:
        raise ValueError(f"{source.name}/config.json has no {', '.join(missing)}")
    dropout = config.get("dropout", 0.1)
    return {key: config[key] for key in _KEYS} | {
        "activation": "gelu_tanh",
        "hidden_dropout": dropout,
        "attention_dropout": dropout,
    }


def tokenizer_config(source: Source) -> tuple[dict[str, Any], Any]:
    """Gives `BertTokenizer` arguments and the vocabulary's path."""
    config = source.json("tokenizer.json")["config"]
    settings = {
        "lowercase": config.get("lowercase", False),
        "strip_accents": config.get("strip_accents", False) or config.get("lowercase", False),
    }
    return settings, source.path("assets/tokenizer/vocabulary.txt")


def read_tensors(source: Source) -> dict[str, np.ndarray]:
    """Reads a preset's weights through KerasHub's own model, under its names.

    KerasHub keeps the attention heads on an axis of their own; here they are laid flat:
    [H, N, D] and [N, D, H] to [H, H].

    Raises:
        ValueError: if the weights do not fit the configuration.
    """
    config = source.json("config.json")["config"]
    model = keras_hub.models.BertBackbone(
        dropout=config.get("dropout", 0.1), **{key: config[key] for key in _KEYS}
    )
    path = source.path("model.weights.h5")
    try:
        model.load_weights(path)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path} does not fit {source.name}/config.json: {error}") from error
    tensors = {weight.path: np.asarray(weight) for weight in model.weights}
    for name, value in tensors.items():
        if "/self_attention_layer/" in name:
            shape = (-1,) if name.endswith("bias") else (config["hidden_dim"],) * 2
            tensors[name] = value.reshape(shape)
    return tensors


def backbone_slots(backbone: BertBackbone) -> Iterator[Slot]:
    """The name table of `keras_hub.models.BertBackbone`."""
    embeddings = backbone.embeddings
    yield Slot("token_embedding/embeddings", embeddings.word.embeddings)
    yield Slot("position_embedding/embeddings", embeddings.position_table)
    yield Slot("segment_embedding/embeddings", embeddings.segment_table)
    yield from _pair("embeddings_layer_norm", embeddings.layer_norm, "gamma", "beta")
    for i, block in enumerate(backbone.blocks):
        prefix = f"transformer_layer_{i}"
        attention = f"{prefix}/self_attention_layer"
        yield from _pair(f"{attention}/query", block.attention.query_dense)
        yield from _pair(f"{attention}/key", block.attention.key_dense)
        yield from _pair(f"{attention}/value", block.attention.value_dense)
        yield from _pair(f"{attention}/attention_output", block.attention.output_dense)
        norm = f"{prefix}/self_attention_layer_norm"
        yield from _pair(norm, block.attention_norm, "gamma", "beta")
        yield from _pair(f"{prefix}/feedforward_intermediate_dense", block.intermediate)
        yield from _pair(f"{prefix}/feedforward_output_dense", block.feedforward_output)
        yield from _pair(
            f"{prefix}/feedforward_layer_norm", block.feedforward_norm, "gamma", "beta"
        )
    yield from _pair("pooled_dense", backbone.pooler)


def _pair(name: str, layer, first: str = "kernel", second: str = "bias") -> Iterator[Slot]:
    yield Slot(f"{name}/{first}", getattr(layer, first))
    yield Slot(f"{name}/{second}", getattr(layer, second))
