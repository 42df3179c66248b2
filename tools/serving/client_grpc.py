"""Asks a model on TensorFlow Serving over gRPC.

usage: python tools/serving/client_grpc.py "a fine film" "a dull one" --model classifier

The arguments are those of client_rest.py, except that --server is HOST:8500. Needs tensorflow and
tensorflow-serving-api (pip install tensorflow-serving-api), which brings grpcio.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.serving.client_rest import ServerError, by_rows, inputs_of, parser  # noqa: E402


def predict(
    server: str,
    model: str,
    inputs: Mapping[str, Any],
    signature: str = "serving_default",
    version: int | None = None,
    label: str | None = None,
    timeout: float = 10.0,
) -> dict[str, Any]:
    """Asks for the outputs of a signature.

    Args:
        server: its address: HOST:8500.
        model: name of the model.
        inputs: by name, arrays, or nested lists of strings, bytes and int32 numbers.
        signature: name of the signature.
        version: number of the version to ask; None for the server's choice, the highest.
        label: label of the version to ask, instead of its number.
        timeout: seconds to wait for the answer.

    Returns:
        arrays by name, strings as bytes.

    Raises:
        ImportError: if tensorflow-serving-api is missing.
        ServerError: with what the server said.
    """
    try:
        import grpc
        from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
    except ImportError as error:
        raise ImportError(
            f"{error}: the gRPC client needs `pip install tensorflow-serving-api`; client_rest.py "
            "needs nothing"
        ) from None
    import tensorflow as tf

    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    if version is not None:
        request.model_spec.version.value = version
    elif label is not None:
        request.model_spec.version_label = label
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    with grpc.insecure_channel(server) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        try:
            reply = stub.Predict(request, timeout=timeout)
        except grpc.RpcError as error:
            code, said = error.code().name, error.details()
            raise ServerError(f"{server}, model {model}: {code}: {said}") from None
    return {name: tf.make_ndarray(tensor) for name, tensor in reply.outputs.items()}


def _printable(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return [_printable(part) for part in value] if isinstance(value, list) else value


def main(arguments: list[str] | None = None) -> None:
    made = parser(__doc__.split("\n")[0], "localhost:8500")
    args = made.parse_args(arguments)
    inputs = inputs_of(args, made)
    try:
        outputs = predict(
            args.server,
            args.model,
            inputs,
            args.signature,
            args.version,
            args.label,
            args.timeout,
        )
    except (ServerError, ImportError) as error:
        sys.exit(f"client_grpc.py: {error}")
    values = {name: _printable(array.tolist()) for name, array in outputs.items()}
    for row in by_rows(values, inputs):
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
