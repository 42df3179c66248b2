"""Checks an export as a server would see it: answers, ops, warm-up requests, speed.

usage: python tools/serve_check.py export/ [--warmup] [--json]
       python tools/serve_check.py export/ --texts dev.csv --column sentence --threads 1

The export is loaded in a fresh process that imports tensorflow and tensorflow_text alone; an import
of keras_bert is an error there. Every example of assets.extra/contract.json is asked again: strings
and whole numbers must be the same, floats within 1e-5. With --warmup, those that TensorFlow Serving
can run while it loads the model are written to assets.extra/tf_serving_warmup_requests. Last,
serving_default is timed. The exit status is 1 if an answer differs or the check cannot be done.
"""

import argparse
import csv
import json
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from tools.serving.differences import example_differences, signature_differences  # noqa: E402
from tools.serving.fresh_process import CheckError, FreshProcess  # noqa: E402

CONTRACT = "assets.extra/contract.json"


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("folder", help="a SavedModel with a contract")
    parser.add_argument("--warmup", action="store_true", help="write the warm-up requests")
    parser.add_argument("--json", action="store_true", help="print one JSON line instead of tables")
    parser.add_argument("--skip_measuring", action="store_true", help="check the answers alone")
    parser.add_argument("--batch_sizes", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--seconds", type=float, default=5.0, help="of measuring, a batch size")
    parser.add_argument("--threads", type=int, help="inter- and intra-op threads of TensorFlow")
    parser.add_argument(
        "--texts", metavar="FILE", help="measure on these: .csv, .tsv, .jsonl, or one text a line"
    )
    parser.add_argument(
        "--column",
        nargs="+",
        default=[],
        metavar="NAME",
        help="of --texts: a column, or INPUT=COLUMN for each input of the signature",
    )
    args = parser.parse_args(arguments)
    if args.column and not args.texts:
        parser.error("--column is of --texts")
    if min(args.batch_sizes) < 1 or args.seconds <= 0 or (args.threads or 1) < 1:
        parser.error("--batch_sizes, --seconds and --threads must be above 0")
    return args


def read_contract(folder: str) -> dict[str, Any]:
    """Reads an export's contract."""
    path = Path(folder, CONTRACT)
    if not Path(folder, "saved_model.pb").is_file():
        raise CheckError(f"{folder} is no SavedModel: it has no saved_model.pb")
    try:
        contract = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckError(f"{folder} has no {CONTRACT}: export the model again") from None
    except ValueError as error:
        raise CheckError(f"{path} is no JSON: {error}") from None
    if contract.get("format") != 1:
        raise CheckError(f"{path} has format {contract.get('format')!r}, expected 1")
    for key in ("signatures", "examples"):
        if not contract.get(key):
            raise CheckError(f"{path} has no {key}")
    return contract


def contract_rows(contract: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Gathers the rows of all examples of serving_default, by input."""
    names = contract["signatures"]["serving_default"]["inputs"]
    rows: dict[str, list[Any]] = {name: [] for name in names}
    for example in contract["examples"]:
        request = example["request"]
        if request.get("signature_name", "serving_default") != "serving_default":
            continue
        # Rows of several examples go into one batch, so those of the first one's widths only.
        shapes = {name: shape(request["inputs"][name])[1:] for name in names}
        if rows[next(iter(names))] and any(shape(rows[name])[1:] != shapes[name] for name in names):
            continue
        if "outputs" in example["reply"]:
            for name in names:
                rows[name] += request["inputs"][name]
    if not all(rows.values()):
        raise CheckError(
            "the contract has no example of serving_default to measure on: give --texts"
        )
    return rows


def shape(value: Any) -> list[int]:
    """The shape of nested lists, by their first parts."""
    return [len(value), *shape(value[0] if value else None)] if isinstance(value, list) else []


def file_rows(path: str, columns: list[str], names: list[str]) -> dict[str, list[Any]]:
    """Reads the rows of a file, by input.

    Args:
        path: .csv and .tsv have a header, .jsonl an object a line; else it is one text a line.
        columns: `COLUMN`, for a signature with one input, or `INPUT=COLUMN`; an input that is not
            named has the column of its own name.
        names: of the signature's inputs.
    """
    of = {name: name for name in names}
    for column in columns:
        given, equals, wanted = column.partition("=")
        if not equals:
            if len(names) > 1:
                raise CheckError(
                    f"--column {column}: serving_default has the inputs {', '.join(names)}; give "
                    "INPUT=COLUMN"
                )
            given, wanted = names[0], column
        if given not in of:
            raise CheckError(f"--column {column}: no input {given}, only {', '.join(names)}")
        of[given] = wanted
    file = Path(path)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CheckError(f"{path}: {error}") from None
    if file.suffix in (".csv", ".tsv"):
        dialect = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if file.suffix == ".tsv" else {}
        with open(file, encoding="utf-8", newline="") as content:
            table = list(csv.DictReader(content, **dialect))
    elif file.suffix == ".jsonl":
        table = [json.loads(line) for line in lines if line.strip()]
    elif len(names) == 1 and not columns:
        table = [{names[0]: line} for line in lines]
    else:
        raise CheckError(
            f"{path} is read as one text a line, which has no columns; serving_default has the "
            f"inputs {', '.join(names)}"
        )
    if not table:
        raise CheckError(f"{path} has no rows")
    for number, row in enumerate(table, 1):
        for column in of.values():
            if row.get(column) is None:
                raise CheckError(f"{path}, row {number}: no column {column}")
    return {name: [row[column] for row in table] for name, column in of.items()}


def main(arguments: list[str] | None = None) -> int:
    args = parse(arguments)

    from rich.console import Console

    console = Console(highlight=False, stderr=args.json)
    try:
        report = check(args, console)
    except CheckError as error:
        console.print(str(error), style="red", markup=False, soft_wrap=True)
        return 1
    if args.json:
        print(json.dumps(report))
    return 1 if report["differences"] else 0


def check(args: argparse.Namespace, console: Any) -> dict[str, Any]:
    """Does what the arguments ask; prints as it goes and returns the figures."""
    if args.warmup and find_spec("tensorflow_serving") is None:
        raise CheckError("--warmup needs `pip install tensorflow-serving-api`")
    contract = read_contract(args.folder)
    folder = str(Path(args.folder).resolve())
    with FreshProcess() as process:
        import tools.serving.ops  # noqa: F401  # takes seconds, as the process does meanwhile

        loaded = process.ask({"load": folder, "threads": args.threads})
        if "error" in loaded:
            raise CheckError(f"{args.folder} does not load: {loaded['error']}")
        report: dict[str, Any] = {"folder": args.folder, **loaded}
        del report["signatures"]
        say_ops(loaded, contract, report, console)
        report["examples"] = len(contract["examples"])
        report["differences"] = replay(contract, loaded["signatures"], process, console)
        if args.warmup and not report["differences"]:
            from tools.serving import warmup

            report["warmup_requests"] = warmup.write_warmup(folder, contract)
            console.print(f"{report['warmup_requests']} requests in {warmup.FILE}", markup=False)
        if not args.skip_measuring:
            names = list(contract["signatures"]["serving_default"]["inputs"])
            rows = (
                file_rows(args.texts, args.column, names) if args.texts else contract_rows(contract)
            )
            report["speed"] = speed(process, rows, args, console)
    return report


def say_ops(
    loaded: Mapping[str, Any], contract: Mapping[str, Any], report: dict[str, Any], console: Any
) -> None:
    """Prints the ops that are not TensorFlow's, and which servers register them."""
    from tools.serving.ops import SERVERS, servers_with_all, support

    made = contract.get("versions", {}).get("tensorflow", "?")
    names = [f"tensorflow {loaded['tensorflow']}"]
    if loaded["tensorflow_text"]:
        names.append(f"tensorflow_text {loaded['tensorflow_text']}")
    console.print(
        f"loaded with {', '.join(names)} in {loaded['load_seconds']:.2f} s; made with tensorflow "
        f"{made}: take a server of that version or later",
        markup=False,
        soft_wrap=True,
    )
    ops = loaded["ops"]
    if not ops:
        console.print("no ops beyond TensorFlow's own")
        return
    console.print(f"{len(ops)} ops beyond TensorFlow's own; by TensorFlow Serving:")
    report["servers"] = {}
    for op in ops:
        found = support(op)
        report["servers"][op] = (
            {"registered": found.registered, "missing": found.missing} if found.known else None
        )
        console.print(f"  {op}: {found}", markup=False, soft_wrap=True)
    unknown = [op for op in ops if not support(op).known]
    report["servers_with_all"] = None if unknown else servers_with_all(ops)
    if not unknown:
        known = ", ".join(report["servers_with_all"]) or "none"
        console.print(
            f"  all of them: {known} (looked at: {', '.join(SERVERS)}; versions between these were "
            "not)",
            markup=False,
            soft_wrap=True,
        )


def replay(
    contract: Mapping[str, Any], signatures: Mapping[str, Any], process: FreshProcess, console: Any
) -> list[str]:
    """Asks all examples of a contract again; prints and returns what differs."""
    from rich.progress import track

    problems = signature_differences(contract["signatures"], signatures)
    examples = contract["examples"]
    for number, example in enumerate(
        track(
            examples,
            "asking the examples",
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
    ):
        request = example["request"]
        signature = request.get("signature_name", "serving_default")
        if signature not in contract["signatures"]:
            problems.append(f"example {number}: the contract has no signature {signature}")
            continue
        reply = process.ask({"signature": signature, "inputs": request["inputs"]})
        problems += example_differences(number, example, contract, reply)
    for problem in problems:
        console.print(problem, style="red", markup=False, soft_wrap=True)
    if not problems:
        console.print(f"{len(examples)} examples: the same answers")
    return problems


def speed(
    process: FreshProcess, rows: Mapping[str, list[Any]], args: argparse.Namespace, console: Any
) -> list[dict[str, Any]]:
    """Measures serving_default by batch size; prints a table and returns its rows."""
    from rich.progress import Progress
    from rich.table import Table

    found = []
    table = Table("rows a request", "p50 ms", "p99 ms", "rows/s", "requests")
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        for batch in args.batch_sizes:
            task = progress.add_task(f"requests of {batch} rows", total=1.0)
            reply = process.ask(
                {
                    "measure": {
                        "signature": "serving_default",
                        "rows": rows,
                        "batch": batch,
                        "seconds": args.seconds,
                    }
                },
                lambda said, task=task: progress.update(task, completed=said["progress"]),
            )
            progress.update(task, visible=False)
            if "error" in reply:
                raise CheckError(f"requests of {batch} rows fail: {reply['error']}")
            found.append(reply)
            table.add_row(
                str(batch),
                f"{reply['p50_ms']:.3f}",
                f"{reply['p99_ms']:.3f}",
                f"{reply['rows_per_second']:,.0f}",
                f"{reply['calls']:,}",
            )
    console.print(table)
    return found


if __name__ == "__main__":
    sys.exit(main())
