"""Processor time of `answer_shards` beside `answer_file`, on the same rows, in turns.

    python tools/benchmark_answers.py EXPORT TEXTS.txt --rows 20000 --rounds 3

Each call loads the export and answers all rows; the first round, in which the graph is compiled for
each length, is not counted. Prints processor seconds of all threads and the ratios per round, and
compares the answers.
"""

import argparse
import itertools
import json
import tempfile
import time
from pathlib import Path


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("export")
    parser.add_argument("texts", type=Path, help="one text per line")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rows_per_shard", type=int, default=5_000)
    return parser.parse_args()


if __name__ == "__main__":
    parse()  # wrong flags and --help end here, before the imports that take seconds

import numpy as np

from keras_bert.serving.beam import answer_shards
from keras_bert.serving.bulk import answer_file


def main() -> None:
    args = parse()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "in.txt")
        with open(args.texts, encoding="utf-8") as file:
            path.write_text("".join(itertools.islice(file, args.rows)), encoding="utf-8")
        ratios = []
        for number in range(args.rounds + 1):
            seconds = []
            for kind in ("file", "shards"):
                begin, wall = time.process_time(), time.perf_counter()
                output = Path(folder, f"{kind}{number}")
                if kind == "file":
                    answer_file(args.export, path, output, verbose=False)
                else:
                    answer_shards(
                        args.export,
                        path,
                        output,
                        rows_per_shard=args.rows_per_shard,
                        workers=args.workers,
                        verbose=False,
                    )
                seconds.append(time.process_time() - begin)
                wall = time.perf_counter() - wall
                print(f"{number} answer_{kind}: {seconds[-1]:.1f} s of processors, {wall:.1f} s")
            if number:
                ratios.append(seconds[1] / seconds[0])
        lines = [json.loads(line) for line in open(Path(folder, "file0"), encoding="utf-8")]
        shards = sorted(Path(folder, "shards0").glob("answers-*"))
        found = [json.loads(line) for shard in shards for line in open(shard, encoding="utf-8")]
        numbers = [name for name, value in lines[0].items() if isinstance(value, float | list)]
        gap = max(
            np.abs(np.subtract(a[name], b[name])).max()
            for a, b in zip(lines, found, strict=True)
            for name in numbers
        )
        print(
            json.dumps(
                {
                    "rows": len(lines),
                    "ratio of processor time": [round(ratio, 3) for ratio in sorted(ratios)],
                    "largest difference": float(gap),
                }
            )
        )


if __name__ == "__main__":
    main()
