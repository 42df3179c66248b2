"""Makes a prepared corpus, shards of tokenized documents, of text files or TensorFlow Datasets.

usage: python tools/prepare_corpus.py 'corpus-*.txt.gz' --vocabulary vocab.txt --output_dir records

Call it again to go on after an interruption. What follows --beam goes to Apache Beam:
    --beam --runner=DataflowRunner --project=NAME --region=NAME --temp_location=gs://...
"""

import argparse
import os
import time

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")  # all of it is done on the host


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument(
        "files",
        nargs="+",
        help="names or globs of UTF-8 text, plain or .gz, or tfds:NAME or tfds:NAME:SPLIT",
    )
    parser.add_argument("--vocabulary", required=True, help="a vocabulary file")
    parser.add_argument("--output_dir", required=True, help="the corpus's folder")
    parser.add_argument("--cased", action="store_true", help="keep upper case, and accents")
    parser.add_argument(
        "--strip_accents",
        action=argparse.BooleanOptionalAction,
        help="default: as the case is lowered",
    )
    parser.add_argument("--format", choices=["sentences", "paragraphs"], default="sentences")
    parser.add_argument("--language", default="en", help="of paragraphs, ISO 639-1")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0, help="of the order of documents")
    parser.add_argument("--tfds_data_dir", help="where TensorFlow Datasets lie")
    parser.add_argument("--workers", type=int, help="threads; default: one a core")
    parser.add_argument("--overwrite", action="store_true", help="delete another corpus there")
    parser.add_argument(
        "--beam", nargs=argparse.REMAINDER, default=[], help="last: options of Apache Beam"
    )
    args = parser.parse_args(arguments)

    import keras_bert
    from keras_bert.data import prepare_corpus

    start = time.time()
    tokenizer = keras_bert.BertTokenizer(
        args.vocabulary, lowercase=not args.cased, strip_accents=args.strip_accents
    )
    index = prepare_corpus(
        args.files,
        args.output_dir,
        tokenizer,
        shards=args.shards,
        seed=args.seed,
        format=args.format,
        language=args.language,
        data_dir=args.tfds_data_dir,
        overwrite=args.overwrite,
        workers=args.workers,
        beam_options=args.beam,
    )
    print(
        f"{index.documents:,} documents, {index.sentences:,} sentences and {index.tokens:,} tokens "
        f"in {len(index.shards)} shards in {index.folder}, {time.time() - start:.0f} s"
    )
    for kind, count in index.left_out.items():
        print(f"{kind.replace('_', ' ')}: {count:,}")


if __name__ == "__main__":
    main()
