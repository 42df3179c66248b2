"""The commands and their options. TensorFlow is imported by a command's work, not by its help."""

import logging
import os
import sys
import traceback
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated

import typer

from keras_bert_cli.first_readers import readers_alone, whole_package
from keras_bert_cli.terminal import (
    FAILED,
    INTERRUPTED,
    UNEXPECTED,
    USAGE,
    number,
    quiet_start,
    terminal,
)

# Its base of all errors in flags, which has no public name where Typer brings its own click.
ClickException = typer.BadParameter.__mro__[2]
SAVED = 143  # with which `keras_bert.training.Resume` ends a process after saving
EXPECTED = (ValueError, TypeError, OSError, ImportError)  # errors of what the user gave

STRATEGIES = ("auto", "one", "mirrored", "multiworker", "tpu")  # keras_bert.training.strategy

app = typer.Typer(
    name="keras-bert",
    help="Trains, scores, tries and serves a BERT, from files and without writing Python.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)


class Task(StrEnum):
    """The kinds of tasks; see `keras_bert_cli.kinds.KINDS`."""

    CLASSIFY = "classify"
    MULTI_LABEL = "multi-label"
    REGRESS = "regress"
    TAG = "tag"
    ANSWER = "answer"
    CHOOSE = "choose"
    RELATE = "relate"
    EMBED = "embed"
    MLM = "mlm"


class Form(StrEnum):
    """The forms that a checkpoint can be written in."""

    GOOGLE = "google"
    HUGGINGFACE = "huggingface"
    KERASHUB = "kerashub"
    SENTENCE_TRANSFORMERS = "sentence_transformers"
    KERAS_BERT = "keras_bert"


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
Texts = Annotated[
    list[str] | None,
    typer.Option("--text", help="Column of the texts; twice for pairs. Guessed if left out."),
]
Labels = Annotated[
    list[str] | None, typer.Option("--label", help="Column of the labels. Guessed if left out.")
]
Delimiter = Annotated[
    str | None, typer.Option(help="Separator of the columns, if the file name does not tell.")
]
Separator = Annotated[str, typer.Option("--separator", help="Between several labels of a text.")]
Skip = Annotated[
    bool, typer.Option("--skip_bad_rows", help="Leave out rows that are wrong, and say which.")
]
Renamed = Annotated[
    list[str] | None,
    typer.Option(
        "--rename_label",
        metavar="OLD=NEW",
        help="Read a label as another; again for more. Kept for `evaluate`.",
    ),
]
BatchSize = Annotated[int | None, typer.Option("--batch_size", min=1, help="Rows of a batch.")]


def _versions(shown: bool) -> None:
    if not shown:
        return
    import importlib.metadata
    import platform

    for name in ("keras3-bert", "tensorflow", "tensorflow-text", "keras", "keras-hub", "numpy"):
        try:
            print(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            print(f"{name} is not installed")
    print(f"python {platform.python_version()}")
    raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_versions, is_eager=True, help="Print versions."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and logs.")] = False,
) -> None:
    terminal.debug = debug
    if not debug:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def _command(work: Callable) -> Callable:
    """Registers a command; its `as_json` decides where results go."""

    @wraps(work)
    def run(*args, as_json: bool = False, **kwargs):
        terminal.as_json = as_json
        return work(*args, **kwargs)

    return app.command(work.__name__.replace("_", "-"))(run)


@_command
def train(
    task: Annotated[Task, typer.Argument(help="Kind of task.")],
    file: Annotated[Path, typer.Argument(help="CSV, TSV, JSON lines or Parquet; SQuAD; CoNLL.")],
    preset: Annotated[
        str, typer.Option(help="BERT to start from: a folder, a name or an address.")
    ] = "bert_mini_en_public_domain",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of the run; runs/FILE by default.")
    ] = None,
    text: Texts = None,
    label: Labels = None,
    delimiter: Delimiter = None,
    separator: Separator = ",",
    skip_bad_rows: Skip = False,
    rename_label: Renamed = None,
    dev: Annotated[Path | None, typer.Option(help="File to choose the best epoch by.")] = None,
    dev_share: Annotated[
        float, typer.Option("--dev_share", help="Share of the rows held out without --dev.")
    ] = 0.1,
    epochs: Annotated[float | None, typer.Option(help="Most passes over the data.")] = None,
    batch_size: BatchSize = None,
    learning_rate: Annotated[float | None, typer.Option("--learning_rate")] = None,
    sequence_length: Annotated[
        int | None, typer.Option("--sequence_length", help="Tokens of a row.")
    ] = None,
    patience: Annotated[
        int, typer.Option(min=1, help="Epochs without a better dev score before training stops.")
    ] = 3,
    class_weight: Annotated[
        str | None, typer.Option("--class_weight", help='"balanced" for rare classes.')
    ] = None,
    dtype: Annotated[str, typer.Option(help='"mixed_bfloat16" on a GPU.')] = "float32",
    strategy: Annotated[str, typer.Option(help="Devices: auto, one, mirrored, ...")] = "auto",
    seed: int = 0,
    limit: Annotated[int | None, typer.Option(min=2, help="Train on the first rows only.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry_run", help="Show data and settings, and train nothing.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a stopped run.")] = False,
    as_json: Json = False,
) -> None:
    """Train a model on a file.

    Its preset, scores and pictures go to the folder of the run.
    """
    _check_files(file, dev)
    _check_preset(preset)
    output = output or Path("runs") / file.name.removesuffix(".gz").split(".")[0]
    given = {
        "texts": tuple(text or ()),
        "labels": tuple(label or ()),
        "delimiter": delimiter,
        "separator": separator,
        "skip_bad_rows": skip_bad_rows,
        "renamed": _pairs("--rename_label", rename_label, "OLD=NEW"),
    }
    with readers_alone():
        from keras_bert_cli.kinds import KINDS, Source, read_both
        from keras_bert_cli.runs import check_output

        if not dry_run:
            check_output(output, resume)
        source, dev_source = Source(file, **given), dev and Source(dev, **given)
        tables = read_both(KINDS[task.value], source, dev_source)
    _start()
    from keras_bert_cli.train import Settings
    from keras_bert_cli.train import train as work

    settings = Settings(
        preset,
        dev_share,
        epochs,
        batch_size,
        learning_rate,
        sequence_length,
        dtype,
        patience,
        class_weight,
        seed,
        strategy,
    )
    found = work(
        task.value,
        source,
        dev_source,
        tables,
        settings,
        output,
        dry_run=dry_run,
        limit=limit,
    )
    terminal.result(found)


@_command
def evaluate(
    run: Annotated[str, typer.Argument(help="Folder of a run, or a preset of a task.")],
    file: Annotated[Path, typer.Argument(help="Labelled file.")],
    text: Texts = None,
    label: Labels = None,
    delimiter: Delimiter = None,
    separator: Separator = ",",
    skip_bad_rows: Skip = False,
    batch_size: BatchSize = 32,
    report: Annotated[
        Path | None, typer.Option(help="Folder for pictures and the worst mistakes.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Score a trained model on a labelled file."""
    _check_files(file)
    _check_preset(run)
    options = (text, label, delimiter, separator, skip_bad_rows)
    with readers_alone():
        from keras_bert_cli.kinds import KINDS
        from keras_bert_cli.runs import Run

        found, table = Run(run), None
        if found.facts:  # which say the kind of task; of a preset, the model does
            table = KINDS[found.kind].read(_labelled(found, file, *options))
    _start()
    from keras_bert_cli.train import draw, scores, shown

    kind = found.kind
    table = KINDS[kind].read(_labelled(found, file, *options)) if table is None else table
    for note in table.notes:
        terminal.note(note)
    values = scores(KINDS[kind], found.model, table, batch_size)
    terminal.table(shown(KINDS[kind], values, len(table)), f"{len(table):,} rows of {file}:")
    pictures = draw(KINDS[kind], found.model, table, report, batch_size) if report else None
    if pictures:
        terminal.say(f"The errors, with pictures, are in {pictures}")
    terminal.result({"scores": values, "rows": len(table)})


@_command
def predict(
    run: Annotated[str, typer.Argument(help="Folder of a run, a preset of a task, or an export.")],
    file: Annotated[list[Path], typer.Argument(help="Files, or folders of files.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="JSON lines to write; or .csv, with the columns of the input."
        ),
    ],
    text: Texts = None,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="INPUT=COLUMN", help="Column of an input of the signature."),
    ] = None,
    signature: Annotated[str | None, typer.Option(help="Of the export.")] = None,
    batch_size: BatchSize = 64,
    restart: Annotated[bool, typer.Option("--restart", help="Replace the output.")] = False,
    as_json: Json = False,
) -> None:
    """Answer every row of files, in order.

    After an interruption, the same command goes on.
    """
    _check_files(*file)
    _check_preset(run)
    columns = _pairs("--column", column, "INPUT=COLUMN")
    answers = output
    if as_csv := output.suffix == ".csv":
        if output.exists() and not restart:
            raise FileExistsError(
                f"{output} is there already: replace it by --restart, or choose another --output"
            )
        answers = output.with_name(f"{output.name}.jsonl")
    is_export = (Path(run) / "saved_model.pb").is_file()
    model, guess = run, {}
    with readers_alone():
        from keras_bert.serving.bulk_rows import RowReader, find_files
        from keras_bert_cli.kinds import KINDS
        from keras_bert_cli.runs import Run

        # Of folders, `answer_file` says which files are left out.
        files = None if any(path.is_dir() for path in file) else find_files(file)
        found = None if is_export else Run(run)
        if found is not None and (read := found.columns):
            read = read._replace(texts=tuple(text)) if text else read
            own, guess = KINDS[found.kind].signature(read)
            # The inputs of the run's own signature are these texts.
            if files and guess and not columns and signature in (None, own):
                shapes = {name: {"dtype": "string", "shape": [None]} for name in guess}
                next(iter(RowReader(files, shapes, guess)), None)  # for columns that are missing
            signature = signature or own
    _start()
    from keras_bert.serving.bulk import answer_file
    from keras_bert_cli.terminal import Progress

    if found is not None:
        model = found.model
    progress = None

    def show(done: int, total: int) -> None:
        nonlocal progress
        progress = progress or Progress(total, "answered")
        progress.to(done)

    count = answer_file(
        model,
        file,
        answers,
        signature=signature or "serving_default",
        columns=guess | columns,
        batch_size=batch_size,
        resume=not restart,
        verbose=sys.stderr.isatty(),
        on_progress=None if sys.stderr.isatty() else show,
    )
    if as_csv:
        from keras_bert.serving.bulk import STATE
        from keras_bert_cli.answers_csv import write_csv

        write_csv(files or find_files(file), answers, output)
        for made in (answers, answers.with_name(answers.name + STATE)):
            made.unlink()
    terminal.say(f"{count:,} rows are answered in {output}")
    terminal.result({"rows": count, "output": str(output)})


@_command
def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]MODEL...",
            help="Folders of runs or exports, or presets; several are served by their names.",
        ),
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8501,
    max_batch_size: Annotated[
        int, typer.Option("--max_batch_size", min=1, help="Rows answered at once.")
    ] = 32,
    max_wait: Annotated[
        float,
        typer.Option("--max_wait", min=0, help="Seconds that a row waits for others, on 1 thread."),
    ] = 0.002,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Batches at once. Without: 1 on a GPU or in ONNX, else one a core, up to 4.",
        ),
    ] = None,
    api_key_file: Annotated[
        Path | None, typer.Option("--api_key_file", help="Keys that clients have to send.")
    ] = None,
    allow_hosts: Annotated[
        list[str] | None,
        typer.Option("--allow_host", help="Another name by which clients ask, behind a proxy."),
    ] = None,
) -> None:
    """Answer over HTTP, and on a page in a browser."""
    _check_files(api_key_file)
    _start()
    from keras_bert.server import serve as work
    from keras_bert.server.served_model import default_name

    named = {}
    for model in models:
        name, sign, place = model.partition("=")
        if not sign or "/" in name:  # a path may hold a sign of equality
            name, place = "", model
        named[name or default_name(place)] = place
    if len(named) < len(models):
        raise ValueError(f"models of one name among {', '.join(models)}: write NAME=MODEL")
    options = {"max_batch_size": max_batch_size, "max_wait": max_wait, "threads": threads}
    work(named, host, port, api_key_file=api_key_file, allow_hosts=allow_hosts or (), **options)


@_command
def explain(
    run: Annotated[str, typer.Argument(help="Folder of a run, or a preset of a task.")],
    text: Annotated[
        list[str], typer.Argument(help="A text; two for a pair; <e1>, <e2> mark relations.")
    ],
    target: Annotated[
        str | None, typer.Option(help="Label to explain; by default the answer.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="integrated_gradients, gradient_x_input or occlusion")
    ] = "integrated_gradients",
    html: Annotated[Path | None, typer.Option(help="Also write a page.")] = None,
    as_json: Json = False,
) -> None:
    """Show which words made the difference."""
    _start()
    from keras_bert_cli.explain import explain_text
    from keras_bert_cli.runs import Run

    terminal.result(explain_text(Run(run).model, text, target, method, html))


@_command
def info(
    path: Annotated[str, typer.Argument(help="A checkpoint, preset, corpus, export or run.")],
    as_json: Json = False,
) -> None:
    """Describe a checkpoint, preset, corpus, export or run.

    Its form, heads, sizes, labels and licence.
    """
    _start(accelerator=False)
    from keras_bert_cli.info import describe

    found = describe(path)
    terminal.table([(name, _short(value)) for name, value in found.items()], path)
    terminal.result(found)


@_command
def convert(
    source: Annotated[str, typer.Argument(help="A folder, prefix, name or address.")],
    output: Annotated[Path, typer.Argument(help="The folder to make.")],
    to: Annotated[Form, typer.Option(help="The form to write.")],
    as_json: Json = False,
) -> None:
    """Write a checkpoint in the form of another library.

    Heads and vocabulary included.
    """
    _start(accelerator=False)
    from keras_bert.tasks.conversion import convert_checkpoint

    notes = convert_checkpoint(source, output, to.value)
    terminal.say(f"{output}: {to.value}")
    for note in notes:
        terminal.say(f"  {note}")
    terminal.result({"output": str(output), "form": to.value, "notes": list(notes)})


@_command
def vocab(
    files: Annotated[list[str], typer.Argument(help="Names or globs of UTF-8 text, also .gz.")],
    size: Annotated[int, typer.Option(help="Tokens of the vocabulary.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    cased: Annotated[bool, typer.Option("--cased", help="Keep upper case, and accents.")] = False,
    strip_accents: Annotated[
        bool | None,
        typer.Option("--strip_accents/--no-strip_accents", help="By default as case is lowered."),
    ] = None,
    unused: Annotated[int, typer.Option(help="[unusedN] tokens to set aside.")] = 0,
    min_frequency: Annotated[
        int, typer.Option("--min_frequency", help="Of a pair that is merged.")
    ] = 2,
    alphabet_size: Annotated[
        int, typer.Option("--alphabet_size", help="Characters to keep.")
    ] = 1000,
    as_json: Json = False,
) -> None:
    """Train a WordPiece vocabulary on text files."""
    if output.exists():
        raise FileExistsError(f"{output} is there already: delete it, or choose another --output")
    _start(accelerator=False)
    from keras_bert.data import build_vocabulary
    from keras_bert.text.vocabulary import write_vocabulary

    tokens = build_vocabulary(
        files,
        size,
        lowercase=not cased,
        strip_accents=strip_accents,
        unused=unused,
        min_frequency=min_frequency,
        alphabet_size=alphabet_size,
    )
    write_vocabulary(output, tokens)
    terminal.say(f"{len(tokens):,} tokens in {output}")
    terminal.result({"tokens": len(tokens), "output": str(output)})


@_command
def corpus(
    files: Annotated[
        list[str],
        typer.Argument(help="Names or globs of UTF-8 text, also .gz, or tfds:NAME[:SPLIT]."),
    ],
    vocabulary: Annotated[Path, typer.Option(help="A vocabulary file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The corpus's folder.")],
    cased: Annotated[bool, typer.Option("--cased", help="Keep upper case, and accents.")] = False,
    strip_accents: Annotated[
        bool | None,
        typer.Option("--strip_accents/--no-strip_accents", help="By default as case is lowered."),
    ] = None,
    format: Annotated[str, typer.Option(help="sentences or paragraphs")] = "sentences",
    language: Annotated[str, typer.Option(help="Of paragraphs, ISO 639-1.")] = "en",
    shards: Annotated[int, typer.Option(min=1)] = 8,
    seed: Annotated[int, typer.Option(help="Of the order of documents.")] = 0,
    tfds_data_dir: Annotated[
        str | None, typer.Option("--tfds_data_dir", help="Where TensorFlow Datasets lie.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Threads; one a core.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Delete another corpus.")] = False,
    beam: Annotated[
        list[str] | None,
        typer.Option(help="An option of Apache Beam, such as --beam=--runner=DataflowRunner."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a prepared corpus of text files: shards of tokenized documents."""
    _start(accelerator=False)
    import keras_bert
    from keras_bert.data import prepare_corpus

    tokenizer = keras_bert.BertTokenizer(
        vocabulary, lowercase=not cased, strip_accents=strip_accents
    )
    index = prepare_corpus(
        files,
        output,
        tokenizer,
        shards=shards,
        seed=seed,
        format=format,
        language=language,
        data_dir=tfds_data_dir,
        overwrite=overwrite,
        workers=workers,
        beam_options=beam or [],
    )
    found = {
        "documents": index.documents,
        "sentences": index.sentences,
        "tokens": index.tokens,
        "shards": len(index.shards),
        **index.left_out,
    }
    rows = [(name.replace("_", " "), f"{value:,}") for name, value in found.items()]
    terminal.table(rows, str(output))
    terminal.result(found | {"output": str(output)})


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def pretrain(context: typer.Context) -> None:
    """Pre-train a BERT on a prepared corpus."""
    from keras_bert_cli.pretrain_flags import parse

    parse(context.args)  # wrong flags and --help end here
    _start()
    from keras_bert_cli.pretrain import main as work
    from keras_bert_cli.runs import saved_on_interrupt

    with saved_on_interrupt():
        work(context.args)


def _check_files(*files: Path | None) -> None:
    for path in files:
        if path is not None and not path.exists():
            raise FileNotFoundError(f"{path}: no such file")
        if path is not None and ".tfrecord" in path.name:  # TensorFlow reads them
            _start()


def _check_preset(name: str) -> None:
    """Refuses a folder that is not there; other names are looked up by the package."""
    if "/" in name and "://" not in name and not Path(name).is_dir():
        raise FileNotFoundError(f"{name}: no such folder")


def _start(accelerator: bool = True) -> None:
    """Imports the package, after checks that need no TensorFlow: the import takes seconds.

    Args:
        accelerator: False leaves GPUs alone, for work that they do not help.
    """
    if sys.stderr.isatty():  # seconds in which nothing else is printed
        terminal.note("loading TensorFlow ...")
    if not accelerator:
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    with quiet_start():
        whole_package()  # before TensorFlow, whose settings it makes

        import tensorflow_text  # noqa: F401


def _short(value) -> str:
    """A value of `info` for people."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_short(one)}" for name, one in value.items())
    if isinstance(value, float):
        return number(value) if 0.01 <= abs(value) < 1e4 else f"{value:g}"
    if isinstance(value, list):
        value = ", ".join(map(str, value[:12])) + (
            f" and {len(value) - 12} more" * (len(value) > 12)
        )
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _pairs(option: str, given: list[str] | None, form: str) -> dict[str, str]:
    """Values of an option of the form NAME=VALUE."""
    found = {}
    for pair in given or ():
        name, sign, value = pair.partition("=")
        if not (name and sign and value):
            raise typer.BadParameter(f"{option} {pair}: expected {form}")
        found[name] = value
    return found


def _labelled(found, file, text, label, delimiter, separator, skip_bad_rows):
    """A file to read by the columns of a run."""
    from keras_bert_cli.kinds import Source

    columns = found.columns
    return Source(
        file,
        tuple(text or (columns.texts if columns else ())),
        tuple(label or (columns.labels if columns else ())),
        delimiter=delimiter,
        separator=separator,
        skip_bad_rows=skip_bad_rows,
        scale=found.facts.get("scale"),
        renamed=found.facts.get("renamed") or {},
    )


def run(arguments: list[str] | None = None) -> int:
    """Runs the command and returns its exit code.

    Exit codes: 0 done, 1 a file or setting is wrong, 2 a flag is wrong, 3 an error of the program,
    130 interrupted.
    """
    try:
        return app(arguments, standalone_mode=False) or 0
    except SystemExit as stop:
        if stop.code != SAVED:
            return stop.code or 0
        terminal.note("stopped; the step is saved: the same command with --resume goes on")
        return INTERRUPTED
    except ClickException as error:
        _trace()
        error.show()
        return USAGE
    except (typer.Abort, KeyboardInterrupt):
        terminal.error("interrupted", "stopped")
        return INTERRUPTED
    except EXPECTED as error:
        _trace()
        terminal.error(error)
        return FAILED
    except Exception as error:  # the last resort: one line for people
        _trace()
        hint = "" if terminal.debug else " (a traceback: keras-bert --debug ...)"
        terminal.error(f"{type(error).__name__}: {error}{hint}", "unexpected error")
        return UNEXPECTED


def _trace() -> None:
    if terminal.debug:
        traceback.print_exc()


def main() -> None:
    """Runs the command, and ends the process with its exit code."""
    if "--debug" not in sys.argv:
        # It warns of functions that are traced again, which are here those of several tokenizers.
        logging.getLogger("tensorflow").setLevel(logging.ERROR)
    sys.exit(run())


if __name__ == "__main__":
    main()
