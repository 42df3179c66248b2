"""Times transformers' text-classification pipeline, for what serve_check.py says of an export.

Run on one core each:
    taskset -c 0 python tools/peers/pipeline.py WEIGHTS --texts texts.txt --threads 1
    taskset -c 0 python tools/serve_check.py EXPORT --texts texts.txt --threads 1 --batch_sizes 1 32
"""

import argparse
import time


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("weights", help="folder of a BertForSequenceClassification")
    parser.add_argument("--texts", required=True, help="a file with one text a line")
    parser.add_argument("--batch_sizes", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--seconds", type=float, default=5.0, help="of measuring, a batch size")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    parse()  # wrong flags and --help end here, before the imports that take seconds

import numpy as np
import torch
import transformers


def main():
    args = parse()
    torch.set_num_threads(args.threads)
    with open(args.texts, encoding="utf-8") as file:
        texts = [line.rstrip("\n") for line in file]
    pipe = transformers.pipeline("text-classification", model=args.weights, device="cpu")
    for size in args.batch_sizes:
        batches = [texts[i : i + size] for i in range(0, len(texts) - size + 1, size)]
        for batch in batches[:3]:
            pipe(batch, batch_size=size)
        seconds, cpu, number = [], 0.0, 0
        while sum(seconds) < args.seconds or len(seconds) < 20:
            begin, before = time.perf_counter(), time.process_time()
            pipe(batches[number % len(batches)], batch_size=size)
            seconds.append(time.perf_counter() - begin)
            cpu += time.process_time() - before
            number += 1
        p50, p99 = np.percentile(seconds, [50, 99]) * 1e3
        rate = size * len(seconds) / sum(seconds)
        each = 1e3 * cpu / len(seconds) / size
        said = f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, {rate:.1f} rows/s"
        print(f"{size} rows: {said}, {each:.2f} ms of processor time a row")


if __name__ == "__main__":
    main()
