"""Measures the pre-training stream, from shards on the disk to batches: rows a second.

Prints one JSON line: the rate of each part, and of these the best and the median.
Run: python tools/benchmark_stream.py records/ --sequence_length 512 --max_predictions 80
"""

import argparse
import json
import os
import statistics
import time


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("folder", help="of a prepared corpus")
    parser.add_argument("--sequence_length", type=int, default=128)
    parser.add_argument("--max_predictions", type=int, default=20)
    parser.add_argument(
        "--objective", choices=("nsp", "sop", "nsp_sop", "mlm", "lm"), default="nsp"
    )
    parser.add_argument("--batch_size", type=int, default=256)
    parser.add_argument("--unit", choices=("piece", "word"), default="piece", help="that is masked")
    parser.add_argument("--rows", type=int, default=50_000, help="rows of a part")
    parser.add_argument("--parts", type=int, default=5, help="parts, after one to warm up")
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before the imports that take seconds

from keras_bert.data.pretraining import pretraining_dataset


def main(argv: list[str] | None = None) -> dict:
    args = parse(argv)
    batches = iter(
        pretraining_dataset(
            args.folder,
            args.sequence_length,
            args.max_predictions,
            args.objective,
            args.batch_size,
            unit=args.unit,
        )
    )
    steps = -(-args.rows // args.batch_size)
    rates = []
    for _ in range(args.parts + 1):
        start = time.perf_counter()
        for _ in range(steps):
            next(batches)
        rates.append(round(steps * args.batch_size / (time.perf_counter() - start)))
    result = {
        **vars(args),
        "cores": len(os.sched_getaffinity(0)),
        "rows_per_second": rates[1:],
        "best": max(rates[1:]),
        "median": statistics.median(rates[1:]),
    }
    print(json.dumps(result), flush=True)
    return result


if __name__ == "__main__":
    main()
