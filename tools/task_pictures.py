"""Measures and draws the section "On real data" of the manual's pages of tasks.

Fine-tunes the shipped preset on a part of a public data set, scores it, and draws pictures.
Settings stand in the function of each task. Everything measured goes to a JSON file in --results,
from which --draw_only draws again; the printed line holds the scores. `pretraining` trains nothing:
it draws the held-out curves of runs of recipes/ablations.py.
Run: python tools/task_pictures.py --task classification --data DIR --out docs/tasks/images
"""

import argparse
import gzip
import json
import platform
import sys
import textwrap
import time
from pathlib import Path

PRESET = "bert_mini_en_public_domain"
TASKS = (
    "classification",
    "token_classification",
    "question_answering",
    "sentence_embeddings",
    "relations",
    "pretraining",
    "regression",
    "multi_label",
    "multiple_choice",
    "features",
    "masked_lm",
    "zero_shot",
)
FOLDERS = (
    "holds glue/SST-2, glue/STS-B, glue/MNLI, ner/conll2003, relation/semeval2010_task8, "
    "squad/dev-v1.1.json.gz with two files of predictions, "
    "swag/hellaswag_val_3000_swag_columns.csv.gz and "
    "text/en/public_domain_heldout.txt.gz, or those that the tasks need"
)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--task", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--data", type=Path, help=FOLDERS)
    parser.add_argument("--runs", type=Path, help="output folder of ablations.py, for pretraining")
    parser.add_argument("--out", type=Path, default=Path("docs/tasks/images"))
    parser.add_argument("--results", type=Path, default=Path("runs/task_pictures"))
    parser.add_argument("--limit", type=int, help="train on so many rows at most, for a quick look")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draw_only", action="store_true", help="from the files in --results")
    args = parser.parse_args(argv)
    if not args.draw_only:
        if args.data is None and set(args.task) != {"pretraining"}:
            parser.error("expected --data")
        if args.runs is None and "pretraining" in args.task:
            parser.error("expected --runs, or tasks other than pretraining")
    return args


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before the imports that take seconds

import keras_bert  # first: it asks TensorFlow for the fastest kernels of a CPU

# isort: split
import keras
import matplotlib
import numpy as np
import tensorflow as tf
from PIL import Image
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from keras_bert import data, explain, metrics
from keras_bert.atomic import write_file
from keras_bert.data import glue
from keras_bert.data.choices import ChoiceExamples
from keras_bert.data.relations import RELATIONS
from keras_bert.explain.pages import BLUE, ORANGE, figure, write_png

sys.path.insert(0, str(Path(__file__).parents[1] / "recipes"))
import heldout_figure

GREEN, PURPLE, GREY = "#009e73", "#cc79a7", "#767676"  # of the palette that BLUE and ORANGE are of
WIDTH = 4.6  # inches: the text stays legible on a phone, where a picture is 350 pixels wide
STYLE = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.prop_cycle": matplotlib.cycler(color=[BLUE, ORANGE, GREEN, PURPLE, "#000000", "#56b4e9"]),
    "legend.frameon": False,
    "legend.fontsize": 9,
}
NAMES = ("PER", "LOC", "ORG", "MISC")  # of CoNLL-2003
SENTENCE = "Last week Anna Keller of Siemens flew from Munich to the Boston Marathon."


def interval(right: int, count: int) -> list[float]:
    """Wilson's 95% confidence interval of a fraction."""
    found = binomtest(right, count).proportion_ci(method="wilson")
    return [found.low, found.high]


def accuracy(right) -> dict:
    """A fraction of right answers, with its interval."""
    right = np.asarray(right)
    count = int(right.sum())
    return {
        "accuracy": count / len(right),
        "interval": interval(count, len(right)),
        "rows": len(right),
    }


# === Training and scoring: each gives {"scores": to be printed, and what the pictures need} ===


def classification(args) -> dict:
    """SST-2 with more and more labelled rows, and the calibration of the last model."""
    train, dev = (glue.read("sst2", data_dir=args.data / "glue", split=s) for s in ("train", "dev"))
    points, model = [], None
    for rows in [n for n in (500, 1000, 2000, 4000, 8000) if n <= (args.limit or 8000)]:
        keras.utils.set_random_seed(args.seed)
        fresh = keras_bert.BertClassifier.from_preset(
            PRESET, labels=["negative", "positive"], sequence_length=64
        )
        if model is None:
            model = fresh
            model.compile(learning_rate=2e-4, packing=True)
        else:
            model.copy_state(fresh)
        part = train.head(rows)
        epochs = max(2, round(200 * 32 / rows))  # at least 200 steps
        model.fit(part.texts, part.labels, batch_size=32, epochs=epochs, seed=args.seed, verbose=0)
        found = model.predict(dev.texts, verbose=0).argmax(axis=1)
        points.append({"train_rows": rows} | accuracy(found == np.asarray(dev.labels)))
    report = explain.errors(model, dev.texts, dev.labels, explained=0)
    curves = {}
    for name, one in (("before", report.calibration), ("after", report.calibrated)):
        there = one.count > 0
        curves[name] = {
            "confidence": one.confidence[there].tolist(),
            "accuracy": one.accuracy[there].tolist(),
            "expected_error": float(one.expected_error),
        }
    scores = {
        "by_rows": {p["train_rows"]: round(p["accuracy"], 4) for p in points},
        "confusion": report.confusion().tolist(),
        "expected_error": [round(curve["expected_error"], 4) for curve in curves.values()],
        "temperature": round(report.temperature, 3),
    }
    return {"scores": scores, "points": points, "calibration": curves}


def token_classification(args) -> dict:
    """CoNLL-2003: F1 by type, and the types of words by right and predicted type."""
    folder = args.data / "ner" / "conll2003"
    train = data.read_tagged(folder / "eng.train.gz", scheme="iob1").head(args.limit or 6000)
    test = data.read_tagged(folder / "eng.testb.gz", scheme="iob1")
    keras.utils.set_random_seed(args.seed)
    labels = ["O", *(f"{place}-{name}" for name in NAMES for place in "BI")]
    model = keras_bert.BertTokenClassifier.from_preset(PRESET, labels=labels, sequence_length=128)
    model.compile(learning_rate=2e-4)
    model.fit(train, batch_size=32, epochs=3, seed=args.seed, verbose=0)
    found = model.predict_tags(test.words)
    by_entity = metrics.entity_scores(test.tags, found, mode="conlleval")
    kinds = [*NAMES, "O"]
    counts = np.zeros([5, 5], int)
    for right, given in zip(test.tags, found, strict=True):
        for a, b in zip(right, given, strict=True):
            counts[kinds.index(a.split("-")[-1]), kinds.index(b.split("-")[-1])] += 1
    entities = [[e.text, e.label, e.start, e.end] for e in model.tag(SENTENCE)]
    scores = {name: round(by_entity[name], 4) for name in ("precision", "recall", "f1")}
    scores |= {"types": by_entity["types"], "sentence": SENTENCE, "entities": entities}
    return {"scores": scores, "confusion": counts.tolist()}


def question_answering(args) -> dict:
    """Articles of SQuAD 1.1's dev set: a third to test on, the rest to train on."""
    examples = data.read_squad(args.data / "squad" / "dev-v1.1.json.gz")
    examples = [e for e in examples if len(e.context) <= 700]
    train, test = data.hold_out_articles(examples, 0.33)
    train, test = train[: args.limit or 2000], test[:1000]
    keras.utils.set_random_seed(args.seed)
    model = keras_bert.BertQuestionAnswerer.from_preset(PRESET, sequence_length=192)
    model.compile(learning_rate=3e-4)
    model.fit(train, batch_size=32, epochs=2, seed=args.seed, verbose=0)
    found = model.answer_examples(test, top_k=20)
    rows = []
    for e in test:
        rights = [answer.text for answer in e.answers]
        grades = [
            metrics.squad_v1_scores({"": rights}, {"": candidate.text})
            for candidate in found[e.id].candidates
        ]
        f1 = [grade["f1"] for grade in grades]
        length = min(len(text.split()) for text in rights)
        exact = [grade["exact_match"] for grade in grades]
        rows.append(
            [length, exact[0], np.maximum.accumulate(f1 + f1[-1:] * (20 - len(f1))).tolist()]
        )
    return {
        "rows": rows,
        "published": published(args, test),
        "scores": {
            "exact_match": round(float(np.mean([row[1] for row in rows])), 2),
            "f1": round(float(np.mean([row[2][0] for row in rows])), 2),
            "f1_of_20": round(float(np.mean([row[2][-1] for row in rows])), 2),
            "train": len(train),
            "test": len(test),
        },
    }


def published(args, test) -> dict[str, list[float]]:
    """F1 of the answers of others to the same questions; 0 where there is none."""
    found = {}
    for name, part in (("logistic regression", "logistic-regression"), ("BERT", "bert-ensemble")):
        path = args.data / "squad" / f"predictions-v1.1-{part}.json.gz"
        texts = data.read_predictions(path)
        found[name] = [
            metrics.squad_v1_scores({"": [a.text for a in e.answers]}, {"": texts.get(e.id, "")})[
                "f1"
            ]
            for e in test
        ]
    return found


def sentence_embeddings(args) -> dict:
    """STS-B: cosines of pairs before and after training."""
    train, dev = (glue.read("stsb", data_dir=args.data / "glue", split=s) for s in ("train", "dev"))
    train = train.head(args.limit or len(train.labels))
    keras.utils.set_random_seed(args.seed)
    model = keras_bert.BertTextEmbedder.from_preset(
        PRESET, pooling="mean", loss="cosine", sequence_length=64
    )
    before = model.similarity(*dev.texts)
    model.compile(learning_rate=1e-4)
    targets = np.array(train.labels) / 5
    model.fit(train.texts, targets, batch_size=16, epochs=2, seed=args.seed, verbose=0)
    after = model.similarity(*dev.texts)
    score = {
        name: {
            kind: round(value, 4)
            for kind, value in metrics.evaluate(["pearson", "spearman"], dev.labels, values).items()
        }
        for name, values in (("before", before), ("after", after))
    }
    parts = {
        name: np.asarray(v, float).round(4).tolist()
        for name, v in (("before", before), ("after", after))
    }
    return {"scores": score, "annotated": list(map(float, dev.labels)), **parts}


def relations(args) -> dict:
    """SemEval-2010 Task 8: what becomes of the test rows of each relation."""
    folder = args.data / "relation" / "semeval2010_task8"
    train = data.read_relations(folder / "TRAIN_FILE.TXT.gz").head(args.limit or 8000)
    test = data.read_relations(folder / "TEST_FILE_FULL.TXT.gz")
    keras.utils.set_random_seed(args.seed)
    model = keras_bert.BertRelationClassifier.from_preset(
        PRESET, labels=list(RELATIONS), sequence_length=96
    )
    model.compile(learning_rate=2e-4)
    model.fit(train, batch_size=32, epochs=3, seed=args.seed, verbose=0)
    found = metrics.relation_scores(test.labels, model.relate(test)[0])
    rows, other = {}, found.names.index("Other")
    for i, name in enumerate(found.names):
        if i != other:
            right, turned = int(found.confusion[i, i]), int(found.wrong_direction[i])
            none, count = int(found.confusion[i, other]), int(found.confusion[i].sum()) + turned
            rows[name] = {
                "counts": [right, turned, none, count - right - turned - none],
                "f1": float(found.by_relation[name]["f1"]),
            }
    scores = {"macro_f1": round(float(found.f1), 2), "accuracy": round(float(found.accuracy), 4)}
    return {
        "scores": scores | {name: round(row["f1"], 2) for name, row in rows.items()},
        "rows": rows,
    }


def pretraining(args) -> dict:
    """The held-out curves of runs with other shares of [MASK], same and random tokens."""
    paths = sorted(args.runs.glob("*-seed0/result.json"))
    results = [json.loads(path.read_text()) for path in paths]
    kept = [
        {name: one[name] for name in ("variant", "seed", "steps", "curve")}
        for one in results
        if one["variant"] in MIXES and one.get("curve")
    ]
    last = {one["variant"]: round(one["curve"][-1]["mlm_accuracy"], 4) for one in kept}
    return {"scores": last, "results": kept}


def regression(args) -> dict:
    """STS-B as a number for each pair."""
    train, dev = (glue.read("stsb", data_dir=args.data / "glue", split=s) for s in ("train", "dev"))
    train = train.head(args.limit or len(train.labels))
    keras.utils.set_random_seed(args.seed)
    model = keras_bert.BertClassifier.from_preset(PRESET, problem="regression", sequence_length=96)
    model.compile(learning_rate=2e-4)
    model.fit(train.texts, train.labels, batch_size=32, epochs=2, seed=args.seed, verbose=0)
    found = model.predict(dev.texts, verbose=0)[:, 0]
    names = ["pearson", "spearman", "mean_squared_error"]
    scores = {name: round(v, 4) for name, v in metrics.evaluate(names, dev.labels, found).items()}
    scores["variance"] = round(float(np.var(dev.labels)), 4)
    return {
        "scores": scores,
        "annotated": list(map(float, dev.labels)),
        "predicted": np.asarray(found, float).round(4).tolist(),
    }


def multi_label(args) -> dict:
    """CoNLL-2003: which types of names a sentence has."""
    folder = args.data / "ner" / "conll2003"

    def read(name, count=None):
        part = data.read_tagged(folder / name, scheme="iob1").head(count)
        topics = [
            [name for name in NAMES if any(tag.endswith(f"-{name}") for tag in tags)]
            for tags in part.tags
        ]
        return [" ".join(words) for words in part.words], topics

    train, dev = read("eng.train.gz", args.limit or 2000), read("eng.testa.gz", 1000)
    test = read("eng.testb.gz", 2000)
    keras.utils.set_random_seed(args.seed)
    model = keras_bert.BertClassifier.from_preset(
        PRESET, labels=list(NAMES), problem="multi_label", sequence_length=96
    )
    model.compile(learning_rate=2e-4)
    model.fit(*train, batch_size=32, epochs=3, seed=args.seed, verbose=0)
    model.tune_thresholds(*dev, verbose=0)
    tuned = np.asarray(model.thresholds, float)
    _, chance = model.classify(test[0])
    right = np.array([[name in topics for name in NAMES] for topics in test[1]])
    curves = {}
    for i, name in enumerate(NAMES):
        given = chance[:, i, None] >= np.arange(1, 100) / 100
        hits = (given & right[:, i, None]).sum(axis=0)
        curves[name] = {
            "precision": [
                float(hit / n) if n else None
                for hit, n in zip(hits, given.sum(axis=0), strict=True)
            ],
            "recall": (hits / right[:, i].sum()).tolist(),
            "count": int(right[:, i].sum()),
            "threshold": float(tuned[i]),
        }

    def f1(thresholds):
        given = chance >= thresholds
        return 2 * (given & right).sum(axis=0) / (given.sum(axis=0) + right.sum(axis=0))

    scores = {
        name: dict(zip(NAMES, f1(at).round(4).tolist(), strict=True))
        | {"macro": round(float(f1(at).mean()), 4)}
        for name, at in (("f1_at_0.5", np.full(4, 0.5)), ("f1_tuned", tuned))
    }
    return {"scores": scores | {"thresholds": tuned.round(3).tolist()}, "curves": curves}


def multiple_choice(args) -> dict:
    """HellaSwag in SWAG's columns: accuracy by how far the best choice is ahead of the second."""
    rows = data.read_choices(args.data / "swag" / "hellaswag_val_3000_swag_columns.csv.gz")
    test = ChoiceExamples(*(column[2400:] for column in rows))
    train = rows.head(min(2400, args.limit or 400))
    keras.utils.set_random_seed(args.seed)
    model = keras_bert.BertMultipleChoice.from_preset(PRESET, sequence_length=96)
    model.compile(learning_rate=1e-4)
    model.fit(train, batch_size=16, epochs=1, seed=args.seed, verbose=0)
    logits = np.asarray(model.predict(test, 16, verbose=0), "float64")
    right = logits.argmax(axis=1) == np.asarray(test.labels)
    chance = np.sort(np.asarray(keras.ops.softmax(logits)), axis=1)
    margin = chance[:, -1] - chance[:, -2]
    parts = np.array_split(np.argsort(margin, kind="stable"), 4)
    bins = [accuracy(right[part]) | {"margin": float(margin[part].mean())} for part in parts]
    return {"scores": accuracy(right), "bins": bins}


def features(args) -> dict:
    """Logistic regression on the vectors of each layer: SST-2's texts, and CoNLL-2003's words."""
    train, dev = (glue.read("sst2", data_dir=args.data / "glue", split=s) for s in ("train", "dev"))
    train = train.head(args.limit or 4000)
    model = keras_bert.BertMaskedLM.from_preset(PRESET)
    layers = range(model.backbone.num_layers + 1)
    width = model.backbone.hidden_dim

    def vectors(texts, per):
        found = keras_bert.extract_features(
            model, texts, layers=tuple(layers), per=per, sequence_length=128
        )
        return np.concatenate([part.reshape(-1, len(layers), width) for part in found])

    def answers(train, labels, test, layer, penalty):
        mean, spread = train[:, layer].mean(axis=0), train[:, layer].std(axis=0) + 1e-6
        x, x_test = ((part[:, layer] - mean) / spread for part in (train, test))
        return LogisticRegression(C=penalty, max_iter=300).fit(x, labels).predict(x_test)

    x, x_dev = vectors(train.texts, "text"), vectors(dev.texts, "text")
    bars = [
        accuracy(answers(x, train.labels, x_dev, layer, 0.01) == np.asarray(dev.labels))
        for layer in layers
    ]
    folder = args.data / "ner" / "conll2003"
    tagged = data.read_tagged(folder / "eng.train.gz", scheme="iob1").head(args.limit or 1500)
    test = data.read_tagged(folder / "eng.testa.gz", scheme="iob1").head(1000)
    x, x_dev = vectors(tagged.words, "word"), vectors(test.words, "word")
    ends = np.cumsum([len(tags) for tags in test.tags])[:-1]
    f1 = []
    for layer in layers:
        found = answers(x, np.concatenate(tagged.tags), x_dev, layer, 0.01)
        found = [part.tolist() for part in np.split(found, ends)]
        f1.append(metrics.tagging_scores(test.tags, found)["f1"])
    scores = {
        "texts": [round(bar["accuracy"], 4) for bar in bars],
        "words": [round(value, 4) for value in f1],
    }
    return {"scores": scores, "bars": bars, "f1": f1}


def masked_lm(args) -> dict:
    """Continued pre-training on SST-2's texts: held-out accuracy of them, and of old books."""
    train, dev = (glue.read("sst2", data_dir=args.data / "glue", split=s) for s in ("train", "dev"))
    texts = [text for text in train.texts if len(text.split()) >= 8][: args.limit or 2000]
    books = old_books(args.data)
    keras.utils.set_random_seed(args.seed)
    model = keras_bert.BertMaskedLM.from_preset(PRESET, sequence_length=64)
    model.compile(learning_rate=3e-4)
    points = []

    def look(epoch):
        found = {"step": (epoch + 1) * -(-len(texts) // 32)}
        for name, part in (("reviews", dev.texts), ("books", books)):
            found[name] = model.evaluate(part, batch_size=32, verbose=0, return_dict=True)[
                "mlm_accuracy"
            ]
        points.append(found)

    look(-1)
    after = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: look(epoch))
    prompt = "This is one of the best [MASK] of the year."
    candidates = {"before": [c.token for c in model.fill(prompt, top_k=5)[0]]}
    model.fit(texts, batch_size=32, epochs=3, seed=args.seed, callbacks=[after], verbose=0)
    candidates["after"] = [c.token for c in model.fill(prompt, top_k=5)[0]]
    scores = {"texts": len(texts), "prompt": prompt, **candidates}
    for name in ("reviews", "books"):
        scores[name] = [round(points[0][name], 4), round(points[-1][name], 4)]
    return {"scores": scores, "points": points}


def old_books(folder: Path) -> list[str]:
    """Every 24th line of the books that the preset was not trained on."""
    with gzip.open(folder / "text/en/public_domain_heldout.txt.gz", "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in file if len(line.split()) >= 8]
    return lines[::24]


def zero_shot(args) -> dict:
    """MNLI, and with its classes the two of SST-2, by several wordings."""
    folder = args.data / "glue"
    train, dev = (glue.read("mnli", data_dir=folder, split=s) for s in ("train_slice", "dev_slice"))
    train = train.head(args.limit or 2000)
    names = list(glue.TASKS["mnli"].label_names)
    keras.utils.set_random_seed(args.seed)
    model = keras_bert.BertClassifier.from_preset(PRESET, labels=names, sequence_length=96)
    model.compile(learning_rate=2e-4)
    model.fit(train.texts, train.labels, batch_size=32, epochs=2, seed=args.seed, verbose=0)
    found = model.predict(dev.texts, verbose=0).argmax(axis=1)
    reviews = glue.read("sst2", data_dir=folder, split="dev")
    bars = []
    for template, words in WORDINGS:
        labels, _ = keras_bert.zero_shot(model, reviews.texts, list(words), template=template)
        right = np.array([words.index(one) for one in labels]) == np.asarray(reviews.labels)
        bars.append(accuracy(right) | {"template": template, "words": words})
    scores = {"mnli": accuracy(found == np.asarray(dev.labels))}
    scores |= {f"{bar['template']} {bar['words']}": round(bar["accuracy"], 4) for bar in bars}
    return {"scores": scores, "bars": bars}


WORDINGS = (
    ("This example is {}.", ("negative", "positive")),
    ("This film is {}.", ("bad", "good")),
    ("I {} the film.", ("hated", "loved")),
    ("The film is {}.", ("a failure", "a success")),
)
MIXES = {
    "base": "80 / 10 / 10",
    "masks_80_20_0": "80 / 20 / 0",
    "masks_0_20_80": "0 / 20 / 80",
    "masks_100_0_0": "100 / 0 / 0",
    "masks_80_0_20": "80 / 0 / 20",
    "masks_0_0_100": "0 / 0 / 100",
}


# === Pictures: each gives {file name: figure} ===


def bars_of(axes, rows: list[dict]) -> None:
    """Bars of accuracies, with their intervals and numbers."""
    values = np.array([row["accuracy"] for row in rows])
    bounds = np.array([row["interval"] for row in rows]).T
    places = range(len(rows))
    axes.bar(places, values, width=0.62, color=BLUE)
    error = np.abs(bounds - values)
    axes.errorbar(places, values, error, fmt="none", ecolor="black", elinewidth=1, capsize=3)


def draw_classification(found: dict) -> dict:
    points = found["points"]
    curve = figure(WIDTH, 3)
    axes = curve.subplots()
    x = [p["train_rows"] for p in points]
    low, high = np.array([p["interval"] for p in points]).T
    axes.fill_between(x, low, high, color=BLUE, alpha=0.18, linewidth=0, label="95% interval")
    axes.plot(x, [p["accuracy"] for p in points], "o-", color=BLUE, label="accuracy, 872 dev rows")
    axes.set_xscale("log")
    axes.set_xticks(x, [f"{rows:,}" for rows in x])
    axes.minorticks_off()
    axes.set(xlabel="labelled rows to train on", ylabel="accuracy")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(loc="lower right")
    sure = figure(WIDTH, 3)
    axes = sure.subplots()
    axes.plot([0.5, 1], [0.5, 1], color=GREY, linestyle="--", linewidth=1)
    axes.text(0.74, 0.76, "as often right\nas it says", color=GREY, ha="right", fontsize=9)
    for name, label, color, mark in (
        ("before", "as trained", ORANGE, "s"),
        ("after", "after calibration", BLUE, "o"),
    ):
        one = found["calibration"][name]
        label = f"{label}: expected error {one['expected_error']:.3f}"
        x, y = one["confidence"], one["accuracy"]
        axes.plot(x, y, marker=mark, color=color, label=label)
    axes.set(xlabel="probability of the predicted label", ylabel="fraction right", ylim=(0.3, 1.02))
    axes.legend(loc="lower right")
    return {"classification_rows.png": curve, "classification_calibration.png": sure}


def draw_token_classification(found: dict) -> dict:
    made = figure(WIDTH, 5.8)
    above, below = made.subplots(2, 1, height_ratios=[2, 3])
    types = found["scores"]["types"]
    for i, part in enumerate(("precision", "recall", "f1")):
        values = [types[name][part] for name in NAMES]
        places = np.arange(len(NAMES)) + (i - 1) * 0.27
        label = part if part != "f1" else "F1"
        above.bar(places, values, width=0.25, color=(GREY, ORANGE, BLUE)[i], label=label)
    above.set_xticks(range(len(NAMES)), [f"{n}\n{types[n]['support']:,}" for n in NAMES])
    above.set(
        xlabel="type, and number of entities",
        ylabel="score",
        ylim=(0, 1),
        yticks=[0, 0.25, 0.5, 0.75, 1],
    )
    above.grid(axis="y", alpha=0.3)
    above.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1))
    heat(below, np.array(found["confusion"])[:4], NAMES, [*NAMES, "none"])
    below.set(xlabel="predicted type of the word", ylabel="right type")
    return {"token_classification.png": made}


def heat(axes, counts: np.ndarray, rows, columns) -> None:
    """A matrix in percent of its rows."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (row, column), share in np.ndenumerate(shares):
        color = "white" if share > 0.5 else "black"
        axes.text(column, row, f"{share:.0%}", ha="center", va="center", color=color)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def draw_question_answering(found: dict) -> dict:
    lengths = np.array([row[0] for row in found["rows"]])
    f1 = np.array([row[2] for row in found["rows"]])
    made = figure(WIDTH, 5.4)
    above, below = made.subplots(2, 1, height_ratios=[4, 3])
    parts = [
        (lengths >= low) & (lengths <= high) for low, high in ((1, 1), (2, 2), (3, 4), (5, 99))
    ]
    sides = [
        ("shipped preset, 2,000 questions", f1[:, 0], BLUE),
        ("logistic regression (published)", found["published"]["logistic regression"], GREY),
        ("BERT-Large ensemble (published)", found["published"]["BERT"], ORANGE),
    ]
    for i, (name, values, color) in enumerate(sides):
        height = [np.array(values)[part].mean() for part in parts]
        above.bar(np.arange(4) + (i - 1) * 0.27, height, width=0.25, color=color, label=name)
    names = ["1 word", "2", "3 or 4", "5 or more"]
    above.set_xticks(
        range(4), [f"{n}\n{part.sum():,}" for n, part in zip(names, parts, strict=True)]
    )
    above.set(xlabel="length of the answer, and number of questions", ylabel="F1, %", ylim=(0, 100))
    above.grid(axis="y", alpha=0.3)
    above.legend(loc="lower center", bbox_to_anchor=(0.5, 1))
    below.plot(range(1, 21), f1.mean(axis=0), "o-", color=BLUE, markersize=4)
    below.set(xlabel="candidates of the preset (top_k)", ylabel="F1 of the best one, %")
    below.set_ylim(0, None)
    below.set_xticks([1, 5, 10, 15, 20])
    below.grid(axis="y", alpha=0.3)
    return {"question_answering.png": made}


def draw_sentence_embeddings(found: dict) -> dict:
    made = figure(WIDTH, 3.2)
    for axes, part, title in zip(
        made.subplots(1, 2, sharey=True),
        ("before", "after"),
        ("before training", "after"),
        strict=True,
    ):
        spearman = found["scores"][part]["spearman"]
        axes.scatter(
            found["annotated"],
            found[part],
            s=5,
            alpha=0.25,
            color=BLUE,
            linewidth=0,
            rasterized=True,
        )
        axes.set_title(f"{title}\nSpearman {spearman:.2f}")
        axes.set_xticks(range(6))
    made.axes[0].set_ylabel("cosine of the two vectors")
    made.supxlabel("annotated similarity, 0 to 5", fontsize=10)
    return {"sentence_embeddings.png": made}


def draw_relations(found: dict) -> dict:
    rows = sorted(found["rows"].items(), key=lambda item: item[1]["f1"])
    made = figure(WIDTH, 4.2)
    axes = made.subplots()
    left = np.zeros(len(rows))
    parts = ("right", "wrong direction", 'taken for "Other"', "another relation")
    for i, (label, color) in enumerate(
        zip(parts, (BLUE, "#56b4e9", "#cccccc", ORANGE), strict=True)
    ):
        shares = np.array([row["counts"][i] / sum(row["counts"]) for _, row in rows])
        axes.barh(range(len(rows)), shares, left=left, color=color, label=label, height=0.7)
        left += shares
    for place, (_, row) in enumerate(rows):
        axes.text(1.02, place, f"{row['f1']:.0f}", va="center")
    axes.text(1.02, len(rows) - 0.3, "F1", va="center")
    names = [f"{name.replace('-', '-' + chr(10), 1)}" for name, _ in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=9)
    axes.set(xlabel="fraction of the relation's test rows", xlim=(0, 1.1))
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    made.legend(loc="outside upper center", ncols=2)
    return {"relations.png": made}


def draw_pretraining(found: dict) -> dict:
    return {"pretraining_masks.png": found["results"]}


def draw_regression(found: dict) -> dict:
    made = figure(WIDTH, 3.4)
    axes = made.subplots()
    right, given = np.array(found["annotated"]), np.array(found["predicted"])
    axes.plot([0, 5], [0, 5], color=GREY, linestyle="--", linewidth=1, label="equal")
    axes.scatter(right, given, s=7, alpha=0.25, color=BLUE, linewidth=0)
    middles = np.arange(6)
    means = [given[np.round(right) == middle].mean() for middle in middles]
    axes.plot(middles, means, "o-", color=ORANGE, label="mean prediction")
    axes.set(xlabel="annotated similarity", ylabel="predicted similarity")
    axes.legend(loc="upper left")
    return {"regression.png": made}


def draw_multi_label(found: dict) -> dict:
    made = figure(WIDTH, 4.2)
    x = np.arange(1, 100) / 100
    for axes, (name, one) in zip(
        made.subplots(2, 2, sharex=True, sharey=True).flat, found["curves"].items(), strict=True
    ):
        axes.plot(
            x, np.array(one["precision"], float), color=ORANGE, linestyle="--", label="precision"
        )
        axes.plot(x, one["recall"], color=BLUE, label="recall")
        axes.axvline(
            one["threshold"], color=GREY, linewidth=1, linestyle=":", label="tuned threshold"
        )
        axes.set_title(f"{name}, {one['count']:,} sentences")
        axes.set(ylim=(0, 1.02), xlim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        axes.grid(alpha=0.3)
    made.legend(*made.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    made.supxlabel("threshold", fontsize=10)
    return {"multi_label.png": made}


def draw_multiple_choice(found: dict) -> dict:
    made = figure(WIDTH, 3)
    axes = made.subplots()
    bars_of(axes, found["bins"])
    axes.axhline(0.25, color="black", linestyle="--", linewidth=1)
    axes.set_xticks(range(4), [f"{one['margin']:.3f}" for one in found["bins"]])
    axes.set(
        xlabel="mean lead of the best choice over the second", ylabel="accuracy (dashed: by chance)"
    )
    return {"multiple_choice.png": made}


def draw_features(found: dict) -> dict:
    made = figure(WIDTH, 3.2)
    axes = made.subplots()
    x = range(len(found["bars"]))
    values = [bar["accuracy"] for bar in found["bars"]]
    axes.fill_between(
        x,
        *np.array([bar["interval"] for bar in found["bars"]]).T,
        color=BLUE,
        alpha=0.18,
        linewidth=0,
    )
    axes.plot(x, values, "o-", color=BLUE, label="texts of SST-2: accuracy, 95% interval")
    axes.plot(x, found["f1"], "s-", color=ORANGE, label="words of CoNLL-2003: F1 of names")
    axes.set_xticks(x, ["embed-\ndings", *map(str, x[1:])])
    axes.set(xlabel="layer that the vectors are taken from", ylabel="dev score")
    axes.grid(axis="y", alpha=0.3)
    made.legend(loc="outside upper center")
    return {"features.png": made}


def draw_masked_lm(found: dict) -> dict:
    made = figure(WIDTH, 3)
    axes = made.subplots()
    points = found["points"]
    x = [p["step"] for p in points]
    for name, label, color, mark in (
        ("reviews", "film reviews, the new domain", BLUE, "o"),
        ("books", "old books, as in pre-training", ORANGE, "s"),
    ):
        axes.plot(x, [p[name] for p in points], marker=mark, color=color, label=label)
    axes.set(xlabel="steps of 32 review sentences", ylabel="accuracy of masked tokens")
    axes.grid(axis="y", alpha=0.3)
    made.legend(loc="outside upper center", ncols=1)
    return {"masked_lm.png": made}


def draw_zero_shot(found: dict) -> dict:
    made = figure(WIDTH, 3)
    axes = made.subplots()
    bars = found["bars"][::-1]
    values = np.array([bar["accuracy"] for bar in bars])
    bounds = np.array([bar["interval"] for bar in bars]).T
    axes.barh(range(len(bars)), values, height=0.6, color=BLUE)
    axes.errorbar(
        values,
        range(len(bars)),
        xerr=np.abs(bounds - values),
        fmt="none",
        ecolor="black",
        capsize=3,
    )
    names = [bar["template"].format(" / ".join(bar["words"])) for bar in bars]
    axes.set_yticks(range(len(bars)), [textwrap.fill(name, 18) for name in names])
    axes.axvline(0.5, color=GREY, linestyle="--", linewidth=1)
    axes.set(xlabel="accuracy (dashed: by chance)", xlim=(0, 1))
    return {"zero_shot.png": made}


WORK = {
    "classification": (classification, draw_classification),
    "token_classification": (token_classification, draw_token_classification),
    "question_answering": (question_answering, draw_question_answering),
    "sentence_embeddings": (sentence_embeddings, draw_sentence_embeddings),
    "relations": (relations, draw_relations),
    "pretraining": (pretraining, draw_pretraining),
    "regression": (regression, draw_regression),
    "multi_label": (multi_label, draw_multi_label),
    "multiple_choice": (multiple_choice, draw_multiple_choice),
    "features": (features, draw_features),
    "masked_lm": (masked_lm, draw_masked_lm),
    "zero_shot": (zero_shot, draw_zero_shot),
}


def measure(task: str, args) -> dict:
    """Trains and scores; gives what was measured, with the CPU time and versions."""
    begin = time.process_time()
    found = WORK[task][0](args)
    found["machine"] = {
        "cpu_s": round(time.process_time() - begin),
        "seed": args.seed,
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "devices": [device.device_type for device in tf.config.list_physical_devices()],
    }
    return found


def draw(task: str, found: dict, folder: Path) -> list[Path]:
    """Draws what was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with matplotlib.rc_context(STYLE):
        for name, made in WORK[task][1](found).items():
            if isinstance(made, list):
                heldout_figure.draw(made, "mlm_accuracy", folder / name, MIXES)
            else:
                write_png(folder / name, made)
            with Image.open(
                folder / name
            ) as image:  # 128 colours are enough, in a third of the bytes
                small = image.convert("RGB").quantize(128)
            small.save(folder / name, optimize=True)
            paths.append(folder / name)
    return paths


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    for task in args.task:
        file = args.results / f"{task}.json"
        if args.draw_only:
            found = json.loads(file.read_text("utf-8"))
        else:
            found = measure(task, args)
            file.parent.mkdir(parents=True, exist_ok=True)
            write_file(file, json.dumps(found).encode())
        paths = draw(task, found, args.out)
        said = {"task": task, **found["scores"], **found["machine"]}
        print(json.dumps(said | {"pictures": [str(path) for path in paths]}), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
