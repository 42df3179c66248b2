"""Measures training and prediction on this machine: rows a second over all devices.

Rows are full of random ids, or real: texts of a file, documents of a prepared corpus. Prints one
JSON line. The first steps, with compilation, are left out of the rate and told apart.
Run: python tools/benchmark.py --dtype mixed_bfloat16
     python tools/benchmark.py --work predict --texts lines.txt --vocabulary vocab.txt
     python tools/benchmark.py --task pretraining --size mini --corpus DIR
     python tools/benchmark.py --strategy mirrored --devices GPU:0 GPU:1
"""

import argparse
import contextlib
import json
import time

SWITCH = {"auto": "auto", "on": True, "off": False}


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument(
        "--task", choices=("classification", "pretraining"), default="classification"
    )
    parser.add_argument("--work", choices=("train", "predict"), default="train")
    parser.add_argument(
        "--texts", help="of classification: lines of this file instead, a tab within a pair"
    )
    parser.add_argument("--vocabulary", help="of --texts: a vocab.txt, lower-casing")
    parser.add_argument(
        "--tokenized", action="store_true", help="make ids of --texts before anything is timed"
    )
    parser.add_argument(
        "--dataset", action="store_true", help="full rows come in a tf.data.Dataset of batches"
    )
    parser.add_argument("--packing", choices=SWITCH, default="auto")
    parser.add_argument("--corpus", help="of pretraining: rows of this prepared corpus instead")
    strategies = ("none", "auto", "one", "mirrored", "multiworker")
    parser.add_argument(
        "--strategy", choices=strategies, default="none", help="multiworker: by TF_CONFIG or SLURM"
    )
    parser.add_argument("--devices", nargs="+", help='for "one" and "mirrored", such as GPU:0')
    parser.add_argument("--size", default="base", help="a key of keras_bert.config.SIZES")
    parser.add_argument("--heads", type=int, help="attention heads; by default those of the size")
    parser.add_argument("--sequence_length", type=int, default=128)
    parser.add_argument("--predictions", type=int, help="of pretraining: masks a row")
    parser.add_argument("--batch_size", type=int, default=256, help="rows for each device")
    parser.add_argument("--accumulation_steps", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warmup_steps", type=int, default=15, help="steps that are not timed")
    parser.add_argument("--dtype", default="mixed_bfloat16")
    parser.add_argument("--jit_compile", choices=SWITCH, default="auto")
    parser.add_argument("--rounds", type=int, default=2, help="of predict: the best one counts")
    parser.add_argument("--trace_dir", help="folder for a trace of five steps, for TensorBoard")
    args = parser.parse_args(argv)
    if not 0 < args.warmup_steps < args.steps:
        parser.error(
            f"expected 0 < --warmup_steps < --steps, got {args.warmup_steps}, {args.steps}"
        )
    if args.task == "pretraining" and (args.texts or args.work == "predict"):
        parser.error("--task pretraining has neither --texts nor --work predict")
    if args.dataset and (args.texts or args.work == "predict" or args.task == "pretraining"):
        parser.error("--dataset is of full rows of classification to train on")
    if bool(args.texts) != bool(args.vocabulary) or args.tokenized and not args.texts:
        parser.error("--texts and --vocabulary go together, and --tokenized with them")
    return args


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before the imports that take seconds

import keras_bert  # first: it asks TensorFlow for the fastest kernels of a CPU

# isort: split
import keras
import numpy as np
import tensorflow as tf

from keras_bert import training
from keras_bert.data import pretraining_dataset, read_index
from keras_bert.serving.export_contract import versions

VOCABULARY_SIZE = 30522


class Clock(keras.callbacks.Callback):
    """Time from the end of step `first` to the end of step `last`, and of the first step."""

    def __init__(self, first: int, last: int, trace_dir: str | None):
        super().__init__()
        self.first, self.last, self.trace_dir = first, last, trace_dir

    def on_train_begin(self, logs=None):
        self.start = time.perf_counter()

    def after_step(self, logs):
        done = self.model.run.done
        if done in (1, self.first, self.last):
            found = self.model.counters.read()  # waits for the device
            now = time.perf_counter()
            if done == 1:
                self.first_step_seconds = now - self.start
            if done == self.first:
                self.begin, self.rows = now, found["rows"]
            if done == self.last:
                self.seconds = now - self.begin
                self.loss, self.rows = found["loss"], found["rows"] - self.rows
        # Five steps of the warm-up, so that tracing does not slow what is timed.
        if self.trace_dir and done == self.first - 7:
            tf.profiler.experimental.start(self.trace_dir)
        if self.trace_dir and done == self.first - 2:
            self.model.counters.read()
            tf.profiler.experimental.stop()


def classification_rows(args, batch_size: int, preprocessor) -> tuple:
    """What `fit` takes: texts of the file, or full rows of random ids; and two classes."""
    if args.texts:
        with open(args.texts, encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
        columns = tuple(map(list, zip(*rows, strict=True)))
        x, count = columns if len(columns) > 1 else columns[0], len(rows)
        if args.tokenized:
            x = {name: np.asarray(ids) for name, ids in preprocessor(x).items()}
    else:
        count = batch_size * args.steps  # one epoch
        x = _full_rows(args, VOCABULARY_SIZE, count)
    return x, np.random.default_rng(1).integers(0, 2, count)


def pretraining_batches(args, vocabulary_size: int, batch_size: int) -> tf.data.Dataset:
    """Batches for both heads without end: from the corpus, or full rows of random ids."""
    masks = args.predictions or round(0.15 * args.sequence_length / 4) * 4
    if args.corpus:
        return pretraining_dataset(args.corpus, args.sequence_length, masks, batch_size=batch_size)
    rng, rows = np.random.default_rng(1), 4 * batch_size
    positions = [rng.choice(args.sequence_length, masks, replace=False) for _ in range(rows)]
    rows = _full_rows(args, vocabulary_size, rows) | {
        "mask_positions": np.sort(np.array(positions, "int32")),
        "mask_ids": rng.integers(1, vocabulary_size, (rows, masks), "int32"),
        "mask_weights": np.ones((rows, masks), "float32"),
        "next_sentence_labels": rng.integers(0, 2, rows, "int32"),
    }
    batches = tf.data.Dataset.from_tensor_slices(rows)
    return batches.batch(batch_size, drop_remainder=True).repeat()


def _full_rows(args, vocabulary_size: int, count: int) -> dict[str, np.ndarray]:
    shape = (count, args.sequence_length)
    return {
        "token_ids": np.random.default_rng(0).integers(1, vocabulary_size, shape, "int32"),
        "segment_ids": np.zeros(shape, "int32"),
        "padding_mask": np.ones(shape, "int32"),
    }


def build(args, scope):
    """The compiled model, inside of the scope of a strategy."""
    if args.corpus:
        vocabulary_size = read_index(args.corpus).make_tokenizer().vocabulary_size()
    else:
        vocabulary_size = VOCABULARY_SIZE
    preprocessor = None
    if args.texts:
        tokenizer = keras_bert.BertTokenizer(args.vocabulary)
        vocabulary_size = tokenizer.vocabulary_size()
        preprocessor = keras_bert.BertClassifierPreprocessor(
            tokenizer, sequence_length=args.sequence_length
        )
    with scope:
        heads = {"num_heads": args.heads} if args.heads else {}
        backbone = keras_bert.BertBackbone.from_size(
            args.size, vocabulary_size, dtype=args.dtype, **heads
        )
        if args.task == "pretraining":
            model = keras_bert.BertPretrainer(backbone)
        else:
            model = keras_bert.BertClassifier(backbone, num_classes=2, preprocessor=preprocessor)
        model.compile(
            learning_rate=2e-5,
            accumulation_steps=args.accumulation_steps,
            jit_compile=SWITCH[args.jit_compile],
            packing=SWITCH[args.packing],
        )
    return model


def train(args, model, batch_size: int) -> dict:
    """Steps of training."""
    if args.task == "pretraining":
        vocabulary_size = model.backbone.vocabulary_size
        rows = (pretraining_batches(args, vocabulary_size, batch_size),)
        duration = {"steps": args.steps, "steps_per_epoch": args.steps}
    else:
        rows = classification_rows(args, batch_size, model.preprocessor)
        duration = {"steps": args.steps, "batch_size": batch_size}
        if args.dataset:
            rows = (tf.data.Dataset.from_tensor_slices(rows).batch(batch_size),)
            del duration["batch_size"]
    clock = Clock(args.warmup_steps, args.steps, args.trace_dir)
    model.fit(*rows, **duration, callbacks=[clock], verbose=0)
    timed = args.steps - args.warmup_steps
    return {
        "ms_per_step": round(1000 * clock.seconds / timed, 2),
        "rows_per_second": round(clock.rows / clock.seconds, 1),
        "first_step_seconds": round(clock.first_step_seconds, 1),
        "last_loss": round(clock.loss, 5),
    }


def predict(args, model, batch_size: int) -> dict:
    """All rows once, after a first time with compilation."""
    x, labels = classification_rows(args, batch_size, model.preprocessor)
    seconds = []
    for _ in range(1 + args.rounds):
        start = time.perf_counter()
        model.predict(x, batch_size=batch_size, verbose=0)
        seconds.append(time.perf_counter() - start)
    return {
        "rows_per_second": round(len(labels) / min(seconds[1:]), 1),
        "first_seconds": round(seconds[0], 1),
        "seconds": [round(second, 3) for second in seconds[1:]],
    }


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    scope = contextlib.nullcontext()
    if args.strategy != "none":  # first: several workers have to be
        scope = training.strategy(args.strategy, devices=args.devices).scope()
    keras.utils.set_random_seed(0)
    model = build(args, scope)
    devices = model.step.replica_count
    work = {"train": train, "predict": predict}[args.work]
    result = {
        **vars(args),
        "device_count": devices,
        "versions": versions(),
        **work(args, model, args.batch_size * devices),
    }
    print(json.dumps(result), flush=True)
    return result


if __name__ == "__main__":
    main()
