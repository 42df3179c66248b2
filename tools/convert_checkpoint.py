"""Writes a checkpoint in the form of another library, heads, vocabulary and settings included.

Reads google-research/bert's files, Hugging Face directories, KerasHub presets and our own.
Run: python tools/convert_checkpoint.py --from uncased_L-12_H-768_A-12 --to DIR --format huggingface
"""

import argparse


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument(
        "--from",
        dest="source",
        required=True,
        metavar="SRC",
        help="a folder; the prefix or .index file of a TensorFlow checkpoint; a name or address",
    )
    parser.add_argument("--to", required=True, metavar="DST", help="the folder to make")
    forms = ("google", "huggingface", "kerashub", "sentence_transformers", "keras_bert")
    parser.add_argument("--format", required=True, choices=forms)
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before the imports that take seconds

from keras_bert.tasks.conversion import convert_checkpoint


def main(argv: list[str] | None = None) -> list[str]:
    args = parse(argv)
    notes = convert_checkpoint(args.source, args.to, args.format)
    print(f"{args.to}: {args.format}")
    for note in notes:
        print(f"  {note}")
    return notes


if __name__ == "__main__":
    main()
