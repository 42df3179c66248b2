"""GLUE: one table of its nine tasks, read from the TSV files or from TensorFlow Datasets.

Columns and headers are those of the archives at gluebenchmark.com, as `run_classifier.py` of
google-research/bert reads them; names and order of the labels are those of TensorFlow Datasets and
Hugging Face; metrics are those of Wang et al. 2018 (arXiv:1804.07461), table 1, and the
headline metric is that of Devlin et al. 2019, table 1.

Peculiarities of the files, and how they are handled:

- No file is quoted; MNLI, MRPC, QNLI, RTE and STS-B contain unbalanced quotation marks.
- CoLA has no header line, but its test file has one. No test file has labels.
- Some questions of QQP contain a line break or a tab, so some lines are broken: they are skipped,
  as in every published result, and counted in the log.
- MNLI has the labels of single annotators beside `gold_label`, one in the train file and five in
  the dev files. Examples with "-", without a majority, are skipped and counted as well. The archive
  lacks these; the original files of MultiNLI, which `read_file` can read, have them.
- MRPC is available as GLUE's files, or as Microsoft's (`msr_paraphrase_train.txt`, with GLUE's
  `dev_ids.tsv`, which lists the dev pairs).
- WNLI's dev sentences contradict those of its train set, so a model that memorized the latter is
  below chance; Devlin et al. exclude the task.
"""

from dataclasses import dataclass, field
from pathlib import Path

from keras_bert.data.rows import column_names, read_rows
from keras_bert.data.tables import Examples, read_table

MRPC_ORIGINALS = ("msr_paraphrase_train.txt", "dev_ids.tsv")


@dataclass(frozen=True)
class GlueTask:
    """One GLUE task. A new one is a new row of `TASKS`.

    Attributes:
        name: its name here and in TensorFlow Datasets, `glue/NAME`.
        folder: its folder in the GLUE archive.
        text_columns: the one or two columns of text, by their names in the header.
        label_column: the column of the label.
        label_names: the names of the ids 0, 1, ...; empty for regression.
        label_values: the labels as written in the files, in the same order.
        metric_names: the reported metrics, from `keras_bert.metrics`.
        headline: the main one of these.
        columns: all columns of labelled files without a header line; None if a header names them.
        label_range: minimum and maximum label of a regression task; None for classes.
        skip_labels: examples with these labels are skipped.
        skip_broken_rows: whether broken lines are skipped.
        tfds_columns: the text features in TensorFlow Datasets; None for `text_columns`.
        files: file names by split, without `.gz`; "dev" of MNLI is the matched set.
        tfds_splits: names in TensorFlow Datasets by split.
    """

    name: str
    folder: str
    text_columns: tuple[str, ...] = ("sentence1", "sentence2")
    label_column: str = "label"
    label_names: tuple[str, ...] = ()
    label_values: tuple[str, ...] = ("0", "1")
    metric_names: tuple[str, ...] = ("accuracy",)
    headline: str = "accuracy"
    columns: tuple[str, ...] | None = None
    label_range: tuple[float, float] | None = None
    skip_labels: tuple[str, ...] = ()
    skip_broken_rows: bool = False
    tfds_columns: tuple[str, ...] | None = None
    files: dict[str, str] = field(
        default_factory=lambda: {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"},
        hash=False,
    )
    tfds_splits: dict[str, str] = field(
        default_factory=lambda: {"train": "train", "dev": "validation", "test": "test"}, hash=False
    )

    @property
    def regression(self) -> bool:
        """Whether labels are numbers."""
        return self.label_range is not None


_MNLI_SPLITS = {"train": "train", "dev": "dev_matched", "test": "test_matched"} | {
    name: name for name in ("dev_matched", "dev_mismatched", "test_matched", "test_mismatched")
}
TASKS: dict[str, GlueTask] = {
    task.name: task
    for task in (
        GlueTask(
            name="sst2",
            folder="SST-2",
            text_columns=("sentence",),
            label_names=("negative", "positive"),
        ),
        GlueTask(
            name="cola",
            folder="CoLA",
            text_columns=("sentence",),
            label_names=("unacceptable", "acceptable"),
            metric_names=("matthews", "accuracy"),
            headline="matthews",
            columns=("source", "label", "mark", "sentence"),
        ),
        GlueTask(
            name="mrpc",
            folder="MRPC",
            text_columns=("#1 String", "#2 String"),
            label_column="Quality",
            label_names=("not_equivalent", "equivalent"),
            metric_names=("accuracy", "f1"),
            headline="f1",
            tfds_columns=("sentence1", "sentence2"),
        ),
        GlueTask(
            name="rte",
            folder="RTE",
            label_names=("entailment", "not_entailment"),
            label_values=("entailment", "not_entailment"),
        ),
        GlueTask(
            name="qqp",
            folder="QQP",
            text_columns=("question1", "question2"),
            label_column="is_duplicate",
            label_names=("not_duplicate", "duplicate"),
            metric_names=("accuracy", "f1"),
            headline="f1",
            skip_broken_rows=True,
        ),
        GlueTask(
            name="stsb",
            folder="STS-B",
            label_column="score",
            label_values=(),
            metric_names=("pearson", "spearman"),
            headline="spearman",
            label_range=(0.0, 5.0),
        ),
        GlueTask(
            name="mnli",
            folder="MNLI",
            label_column="gold_label",
            label_names=("entailment", "neutral", "contradiction"),
            label_values=("entailment", "neutral", "contradiction"),
            skip_labels=("-",),
            tfds_columns=("premise", "hypothesis"),
            files={split: f"{file}.tsv" for split, file in _MNLI_SPLITS.items()},
            tfds_splits={s: f.replace("dev", "validation") for s, f in _MNLI_SPLITS.items()},
        ),
        GlueTask(
            name="qnli",
            folder="QNLI",
            text_columns=("question", "sentence"),
            label_names=("entailment", "not_entailment"),
            label_values=("entailment", "not_entailment"),
        ),
        GlueTask(
            name="wnli",
            folder="WNLI",
            label_names=("not_entailment", "entailment"),
        ),
    )
}


def read(task: str, data_dir: str | Path, split: str) -> Examples:
    """Reads one split of a task from its TSV file.

    Args:
        task: a key of `TASKS`.
        data_dir: the folder of the task (`GLUE/SST-2`) or the folder above it (`GLUE`); files may
            be gzipped.
        split: a key of the task's `files`, such as "train" or "dev"; or the name, without its
            extension, of any other file of that layout in the folder: "dev_slice" for
            `dev_slice.tsv` or `dev_slice.tsv.gz`, "msr_paraphrase_test" for
            `msr_paraphrase_test.txt`.

    Returns:
        `Examples` with class ids, or numbers for STS-B, as labels (None for the test files)
        and their lines.

    Raises:
        ValueError: for an unknown task, or a file whose layout or labels are not the task's; the
            message names the file, the line and the columns expected.
        FileNotFoundError: if the file does not exist; the message lists all paths tried.
    """
    spec = _known(TASKS, task, "GLUE task")
    folders = (Path(data_dir) / spec.folder, Path(data_dir))
    names = [spec.files[split]] if split in spec.files else [f"{split}.tsv", f"{split}.txt"]
    tried = [
        folder / (name + ending) for folder in folders for name in names for ending in ("", ".gz")
    ]
    for path in tried:
        if path.is_file():
            return read_file(task, path)
    if task == "mrpc" and split in ("train", "dev"):
        for folder in folders:
            if all((folder / name).is_file() for name in MRPC_ORIGINALS):
                return _mrpc_from_originals(folder, split)
        tried += [folder / " and ".join(MRPC_ORIGINALS) for folder in folders]
    places = "\n  ".join(map(str, tried))
    own = "" if split in spec.files else f", whose own splits are {list(spec.files)}"
    raise FileNotFoundError(f"No {split} file of GLUE task {task!r}{own}; tried\n  {places}")


def read_file(task: str, path: str | Path) -> Examples:
    """Reads any file in the layout of a task, whatever its name and place.

    Args:
        task: a key of `TASKS`.
        path: a TSV file, or one with `.gz` added. A file whose name begins with "test" may lack
            labels, and always has a header line, like all test files of the archive.

    Returns and raises the same as `read`.
    """
    spec, path = _known(TASKS, task, "GLUE task"), Path(path)
    label_column: str | None = spec.label_column
    columns = spec.columns
    if path.name.startswith("test"):
        columns = None
        if label_column not in column_names(path, delimiter="\t"):
            label_column = None
    label_names = None if spec.regression or label_column is None else spec.label_values
    try:
        examples = read_table(
            path,
            spec.text_columns,
            label_column,
            header=columns is None,
            columns=columns,
            label_names=label_names,
            delimiter="\t",
            label_kind="number" if spec.regression else "class",
            skip_labels=spec.skip_labels,
            skip_broken_rows=spec.skip_broken_rows,
        )
    except ValueError as error:
        label = [] if label_column is None else [label_column]
        needs = (
            f"a header line with {[*spec.text_columns, *label]}"
            if columns is None
            else f"no header line and the columns {list(columns)}"
        )
        raise ValueError(f"{error}\nGLUE task {task!r} has {needs}") from error
    if spec.regression and label_column is not None:
        low, high = spec.label_range
        for label, line in zip(examples.labels, examples.lines, strict=True):
            if not low <= label <= high:
                raise ValueError(
                    f"{path}, line {line}: label {label} in column {label_column!r}: expected "
                    f"{low} to {high} for GLUE task {task!r}"
                )
    return examples


def read_tfds(task: str, split: str, data_dir: str | Path | None = None) -> Examples:
    """Reads the same examples through TensorFlow Datasets, which downloads them if missing.

    Args:
        task: a key of `TASKS`.
        split: a key of the task's `tfds_splits`, such as "train" or "dev".
        data_dir: directory of TensorFlow Datasets; None for its default.

    Returns:
        `Examples` with class ids, or numbers for STS-B, as labels (`None` for test splits);
        `lines` is `None`.

    Raises:
        ImportError: if tensorflow-datasets is not installed.
        ValueError: for an unknown task or split, or if the label names of the builder differ.
    """
    spec = _known(TASKS, task, "GLUE task")
    tfds_split = _known(spec.tfds_splits, split, f"split of {task}")
    import tensorflow_datasets as tfds  # heavy and optional, so imported lazily

    dataset, info = tfds.load(
        f"glue/{spec.name}", split=tfds_split, data_dir=data_dir, with_info=True
    )
    names = tuple(getattr(info.features["label"], "names", ()))
    if names != spec.label_names:
        raise ValueError(f"glue/{spec.name}: labels {names}: expected {spec.label_names}")
    columns = spec.tfds_columns or spec.text_columns
    texts: list[list[str]] = [[] for _ in columns]
    labels: list = []
    for row in dataset.as_numpy_iterator():
        for column, values in zip(columns, texts, strict=True):
            values.append(row[column].decode("utf-8"))
        labels.append(float(row["label"]) if spec.regression else int(row["label"]))
    return Examples(
        texts[0] if len(texts) == 1 else (texts[0], texts[1]),
        None if split.startswith("test") else labels,
    )


def _mrpc_from_originals(folder: Path, split: str) -> Examples:
    """Reads MRPC's train or dev split from Microsoft's train file, using GLUE's list of dev ids."""
    original, ids_file = (folder / name for name in MRPC_ORIGINALS)
    dev_ids = {tuple(ids): line for line, ids in read_rows(ids_file, [0, 1], header=False)}
    ids_at = {line: tuple(ids) for line, ids in read_rows(original, ["#1 ID", "#2 ID"])}
    for ids in dev_ids.keys() - set(ids_at.values()):
        raise ValueError(f"{ids_file}, line {dev_ids[ids]}: no pair of ids {ids} in {original}")
    examples = read_file("mrpc", original)
    kept = [
        (first, second, label, line)
        for first, second, label, line in zip(
            *examples.texts, examples.labels, examples.lines, strict=True
        )
        if (ids_at[line] in dev_ids) == (split == "dev")
    ]
    if not kept:
        raise ValueError(f"{original}: no {split} rows; {ids_file} lists {len(dev_ids)} pairs")
    first, second, labels, lines = map(list, zip(*kept, strict=True))
    return Examples((first, second), labels, lines)


def _known(table: dict, key: str, what: str):
    if key not in table:
        raise ValueError(f"{what} {key!r}: expected one of {list(table)}")
    return table[key]
