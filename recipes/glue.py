"""Fine-tunes a BERT on one GLUE task and scores it on the dev set.

Source: Devlin et al. 2019, section 4.1: batch 32, 3 epochs, learning rate 2e-5 to 5e-5.
Data: the GLUE archive's TSV files, or TensorFlow Datasets when no --data_dir is given.
Results and times: recipes/README.md.
Run: python recipes/glue.py --task sst2 --preset DIR --data_dir DIR --seed 0
"""

import argparse
import json
import time
from pathlib import Path

import keras

import keras_bert
from keras_bert.data import glue
from keras_bert.metrics import evaluate
from keras_bert.training.callbacks import TrainingTimer, standard_callbacks


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--task", required=True, choices=glue.TASKS)
    parser.add_argument("--preset", required=True, help="folder, name or address of a BERT")
    parser.add_argument("--data_dir", help="GLUE folder, or the task's; TFDS if left out")
    parser.add_argument("--output_dir", default="runs/glue")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--learning_rate", type=float, default=2e-5)
    parser.add_argument("--sequence_length", type=int, default=128)
    parser.add_argument("--padding", choices=("bucket", "full"), default="bucket")
    parser.add_argument("--dtype", default="float32", help='such as "mixed_bfloat16" on a GPU')
    parser.add_argument("--steps_per_execution", type=int, default=1)
    parser.add_argument("--limit", type=int, help="train on the first so many rows only")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    keras.utils.set_random_seed(args.seed)
    task = glue.TASKS[args.task]
    read = glue.read if args.data_dir else glue.read_tfds
    train, dev = (
        read(args.task, *([args.data_dir] if args.data_dir else []), split)
        for split in ("train", "dev")
    )
    train = train.head(args.limit)
    model = keras_bert.BertClassifier.from_preset(
        args.preset,
        labels=list(task.label_names),
        sequence_length=args.sequence_length,
        padding=args.padding,
        dtype=args.dtype,
    )
    model.compile(learning_rate=args.learning_rate, steps_per_execution=args.steps_per_execution)
    output = Path(args.output_dir) / f"{args.task}-seed{args.seed}"
    start, timer = time.time(), TrainingTimer()
    history = model.fit(
        train.texts,
        train.labels,
        batch_size=args.batch_size,
        epochs=args.epochs,
        validation_data=(dev.texts, dev.labels),
        seed=args.seed,
        callbacks=[timer, *standard_callbacks(output, monitor="val_accuracy")],
    )
    seconds = time.time() - start
    scores = evaluate(task.metric_names, dev.labels, model.predict(dev.texts, args.batch_size))
    model.save_to_preset(str(output / "preset"))
    metrics = {
        "task": args.task,
        "seed": args.seed,
        **scores,
        "val_accuracy_by_epoch": history.history["val_accuracy"],
        "train_rows": len(train.labels),
        "fit_seconds": round(seconds, 1),
        # The fastest epoch's: the first one compiles.
        "train_rows_per_second": round(len(train.labels) / min(timer.seconds), 1),
    }
    (output / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
    print(json.dumps(metrics))
    return metrics


if __name__ == "__main__":
    main()
