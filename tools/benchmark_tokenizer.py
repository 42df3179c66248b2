"""Measures text to ids on this CPU: keras_bert's tokenizer in tf.data beside Rust `tokenizers`.

Both get the same lines in batches, in turn, and every id is compared. Prints one JSON line.
Run: python tools/benchmark_tokenizer.py text.txt --vocabulary vocab.txt
"""

import argparse
import gzip
import json
import statistics
import time


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("text", help="a text file, plain or .gz")
    parser.add_argument("--vocabulary", required=True, help="a vocab.txt, lower-casing")
    parser.add_argument("--lines", type=int, default=60_000, help="but blank ones")
    parser.add_argument("--batch_size", type=int, default=1024, help="lines")
    parser.add_argument("--rounds", type=int, default=3, help="after one that does not count")
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before the imports that take seconds

import numpy as np
import tensorflow as tf
import tokenizers

import keras_bert
from keras_bert.serving.export_contract import versions


def read_lines(path: str, count: int) -> list[str]:
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        lines = (line.rstrip("\n") for line in file)
        return [line for _, line in zip(range(count), filter(str.strip, lines), strict=False)]


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    lines = read_lines(args.text, args.lines)
    megabytes = sum(len(line.encode()) for line in lines) / 1e6
    ours = keras_bert.BertTokenizer(args.vocabulary)
    batches = tf.data.Dataset.from_tensor_slices(lines).batch(args.batch_size)
    batches = batches.map(ours.tokenize, num_parallel_calls=tf.data.AUTOTUNE).prefetch(4)
    theirs = tokenizers.BertWordPieceTokenizer(args.vocabulary, lowercase=True)

    def run_ours() -> list[np.ndarray]:
        return [row for ids in batches for row in _rows(ids)]

    def run_theirs() -> list[list[int]]:
        found = []
        for start in range(0, len(lines), args.batch_size):
            part = lines[start : start + args.batch_size]
            found += [row.ids for row in theirs.encode_batch(part, add_special_tokens=False)]
        return found

    pairs = zip(run_ours(), run_theirs(), strict=True)
    differing = [i for i, (one, other) in enumerate(pairs) if list(one) != other]
    seconds = {"keras_bert": [], "tokenizers": []}
    for _ in range(args.rounds):
        for name, run in (("keras_bert", lambda: list(batches)), ("tokenizers", run_theirs)):
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    rates = {name: megabytes / statistics.median(times) for name, times in seconds.items()}
    result = {
        "lines": len(lines),
        "megabytes": round(megabytes, 1),
        "megabytes_per_second": {name: round(rate, 2) for name, rate in rates.items()},
        "ratio": round(rates["keras_bert"] / rates["tokenizers"], 2),
        "lines_with_other_ids": len(differing),
        "first_of_them": [lines[i][:80] for i in differing[:3]],
        "seconds": {name: [round(s, 6) for s in times] for name, times in seconds.items()},
        "versions": versions() | {"tokenizers": tokenizers.__version__},
    }
    print(json.dumps(result, ensure_ascii=False), flush=True)
    return result


def _rows(ids: tf.RaggedTensor) -> list[np.ndarray]:
    return np.split(ids.flat_values.numpy(), ids.row_splits.numpy()[1:-1])


if __name__ == "__main__":
    main()
