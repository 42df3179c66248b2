"""Experiments over seeds: one model for all of them, and what each run writes."""

import argparse
import importlib.util
import json
import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert.data.tagged import TaggedSentences, read_tagged
from keras_bert.training.callbacks import BestWeights
from keras_bert.training.resume import Resume

from recipe_flags import SWITCH

logger = logging.getLogger("keras_bert")

# The files of CoNLL-2003, WNUT 2017 and others, by how their names begin.
TAGGED_FILES = {
    "train": ("eng.train", "wnut17train", "train"),
    "dev": ("eng.testa", "emerging.dev", "dev", "valid"),
    "test": ("eng.testb", "emerging.test", "test"),
}


def read_tagged_parts(args: argparse.Namespace) -> dict[str, TaggedSentences]:
    """Reads tagged sentences to train on, "train", to choose by, "dev", and perhaps "test".

    Raises:
        FileNotFoundError: if there is no file for "train" or "dev".
        ValueError: if there are several, or one is damaged.
    """
    found = {}
    for part, names in TAGGED_FILES.items():
        path = getattr(args, part)
        if path is None and args.data_dir:
            paths = sorted(p for p in Path(args.data_dir).iterdir() if p.name.startswith(names))
            if len(paths) > 1:
                raise ValueError(f"{args.data_dir}: several files for --{part}: {paths}")
            path = paths[0] if paths else None
        if path is None and part != "test":
            raise FileNotFoundError(f"no {part} file: pass --{part}, or a --data_dir with one")
        if path is not None:
            scheme = None if args.scheme == "none" else args.scheme
            columns = {"word_column": args.word_column, "tag_column": args.tag_column}
            found[part] = read_tagged(path, scheme=scheme, **columns)
    return found


class TrainingTimer(keras.callbacks.Callback):
    """Times the training part of every epoch, validation left out.

    Attributes:
        seconds: one number an epoch. The first includes compilation.
    """

    def __init__(self):
        super().__init__()
        self.seconds: list[float] = []

    def on_epoch_begin(self, epoch, logs=None):
        self._begin = time.perf_counter()
        self._end = None

    def on_test_begin(self, logs=None):
        if self._end is None and getattr(self.model, "counters", None) is not None:
            self.model.counters.read()  # waits for the steps that the device has yet to make
        self._end = self._end or time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds.append((self._end or time.perf_counter()) - self._begin)


def standard_callbacks(
    output_dir: str | Path, monitor: str, mode: str = "max"
) -> list[keras.callbacks.Callback]:
    """Logs for TensorBoard and the weights of the best epoch.

    Args:
        output_dir: folder to write into, made if need be: `tensorboard/` and `best.weights.h5`.
        monitor: what the best epoch is judged by, such as "val_accuracy".
        mode: "max" or "min".

    Returns:
        The callbacks; without the `tensorboard` package only the second, with a warning.
    """
    output_dir = Path(output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    callbacks: list[keras.callbacks.Callback] = [
        BestWeights(output_dir / "best.weights.h5", monitor, mode)
    ]
    if importlib.util.find_spec("tensorboard") is None:
        logger.warning("no TensorBoard log: the tensorboard package is not installed")
    else:
        logs = str(output_dir / "tensorboard")
        callbacks.append(keras.callbacks.TensorBoard(logs, write_graph=False))
    return callbacks


def run_seeds(
    args: argparse.Namespace,
    devices,
    make: Callable[..., keras.Model],
    data: dict[str, Any],
    score: Callable[[keras.Model, Path], dict[str, Any]],
    monitor: str = "val_accuracy",
    mode: str = "max",
    name: str | None = None,
    report: Callable[[keras.Model, Path], None] | None = None,
) -> dict[str, Any]:
    """Trains and scores a model for each seed; writes its preset, weights and metrics.json.

    The model is one, compiled once, with new weights for each seed.

    Args:
        args: the parsed flags of `recipes/recipe_flags.py`.
        devices: from `keras_bert.training.strategy(args.strategy)`, which a recipe calls first:
            several workers have to meet before TensorFlow does anything.
        make: `from_preset` of a task, which gets what the flags say of it.
        data: the arguments of `fit` that hold the data.
        score: gives the metrics of a trained model by name, and may write into the run's folder.
        monitor: what the best epoch is judged by.
        mode: "max" or "min".
        name: of the runs, whose folders are `NAME-seed0` then, else `seed0`.
        report: draws pictures of a trained model into the run's folder, when all else is written.

    Returns:
        {"task", "runs", metric: {"mean", "deviation"}, "by_seed": what each metrics.json holds};
        deviations are those of the population.
    """
    model, runs, scores = None, [], []
    names = () if args.dropout is None else ("hidden_dropout", "attention_dropout")
    for seed in args.seed:
        keras.utils.set_random_seed(seed)
        with devices.scope():
            fresh = make(
                args.preset,
                sequence_length=args.sequence_length,
                padding=args.padding,
                dtype=args.dtype,
                load_weights=not args.new_weights,
                **dict.fromkeys(names, args.dropout),
            )
        if model is None:
            model = fresh
            model.backbone.trainable = not getattr(args, "frozen", False)
            model.compile(
                learning_rate=args.learning_rate,
                epsilon=args.epsilon,
                accumulation_steps=args.accumulation_steps,
                steps_per_execution=args.steps_per_execution,
                packing=SWITCH[args.packing],
                # cuDNN's LSTM is out of XLA's reach, and XLA's own takes minutes to compile.
                jit_compile=False if getattr(args, "bilstm", False) else "auto",
            )
        else:
            model.copy_state(fresh)
        output = Path(args.output_dir) / (f"{name}-seed{seed}" if name else f"seed{seed}")
        timer = TrainingTimer()
        callbacks = [timer, *standard_callbacks(output, monitor, mode)]
        if args.resume:
            callbacks.append(Resume(output / "checkpoints", monitor=monitor, mode=mode))
        model.counters.reset()
        history = model.fit(
            **data, batch_size=args.batch_size, epochs=args.epochs, seed=seed, callbacks=callbacks
        ).history
        rows = model.counters.read()["rows"] / max(len(timer.seconds), 1)
        scores.append(score(model, output))
        model.save_to_preset(str(output / "preset"))
        metrics = {
            "task": name,
            "seed": seed,
            **scores[-1],
            f"{monitor}_by_epoch": history.get(monitor, []),  # of this run
            "train_rows": round(rows),
            "train_seconds_by_epoch": timer.seconds,  # the first includes compilation
            "train_rows_per_second": rows / min(timer.seconds, default=math.inf),
        }
        (output / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
        print(json.dumps(metrics), flush=True)
        runs.append(metrics)
        if report is not None:
            report(model, output)
    summary = {"task": name, **summary_of(scores)}
    print(json.dumps(summary), flush=True)
    return summary | {"by_seed": runs}


def summary_of(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Number of runs, and of each number in them mean and population deviation."""
    summary: dict[str, Any] = {"runs": len(runs)}
    for metric, value in runs[0].items():
        if metric != "seed" and type(value) in (int, float):
            values = [run[metric] for run in runs]
            summary[metric] = {"mean": float(np.mean(values)), "deviation": float(np.std(values))}
    return summary
