"""Hugging Face directories: config.json, safetensors, vocab.txt or tokenizer.json.

Names and settings follow transformers' `BertModel` and `BertForSequenceClassification`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from keras_bert.checkpoints.source import Source
from keras_bert.checkpoints.tensors import Slot
from keras_bert.models.backbone import BertBackbone

# transformers' "gelu" is the exact form; three of its names mean the tanh approximation.
_ACTIVATIONS = {
    "gelu": "gelu_exact",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
}
# Buffers that hold 0, 1, 2, ...: no weights.
_BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")


def backbone_config(source: Source) -> dict[str, Any]:
    """Turns config.json into `BertBackbone` arguments.

    Raises:
        ValueError: for a model that is not a BERT encoder, or a missing key.
    """
    config = source.json("config.json")
    position = config.get("position_embedding_type", "absolute")
    if config.get("model_type") != "bert" or position != "absolute" or config.get("is_decoder"):
        raise ValueError(
            f"{source.name}/config.json: expected a BERT encoder (model_type 'bert', absolute "
            f"positions), found model_type {config.get('model_type')!r}, position_embedding_type "
            f"{position!r}, is_decoder {config.get('is_decoder', False)}"
        )
    try:
        activation = config["hidden_act"]
        return {
            "vocabulary_size": config["vocab_size"],
            "num_layers": config["num_hidden_layers"],
            "num_heads": config["num_attention_heads"],
            "hidden_dim": config["hidden_size"],
            "intermediate_dim": config["intermediate_size"],
            "max_sequence_length": config["max_position_embeddings"],
            "num_segments": config["type_vocab_size"],
            "activation": _ACTIVATIONS.get(activation, activation),
            "hidden_dropout": config["hidden_dropout_prob"],
            "attention_dropout": config["attention_probs_dropout_prob"],
            "layer_norm_epsilon": config.get("layer_norm_eps", 1e-12),
            "initializer_range": config.get("initializer_range", 0.02),
        }
    except KeyError as error:
        raise ValueError(f"{source.name}/config.json has no key {error}") from None


def tokenizer_config(source: Source) -> tuple[dict[str, Any], Any]:
    """Gives `BertTokenizer` arguments and a vocabulary: a path or a list of tokens.

    Raises:
        FileNotFoundError: if neither vocab.txt nor tokenizer.json is there.
        ValueError: if tokenizer.json holds no WordPiece model.
    """
    slow = source.json("tokenizer_config.json") if source.has("tokenizer_config.json") else {}
    fast = source.json("tokenizer.json") if source.has("tokenizer.json") else {}
    normalizer, model = fast.get("normalizer") or {}, fast.get("model") or {}

    def first(*values):
        return next((value for value in values if value is not None), None)

    settings = {
        "lowercase": first(slow.get("do_lower_case"), normalizer.get("lowercase"), True),
        "strip_accents": first(slow.get("strip_accents"), normalizer.get("strip_accents")),
        # transformers' limit, half of the original's.
        "max_word_length": first(model.get("max_input_chars_per_word"), 100),
    }
    chinese = first(slow.get("tokenize_chinese_chars"), normalizer.get("handle_chinese_chars"))
    if chinese is False or slow.get("do_basic_tokenize") is False:
        raise ValueError(
            f"{source.name}: its tokenizer leaves Chinese characters together, or does not split "
            "words; only BERT's own rule is supported"
        )
    if not fast:
        return settings, source.path("vocab.txt")
    if model.get("type", "WordPiece") != "WordPiece" or not isinstance(model.get("vocab"), dict):
        raise ValueError(f"{source.name}/tokenizer.json holds no WordPiece vocabulary")
    if source.has("vocab.txt"):
        return settings, source.path("vocab.txt")
    by_id = sorted(model["vocab"], key=model["vocab"].get)
    if [model["vocab"][token] for token in by_id] != list(range(len(by_id))):
        raise ValueError(f"{source.name}/tokenizer.json: its ids are not 0, 1, 2, ...")
    return settings, by_id


def read_tensors(source: Source) -> dict[str, np.ndarray]:
    """Reads all tensors, under one spelling of their names.

    The spelling is that of `BertModel` saved today: no "bert." in front, and weight and bias
    for what older files call gamma and beta.

    Raises:
        FileNotFoundError: if there are no safetensors.
        ValueError: if a file is damaged, or two names come to one.
    """
    if source.has("model.safetensors.index.json"):
        index = source.json("model.safetensors.index.json")
        names = index.get("weight_map")
        if not isinstance(names, dict) or not all(isinstance(n, str) for n in names.values()):
            raise ValueError(f"{source.name}/model.safetensors.index.json has no weight_map")
        shards = sorted(set(names.values()))
    else:
        shards = ["model.safetensors"]
    tensors = {}
    for shard in shards:
        path = source.path(shard)
        try:
            with safe_open(path, framework="numpy") as file:
                for key in file.keys():  # noqa: SIM118 - not a dict
                    name = _plain_name(key)
                    if name in tensors:
                        raise ValueError(f"{path}: two tensors are called {name}")
                    if name not in _BUFFERS:
                        tensors[name] = file.get_tensor(key)
        except SafetensorError as error:
            raise ValueError(f"{path} is not a whole safetensors file: {error}") from error
    return tensors


def _plain_name(key: str) -> str:
    name = key.removeprefix("bert.")
    if "LayerNorm." in name:
        name = name.removesuffix("gamma") + "weight" if name.endswith(".gamma") else name
        name = name.removesuffix("beta") + "bias" if name.endswith(".beta") else name
    return name


def backbone_slots(backbone: BertBackbone) -> Iterator[Slot]:
    """The name table of `BertModel`."""
    embeddings = backbone.embeddings
    yield Slot("embeddings.word_embeddings.weight", embeddings.word.embeddings)
    yield Slot("embeddings.position_embeddings.weight", embeddings.position_table)
    yield Slot("embeddings.token_type_embeddings.weight", embeddings.segment_table)
    yield from _norm("embeddings.LayerNorm", embeddings.layer_norm)
    for i, block in enumerate(backbone.blocks):
        prefix = f"encoder.layer.{i}"
        yield from _dense(f"{prefix}.attention.self.query", block.attention.query_dense)
        yield from _dense(f"{prefix}.attention.self.key", block.attention.key_dense)
        yield from _dense(f"{prefix}.attention.self.value", block.attention.value_dense)
        yield from _dense(f"{prefix}.attention.output.dense", block.attention.output_dense)
        yield from _norm(f"{prefix}.attention.output.LayerNorm", block.attention_norm)
        yield from _dense(f"{prefix}.intermediate.dense", block.intermediate)
        yield from _dense(f"{prefix}.output.dense", block.feedforward_output)
        yield from _norm(f"{prefix}.output.LayerNorm", block.feedforward_norm)
    yield from _dense("pooler.dense", backbone.pooler, optional=True)


def classifier_slots(head) -> Iterator[Slot]:
    """The name table of what `BertForSequenceClassification` has on top."""
    yield from _dense("classifier", head, optional=True)


def classifier_labels(source: Source) -> list[str] | None:
    """Label names by id, or None where the checkpoint is no classifier.

    Raises:
        ValueError: if it gives several labels or a number to a text, or its names lack an id.
    """
    config = source.json("config.json")
    if "BertForSequenceClassification" not in (config.get("architectures") or []):
        return None
    problem = config.get("problem_type") or "single_label_classification"
    if problem != "single_label_classification":
        raise ValueError(f"{source.name}/config.json: problem_type {problem!r} is not supported")
    names = config.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    if set(names) != {str(i) for i in range(len(names))}:
        raise ValueError(
            f"{source.name}/config.json: id2label has the keys {', '.join(sorted(names))}; "
            f"expected 0 to {len(names) - 1}"
        )
    return [str(names[str(i)]) for i in range(len(names))]


def _dense(name: str, layer, optional: bool = False) -> Iterator[Slot]:
    yield Slot(f"{name}.weight", layer.kernel, transpose=True, optional=optional)
    yield Slot(f"{name}.bias", layer.bias, optional=optional)


def _norm(name: str, layer) -> Iterator[Slot]:
    yield Slot(f"{name}.weight", layer.gamma)
    yield Slot(f"{name}.bias", layer.beta)
