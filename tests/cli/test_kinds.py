"""What each kind of task reads from its files, and how it names what is wrong in them."""

import gzip
import json
from dataclasses import replace

import pytest

import keras_bert
from keras_bert.explain import attributions
from keras_bert_cli.bad_rows import read_without_bad_rows
from keras_bert_cli.explain import explain_text
from keras_bert_cli.kinds import KINDS, Source
from keras_bert_cli.train import Settings, completed
from tests.tasks.tiny import made

CONLL = "Ada B-PER\nmet O\nGrace B-PER\nHopper I-PER\n\nIt O\nrains O\n"
SQUAD = {
    "data": [
        {
            "title": "Cats",
            "paragraphs": [
                {
                    "context": "The cat is on the mat.",
                    "qas": [
                        {
                            "id": "1",
                            "question": "Where is the cat?",
                            "answers": [{"text": "on the mat", "answer_start": 11}],
                        }
                    ],
                }
            ],
        }
    ]
}


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


CASES = {
    "classify": ("a.csv", 'review,stars\n"Fine, really",5\nBad,1 \n',
                 (["Fine, really", "Bad"],), ["5", "1"], {"labels": ["1", "5"]}),
    "classify a pair": ("a.tsv", "premise\thypothesis\tlabel\na b\tb c\tyes\n",
                        (["a b"], ["b c"]), ["yes"], {"labels": ["yes"]}),
    "multi-label": ("a.jsonl", lines({"text": "sky", "labels": ["blue", "big"]},
                                     {"text": "no", "labels": []}),
                    (["sky", "no"],), [["blue", "big"], []], {"labels": ["big", "blue"]}),
    "multi-label in columns": ("a.csv", "text,red,blue\nsky,0,1\nplum,1,1\n",
                               (["sky", "plum"],), [["blue"], ["red", "blue"]],
                               {"labels": ["blue", "red"]}),
    "regress": ("a.csv", "text,score\nsky,0.5\nplum,2\n", (["sky", "plum"],), [0.5, 2.0],
                {"num_classes": 1}),
    "embed": ("a.csv", "sentence1,sentence2,score\nsky,plum,1\na,b,4\n",
              (["sky", "a"], ["plum", "b"]), [0.2, 0.8], {"loss": "cosine"}),
    "embed pairs alone": ("a.csv", "query,passage\nsky,the sky is blue\nplum,a plum is red\n",
                          (["sky", "plum"], ["the sky is blue", "a plum is red"]), None,
                          {"loss": "contrastive"}),
    "tag": ("a.conll", CONLL,
            ([["Ada", "met", "Grace", "Hopper"], ["It", "rains"]],),
            [["B-PER", "O", "B-PER", "I-PER"], ["O", "O"]],
            {"labels": ["O", "B-PER", "I-PER"]}),
    "tag in IOB1": ("a.txt", CONLL.replace("Ada B-", "Ada I-").replace("Grace B-", "Grace I-"),
                    ([["Ada", "met", "Grace", "Hopper"], ["It", "rains"]],),
                    [["B-PER", "O", "B-PER", "I-PER"], ["O", "O"]],
                    {"labels": ["O", "B-PER", "I-PER"]}),
    "tag parts of speech": ("a.txt", "It PRON\nrains VERB\n", ([["It", "rains"]],),
                            [["PRON", "VERB"]], {"labels": ["PRON", "VERB"]}),
    "tag spans": ("a.jsonl", lines({"text": "Ada met", "spans": [{"start": 0, "end": 3,
                                                                 "label": "PER"}]}),
                  (["Ada met"],), [[(0, 3, "PER")]], {"labels": ["O", "B-PER", "I-PER"]}),
    "tag tokens": ("a.jsonl", lines({"tokens": ["Ada", "met"], "ner_tags": ["B-PER", "O"]}),
                   ([["Ada", "met"]],), [["B-PER", "O"]], {"labels": ["O", "B-PER"]}),
    "choose": ("a.csv", "context,choice0,choice1,label\nIt rains.,She runs.,Dry.,B\n",
               (["It rains."], [["She runs.", "Dry."]]), [1], {}),
    "relate": ("a.jsonl", lines({"text": "Ada met Bo", "spans": [[0, 3], [8, 10]],
                                 "label": "knows"}),
               (["Ada met Bo"], [[[0, 3], [8, 10]]]), ["knows"], {"labels": ["knows"]}),
    "mlm": ("a.txt", "One line.\n\nAnother.\n", (["One line.", "Another."],), None, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("zipped", [False, True])
def test_each_kind_reads_its_files(name, zipped, tmp_path):
    file, content, columns, labels, settings = CASES[name]
    path = tmp_path / (file + ".gz" * zipped)
    path.write_bytes(gzip.compress(content.encode()) if zipped else content.encode())
    kind = KINDS[name.split()[0]]
    table = kind.read(Source(path))
    assert table.data.columns == columns and table.data.labels == labels
    assert settings.items() <= kind.settings(table).items()
    assert len(kind.texts(table)) == len(kind.strata(table)) == len(kind.groups(table))
    kind.label_counts(table)
    assert len(table.take([0])) == 1


def test_questions_are_read(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(SQUAD))
    table = KINDS["answer"].read(Source(tmp_path / "a.json"))
    assert [example.question for example in table.x] == ["Where is the cat?"]


def test_parquet_is_read_as_json_lines_are(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"review": "Fine", "stars": 5}, {"review": "Bad", "stars": 1}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text(lines(*rows))
    found = [KINDS["classify"].read(Source(tmp_path / f"a.{e}")) for e in ("parquet", "jsonl")]
    assert found[0] == found[1] and found[0].data.labels == ["5", "1"]
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    with pytest.raises(ValueError, match="b.parquet, after row 0: not Parquet"):
        KINDS["classify"].read(Source(tmp_path / "b.parquet"))


@pytest.mark.parametrize(
    ("kind", "file", "content", "message"),
    [
        ("classify", "a.csv", "text,label\nx,1\n ,1\n", "line 3: no text in 1 of 2 rows"),
        ("classify", "a.csv", "text,label\nx,\ny,1\n", "line 2: no label in 1 of 2 rows"),
        ("classify", "a.csv", "text,label\nx,1,2\n", "line 2: 3 columns"),
        ("regress", "a.csv", "text,score\nx,1\ny,many\n", "line 3: a label that is not a number"),
        ("choose", "a.csv", "context,choice0,choice1,label\na,b,c,4\n",
         "line 2: label '4': expected an index from 0 to 1, a letter, or one of the choices"),
        ("relate", "a.jsonl", lines({"text": "Ada", "spans": [[0, 3]], "label": "x"}),
         "line 1: 'spans': expected a list of 2"),
        ("tag", "a.jsonl", lines({"tokens": ["a"], "tags": ["O", "O"]}), "line 1: 1 words and 2"),
        ("embed", "a.csv", "text1,text2,score\na,b,-3\nc,d,2\n", "scores from -3 to 2"),
        ("mlm", "a.txt", "\n \n", "no texts"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_file_and_line(kind, file, content, message, tmp_path):
    (tmp_path / file).write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        KINDS[kind].read(Source(tmp_path / file))
    assert str(caught.value).startswith(str(tmp_path / file))


def test_choices_that_are_numbers_or_letters(tmp_path):
    """A label that means two choices is an error, not a guess."""
    path = tmp_path / "a.csv"
    head = "context,choice0,choice1,choice2,label\n"
    for row, label in (("x,2,3,4,4", 2), ("x,2,3,4,A", 0), ("x,B,A,C,1", 1), ("x,1,2,3,3", 2)):
        path.write_text(f"{head}{row}\n")
        assert KINDS["choose"].read(Source(path)).data.labels == [label]
    for row, other in (("x,2,3,4,2", "a letter"), ("x,B,A,C,A", "an index from 0")):
        path.write_text(f"{head}{row}\n")
        with pytest.raises(ValueError, match=f"a.csv, line 2: label .*expected {other}"):
            KINDS["choose"].read(Source(path))


def test_rows_that_are_left_out_are_counted(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\nx,1\n ,1\ny,\nz,2,3\nw,2\n")
    table = KINDS["classify"].read(Source(tmp_path / "a.csv", skip_bad_rows=True))
    assert table.data.columns == (["x", "w"],) and table.data.labels == ["1", "2"]
    assert "1 row with no text is left out: line 3" in table.notes
    assert "1 row with no label is left out: line 4" in table.notes


CHOICE = {"context": "a", "choices": ["b", "c"], "label": 1}
RELATION = {"text": "Ada met Bo", "spans": [[0, 3], [8, 10]], "label": "x"}
SEMEVAL = '%d\t"The <e1>key</e1> was in a <e2>drawer</e2>."\nOther\nComment:\n\n'


@pytest.mark.parametrize(
    ("kind", "file", "content", "bad", "kept"),
    [
        ("tag", "a.conll", "a O\nb B-X\n\nc O\nd\n\ne O\n\nf B_X\n" + "\ng O\n" * 30, [5, 9], 32),
        ("tag", "a.jsonl", lines({"tokens": ["a"], "tags": ["O"]}, {"tokens": ["a"], "tags": []})
         + "{\n", [2, 3], 1),
        ("tag", "b.jsonl", lines({"text": "Ada", "spans": [[0, 3, "X"]]},
                                 {"text": "Ada", "spans": [[0, 9, "X"]]}), [2], 1),
        ("choose", "a.jsonl", lines(CHOICE, CHOICE | {"label": 7}, CHOICE, {"context": "a"}),
         [2, 4], 2),
        ("choose", "a.csv", 'context,choice0,choice1,label\n"a\nb",c,d,9\na,b,c,1\n', [2], 1),
        ("relate", "a.jsonl", lines(RELATION, RELATION | {"spans": [[0, 3]]}), [2], 1),
        ("relate", "a.txt", SEMEVAL % 1 + (SEMEVAL % 2).replace("</e1>", "") + SEMEVAL % 1
         + SEMEVAL % 3, [5, 9], 2),
        ("classify", "a.jsonl", lines({"text": "a", "label": 1}, {"text": None, "label": 1},
                                      {"text": "b", "label": 2}) + "no json\n", [2, 4], 2),
        ("embed", "a.jsonl", lines({"text1": "a", "text2": "b"}, {"text1": "a"}), [2], 1),
        ("mlm", "a.jsonl", lines({"text": "a"}, {"text": ["b"]}), [2], 1),
    ],
)  # fmt: skip
def test_bad_rows_of_every_form(kind, file, content, bad, kept, tmp_path):
    path = tmp_path / file
    path.write_text(content)
    columns = {"classify": (("text",), ("label",)), "embed": (("text1", "text2"), ())}
    source = Source(path, *columns.get(kind, ()))
    with pytest.raises(ValueError, match=f"{file}, line ({'|'.join(map(str, bad))}): "):
        KINDS[kind].read(source)
    table = KINDS[kind].read(replace(source, skip_bad_rows=True))
    assert len(table) == kept
    named = f"line{'s' if len(bad) > 1 else ''} {', '.join(map(str, bad))}; the first: "
    assert named in table.notes[-1] and f"{len(bad)} row" in table.notes[-1]
    assert str(tmp_path) not in table.notes[-1] and "/tmp" not in table.notes[-1]


def test_bad_rows_of_parquet_and_of_gzipped_files(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    texts, labels = ["a", "b", "", "c", "d", "e"], ["x", "y", "x", None, "z", "x"]
    bad = pa.array([b"a", b"b", b"c", b"d", b"\xff", b"f"])
    raw = pa.StringArray.from_buffers(6, bad.buffers()[1], bad.buffers()[2])
    columns = {"text": texts, "label": labels, "raw": raw}
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=2)
    source = Source(tmp_path / "a.parquet", ("text",), ("label",), skip_bad_rows=True)
    table = KINDS["classify"].read(source)
    assert table.data.columns == (["a", "b", "e"],) and table.data.labels == ["x", "y", "x"]
    assert any("no text is left out: line 3" in note for note in table.notes)
    assert any("lines 4, 5; the first: " in note for note in table.notes)

    rows = lines(CHOICE, CHOICE | {"label": 7}, CHOICE) + "{\n"
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(rows.encode()))
    table = KINDS["choose"].read(Source(tmp_path / "a.jsonl.gz", skip_bad_rows=True))
    assert len(table) == 2 and "2 rows that are wrong are left out: lines 2, 4" in table.notes[-1]

    blocks = "a O\nb B-X\n\nc O\nd\n\ne O\n"
    (tmp_path / "a.conll.gz").write_bytes(gzip.compress(blocks.encode()))
    table = KINDS["tag"].read(Source(tmp_path / "a.conll.gz", skip_bad_rows=True))
    assert table.data.columns == ([["a", "b"], ["e"]],)


def test_a_thousand_bad_rows_take_few_readings(tmp_path):
    names = [f"row {i}" if i % 3 else ("bad", "worse")[i % 2] for i in range(3000)]
    path, taken = tmp_path / "a.tsv", 0
    path.write_text("head\n" + "".join(f"{row}\n" for row in names))

    def read(path):
        nonlocal taken
        kept = []
        for worst in ("bad", "worse"):  # a second pass finds what the first has not looked for
            for number, line in enumerate(path.read_text().splitlines(), 1):
                taken += 1
                if line == worst:
                    raise ValueError(f"{path}, line {number}: {line}")
                kept += [line] if worst == "bad" and line not in ("", "head") else []
        return kept

    found, left_out = read_without_bad_rows(read, read, path, False)
    assert found == [row for row in names if row.startswith("row")]
    assert left_out == [(i + 2, row) for i, row in enumerate(names) if row[:3] != "row"]
    assert taken < 50 * len(names)  # not once a bad row: that would be 1000


def test_columns_and_tags_of_a_piece_are_read_as_those_of_the_file(tmp_path):
    # Tags without B- and I-, which are rare: no mistakes, though a piece may look so.
    tagged = ("a O\n" * 40 + "\n") * 70 + ("Ada PER\n" * 9 + "\n") * 40 + "a O\nb\n"
    (tmp_path / "a.conll").write_text(("a O\n" * 40 + "Ada PER\n\n") + tagged)
    table = KINDS["tag"].read(Source(tmp_path / "a.conll", skip_bad_rows=True))
    assert len(table) == 111 and "1 row that is wrong is left out: line 3314" in table.notes[-1]
    # The texts of a piece are no longer than its names; those of the file are.
    rows = [{"name": "Ada Lovelace", "words": "x"}] * 80
    rows += [{"name": "Bo", "words": "word " * 50}] * 80
    rows[100] = {"name": "Bo", "words": ["no", "text"]}
    (tmp_path / "a.jsonl").write_text(lines(*rows[::-1]))
    source = Source(tmp_path / "a.jsonl", ("words",), skip_bad_rows=True)
    table = KINDS["mlm"].read(source)
    assert len(table) == 159 and "line 60" in table.notes[-1]


@pytest.mark.parametrize(
    ("kind", "rows", "batch_size", "epochs"),
    [
        ("classify", 500, 16, 10),
        ("classify", 90_000, 32, 3),
        ("tag", 1000, 32, 20),
        ("answer", 1077, 8, 8),
        ("answer", 4000, 16, 4),
        ("answer", 88_000, 32, 3),
    ],
)
def test_batch_size_and_epochs_follow_from_the_rows(kind, rows, batch_size, epochs):
    found = completed(Settings("no preset"), KINDS[kind], rows, [10, 20], 512)
    assert (found.batch_size, found.epochs) == (batch_size, epochs)
    found = completed(Settings("no preset", 0.1, 2, 7), KINDS[kind], rows, [10, 20], 512)
    assert (found.batch_size, found.epochs) == (7, 2)


def test_questions_that_are_left_out_are_named(tmp_path):
    answers = [{"text": "ran", "answer_start": 4}], [{"text": "ran", "answer_start": 5}]
    asked = [{"id": f"q{i}", "question": "Who?", "answers": a} for i, a in enumerate(answers)]
    paragraphs = [{"context": "Ada ran.", "qas": asked}]
    content = {"version": "1.1", "data": [{"title": "x", "paragraphs": paragraphs}]}
    (tmp_path / "a.json").write_text(json.dumps(content))
    table = KINDS["answer"].read(Source(tmp_path / "a.json", skip_bad_rows=True))
    assert len(table) == 1
    assert table.notes[0].startswith("1 question, whose") and table.notes[0].endswith(": q1")


def test_a_header_or_a_whole_file_that_is_wrong_is_an_error(tmp_path):
    (tmp_path / "a.csv").write_text("context,label\na,1\nb,1\n")
    with pytest.raises(ValueError, match="a.csv, line 1: no column 'choices'"):
        KINDS["choose"].read(Source(tmp_path / "a.csv", skip_bad_rows=True))
    (tmp_path / "a.conll").write_text("a\tO\nb\n")
    with pytest.raises(ValueError, match="a.conll: no sentences"):
        KINDS["tag"].read(Source(tmp_path / "a.conll", skip_bad_rows=True))


def test_scores_of_pairs_have_the_scale_of_the_training_file(tmp_path):
    (tmp_path / "one.csv").write_text("text1,text2,score\na,b,1\nc,d,1\n")
    table = KINDS["embed"].read(Source(tmp_path / "one.csv", labels=("score",)))
    assert table.scale == 1 and table.data.labels == [1, 1]  # cosines, not 1 of 5
    (tmp_path / "train.csv").write_text("text1,text2,score\na,b,10\nc,d,0\n")
    (tmp_path / "dev.csv").write_text("text1,text2,score\na,b,4\nc,d,2\n")
    (tmp_path / "wrong.csv").write_text("text1,text2,score\na,b,11\nc,d,2\n")
    train = KINDS["embed"].read(Source(tmp_path / "train.csv"))
    assert train.scale == 10 and train.data.labels == [1.0, 0.0]
    dev = KINDS["embed"].read(Source(tmp_path / "dev.csv", scale=train.scale))
    assert dev.data.labels == [0.4, 0.2]
    with pytest.raises(ValueError, match="wrong.csv: scores from 2 to 11: expected 0 to 10"):
        KINDS["embed"].read(Source(tmp_path / "wrong.csv", scale=train.scale))


def test_a_relation_is_explained_by_its_marks(capsys):
    model = keras_bert.BertRelationClassifier(**made(keras_bert.BertRelationClassifier))
    found = explain_text(model, ["the <e1>cat</e1> sat on a <e2>mat</e2>"], None, "occlusion", None)
    example = ("the cat sat on a mat", [[4, 7], [17, 20]])
    (right,) = attributions(model, example, method="occlusion")
    assert [row["score"] for row in found["words"]] == right.words.scores.tolist()
    assert [row["word"] for row in found["words"]] == right.words.words
    with pytest.raises(ValueError, match="expected a text with two entities"):
        explain_text(model, ["the cat"], None, "occlusion", None)
