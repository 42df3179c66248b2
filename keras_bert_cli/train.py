"""`keras-bert train`: from a file to a trained model, its scores and pictures of them."""

import importlib.metadata
import importlib.util
import math
import shutil
import statistics
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
from scipy.stats import binomtest

import keras_bert
from keras_bert.data import SquadExample, hold_out
from keras_bert.data.rows import extension
from keras_bert.serving.bulk_rows import ENDINGS
from keras_bert.training import BestWeights, JsonLines, Resume, ValidationScores, strategy
from keras_bert_cli import runs
from keras_bert_cli.kinds import KINDS, Answer, FillIn, Kind, Source, Table, Tag, annotated
from keras_bert_cli.terminal import Progress, duration, number, terminal

# Learning rates that train well, by the width of the encoder up to which they hold. Devlin et al.
# 2019, appendix A.3, give 2e-5 to 5e-5 for widths 768 and 1024; narrower models need more.
LEARNING_RATES = ((128, 5e-4), (256, 3e-4), (512, 1e-4), (768, 3e-5), (math.inf, 2e-5))
EPOCHS = (3, 20)
MEASURED = 2000  # rows whose lengths are counted
SHOWN = 3  # rows of a dry run
EXPLAINED = 3  # mistakes of a report with attributions
TIMED_STEPS = 6
VERSIONS = ("keras3-bert", "tensorflow", "keras", "keras-hub")


@dataclass(frozen=True)
class Settings:
    """Settings of a run; None for those that follow from the model and the data."""

    preset: str
    dev_share: float = 0.1
    epochs: float | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    sequence_length: int | None = None
    dtype: str = "float32"
    patience: int = 3
    class_weight: str | None = None
    seed: int = 0
    strategy: str = "auto"


def train(
    kind_name: str,
    source: Source,
    dev_source: Source | None,
    tables: tuple[Table, Table | None],
    settings: Settings,
    output: Path,
    *,
    dry_run: bool = False,
    limit: int | None = None,
) -> dict[str, Any]:
    """Trains a model and writes the folder of the run.

    Args:
        kind_name: a key of `KINDS`.
        source: the file to train on.
        dev_source: the file to choose the best epoch by; None holds rows of the first out.
        tables: the examples of both, as `read_both` returns them.
        settings: of the run.
        output: the folder to write, or of a run to go on with; see `runs.check_output`.
        dry_run: shows data and settings, and trains nothing.
        limit: trains on the first so many rows only.

    Returns:
        The content of metrics.json, and the path of the preset.

    Raises:
        ValueError: if settings do not fit.
    """
    kind = KINDS[kind_name]
    devices = strategy(settings.strategy)
    table, dev = tables
    if limit is not None:
        table = table.take(range(min(limit, len(table))))
    notes = list(table.notes)
    if dev is None:
        table, dev = _held_out(kind, table, settings)
        notes.append(f"{len(dev):,} rows are held out to score on (seed {settings.seed})")
    else:
        notes += [note for note in dev.notes if note not in notes]
    keras.utils.set_random_seed(settings.seed)
    tokenizer = keras_bert.BertTokenizer.from_preset(settings.preset)
    lengths = _lengths(kind, table, tokenizer)
    backbone_limit = None if settings.sequence_length else _most_tokens(settings.preset)
    settings = completed(settings, kind, len(table), lengths, backbone_limit)
    with devices.scope():
        model = _make(kind, (table, dev), settings)
    settings = _with_rate(settings, model.backbone.hidden_dim)
    model.compile(learning_rate=settings.learning_rate)
    steps = math.ceil(len(table) / settings.batch_size) * settings.epochs
    about = _about(source, kind, table, dev, notes, lengths, model, settings)
    terminal.table(about, str(source.path))
    if dry_run:
        return _dry_run(kind, table, dev, model, settings, about, steps)
    kept = _kept_settings(settings)
    facts = {
        "format": runs.FORMAT,
        "kind": kind_name,
        "task": kind.task,
        "data": {"train": source.path.name, "dev": dev_source and dev_source.path.name},
        "columns": table.columns
        and {"texts": list(table.columns.texts), "labels": list(table.columns.labels)},
        "scale": table.scale,
        "renamed": source.renamed,
        "rows": {"train": len(table), "dev": len(dev)},
        "settings": kept,
        "versions": {name: importlib.metadata.version(name) for name in VERSIONS if _has(name)},
    }
    runs.write(output / runs.RUN, facts)
    begin = time.monotonic()
    history, monitor = _fit(kind, model, table, dev, settings, output)
    metrics = {
        "scores": scores(kind, model, dev, settings.batch_size),
        "monitor": monitor,
        "epochs": history,
        "seconds": round(time.monotonic() - begin, 1),
        "rows": facts["rows"],
        **kind.facts(table),
    }
    model.save_to_preset(str(output / runs.PRESET))
    runs.write(output / runs.METRICS, metrics)
    shutil.rmtree(output / runs.CHECKPOINTS, ignore_errors=True)
    pictures = draw(kind, model, dev, output / "report", settings.batch_size)
    _show_scores(kind, metrics, dev, output, source, pictures)
    return metrics | {"preset": str(output / runs.PRESET)}


def draw(kind: Kind, model, table: Table, folder: Path, batch_size: int) -> str | None:
    """Writes the report of a model's errors and returns its page; None without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        terminal.note("no report: pip install 'keras3-bert[plots]'")
        return None
    from keras_bert.explain import errors

    x, y = _x_y(kind, table)
    files = errors(model, x, y, explained=EXPLAINED, batch_size=batch_size).write(folder)
    return str(next(file for file in files if file.suffix == ".html"))


def _has(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _held_out(kind: Kind, table: Table, settings: Settings) -> tuple[Table, Table]:
    """Rows to train on and rows to score on, without equal texts on both sides."""
    kept, held = hold_out(kind.strata(table), kind.groups(table), settings.dev_share, settings.seed)
    return table.take(kept.tolist()), table.take(held.tolist())


def _lengths(kind: Kind, table: Table, tokenizer) -> np.ndarray:
    """Tokens of the rows, [CLS] and [SEP] included; of a sample of a large table."""
    texts = kind.texts(table)
    rng = np.random.default_rng(0)
    if len(texts) > MEASURED:
        texts = [texts[i] for i in np.sort(rng.choice(len(texts), MEASURED, replace=False))]
    counts = 1
    for column in zip(*texts, strict=True):
        counts = counts + 1 + np.asarray(tokenizer(list(column)).row_lengths())
    return counts


def _most_tokens(preset: str) -> int:
    preprocessor = keras_bert.BertClassifierPreprocessor.from_preset(preset)
    return preprocessor.sequence_length


def completed(settings: Settings, kind: Kind, rows: int, lengths, most: int | None) -> Settings:
    """Completes settings by those that follow from the data.

    Args:
        settings: as the user gave them.
        kind: the kind of task.
        rows: number of rows to train on.
        lengths: tokens of the rows.
        most: the model's largest sequence length.
    """
    batch_size = settings.batch_size or kind.batch_size(rows)
    epochs = settings.epochs
    if epochs is None:
        epochs = min(max(EPOCHS[0], math.ceil(kind.updates * batch_size / rows)), EPOCHS[1])
    length = settings.sequence_length
    if length is None:
        wanted = 32 * math.ceil(float(np.quantile(lengths, 0.99)) / 32)
        if isinstance(kind, Answer):
            wanted = min(wanted, 384)
        length = min(max(wanted, 32), most)
    return replace(settings, batch_size=batch_size, epochs=epochs, sequence_length=length)


def _with_rate(settings: Settings, width: int) -> Settings:
    if settings.learning_rate is not None:
        return settings
    rate = next(rate for bound, rate in LEARNING_RATES if width <= bound)
    return replace(settings, learning_rate=rate)


def _make(kind: Kind, tables: tuple[Table, Table], settings: Settings):
    return getattr(keras_bert, kind.task).from_preset(
        settings.preset,
        sequence_length=settings.sequence_length,
        dtype=settings.dtype,
        skip_mismatch=True,  # a head for other labels is replaced
        **kind.settings(*tables),
    )


def _kept_settings(settings: Settings) -> dict[str, Any]:
    found = dict(settings.__dict__)
    if Path(settings.preset).exists():
        found["preset"] = Path(settings.preset).name
    return found


def _about(source, kind, table, dev, notes, lengths, model, settings) -> list[tuple[str, str]]:
    """What is known before training, for people."""
    cut = float(np.mean(lengths > settings.sequence_length))
    middle, most = np.quantile(lengths, [0.5, 0.95])
    backbone = model.backbone
    rows = [
        ("rows", f"{len(table):,} to train on, {len(dev):,} to score on"),
        *([("data", "\n".join(notes))] if notes else []),
    ]
    if counts := kind.label_counts(table):
        names = [f"{name}: {count:,}" for name, count in counts[:12]]
        more = f", and {len(counts) - 12} more" if len(counts) > 12 else ""
        rows.append(("labels", ", ".join(names) + more))
    lengths_text = f"half have up to {middle:.0f} tokens, 95% up to {most:.0f}, the longest "
    cut_text = "windows cover longer texts" if isinstance(kind, Answer | Tag) else "are truncated"
    rows += [
        ("lengths", f"{lengths_text}{lengths.max()}; at {settings.sequence_length} {cut:.1%} "
         + ("are longer, and read in windows" if isinstance(kind, Answer | Tag) else cut_text)),
        ("model", f"{Path(settings.preset).name}: {backbone.num_layers} layers, hidden size "
         f"{backbone.hidden_dim}, {model.count_params() / 1e6:.1f} million weights"),
        ("training", f"up to {settings.epochs:g} epochs, batch size {settings.batch_size}, "
         f"learning rate {settings.learning_rate:g}, seed {settings.seed}"),
    ]  # fmt: skip
    return rows


def _x_y(kind: Kind, table: Table):
    """The examples as `fit` takes them."""
    if isinstance(kind, Tag):
        return annotated(table)
    return table.x, table.data.labels


def _validation(kind: Kind, table: Table):
    x, y = _x_y(kind, table)
    if y is None and isinstance(x, list) and isinstance(x[0], SquadExample):
        return x
    return (x,) if y is None else (x, y)


def scores(kind: Kind, model, table: Table, batch_size: int) -> dict[str, float]:
    """Scores a model on labelled examples; the loss and perplexity of a masked language model."""
    x, y = _x_y(kind, table)
    if isinstance(kind, FillIn):
        found = model.evaluate(x, batch_size=batch_size, return_dict=True, verbose=0)
        return {name: float(value) for name, value in found.items()}
    found = model.scores(x, y, batch_size=batch_size)
    return {name: float(value) for name, value in found.items()}


def shown(kind: Kind, found: dict[str, float], count: int) -> list[tuple[str, str]]:
    """Scores for people; an accuracy of rows with the interval that follows from their number.

    The interval is Wilson's (1927), of 95%.
    """
    rows = {name: number(value) for name, value in found.items()}
    if kind.monitor == "accuracy" and 0 <= found.get("accuracy", -1) <= 1:
        right = round(found["accuracy"] * count)
        low, high = binomtest(right, count).proportion_ci(method="wilson")
        rows["accuracy"] += f"  (95% interval {low:.2f} to {high:.2f})"
    return list(rows.items())


class _EarlyStopping(keras.callbacks.EarlyStopping):
    """Keras's, which a resumed run goes on with."""

    def get_state(self) -> dict:
        best = None if self.best is None else float(self.best)
        return {"best": best, "wait": self.wait, "best_epoch": self.best_epoch}

    def set_state(self, state: dict) -> None:
        self._state = state

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        for name, value in getattr(self, "_state", {}).items():
            setattr(self, name, value)


class _Epochs(keras.callbacks.Callback):
    """Progress of the steps, and a line for each epoch."""

    def __init__(self, monitor: str, epochs: float):
        super().__init__()
        self._monitor, self._epochs = monitor, epochs
        self._bar = None
        self.history: list[dict[str, float]] = []

    def get_state(self) -> dict:
        return {"history": self.history}

    def set_state(self, state: dict) -> None:
        self.history = state["history"]

    def on_epoch_begin(self, epoch, logs=None):
        steps = self.model.run.steps_per_epoch or 1
        self._first = epoch * steps
        self._bar = Progress(steps, f"epoch {epoch + 1} of {self._epochs:g}")

    def on_train_batch_end(self, batch, logs=None):
        self._bar.to(self.model.run.done - self._first)

    def on_epoch_end(self, epoch, logs=None):
        self._bar.close()
        values = {name: float(value) for name, value in (logs or {}).items()}
        self.history.append(values)
        shown = [name for name in ("loss", "val_loss", self._monitor) if name in values]
        text = ", ".join(f"{name} {number(values[name])}" for name in dict.fromkeys(shown))
        terminal.note(f"epoch {epoch + 1} of {self._epochs:g}: {text}")

    def on_train_end(self, logs=None):
        if self._bar is not None:
            self._bar.close()


def _fit(kind: Kind, model, table: Table, dev: Table, settings: Settings, output: Path):
    """Trains; leaves the weights of the best epoch in the model."""
    monitor = kind.monitor
    if monitor == "f1" and isinstance(kind, Tag) and not model.scores_by_default:
        monitor = "accuracy"
    if getattr(model, "pair_loss", None) == "contrastive":
        monitor = "accuracy"
    monitor = f"val_{monitor}"
    best = output / runs.CHECKPOINTS / "best.weights.h5"
    epochs = _Epochs(monitor, settings.epochs)
    callbacks: list[keras.callbacks.Callback] = [
        BestWeights(best, monitor, kind.mode),
        _EarlyStopping(monitor, patience=settings.patience, mode=kind.mode),
        JsonLines(output / "log.jsonl"),
        epochs,
        Resume(output / runs.CHECKPOINTS, keep=1),
    ]
    if not isinstance(kind, FillIn):
        callbacks.insert(0, ValidationScores())
    x, y = _x_y(kind, table)
    extra = {"class_weight": settings.class_weight} if settings.class_weight else {}
    best.parent.mkdir(parents=True, exist_ok=True)
    terminal.note("compiling the first step ...")
    with runs.saved_on_interrupt():
        model.fit(
            x,
            y,
            batch_size=settings.batch_size,
            epochs=settings.epochs,
            validation_data=_validation(kind, dev),
            seed=settings.seed,
            callbacks=callbacks,
            verbose=0,
            **extra,
        )
    if best.is_file():
        model.load_weights(best)
        _say_which(epochs.history, monitor, kind.mode, settings)
    return epochs.history, monitor


def _say_which(history: list[dict[str, float]], monitor: str, mode: str, settings) -> None:
    """Says which epoch's weights are kept, and why training stopped where it did so early."""
    values = [epoch[monitor] for epoch in history if monitor in epoch]
    if not values:
        return
    best = values.index(max(values) if mode == "max" else min(values)) + 1
    if len(values) < settings.epochs:
        epochs = "epoch" if settings.patience == 1 else f"{settings.patience} epochs"
        terminal.note(f"stopped after {epochs} without a better {monitor}")
    terminal.note(f"kept: epoch {best}, {monitor} {number(values[best - 1])}")


def _dry_run(kind, table, dev, model, settings, about, steps) -> dict[str, Any]:
    """Shows rows as the model sees them, and how long training would take."""
    tokenizer = model.preprocessor.tokenizer
    tokens = []
    terminal.say("  the first rows:")
    for row in kind.texts(table.take(range(min(SHOWN, len(table))))):
        pieces = ["[CLS]"]
        for text in row:
            ids = np.asarray(tokenizer([text])[0])
            pieces += [*map(tokenizer.id_to_token, ids.tolist()), "[SEP]"]
        tokens.append(pieces)
        shown = " ".join(pieces[:60]) + (" ..." if len(pieces) > 60 else "")
        terminal.say(f"    {shown}")
    timer = _StepTimer()
    x, y = _x_y(kind, table)
    model.fit(x, y, batch_size=settings.batch_size, steps=TIMED_STEPS, callbacks=[timer], verbose=0)
    seconds = statistics.median(timer.seconds[1:] or timer.seconds) * steps
    seconds *= 1 + 0.4 * len(dev) / len(table)  # a row without its backward pass costs a third
    terminal.say(
        f"  about {duration(seconds)} of training, after {duration(timer.first)} to compile"
    )
    return {
        "about": dict(about),
        "rows": tokens,
        "settings": _kept_settings(settings),
        "seconds": round(seconds, 1),
    }


class _StepTimer(keras.callbacks.Callback):
    """Times steps; the first apart, which includes compilation."""

    def on_train_begin(self, logs=None):
        self.seconds: list[float] = []
        self.first = 0.0
        self._last = time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        now = time.monotonic()
        if self.first:
            self.seconds.append(now - self._last)
        else:
            self.first = now - self._last
        self._last = now


def _show_scores(
    kind: Kind, metrics, dev, output: Path, source: Source, pictures: str | None
) -> None:
    rows = shown(kind, metrics["scores"], len(dev))
    terminal.say()
    terminal.table(rows, f"{len(dev):,} held-out rows, after {duration(metrics['seconds'])}:")
    terminal.say()
    terminal.say(f"The model is in {output / runs.PRESET}")
    if pictures:
        terminal.say(f"Its errors, with pictures, are in {pictures}")
    terminal.say("Next:")
    terminal.say(f"  keras-bert serve {output}")
    ending = extension(source.path)
    if ending not in ENDINGS or isinstance(kind, Answer | Tag):
        ending = ".txt" if isinstance(kind, Tag) else ".jsonl"  # texts, or objects, to answer
    form = "csv" if ending == ".csv" else "jsonl"
    terminal.say(f"  keras-bert predict {output} NEW{ending} -o out.{form}")
