"""What sentence-transformers keeps beside a BERT: how its token states become embeddings.

A directory of it holds modules.json, the list of modules in the order in which they run: a
Transformer (a Hugging Face directory, at the top or in a folder such as 0_Transformer), a Pooling
(1_Pooling/config.json), and perhaps a Normalize. Files of its versions 2 to 6 are read.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert.checkpoints.checks import short
from keras_bert.checkpoints.source import Source

FILE = "modules.json"
# Keys of versions up to 5, which had a switch for each way.
_SWITCHES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_KNOWN = ("cls", "mean", "max")


class EmbeddingSettings(NamedTuple):
    """How a directory makes embeddings.

    Attributes:
        checkpoint: the Hugging Face directory, a folder or an address.
        pooling: "cls", "mean" or "max".
        normalize: whether embeddings are brought to length 1.
        sequence_length: the most tokens in a row, or None where nothing is said.
        lowercase: whether text is lower-cased before it is tokenized.
    """

    checkpoint: str | Path
    pooling: str
    normalize: bool
    sequence_length: int | None
    lowercase: bool


def read_embedding_settings(preset: str | Path) -> EmbeddingSettings | None:
    """Reads what a directory of sentence-transformers says; None for any other checkpoint.

    Args:
        preset: a folder, or an address that `Source` knows.

    Raises:
        FileNotFoundError: if a file that modules.json names is missing.
        ValueError: if a file is damaged, or embeddings are made in a way that is not supported,
            such as by a dense layer.
    """
    if not Path(preset).is_dir() and "://" not in str(preset):
        return None  # a built-in name, or a prefix of files by google-research/bert
    source = Source(preset)
    if not source.has(FILE):
        return None
    modules = _modules(source)
    kinds = [kind for kind, _ in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise ValueError(
            f"{source.name}/{FILE}: the modules are {', '.join(kinds) or 'none'}; expected "
            "Transformer, Pooling and perhaps Normalize: others, such as Dense, are not supported"
        )
    folder, pooling_folder = modules[0][1], modules[1][1]
    prefix = f"{folder}/" if folder else ""
    pooling_file = f"{pooling_folder}/config.json"
    pooling = _pooling(source.json(pooling_file), f"{source.name}/{pooling_file}")
    if source.has("config_sentence_transformers.json"):
        prompt = source.json("config_sentence_transformers.json").get("default_prompt_name")
        if prompt is not None:
            raise ValueError(
                f"{source.name} puts the prompt {prompt!r} before every text, which is not "
                "supported"
            )
    length, lowercase = _text_settings(source, prefix)
    if folder and source.folder is None:
        raise ValueError(f"{source.name} has its model in {folder}: fetch it, and pass the folder")
    checkpoint = source.folder / folder if folder else preset
    return EmbeddingSettings(checkpoint, pooling, len(kinds) == 3, length, lowercase)


def _modules(source: Source) -> list[tuple[str, str]]:
    """The kind and the folder of each module, in the order in which they run."""
    path = source.path(FILE)
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        # Of the class alone: its place in the library has changed from version to version.
        return [(str(m["type"]).split(".")[-1], str(m["path"])) for m in listed]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: expected a JSON list of modules with type and path: {error!r}"
        ) from error


def _pooling(config: dict[str, Any], where: str) -> str:
    mode = config.get("pooling_mode")
    if mode is None:
        mode = [name for switch, name in _SWITCHES.items() if config.get(switch)]
    modes = [mode] if isinstance(mode, str) else mode
    if not isinstance(modes, list) or len(modes) != 1 or modes[0] not in _KNOWN:
        raise ValueError(f"{where}: pooling by {short(mode)}; expected one of {', '.join(_KNOWN)}")
    return modes[0]


def _text_settings(source: Source, prefix: str) -> tuple[int | None, bool]:
    """The most tokens of a row, and whether text is lower-cased before the tokenizer's own rule."""
    said = {}
    for file, keys in (
        ("tokenizer_config.json", {"model_max_length": "length"}),
        ("sentence_bert_config.json", {"max_seq_length": "length", "do_lower_case": "lower"}),
    ):
        if source.has(prefix + file):
            values = source.json(prefix + file)
            said |= {ours: values[k] for k, ours in keys.items() if values.get(k) is not None}
    length = said.get("length")
    # transformers writes 1e30 where it knows no limit.
    if not isinstance(length, int) or isinstance(length, bool) or not 0 < length < 1_000_000:
        length = None
    return length, said.get("lower") is True
