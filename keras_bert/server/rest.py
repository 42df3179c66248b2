"""Requests and replies of TensorFlow Serving's REST API.

Reference: tensorflow_serving/g3doc/api_rest.md and util/json_tensor.cc of tensorflow/serving. Where
a request is wrong, the status is theirs and the message names the input and the row.
"""

import base64
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from starlette.exceptions import HTTPException

from keras_bert.serving.export_contract import plain_values

DEFAULT = "serving_default"
PREDICTION = re.compile(
    r"/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?:(classify|regress|predict)", re.I
)
STATUS = re.compile(
    r"/v1/models(?:/([^/:]+))?(?:/versions/(\d+)|/labels/([^/:]+))?(?:/(metadata))?", re.I
)
_KINDS = {
    bool: "a boolean",
    int: "a whole number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
_TYPES = {"b": bool, "i": int, "u": int, "f": int | float}
_EXPECTED = {
    "b": "true or false",
    "i": "a whole number",
    "u": "a whole number",
    "f": "a number",
    "O": 'a string or {"b64": ...}',
}
LARGE = 1 << 16  # bytes of a body from which on parsing it can hold up others
_VALUES_OF_A_ROW = 128  # lists, objects, keys and strings
_SHOWN = 60  # characters of a value in a message


class RequestError(HTTPException):
    """A request that is answered with a status, the detail as `error`, and further headers."""


@dataclass(frozen=True)
class Limits:
    """Limits of one request.

    Attributes:
        body: bytes of the body, unpacked if it is gzipped.
        rows: number of rows.
        text: number of characters of a string.
    """

    body: int = 8 << 20
    rows: int = 1024
    text: int = 100_000


@dataclass
class Predict:
    """A request for the outputs of a signature.

    Attributes:
        signature: its name.
        inputs: arrays by name, in the order of the signature; strings as bytes, dtype object.
        rows: size of axis 0.
        by_row: whether the request is in row form (`instances`), and the reply too.
        length: characters of the longest string, or the size of axis 1 of numbers.
    """

    signature: str
    inputs: dict[str, np.ndarray]
    rows: int
    by_row: bool
    length: int


def unpacked(body: bytes, encoding: str, limits: Limits) -> bytes:
    """Unpacks a body of that Content-Encoding.

    Raises:
        RequestError: if the encoding is unknown, the data is damaged or unpacks to too much.
    """
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise RequestError(415, f"Content-Encoding={shown(encoding)}: expected gzip or identity")
    unpacker, data, problem = zlib.decompressobj(wbits=31), b"", "it ends too early"
    try:
        data = unpacker.decompress(body, limits.body + 1)
    except zlib.error as error:
        problem = str(error)
    if len(data) > limits.body:
        raise RequestError(413, too_large(limits))
    if not unpacker.eof:
        raise RequestError(400, f"body: damaged gzip data: {problem}")
    return data


def too_large(limits: Limits) -> str:
    """The message for a body above the limit."""
    return f"body: expected at most {limits.body:,} bytes"


def parse_predict(body: bytes, signatures: dict[str, dict], limits: Limits) -> Predict:
    """Parses the body of a `:predict` request.

    Args:
        body: JSON.
        signatures: by name, "inputs" with the dtype and shape of each, as in a contract.
        limits: of the request.

    Raises:
        RequestError: with the input and the row, if the request is wrong.
    """
    request = parse_object(body, limits)
    name = signature_of(request, signatures)
    specs = signatures[name]["inputs"]
    forms = [key for key in ("instances", "inputs") if key in request]
    if len(forms) != 1:
        both = "expected only one of 'inputs' or 'instances' keys, got both"
        raise RequestError(400, both if forms else "Missing 'inputs' or 'instances' key")
    (where,) = forms
    if where == "instances":
        columns = _columns_of_instances(request["instances"], specs, limits)
    else:
        columns = _columns_of_inputs(request["inputs"], specs)
        for n in specs:  # before the values are looked at
            if isinstance(columns[n], list):
                _check_rows(f"inputs: {n!r} has", columns[n], limits)
    inputs = {n: array_of(columns[n], specs[n], f"{where}: {n!r}", limits) for n in specs}
    first, rows = next((n, len(value)) for n, value in inputs.items())
    for other, value in inputs.items():
        if len(value) != rows:
            raise RequestError(
                400,
                f"inputs: {first!r} has {rows} rows and {other!r} has {len(value)}: expected as "
                "many",
            )
    try:  # where no input is wrong: in a name, or a key of no meaning
        body.decode()
    except UnicodeDecodeError as error:
        raise RequestError(400, f"JSON Parse error: no UTF-8 at byte {error.start}") from None
    length = max(map(_length, inputs.values()), default=0)
    return Predict(name, inputs, rows, where == "instances", length)


def _check_rows(where: str, rows: list, limits: Limits) -> None:
    if len(rows) > limits.rows:
        raise RequestError(400, f"{where} {len(rows):,} rows; expected at most {limits.rows:,}")


def parse_object(body: bytes, limits: Limits) -> dict[str, Any]:
    """Parses JSON that is to be an object.

    `NaN`, `Infinity` and `-Infinity` are numbers, as in TensorFlow Serving.

    Raises:
        RequestError: if it is not.
    """
    most = _VALUES_OF_A_ROW * limits.rows
    if len(body) > LARGE and _has_more(body, most):
        raise RequestError(
            400, f"body: expected at most {most:,} lists, objects, keys and strings in all"
        )
    try:
        # Bytes that are not UTF-8 become surrogates, so that the error can name their input.
        request, problem = json.loads(body.decode("utf-8", "surrogateescape")), ""
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at offset: {error.pos}" if body else "The document is empty"
    except RecursionError:
        problem = "nested too deeply"
    except ValueError:  # a whole number with thousands of digits
        problem = "a number has too many digits"
    if problem:
        raise RequestError(400, f"JSON Parse error: {problem}")
    if not isinstance(request, dict):
        raise RequestError(400, f"body: expected a JSON object, got {kind(request)}")
    return request


def _has_more(body: bytes, most: int) -> bool:
    """Whether JSON has more than `most` lists, objects, keys and strings.

    Python's parser lets nothing else run until it is done, not even in a thread: 2.8 million lists
    in 8 MB take two seconds, most of them for the garbage collector. A right request has few, so
    they are counted first, in milliseconds. Numbers are not: 4 million take a tenth of a second.
    Depth needs no count: the parser ends at a thousand levels.
    """

    def count(text: bytes) -> int:
        return sum(map(text.count, (b"[", b"{", b":")))

    if body.count(b'"') // 2 + count(body) <= most:  # those inside of strings too
        return False
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")  # leaves quotes around strings
    strings = plain.count(b'"') // 2
    return strings > most or strings + count(b"".join(plain.split(b'"')[::2])) > most


def signature_of(request: dict[str, Any], signatures: Mapping[str, Any]) -> str:
    """The name of the requested signature.

    Raises:
        RequestError: if it is not a string, or is none of the signatures.
    """
    name = request.get("signature_name", DEFAULT)
    if not isinstance(name, str):
        raise RequestError(
            400, f"'signature_name' key must be a string value, got {kind(name)}: {shown(name)}"
        )
    name = name or DEFAULT
    if name not in signatures:
        raise RequestError(
            400,
            f'Serving signature name: "{shown(name, quote=False)}" not found in signature def; '
            f"expected one of {', '.join(signatures)}",
        )
    return name


def _is_bytes(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"b64"}


def _columns_of_instances(instances: Any, specs: dict, limits: Limits) -> dict[str, list]:
    if not isinstance(instances, list) or not instances:
        problem = "no values; expected one or more"
        problem = problem if instances == [] else f"expected a list, got {kind(instances)}"
        raise RequestError(400, f"instances: {problem}")
    _check_rows("instances:", instances, limits)
    names = ", ".join(map(repr, specs))
    named = isinstance(instances[0], dict) and not _is_bytes(instances[0])
    if not named:
        problem = "instances is a plain list: expected a list of objects"
        return _only_input(instances, specs, problem)
    for number, item in enumerate(instances):
        if not isinstance(item, dict) or _is_bytes(item):
            problem = f"expected an object with {names}, got {kind(item)}"
        elif missing := [n for n in specs if n not in item]:
            problem = f"Missing named input: {missing[0]}; keys must be equal to: {names}"
        elif unknown := [n for n in item if n not in specs]:
            unknown = shown(unknown[0], quote=False)
            problem = f"unknown named input: {unknown}; keys must be equal to: {names}"
        else:
            continue
        raise RequestError(400, f"instances[{number}]: {problem}")
    return {name: [item[name] for item in instances] for name in specs}


def _columns_of_inputs(inputs: Any, specs: dict) -> dict[str, Any]:
    if not isinstance(inputs, dict) or _is_bytes(inputs):
        return _only_input(inputs, specs, "inputs is a plain value/list: expected an object")
    if missing := [name for name in specs if name not in inputs]:
        names = ", ".join(map(repr, specs))
        raise RequestError(
            400, f"Missing named input: {missing[0]} in 'inputs' object; expected {names}"
        )
    return inputs


def _only_input(values: Any, specs: dict, problem: str) -> dict[str, Any]:
    if len(specs) > 1:
        names = ", ".join(map(repr, specs))
        raise RequestError(400, f"{problem}, as the signature has several inputs, {names}")
    return {next(iter(specs)): values}


def array_of(value: Any, spec: dict, where: str, limits: Limits) -> np.ndarray:
    """Converts nested lists of JSON values to an array; strings are bytes, of dtype object.

    Args:
        value: the lists.
        spec: dtype and shape of the input, as in a contract.
        where: the input, for errors.
        limits: of the request.

    Raises:
        RequestError: with the input and the place, for a value of another type, lists of unequal
            lengths, another rank, or a size that the shape does not have.
    """
    dtype = np.dtype(object) if spec["dtype"] == "string" else np.dtype(spec["dtype"])
    least, most = _range_of(dtype)
    shape, inner, flat = [], value, []
    for size in spec["shape"]:
        if not isinstance(inner, list | None):
            break  # which is an error below
        shape.append((size or 0) if inner is None else len(inner))
        inner = inner[0] if inner else None

    def flatten(value, axis: int, where: str) -> None:
        if axis == len(spec["shape"]):
            flat.append(_value(value, dtype, least, most, where, limits))
            return
        if not isinstance(value, list) or len(value) != shape[axis]:
            problem = f"expected {_described(spec)}, got {kind(value)}: {shown(value)}"
            if isinstance(value, list):
                problem = f"{len(value)} values, expected {shape[axis]}, as the first has: "
                problem += "lists of one input are equally long"
            raise RequestError(400, f"{where}: {problem}")
        for number, item in enumerate(value):
            flatten(item, axis + 1, f"{where}[{number}]")

    flatten(value, 0, where)
    for axis, (size, expected) in enumerate(zip(shape, spec["shape"], strict=True)):
        if expected is not None and size != expected:
            raise RequestError(400, f"{where}: axis {axis} has {size} values; expected {expected}")
    return np.array(flat, dtype).reshape(shape)


def _range_of(dtype: np.dtype) -> tuple[float, float]:
    """The smallest and the largest finite number of a type."""
    if dtype.kind == "f":
        return float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    return (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else (0, 1)


def _value(value, dtype: np.dtype, least, most, where: str, limits: Limits):
    if dtype.kind == "O":
        right = isinstance(value, str) or (_is_bytes(value) and isinstance(value["b64"], str))
    else:
        right = isinstance(value, _TYPES[dtype.kind])
        right = right and (dtype.kind == "b" or not isinstance(value, bool))
    if not right:
        raise RequestError(
            400, f"{where}: expected {_EXPECTED[dtype.kind]}, got {kind(value)}: {shown(value)}"
        )
    if dtype.kind == "O":
        return _bytes_of(value, where, limits)
    if not least <= value <= most and (dtype.kind != "f" or most < abs(value) != float("inf")):
        raise RequestError(400, f"{where}: {shown(value)} does not fit into {dtype.name}")
    return value


def _bytes_of(value: str | dict, where: str, limits: Limits) -> bytes:
    """A text, or the object of one in base64, as UTF-8."""
    plain, problem, data = isinstance(value, str), "", b""
    try:
        if plain:
            text, data = value, value.encode()
        else:
            # As TensorFlow Serving, with or without padding, in both alphabets.
            data = value["b64"].encode("ascii").translate(bytes.maketrans(b"-_", b"+/"))
            data = data.rstrip(b"=")
            data = base64.b64decode(data + b"=" * (-len(data) % 4), validate=True)
            text = data.decode()
        if len(text) > limits.text:
            problem = f"{len(text):,} characters; expected at most {limits.text:,}"
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} of the decoded 'b64' is not UTF-8"
    except ValueError as error:  # UnicodeEncodeError, binascii.Error
        problem = "'b64' is not valid base64"
        if plain:
            problem = f"no valid Unicode at character {error.start}: a lone surrogate, or bytes "
            problem += "that are not UTF-8"
    if problem:
        raise RequestError(400, f"{where}: {problem}")
    return data


def _length(values: np.ndarray) -> int:
    if values.dtype.kind == "O":
        return max(map(len, values.flat), default=0) * (values.shape[1] if values.ndim > 1 else 1)
    return values.shape[1] if values.ndim > 1 else 0


def _described(spec: dict) -> str:
    value = "strings" if spec["dtype"] == "string" else f"{spec['dtype']} numbers"
    if spec["dtype"] == "bool":
        value = "booleans"
    return "a list of " + "lists of " * (len(spec["shape"]) - 1) + value


def kind(value: Any) -> str:
    """The JSON type of a value, in words."""
    return _KINDS[type(value)]


def shown(value: Any, quote: bool = True) -> str:
    """A value of JSON for a message: short, and printable without surprises."""
    if isinstance(value, int) and value.bit_length() > 200:
        return "a number of many digits"
    if isinstance(value, str):
        value = value[: _SHOWN + 1]
        text = ascii(value) if quote else ascii(value)[1:-1]
    elif isinstance(value, list | dict):
        text = f"{kind(value)} of {len(value)}"
    else:
        text = json.dumps(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def not_found(name: str, number: str | None = None) -> RequestError:
    """The error for a model or version that is not served, as TensorFlow Serving's."""
    which = f"Latest({name})" if number is None else f"Specific({name}, {number[:20]})"
    return RequestError(404, f"Servable not found for request: {which}")


def reply_of(outputs: dict[str, np.ndarray], by_row: bool) -> bytes:
    """The JSON of a reply, by row (`predictions`) or by column (`outputs`).

    As TensorFlow Serving's: a single output without its name, and outputs whose names end with
    `_bytes`, or that are not UTF-8, as base64.
    """
    values: dict[str, Any] = {}
    finite = True
    for name, value in outputs.items():
        if value.dtype.kind in "OS":
            values[name] = plain_values(value)
            if name.endswith("_bytes"):
                values[name] = _encoded(value.tolist())
        elif value.dtype.kind in "fV":
            value = value.astype("float32") if value.dtype.itemsize < 4 else value
            finite = finite and bool(np.isfinite(value).all())
            values[name] = np.ascontiguousarray(value)
        else:
            values[name] = np.ascontiguousarray(value)
    if not finite:  # orjson writes null for NaN; TensorFlow Serving writes NaN
        values = {n: v.tolist() if isinstance(v, np.ndarray) else v for n, v in values.items()}
    if not by_row:
        content: Any = {"outputs": values if len(values) != 1 else next(iter(values.values()))}
    elif len(values) == 1:
        content = {"predictions": next(iter(values.values()))}
    else:
        rows = zip(*values.values(), strict=True)
        content = {"predictions": [dict(zip(values, row, strict=True)) for row in rows]}
    if not finite:
        return json.dumps(content, ensure_ascii=False).encode()
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)


def _encoded(value):
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    return {"b64": base64.b64encode(value).decode()}
