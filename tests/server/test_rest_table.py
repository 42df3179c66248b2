"""Requests and answers, written down from TensorFlow Serving's documentation of its REST API
(tensorflow_serving/g3doc/api_rest.md, and for statuses and messages its http_rest_api_handler.cc,
json_tensor.cc, get_model_status_impl.cc and http_server.cc), asked of this server.

The model is made for the table: see half_model.py.
"""

import base64
import json
import math

import numpy as np
import pytest

from tests.server.half_model import write_model
from tests.server.live import live

V = "/v1/models/half"
P = f"{V}:predict"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    base = tmp_path_factory.mktemp("half")
    write_model(base / "122", add=2.0)
    write_model(base / "123", add=3.0)
    (base / "version_labels.json").write_text('{"stable": 122, "canary": 123}')
    (base / "notes").mkdir()  # no version: its name is not a number
    with live({"half": base}) as found:
        yield found


THREE = [
    {"tag": "foo", "signal": [1, 2, 3, 4, 5], "sensor": [[1, 2], [3, 4]]},
    {"tag": "bar", "signal": [3, 4, 1, 2, 5], "sensor": [[4, 5], [6, 8]]},
]
THREE_ROWS = [
    {"name": "FOO", "total": 15, "turned": [[1.0, 3.0], [2.0, 4.0]]},
    {"name": "BAR", "total": 15, "turned": [[4.0, 6.0], [5.0, 8.0]]},
]
COLUMNS = {key: [row[key] for row in THREE] for key in THREE[0]}
THREE_COLUMNS = {key: [row[key] for row in THREE_ROWS] for key in THREE_ROWS[0]}
B64 = {"b64": base64.b64encode(b"a b").decode()}


def three(**form):
    return {"signature_name": "three", **form}


# (path, request, the whole answer).
ANSWERS = [
    # The documentation's example, with the model that it uses.
    (P, {"instances": [1.0, 2.0, 5.0]}, {"predictions": [3.5, 4.0, 5.5]}),
    (P, {"inputs": [1.0, 2.0, 5.0]}, {"outputs": [3.5, 4.0, 5.5]}),
    (P, {"inputs": {"x": [1.0]}}, {"outputs": [3.5]}),
    (P, {"instances": [{"x": 1.0}, {"x": 2}]}, {"predictions": [3.5, 4.0]}),
    (P, {"signature_name": "serving_default", "instances": [1]}, {"predictions": [3.5]}),
    (P, {"signature_name": "", "instances": [1e1]}, {"predictions": [8.0]}),
    (P, {"instances": [1], "other": 5}, {"predictions": [3.5]}),
    # Several named tensors, in both forms.
    (P, three(instances=THREE), {"predictions": THREE_ROWS}),
    (P, three(inputs=COLUMNS), {"outputs": THREE_COLUMNS}),
    (P, three(inputs=COLUMNS | {"unused": 5}), {"outputs": THREE_COLUMNS}),
    # Binary values: in, and out where a name ends with _bytes.
    (
        P,
        {"signature_name": "echo", "instances": ["a b", B64, {"text": "x"}][:2]},
        {"predictions": [{"same": "a b", "same_bytes": B64}] * 2},
    ),
    (
        P,
        {"signature_name": "echo", "inputs": {"text": [B64, "a b"]}},
        {"outputs": {"same": ["a b", "a b"], "same_bytes": [B64, B64]}},
    ),
    (
        P,
        {"signature_name": "kinds", "instances": [{"a": True, "b": -(2**53) - 1, "c": 255}]},
        {"predictions": [{"a": False, "b": -(2**53) - 1, "c": 255}]},
    ),
    # Versions and labels.
    (f"{V}/versions/122:predict", {"instances": [1.0]}, {"predictions": [2.5]}),
    (f"{V}/versions/0123:predict", {"instances": [1.0]}, {"predictions": [3.5]}),
    (f"{V}/labels/stable:predict", {"instances": [1.0]}, {"predictions": [2.5]}),
    (f"{V}/labels/canary:predict", {"instances": [1.0]}, {"predictions": [3.5]}),
    ("/V1/Models/half:Predict", {"instances": [1.0]}, {"predictions": [3.5]}),
    ("/v1/models/%68alf:predict", {"instances": [1.0]}, {"predictions": [3.5]}),
]


@pytest.mark.parametrize(("path", "request_", "expected"), ANSWERS)
def test_answers(server, path, request_, expected):
    assert server.ask("POST", path, json.dumps(request_)) == (200, expected)


def test_numbers_that_json_does_not_know(server):
    body = '{"signature_name": "odd", "inputs": [NaN, Infinity, -Infinity, 0]}'
    status, answer = server.ask("POST", P, body)
    assert status == 200
    log, x = answer["outputs"]["log"], answer["outputs"]["x"]
    assert math.isnan(log[0]) and log[1] == math.inf and math.isnan(log[2]) and log[3] == -math.inf
    assert math.isnan(x[0]) and x[1:] == [math.inf, -math.inf, 0.0]


def test_floats_are_the_shortest_that_read_back_as_the_same(server):
    status, answer = server.ask("POST", P, '{"inputs": [0.4]}')
    assert status == 200 and answer["outputs"] == [3.2]
    assert np.float32(answer["outputs"][0]) == np.float32(0.4) / 2 + np.float32(3)


def test_status_of_a_model(server):
    def entry(version):
        status = {"error_code": "OK", "error_message": ""}
        return {"version": version, "state": "AVAILABLE", "status": status}

    both = {"model_version_status": [entry("123"), entry("122")]}
    assert server.ask("GET", V) == (200, both)
    one = {"model_version_status": [entry("122")]}
    assert server.ask("GET", f"{V}/versions/122") == (200, one)
    assert server.ask("GET", f"{V}/labels/stable") == (200, one)


def test_metadata(server):
    status, answer = server.ask("GET", f"{V}/versions/122/metadata")
    assert status == 200
    assert answer["model_spec"] == {"name": "half", "signature_name": "", "version": "122"}
    signature = answer["metadata"]["signature_def"]["signature_def"]["three"]
    assert signature["method_name"] == "tensorflow/serving/predict"
    sensor = signature["inputs"]["sensor"]
    assert sensor["dtype"] == "DT_FLOAT" and sensor["name"] == "three_sensor:0"
    sizes = [{"size": "-1", "name": ""}, {"size": "2", "name": ""}, {"size": "2", "name": ""}]
    assert sensor["tensor_shape"] == {"dim": sizes, "unknown_rank": False}
    assert signature["outputs"].keys() == {"name", "total", "turned"}
    assert server.ask("GET", f"{V}/metadata")[1]["model_spec"]["version"] == "123"


ECHO = {"signature_name": "echo"}
KINDS = {"a": True, "b": 1, "c": 1}
# (method, path, body, status, part of the error).
ERRORS = [
    # The documentation's example of an error.
    ("POST", "/v1/models/third:predict", {"instances": [1.0, 5.0]}, 404,
     "Servable not found for request: Latest(third)"),
    ("POST", f"{V}/versions/7:predict", {"instances": [1.0]}, 404,
     "Servable not found for request: Specific(half, 7)"),
    ("POST", f"{V}/labels/nope:predict", {"instances": [1.0]}, 400,
     "Unrecognized servable version label: nope"),
    ("GET", "/v1/models/third", None, 404, "Could not find any versions of model third"),
    ("GET", f"{V}/versions/7", None, 404, "Could not find version 7 of model half"),
    ("GET", f"{V}/labels/nope", None, 400, "Unrecognized servable version label: nope"),
    ("GET", "/v1/models/third/metadata", None, 404, "Servable not found"),
    ("GET", "/v1/models", None, 400, "Missing model name in request."),
    ("POST", f"{V}:explain", {}, 400, "Malformed request: POST /v1/models/half:explain"),
    ("POST", f"{V}/versions/x:predict", {}, 400, "Malformed request: POST"),
    ("POST", V, {}, 400, "Malformed request: POST"),
    ("GET", P, None, 400, "Malformed request: GET"),
    ("PUT", P, {}, 400, "Malformed request: PUT"),
    ("POST", P, "", 400, "JSON Parse error: The document is empty"),
    ("POST", P, '{"instances": [1.0', 400, "JSON Parse error"),
    ("POST", P, "[1.0]", 400, "expected a JSON object"),
    ("POST", P, "{}", 400, "Missing 'inputs' or 'instances' key"),
    ("POST", P, {"inputs": [1], "instances": [1]}, 400, "one of 'inputs' or 'instances'"),
    ("POST", P, {"instances": {"x": 1}}, 400, "instances: expected a list"),
    ("POST", P, {"instances": []}, 400, "instances: no values"),
    ("POST", P, {"signature_name": 5, "instances": [1]}, 400, "'signature_name' key must be"),
    ("POST", P, {"signature_name": "no", "instances": [1]}, 400,
     'Serving signature name: "no" not found in signature def'),
    ("POST", P, {"instances": ["1.0"]}, 400, "'x'[0]: expected a number, got a string"),
    ("POST", P, {"instances": [1, True]}, 400, "'x'[1]: expected a number, got a boolean"),
    ("POST", P, {"instances": [1, [2]]}, 400, "'x'[1]: expected a number, got a list"),
    ("POST", P, {"instances": [1, {"x": 2}]}, 400, "'x'[1]: expected a number, got an object"),
    ("POST", P, {"instances": [{"x": 1}, 2]}, 400, "instances[1]: expected an object with 'x'"),
    ("POST", P, {"instances": [1e39]}, 400, "'x'[0]: 1e+39 does not fit into float32"),
    ("POST", P, {"inputs": 1.0}, 400, "'x': expected a list of float32 numbers"),
    ("POST", P, {"inputs": {"z": [1]}}, 400, "Missing named input: x in 'inputs' object"),
    ("POST", P, three(instances=[1]), 400, "instances is a plain list"),
    ("POST", P, three(inputs=[1]), 400, "inputs is a plain value/list"),
    ("POST", P, three(instances=[THREE[0], {"tag": "x"}]), 400,
     "instances[1]: Missing named input: signal; keys must be equal to: 'tag', 'signal', 'sensor'"),
    ("POST", P, three(instances=[THREE[0] | {"more": 1}]), 400, "unknown named input: more"),
    ("POST", P, three(instances=[THREE[0], THREE[1] | {"signal": [1] * 4}]), 400, "'signal'[1]"),
    ("POST", P, three(instances=[THREE[0] | {"signal": [1] * 4}]), 400, "'signal': axis 1"),
    ("POST", P, three(inputs=COLUMNS | {"tag": ["x"]}), 400, "'tag' has 1 rows and 'signal' has 2"),
    ("POST", P, three(inputs=COLUMNS | {"signal": [[1.5] * 5] * 2}), 400,
     "'signal'[0][0]: expected a whole number, got a number: 1.5"),
    ("POST", P, {"signature_name": "kinds", "instances": [KINDS | {"c": 256}]}, 400,
     "'c'[0]: 256 does not fit into uint8"),
    ("POST", P, {"signature_name": "kinds", "instances": [KINDS | {"b": 2**63}]}, 400, "'b'[0]"),
    ("POST", P, {"signature_name": "kinds", "instances": [KINDS | {"a": 1}]}, 400,
     "'a'[0]: expected true or false"),
    ("POST", P, ECHO | {"instances": [{"b64": "*"}]}, 400, "'text'[0]: 'b64' is not valid base64"),
    ("POST", P, ECHO | {"instances": [{"b64": "_w"}]}, 400, "'text'[0]: byte 0"),
    ("POST", P, ECHO | {"instances": ["x", {"b64": 5}]}, 400, "'text'[1]: expected a string"),
    ("POST", P, ECHO | {"instances": ["x", None]}, 400, "'text'[1]: expected a string or"),
    ("POST", P, '{"signature_name": "echo", "instances": ["\\ud800"]}', 400,
     "'text'[0]: no valid Unicode at character 0"),
    ("POST", P, b'{"signature_name": "echo", "instances": ["ab\xff"]}', 400,
     "'text'[0]: no valid Unicode at character 2"),
    ("POST", P, b'{"signature_name": "echo", "instances": ["ab"], "\xff": 1}', 400, "UTF-8"),
    # The signatures of an export are of the method predict, and theirs refuses the others too.
    ("POST", f"{V}:classify", {"examples": [{"x": 1.0}]}, 400,
     "Expected classify signature method_name to be tensorflow/serving/classify. "
     "Was: tensorflow/serving/predict"),
    ("POST", f"{V}:regress", {"examples": [{"x": 1.0}]}, 400, "tensorflow/serving/regress"),
    ("POST", f"{V}:classify", {"instances": [1.0]}, 400, "examples: expected a list"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "status", "message"), ERRORS)
def test_errors(server, method, path, body, status, message):
    body = json.dumps(body) if isinstance(body, dict) else body
    found, answer = server.ask(method, path, body)
    assert found == status and answer.keys() == {"error"} and message in answer["error"]
