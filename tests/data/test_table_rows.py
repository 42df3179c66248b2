"""Tables read in pieces: every format and place gives the rows that were written, in any order."""

import csv
import gzip
import io
import json
import logging

import numpy as np
import pytest

from keras_bert.data.table_rows import (
    CLASS,
    LIST,
    NUMERIC,
    PIECE_ROWS,
    SEVERAL,
    Cell,
    Table,
    TableReader,
)

CELLS = {"text": Cell(), "label": Cell(CLASS)}
ROWS = [{"text": f"röw {i} \u2028 x", "label": "abc"[i % 3]} for i in range(2 * PIECE_ROWS + 77)]


def length(columns):
    return len(columns["text"])


def reader(source, cells=CELLS, **settings):
    return TableReader(Table(source, **settings), cells)


def rows_of(found, index, pieces=None):
    """The rows of pieces, by default all in order."""
    rows = []
    for piece in range(len(index.rows)) if pieces is None else pieces:
        columns = found.read(index, piece)
        assert len(columns["text"]) == index.examples[piece]
        rows += [
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        ]
    return rows


def as_csv(rows):
    file = io.StringIO()
    writer = csv.DictWriter(file, ["label", "other", "text"])
    writer.writeheader()
    # Line breaks and quotes inside of a field.
    writer.writerows({**row, "other": 'a "b",\n1'} for row in rows)
    return file.getvalue().encode()


def as_jsonl(rows):
    return "".join(json.dumps({"n": 1} | row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_tsv(rows):
    return ("text\tlabel\n" + "".join(f"{r['text']}\t{r['label']}\n" for r in rows)).encode()


def as_parquet(path, rows):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pylist(rows).append_column("n", pyarrow.array([1] * len(rows)))
    pyarrow.parquet.write_table(table, path, row_group_size=700)


def as_tfrecord(path, rows):
    import tensorflow as tf

    options = "GZIP" if path.suffix == ".gz" else None
    with tf.io.TFRecordWriter(str(path), options) as file:
        for row in rows:
            features = {
                name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode()]))
                for name, value in row.items()
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            file.write(example.SerializeToString())


NAMES = ["a.csv", "a.csv.gz", "a.jsonl", "a.jsonl.gz", "a.tsv", "a.parquet", "a.tfrecord"]
NAMES += ["a.tfrecord.gz", "a.tfrecord-00000-of-00001"]


def write(path, rows):
    if ".parquet" in path.name:
        return as_parquet(path, rows)
    if ".tfrecord" in path.name:
        return as_tfrecord(path, rows)
    make = {".csv": as_csv, ".tsv": as_tsv, ".jsonl": as_jsonl}["." + path.name.split(".")[1]]
    path.write_bytes(gzip.compress(make(rows)) if path.suffix == ".gz" else make(rows))


@pytest.mark.parametrize("name", NAMES)
def test_every_format_gives_its_rows_in_any_order_of_pieces(tmp_path, name):
    write(tmp_path / name, ROWS)
    found = reader(tmp_path / name)
    index = found.index(length)
    assert index.size == len(ROWS) and len(index.rows) >= 3
    assert rows_of(found, index) == ROWS
    # From the middle, backwards, and a piece again.
    order = [*range(len(index.rows))][::-1] + [1]
    starts = np.cumsum(index.examples) - index.examples
    for piece in order:
        first = starts[piece]
        assert rows_of(found, index, [piece]) == ROWS[first : first + index.examples[piece]]
    # A gzipped file and a row group are read on without beginning again.
    opened = {}
    read = [found.read(index, piece, opened) for piece in range(len(index.rows))]
    assert [text for columns in read for text in columns["text"]] == [r["text"] for r in ROWS]


def test_files_of_a_pattern_a_folder_and_a_list_are_one_table(tmp_path):
    for number, name in enumerate(["b.jsonl", "a.csv", "c.tsv"]):
        write(tmp_path / name, ROWS[number::3])
    (tmp_path / "readme.md").write_text("not a table")
    expected = [*ROWS[1::3], *ROWS[0::3], *ROWS[2::3]]  # by name
    listed = [tmp_path / name for name in ("a.csv", "b.jsonl", "c.tsv")]
    for source in (tmp_path, str(tmp_path / "*.*[vl]"), listed):
        found = reader(source)
        assert rows_of(found, found.index(length)) == expected
    with pytest.raises(ValueError, match="named twice"):
        Table([tmp_path / "a.csv", str(tmp_path / "a.csv")])
    for number, folder in enumerate(["p", "p-q"]):  # "-" is before "/"
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "x.csv", ROWS[number::2])
    found = reader(str(tmp_path / "p*" / "x.csv"))
    assert rows_of(found, found.index(length)) == [*ROWS[0::2], *ROWS[1::2]]
    with pytest.raises(FileNotFoundError, match="none.*is not there"):
        Table(str(tmp_path / "none*.csv"))
    with pytest.raises(ValueError, match="extension '.md'"):
        Table(tmp_path / "readme.md")


@pytest.mark.parametrize("name", ["data.csv", "data.jsonl.gz", "data.parquet", "data.tfrecord"])
def test_addresses_are_opened_by_gfile(tmp_path, name):
    import tensorflow as tf

    write(tmp_path / name, ROWS)
    address = f"ram://{tmp_path.name}/{name}"  # TensorFlow's file system in memory
    with tf.io.gfile.GFile(address, "wb") as file:
        file.write((tmp_path / name).read_bytes())
    found = reader(f"ram://{tmp_path.name}/data*")
    index = found.index(length)
    assert rows_of(found, index) == ROWS
    assert rows_of(found, index, [1]) == ROWS[index.examples[0] :][: index.examples[1]]
    with pytest.raises(FileNotFoundError, match="is not there"):
        Table("ram://nowhere/data.csv")


WRONG = {
    "data.jsonl": (
        b'{"text": "a", "label": "x"}\n{"text": "b"\n{"text": "c", "label": null}\n'
        b'\n{"text": "", "label": "x"}\n{"label": "x"}\n[1]\n\xff\n{"text": "d", "label": "y"}\n',
        {
            2: "line 2: not JSON",
            3: "line 3: column 'label': expected a label, got None",
            5: "line 5: column 'text': expected a text, got ''",
            6: "line 6: no key 'text'",
            7: "line 7: expected a JSON object",
            8: "line 8: byte 0xff",
        },
    ),
    "data.csv": (
        b'text,label\n"a\n1",x\nb\n"c" d,x\n \xff"c,x\n\xff,x\nd,\ne,y\n',
        {
            4: "line 4: 1 columns",
            5: "record at line 5: not valid CSV",
            6: "record at line 6: not UTF-8",
            7: "record at line 7: not UTF-8",
            8: "line 8: column 'label': expected a label, got ''",
        },
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rows_are_named_by_file_and_line_or_left_out_and_counted(tmp_path, name, caplog):
    content, messages = WRONG[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError) as error:
        reader(path).index(length)
    assert str(error.value).startswith(f"{path}, {messages[min(messages)]}")
    assert str(error.value).endswith("Pass skip_bad_rows=True to leave such rows out")
    found = reader(path, skip_bad_rows=True)
    with caplog.at_level(logging.WARNING, "keras_bert"):
        index = found.index(length)
    assert found.table.bad_rows == {str(path): [*messages]}
    assert f"{len(messages)} rows left out, lines {min(messages)}, " in caplog.text
    assert messages[min(messages)] in caplog.text
    rows = rows_of(found, index)
    assert [row["label"] for row in rows] == ["x", "y"]
    # Each message, by leaving out the lines in front.
    for line, message in messages.items():
        if name == "data.jsonl":
            lines = content.split(b"\n")
            path.write_bytes(b"\n" * (line - 1) + lines[line - 1] + b"\n")
            with pytest.raises(ValueError, match=message.replace("[", r"\[")):
                reader(path).index(length)


def test_rows_that_the_task_rejects_are_named_too(tmp_path):
    write(tmp_path / "a.csv.gz", ROWS)
    wrong = [0, 5, 998, 999, *range(2000, 2077)]  # at the ends of pieces, and a whole one

    def count(columns):
        for row, text in enumerate(columns["text"]):
            if int(text.split()[1]) in wrong:
                raise ValueError(f"text {text[:5]!r} in row {row} is wrong")
        return [len(columns["text"]), columns["label"].count("a")]

    # Each record has two lines.
    with pytest.raises(ValueError, match="a.csv.gz, line 2: text 'röw 0' is wrong"):
        reader(tmp_path / "a.csv.gz").index(count)
    kept = [row for i, row in enumerate(ROWS) if i not in wrong]
    write(tmp_path / "b.jsonl", ROWS[:1000])
    found = reader([tmp_path / "a.csv.gz", tmp_path / "b.jsonl"], skip_bad_rows=True)
    index = found.index(count)
    assert index.examples.tolist() == [996, 1000, 996]
    kept += kept[:996]
    assert rows_of(found, index) == kept
    opened = {}
    read = [found.read(index, piece, opened)["text"] for piece in range(3)]
    assert sum(read, []) == [row["text"] for row in kept]
    assert index.sums.tolist() == [sum(row["label"] == "a" for row in kept)]


def test_parquet_with_a_name_twice_or_bytes_that_are_no_text(tmp_path):
    import pyarrow.parquet

    path = tmp_path / "a.parquet"
    columns = [pyarrow.array([b"a", b"\xff", b"c"]), pyarrow.array(["x", "y", "z"])]
    for names in (["text", "text"], ["text", "label"]):
        pyarrow.parquet.write_table(pyarrow.Table.from_arrays(columns, names=names), path)
        if names == ["text", "text"]:
            with pytest.raises(ValueError, match="a.parquet: several columns 'text'"):
                reader(path).index(length)
    with pytest.raises(ValueError, match="a.parquet, line 2: not UTF-8: .* 0xff"):
        reader(path).index(length)
    found = reader(path, skip_bad_rows=True)
    assert [row["text"] for row in rows_of(found, found.index(length))] == ["a", "c"]


def test_an_unclosed_quote_is_an_error_even_if_bad_rows_are_left_out(tmp_path):
    (tmp_path / "a.csv").write_text('text,label\na,x\n"b,x\nc,x\n')
    with pytest.raises(ValueError, match="record at line 3: not valid CSV: unexpected end"):
        reader(tmp_path / "a.csv", skip_bad_rows=True).index(length)


def test_files_without_rows(tmp_path):
    for name, content in (("a.csv", "text,label\n"), ("a.jsonl", ""), ("b.csv", "")):
        (tmp_path / name).write_text(content)
        with pytest.raises(ValueError, match=f"{name}: no rows"):
            reader(tmp_path / name).index(length)
    (tmp_path / "c.jsonl").write_text("{}\n")
    with pytest.raises(ValueError, match="1 rows were left out: .*c.jsonl, line 1: no key 'text'"):
        reader(tmp_path / "c.jsonl", skip_bad_rows=True).index(length)


def test_a_file_that_changed_is_an_error(tmp_path):
    write(tmp_path / "a.jsonl", ROWS)
    found = reader(tmp_path / "a.jsonl")
    index = found.index(length)
    write(tmp_path / "a.jsonl", ROWS[:-9])
    with pytest.raises(ValueError, match="has changed since"):
        rows_of(found, index)


@pytest.mark.parametrize("cut", [5, 40])
def test_damaged_records(tmp_path, cut):
    write(tmp_path / "a.tfrecord", ROWS[:3])
    data = bytearray((tmp_path / "a.tfrecord").read_bytes())
    data[-cut] ^= 1
    (tmp_path / "a.tfrecord").write_bytes(data)
    with pytest.raises(ValueError, match="record 3: damaged"):
        reader(tmp_path / "a.tfrecord").index(length)


def test_columns_of_every_kind(tmp_path):
    cells = {
        "text": Cell(),
        "a": Cell(LIST),
        "b": Cell(SEVERAL),
        "c": Cell(NUMERIC),
        "d": Cell(LIST),
        "e": Cell(required=False),
    }
    (tmp_path / "a.csv").write_text('text,a,b,c,x,y\nt,"[1, [2]]","u, v",3,p,q\nt,[],,-4.5e1,p,q\n')
    lines = [
        {"text": 7, "a": [1, [2]], "b": ["u", "v"], "c": 3, "x": "p", "y": "q"},
        {"text": "7", "a": [], "b": [], "c": -45.0, "x": "p", "y": "q"},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name, text in (("a.csv", "t"), ("a.jsonl", "7")):
        found = reader(tmp_path / name, cells, d=["x", "y"])
        columns = found.read(found.index(length), 0)
        assert columns == {
            "text": [text, text],
            "a": [[1, [2]], []],
            "b": [["u", "v"], []],
            "c": [3, -45.0],
            "d": [["p", "q"], ["p", "q"]],
        }
    with pytest.raises(ValueError, match="star='x': expected columns for text, a, b, c, d, e"):
        reader(tmp_path / "a.csv", cells, star="x")
    with pytest.raises(ValueError, match="text=3: expected the name of a column"):
        Table(tmp_path / "a.csv", text=3)
    with pytest.raises(ValueError, match="no column 'z'.*columns are"):
        reader(tmp_path / "a.csv", cells, text="z").index(length)


def test_a_table_of_pyarrow_and_an_iterator():
    import pyarrow

    table = pyarrow.Table.from_pylist(ROWS)
    iterator = ({"text": row["text"].encode(), "label": np.str_(row["label"])} for row in ROWS)
    pairs = ((row["text"], row["label"]) for row in ROWS)
    for source in (table, iterator, pairs):
        found = reader(source)
        index = found.index(length)
        assert rows_of(found, index) == ROWS
        assert rows_of(found, index, [1]) == ROWS[PIECE_ROWS : 2 * PIECE_ROWS]
    with pytest.raises(ValueError, match="iterator, row 2: column 'text': expected a text"):
        reader(iter([ROWS[0], {"text": None, "label": "x"}])).index(length)
    with pytest.raises(TypeError, match="row 1 of the iterator: expected a dict"):
        Table(iter(["text"]))
    with pytest.raises(ValueError, match="Table: no column 'label'; the columns are"):
        reader(table.select(["text"])).index(length)


@pytest.mark.parametrize("library", ["pandas", "polars", "datasets"])
def test_tables_of_other_libraries(library):
    module = pytest.importorskip(library)
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    frame = (
        module.Dataset.from_dict(columns) if library == "datasets" else module.DataFrame(columns)
    )
    found = reader(frame)
    index = found.index(length)
    assert rows_of(found, index) == ROWS
    assert rows_of(found, index, [1]) == ROWS[PIECE_ROWS : 2 * PIECE_ROWS]


class Frame:
    """Has the methods of pandas, Polars or Hugging Face that are used, for where these are not."""

    def __init__(self, rows, kind):
        self._rows, self._kind, self.shape = rows, kind, (len(rows), 2)
        names = list(rows[0])
        if kind == "datasets":
            self.column_names = names
        else:
            self.columns = names
        if kind == "pandas":
            self.iloc = None

    def __len__(self):
        return len(self._rows)

    def _column(self, name):
        return np.array([row[name] for row in self._rows], object)

    def get_column(self, name):
        if self._kind != "polars":
            raise AttributeError(name)
        values = self._column(name).tolist()

        class Series:
            def slice(self, begin, size):
                self.values = values[begin : begin + size]
                return self

            def to_list(self):
                return self.values

        return Series()

    def __getitem__(self, key):
        if isinstance(key, str):
            values = self._column(key)

            class Series:
                iloc = values

            return Series()
        rows = self._rows[key]
        return {name: [row[name] for row in rows] for name in rows[0]}


class NAType:
    """As pandas' NA: a comparison with it is neither true nor false."""

    def __eq__(self, other):
        return self

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")


NaTType = type("NaTType", (), {})


@pytest.mark.parametrize("missing", [NAType, NaTType])
def test_what_pandas_has_for_a_missing_value_is_no_label(missing):
    rows = [{"text": "a", "label": "x"}, {"text": "b", "label": missing()}]
    with pytest.raises(ValueError, match="row 1: column 'label': expected a label, got None"):
        reader(Frame(rows, "pandas")).index(length)
    found = reader(Frame(rows, "pandas"), skip_bad_rows=True)
    assert rows_of(found, found.index(length)) == rows[:1]


def test_a_column_that_a_frame_has_twice_is_an_error():
    frame = Frame(ROWS, "pandas")
    frame.columns = ["text", "label", "label"]
    with pytest.raises(ValueError, match="Frame: 2 columns 'label'; the columns are "):
        reader(frame).index(length)


def test_tables_are_recognized_by_their_methods():
    for kind in ("pandas", "datasets"):
        frame = Frame(ROWS, kind)
        if kind == "datasets":
            frame.__class__ = type("Dataset", (Frame,), {"get_column": property()})
        found = reader(frame)
        assert rows_of(found, found.index(length)) == ROWS
