"""The commands as their users call them: what they print, write and return."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_bert import BertClassifier
from keras_bert_cli.kinds import KINDS
from keras_bert_cli.main import run
from keras_bert_cli.train import shown

ROOT = Path(__file__).parents[2]
TINY = str(ROOT / "tests" / "golden" / "tiny_one_block")
HELP = """
import sys
from keras_bert_cli.main import run
for command in ([], ["train"], ["evaluate"], ["predict"], ["info"], ["convert"], ["vocab"],
                ["corpus"], ["serve"], ["explain"], ["pretrain"]):
    assert run([*command, "--help"]) == 0, command
loaded = {"tensorflow", "keras", "keras_bert", "numpy"} & set(sys.modules)
assert not loaded, loaded
"""


REVIEWS = "id,review,stars\n" + "".join(
    f"{i},the boat froze in rain {i},bad\n{i},red boats a harbour {i},good\n" for i in range(20)
)
FAST = ["--preset", TINY, "--epochs", "2", "--sequence_length", "12"]


@pytest.fixture
def reviews(tmp_path, monkeypatch):
    """A file of reviews, in the folder that the commands run in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reviews.csv").write_text(REVIEWS)
    return tmp_path / "reviews.csv"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with reviews and a run on them; nobody writes to the run."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "reviews.csv").write_text(REVIEWS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(["train", "classify", "reviews.csv", *FAST]) == 0
    return folder


def test_help_imports_nothing_that_takes_seconds():
    command = [sys.executable, "-c", HELP]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


WRONG = """
import sys
from keras_bert_cli.main import run
from keras_bert_cli.first_readers import whole_package
for command in sys.argv[1:]:
    assert run(command.split()) == 1, command
    loaded = {"tensorflow", "keras", "keras_bert"} & set(sys.modules)
    assert not loaded, (command, loaded)
rows = sys.modules["keras_bert.data.rows"]
whole_package()
import keras_bert
assert keras_bert.data.rows is rows and keras_bert.data.Table is keras_bert.data.table_rows.Table
assert keras_bert.tasks.task.Table is keras_bert.data.Table  # one module, not two
"""


@pytest.mark.thorough
def test_wrong_files_are_refused_before_tensorflow_is_imported(tmp_path):
    (tmp_path / "rows.csv").write_text("text,label\na,x\nb\n")
    (tmp_path / "good.csv").write_text("text,label\na,x\nb,y\n")
    (tmp_path / "other.csv").write_text("said,label\na,x\n")
    (tmp_path / "a.xyz").write_text("text\n")
    (tmp_path / "a.json").write_text("{")
    run_folder = tmp_path / "run"
    (run_folder / "preset").mkdir(parents=True)
    facts = {"format": 1, "kind": "classify", "columns": {"texts": ["text"], "labels": ["label"]}}
    (run_folder / "run.json").write_text(json.dumps(facts))
    commands = {
        "train classify no.csv": "no.csv: no such file",
        "train classify rows.csv": "rows.csv, line 3: 1 columns ['b'], but expected 2",
        "train classify good.csv --dev rows.csv": "rows.csv, line 3: 1 columns",
        "train classify good.csv --text said": "good.csv, line 1: no column 'said'",
        "train classify a.xyz": "a.xyz: extension '.xyz': expected .tsv",
        "train answer a.json": "a.json, line 1: not JSON",
        "train classify good.csv --preset ./no": "./no: no such folder",
        "train classify good.csv -o run": "run is there already",
        "evaluate runs/no good.csv": "runs/no: no such folder",
        "evaluate run rows.csv": "rows.csv, line 3: 1 columns",
        "predict run other.csv -o out.jsonl": "other.csv, line 1: no column 'text'",
        "predict run a.xyz -o out.jsonl": "a.xyz: extension '.xyz': expected .jsonl",
    }
    command = [sys.executable, "-c", WRONG, *commands]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    for found, expected in zip(errors, commands.values(), strict=True):
        assert found.startswith(f"error: {expected}")


@pytest.mark.thorough
def test_from_a_file_to_answers(trained, monkeypatch, tmp_path, capsys, caplog):
    monkeypatch.chdir(trained)
    folder = trained / "runs" / "reviews"
    facts = json.loads((folder / "run.json").read_text())
    metrics = json.loads((folder / "metrics.json").read_text())
    assert facts["columns"] == {"texts": ["review"], "labels": ["stars"]}
    assert facts["rows"] == {"train": 36, "dev": 4} and len(metrics["epochs"]) == 2
    assert str(trained) not in (folder / "run.json").read_text()
    assert not (folder / "checkpoints").exists() and (folder / "report/errors.html").is_file()

    # The preset is that of the best epoch, and the commands answer with it.
    model = BertClassifier.from_preset(folder / "preset")
    assert model.labels == ["bad", "good"] and model.preprocessor.sequence_length == 12
    best = max(epoch["val_accuracy"] for epoch in metrics["epochs"])
    assert metrics["scores"]["accuracy"] == pytest.approx(best)
    assert run(["evaluate", "runs/reviews", "reviews.csv", "--json"]) == 0
    _, texts, labels = zip(*(line.split(",") for line in REVIEWS.splitlines()[1:]), strict=True)
    found = model.classify(list(texts))[0]
    right = sum(a == b for a, b in zip(found, labels, strict=True)) / len(labels)
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert scores["accuracy"] == pytest.approx(right)
    out = tmp_path / "out.jsonl"
    assert run(["predict", "runs/reviews", "reviews.csv", "-o", str(out)]) == 0
    assert f"40 rows are answered in {out}" in capsys.readouterr().out
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [row["label"] for row in rows] == list(found)

    # As CSV, beside all columns of the input: here one with semicolons and a column of the
    # answer's name.
    (tmp_path / "new.csv").write_text(
        'review;label;label;note\n"boats; and ""rain""";x;z;=1+1\n;y;;-3\n"red\nharbour";;;\n'
    )
    table = tmp_path / "out.csv"
    assert run(["predict", "runs/reviews", str(tmp_path / "new.csv"), "-o", str(table)]) == 0
    assert "1 row has no text, so that the answer means nothing: row 1" in caplog.text
    assert table.read_bytes().startswith(b"\xef\xbb\xbfreview,label,label (2),note,label (answer),")
    with open(table, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    texts = ['boats; and "rain"', "", "red\nharbour"]
    labels, probabilities = model.classify(texts)
    assert [row["label (answer)"] for row in rows] == labels
    np.testing.assert_allclose([float(r["probability"]) for r in rows], probabilities, atol=1e-5)
    given = [[row[name] for name in ("review", "label", "note")] for row in rows]
    assert given == [[texts[0], "x", "'=1+1"], ["", "y", "-3"], [texts[2], "", ""]]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "new.csv", "out.csv", "out.jsonl", "out.jsonl.state.json"
    ]  # fmt: skip
    assert run(["predict", "runs/reviews", str(tmp_path / "new.csv"), "-o", str(table)]) == 1
    assert "out.csv is there already: replace it by --restart" in capsys.readouterr().err

    # A second run does not replace the first.
    assert run(["train", "classify", "reviews.csv", *FAST]) == 1
    assert "runs/reviews is there already" in capsys.readouterr().err
    assert run(["train", "classify", "reviews.csv", *FAST, "--resume"]) == 1
    assert "finished run" in capsys.readouterr().err
    assert run(["info", "runs/reviews", "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    assert about["labels"] == ["bad", "good"] and about["scores"] == metrics["scores"]
    assert run(["info", "runs/reviews"]) == 0
    said = capsys.readouterr().out
    assert "train: 36, dev: 4\n" in said and f"accuracy: {best:.4f}, " in said


@pytest.mark.thorough
def test_a_stopped_run_goes_on_as_if_it_had_not(trained, reviews, capsys, monkeypatch):
    from keras_bert_cli.train import _Epochs

    after = _Epochs.on_epoch_end

    def interrupting(self, epoch, logs=None):
        after(self, epoch, logs)
        if epoch == 0:
            signal.raise_signal(signal.SIGINT)

    command = ["train", "classify", "reviews.csv", *FAST, "--json"]
    with monkeypatch.context() as patched:
        patched.setattr(_Epochs, "on_epoch_end", interrupting)
        assert run(command) == 130
    assert "the same command with --resume goes on" in capsys.readouterr().err
    assert run(["evaluate", "runs/reviews", "reviews.csv"]) == 1
    assert "an unfinished run" in capsys.readouterr().err
    assert run([*command, "--resume"]) == 0
    printed = json.loads(capsys.readouterr().out)
    whole, cut = (
        json.loads((folder / "runs/reviews/metrics.json").read_text())
        for folder in (trained, reviews.parent)
    )
    assert cut["epochs"] == whole["epochs"] and cut["scores"] == whole["scores"]
    assert printed["scores"] == cut["scores"] and printed["preset"] == "runs/reviews/preset"


@pytest.mark.thorough
def test_labels_in_several_spellings_are_named_and_made_one(reviews, capsys):
    lines = reviews.read_text().replace("good\n3,", "GOOD\n3,")
    reviews.write_text(lines.replace("bad\n1,", "poor\n1,"))
    command = ["train", "classify", "reviews.csv", *FAST, "--epochs", "1"]
    assert run([*command, "--dry_run"]) == 0
    said = capsys.readouterr().out
    flags = ["--rename_label", "GOOD=good"]
    assert f"'good', 'GOOD' are different labels; to make them one: {' '.join(flags)}" in said
    assert run([*command, *flags, "--rename_label", "poor=bad", "--json"]) == 0
    capsys.readouterr()
    assert BertClassifier.from_preset("runs/reviews/preset").labels == ["bad", "good"]
    assert run(["evaluate", "runs/reviews", "reviews.csv", "--json"]) == 0  # renames them too
    assert json.loads(capsys.readouterr().out)["rows"] == 40
    assert run(["train", "tag", "reviews.csv", *flags, "-o", "tags"]) == 1
    assert "--rename_label: expected a task with one or several labels" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_dry_run_shows_data_and_trains_nothing(reviews, capsys):
    assert run(["train", "classify", "reviews.csv", "--preset", TINY, "--dry_run"]) == 0
    said = capsys.readouterr().out
    assert "36 to train on, 4 to score on" in said and "bad: 18, good: 18" in said
    assert "labels in 'stars', by its name" in said and "[CLS]" in said and "to compile" in said
    assert not (reviews.parent / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["train", "classify", "no.csv"], 1, "error: no.csv: no such file"),
        (["train", "guess", "reviews.csv"], 2, "guess"),
        (["train", "classify", "reviews.csv", "--nope"], 2, "--nope"),
        (["train", "classify", "reviews.csv", "--label", "x"], 1,
         "error: reviews.csv, line 1: no column 'x'; the columns are ['id', 'review', 'stars']"),
        (["train", "classify", "reviews.csv", "--preset", "no"], 1, "'no' is not a folder"),
        (["evaluate", "nowhere", "reviews.csv"], 1, "'nowhere' is not a folder"),
        (["evaluate", TINY, "reviews.csv"], 1, "call from_preset of a task's class"),
        (["predict", TINY, "reviews.csv", "-o", "x", "--column", "text"], 2, "INPUT=COLUMN"),
        (["info", "nowhere"], 1, "'nowhere' is not a folder"),
    ],
)  # fmt: skip
def test_errors_are_one_line_and_a_code(arguments, code, message, reviews, capsys):
    assert run(arguments) == code
    said = capsys.readouterr().err
    assert message in said and "Traceback" not in said
    if code == 1:
        assert len([line for line in said.splitlines() if line.startswith("error:")]) == 1
    assert not (reviews.parent / "runs").exists()


def test_an_accuracy_is_shown_with_the_interval_of_its_rows():
    found = {"accuracy": 34 / 49, "f1": 0.7}
    # Wilson's interval by its formula, (p + z2/2n +- z sqrt(p (1-p)/n + z2/4n2)) / (1 + z2/n).
    assert shown(KINDS["classify"], found, 49) == [
        ("accuracy", "0.6939  (95% interval 0.55 to 0.80)"),
        ("f1", "0.7000"),
    ]
    assert shown(KINDS["tag"], {"accuracy": 0.5}, 49) == [("accuracy", "0.5000")]  # of words


def test_versions_and_forms(capsys, tmp_path):
    assert run(["--version"]) == 0
    assert "tensorflow 2." in capsys.readouterr().out
    out = tmp_path / "kerashub"
    assert run(["convert", TINY, str(out), "--to", "kerashub"]) == 0
    assert run(["info", str(out), "--json"]) == 0
    shown = capsys.readouterr().out
    assert '"is": "a checkpoint in the form of kerashub"' in shown
