"""Versions: found, swapped under load, labelled, broken; presets and runs; the end of a server."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import tensorflow as tf

from keras_bert.explain import attention, attributions
from keras_bert.server import create_app, serve
from keras_bert.server.served_model import default_name, find_place, refusal
from tests.server.half_model import write_model
from tests.server.live import Gate, in_thread, live

ROOT = Path(__file__).resolve().parents[2]
TINY = ROOT / "tests" / "golden" / "tiny_one_block"


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """Exports that add 1, 2 and 3: the number of the version that answers."""
    folder = tmp_path_factory.mktemp("exports")
    for number in (1, 2, 3):
        write_model(folder / str(number), add=float(number))
    return folder


def place(exports, base, number, as_=None):
    """Puts a version into a base folder, as tools/serving/place_version.py does."""
    hidden = base / f".{number}"
    shutil.copytree(exports / str(number), hidden)
    os.rename(hidden, base / str(as_ or number))


def answer_of(server, where=""):
    status, answer = server.predict({"instances": [0.0]}, where=where)
    return answer["predictions"][0] if status == 200 else answer["error"]


def states(server):
    status, answer = server.ask("GET", "/v1/models/model")
    return {int(v["version"]): v["state"] for v in answer["model_version_status"]}


def test_a_new_version_takes_over_and_the_old_one_answers_what_it_has(
    exports, tmp_path, monkeypatch
):
    place(exports, tmp_path, 1)
    with live({"model": tmp_path}) as server:
        assert answer_of(server) == 1.0
        gate = Gate(monkeypatch)
        # One in the model, one in the queue of version 1.
        held = [in_thread(answer_of, server)]
        gate.entered.acquire()
        held.append(in_thread(answer_of, server))
        while not server.metric("keras_bert_queue_rows"):
            pass
        place(exports, tmp_path, 2)
        while states(server) != {1: "UNLOADING", 2: "AVAILABLE"}:
            pass
        newer = in_thread(answer_of, server)
        gate.open.set()
        for thread, _ in (*held, newer):
            thread.join()
        assert [results for _, results in (*held, newer)] == [[1.0], [1.0], [2.0]]
        while states(server) != {1: "END", 2: "AVAILABLE"}:
            pass
        assert answer_of(server, "/versions/1").startswith("Servable not found")


def test_many_swaps_under_load_lose_nothing(exports, tmp_path):
    place(exports, tmp_path, 1)
    found, ending = [], threading.Event()

    def asks():
        while not ending.is_set():
            found.append(answer_of(server))

    with live({"model": tmp_path}) as server:
        threads = [threading.Thread(target=asks) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(2, 8):
            place(exports, tmp_path, 1 + number % 3, as_=number)
            while states(server).get(number) != "AVAILABLE":
                pass
            if number > 3:
                shutil.rmtree(tmp_path / str(number - 2))
        ending.set()
        for thread in threads:
            thread.join()
        assert answer_of(server) == 2.0
    assert set(found) <= {1.0, 2.0, 3.0} and len(found) > 6


def test_a_deleted_version_brings_back_the_one_before(exports, tmp_path):
    place(exports, tmp_path, 1)
    place(exports, tmp_path, 2)
    with live({"model": tmp_path}) as server:
        assert answer_of(server) == 2.0 and states(server) == {2: "AVAILABLE"}
        shutil.rmtree(tmp_path / "2")
        while answer_of(server) != 1.0:
            pass
        # Of the last version the loaded one stays.
        shutil.rmtree(tmp_path / "1")
        model = server.server.models["model"]
        before = model.looks
        while model.looks < before + 3:
            pass
        assert answer_of(server) == 1.0


def test_a_broken_version_does_not_take_over_until_it_is_mended(exports, tmp_path, caplog):
    place(exports, tmp_path, 1)
    caplog.set_level(logging.ERROR, "keras_bert.server")
    with live({"model": tmp_path}) as server:
        shutil.copytree(exports / "2", tmp_path / "2", ignore=shutil.ignore_patterns("*.pb"))
        while states(server).get(2) != "END":
            pass
        status = server.ask("GET", "/v1/models/model/versions/2")[1]["model_version_status"][0]
        assert status["status"]["error_code"] == "UNKNOWN"
        assert status["status"]["error_message"] and str(tmp_path) not in json.dumps(status)
        assert answer_of(server) == 1.0
        shutil.copy(exports / "2" / "saved_model.pb", tmp_path / "2")
        while answer_of(server) != 2.0:
            pass
    assert caplog.text.count("version 2 was not loaded") == 1


def test_labels(exports, tmp_path, caplog):
    labels = tmp_path / "version_labels.json"

    def write(**content):
        (tmp_path / "new").write_text(json.dumps(content))
        os.rename(tmp_path / "new", labels)

    place(exports, tmp_path, 1)
    place(exports, tmp_path, 2)
    write(stable=1)
    with live({"model": tmp_path}) as server:
        assert answer_of(server, "/labels/stable") == 1.0 and answer_of(server) == 2.0
        assert states(server) == {1: "AVAILABLE", 2: "AVAILABLE"}
        place(exports, tmp_path, 3)
        while answer_of(server) != 3.0:
            pass
        assert answer_of(server, "/labels/stable") == 1.0
        write(stable=1, canary=3)
        while answer_of(server, "/labels/canary") != 3.0:
            pass
        write(stable=9, canary=3)  # there is no such version: the label stays
        model = server.server.models["model"]
        before = model.looks
        while model.looks < before + 3:
            pass
        assert answer_of(server, "/labels/stable") == 1.0
        labels.write_text("{")
        while "version_labels.json" not in caplog.text:
            pass
        write(stable=3)
        while (
            answer_of(server, "/labels/stable") != 3.0
            or 1 in server.server.models["model"].labels.values()
        ):
            pass
        assert answer_of(server, "/labels/canary").startswith("Unrecognized")


def test_several_models_by_name(exports, exported):
    with live({"one": exports / "1", "tiny": exported}) as server:
        assert server.predict({"instances": [0]}, "one")[1] == {"predictions": [1.0]}
        assert server.predict({"instances": ["rain"]}, "tiny")[0] == 200
        names = [model["name"] for model in server.ask("GET", "/v1/keras_bert/models")[1]]
        assert names == ["one", "tiny"]
        # The number of an export is the name of its folder.
        status = server.ask("GET", "/v1/models/one")[1]["model_version_status"]
        assert [v["version"] for v in status] == ["1"]


@pytest.mark.thorough
def test_the_preset_of_a_run_is_exported_and_served(tmp_path):
    from keras_bert import BertClassifier

    model = BertClassifier.from_preset(TINY)
    run = tmp_path / "reviews"
    model.save_to_preset(run / "preset")
    (run / "metrics.json").write_text('{"accuracy": 0.75, "spearman": NaN}')
    label, probability = model.classify(["rain wind"], verbose=0)
    with live(run) as server:
        status, answer = server.predict({"instances": ["rain wind"]}, "reviews")
        assert status == 200 and answer["predictions"][0]["label"] == label[0]
        assert answer["predictions"][0]["probability"] == pytest.approx(probability[0])
        (said,) = server.ask("GET", "/v1/keras_bert/models")[1]
        assert said["scores"] == {"accuracy": 0.75, "spearman": None} and said["explains"]
        # Why: what `attributions` says; of one row, and of presets alone.
        path, body = "/v1/keras_bert/explain/reviews", {"inputs": {"text": ["rain wind"]}}
        status, why = server.ask("POST", path, json.dumps(body))
        (right,) = attributions(model, ["rain wind"])
        assert status == 200 and why["texts"] == ["rain wind"] and why["meaning"] == right.meaning
        assert [word["score"] for word in why["words"]] == pytest.approx(
            right.words.scores.tolist(), abs=1e-5
        )
        assert [[word["start"], word["end"]] for word in why["words"]] == [[0, 4], [5, 9]]
        for wrong, said in (({"text": ["a", "b"]}, "2 rows"), ({"word": ["a"]}, "'text'")):
            status, answer = server.ask("POST", path, json.dumps({"inputs": wrong}))
            assert status == 400 and said in answer["error"]
        assert server.ask("POST", "/v1/keras_bert/explain/no", json.dumps(body))[0] == 404
        # Attention: what `attention` says, by word.
        status, view = server.ask("POST", "/v1/keras_bert/attention/reviews", json.dumps(body))
        assert status == 200 and view == attention(model, "rain wind").by_word().view_data()
        folder = server.server.models["reviews"].place.export
        assert folder.is_dir()
        assert folder.parent.stat().st_mode & 0o077 == 0  # nobody else reads it
    assert not folder.exists()


def test_a_run_with_an_export_is_served_from_it(exports, tmp_path):
    (tmp_path / "run" / "preset").mkdir(parents=True)
    shutil.copytree(exports / "3", tmp_path / "run" / "export")
    found = find_place(tmp_path / "run")
    assert found.export == tmp_path / "run" / "export"
    assert found.task == str(tmp_path / "run" / "preset")  # which explains its answers
    shutil.rmtree(tmp_path / "run" / "export")
    place(exports, tmp_path / "run", 2, as_="export_")
    (tmp_path / "run" / "export_").rename(tmp_path / "run" / "2")
    (tmp_path / "run" / "export").mkdir()
    (tmp_path / "run" / "2").rename(tmp_path / "run" / "export" / "2")
    found = find_place(tmp_path / "run")  # versions that come and go may be others' weights
    assert found.base == tmp_path / "run" / "export" and found.task is None


def test_names_and_sources(exports, tmp_path):
    assert default_name(exports / "1") == exports.name
    assert default_name("bert_mini_en_public_domain") == "bert_mini_en_public_domain"
    assert default_name(tmp_path / "a b") == "a-b"
    with pytest.raises(FileNotFoundError, match="expected an export, a folder with"):
        create_app({"model": tmp_path})
    with pytest.raises(ValueError, match="expected no space, slash or colon"):
        create_app({"a/b": exports / "1"})
    with pytest.raises(ValueError, match="two of one name"):
        create_app([exports / "1", exports / "2"])
    with pytest.raises(ValueError, match="expected one or more"):
        create_app({})
    with pytest.raises(ValueError, match="max_wait=-1"):
        create_app(exports / "1", max_wait=-1)
    with pytest.raises(ValueError, match="threads=0"):
        create_app(exports / "1", threads=0)


def test_a_model_that_cannot_be_loaded_ends_the_server(exports, tmp_path):
    shutil.copytree(exports / "1", tmp_path / "1")
    shutil.rmtree(tmp_path / "1" / "variables")
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"damaged")
    with pytest.raises(RuntimeError, match="model 'broken': no version could be loaded"):
        serve({"broken": tmp_path / "1"}, port=0, verbose=0)


def test_an_address_in_use(exports):
    with live({"model": exports / "1"}) as server:
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{server.port}"):
            serve({"model": exports / "1"}, port=server.port, verbose=0)


def test_the_end_answers_what_was_accepted_and_closes_connections(exports, monkeypatch):
    with live({"model": exports / "1"}) as server:
        gate = Gate(monkeypatch)
        held = [in_thread(answer_of, server)]
        gate.entered.acquire()
        idle, late = server.connection(), server.connection()
        idle.connect()
        late.connect()
        held.append(in_thread(answer_of, server))
        while not server.metric("keras_bert_queue_rows"):
            pass
        server.running.should_exit = True
        while not server.server.draining:
            pass
        with pytest.raises(OSError):
            server.ask("GET", "/healthz")  # no new connection
        # A request on a connection that was open is still answered, and ends it.
        late.request("POST", "/v1/models/model:predict", b'{"instances": [1]}')
        gate.open.set()
        answer = late.getresponse()
        assert answer.status == 200 and answer.headers["Connection"] == "close"
        assert json.loads(answer.read()) == {"predictions": [1.5]}
        for thread, results in held:
            thread.join()
            assert results == [1.0]
        idle.close()


def refused(*parts):
    """The message of a TensorFlow graph's own check."""

    @tf.function
    def check(right):
        with tf.control_dependencies([tf.Assert(right, list(parts))]):
            return tf.identity(right)

    with pytest.raises(tf.errors.InvalidArgumentError) as found:
        check(tf.constant(False))
    return str(found.value)


def test_what_a_graph_refuses_is_said_without_its_stack():
    names = {"text": {}, "token_ids": {}}
    for parts, said in (
        (["input 'text' is no valid UTF-8, in text", 1],
         "input 'text' is no valid UTF-8, in text 1"),
        (["input 'count' lies outside of 0 to", 1, "the words"],
         "input 'count' lies outside of 0 to 1 the words"),
        (["spans overlap or are outside their text, in row", 3, [[[0, 6], [5, 9]]]],
         "spans overlap or are outside their text, in row 3"),
        (["token_ids lie outside of 0 to 9"], "token_ids lie outside of 0 to 9"),
    ):  # fmt: skip
        assert refusal(refused(*parts), names) == said
    assert refusal("node /home/me/model: anything", names) == (
        "inputs text, token_ids: the model refused them"
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["steady", "odd", "swap", "term"])
def test_the_load_tool(mode, exported, tmp_path):
    """The server in a process of its own: nothing lost, nothing wrong, nothing leaked."""
    arguments = ["--minutes", "0.1", "--seconds_alone", "2", "--rounds", "2", "--clients", "5"]
    arguments += ["--odd", "200", "--swaps", "3", "--port", str(free_port()), "--json"]
    done = subprocess.run(
        [sys.executable, "tools/serve_load.py", str(exported), "--mode", mode, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        timeout=3600,
        text=True,
    )
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["problems"] == {} and done.returncode == 0
    assert report["requests"] > 10


def free_port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


@pytest.mark.thorough
def test_signals_end_a_server_in_the_main_thread(exports):
    """SIGTERM: status 0 and no traceback, also with a keep-alive connection."""
    code = (
        "import sys; from keras_bert.server import serve\n"
        f"serve({{'model': {str(exports / '1')!r}}}, port=int(sys.argv[1]))"
    )
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-c", code, str(port)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if f"serving model at http://127.0.0.1:{port}" in line:
                process.send_signal(signal.SIGTERM)
    assert process.wait() == 0, "".join(lines)
    assert "Traceback" not in "".join(lines) and "draining 0 requests" in lines[-1]
