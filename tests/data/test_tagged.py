import gzip
import json
import logging
from collections import Counter
from pathlib import Path

import pytest

from keras_bert.data.tagged import (
    TaggedSentences,
    annotated_texts,
    read_entities,
    read_tagged,
    tag_names,
)

CONLL = (
    "-DOCSTART- -X- O O\n\n"
    "Ada NNP I-NP I-PER\nmet VBD I-VP O\nGrace NNP I-NP I-PER\nHopper NNP I-NP I-PER\n"
    "Yale NNP I-NP B-PER\n\n"
    "Bonn NNP I-NP I-LOC\nRome NNP I-NP B-LOC\n\n\n"
    "-DOCSTART- -X- -X- O\n\n"
    "Unilever NNP I-NP I-ORG\nAsia NNP I-NP I-LOC\n"
)


def write(path, content):
    data = content if isinstance(content, bytes) else content.encode("utf-8")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["eng.testa", "eng.testa.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_four_columns_in_iob1_with_documents(tmp_path, name, end):
    path = write(tmp_path / name, CONLL.replace("\n", end))
    sentences = read_tagged(path, scheme="iob1")
    assert sentences == TaggedSentences(
        words=[["Ada", "met", "Grace", "Hopper", "Yale"], ["Bonn", "Rome"], ["Unilever", "Asia"]],
        tags=[["B-PER", "O", "B-PER", "I-PER", "B-PER"], ["B-LOC", "B-LOC"], ["B-ORG", "B-LOC"]],
        documents=[0, 0, 1],
        lines=[3, 9, 15],
    )
    assert sentences.head(2).documents == [0, 0] and sentences.head(None) == sentences


def test_iob1_becomes_iob2(tmp_path):
    tags = ["I-PER", "I-PER", "O", "I-LOC", "B-LOC"]
    path = write(tmp_path / "a", "".join(f"w {tag}\n" for tag in tags))
    assert read_tagged(path, scheme="iob1").tags == [["B-PER", "I-PER", "O", "B-LOC", "B-LOC"]]
    with pytest.raises(ValueError, match=r"a, line 1, word 'w': tag 'I-PER' after 'O' starts an"):
        read_tagged(path)


def test_iob2_stays_iob2_under_either_scheme(tmp_path):
    tags = ["B-PER", "I-PER", "B-PER", "O", "B-LOC", "B-ORG", "I-ORG"]
    path = write(tmp_path / "a", "".join(f"w\t{tag}\n" for tag in tags))
    assert read_tagged(path).tags == read_tagged(path, scheme="iob1").tags == [tags]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a B-PER\nb I-LOC\n", "line 2, word 'b': tag 'I-LOC' after 'B-PER' .*scheme='iob1'"),
        ("a B-PER\n\nb I-PER\n", "line 3, word 'b': tag 'I-PER' after 'O'"),  # a new sentence
        ("a B-PER\n-DOCSTART- O\nb I-PER\n", "line 3, word 'b': tag 'I-PER' after 'O'"),
    ],
)
def test_an_entity_without_beginning(tmp_path, content, message):
    path = write(tmp_path / "a", content)
    with pytest.raises(ValueError, match=f"a, {message}"):
        read_tagged(path)
    assert all(tags[0][0] == "B" for tags in read_tagged(path, scheme="iob1").tags)


@pytest.mark.parametrize("tag", ["S-PER", "o", "B", "B-", "-PER", "NN", "tag"])
def test_tags_of_no_scheme(tmp_path, tag):
    path = write(tmp_path / "a", f"a O\nb {tag}\n")
    for scheme in ("iob1", "iob2"):
        with pytest.raises(ValueError, match=f"line 2, word 'b': tag '{tag}': expected O, B-TYPE"):
            read_tagged(path, scheme=scheme)
    assert read_tagged(path, scheme=None).tags == [["O", tag]]


def test_choice_of_columns(tmp_path):
    path = write(tmp_path / "a", "1 Ada NNP O\n2 slept VBD O\n")
    sentences = read_tagged(path, word_column=1, tag_column=-2, scheme=None)
    assert sentences.words == [["Ada", "slept"]] and sentences.tags == [["NNP", "VBD"]]
    for column, name in ((4, "word_column"), (-5, "word_column"), (4, "tag_column")):
        with pytest.raises(ValueError, match=rf"line 1: no column {column} \({name}\).* 4 columns"):
            read_tagged(path, **{name: column})


def test_tabs_divide_words_with_spaces_in_them(tmp_path):
    path = write(tmp_path / "a", "New York\tB-LOC\n3 000 \tO\n")
    assert read_tagged(path).words == [["New York", "3 000"]]


def test_one_character_a_line(tmp_path):
    # An ideographic space, a no-break space and a line separator are characters like others.
    path = write(tmp_path / "a", "中 B-LOC\n国 I-LOC\n\u3000 O\n\xa0 O\n\u2028 O\n")
    assert read_tagged(path).words == [["中", "国", "\u3000", "\xa0", "\u2028"]]


def test_blank_lines_of_white_space_and_runs_of_spaces(tmp_path):
    path = write(tmp_path / "a", "\n \na   O  \n\t\n \t \nb O\n")
    assert read_tagged(path)[:2] == ([["a"], ["b"]], [["O"], ["O"]])


def test_sentences_before_the_first_document_line_are_a_document(tmp_path):
    path = write(tmp_path / "a", "a O\n\n-DOCSTART- O\n\nb O\n\nc O\n")
    assert read_tagged(path).documents == [0, 1, 1]


ERRORS = {
    "short row": ("a O\nb\n", r"line 2: 1 columns \['b'\], but expected 2 as in line 1"),
    "long row": ("\na O\nb c O\n", "line 3: 3 columns .*, but expected 2 as in line 2"),
    "no tag": ("a\tO\nb\t\n", r"line 2: 1 columns \['b'\]"),
    "no word": ("a\tO\n\tO\n", r"line 2: empty word or tag in \['', 'O'\]"),
    "word is a space": ("a O\n  O\n", r"line 2: empty word or tag in \['', 'O'\]"),
    "not UTF-8": (b"a O\n\n\xe9 O\n", "line 3: byte 0xe9 at position 0 of the line is not UTF-8"),
    "gzipped": (gzip.compress(b"a O\n"), "line 1: byte .*without .gz in its name"),
    "empty": ("\n-DOCSTART- O\n\n", "no sentences"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_file_line_and_what_came(tmp_path, case):
    content, message = ERRORS[case]
    with pytest.raises(ValueError, match=f"a.conll.*{message}"):
        read_tagged(write(tmp_path / "a.conll", content))


def test_encodings_other_than_utf8(tmp_path):
    path = write(tmp_path / "esp.train", "España B-LOC\n".encode("latin-1"))
    assert read_tagged(path, encoding="latin-1").words == [["España"]]
    path = write(tmp_path / "a", b"\xff O\n")
    with pytest.raises(ValueError, match="line 1: byte 0xff .* is not ascii"):
        read_tagged(path, encoding="ascii")


def test_unknown_scheme(tmp_path):
    with pytest.raises(ValueError, match="scheme='IOB2': expected 'iob2'"):
        read_tagged(tmp_path / "a", scheme="IOB2")


def test_tag_names_put_o_first():
    train, dev = [["O", "I-PER", "B-PER"], []], [["B-LOC"]]
    assert tag_names(train, dev) == ["O", "B-LOC", "B-PER", "I-PER"]
    assert tag_names([["NN", "DT"]]) == ["DT", "NN"] and tag_names([]) == []


CONLL_ENTITIES = {  # Tjong Kim Sang and De Meulder 2003, tables 1 and 2
    "eng.train": (14_041, 203_621, 946, {"LOC": 7140, "MISC": 3438, "ORG": 6321, "PER": 6600}),
    "eng.testa": (3_250, 51_362, 216, {"LOC": 1837, "MISC": 922, "ORG": 1341, "PER": 1842}),
    "eng.testb": (3_453, 46_435, 231, {"LOC": 1668, "MISC": 702, "ORG": 1661, "PER": 1617}),
}


@pytest.mark.parametrize("name", CONLL_ENTITIES)
def test_counts_of_conll_2003(shared_dir, name):
    path = shared_dir / "data" / "ner" / "conll2003" / f"{name}.gz"
    sentences = read_tagged(path, scheme="iob1")
    count, words, documents, entities = CONLL_ENTITIES[name]
    assert len(sentences.words) == count and sum(map(len, sentences.words)) == words
    assert sorted(set(sentences.documents)) == list(range(documents))
    begun = Counter(tag[2:] for tags in sentences.tags for tag in tags if tag.startswith("B-"))
    assert begun == entities
    kinds = ["LOC", "MISC", "ORG", "PER"]
    assert tag_names(sentences.tags) == ["O"] + [f"{p}-{kind}" for p in "BI" for kind in kinds]
    with pytest.raises(ValueError, match=rf"{name}.gz, line \d+, word .*scheme='iob1'"):
        read_tagged(path)


@pytest.mark.parametrize(
    ("name", "count", "words", "entities"),
    [
        ("wnut17/wnut17train.conll", 3_394, 62_730, 1_975),
        ("wnut17/emerging.dev.conll", 1_009, 15_733, 836),
        ("wnut17/emerging.test.annotated", 1_287, 23_394, 1_079),
        ("msra_zh/train_slice.txt.gz", 8_000, 319_352, 10_053),
        ("msra_zh/dev_slice.txt.gz", 1_000, 41_222, 1_055),
        ("msra_zh/test.txt.gz", 3_442, 172_601, 6_190),
    ],
)
def test_counts_of_files_in_iob2(shared_dir, caplog, name, count, words, entities):
    with caplog.at_level(logging.DEBUG, logger="keras_bert"):
        sentences = read_tagged(shared_dir / "data" / "ner" / name)
    assert len(sentences.words) == count and sum(map(len, sentences.words)) == words
    begun = sum(tag.startswith("B-") for tags in sentences.tags for tag in tags)
    assert begun == entities and set(sentences.documents) == {0} and not caplog.records


def write_tool(path, objects) -> Path:
    """Writes objects as a list in a `.json` file, or as JSON lines."""
    lines = "\n".join(map(json.dumps, objects))
    path.write_text(json.dumps(objects) if path.suffix == ".json" else lines)
    return path


def label_studio(text: str, spans, **annotation) -> dict:
    """A task as Label Studio exports it, with one annotation; offsets as JavaScript counts."""
    result = [
        {
            "value": {"start": start, "end": end, "text": said, "labels": [label]},
            "id": "a1",
            "from_name": "label",
            "to_name": "text",
            "type": "labels",
            "origin": "manual",
        }
        for start, end, said, label in spans
    ]
    found = {"id": 1, "result": result, "was_cancelled": False, "ground_truth": False, **annotation}
    return {"id": 1, "annotations": [found], "data": {"text": text}, "predictions": []}


GRINNING = "\U0001f600 Ada met Bo."  # the face is one character, and two UTF-16 code units


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_label_studio(tmp_path, caplog, name):
    choice = {"type": "choices", "from_name": "mood", "to_name": "text", "value": {"choices": []}}
    first = label_studio(GRINNING, [(11, 13, "Bo", "PER"), (3, 6, "Ada", "PER")])
    first["annotations"][0]["result"].append(choice)
    first["annotations"].append({"id": 2, "result": [], "was_cancelled": True})
    tasks = [
        first,
        label_studio("Nobody.", []),
        label_studio("Cleo.", [(0, 4, "Cleo", "PER")], was_cancelled=True),
        {"id": 4, "annotations": [], "data": {"text": "Dora."}},
    ]
    found = read_entities(write_tool(tmp_path / name, tasks))
    assert found == (
        [GRINNING, "Nobody."],
        [[(2, 5, "PER"), (10, 12, "PER")], []],
        [1, 2],
    )
    assert "2 texts left out, rejected or without annotation: lines 3, 4" in caplog.text


def test_label_studio_min_leaves_the_key_out_where_there_are_no_spans(tmp_path):
    spans = [{"start": 11, "end": 13, "text": "Bo", "labels": ["PER"]}]
    more = {"id": 1, "annotator": 1, "annotation_id": 1, "lead_time": 2.5}
    rows = [{"text": GRINNING, "label": spans} | more, {"text": "Nobody."} | more]
    found = read_entities(write_tool(tmp_path / "a.json", rows))
    assert found.entities == [[(10, 12, "PER")], []]


def test_what_an_annotator_of_prodigy_rejected_is_left_out(tmp_path, caplog):
    tokens = [{"text": "Ada", "start": 0, "end": 3, "id": 0, "ws": False}]
    span = {"start": 0, "end": 3, "token_start": 0, "token_end": 0, "label": "PER"}
    rows = [
        {"text": "Ada", "tokens": tokens, "spans": [span], "answer": answer}
        for answer in ("accept", "reject", "ignore")
    ]
    rows.append({"text": "It.", "tokens": tokens, "answer": "accept"})
    found = read_entities(write_tool(tmp_path / "a.jsonl", rows))
    assert found == (["Ada", "It."], [[(0, 3, "PER")], []], [1, 4])
    assert "2 texts left out, rejected or without annotation: lines 2, 3" in caplog.text
    with pytest.raises(ValueError, match="row 1 was rejected, or has no annotation"):
        annotated_texts(rows)
    with pytest.raises(ValueError, match="no texts; the texts are all rejected"):
        read_entities(write_tool(tmp_path / "b.jsonl", rows[1:3]))


TWO = label_studio("Ada met Bo.", [(0, 3, "Ada", "PER")])
TWO["annotations"].append(TWO["annotations"][0] | {"id": 2, "result": []})


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (TWO, "line 1: 2 annotations that differ: expected one, or one that is marked as the"),
        (label_studio("Ada.", [(1, 4, "Ada", "PER")]), "its text is 'Ada', and the characters 'da"),
        ({"text": "Ada", "label": [{"start": 0, "end": 3, "labels": ["A", "B"]}]}, "one label"),
        (
            {"data": {"text": "A"}, "annotations": [{"result": [{"type": "labels", "value": []}]}]},
            "expected an object in `value`",
        ),
        (
            {"text": "Ada", "annotations": [{"label": 3, "start_offset": 0, "end_offset": 3}]},
            "have numbers for labels: export with their names",
        ),
    ],
)
def test_annotations_that_say_nothing_certain_are_errors(tmp_path, row, problem):
    with pytest.raises(ValueError, match=problem):
        read_entities(write_tool(tmp_path / "a.jsonl", [row]))


def test_the_ground_truth_decides_between_annotators(tmp_path):
    task = json.loads(json.dumps(TWO))
    task["annotations"][0]["ground_truth"] = True
    found = read_entities(write_tool(tmp_path / "a.jsonl", [task]))
    assert found.entities == [[(0, 3, "PER")]]
