"""Writes a model's answers to all rows of files, by an export: JSON lines in the order of the rows.

usage: python tools/predict_file.py EXPORT reviews.csv.gz --columns text=review --output out.jsonl

Call it again to go on after an interruption. The export's strings signatures need TensorFlow and
TensorFlow Text; `keras_bert.serving.bulk.answer_file` does the same, and takes a task too.
"""

import argparse
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("export", help="the folder that `export` wrote")
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help=".jsonl, .csv or .tsv with a header line, .txt with one text a line, each plain or "
        ".gz, or folders of such files",
    )
    parser.add_argument("--output", required=True, help="the file of JSON lines to write")
    parser.add_argument("--signature", default="serving_default")
    parser.add_argument(
        "--columns",
        nargs="+",
        default=[],
        type=_column,
        metavar="INPUT=COLUMN",
        help="where a column has another name than the signature's input: text=sentence",
    )
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--no_resume", action="store_true", help="replace what the output holds")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    args = parser.parse_args(arguments)

    from keras_bert.serving.bulk import answer_file

    try:
        answer_file(
            args.export,
            args.inputs,
            args.output,
            signature=args.signature,
            columns=dict(args.columns),
            batch_size=args.batch_size,
            resume=not args.no_resume,
            verbose=not args.quiet,
        )
    except (ValueError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on from here")


def _column(text: str) -> tuple[str, str]:
    name, sign, column = text.partition("=")
    if not (name and sign and column):
        raise argparse.ArgumentTypeError(f"{text!r}: expected INPUT=COLUMN")
    return name, column


if __name__ == "__main__":
    main()
