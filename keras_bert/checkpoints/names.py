"""Name tables: the names and layouts of weights in each format."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import keras
import numpy as np

# Names of a backbone's settings here and in BERT's own config files.
BERT_KEYS = {
    "vocabulary_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "hidden_dim": "hidden_size",
    "intermediate_dim": "intermediate_size",
    "max_sequence_length": "max_position_embeddings",
    "num_segments": "type_vocab_size",
    "activation": "hidden_act",
    "hidden_dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "initializer_range": "initializer_range",
}


Ends = tuple[str, str]


class Row(NamedTuple):
    """One row of a name table. "{i}" in both names stands for the number of a block.

    Attributes:
        ours: name of the weight, see `weights_by_name`.
        theirs: name in the checkpoint.
        layout: how the checkpoint lays the numbers out: "same"; "transposed", a matrix the other
            way round; or heads on an axis of their own, "split_outputs" [H, N, D] for our
            [H, N * D] and [N, D] for our [N * D], or "split_inputs" [N, D, H] for our [N * D, H].
    """

    ours: str
    theirs: str
    layout: str = "same"


def dense(ours: str, theirs: str, ends: Ends, layouts: Ends = ("same", "same")) -> tuple[Row, Row]:
    """The rows of a dense layer, whose kernel and bias end so in the checkpoint."""
    return (
        Row(f"{ours}/kernel", theirs + ends[0], layouts[0]),
        Row(f"{ours}/bias", theirs + ends[1], layouts[1]),
    )


def norm(ours: str, theirs: str, ends: Ends) -> tuple[Row, Row]:
    """The rows of a layer normalization, whose gamma and beta end so in the checkpoint."""
    return Row(f"{ours}/gamma", theirs + ends[0]), Row(f"{ours}/beta", theirs + ends[1])


def expand(rows: Iterable[Row], num_layers: int) -> list[Row]:
    """Expands a table's block rows, one per block."""
    table = []
    for row in rows:
        if "{i}" not in row.ours:
            table.append(row)
            continue
        for i in range(num_layers):
            ours, theirs = (name.replace("{i}", str(i)) for name in (row.ours, row.theirs))
            table.append(Row(ours, theirs, row.layout))
    return table


def to_ours(
    table: Iterable[Row], tensors: Mapping[str, np.ndarray], source: str
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Converts a checkpoint's tensors to the names and layouts of the expanded rows.

    Returns:
        (float32 arrays by our names, the names that the table does not have, sorted). Rows without
        a tensor are omitted.

    Raises:
        ValueError: if the rank of a tensor does not match its layout.
    """
    found, known = {}, set()
    for row in table:
        if row.theirs not in tensors:
            continue
        known.add(row.theirs)
        value = np.asarray(tensors[row.theirs], dtype="float32")
        axes = {"transposed": (2,), "split_outputs": (2, 3), "split_inputs": (3,)}.get(row.layout)
        if axes and value.ndim not in axes:
            raise ValueError(f"{source}: {row.theirs} has the shape {value.shape}")
        if row.layout == "transposed":
            value = value.T
        elif row.layout == "split_outputs":
            value = value.reshape(*value.shape[:-2], -1)
        elif row.layout == "split_inputs":
            value = value.reshape(-1, value.shape[-1])
        found[row.ours] = np.ascontiguousarray(value)
    return found, sorted(set(tensors) - known)


def to_theirs(
    table: Iterable[Row], tensors: Mapping[str, np.ndarray], num_heads: int
) -> tuple[dict[str, np.ndarray], list[str]]:
    """The inverse of `to_ours`; `num_heads` is N of the layouts that split heads.

    Returns:
        (arrays by the checkpoint's names, the names of ours that the table does not have, sorted).
    """
    found, known = {}, set()
    for row in table:
        if row.ours not in tensors:
            continue
        known.add(row.ours)
        value = tensors[row.ours]
        if row.layout == "transposed":
            value = value.T
        elif row.layout == "split_outputs":
            value = value.reshape(*value.shape[:-1], num_heads, -1)
        elif row.layout == "split_inputs":
            value = value.reshape(num_heads, -1, value.shape[-1])
        found[row.theirs] = np.ascontiguousarray(value)
    return found, sorted(set(tensors) - known)


def weights_by_name(model: keras.Model) -> dict[str, keras.Variable]:
    """Weights of a backbone or task by path, without the names of models.

    Keras may number those names. Without them a weight has the same name in every task, such as
    "block_0/attention/query/kernel" or "head/bias".

    Raises:
        ValueError: if two weights share a name.
    """
    models = {model.name, getattr(model, "backbone", model).name}
    weights = {}
    for weight in model.weights:
        steps = weight.path.split("/")
        while steps[0] in models:
            del steps[0]
        name = "/".join(steps)
        if name in weights:
            raise ValueError(f"two weights of {model.name} have the path {name}")
        weights[name] = weight
    return weights
