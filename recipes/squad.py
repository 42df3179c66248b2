"""Fine-tunes a BERT to answer questions by a piece of a text, and scores its answers.

Source: Devlin et al. 2019, sections 4.2 and 4.3: batch 32, 3 epochs at 5e-5 on SQuAD 1.1, and
batch 48, 2 epochs at 5e-5 on SQuAD 2.0; rows of 384, windows 128 apart (run_squad.py).
Data: JSON files in the layout of SQuAD: SQuAD 1.1, SQuAD 2.0, XQuAD, CMRC 2018. Of SQuAD 2.0 the
threshold for no answer is tuned on the questions that are scored, as the paper did.
Run: python recipes/squad.py --preset DIR --train train-v1.1.json --dev dev-v1.1.json --seed 0
"""

import argparse
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np

import keras_bert
from keras_bert import training
from keras_bert.data import SquadExample, read_squad, write_predictions
from keras_bert.metrics import cmrc_scores, squad_v1_scores, squad_v2_scores
from keras_bert.training.callbacks import TrainingTimer, standard_callbacks
from keras_bert.training.strategies import KINDS

SCORERS = {"1.1": squad_v1_scores, "2.0": squad_v2_scores, "cmrc": cmrc_scores}


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--version", choices=SCORERS, default="1.1", help="rules and scores")
    parser.add_argument("--preset", required=True, help="folder, name or address of a BERT")
    parser.add_argument("--new_weights", action="store_true", help="only the preset's shape")
    parser.add_argument("--data_dir", default=".", help="folder of the files below")
    parser.add_argument("--train", required=True, help="JSON file, plain or with .gz added")
    parser.add_argument("--dev", help="likewise; not with --held_out")
    parser.add_argument(
        "--held_out", type=float, help="share of the training file's articles to test on instead"
    )
    parser.add_argument("--output_dir", default="runs/squad")
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="one run a seed")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--sequence_length", type=int, default=384)
    parser.add_argument("--stride", type=int, default=128)
    parser.add_argument("--max_answer_length", type=int, default=30)
    parser.add_argument("--padding", choices=("bucket", "full"), default="bucket")
    parser.add_argument("--dtype", default="float32", help='such as "mixed_bfloat16" on a GPU')
    parser.add_argument("--steps_per_execution", type=int, default=1)
    parser.add_argument("--accumulation_steps", type=int, default=1)
    parser.add_argument("--strategy", choices=KINDS, default="auto", help="devices to train on")
    parser.add_argument("--resume", action="store_true", help="save, and go on where it stopped")
    parser.add_argument("--limit", type=int, help="train on the first so many questions only")
    args = parser.parse_args(argv)
    if (args.dev is None) == (args.held_out is None):
        parser.error("expected one of --dev and --held_out")
    return args


def hold_out(
    examples: Sequence[SquadExample], share: float
) -> tuple[list[SquadExample], list[SquadExample]]:
    """Parts questions by article, always in the same way: by the SHA-256 of its title.

    Raises:
        ValueError: if one side would be empty.
    """
    titles = {example.title for example in examples}
    ordered = sorted(titles, key=lambda title: hashlib.sha256(title.encode()).digest())
    count = round(share * len(ordered))
    if not 0 < count < len(ordered):
        raise ValueError(f"held_out={share} of {len(ordered)} articles leaves one side empty")
    held = {*ordered[:count]}
    return (
        [example for example in examples if example.title not in held],
        [example for example in examples if example.title in held],
    )


def read(args: argparse.Namespace) -> tuple[list[SquadExample], list[SquadExample]]:
    """Questions to train on and to test on."""
    # A few answers of CMRC, as published, do not stand where the file says.
    repair = "repair" if args.version == "cmrc" else "error"
    train = read_squad(Path(args.data_dir) / args.train, repair)
    if args.held_out is None:
        dev = read_squad(Path(args.data_dir) / args.dev, repair)
    else:
        train, dev = hold_out(train, args.held_out)
    return learnable(train)[: args.limit], dev


def learnable(examples: Sequence[SquadExample]) -> list[SquadExample]:
    """Questions without those whose answers all are no piece of the context."""
    return [
        e
        for e in examples
        if not e.answers or any(answer.start is not None for answer in e.answers)
    ]


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    devices = training.strategy(args.strategy)  # first: several workers have to be
    train, dev = read(args)
    references = {e.id: [answer.text for answer in e.answers] for e in dev}
    decoding = {"max_answer_length": args.max_answer_length, "batch_size": args.batch_size}
    model, runs = None, []
    for seed in args.seed:
        keras.utils.set_random_seed(seed)
        with devices.scope():
            fresh = keras_bert.BertQuestionAnswerer.from_preset(
                args.preset,
                sequence_length=args.sequence_length,
                stride=args.stride,
                padding=args.padding,
                dtype=args.dtype,
                load_weights=not args.new_weights,
            )
        if model is None:
            model = fresh
            model.compile(
                learning_rate=args.learning_rate,
                accumulation_steps=args.accumulation_steps,
                steps_per_execution=args.steps_per_execution,
            )
        else:  # new weights in the old model, which is compiled already
            model.copy_state(fresh)
        output = Path(args.output_dir) / f"seed{seed}"
        timer = TrainingTimer()
        callbacks = [timer, *standard_callbacks(output, monitor="val_loss", mode="min")]
        if args.resume:
            resume = training.Resume(output / "checkpoints", monitor="val_loss", mode="min")
            callbacks.append(resume)
        model.counters.reset()
        history = model.fit(
            train,
            batch_size=args.batch_size,
            epochs=args.epochs,
            validation_data=learnable(dev),
            seed=seed,
            callbacks=callbacks,
        )
        rows = model.counters.read()["rows"] / max(len(timer.seconds), 1)  # windows of an epoch
        model.null_threshold = None
        if args.version == "2.0":
            model.tune_null_threshold(dev, **decoding)
        found = model.answer_examples(dev, **decoding)
        texts = {key: prediction.text for key, prediction in found.items()}
        odds = {key: prediction.null_score for key, prediction in found.items()}
        write_predictions(
            output, texts, null_odds=odds if args.version == "2.0" else None, examples=dev
        )
        model.save_to_preset(str(output / "preset"))
        scores = SCORERS[args.version](references, texts)
        metrics = {
            "version": args.version,
            "seed": seed,
            **scores,
            "null_threshold": model.null_threshold,
            "val_loss_by_epoch": history.history.get("val_loss", []),  # of this run
            "train_questions": len(train),
            "train_rows": round(rows),
            "train_seconds_by_epoch": timer.seconds,  # the first includes compilation
            "train_rows_per_second": rows / min(timer.seconds, default=math.inf),
        }
        (output / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n")
        print(json.dumps(metrics), flush=True)
        runs.append(metrics)
    summary = {"version": args.version, "runs": len(runs)}
    for name in scores:
        values = [run[name] for run in runs]
        summary[name] = {"mean": float(np.mean(values)), "deviation": float(np.std(values))}
    print(json.dumps(summary), flush=True)
    return summary | {"by_seed": runs}


if __name__ == "__main__":
    main()
