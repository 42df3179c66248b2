"""Answers requests to a SavedModel in a process that knows TensorFlow and its text ops alone.

Started by tools/serve_check.py. Reads one JSON object a line and writes at least one for each:

  {"load": DIR, "threads": N or null}  the signatures, the ops beyond TensorFlow's own, seconds
  {"signature": S, "inputs": {...}}    the outputs with dtype and shape, or the error
  {"measure": {...}}                   lines with "progress", at last one with the figures

Values have TensorFlow Serving's REST form, in columns.
"""

import base64
import json
import os
import sys
import time
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

MINIMUM_CALLS = 20  # of a measurement, however long they take


def main() -> None:
    for name in ("keras_bert", "keras_hub"):
        sys.modules[name] = None  # type: ignore[assignment]  # an import is an error from here on
    # Libraries print to the standard output now and then: the replies go their own way.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(reply: dict[str, Any]) -> None:
        print(json.dumps(reply), file=replies, flush=True)

    import tensorflow  # noqa: F401  # before the first request comes

    model = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "load" in request:
                model, reply = load(request["load"], request["threads"])
                say(reply)
            elif "measure" in request:
                measure(model.signatures, **request["measure"], say=say)
            else:
                say(ask(model.signatures[request["signature"]], request["inputs"]))
        except Exception as error:
            say({"error": str(error), "kind": type(error).__name__})


def load(folder: str, threads: int | None) -> tuple[Any, dict[str, Any]]:
    """Loads a SavedModel; imports tensorflow_text if an op of the graph is not TensorFlow's."""
    import tensorflow as tf

    if threads:
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    ops = foreign_ops(folder)
    text = None
    if ops:
        import tensorflow_text

        text = tensorflow_text.__version__
    started = time.perf_counter()
    model = tf.saved_model.load(folder)
    return model, {
        "tensorflow": tf.__version__,
        "tensorflow_text": text,
        "ops": ops,
        "unregistered": [op for op in ops if not is_registered(op)],
        "load_seconds": time.perf_counter() - started,
        "signatures": {
            name: {
                "inputs": described(signature.structured_input_signature[1]),
                "outputs": described(signature.structured_outputs),
            }
            for name, signature in model.signatures.items()
        },
    }


def described(specs: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {
            "dtype": spec.dtype.name,
            "shape": None if spec.shape.rank is None else spec.shape.as_list(),
        }
        for name, spec in specs.items()
    }


def foreign_ops(folder: str) -> list[str]:
    """Names the ops of a SavedModel's graph that are not registered in this process."""
    from tensorflow.core.protobuf import saved_model_pb2

    with open(os.path.join(folder, "saved_model.pb"), "rb") as file:
        saved = saved_model_pb2.SavedModel.FromString(file.read())
    ops = set()
    for graph in (meta.graph_def for meta in saved.meta_graphs):
        functions = {function.signature.name for function in graph.library.function}
        ops |= {node.op for node in graph.node} - functions
        for function in graph.library.function:
            ops |= {node.op for node in function.node_def} - functions
    return sorted(op for op in ops if not is_registered(op))


def is_registered(op: str) -> bool:
    from tensorflow.python.framework import op_def_registry  # no public name for it

    return op_def_registry.get(op) is not None


def tensors(signature: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Makes tensors of the signature's dtypes out of REST values."""
    import numpy as np
    import tensorflow as tf

    specs = signature.structured_input_signature[1]
    made = {}
    for name, value in inputs.items():
        if name not in specs:
            raise ValueError(f"no input {name!r}: the signature has {', '.join(sorted(specs))}")
        dtype = specs[name].dtype
        array = np.array(as_bytes(value), object if dtype == tf.string else dtype.as_numpy_dtype)
        if array.size == 0 and array.ndim < (specs[name].shape.rank or 0):
            array = array.reshape([0] * specs[name].shape.rank)
        made[name] = tf.constant(array, dtype)
    return made


def ask(signature: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    outputs = signature(**tensors(signature, inputs))
    return {
        "outputs": {
            name: {
                "dtype": tensor.dtype.name,
                "shape": tensor.shape.as_list(),
                "value": as_json(tensor.numpy().tolist()),
            }
            for name, tensor in outputs.items()
        }
    }


def measure(
    signatures: Any,
    signature: str,
    rows: dict[str, list[Any]],
    batch: int,
    seconds: float,
    say: Any,
) -> None:
    """Times a signature on batches of rows, taken in turn, for some seconds."""
    import numpy as np

    function = signatures[signature]
    whole = tensors(function, rows)
    count = len(next(iter(rows.values())))
    whole = {name: tensor.numpy() for name, tensor in whole.items()}

    def request(number: int) -> dict[str, Any]:
        import tensorflow as tf

        at = np.arange(number * batch, (number + 1) * batch) % count
        return {name: tf.constant(array[at]) for name, array in whole.items()}

    # Once through the rows, so that no call of the measurement meets a shape for the first time.
    started = time.perf_counter()
    for number in range(min(-(-count // batch), 100)):
        function(**request(number))
        if time.perf_counter() - started > seconds:
            break
    times: list[float] = []
    begun = told = time.perf_counter()
    while (now := time.perf_counter()) - begun < seconds or len(times) < MINIMUM_CALLS:
        inputs = request(len(times))
        before = time.perf_counter()
        for tensor in function(**inputs).values():
            tensor.numpy()
        times.append(time.perf_counter() - before)
        if now - told > 0.5:
            told = now
            say({"progress": min((now - begun) / seconds, 1.0), "calls": len(times)})
    p50, p99 = np.percentile(times, [50, 99])
    say(
        {
            "batch": batch,
            "calls": len(times),
            "p50_ms": p50 * 1e3,
            "p99_ms": p99 * 1e3,
            "rows_per_second": batch * len(times) / sum(times),
        }
    )


def as_bytes(value: Any) -> Any:
    if isinstance(value, dict):
        return base64.b64decode(value["b64"], validate=True)
    if isinstance(value, str):
        return value.encode()
    return [as_bytes(part) for part in value] if isinstance(value, list) else value


def as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"b64": base64.b64encode(value).decode()}
    return [as_json(part) for part in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
