import gzip
import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.data import documents, text_files
from keras_bert.data.documents import (
    DocumentTokenizer,
    Passage,
    file_passages,
    split_sentences,
)

TEXT = (
    "\ufeff\none\ntwo \r\n"
    "\n\n \t\n\u3000\nthree\n\x0b\nfour\nfive\u2028\x85\nsix\n\nseven\n\n\neight"
)


def original_documents(text):
    """create_pretraining_data.py, L191-209: what it reads of one file, line by line."""
    found = [[]]
    for line in text.removeprefix("\ufeff").split("\n"):
        line = line.strip()
        if not line:
            found.append([])
        else:
            found[-1].append(line)
    return [document for document in found if document]


def joined(passages):
    """Documents of passages, with their places."""
    found = []
    for first, place, sentences in passages:
        if first:
            found.append((place, []))
        assert sentences
        found[-1][1].extend(sentences)
    return found


def tokenizer(lines):
    """A word is a piece, and its length is its id."""
    lines = lines.numpy().tolist()
    return tf.ragged.constant([[len(word) for word in line.split()] for line in lines], tf.int32)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("chunk", [2, 5, 1 << 20])
def test_documents_are_those_of_the_original(tmp_path, monkeypatch, name, chunk):
    monkeypatch.setattr(text_files, "CHUNK_BYTES", chunk)
    data = TEXT.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    found = joined(file_passages(str(tmp_path / name)))
    assert [sentences for _, sentences in found] == original_documents(TEXT)
    for place, sentences in found:
        assert data[place:].decode().removeprefix("\ufeff").startswith(sentences[0])


@pytest.mark.parametrize("chunk", [4, 1 << 20])
def test_blocks_have_each_document_once(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(text_files, "CHUNK_BYTES", chunk)
    data = TEXT.encode()
    (tmp_path / "a").write_bytes(data)
    path = str(tmp_path / "a")
    whole = joined(file_passages(path))
    for size in (1, 2, 3, 7, 11, len(data) // 2 + 1, len(data)):
        starts = [*range(0, len(data), size)]
        parts = [
            joined(file_passages(path, s, e))
            for s, e in zip(starts, [*starts[1:], None], strict=True)
        ]
        assert list(itertools.chain(*parts)) == whole, size


def test_a_block_inside_a_document_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "CHUNK_BYTES", 10)
    (tmp_path / "a").write_text("word\n" * 1000 + "\nlast\n")
    read = []
    whole_lines = text_files._whole_lines
    monkeypatch.setattr(
        text_files,
        "_whole_lines",
        lambda *args: (read.append(part) or part for part in whole_lines(*args)),
    )
    assert list(file_passages(str(tmp_path / "a"), 1000, 1100)) == []
    assert len(read) < 15


def test_batches_join_to_documents_without_what_has_no_tokens(monkeypatch):
    passages = [
        Passage(True, 3, ["a bb", " ", "ccc"]),
        Passage(False, 9, ["dddd"]),
        Passage(True, 12, [" ", " "]),
        Passage(True, 20, [" "]),
        Passage(False, 22, ["e e e"]),
    ]
    expected = [(3, 0, [1, 2, 3, 4], [2, 1, 1]), (20, 0, [1, 1, 1], [3])]
    for size in (1, 4, 1 << 20):
        monkeypatch.setattr(documents, "CHUNK_BYTES", size)
        join = DocumentTokenizer(tokenizer)
        found = [(d.place, d.part, [*d.tokens], [*d.sentence_lengths]) for d in join(passages)]
        assert found == expected
        assert join.counts == {"sentences_without_tokens": 4, "documents_without_tokens": 1}
    assert list(DocumentTokenizer(tokenizer)([])) == []


@pytest.mark.parametrize("seed", range(7))
def test_long_documents_are_cut_between_sentences(monkeypatch, seed):
    monkeypatch.setattr(documents, "MAX_DOCUMENT_TOKENS", 11)
    monkeypatch.setattr(documents, "CHUNK_BYTES", 13)
    rng = np.random.default_rng(seed)
    texts = [
        " ".join("x" * rng.integers(1, 9) for _ in range(rng.integers(0, 15))) for _ in "a" * 40
    ]
    starts = sorted({0, *rng.integers(0, 40, 5).tolist()})
    cuts = sorted({*starts, *rng.integers(0, 40, 9).tolist(), 40})
    passages = [Passage(a in starts, a, texts[a:b]) for a, b in itertools.pairwise(cuts)]
    join = DocumentTokenizer(tokenizer)
    found = list(join(passages))
    parts_of = []
    for start, end in itertools.pairwise([*starts, 40]):
        # One sentence after the other, a new part where the next one would be too much.
        parts, lengths = [[]], [len(text.split()) for text in texts[start:end]]
        for length in filter(None, lengths):
            if parts[-1] and sum(parts[-1]) + length > 11:
                parts.append([])
            parts[-1].append(length)
        parts_of.append(parts)
        own = [document for document in found if document.place == start]
        assert [document.part for document in own] == list(range(len(own)))
        assert [document.sentence_lengths.tolist() for document in own] == [p for p in parts if p]
        words = [len(word) for text in texts[start:end] for word in text.split()]
        assert [token for document in own for token in document.tokens] == words
    assert join.counts["documents_cut"] == sum(len(parts) > 1 for parts in parts_of)


def test_paragraphs_are_cut_into_sentences():
    pytest.importorskip("sentencex")
    english = Passage(
        True, 0, ["Mr. Smith went to the U.S. in Jan. 1999. Why?  Nobody knows.", "End"]
    )
    (passage,) = split_sentences([english], "en")
    expected = ["Mr. Smith went to the U.S. in Jan. 1999.", "Why?", "Nobody knows.", "End"]
    assert passage == Passage(True, 0, expected)
    (passage,) = split_sentences([Passage(False, 7, ["今天天气很好。我们去公园吧！"])], "zh")
    assert passage == Passage(False, 7, ["今天天气很好。", "我们去公园吧！"])
