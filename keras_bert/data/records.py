"""The format of a prepared corpus: TFRecords of tokenized documents, the vocabulary, and an index.

`index.json` is written last, so a folder that has one is complete. All code that reads or writes
the format is here; `corpus.py` writes a corpus and `pretraining.py` streams it.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from keras_bert.data.whole_files import read_whole
from keras_bert.text.tokenizer import SETTINGS, VOCABULARY_FILE, BertTokenizer

FORMAT = 1
INDEX_FILE = "index.json"


@dataclass(frozen=True)
class Shard:
    """One TFRecord file of a corpus.

    Attributes:
        file: its name in the corpus's folder, such as `shard-00000-of-00008.tfrecord`.
        documents: number of documents (records).
        sentences: number of sentences.
        tokens: number of word pieces.
        bytes: size of the file.
        sha256: SHA-256 of the file, in hexadecimal.
    """

    file: str
    documents: int
    sentences: int
    tokens: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class CorpusIndex:
    """The contents of a prepared corpus.

    Attributes:
        folder: the folder of the corpus.
        tokenizer: the settings of its `BertTokenizer`, by name; the vocabulary is `vocab.txt`.
        vocabulary_size: size of the vocabulary; every id is below it.
        vocabulary_sha256: SHA-256 of `vocab.txt`, in hexadecimal.
        seed: seed of the order of the documents.
        shards: its files, in order.
        left_out: numbers of sentences and documents without tokens, which are in no shard, of
            documents that were split, and of tokens that are [UNK] there.
        source: the sources and settings.
    """

    folder: str
    tokenizer: dict[str, Any]
    vocabulary_size: int
    vocabulary_sha256: str
    seed: int
    shards: tuple[Shard, ...]
    left_out: dict[str, int]
    source: dict[str, Any]

    @property
    def documents(self) -> int:
        """The number of documents in all shards."""
        return sum(shard.documents for shard in self.shards)

    @property
    def sentences(self) -> int:
        """The number of sentences in all shards."""
        return sum(shard.sentences for shard in self.shards)

    @property
    def tokens(self) -> int:
        """The number of word pieces in all shards."""
        return sum(shard.tokens for shard in self.shards)

    @property
    def paths(self) -> list[str]:
        """The paths of the shards, in order."""
        return [os.path.join(self.folder, shard.file) for shard in self.shards]

    def make_tokenizer(self) -> BertTokenizer:
        """Creates the tokenizer of the corpus."""
        return read_tokenizer(self.folder, self.tokenizer)


def read_index(folder: str | os.PathLike[str]) -> CorpusIndex:
    """Reads the index of a prepared corpus, and checks that its files exist and are complete.

    Args:
        folder: the folder of the corpus, on any file system that TensorFlow supports.

    Returns:
        The index.

    Raises:
        FileNotFoundError: if there is no index, or a file listed in it is missing.
        ValueError: if the index is damaged or has another format, the size of a shard differs from
            the index, `vocab.txt` is another vocabulary, or the corpus is empty.
    """
    import tensorflow as tf

    folder = os.fspath(folder)
    path = os.path.join(folder, INDEX_FILE)
    if not tf.io.gfile.exists(path):
        raise FileNotFoundError(
            f"{path} does not exist: {folder} is not a prepared corpus, or `prepare_corpus` has "
            "not finished it (run it again to resume)"
        )
    try:
        fields = json.loads(read_whole(path))
        version = fields.pop("format")
        if version == FORMAT:
            shards = tuple(Shard(**shard) for shard in fields.pop("shards"))
            index = CorpusIndex(folder=folder, shards=shards, **fields)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is not an index of a corpus: {error!r}") from error
    if version != FORMAT:
        raise ValueError(
            f"{path} has format {version!r:.80}, expected {FORMAT}: prepare the corpus again"
        )
    if problem := _problem_of(index):
        raise ValueError(f"{path}{problem}")
    vocabulary = os.path.join(folder, VOCABULARY_FILE)
    sizes = [*(shard.bytes for shard in shards), None]
    for file, size in zip([*index.paths, vocabulary], sizes, strict=True):
        if not tf.io.gfile.exists(file):
            raise FileNotFoundError(f"{file} is missing in the corpus")
        there = tf.io.gfile.stat(file).length
        if size not in (None, there):
            raise ValueError(
                f"{file} has {there} bytes, the index says {size}: it is truncated or was changed; "
                "prepare the corpus again"
            )
    found = hashlib.sha256(read_whole(vocabulary)).hexdigest()
    if found != index.vocabulary_sha256:
        raise ValueError(
            f"{vocabulary} is not the vocabulary of this corpus: its sha256 is {found}, expected "
            f"{index.vocabulary_sha256}"
        )
    return index


def index_content(index: CorpusIndex) -> bytes:
    """The content of `index.json`, for `read_index`."""
    fields = {"format": FORMAT} | asdict(index)
    del fields["folder"]
    return (json.dumps(fields, indent=1) + "\n").encode()


def vocabulary_content(tokens: Sequence[str]) -> bytes:
    """The content of `vocab.txt`, for `read_tokenizer`."""
    return "".join(f"{token}\n" for token in tokens).encode()


def read_tokenizer(folder: str, settings: dict[str, Any]) -> BertTokenizer:
    """Creates a tokenizer from a corpus's vocabulary and the settings of the index."""
    content = read_whole(os.path.join(folder, VOCABULARY_FILE)).decode()
    return BertTokenizer(content.split("\n")[:-1], **settings)


def document_example(tokens: list[int], sentence_lengths: list[int]) -> bytes:
    """Serializes a document as a `tf.train.Example`, deterministically.

    `tokens` are concatenated word piece ids of all sentences, without special tokens.

    Raises:
        ValueError: if the lengths do not add up, or one is not positive.
    """
    import tensorflow as tf

    if not sentence_lengths or min(sentence_lengths) < 1 or sum(sentence_lengths) != len(tokens):
        raise ValueError(
            f"a document of {len(tokens)} tokens has {len(sentence_lengths)} sentences of "
            f"{sum(sentence_lengths)} tokens in all, the shortest of "
            f"{min(sentence_lengths, default=0)}; expected at least one sentence, none empty, "
            "that add up to the document"
        )

    def integers(values: list[int]) -> tf.train.Feature:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    features = {"tokens": integers(tokens), "sentence_lengths": integers(sentence_lengths)}
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString(deterministic=True)  # or the order of a map is unspecified


def parse_documents(serialized: Any, vocabulary_size: int) -> tuple[Any, Any, Any]:
    """Reads serialized documents, in the graph.

    Args:
        serialized: string tensor [N] of `document_example`s.
        vocabulary_size: upper bound of the ids, exclusive.

    Returns:
        `(tokens, sentence_lengths, sentences_per_document)`, int32 [T], [S] and [N]: the
        concatenated word pieces of all documents, the number of word pieces of each sentence, and
        the number of sentences of each document.

    Raises:
        tf.errors.InvalidArgumentError: at run time, if a record is not such a document, its lengths
            do not add up, or an id is not in the vocabulary.
    """
    import tensorflow as tf

    names = ("tokens", "sentence_lengths")
    features = {name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for name in names}
    parsed = tf.io.parse_example(serialized, features)
    tokens, lengths = (parsed[name] for name in names)
    sentences = lengths.row_lengths()
    counted = tf.math.segment_sum(lengths.flat_values, lengths.value_rowids())
    # The result of segment_sum ends with the last document that has sentences.
    counted = tf.pad(counted, [[0, lengths.nrows() - tf.size(counted, tf.int64)]])
    ids = tokens.flat_values
    least, most = tf.reduce_min(ids), tf.reduce_max(ids)
    expected = f"expected ids from 0 to {vocabulary_size - 1}; a record of another vocabulary?"
    checks = [
        tf.debugging.assert_positive(
            sentences,
            "a record has no `sentence_lengths`: it is not a document of a prepared corpus",
        ),
        tf.debugging.assert_positive(lengths.flat_values, "a sentence of no tokens"),
        tf.debugging.assert_less_equal(  # otherwise their sums could be right by overflow
            lengths.flat_values,
            tf.size(ids, tf.int64),
            "a sentence has more tokens than the document",
        ),
        tf.debugging.assert_equal(
            counted,
            tokens.row_lengths(),
            "the sentences of a document do not add up to its tokens",
        ),
        tf.debugging.assert_less(most, tf.cast(vocabulary_size, tf.int64), expected),
        tf.debugging.assert_non_negative(least, expected),
    ]
    with tf.control_dependencies([check for check in checks if check is not None]):
        return (
            tf.cast(ids, tf.int32),
            tf.cast(lengths.flat_values, tf.int32),
            tf.cast(sentences, tf.int32),
        )


def _problem_of(index: CorpusIndex) -> str:
    """What `index_content` never writes, as the end of a sentence; "" for a right index."""
    for number, shard in enumerate(index.shards):
        counts = (shard.documents, shard.sentences, shard.tokens, shard.bytes)
        # A token takes at least a byte, and no sentence is empty.
        if not all(type(n) is int for n in counts) or [*counts] != sorted(counts) or counts[0] < 0:
            return (
                f", shard {number}: {counts!r:.80} documents, sentences, tokens and bytes; "
                "expected integers, each at least as large as the previous one"
            )
        if not isinstance(shard.file, str) or os.path.basename(shard.file) != shard.file:
            return (
                f", shard {number}: the file {shard.file!r:.80}; expected a name in the folder of "
                "the index"
            )
    kinds = dict(zip(SETTINGS, (bool, bool | None, bool, int, str, list, list), strict=True))
    settings = index.tokenizer
    if not isinstance(settings, dict) or not all(
        name in kinds and isinstance(value, kinds[name]) for name, value in settings.items()
    ):
        return f": {settings!r:.200} are not settings of its tokenizer"
    if type(index.vocabulary_size) is not int or index.vocabulary_size < 1:
        return f": vocabulary_size is {index.vocabulary_size!r:.80}"
    empty = not index.documents or not index.tokens
    return ": the corpus is empty, expected at least one document" if empty else ""
