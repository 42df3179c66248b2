"""Names of the tensors of transformers' BERT (modeling_bert.py)."""

from collections.abc import Iterable
from functools import partial

from keras_bert.checkpoints.names import Row, dense, norm

_dense = partial(dense, ends=(".weight", ".bias"), layouts=("transposed", "same"))
_norm = partial(norm, ends=(".weight", ".bias"))
# Names as `BertModel` has them; the classes with a head add the prefix "bert.".
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
# One more layer for each kind of head.
_HEADS = {
    "classifier": "classifier",
    "token_classifier": "classifier",
    "span": "qa_outputs",
    "choice": "classifier",
}
# Second names of a tensor, which PyTorch's files may have in addition to or instead of the first.
TIED = {
    "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
# Buffers that hold 0, 1, 2, ... or zeros: not weights.
BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")
_OF_BACKBONE = ("embeddings.", "encoder.", "pooler.")


def table(head: str | None) -> tuple[Row, ...]:
    """The name table with a head of that kind: one of `contents.HEADS`, or None."""
    return NAMES if head is None else (*NAMES, *_dense("head", _HEADS[head]))


def head_by_tensors(names: Iterable[str]) -> str | None:
    """The kind of head if config.json does not name a class, by which of two layers exists."""
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
    """The inverse of `plain_name`, for a class with a head."""
    return f"bert.{name}" if name.startswith(_OF_BACKBONE) else name
