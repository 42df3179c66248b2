import copy
import json
import shutil

import pytest

from tools import serve_check
from tools.serving import fresh_process, warmup
from tools.serving.differences import value_difference
from tools.serving.examples import by_rows
from tools.serving.ops import OPS, SERVERS, servers_with_all, support


@pytest.fixture(scope="module")
def fresh(request):
    """One fresh process for all tests here, and what it said when it loaded the export."""
    with serve_check.FreshProcess() as process:
        exported = request.getfixturevalue("exported")  # made while the process starts
        broken = exported.parent / "broken"
        broken.mkdir()
        (broken / "saved_model.pb").write_bytes(b"no proto")
        assert "error" in process.ask({"load": str(broken), "threads": None})
        yield process, process.ask({"load": str(exported), "threads": 1})


@pytest.fixture
def same_process(fresh, monkeypatch):
    """serve_check with the process that is there already."""
    process, loaded = fresh

    class Process:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def ask(self, request, *arguments):
            return copy.deepcopy(loaded) if "load" in request else process.ask(request, *arguments)

    monkeypatch.setattr(serve_check, "FreshProcess", Process)


def run(capsys, *arguments):
    status = serve_check.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def copied(exported, tmp_path, change=lambda contract: None):
    folder = tmp_path / "copy"
    shutil.copytree(exported, folder)
    file = folder / "assets.extra" / "contract.json"
    contract = json.loads(file.read_text(encoding="utf-8"))
    change(contract)
    file.write_text(json.dumps(contract), encoding="utf-8")
    return folder, contract


def test_an_export_is_checked(exported, same_process, capsys, tmp_path):
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    folder, contract = copied(exported, tmp_path)
    table = tmp_path / "texts.csv"
    table.write_text('sentence,label\n"rain, wind",1\nthe harbour,0\nboats,1\n', encoding="utf-8")
    status, out, _ = run(
        capsys,
        *(folder, "--json", "--warmup", "--texts", table, "--column", "sentence"),
        *("--batch_sizes", 1, 5, "--seconds", 0.2),
    )
    assert status == 0
    report = json.loads(out)
    assert report["differences"] == [] and report["examples"] == len(contract["examples"])
    assert set(report["ops"]) == {"FastBertNormalize", "FastWordpieceTokenizeWithOffsets"}
    assert report["unregistered"] == [] and report["tensorflow_text"]
    assert report["servers"]["FastBertNormalize"]["missing"] == ["2.10", "2.11.0"]
    assert report["servers_with_all"] == ["images of 2025-02", "2026 source"]
    for row, batch in zip(report["speed"], (1, 5), strict=True):
        assert row["batch"] == batch and row["calls"] >= 20
        assert 0 < row["p50_ms"] <= row["p99_ms"]
        # Rows a second follow from the mean, which lies between the fastest call and the slowest.
        assert row["rows_per_second"] > 0.2 * batch / (row["p99_ms"] / 1e3)
    written = tf.data.TFRecordDataset(str(folder / warmup.FILE)).as_numpy_iterator()
    logs = [prediction_log_pb2.PredictionLog.FromString(log) for log in written]
    requests = [log.predict_log.request for log in logs]
    assert len(requests) == report["warmup_requests"] > 0
    first = tf.make_ndarray(requests[0].inputs["text"])
    assert first.dtype == object
    assert [text.decode() for text in first] == contract["examples"][0]["request"]["inputs"]["text"]


def test_tables_are_printed(exported, same_process, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = run(capsys, exported, "--batch_sizes", 3, "--seconds", 0.05)
    assert status == 0
    for part in ("the same answers", "FastBertNormalize: registered by", "p99 ms", "rows/s"):
        assert part in out


def test_what_differs_is_named(exported, same_process, capsys, tmp_path):
    def change(contract):
        outputs = contract["examples"][0]["reply"]["outputs"]
        outputs["label"][1] = "other"
        outputs["logits"][0][1] += 2e-5
        contract["examples"][1]["reply"]["outputs"]["probability"][0] += 5e-6
        contract["signatures"]["pair"]["inputs"]["text_pair"]["dtype"] = "int32"

    folder, _ = copied(exported, tmp_path, change)
    before = sorted(folder.rglob("*"))
    status, out, err = run(capsys, folder, "--json", "--warmup", "--skip_measuring")
    assert status == 1
    problems = json.loads(out)["differences"]
    assert len(problems) == 3
    assert problems[0].startswith("pair, inputs: the contract says") and "int32" in problems[0]
    assert problems[1].startswith("example 0 (serving_default): output label[1]: ")
    assert problems[1].endswith("expected 'other'")
    assert problems[2].startswith("example 0 (serving_default): output logits[0][1]: ")
    assert all(problem in err for problem in problems)
    assert sorted(folder.rglob("*")) == before  # no warm-up of a model that answers wrongly


def test_errors_of_the_model_are_replies(fresh):
    process, _ = fresh
    reply = process.ask({"signature": "serving_default", "inputs": {"txt": ["a"]}})
    assert "no input 'txt'" in reply["error"]
    long = {name: [[1] * 14] for name in ("token_ids", "segment_ids", "padding_mask")}
    reply = process.ask({"signature": "tokens", "inputs": long})
    assert "longer than 13" in reply["error"]
    reply = process.ask({"signature": "serving_default", "inputs": {"text": [{"b64": "//4="}]}})
    assert "no valid UTF-8" in reply["error"]  # and the process lives
    reply = process.ask({"signature": "serving_default", "inputs": {"text": []}})
    assert reply["outputs"]["logits"] == {"dtype": "float32", "shape": [0, 3], "value": []}


def test_a_dead_process_is_said(monkeypatch, tmp_path, exported, capsys):
    worker = tmp_path / "worker.py"
    worker.write_text("import sys; sys.exit('out of memory')")
    monkeypatch.setattr(fresh_process, "WORKER", worker)
    status, out, _ = run(capsys, exported)
    assert status == 1 and "ended with status 1:\nout of memory" in out


def test_missing_files_are_named(tmp_path, capsys):
    assert run(capsys, tmp_path)[1].endswith("no saved_model.pb\n")
    (tmp_path / "saved_model.pb").touch()
    assert "has no assets.extra/contract.json" in run(capsys, tmp_path)[1]
    (tmp_path / "assets.extra").mkdir()
    contract = tmp_path / "assets.extra" / "contract.json"
    contract.write_text('{"format": 3}')
    status, out, _ = run(capsys, tmp_path)
    assert status == 1 and "has format 3, expected 1" in out


@pytest.mark.parametrize(
    "expected, found, tolerance, difference",
    [
        ([1.0, [2]], [1.000009, [2]], 1e-5, None),
        ([1.0], [1.00002], 1e-5, "[0]: 1.00002, expected 1.0"),
        (3000.0, 3000.02, 1e-5, None),  # relative above 1
        (3000.0, 3000.04, 1e-5, ": 3000.04, expected 3000.0"),
        (float("nan"), float("nan"), 1e-5, None),
        (float("nan"), 0.0, 1e-5, ": 0.0, expected nan"),
        ([7, 8], [7, 9], None, "[1]: 9, expected 8"),
        ([7], [7, 9], None, ": 2 parts, expected 1"),
        ([["a"], ["é"]], [["a"], ["e"]], None, "[1][0]: 'e', expected 'é'"),
        ([], [[]], 1e-5, ": 1 parts, expected 0"),
        ("1", 1, 1e-5, ": 1, expected '1'"),
        ([1], 1, 1e-5, ": 1, expected [1]"),
    ],
)
def test_values_are_compared(expected, found, tolerance, difference):
    assert value_difference(expected, found, tolerance) == difference


def test_ops_outside_the_table_are_unknown():
    assert str(support("NoSuchOp")) == (
        "not in the table: it is not known which servers register it"
    )
    assert servers_with_all(["FastBertNormalize", "NoSuchOp"]) == ()
    assert servers_with_all(["FastBertNormalize", "TFText>RoundRobinTrim"]) == ("2026 source",)
    assert servers_with_all([]) == SERVERS
    assert all(len(found) == len(SERVERS) for found in OPS.values())


# tensorflow-serving-api 2.21.0 made these bytes: PredictionLog(predict_log=PredictLog(request=...))
# for the signature "pair" with text ["é", bytes ff] and text_pair ["", "b"].
EXPECTED = (
    "323f0a3d0a061a0470616972121a0a09746578745f70616972120d0807120412020802420042016212170a0474"
    "657874120f08071204120208024202c3a94201ff"
)


def test_warmup_bytes_are_those_of_the_proto():
    inputs = {"text": ["é", {"b64": "/w=="}], "text_pair": ["", "b"]}
    made = warmup.prediction_log("pair", inputs, {"text": "string", "text_pair": "string"})
    assert made.hex() == EXPECTED


def test_warmup_requests_of_ids():
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    ids = [[2, 5, 3], [2, 3, 0]]
    made = warmup.prediction_log("tokens", {"token_ids": ids}, {"token_ids": "int32"}, "some")
    expected = prediction_log_pb2.PredictionLog()
    request = expected.predict_log.request
    request.model_spec.name, request.model_spec.signature_name = "some", "tokens"
    request.inputs["token_ids"].CopyFrom(tf.make_tensor_proto(ids, tf.int32))
    assert prediction_log_pb2.PredictionLog.FromString(made) == expected


def test_a_missing_api_package_is_named_first(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(serve_check, "find_spec", lambda name: None)
    status, out, _ = run(capsys, tmp_path, "--warmup")
    assert status == 1 and out.startswith("--warmup needs `pip install tensorflow-serving-api`")


def tagged(flat):
    """A contract with one output a row, or with flat ones and row_splits."""
    outputs = {"word": ["a", "b", "c"], "row_splits": [0, 1, 3]} if flat else {"label": ["x", "y"]}
    reply = outputs if flat else outputs["label"]
    request = {"signature_name": "serving_default", "inputs": {"text": ["a", "b c"]}}
    tokenize = {"signature_name": "tokenize", "inputs": {"text": ["a"]}}
    metadata = {"signature_name": "metadata", "inputs": {}}
    spec = {"dtype": "string", "shape": [None]}
    signature = {"inputs": {"text": spec}, "outputs": {name: spec for name in outputs}}
    return {
        "signatures": {
            "serving_default": signature,
            "tokenize": {"inputs": {"text": spec}, "outputs": {"ids": spec, "row_splits": spec}},
            "metadata": {"inputs": {}, "outputs": {"metadata": spec}},
        },
        "examples": [
            {"request": request, "reply": {"outputs": reply}},
            {"request": request, "reply": {"error": "no"}},
            {"request": tokenize, "reply": {"outputs": {"ids": [1, 2], "row_splits": [0, 2]}}},
            {"request": metadata, "reply": {"outputs": "{}"}},
        ],
    }


def test_warmup_leaves_out_what_batching_refuses():
    asked = [request["signature_name"] for request in warmup.choose(tagged(flat=False))]
    assert asked == ["serving_default"]
    asked = [request["signature_name"] for request in warmup.choose(tagged(flat=True))]
    assert asked == ["serving_default", "tokenize"]
    contract = tagged(flat=False)
    assert [by_rows(contract["examples"][i], contract) for i in (0, 2, 3)] == [True, False, False]
    contract["examples"] *= 1001
    assert len(warmup.choose(contract)) == warmup.LIMIT == 1000


@pytest.mark.thorough
def test_texts_of_files(tmp_path):
    def rows(name, content, columns=(), names=("text",)):
        (tmp_path / name).write_text(content, encoding="utf-8")
        return serve_check.file_rows(str(tmp_path / name), list(columns), list(names))

    assert rows("a.txt", "one\n\ntwo\n") == {"text": ["one", "", "two"]}
    assert rows("a.tsv", 'text\tid\nsays "no\t1\n') == {"text": ['says "no']}
    both = rows(
        "a.jsonl",
        '{"q": "who", "context": "me"}\n',
        ["question=q"],
        ["question", "context"],
    )
    assert both == {"question": ["who"], "context": ["me"]}
    for arguments, message in [
        (("b.csv", "a,b\n1,2\n", ["c"]), "b.csv, row 1: no column c"),
        (("b.csv", "a,b\n", ["a"]), "no rows"),
        (("b.txt", "a\n", ["a"]), "one text a line"),
        (("b.csv", "a\n1\n", ["a"], ["question", "context"]), "give INPUT=COLUMN"),
        (("b.csv", "a\n1\n", ["quest=a"], ["question", "context"]), "no input quest"),
    ]:
        with pytest.raises(serve_check.CheckError, match=message):
            rows(*arguments)
