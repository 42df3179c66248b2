"""What each kind of task reads from its files, and how it names what is wrong in them."""

import gzip
import json

import pytest

from keras_bert_cli.kinds import KINDS, Source

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


def test_rows_that_are_left_out_are_counted(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\nx,1\n ,1\ny,\nz,2,3\nw,2\n")
    table = KINDS["classify"].read(Source(tmp_path / "a.csv", skip_bad_rows=True))
    assert table.data.columns == (["x", "w"],) and table.data.labels == ["1", "2"]
    assert "1 row with no text is left out: line 3" in table.notes
    assert "1 row with no label is left out: line 4" in table.notes
