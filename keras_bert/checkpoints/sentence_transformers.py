"""Settings of sentence-transformers: how token states become embeddings.

A directory of it holds modules.json, the list of modules in the order in which they run: a
Transformer (a Hugging Face directory, at the top or in a folder such as 0_Transformer), a Pooling
(1_Pooling/config.json), perhaps Dense layers, and perhaps a Normalize. Files of its versions 2 to 6
are read; those of version 3 are written.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_bert.atomic import write_file
from keras_bert.checkpoints import safetensors_files
from keras_bert.checkpoints.checks import short
from keras_bert.checkpoints.huggingface_files import stored_tensors
from keras_bert.checkpoints.source import Source

FILE, _PROMPTS = "modules.json", "config_sentence_transformers.json"
# Keys of versions up to 5, which had a switch for each way; in the order of their vectors.
_SWITCHES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_KNOWN = ("cls", "max", "mean")
# Classes of torch.nn by our names.
_ACTIVATIONS = {"linear": "Identity", "tanh": "Tanh", "relu": "ReLU", "gelu_exact": "GELU"}
_ORDER = re.compile(r"Transformer Pooling( Dense)*( Normalize)?")


class Dense(NamedTuple):
    """A dense layer after the pooling.

    Attributes:
        activation: "linear", "tanh", "relu" or "gelu_exact".
        kernel: float32 [in, out].
        bias: float32 [out], or None.
    """

    activation: str
    kernel: np.ndarray
    bias: np.ndarray | None


class EmbeddingSettings(NamedTuple):
    """How a directory makes embeddings.

    Attributes:
        checkpoint: the Hugging Face directory, a folder or an address.
        pooling: some of "cls", "max" and "mean", whose vectors are concatenated.
        dense: the `Dense` layers after pooling.
        normalize: whether embeddings are normalized to length 1.
        sequence_length: maximum number of tokens in a row, or None if not set.
        lowercase: whether text is lower-cased before it is tokenized.
        prompts: prefixes for texts, by name.
        default_prompt: the name of the default prompt, or None.
    """

    checkpoint: str | Path
    pooling: list[str]
    dense: list[Dense]
    normalize: bool
    sequence_length: int | None
    lowercase: bool
    prompts: dict[str, str]
    default_prompt: str | None


def read_embedding_settings(preset: str | Path) -> EmbeddingSettings | None:
    """Reads the settings of a sentence-transformers directory; None for any other checkpoint.

    Raises:
        FileNotFoundError: if a file that modules.json names is missing.
        ValueError: if a file is damaged, or embeddings are computed in a way that is not supported.
    """
    if not Path(preset).is_dir() and "://" not in str(preset):
        return None  # a built-in name, or a prefix of files by google-research/bert
    source = Source(preset)
    if not source.has(FILE):
        return None
    modules = _modules(source)
    kinds = [kind for kind, _ in modules]
    if not _ORDER.fullmatch(" ".join(kinds)):
        raise ValueError(
            f"{source.name}/{FILE}: the modules are {', '.join(kinds) or 'none'}; expected "
            "Transformer, Pooling, perhaps Dense, and perhaps Normalize"
        )
    folder, pooling_folder = modules[0][1], modules[1][1]
    prefix = f"{folder}/" if folder else ""
    pooling_file = f"{pooling_folder}/config.json"
    config = source.json(pooling_file)
    pooling = _pooling(config, f"{source.name}/{pooling_file}")
    prompts, default = _prompts(source)
    if prompts and config.get("include_prompt", True) is not True:
        raise ValueError(f"{source.name} leaves prompts out of the pooling, which is not supported")
    apart = ["its model"] * bool(folder) + ["a Dense module"] * ("Dense" in kinds)
    if apart and source.folder is None:
        raise ValueError(
            f"{source.name} has {apart[0]} in a folder of its own: fetch it, and pass the folder"
        )
    dense = [_dense(source, path) for kind, path in modules if kind == "Dense"]
    length, lowercase = _text_settings(source, prefix)
    checkpoint = source.folder / folder if folder else preset
    normalize = kinds[-1] == "Normalize"
    return EmbeddingSettings(
        checkpoint, pooling, dense, normalize, length, lowercase, prompts, default
    )


def write_embedding_settings(
    folder: Path,
    width: int,
    pooling: Sequence[str],
    dense: Sequence[Dense],
    normalize: bool,
    sequence_length: int | None,
    prompts: Mapping[str, str],
    default_prompt: str | None,
) -> None:
    """Adds the files of sentence-transformers to a Hugging Face directory.

    `width` is H of the token states; for the other arguments see `EmbeddingSettings`.

    Raises:
        ValueError: if it does not support the pooling or activation.
    """
    if unknown := sorted({*pooling} - {*_KNOWN}):
        raise ValueError(f"sentence-transformers has no pooling {unknown[0]!r}: expected {_KNOWN}")
    switches = {switch: name in pooling for switch, name in _SWITCHES.items()}
    modules = [("Transformer", ""), ("Pooling", "1_Pooling")]
    files: dict[str, Any] = {
        "1_Pooling/config.json": {"word_embedding_dimension": width, **switches},
        _PROMPTS: {
            "prompts": dict(prompts),
            "default_prompt_name": default_prompt,
            "similarity_fn_name": "cosine",
        },
        "sentence_bert_config.json": {"max_seq_length": sequence_length, "do_lower_case": False},
    }
    for number, layer in enumerate(dense, 2):
        place = f"{number}_Dense"
        if layer.activation not in _ACTIVATIONS:
            raise ValueError(
                f"a dense layer's activation is {layer.activation!r}; expected one of "
                f"{', '.join(_ACTIVATIONS)}"
            )
        modules.append(("Dense", place))
        files[f"{place}/config.json"] = {
            "in_features": layer.kernel.shape[0],
            "out_features": layer.kernel.shape[1],
            "bias": layer.bias is not None,
            "activation_function": f"torch.nn.modules.activation.{_ACTIVATIONS[layer.activation]}"
            if layer.activation != "linear"
            else "torch.nn.modules.linear.Identity",
        }
        tensors = {"linear.weight": np.ascontiguousarray(layer.kernel.T)}
        if layer.bias is not None:
            tensors["linear.bias"] = layer.bias
        (folder / place).mkdir()
        safetensors_files.write_tensors(folder / place / "model.safetensors", tensors, "float32")
    if normalize:
        modules.append(("Normalize", f"{len(modules)}_Normalize"))
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(modules)
    ]
    for name, values in (files | {FILE: listed}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        write_file(folder / name, (json.dumps(values, indent=2) + "\n").encode())


def _modules(source: Source) -> list[tuple[str, str]]:
    """The kind and the folder of each module, in the order in which they run."""
    listed = source.json(FILE, list)
    try:
        # Of the class alone: its place in the library has changed from version to version.
        return [(str(m["type"]).split(".")[-1], str(m["path"])) for m in listed]
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{source.name}/{FILE}: expected a JSON list of modules with type and path: {error!r}"
        ) from error


def _prompts(source: Source) -> tuple[dict[str, str], str | None]:
    """The prompts by name, and the name of the default prompt."""
    config = source.json(_PROMPTS) if source.has(_PROMPTS) else {}
    prompts, default = config.get("prompts") or {}, config.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(isinstance(p, str) for p in prompts.values()):
        raise ValueError(f"{source.name}/{_PROMPTS}: prompts are {short(prompts)}")
    prompts = {name: prompt for name, prompt in prompts.items() if prompt}
    if default is not None and default not in (config.get("prompts") or {}):
        raise ValueError(f"{source.name}/{_PROMPTS}: there is no prompt {short(default)}")
    return prompts, default if default in prompts else None


def _dense(source: Source, folder: str) -> Dense:
    """A dense layer, checked."""
    where = f"{source.name}/{folder}"
    config = source.json(f"{folder}/config.json")
    name = str(config.get("activation_function")).split(".")[-1]
    ours = {theirs: ours for ours, theirs in _ACTIVATIONS.items()}
    if name not in ours:
        raise ValueError(f"{where}: activation_function is {short(name)}; expected {_ACTIVATIONS}")
    with stored_tensors(Source(source.folder / folder)) as stored:
        values = {key: tensor.load() for key, tensor in stored.items()}
    kernel, bias = values.get("linear.weight"), values.get("linear.bias")
    shape = (config.get("out_features"), config.get("in_features"))
    if kernel is None or kernel.shape != shape or (bias is not None and bias.shape != shape[:1]):
        found = {key: value.shape for key, value in values.items()}
        raise ValueError(f"{where}: tensors of shapes {short(found)}; expected a layer {shape}")
    return Dense(ours[name], np.ascontiguousarray(kernel.T), bias)


def _pooling(config: dict[str, Any], where: str) -> list[str]:
    mode = config.get("pooling_mode")
    if mode is None:
        mode = [name for switch, name in _SWITCHES.items() if config.get(switch)]
    modes = [mode] if isinstance(mode, str) else mode
    if not isinstance(modes, list) or not modes or not all(m in _KNOWN for m in modes):
        raise ValueError(f"{where}: pooling by {short(mode)}; expected some of {', '.join(_KNOWN)}")
    return modes


def _text_settings(source: Source, prefix: str) -> tuple[int | None, bool]:
    """The maximum number of tokens per row, and whether text is lower-cased before tokenization."""
    said = {}
    for file, keys in (
        ("tokenizer_config.json", {"model_max_length": "length"}),
        ("sentence_bert_config.json", {"max_seq_length": "length", "do_lower_case": "lower"}),
    ):
        if source.has(prefix + file):
            values = source.json(prefix + file)
            said |= {ours: values[k] for k, ours in keys.items() if values.get(k) is not None}
    length = said.get("length")
    # transformers writes 1e30 for no limit.
    if not isinstance(length, int) or isinstance(length, bool) or not 0 < length < 1_000_000:
        length = None
    return length, said.get("lower") is True
