"""GLUE: one table of tasks, read from the TSV files or from TensorFlow Datasets.

Columns and headers are those of the archives at gluebenchmark.com, as `run_classifier.py` of
google-research/bert reads them; names and order of the labels are those of TensorFlow Datasets and
Hugging Face; metrics are those of Wang et al. 2018 (arXiv:1804.07461), table 1.
"""

from dataclasses import dataclass, field
from pathlib import Path

from keras_bert.data.tables import Examples, read_table


@dataclass(frozen=True)
class GlueTask:
    """One GLUE task. A new one is a new row of `TASKS`.

    Attributes:
        name: its name here and in TensorFlow Datasets, `glue/NAME`.
        folder: its folder in the GLUE archive.
        text_columns: the one or two columns of text, by their names in the header.
        label_column: the column of the label.
        label_names: what the ids 0, 1, ... mean.
        label_values: how the files write those labels, in the same order.
        metric_names: what is reported, from `keras_bert.metrics`.
        headline: the one of them that ranks models.
        columns: all columns of files without a header line; `None` where a header names them.
        tfds_columns: the text features in TensorFlow Datasets, where every header name differs.
        files: split to file name, without `.gz`.
        tfds_splits: split to its name in TensorFlow Datasets.
    """

    name: str
    folder: str
    text_columns: tuple[str, ...]
    label_column: str
    label_names: tuple[str, ...]
    label_values: tuple[str, ...]
    metric_names: tuple[str, ...]
    headline: str
    columns: tuple[str, ...] | None = None
    tfds_columns: tuple[str, ...] = ("sentence1", "sentence2")
    files: dict[str, str] = field(
        default_factory=lambda: {"train": "train.tsv", "dev": "dev.tsv"}, hash=False
    )
    tfds_splits: dict[str, str] = field(
        default_factory=lambda: {"train": "train", "dev": "validation"}, hash=False
    )


TASKS: dict[str, GlueTask] = {
    task.name: task
    for task in (
        GlueTask(
            name="sst2",
            folder="SST-2",
            text_columns=("sentence",),
            label_column="label",
            label_names=("negative", "positive"),
            label_values=("0", "1"),
            metric_names=("accuracy",),
            headline="accuracy",
            tfds_columns=("sentence",),
        ),
        GlueTask(
            name="cola",
            folder="CoLA",
            text_columns=("sentence",),
            label_column="label",
            label_names=("unacceptable", "acceptable"),
            label_values=("0", "1"),
            metric_names=("matthews", "accuracy"),
            headline="matthews",
            columns=("source", "label", "mark", "sentence"),
            tfds_columns=("sentence",),
        ),
        GlueTask(
            name="mrpc",
            folder="MRPC",
            text_columns=("#1 String", "#2 String"),
            label_column="Quality",
            label_names=("not_equivalent", "equivalent"),
            label_values=("0", "1"),
            metric_names=("accuracy", "f1"),
            headline="f1",
        ),
        GlueTask(
            name="rte",
            folder="RTE",
            text_columns=("sentence1", "sentence2"),
            label_column="label",
            label_names=("entailment", "not_entailment"),
            label_values=("entailment", "not_entailment"),
            metric_names=("accuracy",),
            headline="accuracy",
        ),
    )
}


def read(task: str, data_dir: str | Path, split: str) -> Examples:
    """Reads one split of a task from its TSV file.

    Args:
        task: a key of `TASKS`.
        data_dir: the folder of the task (`GLUE/SST-2`) or the folder above it (`GLUE`); files may
            be gzipped.
        split: a key of the task's `files`: "train" or "dev".

    Returns:
        `Examples` with class ids as labels and the lines they came from.

    Raises:
        ValueError: for an unknown task or split, or a file whose layout or labels are not the
            task's; the message names the file, the line and the columns expected.
        FileNotFoundError: if the file is in none of the places tried, which it lists.
    """
    spec = _task(task)
    name = _known(spec.files, split, f"split of {task}")
    tried = [
        folder / (name + ending)
        for folder in (Path(data_dir) / spec.folder, Path(data_dir))
        for ending in ("", ".gz")
    ]
    path = next((path for path in tried if path.is_file()), None)
    if path is None:
        places = "\n  ".join(map(str, tried))
        raise FileNotFoundError(f"No {split} file of GLUE task {task!r}; tried\n  {places}")
    try:
        return read_table(
            path,
            spec.text_columns,
            spec.label_column,
            header=spec.columns is None,
            columns=spec.columns,
            label_names=spec.label_values,
            delimiter="\t",
        )
    except ValueError as error:
        needs = (
            f"a header line with {[*spec.text_columns, spec.label_column]}"
            if spec.columns is None
            else f"no header line and the columns {list(spec.columns)}"
        )
        raise ValueError(f"{error}\nGLUE task {task!r} has {needs}.") from error


def read_tfds(task: str, split: str, data_dir: str | Path | None = None) -> Examples:
    """Reads the same examples through TensorFlow Datasets, which downloads them if need be.

    Args:
        task: a key of `TASKS`.
        split: a key of the task's `tfds_splits`: "train" or "dev".
        data_dir: where TensorFlow Datasets keeps its files; `None` for its default.

    Returns:
        `Examples` with class ids as labels; `lines` is `None`.

    Raises:
        ImportError: if tensorflow-datasets is not installed.
        ValueError: for an unknown task or split, or if the label names of the builder differ.
    """
    spec = _task(task)
    tfds_split = _known(spec.tfds_splits, split, f"split of {task}")
    import tensorflow_datasets as tfds  # heavy, and an extra: only those who call this need it

    dataset, info = tfds.load(
        f"glue/{spec.name}", split=tfds_split, data_dir=data_dir, with_info=True
    )
    names = tuple(info.features["label"].names)
    if names != spec.label_names:
        raise ValueError(f"glue/{spec.name}: labels {names}, but expected {spec.label_names}.")
    columns = spec.tfds_columns[: len(spec.text_columns)]
    texts: list[list[str]] = [[] for _ in columns]
    labels: list[int] = []
    for row in dataset.as_numpy_iterator():
        for column, values in zip(columns, texts, strict=True):
            values.append(row[column].decode("utf-8"))
        labels.append(int(row["label"]))
    return Examples(texts[0] if len(texts) == 1 else (texts[0], texts[1]), labels)


def _task(name: str) -> GlueTask:
    return _known(TASKS, name, "GLUE task")


def _known(table: dict, key: str, what: str):
    if key not in table:
        raise ValueError(f"Unknown {what}: {key!r}. Known are {list(table)}.")
    return table[key]
