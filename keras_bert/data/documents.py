"""Reads documents from files or TensorFlow Datasets and tokenizes them in large batches."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from keras_bert.data.rows import grouped
from keras_bert.data.text_files import CHUNK_BYTES, read_lines

MAX_DOCUMENT_TOKENS = 1 << 20  # about 5 MB of English; the stream keeps whole documents in memory


class Passage(NamedTuple):
    """Consecutive sentences of a document.

    Attributes:
        first: whether it starts the document.
        place: its start: the byte in its file, or the index of its example.
        sentences: the sentences.
    """

    first: bool
    place: int
    sentences: list[str]


class Document(NamedTuple):
    """A tokenized document, or a part of one that is longer than `MAX_DOCUMENT_TOKENS`.

    Attributes:
        place: the place of its first passage.
        part: 0, or the index of the part.
        tokens: int32 [T], ids of its word pieces.
        sentence_lengths: int32 [S], number of word pieces of each sentence, at least 1.
    """

    place: int
    part: int
    tokens: np.ndarray
    sentence_lengths: np.ndarray


def file_passages(path: str, start: int = 0, end: int | None = None) -> Iterator[Passage]:
    """Reads the documents of a text file, or of one block of it.

    As in google-research/bert's create_pretraining_data.py, a line is a sentence and a blank line
    ends a document. Here the end of a file ends one too.

    Args:
        path: the file, plain or `.gz`.
        start: the first byte of the block.
        end: one after the last byte; None for the end of the file. A block has all documents that
            follow its blank lines, complete, so each document is in exactly one block.

    Yields:
        Passages of stripped, non-empty lines.
    """
    inside = first = start == 0
    for starts, lines in read_lines(path, start):
        lines = [line.strip() for line in lines]
        begin = 0
        for blank in [*(i for i, line in enumerate(lines) if not line), len(lines)]:
            if inside and begin < blank:
                yield Passage(first, int(starts[begin]), lines[begin:blank])
                first = False
            if blank < len(lines):
                if end is not None and starts[blank] >= end:
                    return
                inside = first = True
                begin = blank + 1
        if not inside and end is not None and starts[-1] >= end:
            return


def dataset_passages(
    name: str, split: str, start: int, end: int, data_dir: str | None
) -> Iterator[Passage]:
    """Reads the examples of a data set of TensorFlow Datasets, each as a document.

    The document is the feature `text`, with one paragraph per line; titles are omitted, as in the
    paper (section 3.1: "only the text passages").

    The data set's name has its configuration and version. Yields one passage of paragraphs for each
    non-empty example from `start` to before `end`.
    """
    import tensorflow_datasets as tfds

    builder = tfds.builder(name, data_dir=data_dir)
    part = tfds.core.ReadInstruction(split, from_=start, to=end, unit="abs")
    config = tfds.ReadConfig(interleave_cycle_length=1)  # examples in their original order
    examples = builder.as_dataset(split=part, shuffle_files=False, read_config=config)
    for number, example in enumerate(examples, start):
        text = example["text"].numpy().decode("utf-8")
        paragraphs = [line.strip() for line in text.split("\n")]
        if paragraphs := [paragraph for paragraph in paragraphs if paragraph]:
            yield Passage(True, number, paragraphs)


def split_sentences(passages: Iterable[Passage], language: str) -> Iterator[Passage]:
    """Splits passages of paragraphs into sentences with sentencex."""
    import sentencex

    for passage in passages:
        pieces = [
            piece for text in passage.sentences for piece in sentencex.segment(language, text)
        ]
        sentences = [piece.strip() for piece in pieces]
        yield passage._replace(sentences=[sentence for sentence in sentences if sentence])


class DocumentTokenizer:
    """Tokenizes passages in batches of about a megabyte and joins them into documents.

    Args:
        tokenizer: maps a string tensor [B] to a `tf.RaggedTensor` [B, None] of ids.

    Attributes:
        counts: "sentences_without_tokens" and "documents_without_tokens" (such as control
            characters), which are dropped as in the original, and "documents_cut".
    """

    def __init__(self, tokenizer: Callable[[Any], Any]):
        self.tokenizer = tokenizer
        self.counts: Counter[str] = Counter()

    def __call__(self, passages: Iterable[Passage]) -> Iterator[Document]:
        """Yields the documents of `passages`, in order."""
        place = part = 0
        open_tokens: list[np.ndarray] = []
        open_lengths: list[np.ndarray] = []
        size: int | None = None  # tokens of the current document; None before the first

        def close() -> Iterator[Document]:
            if size:
                tokens, lengths = np.concatenate(open_tokens), np.concatenate(open_lengths)
                yield Document(place, part, tokens, lengths)
            elif size == 0 and part == 0:
                self.counts["documents_without_tokens"] += 1
            open_tokens.clear()
            open_lengths.clear()

        for passage, tokens, lengths in self._tokenize(passages):
            if passage.first:
                yield from close()
                place, part, size = passage.place, 0, 0
            while size + len(tokens) > MAX_DOCUMENT_TOKENS:
                ends = np.cumsum(lengths)
                fitting = int(np.searchsorted(ends, MAX_DOCUMENT_TOKENS - size, side="right"))
                if not fitting and not size:
                    fitting = 1  # a single sentence is longer
                    if len(lengths) == 1:
                        break
                taken = int(ends[fitting - 1]) if fitting else 0
                open_tokens.append(tokens[:taken])
                open_lengths.append(lengths[:fitting])
                tokens, lengths, size = tokens[taken:], lengths[fitting:], size + taken
                yield from close()
                self.counts["documents_cut"] += part == 0
                part, size = part + 1, 0
            open_tokens.append(tokens)
            open_lengths.append(lengths)
            size += len(tokens)
        yield from close()

    def _tokenize(
        self, passages: Iterable[Passage]
    ) -> Iterator[tuple[Passage, np.ndarray, np.ndarray]]:
        """Yields each passage with its ids and the lengths of its sentences, all positive."""
        import tensorflow as tf

        for batch in grouped(passages, lambda p: sum(map(len, p.sentences)), CHUNK_BYTES):
            texts = [text for passage in batch for text in passage.sentences]
            # As a tensor, because Keras would inspect each item of a list.
            ragged = self.tokenizer(tf.constant(texts, tf.string))
            ids, splits = ragged.flat_values.numpy(), ragged.row_splits.numpy()
            row = 0
            for passage in batch:
                rows = splits[row : row + len(passage.sentences) + 1]
                row += len(passage.sentences)
                lengths = np.diff(rows)
                kept = lengths[lengths > 0].astype("int32")
                self.counts["sentences_without_tokens"] += len(lengths) - len(kept)
                yield passage, ids[rows[0] : rows[-1]], kept
