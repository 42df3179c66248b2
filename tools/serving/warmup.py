"""The requests that TensorFlow Serving answers by itself while it loads a model.

The first request of each shape is slow, so the server runs what it finds in the model's
`assets.extra/tf_serving_warmup_requests`, a TFRecord file of `tensorflow.serving.PredictionLog`
protos, before it says that the model is ready. A request that fails there keeps the model from
being loaded, so those that a server with batching could not answer are left out.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert.atomic import write_file
from tools.serving.examples import by_rows, tensor_value

FILE = "assets.extra/tf_serving_warmup_requests"
LIMIT = 1000  # the server refuses a model with more records


def prediction_log(
    signature: str, inputs: Mapping[str, Any], dtypes: Mapping[str, str], model: str = ""
) -> bytes:
    """Serializes one request as a `tensorflow.serving.PredictionLog`.

    Args:
        signature: name of the signature.
        inputs: by name, nested lists as in TensorFlow Serving's REST form; bytes that are no UTF-8
            are `{"b64": ...}`.
        dtypes: by name of the input, TensorFlow's name of its dtype: "string", "int32".
        model: name of the model, which a warm-up does not look at.

    Returns:
        the bytes of the proto, the same for the same request.
    """
    import numpy as np
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    log = prediction_log_pb2.PredictionLog()
    request = log.predict_log.request
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    for name, value in inputs.items():
        dtype = tf.as_dtype(dtypes[name])
        array = np.array(tensor_value(value), object if dtype == tf.string else None)
        request.inputs[name].CopyFrom(tf.make_tensor_proto(array, dtype))
    return log.SerializeToString(deterministic=True)


def choose(contract: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Picks the examples of a contract that a server can run while it loads the model.

    Args:
        contract: what contract.json holds.

    Returns:
        requests, at most `LIMIT`: of all examples with inputs and an answer, except, unless
        `serving_default` itself is one of these, those whose outputs are not one a row: a server
        with batching fails on them. A model whose `serving_default` is of that kind has to be
        served without batching anyway.
    """
    examples = [
        example
        for example in contract["examples"]
        if example["request"]["inputs"] and "outputs" in example["reply"]
    ]
    of = {id(example): by_rows(example, contract) for example in examples}
    if all(of[id(e)] for e in examples if _signature(e["request"]) == "serving_default"):
        examples = [example for example in examples if of[id(example)]]
    return [example["request"] for example in examples[:LIMIT]]


def write_warmup(path: str | Path, contract: Mapping[str, Any]) -> int:
    """Writes an export's warm-up requests.

    Args:
        path: folder of the SavedModel.
        contract: what its contract.json holds.

    Returns:
        how many requests were written to `FILE` in it.

    Raises:
        ValueError: if the contract has no example to make one of.
    """
    requests = choose(contract)
    if not requests:
        raise ValueError(f"the contract of {path} has no example that a warm-up could ask")
    logs = [
        prediction_log(
            _signature(request),
            request["inputs"],
            {
                name: spec["dtype"]
                for name, spec in contract["signatures"][_signature(request)]["inputs"].items()
            },
        )
        for request in requests
    ]
    write_file(Path(path) / FILE, records(logs))
    return len(logs)


def records(messages: Sequence[bytes]) -> bytes:
    """Frames messages as a TFRecord file.

    Args:
        messages: the content of each record.

    Returns:
        the file's content.
    """
    import tensorflow as tf

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "records"
        with tf.io.TFRecordWriter(str(file)) as writer:
            for message in messages:
                writer.write(message)
        return file.read_bytes()


def _signature(request: Mapping[str, Any]) -> str:
    return request.get("signature_name", "serving_default")
