"""`keras-bert info`: what a folder or a name holds."""

import re
from pathlib import Path
from typing import Any

from keras_bert.checkpoints import open_checkpoint
from keras_bert.checkpoints.checks import least_numbers
from keras_bert.checkpoints.preset import settings
from keras_bert.data import read_index
from keras_bert.data.rows import parse_json
from keras_bert.serving.export_contract import PLACE
from keras_bert_cli import runs

LICENSES = ("LICENSE", "LICENSE.txt", "LICENSE.md")
SIZES = (
    "num_layers",
    "hidden_dim",
    "num_heads",
    "intermediate_dim",
    "max_sequence_length",
    "vocabulary_size",
    "activation",
)


def describe(path: str) -> dict[str, Any]:
    """Describes a run, an export, a prepared corpus, a preset or a checkpoint.

    Args:
        path: a folder, the prefix of a TensorFlow checkpoint, a name or an address.

    Returns:
        Facts by name; "is" says what it is.

    Raises:
        FileNotFoundError: if there is nothing.
        ValueError: if it is damaged, or none of these.
    """
    folder = Path(path)
    if (folder / runs.RUN).is_file():
        return _run(folder)
    if (folder / PLACE).is_file():
        return _export(folder)
    versions = sorted((p for p in folder.glob("*") if p.name.isdigit()), key=lambda p: int(p.name))
    versions = [p for p in versions if (p / PLACE).is_file()]
    if versions:
        found = _export(versions[-1])
        return {
            "is": f"{found.pop('is')}, in versions",
            "versions": [p.name for p in versions],
        } | found
    if (folder / "index.json").is_file():
        return _corpus(folder)
    return _checkpoint(path)


def _run(folder: Path) -> dict[str, Any]:
    facts = parse_json((folder / runs.RUN).read_text("utf-8"), folder / runs.RUN)
    found = {"is": f"a run of keras-bert train {facts.get('kind')}", "rows": facts.get("rows")}
    found |= {f"{name}": value for name, value in (facts.get("settings") or {}).items()}
    if not (folder / runs.PRESET).is_dir():
        return found | {"state": "unfinished: train --resume goes on with it"}
    if (folder / runs.METRICS).is_file():
        metrics = parse_json((folder / runs.METRICS).read_text("utf-8"), folder / runs.METRICS)
        found["scores"] = metrics["scores"]
    model = _checkpoint(str(folder / runs.PRESET))
    model.pop("is")
    return found | model


def _export(folder: Path) -> dict[str, Any]:
    contract = parse_json((folder / PLACE).read_text("utf-8"), folder / PLACE)
    signatures = {
        name: f"{', '.join(spec['inputs'])} -> {', '.join(spec['outputs'])}"
        for name, spec in contract["signatures"].items()
    }
    kept = contract["settings"]
    return {
        "is": f"an export of a {contract['task']}",
        "labels": kept.get("labels"),
        "sequence_length": kept.get("sequence_length"),
        "bytes of weights": contract["weights"]["bytes"],
        "stored as": contract["weights"]["stored"],
        **{f"signature {name}": value for name, value in signatures.items()},
        "versions": contract["versions"],
    }


def _corpus(folder: Path) -> dict[str, Any]:
    index = read_index(folder)
    return {
        "is": "a prepared corpus",
        "documents": index.documents,
        "sentences": index.sentences,
        "tokens": index.tokens,
        "shards": len(index.shards),
        "vocabulary_size": index.vocabulary_size,
        "lowercase": index.tokenizer.get("lowercase"),
        "left_out": index.left_out,
    }


def _checkpoint(path: str) -> dict[str, Any]:
    checkpoint = open_checkpoint(path, load_weights=False)
    source, contents = checkpoint.source, checkpoint.contents
    if contents is None:
        found = {"is": "a preset of keras_bert"}
        config = (
            settings(source, "config.json", "BertBackbone") if source.has("config.json") else {}
        )
        task = source.json("task.json").get("config", {}) if source.has("task.json") else {}
        labels = task.get("labels")
        text = source.json("tokenizer.json")["config"] if source.has("tokenizer.json") else None
    else:
        found = {"is": f"a checkpoint in the form of {checkpoint.form}"}
        config, labels, text = contents.config, contents.labels, contents.tokenizer
    found["heads"] = checkpoint.heads() or [checkpoint.head_name()]
    found["labels"] = labels
    if config:
        found["weights"] = f"about {least_numbers(config) / 1e6:.1f} million, heads not counted"
    found |= {name: config[name] for name in SIZES if name in config}
    if text is not None:
        found["lowercase"] = text.get("lowercase")
    found["license"] = _license(source)
    return {name: value for name, value in found.items() if value not in (None, [None])}


def _license(source) -> str | None:
    """The licence that a checkpoint's card or licence file names."""
    if source.folder is None:
        return None
    card = source.folder / "README.md"
    if card.is_file():
        named = re.search(r"^licen[cs]e: *(.+)$", card.read_text("utf-8", "replace"), re.M | re.I)
        if named:
            return named[1].strip()
    for name in LICENSES:
        if (source.folder / name).is_file():
            first = (source.folder / name).read_text("utf-8", "replace").strip().split("\n")[0]
            return f"{first.strip()[:80]} ({name})"
    return None
