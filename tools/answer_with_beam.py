"""Answers files with an export on Apache Beam: `keras_bert.serving.beam.answer_shards`.

    python tools/answer_with_beam.py EXPORT 'gs://bucket/reviews/*.parquet' -o gs://bucket/answers \
        --column text=review --runner=DataflowRunner --project=...

Options that are not listed by --help go to Beam. The same command again goes on where the last one
stopped. Prints the counts as one line of JSON; the exit status is 0 also if rows failed.
"""

import argparse
import json


def parse(arguments: list[str] | None = None) -> tuple[argparse.Namespace, list[str]]:
    """(flags, options of Beam)."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("export", help="folder of the export")
    parser.add_argument("input", nargs="+", help="files or globs")
    parser.add_argument("-o", "--output", required=True, help="folder for the answers")
    parser.add_argument("--signature", default="serving_default")
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="INPUT=NAME",
        help="a column, where its name differs from that of the input",
    )
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--rows_per_shard", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=1, help="threads on this machine")
    parser.add_argument("--overwrite", action="store_true")
    args, beam_options = parser.parse_known_args(arguments)
    if odd := [pair for pair in args.column if "=" not in pair]:
        parser.error(f"--column {odd[0]}: expected INPUT=NAME")
    return args, beam_options


if __name__ == "__main__":
    parse()  # wrong flags and --help end here, before the imports that take seconds

from keras_bert.serving.beam import answer_shards  # noqa: E402


def main(arguments: list[str] | None = None) -> None:
    args, beam_options = parse(arguments)
    counts = answer_shards(
        args.export,
        args.input,
        args.output,
        args.signature,
        dict(pair.split("=", 1) for pair in args.column),
        args.batch_size,
        rows_per_shard=args.rows_per_shard,
        overwrite=args.overwrite,
        workers=args.workers,
        beam_options=beam_options,
    )
    print(json.dumps(counts._asdict()))


if __name__ == "__main__":
    main()
