"""Measures what the manual's page on one's own data says, on SST-2 with the shipped preset.

`labels`: how many of 44 wrong labels, planted among the 872 of the dev set, are found by
`keras_bert.explain.errors`. `rare`: 2,000 texts of one class and 200 of the other, with and without
class weights and a tuned threshold. Prints one JSON line per run, and draws a picture.
Run: python tools/own_data_figures.py labels --glue_dir GLUE --picture doubtful.png
     python tools/own_data_figures.py rare --glue_dir GLUE --picture threshold.png
"""

import argparse
import json
import time
from pathlib import Path

PLANTED = 44  # 5% of the dev set
COMMON, RARE = 2000, 200


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("work", choices=("labels", "rare"))
    parser.add_argument("--glue_dir", type=Path, required=True, help="holds SST-2/train.tsv.gz")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--picture", type=Path, help="a PNG file to write")
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before the imports that take seconds

import keras_bert  # first: it asks TensorFlow for the fastest kernels of a CPU

# isort: split
import keras
import numpy as np
from matplotlib.figure import Figure
from sklearn.metrics import precision_recall_fscore_support

from keras_bert import explain, metrics
from keras_bert.data import hold_out, read_table


def read(folder: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    """The texts and labels, 0 and 1, of a split of SST-2."""
    (path,) = (folder / "SST-2").glob(f"{split}.tsv*")
    table = read_table(path, "sentence", "label", label_names=["0", "1"])
    return np.array(table.texts, object), np.array(table.labels)


def trained(texts, labels, epochs: int, seed: int, class_weight=None):
    """The shipped preset, fine-tuned."""
    keras.utils.set_random_seed(seed)
    model = keras_bert.BertClassifier.from_preset(
        "bert_mini_en_public_domain", labels=["negative", "positive"], sequence_length=64
    )
    model.compile(learning_rate=2e-4, packing=True)
    settings = {"batch_size": 32, "epochs": epochs, "class_weight": class_weight, "seed": seed}
    model.fit(texts.tolist(), labels.tolist(), verbose=0, **settings)
    return model


def positive(model, texts) -> np.ndarray:
    """Probabilities of the class "positive"."""
    logits = model.predict(texts.tolist(), verbose=0)
    return np.asarray(keras.ops.softmax(logits))[:, 1]


def find_labels(train, dev, seed: int) -> dict:
    """Trains on 6,000 rows, and looks for wrong labels among those of the dev set."""
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(train[0]), 6000, replace=False)
    model = trained(train[0][rows], train[1][rows], 2, seed)
    wrong = rng.choice(len(dev[1]), PLANTED, replace=False)
    labels = dev[1].copy()
    labels[wrong] = 1 - labels[wrong]
    report = explain.errors(model, dev[0].tolist(), labels.tolist(), explained=0)
    hits = np.isin(report.doubtful, wrong)
    examples = [(dev[0][i], int(labels[i]), bool(i in wrong)) for i in report.doubtful[:8].tolist()]
    return {
        "accuracy": float(np.mean((positive(model, dev[0]) > 0.5) == dev[1])),
        "doubtful": len(hits),
        "found": int(hits.sum()),
        "found_in_first_44": int(hits[:PLANTED].sum()),
        "found_by_place": np.cumsum(hits).tolist(),
        "first": examples,
    }


def rare_class(train, dev, seed: int, class_weight) -> dict:
    """Trains on 11 rows of which one is positive; the dev set is weighted to the same share."""
    rng = np.random.default_rng(seed)
    wanted = ((0, COMMON), (1, RARE))
    rows = [rng.choice(np.flatnonzero(train[1] == c), n, replace=False) for c, n in wanted]
    texts, labels = (column[np.concatenate(rows)] for column in train)
    groups = [" ".join(text.split()).casefold() for text in texts]
    kept, held = hold_out(labels.tolist(), groups, 0.2, seed)
    model = trained(texts[kept], labels[kept], 3, seed, class_weight)
    share = RARE / COMMON * np.sum(dev[1] == 0) / np.sum(dev[1] == 1)
    weights = np.where(dev[1] == 1, share, 1.0)
    (tuned,) = metrics.tune_thresholds(labels[held, None], positive(model, texts[held])[:, None])
    chance = positive(model, dev[0])

    def scores(threshold: float) -> dict:
        found = (chance >= threshold).astype(int)
        p, r, f, _ = precision_recall_fscore_support(
            dev[1], found, labels=[0, 1], sample_weight=weights, zero_division=0
        )
        accuracy = np.average(found == dev[1], weights=weights)
        values = {"accuracy": accuracy, "macro_f1": f.mean(), "precision": p[1], "recall": r[1]}
        return {name: round(float(value), 4) for name, value in values.items()}

    return {
        "class_weight": class_weight,
        "threshold": float(tuned),
        "at_0.5": scores(0.5),
        "at_threshold": scores(tuned),
        "by_threshold": [scores(t / 100)["macro_f1"] for t in range(1, 100)],
    }


def draw_labels(runs: list[dict], path: Path) -> None:
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.subplots()
    for run in runs:
        found = run["found_by_place"]
        axes.plot(range(1, len(found) + 1), found, label=f"seed {run['seed']}")
    longest = max(run["doubtful"] for run in runs)
    axes.plot([0, longest], [0, longest * PLANTED / 872], "k:", label="random order")
    axes.set(xlabel="labels looked at", ylabel=f"of {PLANTED} wrong labels found")
    axes.legend()
    figure.savefig(path, dpi=110)


def draw_rare(runs: list[dict], path: Path) -> None:
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.subplots()
    thresholds = np.arange(1, 100) / 100
    for weight, title in ((None, "without class weights"), ("balanced", '"balanced"')):
        curves = np.array([r["by_threshold"] for r in runs if r["class_weight"] == weight])
        (line,) = axes.plot(thresholds, curves.mean(axis=0), label=title)
        band = curves.min(axis=0), curves.max(axis=0)
        axes.fill_between(thresholds, *band, color=line.get_color(), alpha=0.15)
    axes.axvline(0.5, color="k", linestyle=":")
    axes.set(xlabel="threshold of the rare class", ylabel="macro F1")
    axes.legend()
    figure.savefig(path, dpi=110)


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    train, dev = read(args.glue_dir, "train"), read(args.glue_dir, "dev")
    runs = []
    for seed in args.seeds:
        for weight in (None, "balanced") if args.work == "rare" else (None,):
            begin = time.process_time()
            if args.work == "rare":
                run = rare_class(train, dev, seed, weight)
            else:
                run = find_labels(train, dev, seed)
            runs.append({"seed": seed} | run | {"cpu_s": round(time.process_time() - begin)})
            print(json.dumps(runs[-1]), flush=True)
    if args.picture:
        (draw_rare if args.work == "rare" else draw_labels)(runs, args.picture)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
