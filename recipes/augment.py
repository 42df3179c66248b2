"""Fine-tunes on few labelled rows, with and without copies by a masked language model.

Source: Wu et al. 2019, "Conditional BERT contextual augmentation"; Kumar et al. 2020, "Data
augmentation using pre-trained transformer models". All variants make as many updates.
Results: recipes/README.md.
Run: python recipes/augment.py --data_dir GLUE --tasks sst2 mrpc --rows 100 500 2000
"""

import argparse

from recipe_flags import small_run_flags


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = small_run_flags(__doc__, ["sst2", "mrpc"], [100, 500, 2000], seeds=10)
    parser.add_argument("--share", type=float, default=0.15, help="of the words, replaced")
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--top_k", type=int, default=10, help="candidates for a word")
    parser.add_argument("--masked_lm_epochs", type=float, default=10, help="of the variant label")
    parser.add_argument("--masked_lm_rate", type=float, default=1e-4)
    variants = ["none", "words", "label"]
    parser.add_argument("--variants", nargs="+", default=variants, choices=variants)
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported


import math

import keras

import keras_bert
from keras_bert.data import augment, label_first

from small_runs import Task, Tuner, joined, print_table, results_of


class Writer:
    """Makes copies, by the preset's masked language model or one that was trained with labels.

    Args:
        args: the flags.
        task: whose texts it reads.
    """

    def __init__(self, args: argparse.Namespace, task: Task):
        self.args, self.task = args, task
        made = [self._make() for _ in range(3)]
        self.start, self.trained, self.fills = made
        self.trained.compile(learning_rate=args.masked_lm_rate, packing=False)
        self.fills.compile(jit_compile=False)  # rows of many shapes, few of each

    def _make(self) -> keras.Model:
        return keras_bert.BertMaskedLM.from_preset(
            self.args.preset, sequence_length=self.task.length, dtype=self.args.dtype
        )

    def copies(self, x, y, seed: int, told: bool):
        """(texts, ids) of the copies."""
        names = [self.task.label_words[i] for i in y] if told else None
        model = self.start
        if told:
            model = self.trained
            keras.utils.set_random_seed(seed)
            model.copy_state(self.start)
            texts, size = label_first(x, names), self.args.batch_size
            steps = math.ceil(self.args.masked_lm_epochs * len(y) / size)
            model.fit(texts, batch_size=size, steps=max(steps, 50), seed=seed, verbose=0)
        self.fills.copy_state(model)
        settings = {"n": self.args.copies, "top_k": self.args.top_k, "seed": seed}
        found = augment(x, self.fills, self.args.share, labels=names, **settings)
        return found.x, y[found.rows]


def main(argv: list[str] | None = None) -> list[dict]:
    args = parse(argv)
    runs = [
        (s, t, n, v)
        for s in args.seeds
        for t in args.tasks
        for n in args.rows
        for v in args.variants
    ]
    results = results_of(args, len(runs))
    tasks, tuners, writers = {}, {}, {}

    def run(seed, name, rows, variant):
        if name not in tasks:
            tasks[name] = Task(args, name)
            tuners[name] = Tuner(tasks[name], args.preset)
            writers[name] = Writer(args, tasks[name])
        task = tasks[name]
        x, y, _ = task.subset(rows, seed)
        if variant != "none":
            more, labels = writers[name].copies(x, y, seed, told=variant == "label")
            x, y = joined(x, more), [*y, *labels]
        tuners[name].fit(x, list(map(int, y)), task.steps(rows), seed)
        return task.scores(tuners[name].logits())

    for seed, name, rows, variant in [] if args.table else runs:
        results.run(
            lambda key=(seed, name, rows, variant): run(*key),
            task=name, rows=rows, variant=variant, seed=seed,
        )  # fmt: skip
    print_table(results.rows(), ["task", "rows", "variant"], {"variant": "none"})
    return results.rows()


if __name__ == "__main__":
    main()
