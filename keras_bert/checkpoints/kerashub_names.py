"""Files of KerasHub's BERT, and names and shapes of the weights in them.

Layers of keras_hub/src/models/bert: bert_backbone.py, bert_text_classifier.py, bert_masked_lm.py.
KerasNLP 0.7, 0.12 and KerasHub 0.17 (Keras 3.0, 3.3 and 3.6) spell the names as KerasHub 0.32 does.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from keras_bert.checkpoints.contents import MASKED_LM, NEXT_SENTENCE
from keras_bert.checkpoints.names import Row

CONFIG, TASK, TOKENIZER = "config.json", "task.json", "tokenizer.json"
WEIGHTS, TASK_WEIGHTS = "model.weights.h5", "task.weights.h5"
VOCABULARY = "assets/tokenizer/vocabulary.txt"
HEADS_BESIDE = "keras_bert_heads.safetensors"  # ours

DROPOUT = 0.1  # of KerasHub's classes, where nothing is said
LONGEST_WORD = 100  # in bytes there: the limit of tf_text.FastWordpieceTokenizer
# Arguments of KerasHub's BertBackbone, which are `BertBackbone`'s too, and their limits, far above
# any BERT: sizes beyond them are damage.
SIZES = {
    "vocabulary_size": 10_000_000,
    "num_layers": 1_000,
    "num_heads": 1_000_000,
    "hidden_dim": 1_000_000,
    "intermediate_dim": 10_000_000,
    "max_sequence_length": 10_000_000,
    "num_segments": 1_000_000,
}
# What it has built in.
FIXED = {"activation": "gelu_tanh", "layer_norm_epsilon": 1e-12, "initializer_range": 0.02}

Shape = tuple[int | None, ...]  # None for an axis of any size


def _dense(ours: str, theirs: str, kernel: str = "same", bias: str = "same") -> tuple[Row, Row]:
    return (
        Row(f"{ours}/kernel", f"{theirs}/vars/0", kernel),
        Row(f"{ours}/bias", f"{theirs}/vars/1", bias),
    )


def _norm(ours: str, theirs: str) -> tuple[Row, Row]:
    return Row(f"{ours}/gamma", f"{theirs}/vars/0"), Row(f"{ours}/beta", f"{theirs}/vars/1")


_BLOCK = "layers/transformer_encoder_{i}"
_ATTENTION = f"{_BLOCK}/_self_attention_layer"
_SPLIT = ("split_outputs", "split_outputs")
# In model.weights.h5.
NAMES = (
    Row("embeddings/word/embeddings", "layers/reversible_embedding/vars/0"),
    Row("embeddings/position_table", "layers/position_embedding/vars/0"),
    Row("embeddings/segment_table", "layers/embedding/vars/0"),
    *_norm("embeddings/layer_norm", "layers/layer_normalization"),
    *_dense("block_{i}/attention/query", f"{_ATTENTION}/query_dense", *_SPLIT),
    *_dense("block_{i}/attention/key", f"{_ATTENTION}/key_dense", *_SPLIT),
    *_dense("block_{i}/attention/value", f"{_ATTENTION}/value_dense", *_SPLIT),
    *_dense("block_{i}/attention/output", f"{_ATTENTION}/output_dense", "split_inputs"),
    *_norm("block_{i}/attention_norm", f"{_BLOCK}/_self_attention_layer_norm"),
    *_dense("block_{i}/intermediate", f"{_BLOCK}/_feedforward_intermediate_dense"),
    *_dense("block_{i}/feedforward_output", f"{_BLOCK}/_feedforward_output_dense"),
    *_norm("block_{i}/feedforward_norm", f"{_BLOCK}/_feedforward_layer_norm"),
    *_dense("pooler", "layers/dense"),
)
POOLER = ("pooler/kernel", "pooler/bias")
# In task.weights.h5.
CLASSIFIER = _dense("head", "layers/dense")
MASKED_LM_HEAD = (
    *_dense("masked_lm_head/dense", "layers/masked_lm_head/_intermediate_dense"),
    *_norm("masked_lm_head/layer_norm", "layers/masked_lm_head/_intermediate_layer_norm"),
    Row("masked_lm_head/output_bias", "layers/masked_lm_head/vars/0"),
)
# In the file of ours beside them.
_NEXT_SENTENCE = _dense("next_sentence_head/dense", "")

# By the class in task.json.
TASKS = {
    "BertTextClassifier": CLASSIFIER,
    "BertClassifier": CLASSIFIER,  # its name in KerasNLP
    "BertMaskedLM": MASKED_LM_HEAD,
}
# In task.weights.h5 of KerasHub 0.17 the backbone lies once more, and is never read from there.
SECOND_COPY = "layers/bert_backbone/"
# How the names of blocks begin, in both of Keras's spellings.
BLOCKS = tuple(
    f"{WEIGHTS}/{root}/transformer_encoder" for root in ("layers", "_layer_checkpoint_dependencies")
)


def shapes_of(
    rows: Iterable[Row], config: Mapping[str, Any], classes: int | None = None
) -> dict[Row, Shape]:
    """Gives the shape of each row's tensor as the row lays it out.

    Args:
        rows: expanded.
        config: arguments of `BertBackbone`.
        classes: of the head; None for any number.
    """
    words, hidden = config["vocabulary_size"], config["hidden_dim"]
    inner, num_heads = config["intermediate_dim"], config["num_heads"]
    tables: dict[str, Shape] = {
        "embeddings/word/embeddings": (words, hidden),
        "embeddings/position_table": (config["max_sequence_length"], hidden),
        "embeddings/segment_table": (config["num_segments"], hidden),
        f"{MASKED_LM}output_bias": (words,),
    }
    matrices: dict[str, Shape] = {
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
        if row.layout == "split_outputs":
            shape = (*shape[:-1], num_heads, hidden // num_heads)
        elif row.layout == "split_inputs":
            shape = (num_heads, hidden // num_heads, hidden)
        found[row] = shape
    return found


def shapes_beside(config: Mapping[str, Any], head: str | None) -> dict[str, Shape]:
    """Gives names and shapes of all that may lie in the file of ours beside KerasHub's."""
    rows = [*MASKED_LM_HEAD, *_NEXT_SENTENCE, *(CLASSIFIER if head else ())]
    shapes = shapes_of(rows, config, {"span": 2, "choice": 1}.get(head))
    return {row.ours: shape for row, shape in shapes.items()}


def fits(shape: tuple[int, ...], wanted: Shape) -> bool:
    """Whether a shape is the wanted one."""
    return len(shape) == len(wanted) and all(
        size == other or (other is None and size > 0)
        for size, other in zip(shape, wanted, strict=True)
    )
