"""Fine-tunes a BERT on one GLUE task and scores it on the dev set.

Source: Devlin et al. 2019, section 4.1: batch 32, 3 epochs, learning rate 2e-5 to 5e-5.
Data: the GLUE archive's TSV files, or TensorFlow Datasets when no --data_dir is given.
Results and times: recipes/README.md.
Run: python recipes/glue.py --task sst2 --preset DIR --data_dir DIR --seed 0
"""

import argparse
import json
import math
from functools import partial
from pathlib import Path

import keras
import numpy as np

import keras_bert
from keras_bert import training
from keras_bert.data import glue
from keras_bert.metrics import evaluate
from keras_bert.training.callbacks import TrainingTimer, standard_callbacks
from keras_bert.training.strategies import KINDS


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    # STS-B is a regression, which the classifier does not do.
    tasks = [name for name, task in glue.TASKS.items() if not task.regression]
    parser.add_argument("--task", required=True, choices=tasks)
    parser.add_argument("--preset", required=True, help="folder, name or address of a BERT")
    parser.add_argument("--new_weights", action="store_true", help="only the preset's shape")
    parser.add_argument("--data_dir", help="GLUE folder, or the task's; TFDS if left out")
    parser.add_argument("--output_dir", default="runs/glue")
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="one run a seed")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--learning_rate", type=float, default=2e-5)
    parser.add_argument("--sequence_length", type=int, default=128)
    parser.add_argument("--padding", choices=("bucket", "full"), default="bucket")
    parser.add_argument("--dtype", default="float32", help='such as "mixed_bfloat16" on a GPU')
    parser.add_argument("--steps_per_execution", type=int, default=1)
    parser.add_argument("--accumulation_steps", type=int, default=1)
    parser.add_argument("--strategy", choices=KINDS, default="auto", help="devices to train on")
    parser.add_argument("--resume", action="store_true", help="save, and go on where it stopped")
    parser.add_argument("--limit", type=int, help="train on the first so many rows only")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    devices = training.strategy(args.strategy)  # first: several workers have to be
    task = glue.TASKS[args.task]
    read = partial(glue.read, data_dir=args.data_dir) if args.data_dir else glue.read_tfds
    train, dev = read(args.task, split="train").head(args.limit), read(args.task, split="dev")
    model, runs = None, []
    for seed in args.seed:
        keras.utils.set_random_seed(seed)
        with devices.scope():
            fresh = keras_bert.BertClassifier.from_preset(
                args.preset,
                labels=list(task.label_names),
                sequence_length=args.sequence_length,
                padding=args.padding,
                dtype=args.dtype,
                skip_mismatch=True,  # a head for other labels is replaced
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
        output = Path(args.output_dir) / f"{args.task}-seed{seed}"
        timer = TrainingTimer()
        callbacks = [timer, *standard_callbacks(output, monitor="val_accuracy")]
        if args.resume:
            callbacks.append(training.Resume(output / "checkpoints", monitor="val_accuracy"))
        history = model.fit(
            train.texts,
            train.labels,
            batch_size=args.batch_size,
            epochs=args.epochs,
            validation_data=(dev.texts, dev.labels),
            seed=seed,
            callbacks=callbacks,
        )
        scores = evaluate(task.metric_names, dev.labels, model.predict(dev.texts, args.batch_size))
        model.save_to_preset(str(output / "preset"))
        metrics = {
            "task": args.task,
            "seed": seed,
            **scores,
            "val_accuracy_by_epoch": history.history.get("val_accuracy", []),  # of this run
            "train_rows": len(train.labels),
            "train_seconds_by_epoch": timer.seconds,  # the first includes compilation
            "train_rows_per_second": len(train.labels) / min(timer.seconds, default=math.inf),
        }
        (output / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
        print(json.dumps(metrics), flush=True)
        runs.append(metrics)
    summary = {"task": args.task, "runs": len(runs)}
    for name in task.metric_names:
        values = [run[name] for run in runs]
        summary[name] = {"mean": float(np.mean(values)), "deviation": float(np.std(values))}
    print(json.dumps(summary), flush=True)
    return summary | {"by_seed": runs}


if __name__ == "__main__":
    main()
