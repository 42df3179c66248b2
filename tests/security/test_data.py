"""Training data, corpora and rows to answer from strangers: bombs, depth, names that lead out."""

import gzip
import json
import re

import pytest
import tensorflow as tf

from keras_bert.data import read_squad, read_table, read_tagged, rows
from keras_bert.data.records import parse_documents, read_index
from keras_bert.data.relations import read_relations
from keras_bert.data.rows import parse_json, read_objects, read_rows
from keras_bert.data.table_rows import Cell, Table, TableReader
from keras_bert.serving.bulk_rows import RowReader, find_files
from keras_bert.serving.export_contract import PLACE, read_contract
from keras_bert_cli.bad_rows import read_without_bad_rows
from tests.data.test_records import change, write_corpus
from tests.security.limits import soon_and_small

DEEP = "[" * 100_000 + "]" * 100_000
TEXT = {"text": {"dtype": "string", "shape": [None]}}
LISTS = {"choices": {"dtype": "string", "shape": [None, None]}}


@pytest.fixture(autouse=True)
def limited():
    with soon_and_small(kilobytes=600_000):
        yield


@pytest.fixture
def bomb(monkeypatch):
    """Megabytes in as many kilobytes, with less allowed: one line, and many lines."""
    monkeypatch.setattr(rows, "FREE_BYTES", 1 << 16)
    return {
        name: gzip.compress(byte * (1 << 23)) for name, byte in (("line", b"a"), ("lines", b"\n"))
    }


@pytest.mark.one_quick
@pytest.mark.parametrize("kind", ["line", "lines"])
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("a.csv.gz", lambda path: read_table(path, "a")),
        ("a.tsv.gz", lambda path: read_table(path, "a")),
        ("a.jsonl.gz", lambda path: read_table(path, "a")),
        ("a.json.gz", read_squad),
        ("a.conll.gz", read_tagged),
        ("a.txt.gz", read_relations),
        ("b.txt.gz", lambda path: [*RowReader(find_files(path), LISTS, None)]),
    ],
)
def test_gzip_bombs(tmp_path, bomb, name, read, kind):
    if name == "b.txt.gz":
        name, read = "b.txt.gz", lambda path: [*RowReader(find_files(path), TEXT, None)]
        kind = "line"  # many empty texts are many texts
    path = tmp_path / name
    path.write_bytes(bomb[kind])
    with pytest.raises(ValueError, match=rf"{name}, line \d+: .*(unpacks to more than|expected)"):
        read(path)


def test_text_that_packs_well_is_read(tmp_path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"the same\n" * 100_000))
    assert len(read_table(path, "a").texts) == 100_000


@pytest.mark.parametrize(
    ("text", "message"),
    [(DEEP, "nested too deeply"), ("9" * 5000, "4300"), ("[1", "line 1: not JSON")],
)
def test_json(tmp_path, text, message):
    (tmp_path / "a.jsonl").write_text(f'{{"text": {text}}}\n')
    with pytest.raises(ValueError, match=f"a.jsonl.*{message}"):
        read_table(tmp_path / "a.jsonl", "text")
    (tmp_path / "a.json").write_text(f'{{"data": {text}}}')
    with pytest.raises(ValueError, match=f"a.json.*{message}"):
        read_squad(tmp_path / "a.json")
    (tmp_path / "a.csv").write_text(f'choices\n"{text}"\n')
    if text != DEEP:  # longer than CSV lets a cell be
        with pytest.raises(ValueError, match=f"a.csv, line 2: .*{message}"):
            [*RowReader(find_files(tmp_path / "a.csv"), LISTS, None)]
    (tmp_path / PLACE).parent.mkdir()
    (tmp_path / PLACE).write_text(f'{{"format": {text}}}')
    with pytest.raises(ValueError, match=f"contract.json.*{message}"):
        read_contract(tmp_path)


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_no_text(tmp_path, value):
    """Such as pandas writes for a missing cell; not the text "NaN"."""
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "a", "tags": ["b"]}}\n{{"text": {value}, "tags": [{value}]}}\n')
    for column, expected in (("text", "a string"), ("tags", "strings or numbers")):
        with pytest.raises(ValueError, match=f"a.jsonl, line 2: key '{column}': .*{expected}"):
            [*read_rows(path, [column], list_columns=["tags"])]
    with pytest.raises(ValueError, match="a.jsonl, line 2: 'text': expected a string or a number"):
        [*RowReader(find_files(path), TEXT, None)]


def test_a_key_twice(tmp_path):
    """Readers of JSON differ in which of the values they take."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a"}\n{"text": "b: c", "more": {"x": 1, "x": 2}}\n')
    with pytest.raises(ValueError, match="a.jsonl, line 2: several keys 'x' in one object"):
        read_table(path, "text")


def test_a_gzip_bomb_of_bad_rows(tmp_path, monkeypatch):
    """Neither the reader nor the search for its bad rows unpacks it."""
    monkeypatch.setattr(rows, "FREE_BYTES", 1000)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"text,label\n" + b"a,b\n" * 500_000))

    def read(path):
        return read_table(path, "text", "label")

    with pytest.raises(ValueError, match="a.csv.gz, line .*: the gzip file of .* unpacks to"):
        read_without_bad_rows(read, read, path, False)


def write_parquet(path, **columns):
    pytest.importorskip("pyarrow")
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="zstd")
    return path


def shared(*texts, rows=1000):
    """A column whose texts are stored once each; written as strings."""
    import pyarrow

    places = pyarrow.array([i % len(texts) for i in range(rows)], pyarrow.int32())
    return pyarrow.DictionaryArray.from_arrays(places, pyarrow.array(texts))


PARQUET_READERS = {
    "a table": lambda path: read_table(path, "text", "label"),
    "rows to answer": lambda path: [*RowReader(find_files(path), TEXT, None)],
    "all columns": lambda path: [*read_objects(path)],
    "pieces": lambda path: TableReader(Table(path), {"text": Cell()}).index(
        lambda columns: len(columns["text"])
    ),
    "bad rows": lambda path: read_without_bad_rows(
        lambda path: read_table(path, "text", "label"), None, path, False
    ),
}


@pytest.mark.parametrize("read", PARQUET_READERS.values(), ids=PARQUET_READERS)
@pytest.mark.parametrize("texts", [("x" * 5_000_000, "y"), ("x" * 5_000_000,)])
def test_parquet_bombs(tmp_path, read, texts):
    """2.5 and 5 GB in 900 bytes."""
    path = write_parquet(tmp_path / "a.parquet", text=shared(*texts), label=["a"] * 1000)
    assert path.stat().st_size < 1000
    with pytest.raises(ValueError, match=r"a.parquet, line \d+: the Parquet file of .* unpacks to"):
        read(path)


def test_parquet_bombs_of_other_shapes(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "FREE_BYTES", 1 << 20)
    path = tmp_path / "a.parquet"
    lists = [["x" * 10_000]] * 1000
    for name, columns in {
        "many columns": {f"c{i}": shared("x" * 10_000, "y") for i in range(100)},
        "lists": {"text": lists},
        "an empty list first": {"text": [[], *lists]},
        "one page": {"text": ["x" * 2_000_000]},
        "nulls": {"text": [None] * 200_000},
    }.items():
        write_parquet(path, **columns)
        try:
            read = [*read_objects(path)]
        except ValueError as error:
            assert re.search(r"a.parquet, line \d+: the Parquet file of", str(error))
        else:
            pytest.fail(f"{name}: {len(read)} rows")
    # Of many columns those that are asked for are read.
    write_parquet(path, text=["a"] * 1000, **{f"c{i}": shared("x" * 100_000) for i in range(100)})
    assert read_table(path, "text").texts == ["a"] * 1000


def test_a_long_text_in_parquet(tmp_path):
    path = write_parquet(
        tmp_path / "a.parquet", text=["a", "x" * (1 + (16 << 20)), "b"], label=["c", "d", "c"]
    )
    expected = r"a.parquet, line 2: column 'text': expected a text of at most 16,777,216 bytes"
    for name, read in PARQUET_READERS.items():
        if name != "bad rows":
            with pytest.raises(ValueError, match=expected):
                read(path)
    found, bad = PARQUET_READERS["bad rows"](path)
    assert found.texts == ["a", "b"] and [line for line, _ in bad] == [2]
    assert bad[0][1].startswith("column 'text': expected")


def test_json_at_every_depth(tmp_path):
    """What the parser still takes is shown in an error, or refused."""
    path = tmp_path / "a.jsonl"
    for depth in range(150, 1200, 7):
        path.write_text(f'{{"text": {"[" * depth}{"]" * depth}}}\n')
        with pytest.raises(ValueError, match="a.jsonl, line 1: "):
            read_table(path, "text")
    assert parse_json("[" * 100 + "]" * 100, path)


@pytest.mark.parametrize("row_id", ["NaN", "-Infinity", '"\\ud800"', '{"a": [1e999]}'])
def test_ids_that_could_not_be_written(tmp_path, row_id):
    """Found while the rows are checked, not in the middle of answering."""
    (tmp_path / "a.jsonl").write_text(f'{{"text": "a", "id": {row_id}}}\n')
    with pytest.raises(ValueError, match="a.jsonl, line 1: 'id': .* can't be written"):
        [*RowReader(find_files(tmp_path / "a.jsonl"), TEXT, None)]


@pytest.mark.parametrize(
    "content",
    ["[]", '{"format": 1}', '{"format": 1, "signatures": []}', '{"format": {"a": "b"}}', "\0"],
)
def test_contracts(tmp_path, content):
    (tmp_path / PLACE).parent.mkdir()
    (tmp_path / PLACE).write_text(content)
    with pytest.raises(ValueError, match="contract.json"):
        read_contract(tmp_path)


CALL = {"module": "os", "class_name": "system", "config": "true"}


@pytest.mark.parametrize(
    "fields",
    [
        {"file": "/etc/passwd"},
        {"file": "../c/shard-00000-of-00001.tfrecord"},
        {"file": 5},
        {"documents": 10**18},
        {"documents": -1},
        {"documents": "3"},
        {"tokens": 10**15},
        {"sentences": True},
    ],
)
def test_an_index_that_lies_about_a_shard(tmp_path, fields):
    write_corpus(tmp_path / "c")
    path = tmp_path / "c" / "index.json"
    shard = json.loads(path.read_text())["shards"][0]
    change(path, shards=[shard | fields])
    with pytest.raises(ValueError, match="index.json, shard 0: "):
        read_index(tmp_path / "c")


@pytest.mark.parametrize(
    "fields",
    [
        {"tokenizer": {"dtype": CALL}},
        {"tokenizer": {"vocabulary": "/etc/passwd"}},
        {"tokenizer": {"lowercase": CALL}},
        {"tokenizer": 5},
        {"vocabulary_size": "8"},
        {"vocabulary_size": 0},
    ],
)
def test_an_index_with_settings_that_are_none(tmp_path, fields):
    write_corpus(tmp_path / "c")
    change(tmp_path / "c" / "index.json", **fields)
    with pytest.raises(ValueError, match="index.json: "):
        read_index(tmp_path / "c")


def test_an_index_nested_without_end(tmp_path):
    write_corpus(tmp_path / "c")
    (tmp_path / "c" / "index.json").write_text(DEEP)
    with pytest.raises(ValueError, match="index.json is not an index"):
        read_index(tmp_path / "c")


def test_lengths_whose_sum_runs_over():
    """2^62 four times is 0 in 64 bits."""

    def integers(values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    features = {"tokens": integers([5]), "sentence_lengths": integers([2**62] * 4 + [1])}
    example = tf.train.Example(features=tf.train.Features(feature=features))
    with pytest.raises(tf.errors.InvalidArgumentError, match="more tokens than the document"):
        parse_documents(tf.constant([example.SerializeToString()]), 8)
