import gzip
import re

import pytest

from keras_bert.data.tables import Examples, read_table


def write(path, content):
    data = content if isinstance(content, bytes) else content.encode("utf-8")
    if path.suffix == ".gz":
        data = gzip.compress(data)
    path.write_bytes(data)
    return path


TSV = 'text\tlabel\n"a\t1\nb "c" \t0\n\nx\u2028y\t1\n'


@pytest.mark.parametrize("name", ["a.tsv", "a.txt", "a.tsv.gz"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_tsv_keeps_every_row_and_every_quote(tmp_path, name, bom, end):
    path = write(tmp_path / name, bom + TSV.replace("\n", end))
    examples = read_table(path, "text", "label", label_names=["0", "1"])
    assert examples == (['"a', 'b "c" ', "x\u2028y"], [1, 0, 1], [2, 3, 5])
    assert isinstance(examples, Examples)


def test_no_final_line_feed(tmp_path):
    path = write(tmp_path / "a.tsv", "text\tlabel\na\t1\nb\t0")
    assert read_table(path, "text", "label").labels == ["1", "0"]


def test_csv_honours_quotes(tmp_path):
    path = write(tmp_path / "a.csv", 'label,text\npos,"a, ""b""\nc"\n\nneg,d\n')
    assert read_table(path, "text", "label") == (['a, "b"\nc', "d"], ["pos", "neg"], [2, 5])


def test_row_of_empty_cells_is_a_row(tmp_path):
    path = write(tmp_path / "a.csv", "a,b\n,\nc,d\n")
    assert read_table(path, ["a", "b"]).texts == (["", "c"], ["", "d"])
    path = write(tmp_path / "a.tsv", "a\tb\n\t\nc\td\n")
    assert read_table(path, ["a", "b"]).texts == (["", "c"], ["", "d"])


def test_pairs_without_labels_by_index(tmp_path):
    path = write(tmp_path / "a.tsv", "a\tb\tc\nd\te\tf\n")
    assert read_table(path, [2, 0], header=False) == ((["c", "f"], ["a", "d"]), None, [1, 2])


def test_names_for_a_file_without_header(tmp_path):
    path = write(tmp_path / "a.dat", "a|0\nb|1\n")
    examples = read_table(
        path, "text", "label", header=False, columns=["text", "label"], delimiter="|"
    )
    assert examples.texts == ["a", "b"] and examples.labels == ["0", "1"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_json_lines(tmp_path, name):
    path = write(tmp_path / name, '{"text": "a\\tb", "y": 1}\n\n{"y": "0", "text": "ü"}\n')
    examples = read_table(path, "text", "y", label_names=["0", "1"])
    assert examples == (["a\tb", "ü"], [1, 0], [1, 3])


def test_numbers(tmp_path):
    path = write(tmp_path / "a.tsv", "text\ty\na\t1\nb\t-2.5e-1\nc\t .5\nd\t+3.\n")
    examples = read_table(path, "text", "y", label_kind="number")
    assert examples.labels == [1.0, -0.25, 0.5, 3.0]
    assert all(isinstance(label, float) for label in examples.labels)
    path = write(tmp_path / "a.jsonl", '{"text": "a", "y": 2}\n{"text": "b", "y": "0.1"}\n')
    assert read_table(path, "text", "y", label_kind="number").labels == [2.0, 0.1]


@pytest.mark.parametrize("label", ["", "nan", "-inf", "1e999", "1_0", "3,5", "١", "high"])
def test_labels_that_are_no_numbers(tmp_path, label):
    path = write(tmp_path / "a.tsv", f"text\ty\na\t1\nb\t{label}\n")
    with pytest.raises(
        ValueError, match=f"line 3: label '{label}' in column 'y': expected a finite"
    ):
        read_table(path, "text", "y", label_kind="number")


def test_several_labels_in_a_column(tmp_path):
    path = write(tmp_path / "a.tsv", "text\ty\na\tred, blue\nb\t\nc\tblue\n")
    named = read_table(path, "text", "y", label_kind="several", label_names=["blue", "red"])
    assert named.labels == [[1, 1], [0, 0], [1, 0]] and named.lines == [2, 3, 4]
    assert named.head(2).labels == [[1, 1], [0, 0]]
    examples = read_table(path, "text", "y", label_kind="several")
    assert examples.labels == [["red", "blue"], [], ["blue"]]
    rows = '{"t": "a", "y": ["red", "blue"]}\n{"t": "b", "y": []}\n{"t": "c", "y": "blue"}\n'
    path = write(tmp_path / "a.jsonl", rows)
    assert read_table(path, "t", "y", label_kind="several").labels == examples.labels
    path = write(tmp_path / "b.jsonl", '{"t": "a", "y": [3, 5]}\n')
    names = ["5", "4", "3"]
    assert read_table(path, "t", "y", label_kind="several", label_names=names).labels == [[1, 0, 1]]
    path = write(tmp_path / "b.csv", "text,y\na,1|3\n")
    examples = read_table(path, "text", "y", label_kind="several", label_separator="|")
    assert examples.labels == [["1", "3"]]


def test_one_column_a_label(tmp_path):
    path = write(tmp_path / "a.csv", "id,text,rude,loud,long\n7,a,0,0,1\n8,b,0,0,0\n9,c,1,0,1\n")
    columns = ["long", "rude"]
    assert read_table(path, "text", columns, label_kind="several").labels == [
        [1, 0],
        [0, 0],
        [1, 1],
    ]
    assert read_table(path, "text", ["rude"], label_kind="several").labels == [[0], [0], [1]]


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("text\ty\na\tred,pink\n", {"label_names": ["red"]}, r"line 2: label 'pink' .*\['red'\]"),
        (
            "text\ty\na\tred,red\n",
            {},
            r"line 2: labels \['red', 'red'\] .*: expected different labels",
        ),
        (
            "text\ty\tz\na\t1\t2\n",
            {"label_column": ["y", "z"]},
            "line 2: '2' .* column 'z': expected '0' or '1'",
        ),
        (
            "text\ty\na\t\n",
            {"label_column": ["y"]},
            "line 2: '' in the label column 'y': expected '0' or '1'",
        ),
    ],
)
def test_errors_of_several_labels(tmp_path, content, arguments, message):
    path = write(tmp_path / "a.tsv", content)
    with pytest.raises(ValueError, match=f"a.tsv, {message}"):
        read_table(path, "text", **{"label_column": "y", "label_kind": "several", **arguments})


def test_a_list_is_one_label_nowhere(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"t": "a", "y": ["red"]}\n')
    with pytest.raises(ValueError, match="line 1: key 'y': expected a string or a number, got"):
        read_table(path, "t", "y")
    path = write(tmp_path / "b.jsonl", '{"t": "a", "y": ["red", null]}\n')
    with pytest.raises(ValueError, match="line 1: key 'y': expected strings or numbers, got"):
        read_table(path, "t", "y", label_kind="several")


def test_rows_left_out_are_counted(tmp_path, caplog):
    path = write(tmp_path / "a.tsv", "text\ty\na\t1\nb\t-\nc\nd\t?\ne\t0\n")
    arguments = {"label_names": ["0", "1"], "skip_labels": {"-", "?"}, "skip_broken_rows": True}
    examples = read_table(path, "text", "y", **arguments)
    assert examples == (["a", "e"], [1, 0], [2, 6])
    broken, skipped = (record.getMessage() for record in caplog.records)
    assert broken == f"{path}: 1 row skipped, with more or fewer columns than the table: line 4"
    assert skipped == f"{path}: 2 rows skipped, with a label of ['-', '?']: lines 3, 5"
    for skip_labels, message in (("?", "line 3: label '-'"), ((), "line 3: label '-'")):
        with pytest.raises(ValueError, match=message):
            read_table(path, "text", "y", **arguments | {"skip_labels": skip_labels})
    path = write(tmp_path / "b.tsv", "text\ty\nb\t-\nc\n")
    with pytest.raises(ValueError, match="b.tsv: no examples; 2 rows were skipped"):
        read_table(path, "text", "y", **arguments)


ERRORS = {
    "missing column": ("a.tsv", "txt\tlabel\na\t1\n", r"line 1: no column 'text'.*\['txt', "),
    "column twice": ("a.tsv", "text\ttext\tlabel\na\tb\t1\n", "line 1: several columns 'text'"),
    "short row": ("a.tsv", "text\tlabel\na\t1\nb\n", r"line 3: 1 columns \['b'\].*expected 2"),
    "long row": ("a.tsv", "text\tlabel\na\tb\t1\n", "line 2: 3 columns .*expected 2"),
    "wrong label": ("a.tsv", "text\tlabel\na\t1\n\nb\t2\n", r"line 4: label '2' .*\['0', '1'\]"),
    "not UTF-8": ("a.tsv", b"text\tlabel\na\t1\nb\xe9\t0\n", "line 3: byte 0xe9 at position 1"),
    "UTF-16": ("a.tsv", "text\tlabel\n".encode("utf-16"), "line 1: byte 0xff at position 0"),
    "empty": ("a.tsv", "", "no examples"),
    "header only": ("a.csv", "text,label\n", "no examples"),
    "empty JSON lines": ("a.jsonl", "\n", "no examples"),
    "unknown ending": ("a.dat", "text\tlabel\na\t1\n", "extension '.dat': expected .tsv"),
    "unclosed quote": ("a.csv", 'text,label\n"a,1\nb,0\n', "record at line 2: not valid CSV"),
    "not UTF-8 in CSV": ("a.csv", b"text,label\n\xff,1\n", "line 2: byte 0xff"),
    "not JSON": ("a.jsonl", '{"text": "a", "label": 1}\n{"text"\n', "line 2: not JSON"),
    "JSON list": ("a.jsonl", '["a", 1]\n', "line 1: expected a JSON object"),
    "missing key": ("a.jsonl", '{"text": "a"}\n', r"line 1: no key 'label'.*\['text'\]"),
    "null value": ("a.jsonl", '{"text": null, "label": 1}\n', "line 1: key 'text': .* got None"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_file_line_and_what_came(tmp_path, case):
    name, content, message = ERRORS[case]
    path = write(tmp_path / name, content)
    with pytest.raises(ValueError, match=re.escape(str(path)) + ".*" + message):
        read_table(path, "text", "label", label_names=["0", "1"])


def test_index_beyond_the_columns(tmp_path):
    path = write(tmp_path / "a.tsv", "text\tlabel\na\t1\n")
    with pytest.raises(ValueError, match="line 1: no column 2: expected 0 to 1"):
        read_table(path, 2)


def test_broken_gzip(tmp_path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"text\n" + bytes(range(32, 127)) * 9)[:-20])
    with pytest.raises(ValueError, match="damaged gzip file"):
        read_table(path, "text")
    path.write_bytes(b"text\nplain\n")
    with pytest.raises(ValueError, match="damaged gzip file"):
        read_table(path, "text")


def test_arguments_that_do_not_fit(tmp_path):
    path = write(tmp_path / "a.tsv", "text\tlabel\na\t1\n")
    with pytest.raises(ValueError, match="1 or 2 columns"):
        read_table(path, [0, 1, 0])
    with pytest.raises(ValueError, match="label_names: expected a label_column"):
        read_table(path, "text", label_names=["0"])
    with pytest.raises(ValueError, match="label_kind='float': expected"):
        read_table(path, "text", "label", label_kind="float")
    with pytest.raises(ValueError, match="expected 'several' for 2 columns"):
        read_table(path, 0, [0, 1])
    for kind, column in (("number", "label"), ("several", ["label"])):
        with pytest.raises(ValueError, match=r"label_names \['0'\] do not go with"):
            read_table(path, "text", column, label_kind=kind, label_names=["0"])
    with pytest.raises(ValueError, match="expected different names"):
        read_table(path, "text", "label", label_names=["1", "1"])
    with pytest.raises(ValueError, match="columns=None: expected all column names"):
        read_table(path, "text", header=False)
    with pytest.raises(ValueError, match="columns: expected None with header=True"):
        read_table(path, "text", columns=["text", "label"])
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "b.tsv", "text")
