"""The plan of a corpus: its sources, its settings and its blocks of work.

The plan is in the corpus's folder while the corpus is being prepared, so that an interrupted run
resumes with the same plan.
"""

import hashlib
import importlib.metadata
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from keras_bert.arguments import needed
from keras_bert.data.records import vocabulary_content
from keras_bert.data.text_files import find_files
from keras_bert.text.tokenizer import SETTINGS, BertTokenizer

WORK_FOLDER = "_work"
PLAN_FILE = "plan.json"
ERROR = ".error"  # suffix of the files with errors in the input
FORMATS = ("sentences", "paragraphs")
DATASET = "tfds:"
BLOCK_BYTES = 1 << 24
BLOCK_EXAMPLES = 1 << 13
GZIP_RATIO = 3  # of text, approximately
SAMPLE_BYTES = 1 << 20


@dataclass(frozen=True)
class Piece:
    """A part of a file, in bytes, or of a data set, in examples.

    Attributes:
        source: index of the file or data set.
        start: its start.
        end: its end; None for the end of the file.
        megabytes: its size on disk, for the progress display.
    """

    source: int
    start: int
    end: int | None
    megabytes: float


@dataclass(frozen=True)
class CorpusPlan:
    """The work to be done.

    Attributes:
        paths: paths of the files and data sets, in order.
        times: modification time of each file, in nanoseconds.
        data_dir: directory of data sets.
        corpus: the fields of the index that are known in advance.
        blocks: units of work, each a list of pieces.
    """

    paths: list[str]
    times: list[int]
    data_dir: str | None
    corpus: dict[str, Any]
    blocks: list[list[Piece]]

    def content(self) -> bytes:
        """The plan as JSON."""
        return json.dumps(asdict(self), indent=1).encode()

    @classmethod
    def from_content(cls, content: bytes) -> "CorpusPlan":
        """Parses the result of `content`."""
        fields = json.loads(content)
        blocks = [[Piece(**piece) for piece in block] for block in fields.pop("blocks")]
        return cls(blocks=blocks, **fields)


def make_plan(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    tokenizer: BertTokenizer,
    shards: int,
    seed: int,
    format: str,
    language: str,
    data_dir: str | None,
) -> CorpusPlan:
    """Finds the files and divides the work; for the arguments see `prepare_corpus`."""
    named = [files] if isinstance(files, str | os.PathLike) else list(files)
    data_sets = sorted(name for name in map(os.fspath, named) if name.startswith(DATASET))
    if len(set(data_sets)) < len(data_sets):
        raise ValueError(f"a data set is named twice: {', '.join(data_sets)}")
    names = [name for name in map(os.fspath, named) if not name.startswith(DATASET)]
    paths = find_files(names) if names or not data_sets else []
    config = tokenizer.get_config()
    vocabulary = tokenizer.get_vocabulary()
    source: dict[str, Any] = {"format": format, "shards": shards}
    if data_sets or format == "paragraphs":
        source |= {"splitter": f"sentencex {_sentencex_version()}", "language": language}
    plan = CorpusPlan(
        paths=paths + data_sets,
        times=[],
        data_dir=data_dir,
        corpus={
            "tokenizer": {name: config[name] for name in SETTINGS if config[name] != []},
            "vocabulary_size": len(vocabulary),
            "vocabulary_sha256": hashlib.sha256(vocabulary_content(vocabulary)).hexdigest(),
            "seed": seed,
            "source": source,
        },
        blocks=[],
    )
    if paths:
        source["files"] = _add_files(plan, paths)
    if data_sets:
        source["data_sets"] = _add_data_sets(plan, data_sets, data_dir)
    return plan


def data_set_name(path: str) -> tuple[str, str]:
    """Parses "tfds:NAME" or "tfds:NAME:SPLIT"; the default split is "train"."""
    name, _, split = path.removeprefix(DATASET).partition(":")
    return name, split or "train"


def _add_files(plan: CorpusPlan, paths: list[str]) -> list[dict[str, Any]]:
    """Adds files to a plan; returns the index entries."""
    import tensorflow as tf

    folder = os.path.commonpath(map(os.path.dirname, paths)) if "://" not in paths[0] else ""
    described, room = [], 0
    for number, path in enumerate(paths):
        stat = tf.io.gfile.stat(path)
        plan.times.append(stat.mtime_nsec)
        sample = hashlib.sha256()
        with tf.io.gfile.GFile(path, "rb") as file:
            sample.update(file.read(SAMPLE_BYTES))
            file.seek(max(stat.length - SAMPLE_BYTES, 0))
            sample.update(file.read(SAMPLE_BYTES))
        name = os.path.relpath(path, folder) if folder else path
        described.append({"name": name, "bytes": stat.length, "ends_sha256": sample.hexdigest()})
        gzipped = path.endswith(".gz")  # can only be read from the start
        starts = [0] if gzipped else range(0, max(stat.length, 1), BLOCK_BYTES)
        for start in starts:
            last = start == starts[-1]
            size = stat.length - start if last else BLOCK_BYTES
            piece = Piece(number, start, None if last else start + BLOCK_BYTES, size / 1e6)
            text = size * (GZIP_RATIO if gzipped else 1)
            if plan.blocks and text <= room:
                plan.blocks[-1].append(piece)
            else:
                plan.blocks.append([piece])
                room = BLOCK_BYTES
            room -= text
    return described


def _add_data_sets(
    plan: CorpusPlan, data_sets: list[str], data_dir: str | None
) -> list[dict[str, Any]]:
    """Adds data sets to a plan, downloading them if missing; returns the index entries."""
    with needed(data_sets[0], "TensorFlow Datasets", "'keras3-bert[corpus]'"):
        import tensorflow_datasets as tfds
    described = []
    for number, path in enumerate(data_sets, len(plan.times)):
        name, split = data_set_name(path)
        builder = tfds.builder(name, data_dir=data_dir)
        builder.download_and_prepare()
        splits, features = list(builder.info.splits), list(builder.info.features or {})
        if split not in splits or "text" not in features:
            problem = f"no split {split!r}; there are {splits}"
            feature = f"no feature 'text'; the features are {features}"
            raise ValueError(f"{path}: {feature if split in splits else problem}")
        info = builder.info.splits[split]
        described.append(
            {"name": builder.info.full_name, "split": split, "examples": info.num_examples}
        )
        each = info.num_bytes / 1e6 / max(info.num_examples, 1)
        for start in range(0, info.num_examples, BLOCK_EXAMPLES):
            end = min(start + BLOCK_EXAMPLES, info.num_examples)
            plan.blocks.append([Piece(number, start, end, (end - start) * each)])
    return described


def _sentencex_version() -> str:
    # PackageNotFoundError is an ImportError.
    with needed("splitting paragraphs into sentences", "sentencex", "'keras3-bert[corpus]'"):
        return importlib.metadata.version("sentencex")
