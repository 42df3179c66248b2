"""`prepare_corpus` as an Apache Beam pipeline, for any runner.

1. Each block of text is tokenized into sorted runs of documents, on disk.
2. The range of keys is partitioned: a shard is a range of keys.
3. Each shard is merged from the runs.

Only numbers are passed between the steps, so memory is bounded on runners that keep elements in
memory. A finished block or shard has a report; a step that finds one does nothing. Workers need the
package, and the corpus's folder on a shared file system.

Imports Apache Beam, so import this module lazily.
"""

import contextlib
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict

import apache_beam as beam
import numpy as np
from apache_beam.utils.shared import Shared

from keras_bert.data.corpus_plan import (
    DATASET,
    ERROR,
    PLAN_FILE,
    WORK_FOLDER,
    CorpusPlan,
    Piece,
    data_set_name,
)
from keras_bert.data.documents import (
    DocumentTokenizer,
    Passage,
    dataset_passages,
    file_passages,
    split_sentences,
)
from keras_bert.data.records import (
    INDEX_FILE,
    CorpusIndex,
    Shard,
    document_example,
    index_content,
    read_tokenizer,
)
from keras_bert.data.sorted_runs import RunWriter, merge_runs, read_entries, shuffle_key
from keras_bert.data.whole_files import read_whole, temporary_name, write_whole
from keras_bert.text.tokenizer import BertTokenizer


def build_pipeline(pipeline: beam.Pipeline, folder: str, blocks: int) -> None:
    """Adds the steps to a pipeline; the folder of the corpus has a plan, of so many blocks."""
    (
        pipeline
        | "Blocks" >> beam.Create(range(blocks))
        | "SpreadBlocks" >> beam.Reshuffle()
        | "Tokenize" >> beam.ParDo(TokenizeBlock(folder))
        | "AllBlocks" >> beam.combiners.ToList()
        | "DealOut" >> beam.ParDo(DealOut(folder))
        | "SpreadShards" >> beam.Reshuffle()
        | "Merge" >> beam.ParDo(MergeShard(folder))
        | "AllShards" >> beam.combiners.ToList()
        | "Index" >> beam.ParDo(WriteIndex(folder))
    )


def read_errors(work: str) -> list[str]:
    """The errors in the input, in the order of blocks and shards, from the work folder."""
    import tensorflow as tf

    files = tf.io.gfile.glob(os.path.join(work, f"*{ERROR}"))
    return [read_whole(file).decode() for file in sorted(files)]


class Step(beam.DoFn):
    """A step of the pipeline, for the corpus in a folder."""

    def __init__(self, folder: str):
        self.folder = folder
        self.work = os.path.join(folder, WORK_FOLDER)

    def setup(self) -> None:
        self.plan = CorpusPlan.from_content(read_whole(os.path.join(self.work, PLAN_FILE)))

    @contextlib.contextmanager
    def bad_input_kept(self, name: str) -> Iterator[None]:
        """Stores the message of a ValueError in a file, because runners would retry, and wrap it in
        others. Without all blocks there are no shards, and without all shards no index."""
        try:
            yield
        except ValueError as error:
            write_whole(os.path.join(self.work, f"{name}{ERROR}"), str(error).encode())

    def block_report(self, block: int) -> str:
        """The path of a block's report."""
        return os.path.join(self.work, f"block-{block:05d}.json")

    def block_reports(self) -> list[dict]:
        """The reports of all blocks."""
        blocks = range(len(self.plan.blocks))
        return [json.loads(read_whole(self.block_report(block))) for block in blocks]

    def runs(self) -> list[str]:
        """The paths of all runs."""
        reports = self.block_reports()
        return [os.path.join(self.work, run) for report in reports for run in report["runs"]]


class TokenizeBlock(Step):
    """Writes the sorted runs of a block, and a report: names of the runs, and omission counts."""

    def __init__(self, folder: str):
        super().__init__(folder)
        self._shared = Shared()  # one tokenizer for all threads of a process

    def setup(self) -> None:
        super().setup()
        self._tokenizer = self._shared.acquire(self._make_tokenizer)

    def _make_tokenizer(self) -> BertTokenizer:
        return read_tokenizer(self.folder, self.plan.corpus["tokenizer"])

    def process(self, block: int) -> Iterable[int]:
        import tensorflow as tf

        name = f"block-{block:05d}"
        if not tf.io.gfile.exists(self.block_report(block)):
            with self.bad_input_kept(name):
                report = json.dumps(self._tokenize(name, self.plan.blocks[block]))
                write_whole(self.block_report(block), report.encode())
        yield block

    def _tokenize(self, name: str, pieces: list[Piece]) -> dict:
        writer = RunWriter(os.path.join(self.work, name))
        documents = DocumentTokenizer(self._tokenizer)
        unknown = self._tokenizer.token_to_id(self._tokenizer.unk_token)
        for piece in pieces:
            for document in documents(self._passages(piece)):
                place = (piece.source, document.place, document.part)
                tokens, lengths = document.tokens.tolist(), document.sentence_lengths.tolist()
                documents.counts["unknown_tokens"] += tokens.count(unknown)
                example = document_example(tokens, lengths)
                key = shuffle_key(self.plan.corpus["seed"], *place)
                writer.add((key, *place, len(example), len(lengths), len(tokens)), example)
        writer.flush()
        runs = [os.path.basename(run) for run in writer.runs]
        return {"runs": runs, "left_out": documents.counts}

    def _passages(self, piece: Piece) -> Iterator[Passage]:
        path, source = self.plan.paths[piece.source], self.plan.corpus["source"]
        if path.startswith(DATASET):
            name, split = data_set_name(path)
            bounds = (piece.start, piece.end)
            passages = dataset_passages(name, split, *bounds, self.plan.data_dir)
        else:
            passages = file_passages(path, piece.start, piece.end)
            if source["format"] == "sentences":
                return passages
        return split_sentences(passages, source["language"])


class DealOut(Step):
    """Partitions the keys into shards whose numbers of documents differ by at most one."""

    def process(self, blocks: list[int]) -> Iterable[tuple[int, int, int, int | None]]:
        """Yields (shard, number of shards, its smallest key, the smallest key of the next)."""
        if read_errors(self.work):
            return
        keys = [read_entries(run)["key"].copy() for run in self.runs()]
        if not keys:
            with self.bad_input_kept("corpus"):
                raise ValueError(
                    f"the corpus is empty: there is no document in {', '.join(self.plan.paths)}"
                )
            return
        keys = np.sort(np.concatenate(keys))
        # Two documents each if possible: a shard of one has no random next sentence.
        shards = max(1, min(self.plan.corpus["source"]["shards"], len(keys) // 2))
        firsts = [int(keys[shard * len(keys) // shards]) for shard in range(shards)]
        for shard, (lower, upper) in enumerate(zip(firsts, [*firsts[1:], None], strict=True)):
            yield shard, shards, lower, upper


class MergeShard(Step):
    """Writes a shard, and its report for the index."""

    def process(self, element: tuple[int, int, int, int | None]) -> Iterable[dict]:
        import tensorflow as tf

        number, shards, lower, upper = element
        name = f"shard-{number:05d}-of-{shards:05d}"
        path = os.path.join(self.folder, f"{name}.tfrecord")
        report = os.path.join(self.work, f"{name}.json")
        if not (tf.io.gfile.exists(report) and tf.io.gfile.exists(path)):
            with self.bad_input_kept(name):
                shard = self._merge(path, lower, upper)
                write_whole(report, json.dumps(asdict(shard)).encode())
        if not read_errors(self.work):
            yield json.loads(read_whole(report))

    def _merge(self, path: str, lower: int, upper: int | None) -> Shard:
        import tensorflow as tf

        entries, examples = merge_runs(self.runs(), lower, upper)
        temporary = temporary_name(os.path.join(self.work, os.path.basename(path)))
        with tf.io.TFRecordWriter(temporary) as writer:
            for example in examples:
                writer.write(example)
        digest = hashlib.sha256()
        with tf.io.gfile.GFile(temporary, "rb") as file:
            while data := file.read(1 << 20):
                digest.update(data)
            size = file.tell()
        tf.io.gfile.rename(temporary, path, overwrite=True)
        counts = {name: int(entries[name].sum()) for name in ("sentences", "tokens")}
        return Shard(
            file=os.path.basename(path),
            documents=len(entries),
            bytes=size,
            sha256=digest.hexdigest(),
            **counts,
        )


class WriteIndex(Step):
    """Writes the index, which marks the corpus as complete."""

    def process(self, shards: list[dict]) -> Iterable[None]:
        if read_errors(self.work):
            return ()
        left_out = sum((Counter(report["left_out"]) for report in self.block_reports()), Counter())
        index = CorpusIndex(
            folder=self.folder,
            shards=tuple(sorted((Shard(**shard) for shard in shards), key=lambda s: s.file)),
            left_out=dict(sorted(left_out.items())),
            **self.plan.corpus,
        )
        write_whole(os.path.join(self.folder, INDEX_FILE), index_content(index))
        return ()
