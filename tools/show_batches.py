"""Shows rows of the pre-training stream, decoded, with their masks, or reports what it is made of.

usage: python tools/show_batches.py records/ [--rows 8] [--html rows.html]
       python tools/show_batches.py records/ --report report/ [--batches 100]

A report is printed and written to the folder as report.json, and as lengths.png if the matplotlib
package is there.
"""

import argparse
import itertools
import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")  # all of it is done on the host

OBJECTIVES = ("nsp", "sop", "nsp_sop", "mlm")
LABEL_NAMES = {"sop": ("in order", "swapped"), "nsp_sop": ("next", "random or swapped")}
STYLES = {
    "plain": "",
    "special": "dim",
    "mask": "black on yellow",
    "random": "black on red",
    "same": "black on green",
}


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("folder", help="of a prepared corpus")
    parser.add_argument("--sequence_length", type=int, default=128)
    parser.add_argument(
        "--max_predictions", type=int, help="default: the rate times the length, rounded up"
    )
    parser.add_argument("--objective", choices=OBJECTIVES, default="nsp")
    parser.add_argument("--batch_size", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first batch")
    parser.add_argument("--short_seq_prob", type=float, default=0.1)
    parser.add_argument("--cross_documents", action="store_true", help="of the objective mlm")
    parser.add_argument("--rate", type=float, default=0.15, help="share of tokens that is masked")
    parser.add_argument("--mask_share", type=float, default=0.8)
    parser.add_argument("--random_share", type=float, default=0.1)
    parser.add_argument("--unit", choices=("piece", "word"), default="piece")
    parser.add_argument("--replace", choices=("piece", "word"), default="piece")
    parser.add_argument("--max_ngram", type=int, default=1)
    parser.add_argument("--random_from", choices=("all", "words"), default="all")
    parser.add_argument("--rows", type=int, default=8, help="to show")
    parser.add_argument("--html", metavar="FILE", help="write the rows there instead")
    parser.add_argument("--report", metavar="FOLDER", help="report on the stream instead")
    parser.add_argument("--batches", type=int, default=100, help="of the report")
    args = parser.parse_args(arguments)
    if args.html and args.report:
        parser.error("--html is of rows, not of a report")
    for name in ("rows", "batches"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be 1 or more")
    return args


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)

    from rich.console import Console

    from keras_bert.atomic import write_file
    from keras_bert.data.pretraining import pretraining_dataset
    from keras_bert.data.records import read_index
    from tools.batch_view import rows_to_html

    settings = vars(args).copy()
    for name in ("rows", "html", "report", "batches"):
        del settings[name]
    if args.max_predictions is None:
        settings["max_predictions"] = math.ceil(args.rate * args.sequence_length)
    batches = pretraining_dataset(**settings).as_numpy_iterator()
    tokenizer = read_index(args.folder).make_tokenizer()
    console = Console(highlight=False)
    if args.report:
        report(batches, args.batches, tokenizer, args.report, console)
        return
    label_names = LABEL_NAMES.get(args.objective, ("next", "random"))
    rows = first_rows(batches, args.rows, tokenizer)
    if args.html:
        title = f"{len(rows)} rows of {args.folder}"
        write_file(args.html, rows_to_html(rows, title, label_names).encode())
        console.print(f"{len(rows)} rows in {args.html}", markup=False)
    else:
        show(rows, label_names, console)


def first_rows(batches: Iterable[Any], count: int, tokenizer: Any) -> list[Any]:
    """The first `count` rows of batches by the contract, as `tools.batch_view.Row`."""
    from tools.batch_view import read_rows

    rows = itertools.chain.from_iterable(read_rows(batch, tokenizer) for batch in batches)
    return list(itertools.islice(rows, count))


def show(rows: Sequence[Any], label_names: Sequence[str], console: Any) -> None:
    """Prints rows in colours; without them the signs of the legend tell the kinds apart."""
    from rich.text import Text

    from tools.batch_view import LEGEND

    parts = [Text(name, STYLES[kind]) for kind, name in LEGEND.items()]
    console.print(Text("  ").join(parts))
    for number, row in enumerate(rows):
        console.print()
        console.print(Text(f"{number}. {row.title(label_names)}", "bold"))
        for segment in row.segments:
            line = Text().append(segment.name, "bold cyan")
            for piece in segment.pieces:
                line.append("" if piece.joined else " ")
                line.append(piece.text, STYLES[piece.kind])
            console.print(line)


def report(
    batches: Iterable[Any], count: int, tokenizer: Any, folder: str, console: Any
) -> dict[str, Any]:
    """Counts over the first `count` batches; prints the report and writes it to `folder`."""
    from rich.progress import track
    from rich.table import Column, Table

    from keras_bert.atomic import write_file
    from tools.batch_statistics import PERCENTAGES, BatchStatistics, draw_lengths

    statistics = BatchStatistics(tokenizer)
    batches = itertools.islice(batches, count)
    for batch in track(batches, "reading batches", total=count, console=console, transient=True):
        statistics.add(batch)
    found = statistics.report()
    table = Table(Column("of a row", no_wrap=True), "mean", *(f"{p}%" for p in PERCENTAGES))
    for name, part in found.items():
        if isinstance(part, dict) and "quantiles" in part:
            values = [part["mean"], *part["quantiles"].values()]
            table.add_row(name.replace("_", " "), *(f"{value:.4g}" for value in values))
    console.print(table)
    numbers = {name: part for name, part in found.items() if not isinstance(part, dict)}
    numbers["share_full"] = found["length_total"]["share_full"]
    for kind, share in found.get("masked_as", {}).items():
        numbers[f"masked_as_{kind}"] = share
    table = Table("of the stream", "")
    for name, value in numbers.items():
        text = f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
        table.add_row(name.replace("_", " "), text)
    console.print(table)
    write_file(Path(folder) / "report.json", (json.dumps(found, indent=1) + "\n").encode())
    drawn = draw_lengths(statistics, Path(folder) / "lengths.png")
    console.print(f"report.json{' and lengths.png' if drawn else ''} in {folder}", markup=False)
    return found


if __name__ == "__main__":
    main()
