"""Measures reading a table in pieces: CPU seconds for a million rows, and resident memory.

Repeats the rows of a table to files of each size, in a temporary folder, and reads them in a
process of its own: one pass that checks and counts the rows, then batches as `fit` reads them. With
--fit it trains the smallest preset instead of only reading. Prints one JSON line for each size.
Run: python tools/benchmark_table.py train.tsv --text sentence --rows 50000 500000 5000000
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("table", help="whose rows are repeated, or with --here read as they are")
    parser.add_argument("--text", default="text", help="its column of texts")
    parser.add_argument("--label", default="label", help="its column of labels")
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000, 500_000])
    parser.add_argument("--extension", default=".jsonl", help=".jsonl, .jsonl.gz, .csv or .parquet")
    parser.add_argument("--batch_size", type=int, default=256)
    parser.add_argument("--sequence_length", type=int, default=128)
    parser.add_argument("--packing", action="store_true", help="packs texts")
    parser.add_argument("--read", type=int, default=None, help="rows to read; by default all")
    parser.add_argument("--fit", type=int, default=0, help="steps to train instead of reading")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


if __name__ == "__main__":
    parse(None)  # wrong flags and --help end here, before the imports that take seconds

import keras_bert
from keras_bert.data import Table, read_table

PRESET = "bert_mini_en_public_domain"


def write(path: Path, texts: list[str], labels: list[str], rows: int) -> None:
    """Writes so many rows, each with its number behind the text."""
    numbered = (
        {"text": f"{texts[i % len(texts)]} {i}", "label": labels[i % len(texts)]}
        for i in range(rows)
    )
    if path.suffix == ".parquet":
        _write_parquet(path, numbered)
        return
    import csv
    import gzip

    opened = gzip.open(path, "wt", 1) if path.suffix == ".gz" else open(path, "w")
    with opened as file:
        if ".csv" in path.suffixes:
            writer = csv.DictWriter(file, ["text", "label"])
            writer.writeheader()
            writer.writerows(numbered)
        else:
            file.writelines(json.dumps(row) + "\n" for row in numbered)


def _write_parquet(path: Path, rows) -> None:
    import itertools

    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([("text", pyarrow.string()), ("label", pyarrow.string())])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        while chunk := list(itertools.islice(rows, 100_000)):
            writer.write_table(pyarrow.Table.from_pylist(chunk, schema))


def megabytes(name: str) -> int:
    """A size of this process: VmRSS, resident now, or VmHWM, at most so far."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith(name + ":"))
    return int(line.split()[1]) // 1024


def read(args: argparse.Namespace) -> dict:
    """Reads a table as `fit` does."""
    model = keras_bert.BertClassifier.from_preset(
        PRESET, num_classes=2, sequence_length=args.sequence_length, load_weights=False
    )
    model.compile(packing=args.packing)
    table = Table(args.table, text=args.text, label=args.label)
    before, cpu = megabytes("VmRSS"), time.process_time()
    source = model.source(table, batch_size=args.batch_size, shuffle=True)
    checked = time.process_time() - cpu
    size = source.size if not args.packing else round(source.texts_per_step * source.steps)
    found = {"rows": size, "before_mb": before, "checked_mb": megabytes("VmRSS")}
    found["check_cpu_seconds_a_million"] = round(checked / size * 1e6, 1)
    cpu, start, most = time.process_time(), time.perf_counter(), 0
    if args.fit:
        model.fit(table, batch_size=args.batch_size, steps=args.fit, verbose=0)
    else:
        share = 1 if args.read is None else min(1, args.read / size)
        steps = round(share * source.steps)
        for number, _ in enumerate(source.stream().take(steps)):
            if number % 50 == 0:
                most = max(most, megabytes("VmRSS"))
        rows = steps / source.steps * size
        found["read_cpu_seconds_a_million"] = round((time.process_time() - cpu) / rows * 1e6, 1)
        found["rows_a_second"] = round(rows / (time.perf_counter() - start))
    return found | {"resident_mb": max(most, megabytes("VmRSS")), "most_mb": megabytes("VmHWM")}


def main(argv: list[str] | None = None) -> list[dict]:
    args = parse(argv)
    if args.here:
        print(json.dumps(read(args)), flush=True)
        return []
    seed = read_table(args.table, args.text, args.label)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for rows in args.rows:
            path = Path(folder) / f"rows{args.extension}"
            write(path, seed.texts, seed.labels, rows)
            flags = [f"--batch_size={args.batch_size}", f"--sequence_length={args.sequence_length}"]
            flags += ["--packing"] * args.packing + [f"--fit={args.fit}"]
            flags += [] if args.read is None else [f"--read={args.read}"]
            command = [sys.executable, __file__, str(path), "--here", *flags]
            run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            about = {"extension": args.extension, "bytes": path.stat().st_size}
            results.append(json.loads(run.stdout.splitlines()[-1]) | about)
            print(json.dumps(results[-1] | {"cores": os.cpu_count()}), flush=True)
    return results


if __name__ == "__main__":
    main()
