"""Pre-trains a BERT on a prepared corpus: masked tokens and next sentences, or either alone.

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

OPTIMIZERS = ("adamw", "lamb", "muon")


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--corpus", required=True, help="folder of the prepared corpus")
    parser.add_argument("--heldout", help="one to evaluate on, at masks that stay the same")
    parser.add_argument("--output_dir", default="runs/pretrain")
    parser.add_argument(
        "--size", default="mini", help="a published size or LAYERS and WIDTH: L6_H384"
    )
    parser.add_argument("--preset", help="go on with this BERT instead of a new one")
    parser.add_argument("--steps", type=int, help="updates of all phases together")
    parser.add_argument(
        "--minutes", type=float, help="time on the clock, with compilation: the end, or a limit"
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.9, 0.1], help="of the run")
    parser.add_argument("--predictions", type=int, nargs="+", default=[20, 80], help="masks a row")
    parser.add_argument("--batch_sizes", type=int, nargs="+", default=[256, 256])
    parser.add_argument(
        "--objective",
        choices=("nsp", "sop", "mlm", "lm"),
        default="nsp",
        help="masks and next sentences, or sentence order, or alone; lm: a causal model of the "
        "next token",
    )
    parser.add_argument("--cross_documents", action="store_true", help="of mlm and lm: full rows")
    parser.add_argument("--short_seq_prob", type=float, default=0.1, help="share of shorter rows")
    parser.add_argument(
        "--mask_rate", type=float, nargs="+", default=[0.15], help="or two: from the first to this"
    )
    parser.add_argument(
        "--rate_steps", type=int, help="of phase 1 until the second --mask_rate; default: all"
    )
    parser.add_argument("--mask_unit", choices=("piece", "word"), default="piece")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="adamw")
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--decay", choices=("linear", "cosine", "constant"), default="linear")
    parser.add_argument("--hold", type=float, default=0.0, help="share at the peak before decay")
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
    if not (args.steps or args.minutes):
        parser.error("one of the arguments --steps and --minutes is required")
    names = ["lengths", "shares", "predictions", "batch_sizes"]
    counts = {f"--{name}": len(getattr(args, name)) for name in names}
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{name} has {count}" for name, count in counts.items())
        parser.error(f"expected one value a phase in each: {found}")
    if abs(sum(args.shares) - 1) > 1e-6:
        parser.error(f"--shares add up to {sum(args.shares)}, expected 1")
    if len(args.mask_rate) > 2:
        parser.error(f"--mask_rate has {len(args.mask_rate)} values, expected one or two")
    if len(args.mask_rate) == 1 and args.rate_steps:
        parser.error("--rate_steps needs two values of --mask_rate")
    if len(args.mask_rate) == 2 and not args.steps and not args.rate_steps:
        parser.error("--minutes does not say how many steps there are: pass --rate_steps as well")
    return args


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported

import keras
import numpy as np

import keras_bert
from keras_bert import training
from keras_bert.data import pretraining_dataset, read_index

from curves import draw_curves, write_heldout


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    devices = training.strategy(args.strategy)  # first: several workers have to be
    keras.utils.set_random_seed(args.seed)
    output = Path(args.output_dir)
    next_sentence = args.objective in ("nsp", "sop")
    index = read_index(args.corpus)
    tokenizer = index.make_tokenizer()
    with devices.scope():
        model = make_model(args, tokenizer, next_sentence)
        # One schedule over all phases.
        if args.steps:
            warmup_steps = round(args.warmup * args.steps)
            schedule = training.WarmupDecay(
                args.learning_rate, args.steps, warmup_steps, args.decay, hold=args.hold
            )
        else:
            schedule = training.ShareSchedule(
                args.learning_rate, args.warmup, args.decay, hold=args.hold
            )
        model.compile(
            optimizer=make_optimizer(args.optimizer, schedule, args.weight_decay),
            accumulation_steps=args.accumulation_steps,
        )
    results = {"parameters": model.count_params()}
    print(
        f"{index.documents:,} documents, {index.tokens:,} tokens; {model.count_params():,} weights",
        flush=True,
    )
    bounds = np.cumsum([0, *args.shares])
    steps = np.diff(np.round((args.steps or 0) * bounds)).astype(int).tolist()
    clock: dict = {}
    for number in range(len(args.shares)):
        if args.steps and not steps[number]:
            continue
        if args.minutes and clock.get("elapsed", 0.0) >= 60 * args.minutes:
            break  # the time is over
        settings = {
            "sequence_length": args.lengths[number],
            "max_predictions": args.predictions[number],
            "batch_size": args.batch_sizes[number],
            "objective": args.objective,
            "cross_documents": args.cross_documents,
            "short_seq_prob": args.short_seq_prob,
            "tokenizer": tokenizer,
        }
        stream = pretraining_dataset(
            args.corpus,
            seed=args.seed + number,
            **settings,
            **masking(args, number, steps, heldout=False),
        )
        heldout = args.heldout and pretraining_dataset(
            args.heldout, repeat=False, **settings, **masking(args, number, steps, heldout=True)
        )
        folder = output / f"phase{number + 1}"
        log = training.JsonLines(folder / "log.jsonl")
        callbacks = [training.Throughput(), training.StopOnNaN(folder), log]
        if args.resume:
            callbacks.append(training.Resume(folder / "checkpoints"))
        length = {"steps": steps[number]} if args.steps else {"epochs": 10**6}  # time ends it
        if args.minutes:
            until = 1.0 if args.steps else min(1.0, bounds[number + 1])
            by_time = None if args.steps else schedule
            budget = training.TimeBudget(60 * args.minutes, by_time, until)
            if clock:
                budget.set_state(clock)
            callbacks.append(budget)
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
    logs = [output / f"phase{number + 1}" / "log.jsonl" for number in range(len(args.shares))]
    write_heldout(logs, output / "heldout.json")
    (output / "metrics.json").write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results), flush=True)
    return results


def make_optimizer(name: str, schedule, weight_decay: float) -> keras.optimizers.Optimizer:
    """An optimizer by its name."""
    rules = {"adamw": training.AdamW, "lamb": training.Lamb, "muon": training.Muon}
    return rules[name](schedule, weight_decay)


def masking(args, number: int, steps: list[int], heldout: bool) -> dict:
    """Settings of the masks of one phase.

    Args:
        args: the flags.
        number: the phase, from 0.
        steps: steps of each phase, zeros if the run ends by the clock.
        heldout: whether they are those of the held-out corpus, which has the last rate.
    """
    if args.objective == "lm":
        return {}
    first, last = args.mask_rate[0], args.mask_rate[-1]
    settings = {"unit": args.mask_unit, "rate": last}
    if heldout or first == last:
        return settings
    if args.rate_steps:
        if number == 0:
            settings |= {"rate": first, "final_rate": last, "rate_steps": args.rate_steps}
        return settings
    before, total = sum(steps[:number]), sum(steps)
    begin, end = (first + (last - first) * n / total for n in (before, before + steps[number]))
    return settings | {"rate": begin, "final_rate": end, "rate_steps": steps[number]}


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
        causal=args.objective == "lm",
        dtype=args.dtype,
    )
    preprocessor = keras_bert.BertMaskedLMPreprocessor(tokenizer, max(args.lengths))
    return keras_bert.BertPretrainer(backbone, next_sentence, preprocessor)


if __name__ == "__main__":
    # Ctrl-C as SIGTERM: with --resume the step that runs is saved before the process ends.
    signal.signal(signal.SIGINT, lambda *_: signal.raise_signal(signal.SIGTERM))
    main()
