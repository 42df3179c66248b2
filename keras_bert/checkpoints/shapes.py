"""The shapes of a checkpoint's tensors, derived from the backbone's settings."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from keras_bert.checkpoints.contents import MASKED_LM, NEXT_SENTENCE, Contents
from keras_bert.checkpoints.names import Row

_CLASSES = {"span": 2, "choice": 1}  # of the heads that have no other number
# Parts that a checkpoint may lack, each as a whole.
OPTIONAL = ("pooler/", MASKED_LM, NEXT_SENTENCE)


def shapes_of(
    rows: Iterable[Row], config: Mapping[str, Any], classes: int = 1
) -> dict[Row, tuple[int, ...]]:
    """The shape of the tensor of each expanded row, in its layout; the head has so many classes."""
    words, hidden = config["vocabulary_size"], config["hidden_dim"]
    inner, num_heads = config["intermediate_dim"], config["num_heads"]
    tables = {
        "embeddings/word/embeddings": (words, hidden),
        "embeddings/position_table": (config["max_sequence_length"], hidden),
        "embeddings/segment_table": (config["num_segments"], hidden),
        f"{MASKED_LM}output_bias": (words,),
    }
    matrices = {
        "intermediate": (hidden, inner),
        "feedforward_output": (inner, hidden),
        f"{NEXT_SENTENCE}dense": (hidden, 2),
        "head": (hidden, classes),
    }
    found = {}
    for row in rows:
        layer, part = re.sub(r"^block_\d+/", "", row.ours).rsplit("/", 1)
        shape = tables.get(row.ours) or matrices.get(layer, (hidden, hidden))
        if part in ("bias", "gamma", "beta"):
            shape = shape[-1:]
        if row.layout == "transposed":
            shape = shape[::-1]
        elif row.layout == "split_outputs":
            shape = (*shape[:-1], num_heads, hidden // num_heads)
        elif row.layout == "split_inputs":
            shape = (num_heads, hidden // num_heads, hidden)
        found[row] = shape
    return found


def faults_of(
    rows: Iterable[Row],
    shapes: Mapping[str, tuple[int, ...]],
    config: Mapping[str, Any],
    head: str | None,
    labels: list[str] | None = None,
    optional: tuple[str, ...] = OPTIONAL,
) -> list[str]:
    """Lists missing tensors and wrong shapes, a sentence for each.

    Args:
        rows: the expanded name table.
        shapes: of the tensors, by the rows' second names.
        config: arguments of `BertBackbone`.
        head: its kind.
        labels: names of its classes.
        optional: beginnings of our names, of what may be missing as a whole.
    """
    rows = list(rows)
    theirs = {row.ours: row.theirs for row in rows}
    # The number of classes is taken from the bias, or else from the kernel in either layout.
    bias, kernel = (shapes.get(theirs.get(f"head/{part}", ""), ()) for part in ("bias", "kernel"))
    other = [size for size in kernel if size != config["hidden_dim"]]
    classes = _CLASSES.get(head or "") or [*bias, *other, 1][0] or 1
    begun = tuple(
        part
        for part in optional
        if any(ours.startswith(part) and name in shapes for ours, name in theirs.items())
    )
    faults = []
    for row, wanted in shapes_of(rows, config, classes).items():
        found = shapes.get(row.theirs)
        if found is None:
            if not row.ours.startswith(optional) or row.ours.startswith(begun):
                faults.append(f"{row.theirs} is missing")
        elif tuple(found) != wanted:
            faults.append(f"{row.theirs} has shape {list(found)}, expected {list(wanted)}")
    if labels is not None and theirs.get("head/bias") in shapes and len(labels) != classes:
        faults.append(f"{len(labels)} labels are for {classes} classes")
    return faults


def check_shapes(
    begin: str,
    rows: Iterable[Row],
    shapes: Mapping[str, tuple[int, ...]],
    contents: Contents,
    optional: tuple[str, ...] = OPTIONAL,
    others: Iterable[str] = (),
) -> None:
    """Raises a ValueError, which begins so, for `faults_of` tensors of `contents`, and others."""
    parts = (contents.config, contents.head, contents.labels or None)
    if faults := [*others, *faults_of(rows, shapes, *parts, optional)]:
        raise ValueError(f"{begin}: {few(faults)}")


def few(faults: list[str], most: int = 8) -> str:
    """Joins faults, of which there may be thousands."""
    more = f"; and {len(faults) - most} more" if len(faults) > most else ""
    return "; ".join(faults[:most]) + more
