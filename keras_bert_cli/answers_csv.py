"""Answers as CSV: the columns of the input, and the answer of each row beside them."""

import csv
import itertools
import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_bert.data.rows import column_names, read_lines, read_objects, read_rows
from keras_bert.data.tables import NUMBER
from keras_bert.serving.bulk_rows import InputFile

OF_LINES = ("row", "file", "row_id")  # in lines of answers, beside the answer
LEFT_OUT = ("logits",)  # long, and probabilities say the same; JSON lines have them
FIRST = ("label", "entity", "answer", "choice", "start", "end")  # of the columns of an answer
# A spreadsheet would run such a cell as a formula.
FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")


def write_csv(files: Sequence[InputFile], answers: Path, output: Path) -> None:
    """Writes a CSV file of the rows of all files and their answers.

    Lists are JSON in a cell; an apostrophe stands before what a spreadsheet would run as a formula.
    The file begins with the mark by which spreadsheets know UTF-8, and is written atomically.

    Args:
        files: the inputs of `keras_bert.serving.bulk.answer_file`.
        answers: its output.
        output: the file to write.

    Raises:
        ValueError: if the inputs have other rows than the answers.
    """
    columns = dict.fromkeys(itertools.chain.from_iterable(map(_names, files)))
    with open(answers, encoding="utf-8") as file:
        first = json.loads(file.readline() or "{}")
    named = [name for name in FIRST if name in first]
    named += [name for name in first if name not in (*OF_LINES, *LEFT_OUT, *FIRST)]
    of_file = ["file"] * (len(files) > 1 and "file" not in columns)
    titles = {name: f"{name} (answer)" if name in columns else name for name in named}
    with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as folder:
        scratch = Path(folder) / "new"
        with (
            open(scratch, "w", encoding="utf-8-sig", newline="") as file,
            open(answers, encoding="utf-8") as lines,
        ):
            writer = csv.writer(file)
            writer.writerow(map(_cell, [*columns, *of_file, *titles.values()]))
            rows = ((one.name, row) for one in files for row in _rows(one))
            try:
                for (name, row), line in zip(rows, lines, strict=True):
                    answer = json.loads(line)
                    cells = [row.get(column) for column in columns] + [name] * len(of_file)
                    cells += [answer.get(column) for column in named]
                    writer.writerow(map(_cell, cells))
            except ValueError as error:
                raise ValueError(f"{answers}: other rows than the input: {error}") from error
        os.replace(scratch, output)


def _names(file: InputFile) -> list[str]:
    """The columns of a file, each under a name of its own."""
    if file.ending == ".txt":
        return ["text"]
    if file.ending not in (".csv", ".tsv"):
        return list(dict.fromkeys(key for _, row in read_objects(file.path) for key in row))
    found: list[str] = []
    for name in column_names(file.path):
        tries = itertools.chain([name], (f"{name} ({i})" for i in itertools.count(2)))
        found.append(next(one for one in tries if one not in found))
    return found


def _rows(file: InputFile) -> Iterator[dict[str, Any]]:
    """The rows as `RowReader` counts them, with all their columns."""
    if file.ending == ".txt":
        for _, line in read_lines(file.path):
            yield {"text": line.removesuffix("\n").removesuffix("\r")}
    elif file.ending in (".csv", ".tsv"):
        names = _names(file)
        for _, cells in read_rows(file.path, range(len(names))):
            yield dict(zip(names, cells, strict=True))
    else:
        for _, found in read_objects(file.path):
            yield found


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text
