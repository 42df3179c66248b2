"""Which columns are chosen for texts and labels, and what is said where none fits."""

import json

import pytest

from keras_bert.data import hold_out, read_table
from keras_bert.data.table_rows import FilePart
from keras_bert_cli.columns import find_columns
from keras_bert_cli.kinds import KINDS, Source

REVIEWS = [("1", "A lovely film about rain.", "5"), ("2", "Not my cup of tea at all.", "1")] * 4


def write(path, header, rows):
    lines = [",".join(header), *(",".join(f'"{cell}"' for cell in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("header", "rows", "options", "texts", "labels"),
    [
        (["id", "Review", "Stars"], REVIEWS, {}, ("Review",), ("Stars",)),
        (["n", "what they said", "kind"], REVIEWS, {}, ("what they said",), ("kind",)),
        (["n", "what they said", "kind"], REVIEWS, {"label_kind": "number"},
         ("what they said",), ("kind",)),
        (["n", "review", "stars"], REVIEWS, {"labels": ["n"]}, ("review",), ("n",)),
        (["n", "review", "stars"], REVIEWS, {"label_kind": None}, ("review",), ()),
        (["premise", "hypothesis", "label"], [("It rains now", "It is wet", "yes")] * 4,
         {"pairs": None}, ("premise", "hypothesis"), ("label",)),
        (["sentence1", "sentence2", "score"], [("It rains", "It is wet", "4.5")] * 4,
         {"pairs": True, "label_kind": "optional"}, ("sentence1", "sentence2"), ("score",)),
        (["a", "b"], [("It rains", "It is wet"), ("It snows", "It is cold")],
         {"pairs": True, "label_kind": "optional"}, ("a", "b"), ()),
        (["text", "red", "blue"], [("a red sky", "1", "0"), ("both", "1", "1")],
         {"label_kind": "several"}, ("text",), ("red", "blue")),
    ],
)  # fmt: skip
def test_columns_are_found(header, rows, options, texts, labels, tmp_path):
    found = find_columns(write(tmp_path / "a.csv", header, rows), **options)
    assert (found.texts, found.labels) == (texts, labels)
    assert len(found.guesses) == (not options.get("labels") and bool(labels)) + 1


@pytest.mark.parametrize(
    ("header", "options", "message"),
    [
        (["n", "review", "stars"], {"labels": ["star"]}, "line 1: no column 'star'; the columns"),
        (["n", "x", "x"], {"texts": ["x"]}, "line 1: several columns 'x'"),
        (["n", "review", "remarks"], {}, "no column looks like labels"),
    ],
)
def test_columns_that_are_missing_are_named(header, options, message, tmp_path):
    rows = [(str(i), f"text number {i}", f"remark {i}") for i in range(8)]
    with pytest.raises(ValueError, match=message) as caught:
        find_columns(write(tmp_path / "a.csv", header, rows), **options)
    assert str(tmp_path / "a.csv") in str(caught.value)
    assert str(header) in str(caught.value)


GOOD = {"n": 1, "said": "A lovely film about rain.", "kind": "a", "score": 4, "tags": ["x"]}


@pytest.mark.parametrize(
    ("kind", "columns", "bad", "message"),
    [
        ("classify", ("said", "kind"), {"kind": None}, "line 7: key 'kind': expected a string"),
        ("classify", ("said", "kind"), {"said": ["b"]}, "line 7: key 'said': expected a string"),
        ("regress", ("said", "score"), {"score": "n/a"}, "line 7: a label that is not a number"),
        ("multi-label", ("said", "tags"), {"tags": [{}]}, "line 7: key 'tags': expected strings"),
    ],
)
def test_a_column_that_one_row_lacks_is_found_and_the_row_named(
    kind, columns, bad, message, tmp_path
):
    rows = [GOOD | {"n": i, "kind": "ab"[i % 2], "score": i % 3, "tags": ["xy"[i % 2]]}
            for i in range(40)]  # fmt: skip
    rows[6] |= bad
    keys = {*columns, "n"} if kind == "classify" else {*columns}
    rows = [{k: v for k, v in row.items() if k in keys} for row in rows]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match=f"a.jsonl, {message}"):
        KINDS[kind].read(Source(path))
    del rows[6][columns[list(bad) == [columns[1]]]]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match="a.jsonl, line 7: no key"):
        KINDS[kind].read(Source(path))
    table = KINDS[kind].read(Source(path, skip_bad_rows=True))
    assert table.columns[:2] == ((columns[0],), (columns[1],)) and len(table) == 39


def test_a_blank_cell_hides_no_column(tmp_path):
    rows = [(f"text number {i}", str(i % 5)) for i in range(20)]
    rows[3] = ("text", "")
    path = write(tmp_path / "a.csv", ["said", "how much"], rows)
    assert find_columns(path, label_kind="number")[:2] == (("said",), ("how much",))
    with pytest.raises(ValueError, match="a.csv, line 5: no label in 1 of 20 rows"):
        KINDS["regress"].read(Source(path))


def test_columns_may_be_separated_by_semicolons(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('id;review;stars\n1;"Rain, ;rain";5\n', "utf-8")
    found = find_columns(path)
    assert (found.texts, found.labels) == (("review",), ("stars",))
    assert found.guesses[0] == "columns are separated by ';'"
    assert read_table(path, "review", "stars").texts == ["Rain, ;rain"]
    part = FilePart(path, None)
    assert [*part.cells(["stars"], part.begin(), None)] == [(2, ["5"])]


def test_another_encoding_is_named_before_columns_are_guessed(tmp_path):
    path = tmp_path / "a.csv"
    content = "id,review,stars\n1,Fine,5\n2,A fine café,4\n"
    path.write_text(content, "latin-1")
    with pytest.raises(ValueError, match="a.csv, line 3: byte 0xe9 .* as CSV UTF-8"):
        find_columns(path)
    path.write_text(content, "utf-16")
    with pytest.raises(ValueError, match="line 1: .* it is UTF-16"):
        find_columns(path)


def test_held_out_rows_have_the_distribution_and_none_of_the_texts():
    labels = ["rare"] * 30 + ["often"] * 270
    groups = [i // 3 for i in range(300)]  # every text three times
    kept, held = hold_out(labels, groups, 0.1)
    assert sorted([*kept, *held]) == list(range(300))
    assert not {groups[i] for i in kept} & {groups[i] for i in held}
    assert 27 <= len(held) <= 33 and [labels[i] for i in held].count("rare") == 3
    again = hold_out(labels, groups, 0.1)
    other = hold_out(labels, groups, 0.1, seed=1)
    assert again[1].tolist() == held.tolist() != other[1].tolist()


@pytest.mark.parametrize(
    ("labels", "groups", "share", "message"),
    [
        ([0] * 4, [0] * 4, 0.5, "expected 2 different texts or more, got 1"),
        ([0] * 4, range(4), 0.0, "share=0.0: expected a number above 0"),
        ([0] * 4, range(3), 0.1, "4 labels and 3 groups"),
    ],
)
def test_rows_that_cannot_be_held_out(labels, groups, share, message):
    with pytest.raises(ValueError, match=message):
        hold_out(labels, list(groups), share)


def test_classes_with_fewer_rows_than_folds_are_held_out_too():
    kept, held = hold_out(["a", "b", "c", "d"], [1, 2, 3, 4], 0.25)
    assert (len(kept), len(held)) == (3, 1)
