"""Experiments over seeds: their flags, a model for all seeds, and what a run writes."""

import argparse
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert.training.callbacks import TrainingTimer, standard_callbacks
from keras_bert.training.resume import Resume
from keras_bert.training.strategies import KINDS


def flags(
    doc: str,
    epochs: int = 3,
    batch_size: int = 32,
    learning_rate: float = 2e-5,
    sequence_length: int = 128,
) -> argparse.ArgumentParser:
    """A parser with the flags of every fine-tuning recipe.

    Args:
        doc: the recipe's docstring; its first line describes it.
        epochs: default of the flag of that name, as the others.
        batch_size: likewise.
        learning_rate: likewise.
        sequence_length: likewise.
    """
    parser = argparse.ArgumentParser(description=doc.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--preset", required=True, help="folder, name or address of a BERT")
    parser.add_argument("--new_weights", action="store_true", help="only the preset's shape")
    parser.add_argument("--output_dir", default=f"runs/{Path(parser.prog).stem}")
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="one run a seed")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--batch_size", type=int, default=batch_size)
    parser.add_argument("--learning_rate", type=float, default=learning_rate)
    parser.add_argument("--sequence_length", type=int, default=sequence_length)
    parser.add_argument("--padding", choices=("bucket", "full"), default="bucket")
    parser.add_argument("--dtype", default="float32", help='such as "mixed_bfloat16" on a GPU')
    parser.add_argument("--steps_per_execution", type=int, default=1)
    parser.add_argument("--accumulation_steps", type=int, default=1)
    parser.add_argument("--strategy", choices=KINDS, default="auto", help="devices to train on")
    parser.add_argument("--resume", action="store_true", help="save, and go on where it stopped")
    parser.add_argument("--limit", type=int, help="train on the first so many examples only")
    return parser


class Run:
    """One seed's run: where it writes, and what `fit` needs.

    Args:
        args: parsed `flags`.
        name: of the run, such as the task.
        seed: of the run.
        monitor: what the best epoch is judged by, such as "val_accuracy"; None without
            validation.
    """

    def __init__(self, args: argparse.Namespace, name: str, seed: int, monitor: str | None):
        self.name, self.seed = name, seed
        self.output = Path(args.output_dir) / f"{name}-seed{seed}"
        self.output.mkdir(parents=True, exist_ok=True)
        self.timer = TrainingTimer()
        callbacks: list[keras.callbacks.Callback] = [self.timer]
        if monitor:
            callbacks += standard_callbacks(self.output, monitor)
        if args.resume:
            callbacks.append(Resume(self.output / "checkpoints", monitor=monitor))
        self.fit = {
            "batch_size": args.batch_size,
            "epochs": args.epochs,
            "seed": seed,
            "callbacks": callbacks,
        }

    def finish(self, model: keras.Model, rows: int, scores: dict[str, float], **more) -> dict:
        """Writes the preset and metrics.json, and prints the latter on a line.

        Args:
            model: the trained task.
            rows: rows of an epoch.
            scores: metrics by name.
            **more: whatever else belongs there.

        Returns:
            What metrics.json holds.
        """
        model.save_to_preset(str(self.output / "preset"))
        metrics = {
            "task": self.name,
            "seed": self.seed,
            **scores,
            **more,
            "train_rows": rows,
            "train_seconds_by_epoch": self.timer.seconds,  # the first includes compilation
            "train_rows_per_second": rows / min(self.timer.seconds, default=math.inf),
        }
        (self.output / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
        print(json.dumps(metrics), flush=True)
        return metrics


def seeds(
    args: argparse.Namespace,
    devices,
    name: str,
    make: Callable[[], keras.Model],
    monitor: str | None = None,
) -> Iterator[tuple[keras.Model, Run]]:
    """Gives a model and a run for each seed. The model is one, compiled once, with new weights.

    Args:
        args: parsed `flags`.
        devices: from `keras_bert.training.strategy(args.strategy)`, which a recipe calls first:
            several workers have to meet before TensorFlow does anything.
        name: of the runs.
        make: makes the task.
        monitor: as `Run`.
    """
    model = None
    for seed in args.seed:
        keras.utils.set_random_seed(seed)
        with devices.scope():
            fresh = make()
        if model is None:
            model = fresh
            model.compile(
                learning_rate=args.learning_rate,
                accumulation_steps=args.accumulation_steps,
                steps_per_execution=args.steps_per_execution,
            )
        else:
            model.copy_state(fresh)
        yield model, Run(args, name, seed, monitor)


def summarise(name: str, runs: Sequence[dict[str, Any]], metric_names: Sequence[str]) -> dict:
    """Mean and population deviation of the metrics over runs; printed on a line.

    Returns:
        {"task", "runs", metric: {"mean", "deviation"}, "by_seed": runs}.
    """
    summary: dict[str, Any] = {"task": name, "runs": len(runs)}
    for metric in metric_names:
        values = [run[metric] for run in runs]
        summary[metric] = {"mean": float(np.mean(values)), "deviation": float(np.std(values))}
    print(json.dumps(summary), flush=True)
    return summary | {"by_seed": list(runs)}
