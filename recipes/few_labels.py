"""Few labels and many seeds: cross-validation, ensembles and averaged weights, beside one run.

Sources: Wortsman et al. 2022, "Model soups"; Mosbach et al. 2021, "On the stability of fine-tuning
BERT". For each seed: k runs on all rows, in other orders, from the same weights; and k runs on all
rows but a fold. Their dev scores, those of their averaged probabilities and of their averaged
weights; and the score of each fold, which estimates the dev score without a dev set.
Results: recipes/README.md.
Run: python recipes/few_labels.py --data_dir GLUE --tasks sst2 mrpc --rows 500 --k 5
"""

import argparse

from recipe_flags import small_run_flags


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = small_run_flags(__doc__, ["sst2", "mrpc"], [500], seeds=5)
    parser.add_argument("--k", type=int, default=5, help="folds, and runs of an ensemble")
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported


import numpy as np

from keras_bert.metrics import evaluate
from keras_bert.training import average_probabilities, average_weights, folds

from small_runs import Task, Tuner, print_table, results_of, take


def answers_of(args, tuner: Tuner, task: Task, x, y, seed: int) -> dict[str, dict]:
    """The scores of all ways, by their names."""
    found: dict[str, dict] = {}
    splits = folds(y, args.k, seed)
    members = {
        "orders": [(np.arange(len(y)), 1000 * seed + i) for i in range(args.k)],
        "folds": [(train, seed) for train, _ in splits],
    }
    inside = []
    for kind, runs in members.items():
        logits, weights = [], []
        for number, (rows, order) in enumerate(runs):
            model = tuner.fit(take(x, rows), y[rows], task.steps(len(rows)), seed, order)
            logits.append(tuner.logits())
            weights.append(model.get_weights())
            if kind == "folds":
                rest = splits[number][1]
                outputs = model.predict(take(x, rest), 128, verbose=0)
                inside.append(evaluate(task.glue.metric_names, y[rest], outputs))
        each = [task.scores(one) for one in logits]
        found[f"one run of {kind}"] = {name: _mean(each, name) for name in each[0]}
        found[f"ensemble of {kind}"] = task.scores(np.log(average_probabilities(logits) + 1e-30))
        average_weights(model, weights)
        found[f"averaged weights of {kind}"] = task.scores(tuner.logits())
    estimate = {name: _mean(inside, name) for name in inside[0]}
    found["cross-validation"] = {"score": estimate[task.glue.headline]} | estimate
    return found


def _mean(rows: list[dict], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))


def main(argv: list[str] | None = None) -> list[dict]:
    args = parse(argv)
    runs = [(s, t, n) for s in args.seeds for t in args.tasks for n in args.rows]
    results = results_of(args, len(runs))
    tasks, tuners = {}, {}

    def run(seed, name, rows):
        if name not in tasks:
            tasks[name] = Task(args, name)
            tuners[name] = Tuner(tasks[name], args.preset)
        x, y, _ = tasks[name].subset(rows, seed)
        return answers_of(args, tuners[name], tasks[name], x, y, seed)

    for seed, name, rows in [] if args.table else runs:
        results.run(
            lambda key=(seed, name, rows): run(*key), task=name, rows=rows, k=args.k, seed=seed
        )
    shown = [
        row["run"] | {"variant": variant} | scores
        for row in results.found.values()
        for variant, scores in row["result"].items()
    ]
    print_table(shown, ["task", "rows", "variant"], {"variant": "one run of orders"})
    return shown


if __name__ == "__main__":
    main()
