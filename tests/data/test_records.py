import dataclasses
import hashlib
import json

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.data.records import (
    CorpusIndex,
    Shard,
    document_example,
    index_content,
    parse_documents,
    read_index,
    vocabulary_content,
)

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##b"]
DOCUMENTS = [([5, 6, 7], [2, 1]), ([1], [1]), ([7, 7, 7, 7, 5], [1, 3, 1])]


def write_corpus(folder, documents=DOCUMENTS):
    """A corpus of one shard, by hand."""
    folder.mkdir(exist_ok=True)
    path = folder / "shard-00000-of-00001.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for tokens, lengths in documents:
            writer.write(document_example(tokens, lengths))
    vocabulary = vocabulary_content(VOCABULARY)
    (folder / "vocab.txt").write_bytes(vocabulary)
    data = path.read_bytes()
    shard = Shard(
        file=path.name,
        documents=len(documents),
        sentences=sum(len(lengths) for _, lengths in documents),
        tokens=sum(len(tokens) for tokens, _ in documents),
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )
    index = CorpusIndex(
        folder=str(folder),
        tokenizer={"lowercase": False, "strip_accents": None},
        vocabulary_size=len(VOCABULARY),
        vocabulary_sha256=hashlib.sha256(vocabulary).hexdigest(),
        seed=3,
        shards=(shard,),
        left_out={},
        source={"format": "sentences"},
    )
    (folder / "index.json").write_bytes(index_content(index))
    return index


def test_index_comes_back(tmp_path):
    index = write_corpus(tmp_path / "c")
    assert read_index(tmp_path / "c") == index
    assert (index.documents, index.sentences, index.tokens) == (3, 6, 9)
    assert index.paths == [str(tmp_path / "c" / "shard-00000-of-00001.tfrecord")]
    tokenizer = index.make_tokenizer()
    assert tokenizer.get_vocabulary() == VOCABULARY and not tokenizer.lowercase


def test_documents_come_back(tmp_path):
    index = write_corpus(tmp_path)
    serialized = list(tf.data.TFRecordDataset(index.paths))
    parse = tf.function(lambda batch: parse_documents(batch, len(VOCABULARY)))
    tokens, lengths, sentences = parse(tf.stack(serialized))
    assert all(tensor.dtype == tf.int32 for tensor in (tokens, lengths, sentences))
    assert tokens.numpy().tolist() == [t for tokens, _ in DOCUMENTS for t in tokens]
    assert lengths.numpy().tolist() == [n for _, lengths in DOCUMENTS for n in lengths]
    assert sentences.numpy().tolist() == [2, 1, 3]
    assert [len(part) for part in parse(tf.zeros([0], tf.string))] == [0, 0, 0]


def test_same_bytes_every_time_and_readable_by_others():
    first = document_example(list(range(300)), [100, 200])
    assert first == document_example(list(range(300)), [100, 200])
    features = tf.train.Example.FromString(first).features.feature
    assert list(features["tokens"].int64_list.value) == list(range(300))
    assert list(features["sentence_lengths"].int64_list.value) == [100, 200]


@pytest.mark.parametrize("lengths", [[], [2], [4], [3, 0], [4, -1]])
def test_lengths_that_do_not_add_up_are_not_written(lengths):
    with pytest.raises(ValueError, match="a document of 3 tokens has"):
        document_example([5, 6, 7], lengths)


def example(**features):
    features = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=value))
        for name, value in features.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


BAD_RECORDS = {
    "id of another vocabulary": (
        example(tokens=[5, 8], sentence_lengths=[2]),
        r"ids from 0 to 7.*another vocabulary",
    ),
    "negative id": (example(tokens=[5, -1], sentence_lengths=[2]), "ids from 0 to 7"),
    "another kind of record": (example(input_ids=[2, 5, 3]), "not a document of a prepared corpus"),
    "no tokens": (example(sentence_lengths=[2]), "do not add up"),
    "lengths too short": (example(tokens=[5, 6], sentence_lengths=[1]), "do not add up"),
    "empty sentence": (example(tokens=[5, 6], sentence_lengths=[2, 0]), "a sentence of no tokens"),
    "no example": (b"something else", "[Pp]arse"),
}


@pytest.mark.one_quick
@pytest.mark.parametrize("case", BAD_RECORDS)
def test_bad_records_are_refused(case):
    record, message = BAD_RECORDS[case]
    good = document_example([5, 6], [2])
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        parse_documents(tf.constant([good, record]), len(VOCABULARY))
    dataset = tf.data.Dataset.from_tensors([good, record])
    dataset = dataset.map(lambda batch: parse_documents(batch, len(VOCABULARY)))
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(dataset)


def test_large_documents_survive():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 97, 5003)
    tokens = rng.integers(0, 30522, lengths.sum())
    record = document_example(tokens.tolist(), lengths.tolist())
    found = parse_documents(tf.constant([record, record]), 30522)
    np.testing.assert_array_equal(found[0], np.tile(tokens, 2))
    np.testing.assert_array_equal(found[1], np.tile(lengths, 2))
    np.testing.assert_array_equal(found[2], [5003, 5003])


def change(path, **fields):
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | fields))


def cut(path):
    path.write_bytes(path.read_bytes()[:-5])


BAD_FOLDERS = {
    "no index": (lambda f: (f / "index.json").unlink(), FileNotFoundError, "not a prepared corpus"),
    "no JSON": (lambda f: cut(f / "index.json"), ValueError, "not an index of a corpus"),
    "JSON list": (lambda f: (f / "index.json").write_text("[]"), ValueError, "not an index of a"),
    "other format": (lambda f: change(f / "index.json", format=2), ValueError, "format 2.*1"),
    "unknown field": (
        lambda f: change(f / "index.json", x=2),
        ValueError,
        "not an index of a corpus",
    ),
    "no shards": (lambda f: change(f / "index.json", shards=[]), ValueError, "corpus is empty"),
    "cut shard": (
        lambda f: cut(f / "shard-00000-of-00001.tfrecord"),
        ValueError,
        r"shard-00000-of-00001.tfrecord has \d+ bytes, the index says \d+",
    ),
    "lost shard": (
        lambda f: (f / "shard-00000-of-00001.tfrecord").unlink(),
        FileNotFoundError,
        "shard-00000-of-00001.tfrecord is missing",
    ),
    "lost vocabulary": (lambda f: (f / "vocab.txt").unlink(), FileNotFoundError, "vocab.txt is"),
    "other vocabulary": (lambda f: cut(f / "vocab.txt"), ValueError, "not the vocabulary of this"),
}


@pytest.mark.parametrize("case", BAD_FOLDERS)
def test_damaged_folders_are_refused(tmp_path, case):
    damage, error, message = BAD_FOLDERS[case]
    write_corpus(tmp_path / "c")
    damage(tmp_path / "c")
    with pytest.raises(error, match=message):
        read_index(tmp_path / "c")


def test_index_is_immutable(tmp_path):
    with pytest.raises(dataclasses.FrozenInstanceError):
        write_corpus(tmp_path).seed = 4
