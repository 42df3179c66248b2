import gzip
from collections import Counter

import pytest

from keras_bert.data.relations import RELATIONS, Span, read_relation_key, read_relations

TRAIN = (
    '1\t"The <e1>key</e1> was put into a <e2>steel drawer</e2>."\n'
    "Entity-Destination(e1,e2)\nComment: not a container.\n\n"
    '7\t"<e1>Gläser</e1> say "no"  to <e2>wine</e2>"\nOther\nComment:\n\n'
)


def write(path, content, end="\r\n"):
    data = content.replace("\n", end).encode("utf-8")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["TRAIN_FILE.TXT", "TRAIN_FILE.TXT.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blocks_with_relations(tmp_path, name, end):
    examples = read_relations(write(tmp_path / name, TRAIN, end))
    assert examples.ids == [1, 7] and examples.lines == [1, 5]
    assert examples.texts == [
        "The key was put into a steel drawer.",
        'Gläser say "no"  to wine',
    ]
    assert examples.entities == [(Span(4, 7), Span(23, 35)), (Span(0, 6), Span(20, 24))]
    for text, (e1, e2), words in zip(
        examples.texts,
        examples.entities,
        [("key", "steel drawer"), ("Gläser", "wine")],
        strict=True,
    ):
        assert (text[e1.start : e1.end], text[e2.start : e2.end]) == words
    assert examples.marked_texts[1] == '<e1>Gläser</e1> say "no"  to <e2>wine</e2>'
    assert examples.labels == ["Entity-Destination(e1,e2)", "Other"]
    assert examples.comments == ["not a container.", ""]
    assert examples.head(1).ids == [1] and examples.head(None) == examples


def test_the_test_file_has_sentences_alone(tmp_path):
    lines = [line for line in TRAIN.splitlines() if line[:1].isdigit()]
    examples = read_relations(write(tmp_path / "TEST_FILE.TXT", "\n".join(lines)))
    assert examples.ids == [1, 7] and examples.labels is None and examples.lines == [1, 2]
    assert examples.head(1).labels is None


def test_comments_may_be_missing(tmp_path):
    content = "\n".join(line for line in TRAIN.splitlines() if "Comment" not in line)
    assert read_relations(write(tmp_path / "a", content)).labels[1] == "Other"


GOOD = '1\t"<e1>a</e1> <e2>b</e2>"\nOther\nComment:\n\n'
ERRORS = {
    "number twice": (GOOD + GOOD, "line 5: a second sentence with the number 1"),
    "no number": (GOOD + '"<e1>a</e1> <e2>b</e2>"\n', "line 5: expected a number, a tab and a"),
    "space for a tab": ('1 "<e1>a</e1> <e2>b</e2>"\n', "line 1: expected a number, a tab"),
    "no quotation marks": ("1\t<e1>a</e1> <e2>b</e2>\n", "line 1: expected a sentence in quot"),
    "no e2": ('1\t"<e1>a</e1> b"\n', r"line 1: expected the markers .*got \['<e1>', '</e1>'\]"),
    "e2 first": ('1\t"<e2>a</e2> <e1>b</e1>"\n', "line 1: expected the markers"),
    "e1 twice": ('1\t"<e1>a</e1> <e1>b</e1> <e2>c</e2>"\n', "line 1: expected the markers"),
    "nested": ('1\t"<e1>a <e2>b</e2></e1>"\n', "line 1: expected the markers"),
    "empty entity": ('1\t"<e1></e1> <e2>b</e2>"\n', "line 1: an entity without text"),
    "unknown relation": (
        GOOD.replace("Other", "Cause-Effect"),
        r"line 2: relation 'Cause-Effect': expected one of \['Cause-Effect\(e1,e2\)'",
    ),
    "no relation": (
        '1\t"<e1>a</e1> <e2>b</e2>"\nComment:\n',
        "line 2: relation 'Comment:': expected",
    ),
    "no comment": (GOOD.replace("Comment:", "Remark"), "line 3: expected 'Comment: ...'"),
    "more after the comment": (GOOD.replace("Comment:", "Comment:\nx"), "line 4: expected a num"),
    "one without relation": (GOOD + '2\t"<e1>a</e1> <e2>b</e2>"\n', "line 5: a sentence without"),
    "empty": ("\n", "no sentences"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_file_line_and_what_came(tmp_path, case):
    content, message = ERRORS[case]
    with pytest.raises(ValueError, match=f"FILE.TXT.*{message}"):
        read_relations(write(tmp_path / "FILE.TXT", content))


def test_keys_with_and_without_directions(tmp_path):
    path = write(tmp_path / "KEY.TXT", "8001\tMessage-Topic(e1,e2)\n8002\tOther\n")
    assert read_relation_key(path) == {8001: "Message-Topic(e1,e2)", 8002: "Other"}
    path = write(tmp_path / "KEY.TXT", "8001\tMessage-Topic\n")
    assert read_relation_key(path) == {8001: "Message-Topic"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\tOther\n1\tOther\n", "line 2: a second relation for the number 1"),
        ("1\tother\n", "line 1: relation 'other': expected one of"),
        ("1 Other\n", "line 1: expected a number, a tab and a relation, got '1 Other'"),
        ("", "no relations"),
    ],
)
def test_errors_of_keys(tmp_path, content, message):
    with pytest.raises(ValueError, match=f"KEY.TXT.*{message}"):
        read_relation_key(write(tmp_path / "KEY.TXT", content))


def test_nineteen_relations():
    assert len(set(RELATIONS)) == 19 and RELATIONS[-1] == "Other"


@pytest.mark.parametrize(
    ("name", "first", "count", "other"),
    [("TRAIN_FILE", 1, 8_000, 1_410), ("TEST_FILE_FULL", 8_001, 2_717, 454)],
)
def test_public_files(shared_dir, name, first, count, other):
    folder = shared_dir / "data" / "relation" / "semeval2010_task8"
    examples = read_relations(folder / f"{name}.TXT.gz")
    assert examples.ids == list(range(first, first + count))
    counts = Counter(examples.labels)
    assert counts["Other"] == other and len(counts) == 19
    for text, entities, marked in zip(
        examples.texts, examples.entities, examples.marked_texts, strict=True
    ):
        for name, (start, end) in zip(("e1", "e2"), entities, strict=True):
            assert f"<{name}>{text[start:end]}</{name}>" in marked


def test_public_key_agrees_with_the_test_file(shared_dir):
    folder = shared_dir / "data" / "relation" / "semeval2010_task8"
    key = read_relation_key(folder / "TEST_FILE_KEY.TXT")  # this one has no directions
    examples = read_relations(folder / "TEST_FILE_FULL.TXT.gz")
    labels = dict(zip(examples.ids, examples.labels, strict=True))
    assert key == {number: label.split("(")[0] for number, label in labels.items()}
