"""Scores the predictions of finetune.py by the metrics of keras_bert, and gives mean and deviation.

Run: python tools/peers/score.py --examples dev.jsonl --predictions out.jsonl --metrics accuracy f1
"""

import argparse
import json


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--examples", required=True)
    parser.add_argument("--predictions", required=True)
    help = "names of `keras_bert.metrics.evaluate`; or entities, squad or relations alone"
    parser.add_argument("--metrics", nargs="+", required=True, help=help)
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before the imports that take seconds

import numpy as np

from keras_bert.metrics import evaluate, relation_scores, squad_v1_scores, tagging_scores


def load(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def score(args, header, rows, answers) -> dict[str, float]:
    if args.metrics == ["entities"]:
        return tagging_scores([row["tags"] for row in rows], answers)
    if args.metrics == ["squad"]:
        golds = {row["id"]: [answer["text"] for answer in row["answers"]] for row in rows}
        return squad_v1_scores(golds, {answer["id"]: answer["text"] for answer in answers})
    labels, outputs = [row["label"] for row in rows], np.array(answers)
    if args.metrics == ["relations"]:
        names = header["labels"]
        predicted = [names[i] for i in outputs.argmax(axis=1)]
        found = relation_scores([names[y] for y in labels], predicted)
        return {"macro_f1": found.f1, "accuracy": found.accuracy}
    return evaluate(args.metrics, labels, outputs)


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    header, *rows = load(args.examples)
    runs = load(args.predictions)
    scores = [score(args, header, rows, run["answers"]) for run in runs]
    summary = {
        name: {"mean": float(np.mean(values)), "deviation": float(np.std(values))}
        for name in scores[0]
        if isinstance(scores[0][name], int | float)
        for values in [[one[name] for one in scores]]
    }
    speed = max(run["train_rows_per_second"] for run in runs)
    summary |= {"runs": len(runs), "train_rows_per_second": speed}
    print(json.dumps(summary))
    return summary


if __name__ == "__main__":
    main()
