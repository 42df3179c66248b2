"""Trains a BERT to find names, or to tag words in another way, and scores it by entity.

Source: Devlin et al. 2019, section 5.3: the first piece of each word is classified; batch 32 and
learning rates as for the other tasks. The paper's model is cased and sees the whole document; here
a row is one sentence.
Data: columns of words and tags. --data_dir takes a folder with the files of CoNLL-2003
(eng.train, eng.testa, eng.testb), WNUT 2017 or MSRA; other files go in by --train, --dev, --test.
Results and times: recipes/README.md.
Run: python recipes/ner.py --preset DIR --data_dir CONLL2003 --scheme iob1 --seed 0
"""

import argparse
import json
import math
from pathlib import Path

import keras
import numpy as np

import keras_bert
from keras_bert import training
from keras_bert.data import TaggedSentences, read_tagged, tag_names
from keras_bert.metrics import entity_scores
from keras_bert.training.callbacks import TrainingTimer, standard_callbacks
from keras_bert.training.strategies import KINDS

# Where the train, dev and test rows lie, by the name that a file begins with.
FILES = {
    "train": ("eng.train", "wnut17train", "train"),
    "dev": ("eng.testa", "emerging.dev", "dev", "valid"),
    "test": ("eng.testb", "emerging.test", "test"),
}


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--preset", required=True, help="folder, name or address of a BERT")
    parser.add_argument("--new_weights", action="store_true", help="only the preset's shape")
    add_data_flags(parser)
    parser.add_argument("--crf", action="store_true", help="a chain over the labels")
    parser.add_argument("--output_dir", default="runs/ner")
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="one run a seed")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--sequence_length", type=int, default=128)
    parser.add_argument("--padding", choices=("bucket", "full"), default="bucket")
    parser.add_argument("--dtype", default="float32", help='such as "mixed_bfloat16" on a GPU')
    parser.add_argument("--strategy", choices=KINDS, default="auto", help="devices to train on")
    parser.add_argument("--resume", action="store_true", help="save, and go on where it stopped")
    parser.add_argument("--limit", type=int, help="train on the first so many sentences only")
    return parser.parse_args(argv)


def add_data_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data_dir", help="folder with the three files")
    for part in FILES:
        parser.add_argument(f"--{part}", help="a file, in place of the folder's")
    parser.add_argument("--word_column", type=int, default=0)
    parser.add_argument("--tag_column", type=int, default=-1)
    parser.add_argument("--scheme", choices=("iob2", "iob1", "none"), default="iob2")


def read(args: argparse.Namespace) -> dict[str, TaggedSentences]:
    """The parts that there are; without a test file, no test."""
    found = {}
    for part, names in FILES.items():
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


def scores_of(right: list, found: list, scheme: str) -> dict[str, float]:
    """Accuracy over words; with a scheme precision, recall and F1 of entities, as conlleval."""
    pairs = [pair for a, b in zip(right, found, strict=True) for pair in zip(a, b, strict=True)]
    scores = {"accuracy": float(np.mean([a == b for a, b in pairs]))}
    if scheme != "none":
        scores |= entity_scores(right, found, mode="conlleval")
    return {key: value for key, value in scores.items() if not isinstance(value, dict)}


def summary_of(runs: list[dict], parts: list[str], scheme: str) -> dict:
    """Mean and deviation over the runs of what counts: F1, without a scheme accuracy."""
    summary = {"runs": len(runs)}
    for part in parts:
        values = [run[part]["accuracy" if scheme == "none" else "f1"] for run in runs]
        summary[part] = {"mean": float(np.mean(values)), "deviation": float(np.std(values))}
    return summary


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    devices = training.strategy(args.strategy)  # first: several workers have to be
    data = read(args)
    labels = tag_names(*(part.tags for part in data.values()))
    train, dev = data.pop("train").head(args.limit), data["dev"]
    model, runs = None, []
    for seed in args.seed:
        keras.utils.set_random_seed(seed)
        with devices.scope():
            fresh = keras_bert.BertTokenClassifier.from_preset(
                args.preset,
                labels=labels,
                sequence_length=args.sequence_length,
                padding=args.padding,
                crf=args.crf,
                dtype=args.dtype,
                skip_mismatch=True,  # a head for other labels is replaced
                load_weights=not args.new_weights,
            )
        if model is None:
            model = fresh
            model.compile(learning_rate=args.learning_rate)
        else:  # new weights in the old model, which is compiled already
            model.copy_state(fresh)
        output = Path(args.output_dir) / f"seed{seed}"
        timer = TrainingTimer()
        callbacks = [timer, *standard_callbacks(output, monitor="val_accuracy")]
        if args.resume:
            callbacks.append(training.Resume(output / "checkpoints", monitor="val_accuracy"))
        history = model.fit(
            train,
            batch_size=args.batch_size,
            epochs=args.epochs,
            validation_data=dev,
            seed=seed,
            callbacks=callbacks,
        )
        scores = {
            part: scores_of(rows.tags, model.predict_tags(rows.words, args.batch_size), args.scheme)
            for part, rows in data.items()
        }
        model.save_to_preset(str(output / "preset"))
        metrics = {
            "seed": seed,
            **scores,
            "val_accuracy_by_epoch": history.history.get("val_accuracy", []),  # of this run
            "train_sentences": len(train.words),
            "train_seconds_by_epoch": timer.seconds,  # the first includes compilation
            "train_sentences_per_second": len(train.words) / min(timer.seconds, default=math.inf),
        }
        (output / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
        print(json.dumps(metrics), flush=True)
        runs.append(metrics)
    summary = summary_of(runs, list(data), args.scheme)
    print(json.dumps(summary), flush=True)
    return summary | {"by_seed": runs}


if __name__ == "__main__":
    main()
