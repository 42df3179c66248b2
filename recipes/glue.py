"""Fine-tunes a BERT on a GLUE task, or on all nine, and scores it on the dev sets.

Source: Devlin et al. 2019, section 4.1: batch 32, 3 epochs, learning rate 2e-5 to 5e-5.
Data: the GLUE archive's TSV files, or TensorFlow Datasets when no --data_dir is given.
Results and times: recipes/README.md.
Run: python recipes/glue.py --task sst2 --preset DIR --data_dir DIR --seed 0
"""

import argparse
import json
from functools import partial

from recipe_flags import GLUE, add_bilstm_flag, flags, need


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = flags(__doc__)
    parser.add_argument("--task", required=True, choices=[*GLUE, "all"])
    parser.add_argument("--data_dir", help="GLUE folder, or the task's; TFDS if left out")
    names = "its name; of several the first that is there, such as train train_slice"
    parser.add_argument("--train_split", nargs="+", default=["train"], help=names)
    parser.add_argument("--dev_split", nargs="+", default=["dev"], help=names)
    add_bilstm_flag(parser)
    parser.add_argument("--report", action="store_true", help="pictures and the worst mistakes")
    args = parser.parse_args(argv)
    if args.report:
        need(parser, "matplotlib", "plots", "--report")
    return args


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported

import numpy as np

import keras_bert
from keras_bert.data import glue
from keras_bert.metrics import evaluate
from keras_bert.training import strategy

from bilstm import BiLSTMClassifier
from experiment import run_seeds


def read(args: argparse.Namespace, task: str, splits: list[str]):
    """Reads the first split that is there; gives (examples, its name)."""
    reader = partial(glue.read, data_dir=args.data_dir) if args.data_dir else glue.read_tfds
    for split in splits[:-1]:
        try:
            return reader(task, split=split), split
        except FileNotFoundError:
            continue
    return reader(task, split=splits[-1]), splits[-1]


def run(args: argparse.Namespace, devices, name: str) -> dict:
    task = glue.TASKS[name]
    train, train_split = read(args, name, args.train_split)
    dev, dev_split = read(args, name, args.dev_split)
    train = train.head(args.limit)
    kind = BiLSTMClassifier if args.bilstm else keras_bert.BertClassifier
    make = partial(
        kind.from_preset,
        labels=list(task.label_names) or None,
        problem="regression" if task.regression else "single_label",
        skip_mismatch=True,  # a head for other labels is replaced
    )

    def score(model, output):
        outputs = model.predict(dev.texts, args.batch_size)
        scores = evaluate(task.metric_names, dev.labels, outputs)
        return scores | {"train_split": train_split, "dev_split": dev_split}

    def report(model, output):
        from keras_bert.explain import errors

        errors(model, dev.texts, dev.labels, batch_size=args.batch_size).write(output / "report")

    data = {"x": train.texts, "y": train.labels, "validation_data": (dev.texts, dev.labels)}
    monitor = "val_pearson" if task.regression else "val_accuracy"
    drawn = report if args.report else None
    return run_seeds(args, devices, make, data, score, monitor, name=name, report=drawn)


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    devices = strategy(args.strategy)
    if args.task != "all":
        return run(args, devices, args.task)
    found = {name: run(args, devices, name) for name in glue.TASKS}
    row = {name: found[name][task.headline]["mean"] for name, task in glue.TASKS.items()}
    row["mean"] = float(np.mean(list(row.values())))
    print(json.dumps(row), flush=True)
    return row | {"by_task": found}


if __name__ == "__main__":
    main()
