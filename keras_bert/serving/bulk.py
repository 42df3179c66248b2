"""Bulk inference: answers for files of any length, in order, by the graph that a server runs.

Rows are read in windows. The rows of a window are sorted by length to reduce padding, and its
answers are written together. Window boundaries depend on the input alone, so a resumed run makes
the same batches.
"""

import itertools
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from keras_bert.arguments import check_batch_size
from keras_bert.atomic import write_file
from keras_bert.data.rows import grouped, name_lines, parse_json
from keras_bert.serving.bulk_model import ExportedModel, TaskModel
from keras_bert.serving.bulk_rows import COUNT, InputFile, Row, RowReader, find_files
from keras_bert.serving.export_contract import plain_values

logger = logging.getLogger("keras_bert")

WINDOW_ROWS = 2048
WINDOW_CHARACTERS = 1 << 24  # windows of long texts end earlier
STATE = ".state.json"
FORMAT = 1
# Characters that some readers treat as line ends and JSON does not escape.
LINE_ENDS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}
AGAIN = "choose another output, or pass resume=False to replace it"


def answer_file(
    export_or_task,
    input: str | os.PathLike | Sequence[str | os.PathLike],
    output: str | os.PathLike,
    signature: str = "serving_default",
    columns: dict[str, str] | None = None,
    batch_size: int = 64,
    resume: bool = True,
    verbose: bool = True,
    on_progress: Callable[[int, int], None] | None = None,
    **options,
) -> int:
    """Writes one line of JSON with the answers for each row of the input files.

    A line has `row`, the row's index from 0 over all files; `file`, if there are several; `row_id`
    if the file has a column `id`; and the signature's outputs by name. For a signature with
    `count`, only that many items of a row are written, without `count`. Floats are written as the
    shortest decimals that round-trip in float32, or null if not finite.

    All rows are read and checked before the first is answered. An interrupted run resumes when
    called again, with any batch size, and writes the same lines as an uninterrupted one. Its state
    is stored next to the output, in a file with `.state.json` appended to the name.

    Args:
        export_or_task: the folder of an export, or a task with a preprocessor.
        input: a file or a folder, or several: `.jsonl`; `.csv` and `.tsv` with a header line; or
            `.txt`, one text per line; plain or with `.gz`; or `.parquet`. Lists such as `choices`
            and `spans` are JSON in a cell, or columns choice0, choice1 and so on.
        output: the file to write.
        signature: name of the signature to call.
        columns: names of columns by input, where they differ, such as {"text": "sentence"}; of `id`
            too.
        batch_size: rows of a batch.
        resume: whether to continue an existing `output`; False replaces it.
        verbose: whether to show progress on the standard error.
        on_progress: called after each batch with the number of rows answered and of all rows.
        **options: for a task, options of its `export`.

    Returns:
        The number of rows.

    Raises:
        FileNotFoundError: if the export or an input does not exist.
        FileExistsError: if `output` holds something else, or answers of another model, input or
            signature.
        ValueError: if the signature, a column or an option is unknown; or with file and line for
            a row that cannot be read or answered.
    """
    batch_size = check_batch_size(batch_size)
    model = _model(export_or_task, signature, options)
    output, files = Path(output), find_files(input)
    _check_places(output, files)
    asked = {
        "model": model.fingerprint(),
        "signature": signature,
        "options": {name: str(value) for name, value in sorted(options.items())},
        "columns": dict(sorted((columns or {}).items())),
        "inputs": [
            [file.name, stat.st_size, stat.st_mtime_ns]
            for file, stat in ((file, file.path.stat()) for file in files)
        ],
    }
    rows = RowReader(files, model.inputs, columns)
    state_file = output.with_name(output.name + STATE)
    state = _read_state(output, state_file, asked) if resume else None
    if state is None:
        total = _count(rows, verbose)
        output.unlink(missing_ok=True)  # first: the state belongs to other answers
        state = {"format": FORMAT, "rows": total, "done": False, "asked": asked}
        _write_state(state_file, state)
    total = state["rows"]
    done = _whole_lines(output, total)
    if done < total:
        model.load()
        with _bar("answered", verbose, initial=done, total=total) as bar:
            _answer(model, rows, output, done, total, batch_size, bar, on_progress)
    _write_state(state_file, state | {"done": True})
    return total


def _model(export_or_task, signature: str, options: dict):
    if not isinstance(export_or_task, str | os.PathLike):
        return TaskModel(export_or_task, signature, options)
    if options:
        raise ValueError(f"{', '.join(options)}: an export has its options inside; expected none")
    return ExportedModel(export_or_task, signature)


def _answer(model, rows: RowReader, output: Path, done, total, batch_size, bar, on_progress):
    """Appends the answers of all rows from index `done` on."""
    with_file = len(rows.files) > 1
    count = done
    with open(output, "ab") as file:
        for window in grouped(rows, lambda row: row.size, WINDOW_CHARACTERS, WINDOW_ROWS):
            lines: dict[int, bytes] = {}
            for batch in similar_batches(window, batch_size):
                if all(row.number < done for row in batch):
                    continue
                for row, outputs in zip(batch, ask(model, rows, batch), strict=True):
                    lines[row.number] = _line(row, outputs, with_file)
                new = sum(row.number >= done for row in batch)
                count += new
                bar.update(new)
                if on_progress is not None:
                    on_progress(count, total)
            file.write(b"".join(lines[row.number] for row in window if row.number >= done))
            file.flush()
            os.fsync(file.fileno())
    if count != total:
        raise ValueError(f"the input had {total:,} rows and now has {count:,}")


def similar_batches(window: list[Row], batch_size: int) -> Iterator[list[Row]]:
    """Batches of rows of similar length; rows with lists of different lengths are separated."""
    ordered = sorted(window, key=lambda row: (row.shape, row.size, row.number))
    for _, alike in itertools.groupby(ordered, key=lambda row: row.shape):
        group = list(alike)
        for begin in range(0, len(group), batch_size):
            yield group[begin : begin + batch_size]


def ask(
    model, rows: RowReader, batch: list[Row], rejected: dict[int, str] | None = None
) -> list[dict[str, Any]]:
    """Computes the outputs of each of some rows of the same `shape`, as plain values.

    Args:
        model: an `ExportedModel` or a `TaskModel`, loaded.
        rows: the reader that made the rows.
        batch: the rows.
        rejected: if given, the numbers of rows that the graph rejects are added to it, each with
            the reason, instead of raising a ValueError; such a row has no outputs, {}.
    """
    import tensorflow as tf

    try:
        outputs = model(rows.columns(batch))
    except tf.errors.InvalidArgumentError:
        refused = {}
        for row in batch:  # find the rejected rows
            try:
                model(rows.columns([row]))
            except tf.errors.InvalidArgumentError as error:
                if rejected is None:
                    raise row.error(_reason(error.message)) from error
                refused[row.number] = _reason(error.message)
        if not refused:
            raise
        rejected |= refused
        kept = [row for row in batch if row.number not in refused]
        found = iter(ask(model, rows, kept, rejected) if kept else ())
        return [{} if row.number in refused else next(found) for row in batch]
    counts = rows.counts(batch) if rows.padded else outputs.pop(COUNT, None)
    by_count = [name for name, value in outputs.items() if counts is not None and value.ndim > 1]
    answers = []
    plain = {name: _plain(value) for name, value in sorted(outputs.items())}
    for place in range(len(batch)):
        answer = {name: values[place] for name, values in plain.items()}
        answers.append(answer | {name: answer[name][: counts[place]] for name in by_count})
    return answers


def _reason(message: str) -> str:
    """The message of a graph's error without its node: the last line before the node's name."""
    return message.partition("\n\t [[")[0].splitlines()[-1]


def _plain(value: np.ndarray) -> list:
    if value.dtype.kind == "f":
        # Through text: the shortest decimals of a float32, since its exact value has many more.
        numbers = value.astype(str).astype(np.float64)
        if np.isfinite(numbers).all():
            return numbers.tolist()
        return np.where(np.isfinite(numbers), numbers.astype(object), None).tolist()
    return plain_values(value)


def _line(row: Row, outputs: dict[str, Any], with_file: bool) -> bytes:
    said = {"row": row.number}
    if with_file:
        said["file"] = row.file.name
    if row.id is not None:
        said["row_id"] = row.id
    return json_line(said | outputs)


def json_line(said: dict[str, Any]) -> bytes:
    """An object as a line of JSON lines, whose only line end for any reader is the last byte."""
    line = json.dumps(said, ensure_ascii=False, allow_nan=False)
    return (line if line.isascii() else line.translate(LINE_ENDS)).encode() + b"\n"


def _count(rows: RowReader, verbose: bool) -> int:
    """Reads, and thereby checks, all rows."""
    count, empty = 0, []
    with _bar("read", verbose, iterable=rows) as bar:
        for row in bar:
            count += 1
            if not row.size:
                empty.append(row.number)
    if empty:
        some = f"{len(empty):,} row{'s have' if len(empty) > 1 else ' has'}"
        logger.warning(
            "%s no text, so that the answer means nothing: %s", some, name_lines(empty, "row")
        )
    return count


def _bar(what: str, verbose: bool, **settings) -> tqdm:
    """A progress bar on the standard error; in a log, an occasional line."""
    seconds = 0.2 if sys.stderr.isatty() else 10.0
    return tqdm(desc=what, unit=" rows", mininterval=seconds, disable=not verbose, **settings)


def _whole_lines(output: Path, total: int) -> int:
    """Counts the answers in the output, each to its row, and removes an incomplete last line."""
    if not output.exists():
        output.parent.mkdir(parents=True, exist_ok=True)
        output.touch()
    with open(output, "r+b") as file:
        count = place = 0
        for line in file:
            if not line.endswith(b"\n"):
                file.truncate(place)
                break
            if count == total or not line.startswith(b'{"row": %d, ' % count):
                expected = f"the answer to row {count}" if count < total else "the end"
                raise FileExistsError(
                    f"{output}, line {count + 1}: expected {expected}, got {line[:40]!r}; {AGAIN}"
                )
            count, place = count + 1, place + len(line)
    return count


def _read_state(output: Path, state_file: Path, asked: dict) -> dict | None:
    """The state of an earlier run of the same request; None if there is none."""
    if not output.exists() or output.stat().st_size == 0:
        return None
    if not state_file.exists():
        raise FileExistsError(f"{output} is there, without {state_file.name}; {AGAIN}")
    try:
        state = parse_json(state_file.read_text(encoding="utf-8"), state_file)
        if state["format"] != FORMAT:
            raise ValueError(f"format {state['format']}")
        before = dict(state["asked"])
    except (ValueError, KeyError, TypeError) as error:
        raise FileExistsError(f"{state_file} is no state of answers ({error}); {AGAIN}") from error
    for name, value in json.loads(json.dumps(asked)).items():
        if before.get(name) != value:
            was = "" if name == "model" else f": {before.get(name)!r:.200}, now {value!r:.200}"
            raise FileExistsError(f"{output} holds answers with another {name}{was}; {AGAIN}")
    return state


def _write_state(state_file: Path, state: dict) -> None:
    write_file(state_file, json.dumps(state, indent=1).encode() + b"\n")


def _check_places(output: Path, files: list[InputFile]) -> None:
    if output.is_dir():
        raise IsADirectoryError(f"{output} is a folder: expected the name of a file")
    place = output.resolve()
    if any(place == file.path.resolve() for file in files):
        raise ValueError(f"{output} is an input too")
    if any(file.of_folder and place.parent == file.path.resolve().parent for file in files):
        raise ValueError(f"{output} would lie in a folder of inputs, and be one of them")
