"""Names and shapes of the tensors of transformers' BERT (modeling_bert.py)."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from keras_bert.checkpoints.contents import MASKED_LM, NEXT_SENTENCE
from keras_bert.checkpoints.names import Row


def _dense(ours: str, theirs: str) -> tuple[Row, Row]:
    return (
        Row(f"{ours}/kernel", f"{theirs}.weight", "transposed"),
        Row(f"{ours}/bias", f"{theirs}.bias"),
    )


def _norm(ours: str, theirs: str) -> tuple[Row, Row]:
    return Row(f"{ours}/gamma", f"{theirs}.weight"), Row(f"{ours}/beta", f"{theirs}.bias")


# Names as `BertModel` has them; the classes with a head put "bert." in front of its own.
NAMES = (
    Row("embeddings/word/embeddings", "embeddings.word_embeddings.weight"),
    Row("embeddings/position_table", "embeddings.position_embeddings.weight"),
    Row("embeddings/segment_table", "embeddings.token_type_embeddings.weight"),
    *_norm("embeddings/layer_norm", "embeddings.LayerNorm"),
    *_dense("block_{i}/attention/query", "encoder.layer.{i}.attention.self.query"),
    *_dense("block_{i}/attention/key", "encoder.layer.{i}.attention.self.key"),
    *_dense("block_{i}/attention/value", "encoder.layer.{i}.attention.self.value"),
    *_dense("block_{i}/attention/output", "encoder.layer.{i}.attention.output.dense"),
    *_norm("block_{i}/attention_norm", "encoder.layer.{i}.attention.output.LayerNorm"),
    *_dense("block_{i}/intermediate", "encoder.layer.{i}.intermediate.dense"),
    *_dense("block_{i}/feedforward_output", "encoder.layer.{i}.output.dense"),
    *_norm("block_{i}/feedforward_norm", "encoder.layer.{i}.output.LayerNorm"),
    *_dense("pooler", "pooler.dense"),
    *_dense("masked_lm_head/dense", "cls.predictions.transform.dense"),
    *_norm("masked_lm_head/layer_norm", "cls.predictions.transform.LayerNorm"),
    Row("masked_lm_head/output_bias", "cls.predictions.bias"),
    *_dense("next_sentence_head/dense", "cls.seq_relationship"),
)
# One layer more for each kind of head.
_HEADS = {
    "classifier": "classifier",
    "token_classifier": "classifier",
    "span": "qa_outputs",
    "choice": "classifier",
}
# Second names of a tensor, which PyTorch's files may have beside or in place of the first.
TIED = {
    "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
# Buffers that hold 0, 1, 2, ... or zeros: no weights.
BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
_OF_BACKBONE = ("embeddings.", "encoder.", "pooler.")
# Layers that may be missing, each of them whole.
_OPTIONAL = ("pooler/", MASKED_LM, NEXT_SENTENCE, "head/")
_SHOWN = 10  # faults that an error lists


def table(head: str | None) -> tuple[Row, ...]:
    """The name table with a head of that kind: one of `contents.HEADS`, or None."""
    return NAMES if head is None else (*NAMES, *_dense("head", _HEADS[head]))


def head_by_tensors(names: Iterable[str]) -> str | None:
    """The kind of head where config.json names no class: that of the two layers it may be."""
    found = set(names)
    if "classifier.weight" in found:
        return "classifier"
    return "span" if "qa_outputs.weight" in found else None


def plain_name(name: str) -> str:
    """Spells a name as `BertModel` saves it today: no "bert." before, no gamma and beta."""
    rest = name.removeprefix("bert.")
    name = rest if rest.startswith(_OF_BACKBONE) else name
    for old, new in (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")):
        name = name.removesuffix(old) + new if name.endswith(old) else name
    return name


def full_name(name: str) -> str:
    """The way back of `plain_name`, for a class with a head."""
    return f"bert.{name}" if name.startswith(_OF_BACKBONE) else name


def check_shapes(
    rows: Iterable[Row],
    shapes: Mapping[str, tuple[int, ...]],
    config: Mapping[str, Any],
    head: str | None,
    source: str,
) -> None:
    """Raises a ValueError unless the tensors are those of a BERT with this configuration.

    The pooler and the heads may be missing, but not halves of them.

    Args:
        rows: the expanded name table.
        shapes: by our names, matrices as [inputs, outputs].
        config: arguments of `BertBackbone`.
        head: its kind.
        source: where the tensors lie, for the error.
    """
    expected, faults = _expected_shapes(config, head), []
    begun = tuple(part for part in _OPTIONAL if any(name.startswith(part) for name in shapes))
    for ours, theirs, _ in rows:
        wanted = expected[re.sub(r"^block_\d+/", "block_{i}/", ours)]
        if ours not in shapes:
            if not ours.startswith(_OPTIONAL) or ours.startswith(begun):
                faults.append(f"{theirs} is missing")
        elif not _fits(shapes[ours], wanted):
            faults.append(
                f"{theirs} has shape {shapes[ours]}, the model's {ours} "
                f"{str(wanted).replace('None', 'any')}"
            )
    if faults:
        more = f" and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise ValueError(
            f"{source} does not fit its configuration (matrices as [inputs, outputs]): "
            f"{'; '.join(faults[:_SHOWN])}{more}"
        )


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        size == other or (other is None and size > 0)
        for size, other in zip(shape, wanted, strict=True)
    )


def _expected_shapes(
    config: Mapping[str, Any], head: str | None
) -> dict[str, tuple[int | None, ...]]:
    """Shapes of all weights by our names, with "{i}" for a block; None is any number of classes."""
    words, hidden = config["vocabulary_size"], config["hidden_dim"]
    inner, classes = config["intermediate_dim"], {"span": 2, "choice": 1}.get(head)
    matrices = {
        "block_{i}/intermediate": (hidden, inner),
        "block_{i}/feedforward_output": (inner, hidden),
        "next_sentence_head/dense": (hidden, 2),
        "head": (hidden, classes),
    }
    shapes: dict[str, tuple[int | None, ...]] = {
        "embeddings/word/embeddings": (words, hidden),
        "embeddings/position_table": (config["max_sequence_length"], hidden),
        "embeddings/segment_table": (config["num_segments"], hidden),
        "masked_lm_head/output_bias": (words,),
    }
    for ours, _, layout in table(head):
        layer, kind = ours.rsplit("/", 1)
        if layout == "transposed":
            shapes[ours] = matrices.get(layer, (hidden, hidden))
        elif kind == "bias":
            shapes[ours] = matrices.get(layer, (hidden, hidden))[1:]
        else:
            shapes.setdefault(ours, (hidden,))
    return shapes
