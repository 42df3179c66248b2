"""What the recipes around fine-tuning share: subsets of GLUE, and one model for many runs."""

import argparse
import json
import math
import time
from pathlib import Path

import keras
import numpy as np

import keras_bert
from keras_bert.atomic import write_file
from keras_bert.data import Examples, glue
from keras_bert.metrics import evaluate
from keras_bert.training import Results, results_table

NAMES = {"mrpc": ("different", "same")}  # of labels, as words that a model knows
SETTINGS = "settings.json"
# Flags that a result names itself, or that change none.
FREE = "tasks rows seeds variants blocks k output_dir data_dir part table minutes save".split()
FREE += "trials space rates no_pruning picture".split()


def results_of(args: argparse.Namespace, total: int | None = None) -> Results:
    """The kept results of a recipe's folder."""
    check_settings(args)
    end = time.time() + 60 * args.minutes if args.minutes else None
    return Results(Path(args.output_dir) / f"{args.part}.jsonl", total, end)


def check_settings(args: argparse.Namespace, **more) -> None:
    """Ends the program if the results in the folder come from other settings.

    Args:
        args: the flags; with `table`, results are only shown, and nothing is compared.
        **more: further settings by name.
    """
    if args.table:
        return
    found = {name: value for name, value in vars(args).items() if name not in FREE} | more
    path = Path(args.output_dir) / SETTINGS
    before = json.loads(path.read_text("utf-8")) if path.exists() else found
    changed = [
        f"{name} was {before.get(name)!r}, now {found.get(name)!r}"
        for name in sorted(before.keys() | found.keys())
        if before.get(name) != found.get(name)
    ]
    if changed:
        raise SystemExit(
            f"{args.output_dir} holds results with other settings: {'; '.join(changed)}: "
            "expected the same, or another --output_dir"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, (json.dumps(found, indent=1) + "\n").encode())


def print_table(rows: list[dict], by: list[str], against: dict, metrics=("score", "accuracy")):
    """Prints a table of results; differences are within a task, number of rows and seed."""
    rows = sorted(
        (row for row in rows if "score" in row),
        key=lambda row: [str(row[name]).zfill(6) for name in by[:-1]],
    )
    print(results_table(rows, by, list(metrics), ("seed",), against), flush=True)


class Task:
    """A GLUE task, whose dev set is scored on.

    Args:
        args: the flags.
        name: of the task.
    """

    def __init__(self, args: argparse.Namespace, name: str):
        self.args, self.name, self.glue = args, name, glue.TASKS[name]
        self.train = self._read("train", "train_slice")
        self.dev = self._read("dev", "dev_slice").head(args.dev_limit)
        self.pairs = isinstance(self.train.texts, tuple)
        self.length = args.length or (128 if self.pairs else 64)
        self.label_words = NAMES.get(name, self.glue.label_names)

    def _read(self, *splits: str) -> Examples:
        for split in splits[:-1]:
            try:
                return glue.read(self.name, data_dir=self.args.data_dir, split=split)
            except FileNotFoundError:
                continue
        return glue.read(self.name, data_dir=self.args.data_dir, split=splits[-1])

    def texts(self) -> list[str]:
        """All texts of the train set, without labels."""
        columns = self.train.texts if self.pairs else (self.train.texts,)
        return list(dict.fromkeys(text for column in columns for text in column))

    def subset(self, rows: int | None, seed: int) -> tuple:
        """Some labelled rows, as many of each class as in the whole: (x, ids, their indices)."""
        from sklearn.model_selection import train_test_split

        y = np.asarray(self.train.labels)
        chosen = np.arange(len(y))
        if rows is not None and rows < len(y):
            chosen, _ = train_test_split(chosen, train_size=rows, random_state=seed, stratify=y)
        return take(self.train.texts, chosen), y[chosen], chosen

    def steps(self, rows: int) -> int:
        """The updates of every variant that has so many labelled rows."""
        return max(self.args.least_steps, math.ceil(self.args.epochs * rows / self.args.batch_size))

    def scores(self, logits: np.ndarray) -> dict[str, float]:
        """The metrics of the dev set; "score" is the headline one."""
        found = evaluate(self.glue.metric_names, self.dev.labels, logits)
        return {"score": found[self.glue.headline], **found}


class Tuner:
    """Fine-tunes classifiers of one shape. The model is one, compiled once.

    Args:
        task: to train for.
        preset: to start from, or a function of the seed that makes a classifier.
        **settings: of `compile`.
    """

    def __init__(self, task: Task, preset, **settings):
        self.task, self.preset, self.fresh = task, preset, {}
        self.settings, self.model = settings, None

    def start(self, seed: int) -> keras.Model:
        """A classifier with the preset's weights and a new head, made once for a seed."""
        if seed not in self.fresh:
            self.fresh[seed] = self._make(seed)
        return self.fresh[seed]

    def _make(self, seed: int) -> keras.Model:
        keras.utils.set_random_seed(seed)
        if callable(self.preset):
            return self.preset(seed)
        return classifier(self.task, self.preset)

    def fit(self, x, y, steps: int, seed: int, order: int | None = None) -> keras.Model:
        """Trains from the seed's start; gives the model, which the next call changes."""
        fresh = self.start(seed)
        if self.model is None:
            self.model = self._make(seed)
            self.model.compile(
                learning_rate=self.task.args.learning_rate, packing=False, **self.settings
            )
        self.model.copy_state(fresh)
        size = self.task.args.batch_size
        order = seed if order is None else order
        self.model.fit(x, y, batch_size=size, steps=steps, seed=order, verbose=0)
        return self.model

    def logits(self) -> np.ndarray:
        """Of the dev set."""
        return self.model.predict(self.task.dev.texts, 128, verbose=0)


def classifier(task: Task, preset, **settings) -> keras.Model:
    """A classifier for a task, with a new head."""
    return keras_bert.BertClassifier.from_preset(
        preset,
        labels=list(task.glue.label_names),
        sequence_length=task.length,
        padding="full",
        dtype=task.args.dtype,
        skip_mismatch=True,
        **settings,
    )


def take(texts, rows):
    """Some of the texts, or of the pairs."""
    if isinstance(texts, tuple):
        return tuple(take(column, rows) for column in texts)
    return [texts[row] for row in rows]


def joined(first, second):
    """The texts, or pairs, of both, one after the other."""
    if isinstance(first, tuple):
        return tuple(joined(a, b) for a, b in zip(first, second, strict=True))
    return [*first, *second]
