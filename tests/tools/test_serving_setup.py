import http.server
import io
import json
import os
import re
import shutil
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tools.serving import client_grpc, client_rest, place_version

SETUP = Path(client_rest.__file__).parent
PATIENCE = 600.0  # seconds that a client waits: no test is one of the machine's speed
VERSIONS = {1: ("stable", "slow"), 2: ("canary",)}


class Models:
    """Versions of one model, loaded as a server loads them."""

    def __init__(self, folder):
        import tensorflow as tf
        import tensorflow_text  # noqa: F401

        self.tf = tf
        self.model = tf.saved_model.load(str(folder))
        self.asked = []  # (version, signature) of each request
        self.given_up = threading.Event()  # by the client that asks the slow version

    def version(self, number, label):
        """The number that is asked, or None."""
        if label:
            return next((n for n, labels in VERSIONS.items() if label in labels), None)
        number = number or max(VERSIONS)
        return number if number in VERSIONS else None

    def answer(self, version, signature, inputs):
        """Runs a signature on arrays; ValueError has the server's message."""
        self.asked.append((version, signature))
        if signature not in self.model.signatures:
            raise ValueError(f'Serving signature key "{signature}" not found.')
        function = self.model.signatures[signature]
        specs = function.structured_input_signature[1]
        if set(specs) != set(inputs):
            raise ValueError(f"input size does not match signature: {len(inputs)}!={len(specs)}")
        tensors = {k: self.tf.constant(v, specs[k].dtype) for k, v in inputs.items()}
        return {name: value.numpy() for name, value in function(**tensors).items()}


@pytest.fixture(scope="module")
def models(exported):
    return Models(exported)


@pytest.fixture(scope="module")
def contract(exported):
    return json.loads((exported / "assets.extra" / "contract.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def rest_server(models):
    """A server with TensorFlow Serving's REST paths; its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            path = re.fullmatch(
                r"/v1/models/classifier(?:/versions/(\d+)|/labels/(\w+))?:predict", self.path
            )
            version = path and models.version(path[1] and int(path[1]), path[2])
            if not version:
                return self.reply(404, {"error": f"Servable not found for request: {self.path}"})
            if path[2] == "slow":
                models.given_up.wait()
                return self.reply(503, {"error": "too late"})
            try:
                inputs = {name: self.tensor(value) for name, value in body["inputs"].items()}
                outputs = models.answer(version, body["signature_name"], inputs)
            except ValueError as error:
                return self.reply(400, {"error": str(error)})
            outputs = {
                name: np.char.decode(array.astype("S")).tolist()
                if array.dtype == object
                else array.tolist()
                for name, array in outputs.items()
            }
            only = next(iter(outputs.values())) if len(outputs) == 1 else outputs
            self.reply(200, {"outputs": only})

        def tensor(self, value):
            if isinstance(value, dict):
                import base64

                return base64.b64decode(value["b64"])
            return [self.tensor(part) for part in value] if isinstance(value, list) else value

        def reply(self, status, content):
            try:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(content).encode())
            except BrokenPipeError:
                pass  # the client waited no longer

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def same(found, expected):
    """Compares outputs with a contract's: strings exactly, numbers within 1e-5."""
    if isinstance(expected, dict):
        assert set(found) == set(expected)
        for name in expected:
            same(found[name], expected[name])
    elif np.array(expected).dtype.kind == "f":
        np.testing.assert_allclose(found, expected, atol=1e-5)
    else:
        assert found == expected


@pytest.mark.thorough
def test_rest_answers_are_the_contracts(rest_server, contract):
    for example in contract["examples"]:
        request = example["request"]
        if not request["inputs"]:
            continue  # REST cannot ask a signature without inputs
        found = client_rest.predict(
            rest_server, "classifier", request["inputs"], request["signature_name"], version=1
        )
        same(found, example["reply"]["outputs"])


def test_rest_client_from_the_command_line(rest_server, contract, models, capsys, monkeypatch):
    example = contract["examples"][0]
    texts = example["request"]["inputs"]["text"]
    outputs = example["reply"]["outputs"]
    common = ["--server", rest_server, "--model", "classifier", "--timeout", str(PATIENCE)]

    def rows():
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    client_rest.main([*texts, *common])
    found = rows()
    assert [row["label"] for row in found] == outputs["label"]
    np.testing.assert_allclose([row["logits"] for row in found], outputs["logits"], atol=1e-5)
    assert models.asked[-1] == (2, "serving_default")  # no version: the highest

    lines = b"rain wind\n\n\xc3\xa9"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    client_rest.main([*common, "--label", "stable"])
    assert len(rows()) == 3 and models.asked[-1] == (1, "serving_default")

    pair = ["--input", "text=a=b", "--input", "text_pair=boats"]
    client_rest.main([*common, "--signature", "pair", "--label", "canary", *pair])
    assert len(rows()) == 1 and models.asked[-1] == (2, "pair")

    ids = {
        "token_ids": [[2, 5, 3]] * 2,
        "segment_ids": [[0] * 3] * 2,
        "padding_mask": [[1] * 3] * 2,
    }
    client_rest.main(
        [*common, "--signature", "tokens", "--version", "1", "--json", json.dumps(ids)]
    )
    (first, second) = rows()
    np.testing.assert_allclose(first, second, atol=1e-5)
    assert models.asked[-1] == (1, "tokens")


def test_rest_errors_are_shown(rest_server, models):
    def ask(inputs, *arguments, server=rest_server, timeout=PATIENCE, **keywords):
        with pytest.raises(client_rest.ServerError) as caught:
            client_rest.predict(server, *arguments, inputs=inputs, timeout=timeout, **keywords)
        return str(caught.value)

    text = {"text": ["a"]}
    missing = ask(text, "classifier", version=9)
    assert "status 404: Servable not found" in missing and "/versions/9:predict" in missing
    assert "/labels/no%2Fsuch" in ask(text, "classifier", label="no/such")
    assert 'status 400: Serving signature key "pairs"' in ask(text, "classifier", signature="pairs")
    assert "input size does not match" in ask({}, "classifier")
    assert "no answer within 0.1 s" in ask(text, "classifier", label="slow", timeout=0.1)
    models.given_up.set()
    assert "refused" in ask(text, "classifier", server="http://localhost:9")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["a", "--input", "text=b"], "not several of these"),
        (["--input", "text"], "expected NAME=TEXT"),
        (["--json", "[1]"], "expected an object of lists"),
        (["--json", "{"], "--json: "),
        (["a", "--version", "1", "--label", "stable"], "not allowed with"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(arguments, message, capsys):
    with pytest.raises(SystemExit):
        client_rest.main([*arguments, "--model", "classifier"])
    assert message in capsys.readouterr().err


@pytest.fixture
def grpc_server(models):
    """A server with the PredictionService of tensorflow-serving-api; its address."""
    grpc = pytest.importorskip("grpc", reason="grpcio is not installed")
    pytest.importorskip("tensorflow_serving", reason="tensorflow-serving-api is not installed")
    from concurrent import futures

    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):
            spec = request.model_spec
            version = models.version(spec.version.value, spec.version_label)
            if spec.name != "classifier" or not version:
                context.abort(grpc.StatusCode.NOT_FOUND, "Servable not found for request")
            inputs = {k: models.tf.make_ndarray(v) for k, v in request.inputs.items()}
            try:
                outputs = models.answer(version, spec.signature_name, inputs)
            except ValueError as error:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            reply = predict_pb2.PredictResponse()
            for name, array in outputs.items():
                reply.outputs[name].CopyFrom(models.tf.make_tensor_proto(array))
            return reply

    server = grpc.server(futures.ThreadPoolExecutor(2))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    yield f"localhost:{port}"
    server.stop(None).wait()


def test_grpc_answers_are_the_contracts(grpc_server, contract, models, capsys):
    for example in contract["examples"]:
        request = example["request"]
        found = client_grpc.predict(
            grpc_server, "classifier", request["inputs"], request["signature_name"], label="stable"
        )
        found = {name: client_grpc._printable(array.tolist()) for name, array in found.items()}
        expected = example["reply"]["outputs"]
        same(found if len(found) > 1 else next(iter(found.values())), expected)
        assert models.asked[-1] == (1, request["signature_name"])
    text = contract["examples"][0]["request"]["inputs"]["text"][0]
    client_grpc.main([text, "--server", grpc_server, "--model", "classifier", "--version", "2"])
    (row,) = capsys.readouterr().out.splitlines()
    assert json.loads(row)["label"] == contract["examples"][0]["reply"]["outputs"]["label"][0]
    assert models.asked[-1] == (2, "serving_default")
    with pytest.raises(client_rest.ServerError, match="INVALID_ARGUMENT: Serving signature key"):
        client_grpc.predict(grpc_server, "classifier", {"text": ["a"]}, "pairs")
    with pytest.raises(SystemExit, match="client_grpc.py: .*NOT_FOUND: Servable not found"):
        client_grpc.main(["a", "--server", grpc_server, "--model", "other"])


def test_grpc_client_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_serving", None)
    monkeypatch.setitem(sys.modules, "tensorflow_serving.apis", None)
    with pytest.raises(SystemExit, match="needs `pip install tensorflow-serving-api`"):
        client_grpc.main(["a", "--model", "classifier"])


def some_export(folder, size=7):
    (folder / "variables").mkdir(parents=True)
    (folder / "assets.extra").mkdir()
    (folder / "saved_model.pb").write_bytes(b"graph")
    for part in range(size):
        (folder / "variables" / f"part{part}").write_bytes(bytes([part]) * 1000)
    return folder


def files(folder):
    paths = (path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_versions_are_numbered(tmp_path, capsys):
    export, model = some_export(tmp_path / "export"), tmp_path / "models" / "classifier"
    place_version.main([str(export), str(model)])
    assert capsys.readouterr().out == "1\n"
    (model / "9").mkdir()
    for strange in ("old", ".12.x", "3b", "²"):
        (model / strange).mkdir()
    (model / "77").touch()  # a file is no version
    assert place_version.place(export, model) == 10  # not 3: numbers, not names
    assert place_version.place(export, model, version=4) == 4
    for version in ("1", "10", "4"):
        assert files(model / version) == files(export)
    assert place_version.versions(model) == [1, 4, 9, 10]
    for arguments, message in [
        ((export, model, 4), "has a version 4 already"),
        ((export, model, 0), "expected 1 or more"),
        ((tmp_path, model), "has no saved_model.pb"),
    ]:
        with pytest.raises(place_version.PlaceError, match=message):
            place_version.place(*arguments)
    assert not list(model.glob(".placing*"))


def test_a_polling_server_never_sees_a_part(tmp_path, monkeypatch):
    export, model = some_export(tmp_path / "export"), tmp_path / "classifier"
    whole, seen, done = files(export), set(), threading.Event()
    copy = shutil.copyfile

    def slow(*arguments, **keywords):
        time.sleep(0.003)
        return copy(*arguments, **keywords)

    def copytree(source, target, *rest):  # which calls itself for the folders inside
        return (
            original(source, target, *rest) if rest else original(source, target, False, None, slow)
        )

    original = shutil.copytree
    monkeypatch.setattr(shutil, "copytree", copytree)

    def poll():
        while not done.is_set():
            for version in place_version.versions(model):
                assert files(model / str(version)) == whole
                seen.add(version)

    failed = []

    def watched():
        try:
            poll()
        except AssertionError as error:
            failed.append(error)

    placed = []
    threads = [
        threading.Thread(
            target=lambda: [placed.append(place_version.place(export, model)) for _ in range(5)]
        )
        for _ in range(3)
    ]
    watcher = threading.Thread(target=watched)
    watcher.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    watcher.join()
    assert not failed and sorted(placed) == list(range(1, 16)) and seen
    assert not list(model.glob(".placing*"))


def test_a_number_that_is_taken_meanwhile_is_left_alone(tmp_path, monkeypatch):
    export, model = some_export(tmp_path / "export"), tmp_path / "classifier"
    rename = os.rename

    def late(source, target):
        if Path(target).name == "1":
            some_export(Path(target), size=1)  # another program's
        rename(source, target)

    monkeypatch.setattr(os, "rename", late)
    assert place_version.place(export, model) == 2
    assert files(model / "2") == files(export) and len(files(model / "1")) == 2


def test_a_failed_copy_leaves_nothing(tmp_path, monkeypatch):
    export, model = some_export(tmp_path / "export"), tmp_path / "classifier"

    def full(source, target):
        Path(target).mkdir()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(SystemExit, match="No space left"):
        place_version.main([str(export), str(model)])
    assert list(model.iterdir()) == []


def test_batching_is_for_outputs_by_row(exported, tmp_path):
    model, parameters = tmp_path / "classifier", SETUP / "batching_parameters.txt"
    assert place_version.place(exported, model, batching=parameters) == 1
    assert (model / "1" / "batching_params.pbtxt").read_bytes() == parameters.read_bytes()
    flat = some_export(tmp_path / "flat")
    with pytest.raises(place_version.PlaceError, match="no assets.extra/contract.json"):
        place_version.place(flat, model, batching=parameters)
    contract = {
        "signatures": {"serving_default": {"outputs": {"word": {}, "row_splits": {}}}},
        "examples": [
            {
                "request": {"inputs": {"text": ["a", "b c"]}},
                "reply": {"outputs": {"word": ["b", "c"], "row_splits": [0, 0, 2]}},
            }
        ],
    }
    (flat / "assets.extra" / "contract.json").write_text(json.dumps(contract))
    with pytest.raises(place_version.PlaceError, match="output row_splits of serving_default"):
        place_version.place(flat, model, batching=parameters)
    assert place_version.versions(model) == [1]


def test_models_config_parses():
    pytest.importorskip("tensorflow_serving", reason="tensorflow-serving-api is not installed")
    from google.protobuf import text_format
    from tensorflow_serving.config import model_server_config_pb2

    config = model_server_config_pb2.ModelServerConfig()
    text_format.Parse((SETUP / "models.config").read_text(), config)
    (model,) = config.model_config_list.config
    assert model.base_path == f"/models/{model.name}" and model.model_platform == "tensorflow"
    assert set(model.version_labels) == {"stable", "canary"}
    served = model.model_version_policy.specific.versions
    assert set(model.version_labels.values()) <= set(served)


def test_batching_parameters_parse():
    """By the fields of session_bundle_config.proto, which tensorflow-serving-api does not have."""
    from google.protobuf import (
        descriptor_pb2,
        descriptor_pool,
        message_factory,
        text_format,
        wrappers_pb2,
    )

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="batching.proto", syntax="proto3")
    file.dependency.append("google/protobuf/wrappers.proto")
    message = file.message_type.add(name="BatchingParameters")
    fields = {
        "max_batch_size": "Int64Value",
        "batch_timeout_micros": "Int64Value",
        "max_enqueued_batches": "Int64Value",
        "num_batch_threads": "Int64Value",
        "thread_pool_name": "StringValue",
        "enable_large_batch_splitting": "BoolValue",
        "max_execution_batch_size": "Int64Value",
    }
    for number, (name, kind) in enumerate(fields.items(), 1):
        message.field.add(
            name=name,
            number=number,
            label=kinds.LABEL_OPTIONAL,
            type=kinds.TYPE_MESSAGE,
            type_name=f".google.protobuf.{kind}",
        )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    found = message_factory.GetMessageClass(pool.FindMessageTypeByName("BatchingParameters"))()
    text_format.Parse((SETUP / "batching_parameters.txt").read_text(), found)
    assert found.enable_large_batch_splitting.value
    assert found.max_batch_size.value % found.max_execution_batch_size.value == 0
    assert found.num_batch_threads.value >= 1 and found.batch_timeout_micros.value >= 0


def test_compose_file_names_what_is_there():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    compose = yaml.safe_load((SETUP / "docker-compose.yaml").read_text())
    service = compose["services"]["serving"]
    assert re.fullmatch(r"tensorflow/serving:\$\{TF_SERVING_VERSION:-[\d.]+\}", service["image"])
    assert [port.rpartition(":")[2] for port in service["ports"]] == ["8500", "8501"]
    options = dict(option.removeprefix("--").split("=", 1) for option in service["command"])
    for option, value in options.items():
        if value.startswith("/config/"):
            assert (SETUP / value.removeprefix("/config/")).is_file(), option
    assert options["enable_batching"] == options["enable_per_model_batching_parameters"] == "true"
    assert "/config:ro" in service["volumes"][1]
