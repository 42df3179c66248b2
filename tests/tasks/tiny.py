"""All tasks on one tiny backbone, and ids for them."""

import keras
import numpy as np

import keras_bert

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the a cat sat on mat dog ##s slept it ran . ? who $ # !"
TEXTS = ["the cat sat on the mat .", "a dog slept"]


def tokenizer():
    return keras_bert.BertTokenizer(WORDS.split())


def backbone_settings():
    return {
        "vocabulary_size": len(WORDS.split()),
        "num_layers": 1,
        "num_heads": 2,
        "hidden_dim": 8,
        "intermediate_dim": 12,
        "max_sequence_length": 24,
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
    }


def ids(rows=3, length=7, seed=0):
    """Rows of unequal lengths, tensors [rows, length]."""
    rng = np.random.default_rng(seed)
    mask = np.arange(length) < rng.integers(4, length + 1, (rows, 1))
    found = {
        "token_ids": np.where(mask, rng.integers(5, len(WORDS.split()), (rows, length)), 0),
        "segment_ids": np.where(mask, np.arange(length) > 2, 0),
        "padding_mask": mask,
    }
    return {n: keras.ops.convert_to_tensor(v.astype("int32")) for n, v in found.items()}


def text_side(cls, length=16, **settings):
    if cls is keras_bert.BertQuestionAnswererPreprocessor:
        settings = {"max_question_length": 6, "stride": 4} | settings
    return cls(tokenizer(), length, padding="full", **settings)


def made(cls, **kwargs):
    """Arguments of a task on a tiny backbone."""
    if cls in (
        keras_bert.BertClassifier,
        keras_bert.BertTokenClassifier,
        keras_bert.BertRelationClassifier,
    ):
        kwargs = {"num_classes": 2} | kwargs
    return {
        "backbone": keras_bert.BertBackbone(**backbone_settings()),
        "preprocessor": text_side(cls.preprocessor_cls),
        **kwargs,
    }


TASKS = [
    keras_bert.BertClassifier,
    keras_bert.BertTokenClassifier,
    keras_bert.BertQuestionAnswerer,
    keras_bert.BertMultipleChoice,
    keras_bert.BertRelationClassifier,
    keras_bert.BertTextEmbedder,
    keras_bert.BertMaskedLM,
    keras_bert.BertPretrainer,
]


def inputs_of(model) -> dict:
    """Ids for any task."""
    found = ids()
    for name in model.input:
        if name not in found:
            found[name] = keras.ops.convert_to_tensor(np.array([[1, 2]] * 3, "int32"))
    return found
