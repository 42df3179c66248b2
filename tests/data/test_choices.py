import csv
import gzip
import io
import json
from collections import Counter

import pytest

from keras_bert.data.choices import read_choices

HEADER = ["", "video-id", "fold-ind", "startphrase", "sent1", "sent2", "gold-source"]
HEADER += ["ending0", "ending1", "ending2", "ending3", "label"]
ROWS = [
    ["0", "v1", "3", "It rains. She", "It rains.", "She", "gold"]
    + ["runs, fast.", 'says "no".', "reads\na map.", "sings.", "3"],
    ["1", "v2", "4", "A man sits.", "A man sits.", "", "gen"] + ["He eats.", "b", "c", "d", "0"],
]


def write(path, rows, header=HEADER):
    text = io.StringIO()
    if ".jsonl" in path.name:
        for row in rows:
            row = dict(zip(header[3:], row[3:], strict=True))
            row["label"] = int(row["label"])
            text.write(json.dumps(row) + "\n")
    else:
        csv.writer(text).writerows([header, *rows])
    data = text.getvalue().encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["train.csv", "val.csv.gz", "sample.jsonl"])
def test_contexts_starts_endings_and_labels(tmp_path, name):
    examples = read_choices(write(tmp_path / name, ROWS))
    assert examples.contexts == ["It rains.", "A man sits."]
    assert examples.starts == ["She", ""]
    assert examples.endings == [
        ("runs, fast.", 'says "no".', "reads\na map.", "sings."),
        ("He eats.", "b", "c", "d"),
    ]
    assert examples.labels == [3, 0]
    assert examples.lines == ([1, 2] if "jsonl" in name else [2, 4])  # a line break in an ending
    assert examples.choices == [
        ["She runs, fast.", 'She says "no".', "She reads\na map.", "She sings."],
        ["He eats.", "b", "c", "d"],
    ]
    assert examples.head(1).labels == [3] and examples.head(1).choices == examples.choices[:1]


def test_a_test_file_has_no_labels(tmp_path):
    rows = [row[:-1] for row in ROWS]
    examples = read_choices(write(tmp_path / "test.csv", rows, HEADER[:-1]))
    assert examples.labels is None and len(examples.endings) == 2
    assert examples.head(1).labels is None
    assert read_choices(write(tmp_path / "test_labelled.csv", ROWS)).labels == [3, 0]
    with pytest.raises(ValueError, match="train.csv, line 1: no column 'label'"):
        read_choices(write(tmp_path / "train.csv", rows, HEADER[:-1]))


def changed(column, value):
    row = list(ROWS[1])
    row[HEADER.index(column)] = value
    return row


# labels are 0 to 3
@pytest.mark.parametrize("label", ["4", "-1", "", "2.0", "gold"])
def test_unknown_labels(tmp_path, label):
    path = write(tmp_path / "a.csv", [ROWS[0], changed("label", label)])
    with pytest.raises(ValueError, match=f"a.csv, line 4: label '{label}': expected one of .*'3'"):
        read_choices(path)


@pytest.mark.parametrize("column", ["ending3", "ending0", "sent1"])
def test_empty_cells(tmp_path, column):
    path = write(tmp_path / "a.csv", [ROWS[0], changed(column, " ")])
    with pytest.raises(ValueError, match=rf"a.csv, line 4: \['{column}'\] empty"):
        read_choices(path)


def test_three_endings(tmp_path):
    row = ROWS[1][:10] + ROWS[1][11:]
    with pytest.raises(ValueError, match="a.csv, line 4: 11 columns .* expected 12 columns"):
        read_choices(write(tmp_path / "a.csv", [ROWS[0], row]))
    three = [name for name in HEADER if name != "ending3"]
    with pytest.raises(ValueError, match="b.csv, line 1: no column 'ending3'"):
        read_choices(write(tmp_path / "b.csv", [row], three))
    with pytest.raises(ValueError, match="c.jsonl, line 1: no key 'ending3'"):
        read_choices(write(tmp_path / "c.jsonl", [row], three))


def test_full_files_of_swag_have_other_columns(tmp_path):
    header = ["video-id", "fold-ind", "startphrase", "sent1", "sent2", "gold-ending"]
    with pytest.raises(ValueError, match="train_full.csv, line 1: no column 'ending0'; .*'gold-en"):
        read_choices(write(tmp_path / "train_full.csv", [["a"] * 6], header))


def test_files_without_examples(tmp_path):
    with pytest.raises(ValueError, match="a.csv: no examples"):
        read_choices(write(tmp_path / "a.csv", []))


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("swag_train_91.csv", {0: 20, 1: 19, 2: 30, 3: 22}),
        ("swag_hf_sample.jsonl", None),
        ("hellaswag_val_3000_swag_columns.csv.gz", {0: 758, 1: 715, 2: 797, 3: 730}),
    ],
)
def test_public_files(shared_dir, name, labels):
    examples = read_choices(shared_dir / "data" / "swag" / name)
    counts = Counter(examples.labels)
    assert counts == labels if labels else sum(counts.values()) == 10
    hellaswag = name.startswith("hella")
    assert all((start == "") == hellaswag for start in examples.starts)
    assert all(choice.strip() == choice for row in examples.choices for choice in row)
