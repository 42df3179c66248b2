"""Pre-trains a BERT on a prepared corpus: masked tokens and next sentences, or either alone.

Source: Devlin et al. 2019, appendix A.2: 90% of the steps with rows of 128 tokens, the rest with
512, Adam with learning rate 1e-4, warm-up and linear decay.
Data: folders made by keras-bert corpus.
Results and times: recipes/README.md.
Run: keras-bert pretrain --corpus DIR --heldout DIR --size mini --steps 10000
"""

import json
import time
from pathlib import Path

import keras
import numpy as np

import keras_bert
from keras_bert import training
from keras_bert.data import pretraining_dataset, read_index
from keras_bert.data.pretraining import PAIRS
from keras_bert_cli.curves import draw_curves, write_heldout
from keras_bert_cli.pretrain_flags import parse


def main(argv: list[str] | None = None) -> dict:
    """Pre-trains, phase by phase; writes preset, logs and pictures to the output folder.

    Args:
        argv: the flags, see `keras_bert_cli.pretrain_flags`.

    Returns:
        The content of metrics.json.
    """
    args = parse(argv)
    devices = training.strategy(args.strategy)  # first: several workers have to be
    keras.utils.set_random_seed(args.seed)
    output = Path(args.output_dir)
    next_sentence = args.objective in PAIRS
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
        # Those of a preset have learnt something.
        if number and not args.preset and args.lengths[number] > max(args.lengths[:number]):
            repeat_positions(model.backbone, max(args.lengths[:number]), args.lengths[number])
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


def repeat_positions(backbone: keras_bert.BertBackbone, used: int, length: int) -> None:
    """Sets the rows of the position table from `used` to `length` to its first ones, repeated.

    Source: Beltagy et al. 2020, section 5. From random rows a phase near the end of a schedule does
    not learn them.
    """
    table = backbone.get_layer("embeddings").position_table
    values = keras.ops.convert_to_numpy(table).copy()
    values[used:length] = values[np.arange(used, length) % used]
    table.assign(values)


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
    settings |= {"mask_share": args.mask_share, "random_share": args.random_share}
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
    settings = {"causal": args.objective == "lm", "dtype": args.dtype}
    dropout = 0.1 if args.dropout is None and not args.preset else args.dropout
    if dropout is not None:
        settings |= {"hidden_dropout": dropout, "attention_dropout": dropout}
    if args.preset:
        model = keras_bert.BertPretrainer.from_preset(
            args.preset, next_sentence=next_sentence, **settings
        )
        found = model.backbone.vocabulary_size
        if found != tokenizer.vocabulary_size():
            raise ValueError(
                f"{args.preset} has a vocabulary of {found} tokens, {args.corpus} one of "
                f"{tokenizer.vocabulary_size()}"
            )
        return model
    backbone = keras_bert.BertBackbone.from_size(
        args.size or "mini",
        vocabulary_size=tokenizer.vocabulary_size(),
        max_sequence_length=max(args.lengths),
        **settings,
    )
    preprocessor = keras_bert.BertMaskedLMPreprocessor(tokenizer, max(args.lengths))
    return keras_bert.BertPretrainer(backbone, next_sentence, preprocessor)
