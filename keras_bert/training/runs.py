"""What experiments share: flags, and one run a seed with what it writes."""

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np

from keras_bert.training.callbacks import TrainingTimer, standard_callbacks
from keras_bert.training.resume import Resume
from keras_bert.training.strategies import KINDS, strategy


def parser(description: str, output_dir: str, **defaults) -> argparse.ArgumentParser:
    """Makes a parser of the flags that all experiments have.

    Args:
        description: the recipe's docstring, whose first line is shown.
        output_dir: default of `--output_dir`.
        **defaults: epochs, batch_size, learning_rate and sequence_length.
    """
    flags = argparse.ArgumentParser(description=description.split("\n")[0], allow_abbrev=False)
    flags.add_argument("--preset", required=True, help="folder, name or address of a BERT")
    flags.add_argument("--new_weights", action="store_true", help="only the preset's shape")
    flags.add_argument("--output_dir", default=output_dir)
    flags.add_argument("--seed", type=int, nargs="+", default=[0], help="one run a seed")
    for name, default in defaults.items():
        flags.add_argument(f"--{name}", type=type(default), default=default)
    flags.add_argument("--padding", choices=("bucket", "full"), default="bucket")
    flags.add_argument("--dtype", default="float32", help='such as "mixed_bfloat16" on a GPU')
    flags.add_argument("--steps_per_execution", type=int, default=1)
    flags.add_argument("--accumulation_steps", type=int, default=1)
    flags.add_argument("--strategy", choices=KINDS, default="auto", help="devices to train on")
    flags.add_argument("--resume", action="store_true", help="save, and go on where it stopped")
    flags.add_argument("--limit", type=int, help="train on the first so many rows only")
    return flags


def run_seeds(
    args: argparse.Namespace,
    make: Callable[..., keras.Model],
    data: dict,
    rows: int,
    score: Callable[[keras.Model], dict],
    monitor: str = "val_accuracy",
    mode: str = "max",
) -> dict:
    """Trains and scores one model a seed; writes weights, preset and metrics of each.

    Args:
        args: the flags.
        make: `from_preset` of the task, which gets the arguments that the flags hold.
        data: arguments of `fit` that hold the data.
        rows: how many rows are trained on.
        score: gives the metrics of a trained model by name.
        monitor: what the best epoch is judged by.
        mode: "max" or "min".

    Returns:
        A dict: number of "runs", mean and deviation of each metric, and the metrics "by_seed".
    """
    model, runs = None, []
    devices = strategy(args.strategy)
    for seed in args.seed:
        keras.utils.set_random_seed(seed)
        with devices.scope():
            fresh = make(
                args.preset,
                sequence_length=args.sequence_length,
                padding=args.padding,
                dtype=args.dtype,
                load_weights=not args.new_weights,
            )
        if model is None:
            model = fresh
            model.compile(
                learning_rate=args.learning_rate,
                accumulation_steps=args.accumulation_steps,
                steps_per_execution=args.steps_per_execution,
            )
        else:  # new weights in the old model, which is compiled already
            model.copy_state(fresh)
        output = Path(args.output_dir) / f"seed{seed}"
        timer = TrainingTimer()
        callbacks = [timer, *standard_callbacks(output, monitor, mode)]
        if args.resume:
            callbacks.append(Resume(output / "checkpoints", monitor=monitor, mode=mode))
        history = model.fit(
            **data,
            batch_size=args.batch_size,
            epochs=args.epochs,
            seed=seed,
            callbacks=callbacks,
        ).history
        scores = score(model)
        model.save_to_preset(str(output / "preset"))
        metrics = {
            "seed": seed,
            **scores,
            f"{monitor}_by_epoch": history.get(monitor, []),  # of this run
            "train_rows": rows,
            "train_seconds_by_epoch": timer.seconds,  # the first includes compilation
            "train_rows_per_second": rows / min(timer.seconds, default=math.inf),
        }
        (output / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
        print(json.dumps(metrics), flush=True)
        runs.append((scores, metrics))
    summary = {"runs": len(runs)}
    for name in runs[0][0]:
        values = [scores[name] for scores, _ in runs]
        summary[name] = {"mean": float(np.mean(values)), "deviation": float(np.std(values))}
    print(json.dumps(summary), flush=True)
    return summary | {"by_seed": [metrics for _, metrics in runs]}
