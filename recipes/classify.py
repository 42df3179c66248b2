"""Fine-tunes a BERT on a table of your own: classes, several labels a text, or numbers.

Source: Devlin et al. 2019, section 4.1, as for GLUE.
Data: CSV, TSV or JSON lines with named columns; see `keras_bert.data.read_table`.
Run: python recipes/classify.py --train train.csv --dev dev.csv --text_column text \
    --label_column label --preset DIR --report
"""

import argparse
from functools import partial

from recipe_flags import flags, need

PROBLEMS = ("single_label", "multi_label", "regression")


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = flags(__doc__)
    parser.add_argument("--train", required=True, help="file to train on")
    parser.add_argument("--dev", required=True, help="file to score on, and to tune thresholds on")
    parser.add_argument("--text_column", nargs="+", required=True, help="one, or two for pairs")
    parser.add_argument("--label_column", required=True)
    parser.add_argument("--label_separator", default=",", help="between several labels of a text")
    parser.add_argument("--problem", choices=PROBLEMS, default="single_label")
    parser.add_argument("--report", action="store_true", help="pictures and the worst mistakes")
    args = parser.parse_args(argv)
    if args.report:
        need(parser, "matplotlib", "plots", "--report")
    return args


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported

import keras_bert
from keras_bert.data import Examples, read_table
from keras_bert.metrics import evaluate
from keras_bert.training import strategy

from experiment import run_seeds

KINDS = {"single_label": "class", "multi_label": "several", "regression": "number"}
METRICS = {
    "single_label": ["accuracy", "macro_f1"],
    "multi_label": ["micro_f1", "macro_f1"],
    "regression": ["pearson", "spearman"],
}


def read(args: argparse.Namespace, path: str) -> Examples:
    kind, separator = KINDS[args.problem], args.label_separator
    return read_table(
        path, args.text_column, args.label_column, label_kind=kind, label_separator=separator
    )


def find_labels(args: argparse.Namespace, train: Examples) -> list[str] | None:
    """All labels of the training file, sorted; None for numbers."""
    if args.problem == "regression":
        return None
    several = args.problem == "multi_label"
    return sorted({name for row in train.labels for name in (row if several else [row])})


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    devices = strategy(args.strategy)
    train, dev = read(args, args.train), read(args, args.dev)
    labels, train = find_labels(args, train), train.head(args.limit)
    make = partial(
        keras_bert.BertClassifier.from_preset,
        labels=labels,
        problem=args.problem,
        skip_mismatch=True,  # a head for other labels is replaced
    )

    def score(model, output):
        right = model.encode_labels(dev.labels)
        if args.problem == "multi_label":
            thresholds = model.tune_thresholds(dev.texts, dev.labels)
            return evaluate(METRICS[args.problem], right, model.classify(dev.texts)[1], thresholds)
        outputs = model.predict(dev.texts, args.batch_size)
        return evaluate(METRICS[args.problem], right.ravel(), outputs)

    def report(model, output):
        from keras_bert.explain import errors

        errors(model, dev.texts, dev.labels, batch_size=args.batch_size).write(output / "report")

    data = {"x": train.texts, "y": train.labels, "validation_data": (dev.texts, dev.labels)}
    monitor = "val_pearson" if args.problem == "regression" else "val_accuracy"
    drawn = report if args.report else None
    return run_seeds(args, devices, make, data, score, monitor, report=drawn)


if __name__ == "__main__":
    main()
