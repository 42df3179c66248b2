"""The flags of `keras-bert pretrain`."""

import argparse

from keras_bert_cli.main import STRATEGIES

SUMMARY = "Pre-train a BERT on a prepared corpus: masked tokens, next sentences, or either alone."
OPTIMIZERS = ("adamw", "lamb", "muon")


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Reads the flags; ends the process where they are wrong, or after --help."""
    parser = argparse.ArgumentParser(
        prog="keras-bert pretrain", description=SUMMARY, allow_abbrev=False
    )
    parser.add_argument("--corpus", required=True, help="folder of the prepared corpus")
    parser.add_argument("--heldout", help="one to evaluate on, at masks that stay the same")
    parser.add_argument("--output_dir", default="runs/pretrain")
    parser.add_argument(
        "--size", help="a published size or LAYERS and WIDTH: L6_H384 (default: mini)"
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
        choices=("nsp", "sop", "nsp_sop", "mlm", "lm"),
        default="nsp",
        help="masks and next sentences, or sentence order, or either, or alone; lm: a causal model "
        "of the next token",
    )
    parser.add_argument("--cross_documents", action="store_true", help="of mlm and lm: full rows")
    parser.add_argument("--short_seq_prob", type=float, default=0.1, help="share of shorter rows")
    parser.add_argument(
        "--mask_rate", type=float, nargs="+", default=[0.15], help="or two: from the first to this"
    )
    parser.add_argument(
        "--rate_steps", type=int, help="of phase 1 until the second --mask_rate; default: all"
    )
    parser.add_argument(
        "--mask_share", type=float, default=0.8, help="of the masked tokens, that become [MASK]"
    )
    parser.add_argument(
        "--random_share", type=float, default=0.1, help="that become a random token; the rest stay"
    )
    parser.add_argument("--mask_unit", choices=("piece", "word"), default="piece")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="adamw")
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--decay", choices=("linear", "cosine", "constant"), default="linear")
    parser.add_argument("--hold", type=float, default=0.0, help="share at the peak before decay")
    parser.add_argument("--warmup", type=float, default=0.02, help="share of the run")
    parser.add_argument("--weight_decay", type=float, default=0.01)
    parser.add_argument("--dropout", type=float, help="default: 0.1, or that of --preset")
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
    if args.size and args.preset:
        parser.error(f"--size {args.size}: --preset has a size of its own, expected one of the two")
    if len(args.mask_rate) > 2:
        parser.error(f"--mask_rate has {len(args.mask_rate)} values, expected one or two")
    if len(args.mask_rate) == 1 and args.rate_steps:
        parser.error("--rate_steps needs two values of --mask_rate")
    if len(args.mask_rate) == 2 and not args.steps and not args.rate_steps:
        parser.error("--minutes does not say how many steps there are: pass --rate_steps as well")
    return args
