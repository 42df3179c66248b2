"""Answers by Beam: those of `answer_file`, exactly one for each row, also after a stop."""

import gzip
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

pa = pytest.importorskip("pyarrow")
pytest.importorskip("apache_beam")
import apache_beam as beam  # noqa: E402
import pyarrow.parquet  # noqa: E402
from apache_beam.ml.inference.base import KeyedModelHandler, RunInference  # noqa: E402
from apache_beam.testing import test_pipeline  # noqa: E402
from apache_beam.testing.util import assert_that, equal_to  # noqa: E402

from keras_bert import BertClassifier  # noqa: E402
from keras_bert.serving.beam import ExportHandler, Failure, answer_shards, local_copy  # noqa: E402
from keras_bert.serving.bulk import answer_file, ask  # noqa: E402
from keras_bert.serving.bulk_model import ExportedModel  # noqa: E402
from keras_bert.serving.bulk_rows import RowReader, find_files  # noqa: E402
from tools import answer_with_beam  # noqa: E402

TINY = Path(__file__).parents[2] / "tests" / "golden" / "tiny_hf"
TEXTS = [
    "rain",
    "",
    "the wind froze a harbour",
    "red boats",
    'a "red" boat',
    "é 中 😀",
    "rain a, b",
]
OPTIONS = {"columns": {"text": "a"}, "batch_size": 2, "verbose": False}


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "1"
    BertClassifier.from_preset(TINY, padding="bucket").export(folder)
    return folder


@pytest.fixture(scope="module", autouse=True)
def loads():
    """Exports loaded, of which Beam is to load one per process and run."""
    counted, load, kept = [], tf.saved_model.load, {}

    def counting(folder):
        counted.append(folder)
        return kept.get(folder) or kept.setdefault(folder, load(folder))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tf.saved_model, "load", counting)
        yield counted


@pytest.fixture(scope="module")
def expected(export, tmp_path_factory):
    """The outputs of each text, by `answer_file`."""
    folder = tmp_path_factory.mktemp("expected")
    (folder / "in.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in TEXTS))
    answer_file(export, folder / "in.jsonl", folder / "out", verbose=False)
    lines = map(json.loads, (folder / "out").read_text().splitlines())
    return {text: line["logits"] for text, line in zip(TEXTS, lines, strict=True)}


@pytest.fixture
def files(tmp_path):
    """Files of all kinds, and the text of each good row by file and line, the id of some."""
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    good, bad, ids = {}, {}, {}
    lines = [json.dumps({"a": text, "id": i}) for i, text in enumerate(TEXTS)]
    odd = ["", '{"a": "x"', '{"b": "x"}', '{"a": null, "more": NaN}', '"x"', '{"a": "\udce9"}']
    lines[3:3] = odd
    text = "\ufeff" + "\n".join(lines)
    (folder / "a.jsonl").write_bytes(text.encode(errors="surrogateescape"))
    for i, (line, t) in enumerate(zip([1, 2, 3, 10, 11, 12, 13], TEXTS, strict=True)):
        good["a.jsonl", line], ids["a.jsonl", line] = t, i
    reasons = ["Expecting", "no column 'a'", "expected a string", "expected a JSON object", "UTF-8"]
    bad |= {("a.jsonl", line): reason for line, reason in enumerate(reasons, 5)}

    csv = 'id,a\r\n7,"rain"\r\nx,"two\nlines"\r\n\r\n8,"a ""red"" boat"\r\n9\r\n10,rain'
    (folder / "deep" / "b.csv.gz").write_bytes(gzip.compress(csv.encode()))
    good |= {("deep/b.csv.gz", 2): "rain", ("deep/b.csv.gz", 6): 'a "red" boat'}
    good["deep/b.csv.gz", 8] = "rain"
    ids |= dict(zip([("deep/b.csv.gz", n) for n in (2, 6, 8)], ["7", "8", "10"], strict=True))
    good["deep/b.csv.gz", 3], ids["deep/b.csv.gz", 3] = "two\nlines", "x"
    bad["deep/b.csv.gz", 7] = "1 columns: expected 2"

    (folder / "c.tsv").write_text('a\tother\nred boats\t"\n \nrain\t\n')
    good |= {("c.tsv", 2): "red boats", ("c.tsv", 4): "rain"}

    table = pa.table({"other": [0] * 7, "a": [*TEXTS[:6], None], "id": list(range(7))})
    pyarrow.parquet.write_table(table, folder / "d.parquet", row_group_size=2)
    good |= {("d.parquet", i + 1): text for i, text in enumerate(TEXTS[:6])}
    ids |= {("d.parquet", i + 1): i for i in range(6)}
    bad["d.parquet", 7] = "expected a string"

    (folder / "e.txt").write_text("rain\n\nred boats\n")
    good |= {("e.txt", 1): "rain", ("e.txt", 2): "", ("e.txt", 3): "red boats"}
    names = [folder / "[a-e].*", folder / "deep" / "*"]
    return names, good, bad, ids


def lines_of(folder, kind):
    """The lines of all files of a kind, by file and line of the input."""
    found = {}
    for path in sorted(folder.glob(f"{kind}-*")):
        for line in path.read_bytes().splitlines():
            said = json.loads(line)
            place = said["file"], said["line"]
            assert place not in found
            found[place] = said
    return found


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.thorough
def test_every_row_has_one_result_also_after_a_stop(export, expected, files, tmp_path, loads):
    names, good, bad, ids = files
    loads.clear()
    counts = answer_shards(export, names, tmp_path / "out", rows_per_shard=3, workers=2, **OPTIONS)
    assert counts == (len(good) + len(bad), len(good), len(bad))
    assert len(loads) == 1  # by two threads
    answered, failed = (lines_of(tmp_path / "out", kind) for kind in ("answers", "failed"))
    assert answered.keys() == good.keys() and failed.keys() == bad.keys()
    assert {place: said["row_id"] for place, said in answered.items() if "row_id" in said} == ids
    for place, text in good.items():
        said = answered[place]
        if text in expected:
            np.testing.assert_allclose(said["logits"], expected[text], atol=1e-5)
        assert set(said) - {"row_id"} == {"file", "line", "label", "probability", "logits"}
    for place, reason in bad.items():
        assert reason in failed[place]["error"] and not failed[place]["error"].startswith("batch")
    assert failed["a.jsonl", 5]["input"] == '{"a": "x"'
    assert failed["a.jsonl", 9]["input"] == r'"{\"a\": \"\udce9\"}"'
    # Shards keep the order of files and lines.
    assert list(answered) == sorted(answered)

    whole = content(tmp_path / "out")
    parts = sorted(path for path in (tmp_path / "out").glob("answers-*"))
    stamps = {path: path.stat().st_mtime_ns for path in parts}
    dropped = [tmp_path / "out" / "index.json", *parts[1:3], parts[-1]]
    for path in dropped:
        path.unlink()
    (tmp_path / "out" / "answers-00001-of-00010.jsonl.abc.new").touch()  # of a killed worker
    assert answer_shards(export, names, tmp_path / "out", rows_per_shard=3, **OPTIONS) == counts
    for path in set(parts) - set(dropped):
        assert path.stat().st_mtime_ns == stamps[path]
    left = content(tmp_path / "out")
    assert {name: left[name] for name in whole} == whole

    # Complete answers are only counted.
    loads.clear()
    assert answer_shards(export, names, tmp_path / "out", rows_per_shard=3, **OPTIONS) == counts
    assert not loads
    with pytest.raises(FileExistsError, match="another rows_per_shard, or part of them"):
        answer_shards(export, names, tmp_path / "out", **OPTIONS)
    with pytest.raises(FileExistsError, match="another inputs"):
        answer_shards(export, names[0], tmp_path / "out", rows_per_shard=3, **OPTIONS)
    counts = answer_shards(export, names[1], tmp_path / "out", overwrite=True, **OPTIONS)
    assert counts == (5, 4, 1)
    assert set(content(tmp_path / "out")) == {"index.json", "plan.json"} | {
        f"{kind}-00000-of-00001.jsonl" for kind in ("answers", "failed")
    }


def test_the_handler_in_a_pipeline_of_ones_own(export, expected):
    handler = ExportHandler(export, batch_size=2)
    rows = [(f"k{i}", {"text": t} if i % 2 else t) for i, t in enumerate(TEXTS)]
    rows += [("none", {"b": 1}), ("wrong", 5)]
    wanted = [(f"k{i}", [round(v, 4) for v in expected[t]]) for i, t in enumerate(TEXTS)]
    wanted += [
        (
            "none",
            "no column 'text' for the input 'text'; the columns are ['b']: name it by "
            "columns={'text': ...}, or --column text=... of the command",
        ),
        ("wrong", "expected a dict or a string, got int"),
    ]

    def shown(keyed):
        key, result = keyed
        found = result.inference
        if isinstance(found, Failure):
            return key, found.reason
        return key, [round(v, 4) for v in found["logits"]]

    with test_pipeline.TestPipeline(runner="FnApiRunner") as pipeline:
        found = pipeline | beam.Create(rows) | RunInference(KeyedModelHandler(handler))
        assert_that(found | beam.Map(shown), equal_to(wanted))


def test_the_handler_is_pickled_without_the_model(export):
    handler = ExportHandler(export)
    model = handler.load_model()
    (found,) = handler.run_inference(["rain"], model)
    data = pickle.dumps(handler)
    assert len(data) < 2000
    (again,) = pickle.loads(data).run_inference(["rain"], model)
    assert again.inference == found.inference and again.model_id == str(export)


def test_an_export_of_another_file_system_is_copied(export):
    tf.io.gfile.makedirs("ram://exports/1")
    for directory, _, files in tf.io.gfile.walk(str(export)):
        for name in files:
            path = Path(directory, name)
            place = f"ram://exports/1/{path.relative_to(export)}"
            tf.io.gfile.makedirs(place.rpartition("/")[0])
            tf.io.gfile.copy(str(path), place)
    handler = ExportHandler("ram://exports/1")
    assert handler.fingerprint() == ExportHandler(export).fingerprint()
    assert handler.export == "ram://exports/1"
    copy = Path(local_copy("ram://exports/1"))
    assert copy != export and (copy / "saved_model.pb").is_file()
    assert local_copy("ram://exports/1") == str(copy)  # one per process


def test_rows_that_the_graph_rejects_leave_the_others(tmp_path):
    """By a stand-in for a graph, which checks a batch and names none of its rows."""
    (tmp_path / "a.txt").write_text("a\nbad\nc\nbad\n")
    inputs = {"text": {"dtype": "string", "shape": [None]}}
    reader = RowReader(find_files(tmp_path / "a.txt"), inputs, None)

    def model(columns):
        if "bad" in columns["text"]:
            raise tf.errors.InvalidArgumentError(None, None, "node\nno such span\n\t [[{{node}}]]")
        return {"size": np.array([len(text) for text in columns["text"]])}

    rejected = {}
    found = ask(model, reader, list(reader), rejected)
    assert found == [{"size": 1}, {}, {"size": 1}, {}]
    assert rejected == {1: "no such span", 3: "no such span"}
    with pytest.raises(ValueError, match=r"a\.txt, line 2: no such span"):
        ask(model, reader, list(reader))


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv", b'a\n"x\ny\n', r"a\.csv, record at line 2: not valid CSV"),
        ("a.csv", b"b\nx\n", r"a\.csv, line 1: no column 'a'"),
        ("a.csv", b"a,b,a\nx,y,z\n", "several columns 'a'"),
        ("a.jsonl.gz", gzip.compress(b'{"a": "x"}\n' * 99, mtime=0)[:-9], "damaged gzip"),
        ("a.parquet", b"PAR1", r"a\.parquet, after row 0: not Parquet"),
        ("a.json", b"[]", "extension '.json': expected .jsonl"),
        ("a.jsonl", b"\n", "there is no row in"),
    ],
)
def test_files_that_cannot_be_read_end_the_run_before_it_begins(
    export, tmp_path, name, data, message
):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=message):
        answer_shards(export, tmp_path / name, tmp_path / "out", **OPTIONS)
    assert not (tmp_path / "out").exists()


def test_other_folders_and_arguments_are_refused(export, tmp_path):
    (tmp_path / "a.txt").write_text("rain\n")
    with pytest.raises(FileExistsError, match=r"contains a\.txt, not answers"):
        answer_shards(export, tmp_path / "a.txt", tmp_path, **OPTIONS)
    with pytest.raises(ValueError, match="no signature 'x'"):
        answer_shards(export, tmp_path / "a.txt", tmp_path / "out", "x", **OPTIONS)
    with pytest.raises(ValueError, match="window=0"):
        ExportHandler(export, window=0)
    assert isinstance(ExportHandler(export).load_model(), ExportedModel)


def test_the_tool_passes_the_options_of_beam_on(export, tmp_path, capsys):
    (tmp_path / "a.csv").write_text("a\nrain\nred boats\n")
    command = [str(export), str(tmp_path / "a.csv"), "-o", str(tmp_path / "out")]
    options = ["--column", "text=a", "--rows_per_shard", "1", "--direct_num_workers=2"]
    answer_with_beam.main([*command, *options])
    assert json.loads(capsys.readouterr().out) == {"rows": 2, "answered": 2, "failed": 0}
    assert len(lines_of(tmp_path / "out", "answers")) == 2
    with pytest.raises(SystemExit):
        answer_with_beam.main([*command, "--column", "a"])
