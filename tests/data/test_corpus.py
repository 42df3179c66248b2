import gzip
import hashlib
import os
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert.data import beam_runs, corpus, corpus_plan, documents, prepare_corpus
from keras_bert.data.records import parse_documents, read_index
from keras_bert.text.tokenizer import BertTokenizer

beam = pytest.importorskip("apache_beam")
from keras_bert.data import corpus_pipeline  # noqa: E402

QUIET = {"workers": 1, "verbose": False}
WORDS = [a + b for a in "bcdfg" for b in "aeiou"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *"aeiou", "##n", ".", "mr", "?"]


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(VOCABULARY)


@pytest.fixture(scope="module", autouse=True)
def traced_once():
    """Tokenizers of the same vocabulary and settings are one: tracing takes a second each."""
    made, read = {}, corpus_pipeline.read_tokenizer

    def read_once(folder, settings):
        key = (Path(folder, "vocab.txt").read_bytes(), str(settings))
        return made.get(key) or made.setdefault(key, read(folder, settings))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_pipeline, "read_tokenizer", read_once)
        yield


def make_text(rng, documents):
    """Documents of random words, with the blank lines and line ends that files have."""
    parts = []
    for _ in range(documents):
        for _ in range(rng.integers(1, 9)):
            words = rng.choice(WORDS, rng.integers(1, 12))
            parts.append(" ".join(words) + rng.choice(["\n", " \r\n", "n\n", " É\n"]))
        parts += [" \n"] * rng.integers(1, 4)
    return "".join(parts)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three files of uneven sizes, one of them gzipped; the last has no blank line at its end."""
    folder, rng = tmp_path_factory.mktemp("text"), np.random.default_rng(0)
    (folder / "b.txt").write_text("\ufeff\n" + make_text(rng, 31), newline="")
    packed = gzip.compress(make_text(rng, 3).encode() + b"\n\x07\n\n\x07\nba\n\nbe be")
    (folder / "a.txt.gz").write_bytes(packed)
    (folder / "c.txt").write_text("", newline="")
    return folder


def original_documents(paths, tokenize):
    """create_pretraining_data.py, L191-212, but that a file ends a document.

    Returns the documents with the order that they should be in: by blake2b of the seed, the file,
    the byte that the document begins at, and 0.
    """
    found = []
    for number, path in enumerate(sorted(paths)):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        document, place, begin = [], 0, None
        for raw in [*data.split(b"\n"), b""]:
            line = raw.decode().removeprefix("\ufeff").strip()
            if line:
                begin = place if begin is None else begin
                tokens = tokenize(line)
                document += [tokens] if tokens else []
            else:
                if document:
                    key = hashlib.blake2b(struct.pack("<4q", 7, number, begin, 0), digest_size=8)
                    found.append((int.from_bytes(key.digest(), "little") >> 1, document))
                document, begin = [], None
            place += len(raw) + 1
    return [document for _, document in sorted(found)]


def read_documents(index):
    """The documents of each shard, as lists of sentences of ids."""
    shards = []
    for path in index.paths:
        records = list(tf.data.TFRecordDataset(path))
        tokens, lengths, sentences = parse_documents(tf.stack(records), index.vocabulary_size)
        rows = tf.RaggedTensor.from_row_lengths(tokens, lengths)
        shards.append(tf.RaggedTensor.from_row_lengths(rows, sentences).to_list())
    return shards


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def prepared(files, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    index = prepare_corpus(files / "*", folder, tokenizer, shards=5, seed=7, **QUIET)
    return folder, index


def test_documents_are_those_of_the_original_in_a_random_order(prepared, files, tokenizer):
    folder, index = prepared
    words = {token: id for id, token in enumerate(VOCABULARY)}

    def tokenize(line):  # by hand, for the words of this text
        ids = []
        for word in line.lower().replace("é", "e").replace("\x07", "").split():
            ids += [words[word]] if word in words else [words[word[:-1]], words["##n"]]
        return ids

    expected = original_documents(files.iterdir(), tokenize)
    shards = read_documents(index)
    assert [document for shard in shards for document in shard] == expected
    assert len(expected) == 36 and expected[-1] != [[words["be"], words["be"]]]
    # The counts of the index are true, and shards are even.
    assert [shard.documents for shard in index.shards] == [7, 7, 7, 7, 8]
    for shard, entry in zip(shards, index.shards, strict=True):
        assert entry.documents == len(shard)
        assert entry.sentences == sum(map(len, shard))
        assert entry.tokens == sum(len(sentence) for document in shard for sentence in document)
        data = (folder / entry.file).read_bytes()
        assert (entry.bytes, entry.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert index.left_out == {"documents_without_tokens": 1, "sentences_without_tokens": 2}


def test_lost_characters_and_unsplit_paragraphs_are_warned_of(tmp_path):
    tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##a", "."])
    (tmp_path / "text").write_text("a a. 王 a 法国 a.\n\na a a.\n" + "\n\na " * 40)
    with pytest.warns(UserWarning, match=r"3 of 53 tokens are \[UNK\].* alphabet_size"):
        index = prepare_corpus(tmp_path / "text", tmp_path / "unknown", tokenizer, 1, **QUIET)
    assert index.left_out == {"unknown_tokens": 3}
    (tmp_path / "long").write_text(2 * ("a " * 29 + "." + " a" * 29 + ".\n\n"))
    with pytest.warns(UserWarning, match=r"60 tokens on average.* format='paragraphs'"):
        prepare_corpus(tmp_path / "long", tmp_path / "unsplit", tokenizer, 1, **QUIET)


def test_the_folder_holds_what_it_should_and_the_tokenizer_comes_back(prepared):
    folder, index = prepared
    shards = [f"shard-{number:05d}-of-00005.tfrecord" for number in range(5)]
    assert sorted(content(folder)) == sorted(["index.json", "vocab.txt", *shards])
    assert (folder / "vocab.txt").read_text() == "".join(f"{token}\n" for token in VOCABULARY)
    assert read_index(folder) == index and str(folder) not in (folder / "index.json").read_text()
    assert [file["name"] for file in index.source["files"]] == ["a.txt.gz", "b.txt", "c.txt"]
    assert index.make_tokenizer()(["Bán xyz"]).to_list() == [[5, VOCABULARY.index("##n"), 1]]


@pytest.mark.one_quick
@pytest.mark.parametrize(
    ("workers", "block", "run"), [(1, 1 << 24, 1 << 25), (2, 70, 40), (3, 501, 1)]
)
def test_same_shards_whatever_the_workers_and_blocks(
    prepared, files, tokenizer, tmp_path, monkeypatch, workers, block, run
):
    monkeypatch.setattr(corpus_plan, "BLOCK_BYTES", block)
    monkeypatch.setattr("keras_bert.data.sorted_runs.RUN_BYTES", run)
    paths = [files / name for name in ("c.txt", "a.txt.gz", "b.txt")]
    prepare_corpus(paths, tmp_path, tokenizer, shards=5, seed=7, workers=workers, verbose=False)
    assert content(tmp_path) == content(prepared[0])


@pytest.mark.slow
def test_same_shards_from_several_processes(prepared, files, tokenizer, tmp_path):
    options = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    prepare_corpus(files / "*", tmp_path, tokenizer, 5, 7, beam_options=options)
    assert content(tmp_path) == content(prepared[0])


def test_another_seed_is_another_order(prepared, files, tokenizer, tmp_path):
    index = prepare_corpus(files / "*", tmp_path, tokenizer, shards=1, seed=np.int64(8), **QUIET)
    mine = [document for shard in read_documents(prepared[1]) for document in shard]
    (other,) = read_documents(index)
    assert other != mine and sorted(other) == sorted(mine)


@pytest.mark.thorough
def test_a_stopped_run_goes_on(prepared, files, tokenizer, tmp_path, monkeypatch, capfd):
    """Stopped among the blocks, then among the shards; what is done is not done again."""
    monkeypatch.setattr(corpus_plan, "BLOCK_BYTES", 300)
    did = []

    def stop_after(step, number):
        own = getattr(step, name := "_tokenize" if "Block" in step.__name__ else "_merge")

        def do(self, *args):
            if number == len([kind for kind in did if kind == name]):
                raise RuntimeError("pulled the plug")
            did.append(name)
            return own(self, *args)

        monkeypatch.setattr(step, name, do)
        return own

    arguments = dict(shards=5, seed=7, **QUIET)
    tokenize = stop_after(corpus_pipeline.TokenizeBlock, 4)
    with pytest.raises(Exception, match="pulled the plug"):
        prepare_corpus(files / "*", tmp_path, tokenizer, **arguments)
    blocks = {path.name for path in (tmp_path / "_work").glob("block-*.json")}
    assert len(blocks) == 4 and not (tmp_path / "index.json").exists()
    with pytest.raises(FileNotFoundError, match="has not finished it"):
        read_index(tmp_path)

    monkeypatch.setattr(corpus_pipeline.TokenizeBlock, "_tokenize", tokenize)
    stop_after(corpus_pipeline.TokenizeBlock, 10**9)
    merge = stop_after(corpus_pipeline.MergeShard, 3)
    with pytest.raises(Exception, match="pulled the plug"):
        prepare_corpus(files / "*", tmp_path, tokenizer, **arguments)
    every = len(list((tmp_path / "_work").glob("block-*.json")))
    assert every > 9 and did.count("_tokenize") == every
    done = {path: path.stat().st_ino for path in tmp_path.glob("shard-*")}
    assert len(done) == 3 and not (tmp_path / "index.json").exists()

    monkeypatch.setattr(corpus_pipeline.MergeShard, "_merge", merge)
    stop_after(corpus_pipeline.MergeShard, 10**9)
    (tmp_path / "_work" / "shard-00004-of-00005.tfrecord.0f.new").write_bytes(b"torn")
    prepare_corpus(files / "*", tmp_path, tokenizer, **arguments)
    assert did.count("_tokenize") == every and did.count("_merge") == 5
    assert all(path.stat().st_ino == inode for path, inode in done.items())
    assert content(tmp_path) == content(prepared[0])


def test_a_whole_corpus_is_not_made_again(prepared, files, tokenizer, monkeypatch):
    monkeypatch.setattr(corpus_pipeline, "build_pipeline", None)
    folder, index = prepared
    (folder / "_work").mkdir()  # left by a run that was stopped at its very end
    assert prepare_corpus(files / "*", folder, tokenizer, shards=5, seed=7) == index
    assert not (folder / "_work").exists()


OTHERS = {
    "seed": (dict(seed=8), "with seed 7, not 8"),
    "shards": (dict(shards=4), "with shards 5, not 4"),
    "format": (dict(format="paragraphs"), "with format 'sentences', not 'paragraphs'"),
    "vocabulary": (dict(tokenizer=[*VOCABULARY[:-1], "!"]), "with vocabulary_sha256 '"),
    "case": (dict(lowercase=False), "with lowercase True, not False"),
    "files": (dict(names=["b.txt"]), "with files .*'a.txt.gz'.* not .*'b.txt'"),
    "text": (dict(append="be\n"), "with files .*'bytes': 0,.* not .*'bytes': 3,"),
}


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("case", OTHERS)
def test_no_mixture_with_another_corpus(prepared, files, tmp_path, case, whole):
    change, message = OTHERS[case]
    change = dict(change)
    text, folder = tmp_path / "text", tmp_path / "corpus"
    shutil.copytree(files, text)
    shutil.copytree(prepared[0], folder)
    tokenizer = BertTokenizer(change.pop("tokenizer", VOCABULARY), change.pop("lowercase", True))
    if not whole:
        plan = corpus_plan.make_plan(
            text / "*", BertTokenizer(VOCABULARY), 5, 7, "sentences", "en", None
        )
        (folder / "_work").mkdir()
        (folder / "_work" / "plan.json").write_bytes(plan.content())
        (folder / "index.json").unlink()
    with open(text / "c.txt", "a") as file:
        file.write(change.pop("append", ""))
    paths = [text / name for name in change.pop("names", ["a.txt.gz", "b.txt", "c.txt"])]
    before = sorted(os.listdir(folder))
    arguments = dict(shards=5, seed=7) | change
    with pytest.raises(FileExistsError, match=message + ".*overwrite=True"):
        prepare_corpus(paths, folder, tokenizer, **arguments)
    assert sorted(os.listdir(folder)) == before


def test_a_file_changed_between_two_runs(prepared, files, tokenizer, tmp_path):
    shutil.copytree(files, tmp_path / "text")
    plan = corpus_plan.make_plan(tmp_path / "text" / "*", tokenizer, 5, 7, "sentences", "en", None)
    (tmp_path / "c" / "_work").mkdir(parents=True)
    (tmp_path / "c" / "_work" / "plan.json").write_bytes(plan.content())
    os.utime(tmp_path / "text" / "b.txt", (1, 1))
    with pytest.raises(FileExistsError, match="files were changed or moved since"):
        prepare_corpus(tmp_path / "text" / "*", tmp_path / "c", tokenizer, shards=5, seed=7)


def test_overwrite(prepared, files, tokenizer, tmp_path):
    (tmp_path / "shard-00000-of-00009.tfrecord").write_bytes(b"")
    (tmp_path / "vocab.txt").write_bytes(b"x\n")
    arguments = dict(shards=5, seed=7, **QUIET)
    with pytest.raises(FileExistsError, match="shards of an unknown corpus"):
        prepare_corpus(files / "*", tmp_path, tokenizer, **arguments)
    (tmp_path / "shard-00000-of-00009.tfrecord").unlink()
    with pytest.raises(FileExistsError, match="vocab.txt is another vocabulary"):
        prepare_corpus(files / "*", tmp_path, tokenizer, **arguments)
    (tmp_path / "shard-00000-of-00009.tfrecord").write_bytes(b"")
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="contains thesis.txt, not part of a corpus"):
        prepare_corpus(files / "*", tmp_path, tokenizer, overwrite=True, **arguments)
    (tmp_path / "thesis.txt").unlink()
    prepare_corpus(files / "*", tmp_path, tokenizer, overwrite=True, **arguments)
    assert content(tmp_path) == content(prepared[0])


def test_few_documents(tokenizer, tmp_path):
    (tmp_path / "a.txt").write_text("ba\n\n" * 5)
    with pytest.warns(UserWarning, match="wrote 2 shards, not 8, because 5 documents"):
        index = prepare_corpus(tmp_path / "a.txt", tmp_path / "5", tokenizer, **QUIET)
    assert [shard.documents for shard in index.shards] == [2, 3]
    (tmp_path / "b.txt").write_text("ba\nbe")
    with pytest.warns(UserWarning, match="one document, but next sentence prediction needs two"):
        index = prepare_corpus(tmp_path / "b.txt", tmp_path / "1", tokenizer, **QUIET)
    assert [shard.sentences for shard in index.shards] == [2]


def test_a_document_too_long_for_memory_is_cut(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "MAX_DOCUMENT_TOKENS", 10)
    monkeypatch.setattr(corpus, "MAX_DOCUMENT_TOKENS", 10)
    (tmp_path / "a.txt").write_text("ba be bi\n" * 7 + "\nbo\n")
    with pytest.warns(UserWarning, match="1 documents have more than 10 tokens and were split"):
        index = prepare_corpus(tmp_path / "a.txt", tmp_path / "c", tokenizer, 1, **QUIET)
    (found,) = read_documents(index)
    assert sorted(map(len, found)) == [1, 1, 3, 3] and index.tokens == 22
    assert index.left_out == {"documents_cut": 1}


def test_paragraphs(tokenizer, tmp_path):
    (tmp_path / "a.txt").write_text("Mr. Ba be. Bi?\nBo. \n\nDo.  Du.\n")
    index = prepare_corpus(
        tmp_path / "a.txt", tmp_path / "c", tokenizer, 1, format="paragraphs", **QUIET
    )
    (found,) = read_documents(index)
    decoded = [
        [" ".join(VOCABULARY[id] for id in sentence) for sentence in document] for document in found
    ]
    assert sorted(decoded) == [["do .", "du ."], ["mr . ba be .", "bi ?", "bo ."]]
    assert index.source["splitter"].startswith("sentencex 1.")


# TensorFlow Datasets 4.9.10 asks protobuf 6 for what it names otherwise by now (dataset_info.py).
@pytest.mark.filterwarnings(r"ignore:label\(\) is deprecated:DeprecationWarning")
def test_data_sets(tokenizer, tmp_path, monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")
    monkeypatch.setattr(corpus_plan, "BLOCK_EXAMPLES", 4)
    text = tfds.features.Text()
    texts = [f"{word}? Bi.\n\n Bo." for word in WORDS[:10]] + [" \n"]
    examples = tf.data.Dataset.from_tensor_slices({"title": ["x"] * 11, "text": texts})
    tfds.dataset_builders.store_as_tfds_dataset(
        name="articles",
        version="1.0.0",
        features=tfds.features.FeaturesDict({"title": text, "text": text}),
        split_datasets={"train": examples},
        data_dir=tmp_path,
    )
    arguments = dict(shards=2, data_dir=str(tmp_path), **QUIET)
    (tmp_path / "a.txt").write_text("fa\n")
    names = ["tfds:articles", tmp_path / "a.txt"]
    index = prepare_corpus(names, tmp_path / "c", tokenizer, **arguments)
    found = [document for shard in read_documents(index) for document in shard]
    end = tokenizer(["?", "Bi.", "Bo."]).to_list()
    articles = [[tokenizer([word]).to_list()[0] + end[0], *end[1:]] for word in WORDS[:10]]
    assert sorted(found) == sorted([*articles, [[VOCABULARY.index("fa")]]])
    assert index.source["data_sets"] == [
        {"name": "articles/1.0.0", "split": "train", "examples": 11}
    ]
    for names, message in [
        ("tfds:articles:dev", r"no split 'dev'; there are \['train'\]"),
        (["tfds:articles", "tfds:articles"], "named twice"),
    ]:
        with pytest.raises(ValueError, match=message):
            prepare_corpus(names, tmp_path / "d", tokenizer, **arguments)


def test_a_number_of_numpy_is_a_number_of_shards(files, tokenizer, tmp_path):
    index = prepare_corpus(files / "*", tmp_path, tokenizer, shards=np.int64(3), **QUIET)
    assert len(index.shards) == 3


def test_progress(files, tokenizer, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(beam_runs, "PROGRESS_SECONDS", 0.001)
    prepare_corpus(files / "*", tmp_path, tokenizer, 3)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "0 of 0 MB read in 0 of 1 blocks, 0 documents; 0 shards written"
    assert said[-1].endswith("in 1 of 1 blocks, 36 documents; 3 shards written")


BAD_TEXTS = {
    "not UTF-8": ({"a.txt": b"ba\n\nb\xe9\n"}, r"a\.txt, line 3: byte 0xe9 at position 1"),
    "not UTF-8 in gzip": ({"a.gz": gzip.compress(b"\xff\n")}, r"a\.gz, line 1: byte 0xff"),
    "the first of two": ({"a.txt": b"\n\xfe", "b.txt": b"\xff"}, r"a\.txt, line 2: byte 0xfe"),
    "broken gzip": ({"a.gz": gzip.compress(b"ba\n" * 99)[:-9]}, r"a\.gz, .*damaged gzip"),
    "empty": ({"a.txt": b"", "b.txt": b""}, r"corpus is empty: .*a\.txt, .*b\.txt"),
    "only blank lines": ({"a.txt": b"\n \n"}, "the corpus is empty"),
    "no tokens": ({"a.txt": b"\x07\n"}, "the corpus is empty"),
}


@pytest.mark.one_quick
@pytest.mark.parametrize("case", BAD_TEXTS)
def test_bad_text_is_named(tokenizer, tmp_path, case, caplog):
    texts, message = BAD_TEXTS[case]
    for name, data in texts.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=message):
        prepare_corpus(tmp_path / "*", tmp_path / "c", tokenizer, **QUIET)
    assert not list((tmp_path / "c").glob("shard-*")) and "Traceback" not in caplog.text


@pytest.mark.thorough
def test_bad_text_stays_bad(tokenizer, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff\n")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"a\.txt, line 1: byte 0xff"):
            prepare_corpus(tmp_path / "a.txt", tmp_path / "c", tokenizer, **QUIET)
    (tmp_path / "a.txt").write_bytes(b"ba\n\nbe\n")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        prepare_corpus(tmp_path / "a.txt", tmp_path / "c", tokenizer, 1, **QUIET)
    index = prepare_corpus(
        tmp_path / "a.txt", tmp_path / "c", tokenizer, 1, overwrite=True, **QUIET
    )
    assert index.documents == 2


def test_files_that_are_not_there(tokenizer, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"\*\.txt is not there"):
        prepare_corpus(tmp_path / "*.txt", tmp_path / "c", tokenizer)
    (tmp_path / "a.txt").write_text("ba\n")
    with pytest.raises(ValueError, match=r"a\.txt is named twice"):
        prepare_corpus([tmp_path / "a.txt", tmp_path / "*.txt"], tmp_path / "c", tokenizer)
    assert not (tmp_path / "c").exists()


BAD_ARGUMENTS = {
    "no tokenizer": (
        dict(tokenizer="vocab.txt"),
        TypeError,
        "tokenizer of type str: expected a BertTokenizer",
    ),
    "no mask": (dict(tokenizer=BertTokenizer(VOCABULARY[:4])), ValueError, r"has no \[MASK\]"),
    "specials": (
        dict(tokenizer=BertTokenizer(VOCABULARY, special_tokens_in_text=True)),
        ValueError,
        "special_tokens_in_text=True: expected",
    ),
    "shards": (dict(shards=0), ValueError, "shards=0: expected a whole number, 1 or more"),
    "seed": (dict(seed=1.5), ValueError, "seed=1.5: expected a 64-bit integer"),
    "format": (
        dict(format="lines"),
        ValueError,
        "format='lines': expected one of sentences, paragraphs",
    ),
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_bad_arguments(files, tokenizer, tmp_path, case):
    change, error, message = BAD_ARGUMENTS[case]
    with pytest.raises(error, match=message):
        prepare_corpus(files / "*", tmp_path, **dict(tokenizer=tokenizer) | change)
