"""Trains a WordPiece vocabulary on text files.

usage: python tools/build_vocab.py 'corpus-*.txt.gz' --size 8192 --output vocab.txt
"""

import argparse
import os
import sys
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")  # all of it is done on the host


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("files", nargs="+", help="names or globs of UTF-8 text, plain or .gz")
    parser.add_argument("--size", type=int, required=True, help="tokens of the vocabulary")
    parser.add_argument("--output", required=True, help="the vocabulary file to write")
    parser.add_argument("--cased", action="store_true", help="keep upper case, and accents")
    parser.add_argument(
        "--strip_accents",
        action=argparse.BooleanOptionalAction,
        help="default: as the case is lowered",
    )
    parser.add_argument("--unused", type=int, default=0, help="[unusedN] tokens to set aside")
    parser.add_argument("--min_frequency", type=int, default=2, help="of a pair that is merged")
    parser.add_argument("--alphabet_size", type=int, default=1000, help="characters to keep")
    args = parser.parse_args(arguments)
    if os.path.exists(args.output):
        sys.exit(f"{args.output} is there already; delete it, or choose another --output")

    from keras_bert.data import build_vocabulary
    from keras_bert.text.vocabulary import write_vocabulary

    start = time.time()
    tokens = build_vocabulary(
        args.files,
        args.size,
        lowercase=not args.cased,
        strip_accents=args.strip_accents,
        unused=args.unused,
        min_frequency=args.min_frequency,
        alphabet_size=args.alphabet_size,
    )
    write_vocabulary(args.output, tokens)
    print(f"{len(tokens)} tokens in {args.output}, {time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
