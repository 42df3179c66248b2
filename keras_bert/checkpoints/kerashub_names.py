"""Files of KerasHub's BERT, and names of the weights in them.

Layers of keras_hub/src/models/bert: bert_backbone.py, bert_text_classifier.py, bert_masked_lm.py.
KerasNLP 0.7, 0.12 and KerasHub 0.17 (Keras 3.0, 3.3 and 3.6) spell the names as KerasHub 0.32 does.
"""

from functools import partial

from keras_bert.checkpoints.names import Row, dense, norm

CONFIG, TASK, TOKENIZER = "config.json", "task.json", "tokenizer.json"
WEIGHTS, TASK_WEIGHTS = "model.weights.h5", "task.weights.h5"
VOCABULARY = "assets/tokenizer/vocabulary.txt"
HEADS_BESIDE = "keras_bert_heads.safetensors"  # ours

DROPOUT = 0.1  # default of KerasHub's classes
LONGEST_WORD = 100  # in bytes there: the limit of tf_text.FastWordpieceTokenizer
# Its built-in values.
FIXED = {"activation": "gelu_tanh", "layer_norm_epsilon": 1e-12, "initializer_range": 0.02}
FIXED_MASKED_LM = {"activation": "gelu_exact", "layer_norm_epsilon": 1e-5}

_dense = partial(dense, ends=("/vars/0", "/vars/1"))
_norm = partial(norm, ends=("/vars/0", "/vars/1"))
_BLOCK = "layers/transformer_encoder_{i}"
_ATTENTION = f"{_BLOCK}/_self_attention_layer"
_SPLIT = {"layouts": ("split_outputs", "split_outputs")}
_JOINED = {"layouts": ("split_inputs", "same")}
# In model.weights.h5.
NAMES = (
    Row("embeddings/word/embeddings", "layers/reversible_embedding/vars/0"),
    Row("embeddings/position_table", "layers/position_embedding/vars/0"),
    Row("embeddings/segment_table", "layers/embedding/vars/0"),
    *_norm("embeddings/layer_norm", "layers/layer_normalization"),
    *_dense("block_{i}/attention/query", f"{_ATTENTION}/query_dense", **_SPLIT),
    *_dense("block_{i}/attention/key", f"{_ATTENTION}/key_dense", **_SPLIT),
    *_dense("block_{i}/attention/value", f"{_ATTENTION}/value_dense", **_SPLIT),
    *_dense("block_{i}/attention/output", f"{_ATTENTION}/output_dense", **_JOINED),
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
# By the class in task.json.
TASKS = {
    "BertTextClassifier": CLASSIFIER,
    "BertClassifier": CLASSIFIER,  # its name in KerasNLP
    "BertMaskedLM": MASKED_LM_HEAD,
}
# task.weights.h5 of KerasHub 0.17 contains a second copy of the backbone, which is never read.
SECOND_COPY = "layers/bert_backbone/"
# Prefixes of block names, in both of Keras's spellings.
BLOCKS = tuple(
    f"{WEIGHTS}/{root}/transformer_encoder" for root in ("layers", "_layer_checkpoint_dependencies")
)


def rows_beside(head: str | None) -> list[Row]:
    """The name table of this package's file next to KerasHub's: all heads, by names used here."""
    next_sentence = _dense("next_sentence_head/dense", "")
    rows = (*MASKED_LM_HEAD, *next_sentence, *(CLASSIFIER if head else ()))
    return [Row(row.ours, row.ours) for row in rows]
