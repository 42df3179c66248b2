"""Continues masked language modelling on unlabelled texts, then fine-tunes, beside no adapting.

Source: Gururangan et al. 2020, "Don't stop pretraining": the texts are the task's own, without
labels, or those of --texts (a domain). The variant new_words first adds the most frequent words
that the tokenizer splits.
Results: recipes/README.md.
Run: python recipes/adapt.py --data_dir GLUE --tasks sst2 mrpc qnli cola --rows 500 2000
"""

import argparse

from recipe_flags import small_run_flags


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = small_run_flags(__doc__, ["sst2", "mrpc", "qnli", "cola"], [500, 2000], seeds=5)
    parser.add_argument("--texts", nargs="+", help="files of unlabelled texts, one a line")
    parser.add_argument("--adapt_steps", type=int, default=2000)
    parser.add_argument("--adapt_batch_size", type=int, default=64)
    parser.add_argument("--adapt_rate", type=float, default=3e-4)
    parser.add_argument("--new_words", type=int, default=500, help="of the variant new_words")
    variants = ["none", "adapted", "new_words"]
    parser.add_argument("--variants", nargs="+", default=variants, choices=variants)
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported


from pathlib import Path

import keras

import keras_bert
from keras_bert.data import split_words
from keras_bert.training import Resume

from small_runs import Task, Tuner, classifier, print_table, results_of


class Adapter:
    """Trains a masked language model on the texts; one model, compiled once.

    Args:
        args: the flags.
        task: whose length rows have.
        texts: without labels.
        new_words: how many words to add.
    """

    def __init__(self, args: argparse.Namespace, task: Task, texts: list[str], new_words: int):
        self.args, self.texts = args, texts
        self.start, self.model = (self._make(task, new_words) for _ in range(2))
        self.model.compile(learning_rate=args.adapt_rate)

    def _make(self, task: Task, new_words: int) -> keras.Model:
        model = keras_bert.BertMaskedLM.from_preset(
            self.args.preset, sequence_length=task.length, dtype=self.args.dtype
        )
        if new_words:
            words = split_words(self.texts, model.preprocessor.tokenizer, new_words)
            model = keras_bert.resize(model, new_tokens=words) if words else model
        return model

    def preset(self, folder: Path, seed: int) -> str:
        """The folder of an adapted preset, made if it is not there; a stopped run continues."""
        made = folder / "preset"
        if not (made / "task.json").exists():
            keras.utils.set_random_seed(seed)
            self.model.copy_state(self.start)
            self.model.fit(
                self.texts,
                batch_size=self.args.adapt_batch_size,
                steps=self.args.adapt_steps,
                seed=seed,
                callbacks=[Resume(folder / "checkpoints")],
                verbose=2,
            )
            self.model.save_to_preset(str(made))
        return str(made)


def main(argv: list[str] | None = None) -> list[dict]:
    args = parse(argv)
    runs = [
        (seed, name, variant, rows)
        for seed in args.seeds
        for name in args.tasks
        for variant in args.variants
        for rows in args.rows
    ]
    results = results_of(args, len(runs))
    tasks: dict[str, Task] = {}
    tuners: dict[tuple, Tuner] = {}
    adapters: dict[tuple, Adapter] = {}
    domain = [
        line.strip()
        for path in args.texts or ()
        for line in Path(path).read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]

    def run(seed, name, variant, rows):
        if name not in tasks:
            tasks[name] = Task(args, name)
        task = tasks[name]

        def start(seed):
            if variant == "none":
                return classifier(task, args.preset)
            if (name, variant) not in adapters:
                words = args.new_words if variant == "new_words" else 0
                adapters[name, variant] = Adapter(args, task, domain or task.texts(), words)
            folder = Path(args.output_dir) / f"{name}-{variant}-seed{seed}"
            return classifier(task, adapters[name, variant].preset(folder, seed))

        tuner = tuners.setdefault((name, variant), Tuner(task, start))
        x, y, _ = task.subset(rows, seed)
        tuner.fit(x, y, task.steps(len(y)), seed)
        return task.scores(tuner.logits())

    for seed, name, variant, rows in [] if args.table else runs:
        results.run(
            lambda key=(seed, name, variant, rows): run(*key),
            task=name, rows=rows, variant=variant, seed=seed,
        )  # fmt: skip
    print_table(results.rows(), ["task", "rows", "variant"], {"variant": "none"})
    return results.rows()


if __name__ == "__main__":
    main()
