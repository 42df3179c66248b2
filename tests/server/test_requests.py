"""Requests over HTTP: limits, keys, a full queue, clients that leave, odd requests, our clients."""

import asyncio
import contextlib
import gzip
import json
import re
import threading

import pytest

from keras_bert.server import create_app
from keras_bert.server.protection import OwnHosts
from keras_bert.server.rest import LARGE, Limits, RequestError, parse_object
from keras_bert.server.running import OneWrite
from keras_bert.server.served_model import chosen_threads
from keras_bert.serving.export_contract import read_contract
from tests.server.live import PATIENCE, Gate, in_thread, live
from tools.serving import client_rest
from tools.serving.odd_requests import odd_requests

PREDICT = "/v1/models/model:predict"


@pytest.fixture(scope="module")
def server(exported):
    limits = {"max_rows": 7, "max_text_length": 50, "max_body": 20_000, "max_queue": 3}
    with live({"model": exported}, **limits) as found:
        yield found


def test_every_example_of_the_contract_is_answered_as_it_says(server, exported):
    examples = read_contract(exported)["examples"]
    assert len(examples) >= 5
    for example in examples:
        status, answer = server.predict(example["request"])
        assert status == 200 and answer.keys() == example["reply"].keys()
        found, expected = answer["outputs"], example["reply"]["outputs"]
        if not isinstance(expected, dict):
            found, expected = {"only": found}, {"only": expected}
        for name, value in expected.items():
            if name in ("logits", "probability", "only") and example["request"][
                "signature_name"
            ] not in ("metadata",):
                flat = [pytest.approx(v, abs=1e-5) for v in value]
                assert found[name] == flat
            else:
                assert found[name] == value


def test_our_rest_client_asks_it_unchanged(server, capsys):
    url = f"http://127.0.0.1:{server.port}"
    client_rest.main(["rain wind", "storm", "--server", url, "--model", "model"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row.keys() for row in rows] == [{"label", "probability", "logits"}] * 2
    pair = ["--signature", "pair", "--input", "text=rain", "--input", "text_pair=wind"]
    client_rest.main([*pair, "--server", url, "--model", "model", "--version", "1"])
    assert json.loads(capsys.readouterr().out)["label"]
    with pytest.raises(SystemExit, match="status 404: Servable not found for request: Latest.no"):
        client_rest.main(["rain", "--server", url, "--model", "no"])


@pytest.mark.thorough
def test_odd_requests_are_refused_by_the_name_of_their_input(exported):
    contract, wrong, kinds = read_contract(exported), [], set()
    with live({"model": exported}, threads=2) as server:
        for request in odd_requests("model", contract, 99, seed=3):
            kinds.add(request.kind)
            status, answer = server.ask(request[1], request[2], request.body, request.headers)
            error = answer.get("error", "")
            if not 400 <= status < 500 or request.named not in error or str(exported) in error:
                wrong.append((request.kind, status, request.named, answer))
        assert not wrong
        assert len(kinds) > 30
        texts = ["rain", "wind and rain", "storm"] * 7  # which two threads share
        found = server.predict({"instances": texts})[1]["predictions"]
        single = [server.predict({"instances": [text]})[1]["predictions"][0] for text in texts[:3]]
        assert [row["logits"] for row in found] == [
            pytest.approx(row["logits"], abs=1e-5) for row in single * 7
        ]
        assert server.metric("keras_bert_batch_rows_count") >= 3 + 2


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"instances": ["rain"] * 8}, 400, "instances: 8 rows; expected at most 7"),
        ({"inputs": ["rain"] * 8}, 400, "'text' has 8 rows; expected at most 7"),
        ({"inputs": ["a" * 51]}, 400, "'text'[0]: 51 characters; expected at most 50"),
        ({"inputs": ["rain", "é" * 51]}, 400, "'text'[1]: 51 characters"),
        ({"inputs": ["rain"], "more": "x" * 20_000}, 413, "body: expected at most 20,000 bytes"),
    ],
)
def test_limits(server, body, status, message):
    found, answer = server.predict(body)
    assert found == status and message in answer["error"]


def test_a_body_at_the_limits_is_answered(server):
    assert server.predict({"instances": ["é" * 50] * 7})[0] == 200
    body = json.dumps({"instances": ["rain"]}).encode()
    assert server.ask("POST", PREDICT, body + b" " * (20_000 - len(body)))[0] == 200


BOMBS = {
    "lists": b'{"instances": ["rain"], "x": [' + b"[]," * 2_700_000 + b"0]}",
    "objects": b'{"instances": ["rain"], "x": [' + b'{"a":{}},' * 900_000 + b"0]}",
    "strings": b'{"instances": ["rain"], "x": [' + b'"",' * 2_700_000 + b"0]}",
    "depth": b'{"instances": ' + b"[" * 8_000_000,
    "depth below the count": b'{"instances": ' + b"[" * 100_000 + b" " * 100_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_json_of_too_many_values_is_not_parsed(name, monkeypatch):
    def parse(text, *args):
        assert name.startswith("depth")  # which the parser itself ends
        return loads(text, *args)

    loads = json.loads
    monkeypatch.setattr("keras_bert.server.rest.json.loads", parse)
    with pytest.raises(RequestError) as error:
        parse_object(BOMBS[name], Limits())
    assert error.value.status_code == 400
    expected = "expected at most 131,072 lists, objects, keys and strings|nested too deeply"
    assert re.search(expected, error.value.detail)


def test_marks_in_texts_are_no_values():
    texts = ['[{"a": "b\\\\"}]' * 5000] * 30 + ["\\", '"', '\\"', "\\\\"] * 40
    body = json.dumps({"instances": texts}).encode()
    assert body.count(b"[") > 131_072
    assert parse_object(body, Limits()) == {"instances": texts}


@pytest.mark.thorough
def test_others_are_answered_while_a_large_body_is_parsed(exported, monkeypatch):
    parsing, go_on = threading.Event(), threading.Event()

    def parse(text, *args):
        if len(text) > LARGE:
            parsing.set()
            assert go_on.wait(PATIENCE)
        return loads(text, *args)

    loads = json.loads
    monkeypatch.setattr("keras_bert.server.rest.json.loads", parse)
    body = json.dumps({"instances": ["rain"]}).encode() + b" " * LARGE
    with live({"model": exported}) as server:
        try:
            large = in_thread(server.ask, "POST", PREDICT, body)
            refused = in_thread(server.ask, "POST", PREDICT.replace("predict", "classify"), body)
            assert parsing.wait(PATIENCE)
            assert server.predict({"instances": ["wind"]})[0] == 200
        finally:
            go_on.set()
        for thread, results, expected in ((*large, 200), (*refused, 400)):
            thread.join()
            assert results[0][0] == expected


def test_a_body_in_pieces_without_a_length(server):
    def pieces():
        yield b'{"instances": ["ra'
        yield b'in"]}'

    def endless():
        while True:
            yield b" " * 1000

    assert server.ask("POST", PREDICT, pieces())[0] == 200
    with server.connected() as connection:
        # Sent by hand: the answer comes before the end of the body.
        connection.putrequest("POST", PREDICT)
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        for _ in range(21):
            connection.send(b"3e8\r\n" + b" " * 1000 + b"\r\n")
        assert connection.getresponse().status == 413


def test_a_body_that_does_not_come(server, monkeypatch):
    monkeypatch.setattr("keras_bert.server.app._BODY_SECONDS", 0.01)
    with server.connected() as connection:
        connection.putrequest("POST", PREDICT)
        connection.putheader("Content-Length", "100")
        connection.endheaders()
        answer = connection.getresponse()
        assert answer.status == 408 and answer.headers["Connection"] == "close"
        assert "body: expected it whole within" in json.loads(answer.read())["error"]


def test_a_head_without_end(server):
    with server.connected() as connection:
        connection.putrequest("GET", "/healthz")
        with contextlib.suppress(OSError):  # closed while we still write
            for number in range(40):
                connection.putheader(f"X-{number}", "a" * 100_000)
            connection.endheaders()
        try:
            assert connection.getresponse().status == 400
        except OSError:
            pass
    assert server.ask("GET", "/healthz")[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "127.0.0.1:8501"}, 200),
        ({"host": "LOCALHOST"}, 200),
        ({"host": "[::1]:8501"}, 200),
        ({"host": "page.localhost:8501"}, 200),
        ({"host": "Reviews.example"}, 200),
        ({}, 200),
        # A name that leads to this machine, as that of DNS rebinding does.
        ({"host": "evil.example:8501"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "10.0.0.1"}, 403),
        ({"host": ""}, 403),
        ({"host": "localhost", "sec-fetch-site": "cross-site"}, 403),
        ({"host": "localhost", "sec-fetch-site": "same-origin"}, 200),
    ],
)
def test_other_sites_do_not_ask_a_server_of_this_machine(headers, status):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    sent = []

    async def send(message):
        sent.append(message)

    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": pairs}
    asyncio.run(OwnHosts(app, ["reviews.example"])(scope, None, send))
    assert sent[0]["status"] == status


def test_a_gzipped_body(server):
    body = gzip.compress(b'{"instances": ["rain"]}')
    assert server.ask("POST", PREDICT, body, {"Content-Encoding": "gzip"})[0] == 200


@pytest.mark.thorough
def test_keys(exported, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("# of the page\nfirst-key\n\nsecond\n")
    with live({"model": exported}, api_key_file=keys) as server:
        request = {"instances": ["rain"]}
        for given in (None, "Bearer wrong", "Bearer", "Basic second", "Bearer first-key2", "é"):
            headers = {} if given is None else {"Authorization": given.encode("latin-1")}
            status, answer = server.predict(request, headers=headers)
            assert status == 401 and answer["error"].startswith("Authorization: expected")
            assert "second" not in answer["error"]
        for given in ("Bearer first-key", "bearer  second"):
            assert server.predict(request, headers={"Authorization": given})[0] == 200
        for path in ("/v1/models/model", "/v1/models/model/metadata", "/v1/keras_bert/models"):
            assert server.ask("GET", path)[0] == 401
        assert server.ask("GET", "/metrics")[0] == 401
        assert server.ask("GET", "/healthz")[0] == server.ask("GET", "/readyz")[0] == 200
    for content, message in (("", "found none"), ("# none\n", "found none"), ("a b", "line 1")):
        keys.write_text(content)
        with pytest.raises(ValueError, match=message):
            create_app({"model": exported}, api_key_file=keys)


def test_middleware_of_others_sees_predictions(exported):
    seen, sent = [], []

    class Other:
        def __init__(self, app):
            self.app = app

        async def __call__(self, scope, receive, send):
            seen.append(scope["path"])
            await self.app(scope, receive, send)

    async def receive():
        return {"type": "http.request", "body": b"{}"}

    async def send(message):
        sent.append(message)

    app = create_app({"model": exported})
    app.add_middleware(Other)
    scope = {"type": "http", "method": "POST", "path": PREDICT, "headers": [], "query_string": b""}
    asyncio.run(app(scope, receive, send))  # no model is loaded
    assert seen == [PREDICT] and sent[0]["status"] == 404
    assert (b"x-content-type-options", b"nosniff") in sent[0]["headers"]


def test_an_answer_is_written_at_once():
    written = []

    class Transport:
        write, close = written.append, lambda self: written.append("closed")
        is_closing = staticmethod(lambda: False)

    async def main():
        transport = OneWrite(Transport())
        transport.write(b"head ")
        transport.write(b"body")
        assert written == [] and not transport.is_closing()
        await asyncio.sleep(0)
        assert written == [b"head body"]
        transport.write(b"last")
        transport.close()
        await asyncio.sleep(0)
        assert written == [b"head body", b"last", "closed"]

    asyncio.run(main())


def test_threads_follow_from_the_machine(monkeypatch):
    import tensorflow as tf

    chosen, cores, devices = [], {0, 1}, []
    threading = tf.config.threading
    monkeypatch.setattr("os.sched_getaffinity", lambda process: cores, raising=False)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: devices)
    monkeypatch.setattr(threading, "get_intra_op_parallelism_threads", lambda: 0)
    monkeypatch.setattr(threading, "set_intra_op_parallelism_threads", chosen.append)
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    assert chosen_threads(None) == 2 and chosen == [1]
    assert chosen_threads(1) == 1 and chosen == [1]  # as the user says: both cores for each batch
    cores |= set(range(16))
    assert chosen_threads(None) == 4 and chosen == [1]
    assert chosen_threads(None, onnx=True) == 1 and chosen_threads(3, onnx=True) == 3
    devices.append("GPU:0")
    assert chosen_threads(None) == 1
    devices.clear()
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "2")
    assert chosen_threads(16) == 16 and chosen == [1]


def test_a_full_queue_is_503_with_retry_after(server, monkeypatch):
    gate = Gate(monkeypatch)
    first = in_thread(server.predict, {"instances": ["rain"]})
    gate.entered.acquire()
    waiting = in_thread(server.predict, {"instances": ["rain", "wind", "storm"]})
    while not server.metric("keras_bert_queue_rows"):
        pass
    with server.connected() as connection:
        connection.request("POST", PREDICT, b'{"instances": ["thaw"]}')
        answer = connection.getresponse()
        assert answer.status == 503 and int(answer.headers["Retry-After"]) >= 1
        assert "the queue is full" in json.loads(answer.read())["error"]
    # What asks no model is answered meanwhile: the event loop is free.
    assert server.ask("GET", "/readyz")[0] == 200
    gate.open.set()
    for thread, results in (first, waiting):
        thread.join()
        assert results[0][0] == 200
    assert server.predict({"instances": ["thaw"]})[0] == 200


def test_a_request_whose_client_left_is_not_computed(server, monkeypatch):
    gate = Gate(monkeypatch)
    thread, results = in_thread(server.predict, {"instances": ["rain"]})
    gate.entered.acquire()
    connection, before = server.connection(), server.metric("keras_bert_given_up_total")
    connection.request("POST", PREDICT, b'{"instances": ["nobody waits"]}')
    while not server.metric("keras_bert_queue_rows"):
        pass
    connection.close()
    while server.metric("keras_bert_given_up_total") == before:
        pass
    assert server.metric("keras_bert_queue_rows") == 0
    gate.open.set()
    thread.join()
    assert results[0][0] == 200
    assert server.predict({"instances": ["wind"]})[0] == 200
    assert [inputs["text"] for _, inputs in gate.calls] == [[b"rain"], [b"wind"]]


def test_requests_that_come_together_are_one_batch(server, monkeypatch):
    expected = {t: server.predict({"instances": [t]})[1] for t in ("rain", "wind", "the storm")}
    gate = Gate(monkeypatch)
    first = in_thread(server.predict, {"instances": ["thaw"]})
    gate.entered.acquire()
    asked = {text: in_thread(server.predict, {"instances": [text]}) for text in expected}
    while server.metric("keras_bert_queue_rows") < 3:
        pass
    gate.open.set()
    for text, (thread, results) in asked.items():
        thread.join()
        found, right = results[0][1]["predictions"][0], expected[text]["predictions"][0]
        assert found["label"] == right["label"]
        assert found["logits"] == pytest.approx(right["logits"], abs=1e-5)
    first[0].join()
    assert sorted(gate.calls[1][1]["text"]) == [b"rain", b"the storm", b"wind"]
    assert len(gate.calls) == 2


def test_one_wrong_row_of_a_batch_is_the_error_of_its_own_request(server, monkeypatch):
    gate = Gate(monkeypatch)

    def tokens(ids):
        inputs = {"token_ids": [ids], "segment_ids": [[0, 0]], "padding_mask": [[1, 1]]}
        return {"signature_name": "tokens", "inputs": inputs}

    first = in_thread(server.predict, tokens([2, 3]))
    gate.entered.acquire()
    right, wrong = (in_thread(server.predict, tokens(ids)) for ids in ([4, 5], [4, 99]))
    while server.metric("keras_bert_queue_rows") < 2:
        pass
    gate.open.set()
    for thread, _ in (first, right, wrong):
        thread.join()
    assert right[1][0][0] == 200
    assert wrong[1][0] == (400, {"error": "token_ids lie outside of 0 to 16"})


def test_a_failure_of_the_model_shows_nothing_of_the_machine(server, exported, monkeypatch):
    from keras_bert.server.served_model import Export

    def fails(*_):
        raise RuntimeError(f"cannot read {exported}/secret")

    monkeypatch.setattr(Export, "__call__", fails)
    status, answer = server.predict({"instances": ["rain"]})
    assert (status, answer) == (500, {"error": "internal error; see the server's log"})


def test_what_the_page_learns(server, exported):
    status, (model,) = server.ask("GET", "/v1/keras_bert/models")
    assert status == 200
    assert model["name"] == "model" and model["task"] == "BertClassifier"
    assert model["labels"] == ["calm", "storm", "thaw"] and model["versions"] == [1]
    assert model["signatures"]["pair"]["inputs"].keys() == {"text", "text_pair"}
    assert model["settings"]["problem"] == "single_label" and model["scores"] is None
    assert model["example"]["inputs"].keys() == {"text"}
    assert str(exported) not in json.dumps(model) and str(exported.parent) not in json.dumps(model)


def test_metrics_count(server):
    names = ("requests_total", "rows_total", "batch_rows_sum")
    before = [server.metric(f"keras_bert_{name}") for name in names]
    for _ in range(3):
        server.predict({"instances": ["rain", "wind"]})
    server.predict({"instances": [5]})
    after = [server.metric(f"keras_bert_{name}") for name in names]
    assert [a - b for a, b in zip(after, before, strict=True)] == [4, 6, 6]
    assert server.metric("keras_bert_version") == 1
