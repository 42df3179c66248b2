"""Distils a fine-tuned teacher into small students, beside the same students without it.

Sources: Hinton et al. 2015; Turc et al. 2019, "Well-read students learn better"; Sanh et al. 2019,
DistilBERT; Jiao et al. 2020, TinyBERT. The teacher learns from the labelled rows that the students
have. Students are another preset, with its own vocabulary, and the teacher cut to some of its
blocks. All variants of a task make as many updates.
Results: recipes/README.md.
Run: python recipes/distil.py --teacher DIR --data_dir GLUE --tasks sst2 --rows 20000
"""

import argparse

from recipe_flags import small_run_flags


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = small_run_flags(__doc__, ["sst2", "mrpc"], [20000], seeds=5)
    parser.add_argument("--teacher", help="preset to fine-tune as the teacher")
    parser.add_argument("--teacher_rate", type=float, default=5e-5)
    parser.add_argument("--teacher_epochs", type=float, default=4)
    parser.add_argument("--share", type=float, default=0.5, help="of the teacher in a label")
    parser.add_argument("--temperature", type=float, default=1.0, help="of the teacher's labels")
    parser.add_argument("--copies", type=int, default=4, help="for the variant copies")
    parser.add_argument("--top_k", type=int, default=10, help="candidates for a word of a copy")
    variants = ["plain", "logits", "unlabelled", "copies", "hidden"]
    parser.add_argument("--variants", nargs="+", default=variants[:-1], choices=variants)
    parser.add_argument(
        "--blocks", nargs="+", type=int, help="the student is the teacher with these blocks alone"
    )
    parser.add_argument("--save", action="store_true", help="the students of the first seed")
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported


from pathlib import Path

import keras
import numpy as np

import keras_bert
from keras_bert.data import augment
from keras_bert.tasks.distillation import distiller, keep_blocks, soft_labels
from keras_bert.training import AdamW, WarmupDecay

from small_runs import Task, Tuner, classifier, joined, print_table, results_of, take


class Teacher:
    """A fine-tuned classifier, kept in the folder of the runs, and its logits.

    Args:
        args: the flags.
        task: to train for.
        rows: labelled ones, the first subset of seed 0.
    """

    def __init__(self, args: argparse.Namespace, task: Task, rows: int):
        self.args, self.task = args, task
        self.folder = Path(args.output_dir) / f"teacher-{task.name}-{rows}"
        self.x, self.y, chosen = task.subset(rows, seed=0)
        self.chosen = set(chosen.tolist())
        if (self.folder / "task.json").exists():
            self.model = classifier(task, str(self.folder))
        else:
            keras.utils.set_random_seed(0)
            self.model = classifier(task, args.teacher)
            self.model.compile(learning_rate=args.teacher_rate)
            steps = {"epochs": args.teacher_epochs, "batch_size": args.batch_size}
            self.model.fit(self.x, self.y, seed=0, verbose=2, **steps)
            self.model.save_to_preset(str(self.folder))

    def logits(self, x) -> np.ndarray:
        return self.model.predict(x, 256, verbose=0)

    def scores(self) -> dict:
        return self.task.scores(self.logits(self.task.dev.texts))

    def labels(self, x, y) -> np.ndarray:
        args = self.args
        return soft_labels(self.logits(x), y, args.temperature, args.share)

    def unlabelled(self):
        """The train set's other texts; None if all are labelled."""
        others = [i for i in range(len(self.task.train.labels)) if i not in self.chosen]
        return take(self.task.train.texts, others) if others else None


def data_of(variant: str, teacher: Teacher, masked_lm) -> tuple | None:
    """(texts, labels) of a variant."""
    x, y = teacher.x, teacher.y
    if variant == "plain":
        return x, y
    if variant == "unlabelled":
        others = teacher.unlabelled()
        if others is None:
            return None
        x = joined(x, others)
    if variant == "copies":
        settings = {"n": teacher.args.copies, "top_k": teacher.args.top_k, "seed": 0}
        x = joined(x, augment(x, masked_lm(), **settings).x)
    first = x[0] if isinstance(x, tuple) else x
    y = np.concatenate([y, np.full(len(first) - len(y), -1)])
    return x, teacher.labels(x, y)


def train_hidden(args, teacher: Teacher, student, steps: int, seed: int) -> None:
    """Trains by Keras's distiller: logits, and the hidden state of every block."""
    wide = classifier(teacher.task, str(teacher.folder), output_hidden_states=True)
    pairs = {0: 0} | {i + 1: block + 1 for i, block in enumerate(args.blocks)}
    both = distiller(wide, student, hidden=pairs)
    rate = WarmupDecay(args.learning_rate, steps, warmup_steps=steps // 10)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    both.compile(AdamW(rate, weight_decay=0.01), loss, jit_compile=False)
    ids, y, _ = student.make_rows(teacher.x, teacher.y)
    rng, size = np.random.default_rng(seed), args.batch_size
    epochs = -(-steps * size // len(y))
    order = np.concatenate([rng.permutation(len(y)) for _ in range(epochs)])[: steps * size]
    rows = {name: value[order] for name, value in ids.items()}
    both.fit(rows, y[order], batch_size=size, shuffle=False, verbose=0)


def main(argv: list[str] | None = None) -> list[dict]:
    args = parse(argv)
    runs = [
        (seed, name, rows, variant)
        for name in args.tasks
        for rows in args.rows
        for seed in args.seeds
        for variant in args.variants
    ]
    results = results_of(args, len(runs) + len(args.tasks) * len(args.rows))  # with teachers
    student = "+".join(map(str, args.blocks)) if args.blocks else Path(args.preset).name
    kept: dict = {}

    def prepared(name, rows):
        if (name, rows) not in kept:
            task = Task(args, name)
            teacher = Teacher(args, task, rows)
            results.run(
                teacher.scores, task=name, rows=rows, student="(the teacher)", variant="", seed=0
            )

            def start(seed):
                if not args.blocks:
                    return classifier(task, args.preset)
                hidden = {"output_hidden_states": True}
                return keep_blocks(classifier(task, str(teacher.folder), **hidden), args.blocks)

            def masked_lm():
                made = keras_bert.BertMaskedLM.from_preset(
                    args.preset, sequence_length=task.length, dtype=args.dtype
                )
                made.compile(jit_compile=False)
                return made

            data = {}
            for variant in args.variants:
                if variant != "hidden":
                    data[variant] = data_of(variant, teacher, masked_lm)
            kept[name, rows] = task, teacher, Tuner(task, start), data
        return kept[name, rows]

    def run(seed, name, rows, variant):
        task, teacher, tuner, data = prepared(name, rows)
        steps = task.steps(len(teacher.y))
        if variant == "hidden":
            model = keep_blocks(tuner.start(seed), range(len(args.blocks)))
            train_hidden(args, teacher, model, steps, seed)
            scores = task.scores(model.predict(task.dev.texts, 128, verbose=0))
        else:
            if data[variant] is None:
                return {}
            model = tuner.fit(*data[variant], steps, seed)
            scores = task.scores(tuner.logits())
        if args.save and seed == args.seeds[0]:
            model.save_to_preset(str(Path(args.output_dir) / f"{student}-{name}-{variant}"))
        return scores | {"weights": model.count_params()}

    for seed, name, rows, variant in [] if args.table else runs:
        results.run(
            lambda key=(seed, name, rows, variant): run(*key),
            task=name, rows=rows, student=student, variant=variant, seed=seed,
        )  # fmt: skip
    print_table(results.rows(), ["task", "rows", "student", "variant"], {"variant": "plain"})
    return results.rows()


if __name__ == "__main__":
    main()
