"""Times a whole fine-tuning run, from the start of the process to its score on the dev file.

What a user waits for: imports, making the model (from random numbers: only time counts), the first
step with its compilation, training, prediction from texts, and a second `fit` of one more epoch.
Examples are files of tools/peers/examples.py. Prints one JSON line. Peer: tools/peers/trainer.py,
with the same flags.
Run: python tools/benchmark_run.py --train train.jsonl --dev dev.jsonl --vocabulary vocab.txt
"""

import time

start = time.perf_counter()

import argparse  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--train", required=True, help="file of tools/peers/examples.py")
    parser.add_argument("--dev", required=True, help="file of tools/peers/examples.py")
    parser.add_argument("--vocabulary", required=True, help="a vocab.txt, lower-casing")
    parser.add_argument("--size", default="base")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--sequence_length", type=int, default=128)
    parser.add_argument("--dtype", default="mixed_bfloat16")
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse()  # wrong flags and --help end here, before the imports that take seconds

import keras  # noqa: E402
import numpy as np  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import keras_bert  # noqa: E402


def examples(path: str) -> tuple:
    """(texts or two columns of them, integer labels) of a file."""
    with open(path, encoding="utf-8") as file:
        _, *rows = map(json.loads, file)
    columns = tuple(map(list, zip(*(row["texts"] for row in rows), strict=True)))
    return columns[0] if len(columns) == 1 else columns, [row["label"] for row in rows]


class FirstStep(keras.callbacks.Callback):
    """The time at which the first step has been made."""

    made = None

    def after_step(self, logs):
        self.made = self.made or time.perf_counter()


def main(argv: list[str] | None = None) -> dict:
    args, imported = parse(argv), time.perf_counter()
    (train, labels), (dev, wanted) = examples(args.train), examples(args.dev)
    model = keras_bert.BertClassifier(
        keras_bert.BertBackbone.from_size(args.size, dtype=args.dtype),
        num_classes=len(set(labels)),
        preprocessor=keras_bert.BertClassifierPreprocessor(
            keras_bert.BertTokenizer(args.vocabulary), sequence_length=args.sequence_length
        ),
    )
    model.compile(learning_rate=2e-5)
    first, settings = FirstStep(), {"batch_size": args.batch_size, "verbose": 0}
    built = time.perf_counter()
    model.fit(train, labels, epochs=args.epochs, callbacks=[first], **settings)
    trained = time.perf_counter()
    logits = model.predict(dev, batch_size=2 * args.batch_size, verbose=0)
    predicted = time.perf_counter()
    model.fit(train, labels, epochs=args.epochs + 1, **settings)
    seconds = {
        "imports": imported - start,
        "building": built - imported,
        "to_first_step": first.made - built,
        "training_after_it": trained - first.made,
        "prediction": predicted - trained,
        "whole": predicted - start,
        "second_fit": time.perf_counter() - predicted,
    }
    found = vars(args) | {"examples": len(labels)}
    found |= {"seconds": {name: round(value, 2) for name, value in seconds.items()}}
    found |= {"accuracy": round(float((logits.argmax(-1) == np.array(wanted)).mean()), 4)}
    print(json.dumps(found), flush=True)
    return found


if __name__ == "__main__":
    main()
