"""Fine-tunes a BERT to answer questions by a piece of a text, and scores its answers.

Source: Devlin et al. 2019, sections 4.2 and 4.3: batch 32, 3 epochs at 5e-5 on SQuAD 1.1, and
batch 48, 2 epochs at 5e-5 on SQuAD 2.0; rows of 384, windows 128 apart (run_squad.py).
Data: JSON files in the layout of SQuAD: SQuAD 1.1, SQuAD 2.0, XQuAD, CMRC 2018. Of SQuAD 2.0 the
threshold for no answer is tuned on the questions that are scored, as the paper did.
Run: python recipes/squad.py --preset DIR --train train-v1.1.json --dev dev-v1.1.json --seed 0
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from recipe_flags import add_bilstm_flag, flags, need


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = flags(__doc__, learning_rate=5e-5, sequence_length=384)
    versions = ("1.1", "2.0", "cmrc")
    parser.add_argument("--version", choices=versions, default="1.1", help="rules and scores")
    parser.add_argument("--data_dir", default=".", help="folder of the files below")
    parser.add_argument("--train", required=True, help="JSON file, plain or with .gz added")
    parser.add_argument("--dev", help="likewise; not with --held_out")
    parser.add_argument(
        "--held_out", type=float, help="share of the training file's articles to test on instead"
    )
    parser.add_argument("--stride", type=int, help="128, or half a window of short rows")
    parser.add_argument("--max_answer_length", type=int, default=30)
    add_bilstm_flag(parser)
    args = parser.parse_args(argv)
    if (args.dev is None) == (args.held_out is None):
        parser.error("expected one of --dev and --held_out")
    if args.version == "cmrc":
        need(parser, "nltk", "metrics", "the score of CMRC 2018")
    return args


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before TensorFlow is imported

import keras_bert
from keras_bert.data import SquadExample, hold_out_articles, read_squad, write_predictions
from keras_bert.metrics import cmrc_scores, squad_v1_scores, squad_v2_scores
from keras_bert.training import strategy

from bilstm import BiLSTMQuestionAnswerer
from experiment import run_seeds

SCORERS = {"1.1": squad_v1_scores, "2.0": squad_v2_scores, "cmrc": cmrc_scores}


def read(args: argparse.Namespace) -> tuple[list[SquadExample], list[SquadExample]]:
    """Questions to train on and to test on."""
    # A few answers of CMRC, as published, do not stand where the file says.
    repair = "repair" if args.version == "cmrc" else "error"
    train = read_squad(Path(args.data_dir) / args.train, repair)
    if args.held_out is None:
        dev = read_squad(Path(args.data_dir) / args.dev, repair)
    else:
        train, dev = hold_out_articles(train, args.held_out)
    return learnable(train)[: args.limit], dev


def learnable(examples: Sequence[SquadExample]) -> list[SquadExample]:
    """Questions without those whose answers all are no piece of the context; says how many."""
    kept = [
        e
        for e in examples
        if not e.answers or any(answer.start is not None for answer in e.answers)
    ]
    if len(kept) < len(examples):
        print(f"{len(examples) - len(kept)} questions have no answer that is in their context")
    return kept


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    devices = strategy(args.strategy)
    train, dev = read(args)
    references = {e.id: [answer.text for answer in e.answers] for e in dev}
    decoding = {"max_answer_length": args.max_answer_length, "batch_size": args.batch_size}

    def score(model, output):
        model.null_threshold = None
        if args.version == "2.0":
            model.tune_null_threshold(dev, **decoding)
        found = model.answer_examples(dev, **decoding)
        texts = {key: prediction.text for key, prediction in found.items()}
        odds = {key: prediction.null_score for key, prediction in found.items()}
        write_predictions(
            output, texts, null_odds=odds if args.version == "2.0" else None, examples=dev
        )
        scores = SCORERS[args.version](references, texts)
        return {"version": args.version, **scores, "null_threshold": model.null_threshold}

    kind = BiLSTMQuestionAnswerer if args.bilstm else keras_bert.BertQuestionAnswerer
    make = partial(kind.from_preset, stride=args.stride)
    data = {"x": train, "validation_data": learnable(dev)}
    return run_seeds(args, devices, make, data, score, monitor="val_loss", mode="min")


if __name__ == "__main__":
    main()
