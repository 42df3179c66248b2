"""Bulk inference with Apache Beam: an export as a model of `RunInference`, and `answer_shards`.

`answer_shards` cuts the input into shards of rows before the pipeline starts. A shard is one
element: it is read, answered and written by one worker, so no rows pass between the workers, and
memory is bounded on any runner. A shard's file of answers is written atomically and last, and marks
the shard as done.

Imports Apache Beam, so import this module lazily.
"""

import functools
import itertools
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

from keras_bert.arguments import check_batch_size, check_count
from keras_bert.data.beam_runs import import_beam, pipeline_options, progress
from keras_bert.data.rows import (
    DELIMITERS,
    Place,
    column_names,
    open_bytes,
    open_parquet,
    parquet_rows,
    parse_json,
    read_lines,
    split_lines,
)
from keras_bert.data.whole_files import claim_folder, read_whole, write_whole
from keras_bert.serving.bulk import ask, json_line, similar_batches
from keras_bert.serving.bulk_model import ExportedModel
from keras_bert.serving.bulk_rows import InputFile, Row, RowReader, name_files

beam = import_beam("keras_bert.serving.beam", "beam")
from apache_beam.ml.inference.base import (  # noqa: E402
    ModelHandler,
    PredictionResult,
    RunInference,
)

PLAN, INDEX = "plan.json", "index.json"
ANSWERS, FAILED = "answers-{:05d}-of-{:05d}.jsonl", "failed-{:05d}-of-{:05d}.jsonl"
FORMAT = 1
ROWS_PER_SHARD = 20_000
SHARD_BYTES = 1 << 25  # shards of long texts have fewer rows
LINE_BYTES = 1 << 26
OVERWRITE = "choose another folder, or pass overwrite=True to delete it"
# Only errors name it: elements of a user's pipeline are from no file.
ELEMENT = InputFile("batch", "batch", ".jsonl", False)


class Failure(NamedTuple):
    """The result of a row without an answer.

    Attributes:
        reason: the error.
        input: the row.
    """

    reason: str
    input: Any


class ExportHandler(ModelHandler[Any, PredictionResult, ExportedModel]):
    """An export for Beam's `RunInference`.

        handler = KeyedModelHandler(ExportHandler("exported/1"))
        answers = keys_and_texts | RunInference(handler)

    An element is a dict of a row's values by column, or a string if the signature takes one text.
    The result is a `PredictionResult` whose `inference` is a dict of plain values by output, or a
    `Failure` for a row that is refused; one such row does not fail the others of its batch. Rows
    of a batch of Beam are sorted by length and run `batch_size` at a time.

    The handler is pickled as settings alone. Each process loads the export once, from a path that
    all workers can read; one of another file system, such as gs://, is copied to the worker first.

    Args:
        export: the folder of the export.
        signature: name of the signature to call.
        columns: names of columns by input, where they differ.
        batch_size: rows run at a time.
        window: elements that Beam collects; more of them leave less padding.
        **settings: of Beam's `ModelHandler`, such as `model_copies`.

    Raises:
        FileNotFoundError: if there is no export.
        ValueError: if it has no such signature, or an argument is invalid.

    Reference: Beam's `apache_beam.ml.inference.base.ModelHandler`.
    """

    def __init__(
        self,
        export: str | os.PathLike,
        signature: str = "serving_default",
        columns: dict[str, str] | None = None,
        batch_size: int = 64,
        window: int = 2048,
        **settings,
    ):
        self.batch_size = check_batch_size(batch_size)
        window = check_count("window", window)
        super().__init__(min_batch_size=1, max_batch_size=window, **settings)
        export = os.fspath(export)
        self.export = export if "://" in export else os.path.abspath(export)
        self.signature = signature
        self.columns = dict(columns or {})
        self.reader = RowReader([], self._model().inputs, self.columns)

    def _model(self) -> ExportedModel:
        return ExportedModel(local_copy(self.export), self.signature)

    def fingerprint(self) -> str:
        """A hash of the export; see `ExportedModel.fingerprint`."""
        return self._model().fingerprint()

    def load_model(self) -> ExportedModel:
        """Loads the export; called by Beam, once per process."""
        model = self._model()
        model.load()
        return model

    def run_inference(
        self, batch: Sequence[Any], model: ExportedModel, inference_args: dict | None = None
    ) -> Iterator[PredictionResult]:
        """Yields a `PredictionResult` for each element of a batch, in order; called by Beam.

        A `Failure` is returned as it is.
        """
        rows: list[Row] = []
        found: dict[int, Any] = {}
        for number, element in enumerate(batch):
            try:
                if isinstance(element, Failure):
                    found[number] = element
                elif isinstance(element, str | dict):
                    rows.append(self.reader.row_of(number, ELEMENT, number, element))
                else:
                    reason = f"expected a dict or a string, got {type(element).__name__}"
                    found[number] = Failure(reason, element)
            except ValueError as error:
                where = f"{ELEMENT.path}, line {number}: "
                found[number] = Failure(str(error).removeprefix(where), element)
        for alike in similar_batches(rows, self.batch_size):
            rejected: dict[int, str] = {}
            for row, outputs in zip(alike, ask(model, self.reader, alike, rejected), strict=True):
                reason = rejected.get(row.number)
                refused = reason is not None
                found[row.number] = Failure(reason, batch[row.number]) if refused else outputs
        for number, element in enumerate(batch):
            yield PredictionResult(element, found[number], self.export)

    def get_metrics_namespace(self) -> str:
        """The namespace of Beam's metrics."""
        return "keras_bert"


def local_copy(export: str) -> str:
    """A folder on this machine with the files of an export of any file system."""
    return _copied(export).name if "://" in export else export


@functools.cache
def _copied(export: str) -> tempfile.TemporaryDirectory:
    """A copy that lasts as long as the process."""
    import tensorflow as tf

    folder = tempfile.TemporaryDirectory(prefix="keras_bert.")
    for directory, _, files in tf.io.gfile.walk(export):
        into = os.path.join(folder.name, os.path.relpath(directory, export))
        os.makedirs(into, exist_ok=True)
        for name in files:
            tf.io.gfile.copy(os.path.join(directory, name), os.path.join(into, name))
    return folder


class AnswerCounts(NamedTuple):
    """Counts of rows.

    Attributes:
        rows: all rows of the input.
        answered: those with an answer.
        failed: those without.
    """

    rows: int
    answered: int
    failed: int


def answer_shards(
    export: str | os.PathLike,
    input: str | os.PathLike | Sequence[str | os.PathLike],
    output: str | os.PathLike,
    signature: str = "serving_default",
    columns: dict[str, str] | None = None,
    batch_size: int = 64,
    *,
    rows_per_shard: int = ROWS_PER_SHARD,
    overwrite: bool = False,
    workers: int | None = 1,
    beam_options: Sequence[str] = (),
    verbose: bool = True,
) -> AnswerCounts:
    """Answers all rows of files with Apache Beam, on one machine or many.

    Writes a folder of shards of JSON lines, in the order of the input. A file of answers, such as
    `answers-00003-of-00017.jsonl`, has one line for each row with an answer: `file` and `line`,
    `row_id` if the row has a column `id`, and the outputs of the signature. The other rows are in
    `failed-00003-of-00017.jsonl`, written if there are any: `file`, `line`, the reason as `error`,
    and the row itself as `input`. Each row is in exactly one of the two. `index.json` has the
    counts and is written last.

    Called again after an interruption, it answers only the shards that are missing. Lines end at a
    line feed; blank lines, except of plain text, are not rows. A file that cannot be read on, such
    as CSV with an open quotation mark, ends the run before the first answer.

    Args:
        export: the folder of an export, readable by all workers.
        input: names or globs of files: `.jsonl`; `.csv` and `.tsv` with a header line; `.txt`, one
            text per line; plain or with `.gz`; or `.parquet`. A `.gz` file is unpacked from its
            start for each of its shards.
        output: the folder to write, created if it does not exist; shared by all workers.
        signature: name of the signature to call.
        columns: names of columns by input, where they differ, such as {"text": "sentence"}; of `id`
            too.
        batch_size: rows of a batch.
        rows_per_shard: maximum number of rows of a shard.
        overwrite: whether to delete answers of another model, input or signature in `output`.
        workers: threads on this machine, which share the cores: TensorFlow uses all of them in any
            case; None for one per core, up to 4. Other runners have their own options.
        beam_options: for Apache Beam, such as `["--runner=DataflowRunner", "--project=..."]`.
        verbose: whether to show progress on the standard error.

    Returns:
        The counts.

    Raises:
        FileNotFoundError: if the export or an input does not exist.
        FileExistsError: if `output` holds something else.
        ValueError: if the signature, a column or an argument is unknown, or a file cannot be read.
        RuntimeError: if the input changes during the run.
    """
    import tensorflow as tf

    from keras_bert.data.text_files import find_files

    rows_per_shard = check_count("rows_per_shard", rows_per_shard)
    handler = ExportHandler(export, signature, columns, batch_size)
    files = name_files(find_files(input))
    stats = [(file, tf.io.gfile.stat(str(file.path))) for file in files]
    folder = os.fspath(output)
    folder = folder if "://" in folder else os.path.abspath(folder)
    asked = {
        "format": FORMAT,
        "model": handler.fingerprint(),
        "signature": signature,
        "columns": handler.columns,
        "rows_per_shard": rows_per_shard,
        "inputs": [[file.name, stat.length, stat.mtime_nsec] for file, stat in stats],
    }
    plan = _claim(folder, asked, files, handler.reader, overwrite)
    if not _exists(os.path.join(folder, INDEX)):
        options = pipeline_options(beam, workers, beam_options)
        with progress(lambda: _state(folder, plan), verbose), beam.Pipeline(options=options) as p:
            build_pipeline(p, handler, files, plan, folder)
    index = parse_json(read_whole(os.path.join(folder, INDEX)).decode(), INDEX)
    return AnswerCounts(index["rows"], index["answered"], index["failed"])


@dataclass(frozen=True)
class Shard:
    """Consecutive rows of a file.

    Attributes:
        number: index from 0, over all files.
        file: index of the file.
        begin: its first byte in the unpacked file, or its first row in Parquet.
        line: the line of the file at `begin`.
        rows: number of rows.
    """

    number: int
    file: int
    begin: int
    line: int
    rows: int


def build_pipeline(
    pipeline: beam.Pipeline,
    handler: ExportHandler,
    files: list[InputFile],
    plan: list[Shard],
    folder: str,
) -> None:
    """Adds the steps to a pipeline that answers the shards of files into a folder."""
    (
        pipeline
        | "Shards" >> beam.Create(plan)
        | "Spread" >> beam.Reshuffle()
        | "Read" >> beam.ParDo(ReadShard(files, len(plan), folder, handler.reader))
        | "Answer" >> RunInference(_ShardHandler(handler))
        | "Write" >> beam.ParDo(WriteShard(files, len(plan), folder, handler.reader))
        | "All" >> beam.combiners.ToList()
        | "Index" >> beam.ParDo(WriteIndex(plan, folder))
    )


class _ShardHandler(ModelHandler[Any, Any, ExportedModel]):
    """`ExportHandler` for elements (shard, lines, rows), which stay together."""

    def __init__(self, rows: ExportHandler):
        super().__init__(min_batch_size=1, max_batch_size=1)
        self._rows = rows

    def load_model(self) -> ExportedModel:
        return self._rows.load_model()

    def run_inference(self, batch, model, inference_args=None):
        for shard, lines, rows in batch:
            yield shard, lines, list(self._rows.run_inference(rows, model))

    def get_num_bytes(self, batch) -> int:
        return 0  # the default pickles all rows

    def get_metrics_namespace(self) -> str:
        return self._rows.get_metrics_namespace()


class _Step(beam.DoFn):
    """A step on shards of files, of which there are so many, with answers in a folder."""

    def __init__(self, files: list[InputFile], shards: int, folder: str, reader: RowReader):
        self._files, self._shards, self._folder, self._reader = files, shards, folder, reader

    def path(self, name: str, shard: Shard) -> str:
        return os.path.join(self._folder, name.format(shard.number, self._shards))


class ReadShard(_Step):
    """Yields (shard, lines, rows), with a `Failure` for a row that cannot be read.

    A shard that is done has no rows.
    """

    def process(self, shard: Shard) -> Iterable[tuple[Shard, list[int], list[Any]]]:
        if _exists(self.path(ANSWERS, shard)):
            yield shard, [], []
            return
        records = list(_rows_of(self._files[shard.file], shard, self._reader))
        if len(records) != shard.rows:
            raise RuntimeError(
                f"{self._files[shard.file].path} has changed: expected {shard.rows} rows from line "
                f"{shard.line} on, found {len(records)}"
            )
        yield shard, [line for line, _ in records], [row for _, row in records]


class WriteShard(_Step):
    """Writes the answers of a shard, and its rows without one; yields (shard, answered, failed)."""

    def process(
        self, element: tuple[Shard, list[int], list[PredictionResult]]
    ) -> Iterable[tuple[int, int, int]]:
        shard, lines, results = element
        answers, failed = self.path(ANSWERS, shard), self.path(FAILED, shard)
        if not _exists(answers):
            good, bad = [], []
            for line, (row, found, _) in zip(lines, results, strict=True):
                said = {"file": self._files[shard.file].name, "line": line}
                if isinstance(found, Failure):
                    bad.append(_failed_line(said, found))
                    continue
                id_column = self._reader.id_column
                if isinstance(row, dict) and row.get(id_column) is not None:
                    said["row_id"] = row[id_column]
                good.append(json_line(said | found))
            if bad:
                write_whole(failed, b"".join(bad))
            write_whole(answers, b"".join(good))  # last: the shard is done
        yield shard.number, _count_lines(answers), _count_lines(failed)


def _failed_line(said: dict, failure: Failure) -> bytes:
    said = said | {"error": failure.reason}
    try:
        return json_line(said | {"input": failure.input})
    except ValueError:  # NaN is not JSON
        return json_line(said | {"input": repr(failure.input)})


class WriteIndex(beam.DoFn):
    """Checks that each row has exactly one result, and writes the index."""

    def __init__(self, plan: list[Shard], folder: str):
        self._plan, self._folder = plan, folder

    def process(self, found: list[tuple[int, int, int]]) -> Iterable[None]:
        counts = {shard: (answered, failed) for shard, answered, failed in found}
        for shard in self._plan:
            if sum(counts[shard.number]) != shard.rows:
                raise RuntimeError(
                    f"shard {shard.number} has {counts[shard.number]} answered and failed rows: "
                    f"expected {shard.rows}; delete {self._folder}"
                )
        index = {
            "format": FORMAT,
            "rows": sum(shard.rows for shard in self._plan),
            "answered": sum(answered for answered, _ in counts.values()),
            "failed": sum(failed for _, failed in counts.values()),
            "shards": [[*counts[shard.number]] for shard in self._plan],
        }
        write_whole(os.path.join(self._folder, INDEX), json.dumps(index, indent=1).encode())
        return ()


# === The input ===


def make_plan(files: list[InputFile], reader: RowReader, rows_per_shard: int) -> list[Shard]:
    """Cuts files into shards; reads all of them but Parquet, of which it reads the sizes.

    Raises:
        ValueError: if a column is missing, or a file cannot be read.
    """
    plan: list[Shard] = []
    for index, file in enumerate(files):
        if file.ending == ".parquet":
            with open_bytes(file.path) as stream:
                found = open_parquet(file.path, stream)
                reader.check_columns(file, found.schema_arrow.names)
                rows = found.metadata.num_rows
            for begin in range(0, rows, rows_per_shard):
                count = min(rows_per_shard, rows - begin)
                plan.append(Shard(len(plan), index, begin, begin + 1, count))
            continue
        at = Place()
        if file.ending == ".txt":
            reader.text_input(file)
        elif (names := _names(file, at)) is not None:
            if repeated := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"{file.path}, line 1: several columns {repeated[0]!r}")
            reader.check_columns(file, names)
        records, first, count = _records(file, at), None, 0
        while True:
            begin, line = at.offset, at.line + 1
            ended = next(records, None) is None
            if first and (ended or count == rows_per_shard or begin - first[0] >= SHARD_BYTES):
                plan.append(Shard(len(plan), index, *first, count))
                first, count = None, 0
            if ended:
                break
            first, count = first or (begin, line), count + 1
    if not plan:
        raise ValueError(f"there is no row in {', '.join(str(file.path) for file in files)}")
    return plan


def _rows_of(file: InputFile, shard: Shard, reader: RowReader) -> Iterator[tuple[int, Any]]:
    """Yields (line, row) of a shard: a dict, a string, or a `Failure`."""
    if file.ending == ".parquet":
        with open_bytes(file.path) as stream:
            columns = reader.check_columns(file, column_names(file.path))
            end = shard.begin + shard.rows
            for line, row in parquet_rows(file.path, stream, columns, shard.begin, end):
                wrong = isinstance(row, ValueError)
                yield line, Failure(str(row), f"{file.path}, line {line}") if wrong else row
        return
    names = _names(file, Place())
    records = _records(file, Place(shard.begin, shard.line - 1))
    for line, found in itertools.islice(records, shard.rows):
        if file.ending == ".txt":
            yield line, _sound(found.removesuffix("\n").removesuffix("\r"))
        elif names is None:
            yield line, _object(file, line, found)
        elif len(found) == len(names):
            yield line, _sound(dict(zip(names, found, strict=True)))
        else:
            reason = f"{len(found)} columns: expected {len(names)}"
            yield line, Failure(reason, _sound(found))


def _object(file: InputFile, line: int, text: str) -> Any:
    text = _sound(text.removesuffix("\n"))
    if isinstance(text, Failure):
        return text
    try:
        found = parse_json(text, str(file.path), line)
    except ValueError as error:
        return Failure(str(error).removeprefix(f"{file.path}, line {line}: "), text)
    return _sound(found) if isinstance(found, dict) else Failure("expected a JSON object", text)


def _sound(row: Any) -> Any:
    """The row, or a `Failure` if Beam cannot encode it: if it has bytes that are not UTF-8."""
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        return Failure(f"can't be written as UTF-8: {error}", json.dumps(row))
    return row


def _names(file: InputFile, at: Place) -> list[str] | None:
    """The names in the header line of a table, which `at` is moved past; None for other files."""
    if file.ending not in (".csv", ".tsv"):
        return None
    return next((cells for _, cells in _records(file, at)), [])


def _records(file: InputFile, at: Place) -> Iterator[tuple[int, Any]]:
    """Yields (line, text or cells) of each record from a place on, which is moved past it.

    Bytes that are not UTF-8 become lone surrogates, which only fail the row.
    """
    reading: dict[str, Any] = {"at": at, "errors": "surrogateescape", "longest": LINE_BYTES}
    if file.ending in (".csv", ".tsv"):
        return split_lines(file.path, DELIMITERS[file.ending], **reading)
    lines = read_lines(file.path, **reading)
    return lines if file.ending == ".txt" else (row for row in lines if row[1].strip())


# === The folder of answers ===


def _claim(
    folder: str, asked: dict, files: list[InputFile], reader: RowReader, overwrite: bool
) -> list[Shard]:
    """Reads the plan of the folder, or makes one; anything else there is a FileExistsError."""
    import tensorflow as tf

    ours = (PLAN, INDEX, "answers-*-of-*.jsonl", "failed-*-of-*.jsonl", "*.new")
    # The index first: without one, the answers are not complete.
    found = claim_folder(folder, ours, "answers", overwrite, INDEX)
    asked = json.loads(json.dumps(asked))
    if PLAN in found:
        plan = parse_json(read_whole(os.path.join(folder, PLAN)).decode(), PLAN)
        for name, value in asked.items():
            if plan["asked"].get(name) != value:
                raise FileExistsError(
                    f"{folder} holds answers with another {name}, or part of them; {OVERWRITE}"
                )
        return [Shard(*shard) for shard in plan["shards"]]
    if found:
        raise FileExistsError(f"{folder} holds answers without {PLAN}; {OVERWRITE}")
    shards = make_plan(files, reader, asked["rows_per_shard"])
    tf.io.gfile.makedirs(folder)
    content = {"asked": asked, "shards": [astuple(shard) for shard in shards]}
    write_whole(os.path.join(folder, PLAN), json.dumps(content).encode())
    return shards


def _state(folder: str, plan: list[Shard]) -> str:
    import tensorflow as tf

    done = sum(
        name.startswith("answers-") and name.endswith(".jsonl")
        for name in tf.io.gfile.listdir(folder)
    )
    rows = sum(shard.rows for shard in plan)
    return f"{done:,} of {len(plan):,} shards answered ({rows:,} rows in all)"


def _count_lines(path: str) -> int:
    if not _exists(path):
        return 0
    with open_bytes(path) as file:
        return sum(1 for _ in file)


def _exists(path: str) -> bool:
    import tensorflow as tf

    return tf.io.gfile.exists(path)
