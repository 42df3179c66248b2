"""Measures the train step on full-length rows of random ids: rows a second over all devices.

Prints one JSON line. The first steps, with compilation, are left out.
Run: python tools/benchmark_training.py --strategy mirrored --devices GPU:0 GPU:1
     python tools/benchmark_training.py --task pretraining --size mini --corpus DIR
"""

import argparse
import json
import time

import keras
import numpy as np
import tensorflow as tf

import keras_bert
from keras_bert import training
from keras_bert.data import pretraining_dataset, read_index


class Clock(keras.callbacks.Callback):
    """Time from the end of step `first` to the end of training, and of the first step."""

    def __init__(self, first: int, trace_dir: str | None):
        super().__init__()
        self.first, self.trace_dir = first, trace_dir

    def on_train_begin(self, logs=None):
        self.start = time.perf_counter()

    def after_step(self, logs):
        done = self.model.position.done
        if done in (1, self.first):
            self.model.counters.read()  # waits for the device
            now = time.perf_counter()
            if done == 1:
                self.first_step_seconds = now - self.start
            self.begin = now
        # Five steps of the warm-up, so that tracing does not slow what is timed.
        if self.trace_dir and done == self.first - 7:
            tf.profiler.experimental.start(self.trace_dir)
        if self.trace_dir and done == self.first - 2:
            self.model.counters.read()
            tf.profiler.experimental.stop()

    def on_train_end(self, logs=None):
        self.loss = self.model.counters.read()["loss"]
        self.seconds = time.perf_counter() - self.begin


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument(
        "--task", choices=("classification", "pretraining"), default="classification"
    )
    parser.add_argument("--corpus", help="of pretraining: rows of this prepared corpus instead")
    parser.add_argument("--strategy", choices=("none", "auto", "one", "mirrored"), default="none")
    parser.add_argument("--devices", nargs="+", help='for "one" and "mirrored", such as GPU:0')
    parser.add_argument("--size", default="base", help="a key of keras_bert.config.SIZES")
    parser.add_argument("--sequence_length", type=int, default=128)
    parser.add_argument("--predictions", type=int, help="of pretraining: masks a row")
    parser.add_argument("--batch_size", type=int, default=256, help="rows for each device")
    parser.add_argument("--accumulation_steps", type=int, default=1)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--warmup_steps", type=int, default=15, help="steps that are not timed")
    parser.add_argument("--dtype", default="mixed_bfloat16")
    parser.add_argument("--jit_compile", choices=("auto", "on", "off"), default="auto")
    parser.add_argument("--trace_dir", help="folder for a trace of five steps, for TensorBoard")
    return parser.parse_args(argv)


def classification_batches(args, vocabulary_size: int, batch_size: int) -> tf.data.Dataset:
    """Batches of full rows of random ids, two classes, without end."""
    labels = np.random.default_rng(1).integers(0, 2, 4 * batch_size)
    batches = tf.data.Dataset.from_tensor_slices(
        (_full_rows(args, vocabulary_size, batch_size), labels)
    )
    return batches.batch(batch_size, drop_remainder=True).repeat()


def pretraining_batches(args, vocabulary_size: int, batch_size: int) -> tf.data.Dataset:
    """Batches for both heads without end: from the corpus, or full rows of random ids."""
    masks = args.predictions or round(0.15 * args.sequence_length / 4) * 4
    if args.corpus:
        return pretraining_dataset(args.corpus, args.sequence_length, masks, batch_size=batch_size)
    rng, rows = np.random.default_rng(1), 4 * batch_size
    positions = [rng.choice(args.sequence_length, masks, replace=False) for _ in range(rows)]
    rows = _full_rows(args, vocabulary_size, batch_size) | {
        "mask_positions": np.sort(np.array(positions, "int32")),
        "mask_ids": rng.integers(1, vocabulary_size, (rows, masks), "int32"),
        "mask_weights": np.ones((rows, masks), "float32"),
        "next_sentence_labels": rng.integers(0, 2, rows, "int32"),
    }
    batches = tf.data.Dataset.from_tensor_slices(rows)
    return batches.batch(batch_size, drop_remainder=True).repeat()


def _full_rows(args, vocabulary_size: int, batch_size: int) -> dict[str, np.ndarray]:
    shape = (4 * batch_size, args.sequence_length)
    return {
        "token_ids": np.random.default_rng(0).integers(1, vocabulary_size, shape, "int32"),
        "segment_ids": np.zeros(shape, "int32"),
        "padding_mask": np.ones(shape, "int32"),
    }


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    keras.utils.set_random_seed(0)
    vocabulary_size = (
        read_index(args.corpus).make_tokenizer().vocabulary_size() if args.corpus else 30522
    )
    jit_compile = {"auto": "auto", "on": True, "off": False}[args.jit_compile]

    def build():
        backbone = keras_bert.BertBackbone.from_size(args.size, vocabulary_size, dtype=args.dtype)
        if args.task == "pretraining":
            model = keras_bert.BertPretrainer(backbone)
        else:
            model = keras_bert.BertClassifier(backbone, num_classes=2)
        model.compile(
            learning_rate=2e-5,
            accumulation_steps=args.accumulation_steps,
            jit_compile=jit_compile,
        )
        return model

    if args.strategy == "none":
        model = build()
    else:
        with training.strategy(args.strategy, devices=args.devices).scope():
            model = build()
    devices = model.replica_count
    batch_size = args.batch_size * devices
    make = pretraining_batches if args.task == "pretraining" else classification_batches
    clock = Clock(args.warmup_steps, args.trace_dir)
    model.fit(
        make(args, vocabulary_size, batch_size),
        steps=args.steps,
        steps_per_epoch=args.steps,
        callbacks=[clock],
        verbose=0,
    )
    timed = args.steps - args.warmup_steps
    result = {
        **vars(args),
        "device_count": devices,
        "ms_per_step": round(1000 * clock.seconds / timed, 2),
        "rows_per_second": round(timed * batch_size / clock.seconds, 1),
        "first_step_seconds": round(clock.first_step_seconds, 1),
        "last_loss": round(clock.loss, 5),
    }
    print(json.dumps(result), flush=True)
    return result


if __name__ == "__main__":
    main()
