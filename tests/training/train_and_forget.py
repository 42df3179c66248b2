"""Trains models and drops them; run by test_memory.py in a process of its own.

A case is TASK-VARIANTS-MODELS: so many models one after another, of which nothing may stay. Prints
a line of JSON each: the graphs and variables left after the first model and after the last, and by
how many bytes the process grew in between.
"""

import gc
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

import keras_bert
from keras_bert.models.tuning import tune

VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] $ # a red cat the blue dog saw car one".split()
TEXTS = ["a red cat", "the blue dog saw", "a car", "one cat saw a car"] * 2
OTHERS = TEXTS[1:] + TEXTS[:1]
NUMBERS = [0, 1] * 4
IDS = np.random.default_rng(0).integers(5, 14, (8, 7)).astype("int32")
PRETRAINING = {
    "token_ids": IDS,
    "segment_ids": IDS % 2,
    "padding_mask": np.ones_like(IDS),
    "mask_positions": np.tile(np.arange(2, dtype="int32"), (8, 1)),
    "mask_ids": IDS[:, :2],
    "mask_weights": np.ones((8, 2), "float32"),
    "next_sentence_labels": IDS[:, 0] % 2,
}
WORDS = [text.split() for text in TEXTS]
TASKS = {  # arguments of the task, and of `fit`
    "BertClassifier": ({"num_classes": 2}, (TEXTS, NUMBERS)),
    "BertTokenClassifier": (
        {"labels": ["O", "X"], "crf": True},
        (WORDS, [["O"] * len(words) for words in WORDS]),
    ),
    "BertQuestionAnswerer": ({}, ((TEXTS, OTHERS), [(text.split()[0], 0) for text in OTHERS])),
    "BertMultipleChoice": (
        {},
        ((TEXTS, [list(pair) for pair in zip(TEXTS, OTHERS, strict=True)]), NUMBERS),
    ),
    "BertRelationClassifier": (
        {"num_classes": 2},
        ((TEXTS, [[(0, 1), (2, 4)]] * 8), NUMBERS),
    ),
    "BertTextEmbedder": ({}, ((TEXTS[:4], OTHERS[:4]),)),
    "BertMaskedLM": ({}, (TEXTS,)),
    "BertPretrainer": ({}, (tf.data.Dataset.from_tensor_slices(PRETRAINING).batch(8),)),
}


def make(task, variants):
    kind = getattr(keras_bert, task)
    sizes = (1, 2, 8, 12, 16) if "large" not in variants else (4, 4, 256, 1024, 64)
    backbone = keras_bert.BertBackbone(
        len(VOCABULARY) if "large" not in variants else 30000,
        *sizes,
        gradient_checkpointing="checkpointing" in variants,
        adapter_dim=4 if "adapters" in variants else None,
    )
    text_side = None
    if task != "BertPretrainer":
        more = {"max_question_length": 5} if task == "BertQuestionAnswerer" else {}
        text_side = kind.preprocessor_cls(keras_bert.BertTokenizer(VOCABULARY), 12, **more)
    return kind(backbone, preprocessor=text_side, **TASKS[task][0])


def train(model, task, variants):
    if "eager" not in variants:
        for way in {"lora", "bitfit", "adapters"} & variants:
            tune(model, way)
    model.compile(
        learning_rate=1e-3,
        accumulation_steps=2 if "accumulation" in variants else 1,
        packing="packing" in variants,
        jit_compile=True if "xla" in variants else "auto",
        run_eagerly="eager" in variants,
    )
    model.fit(*TASKS[task][1], verbose=0)
    if task not in ("BertMaskedLM", "BertPretrainer"):
        x = TASKS[task][1][0]
        model.predict(x[0] if task == "BertTextEmbedder" else x, verbose=0)


def left():
    """(graphs, variables) that are alive, and bytes of the process."""
    gc.collect()
    alive = [type(thing).__name__ for thing in gc.get_objects()]
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    counts = [alive.count("FuncGraph"), alive.count("ResourceVariable")]
    return counts, pages * os.sysconf("SC_PAGE_SIZE")


def run(task, variants, models):
    model = make(task, variants) if "again" in variants else None
    for number in range(models):
        train(model or make(task, variants), task, variants)
        keras.backend.clear_session()
        if number == 0:
            first, before = left()
    last, after = left()
    return {"first": first, "last": last, "grown": after - before}


for case in sys.argv[1:]:
    task, variants, models = case.split("-")
    found = run(task, set(variants.split("+")), int(models))
    print(json.dumps({"case": case, **found}), flush=True)
