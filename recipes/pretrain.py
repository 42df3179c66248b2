"""Pre-trains a BERT on a prepared corpus: masked tokens and next sentences.

Source: Devlin et al. 2019, appendix A.2: 90% of the steps with rows of 128 tokens, the rest with
512, Adam with learning rate 1e-4, warm-up and linear decay.
Data: folders made by keras-bert corpus.
Results and times: recipes/README.md.
Run: python recipes/pretrain.py --corpus DIR --heldout DIR --size mini --steps 10000
"""

import argparse
import json
import signal
import time
from pathlib import Path

from recipe_flags import STRATEGIES


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--corpus", required=True, help="folder of the prepared corpus")
    parser.add_argument("--heldout", help="one to evaluate on, at masks that stay the same")
    parser.add_argument("--output_dir", default="runs/pretrain")
    parser.add_argument(
        "--size", default="mini", help="a published size or LAYERS and WIDTH: L6_H384"
    )
    parser.add_argument("--preset", help="go on with this BERT instead of a new one")
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--steps", type=int, help="updates of all phases together")
    length.add_argument("--minutes", type=float, help="or time on the clock, with compilation")
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.9, 0.1], help="of the run")
    parser.add_argument("--predictions", type=int, nargs="+", default=[20, 80], help="masks a row")
    parser.add_argument("--batch_sizes", type=int, nargs="+", default=[256, 256])
    parser.add_argument("--objective", choices=("nsp", "mlm"), default="nsp")
    parser.add_argument("--mask_unit", choices=("piece", "word"), default="piece")
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--warmup", type=float, default=0.02, help="share of the run")
    parser.add_argument("--weight_decay", type=float, default=0.01)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--accumulation_steps", type=int, default=1)
    parser.add_argument("--dtype", default="float32", help='such as "mixed_bfloat16" on a GPU')
    parser.add_argument("--strategy", choices=STRATEGIES, default="auto", help="of devices")
    parser.add_argument("--report_every", type=int, default=1000, help="steps between evaluations")
    parser.add_argument("--resume", action="store_true", help="save, and go on where it stopped")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    names = ["lengths", "shares", "predictions", "batch_sizes"]
    counts = {f"--{name}": len(getattr(args, name)) for name in names}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{name} has {count}" for name, count in counts.items())
        parser.error(f"expected one value a phase in each: {found}")
    if abs(sum(args.shares) - 1) > 1e-6:
        parser.error(f"--shares add up to {sum(args.shares)}, expected 1")
    return args


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported

import keras
import numpy as np

import keras_bert
from keras_bert import training
from keras_bert.data import pretraining_dataset, read_index

from curves import draw_curves


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    devices = training.strategy(args.strategy)  # first: several workers have to be
    keras.utils.set_random_seed(args.seed)
    output = Path(args.output_dir)
    next_sentence = args.objective == "nsp"
    index = read_index(args.corpus)
    tokenizer = index.make_tokenizer()
    with devices.scope():
        model = make_model(args, tokenizer, next_sentence)
        # One schedule over all phases.
        if args.steps:
            warmup_steps = round(args.warmup * args.steps)
            schedule = training.WarmupDecay(args.learning_rate, args.steps, warmup_steps)
        else:
            schedule = training.ShareSchedule(args.learning_rate, args.warmup)
        model.compile(
            optimizer=training.AdamW(schedule, args.weight_decay),
            accumulation_steps=args.accumulation_steps,
        )
    results = {"parameters": model.count_params()}
    print(
        f"{index.documents:,} documents, {index.tokens:,} tokens; {model.count_params():,} weights",
        flush=True,
    )
    bounds = np.cumsum([0, *args.shares])
    steps = np.diff(np.round((args.steps or 0) * bounds)).astype(int).tolist()
    clock = {"elapsed": 0.0}
    for number in range(len(args.shares)):
        if args.steps and not steps[number]:
            continue
        settings = {
            "sequence_length": args.lengths[number],
            "max_predictions": args.predictions[number],
            "batch_size": args.batch_sizes[number],
            "objective": args.objective,
            "unit": args.mask_unit,
            "tokenizer": tokenizer,
        }
        stream = pretraining_dataset(args.corpus, seed=args.seed + number, **settings)
        heldout = args.heldout and pretraining_dataset(args.heldout, repeat=False, **settings)
        folder = output / f"phase{number + 1}"
        log = training.JsonLines(folder / "log.jsonl")
        callbacks = [training.Throughput(), training.StopOnNaN(folder), log]
        if args.resume:
            callbacks.append(training.Resume(folder / "checkpoints"))
        length = {"steps": steps[number]}
        if args.minutes:
            budget = training.TimeBudget(60 * args.minutes, schedule, min(1.0, bounds[number + 1]))
            budget.set_state(clock)
            callbacks.append(budget)
            length = {"epochs": 10**6}  # time ends it
        begin = time.perf_counter()
        model.fit(
            stream,
            **length,
            steps_per_epoch=min(args.report_every, steps[number] or args.report_every),
            validation_data=heldout,
            callbacks=callbacks,
        )
        seconds = time.perf_counter() - begin
        if args.minutes:
            clock = budget.get_state()
        done = model.run.done
        found = {"steps": done, "length": args.lengths[number], "seconds": seconds}
        if heldout:
            found["heldout"] = model.evaluate(heldout, return_dict=True, verbose=0)
        results[f"phase{number + 1}"] = found
        model.save_to_preset(str(output / "preset"))
        draw_curves(folder / "log.jsonl", folder / "curves.png")
    (output / "metrics.json").write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results), flush=True)
    return results


def make_model(args, tokenizer, next_sentence: bool) -> keras_bert.BertPretrainer:
    """A pretrainer with new weights, or with those of a checkpoint with this vocabulary."""
    if args.preset:
        model = keras_bert.BertPretrainer.from_preset(
            args.preset, next_sentence=next_sentence, dtype=args.dtype
        )
        found = model.backbone.vocabulary_size
        if found != tokenizer.vocabulary_size():
            raise ValueError(
                f"{args.preset} has a vocabulary of {found} tokens, {args.corpus} one of "
                f"{tokenizer.vocabulary_size()}"
            )
        return model
    backbone = keras_bert.BertBackbone.from_size(
        args.size,
        vocabulary_size=tokenizer.vocabulary_size(),
        max_sequence_length=max(args.lengths),
        hidden_dropout=args.dropout,
        attention_dropout=args.dropout,
        dtype=args.dtype,
    )
    preprocessor = keras_bert.BertMaskedLMPreprocessor(tokenizer, max(args.lengths))
    return keras_bert.BertPretrainer(backbone, next_sentence, preprocessor)


if __name__ == "__main__":
    # Ctrl-C as SIGTERM: with --resume the step that runs is saved before the process ends.
    signal.signal(signal.SIGINT, lambda *_: signal.raise_signal(signal.SIGTERM))
    main()
