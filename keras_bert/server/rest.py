"""Requests and replies of TensorFlow Serving's REST API.

Reference: tensorflow_serving/g3doc/api_rest.md and util/json_tensor.cc of tensorflow/serving. Where
a request is wrong, the status is theirs and the message names the input and the row.
"""

import base64
import binascii
import json
import re
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

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
_EXPECTED = {"b": "true or false", "i": "a whole number", "u": "a whole number", "f": "a number"}
LARGE = 1 << 16  # bytes of a body from which on parsing it can hold up others
_VALUES_OF_A_ROW = 128  # lists, objects, keys and strings
_SHOWN = 60  # characters of a value in a message


class RequestError(Exception):
    """A request that is answered with an error.

    Args:
        status: the HTTP status.
        message: the text of the answer's `error`.
        headers: further headers of the answer.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}


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
    """Unpacks a body.

    Args:
        body: as sent.
        encoding: the header Content-Encoding.
        limits: of the request.

    Raises:
        RequestError: if the encoding is unknown, the data is damaged or unpacks to too much.
    """
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise RequestError(415, f"Content-Encoding={shown(encoding)}: expected gzip or identity")
    unpacker = zlib.decompressobj(wbits=31)
    try:
        data = unpacker.decompress(body, limits.body + 1)
    except zlib.error as error:
        raise RequestError(400, f"body: damaged gzip data: {error}") from None
    if len(data) > limits.body:
        raise RequestError(413, too_large(limits))
    if not unpacker.eof:
        raise RequestError(400, "body: damaged gzip data: it ends too early")
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
    name = signature_of(request)
    if name not in signatures:
        raise RequestError(
            400,
            f'Serving signature name: "{shown(name, quote=False)}" not found in signature def; '
            f"expected one of {', '.join(signatures)}",
        )
    specs = signatures[name]["inputs"]
    if "instances" in request and "inputs" in request:
        raise RequestError(400, "expected only one of 'inputs' or 'instances' keys, got both")
    if "instances" in request:
        by_row, columns = True, _columns_of_instances(request["instances"], specs, limits)
    elif "inputs" in request:
        by_row, columns = False, _columns_of_inputs(request["inputs"], specs)
    else:
        raise RequestError(400, "Missing 'inputs' or 'instances' key")
    where = "instances" if by_row else "inputs"
    for n in specs:  # before the values are looked at
        _check_rows(n, len(columns[n]) if isinstance(columns[n], list) else 0, where, limits)
    inputs = {n: array_of(columns[n], specs[n], f"{where}: {n!r}", limits) for n in specs}
    counts = {n: len(value) for n, value in inputs.items()}
    rows = next(iter(counts.values()))
    for other, count in counts.items():
        if count != rows:
            first = next(iter(counts))
            raise RequestError(
                400,
                f"inputs: {first!r} has {rows} rows and {other!r} has {count}: expected as many",
            )
    check_encoding(body)
    return Predict(name, inputs, rows, by_row, max(map(_length, inputs.values()), default=0))


def _check_rows(name: str, rows: int, where: str, limits: Limits) -> None:
    if rows > limits.rows:
        raise RequestError(
            400, f"{where}: {name!r} has {rows:,} rows; expected at most {limits.rows:,}"
        )


def parse_object(body: bytes, limits: Limits) -> dict[str, Any]:
    """Parses JSON that is to be an object.

    `NaN`, `Infinity` and `-Infinity` are numbers, as in TensorFlow Serving.

    Args:
        body: the JSON.
        limits: of the request.

    Raises:
        RequestError: if it is not.
    """
    if not body:
        raise RequestError(400, "JSON Parse error: The document is empty")
    most = _VALUES_OF_A_ROW * limits.rows
    if len(body) > LARGE and _has_more(body, most):
        raise RequestError(
            400, f"body: expected at most {most:,} lists, objects, keys and strings in all"
        )
    try:
        # Bytes that are not UTF-8 become surrogates, so that the error can name their input.
        request = json.loads(body.decode("utf-8", "surrogateescape"))
    except json.JSONDecodeError as error:
        raise RequestError(400, f"JSON Parse error: {error.msg} at offset: {error.pos}") from None
    except RecursionError:
        raise RequestError(400, "JSON Parse error: nested too deeply") from None
    except ValueError:  # a whole number with thousands of digits
        raise RequestError(400, "JSON Parse error: a number has too many digits") from None
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


def check_encoding(body: bytes) -> None:
    """Refuses a body that is not UTF-8 where no input is wrong: in a name, or a key of no meaning.

    Raises:
        RequestError: with the place.
    """
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise RequestError(400, f"JSON Parse error: no UTF-8 at byte {error.start}") from None


def signature_of(request: dict[str, Any]) -> str:
    """The name of the requested signature.

    Raises:
        RequestError: if it is not a string.
    """
    name = request.get("signature_name", DEFAULT)
    if not isinstance(name, str):
        raise RequestError(
            400, f"'signature_name' key must be a string value, got {kind(name)}: {shown(name)}"
        )
    return name or DEFAULT


def _is_bytes(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"b64"}


def _columns_of_instances(instances: Any, specs: dict, limits: Limits) -> dict[str, list]:
    if not isinstance(instances, list):
        raise RequestError(400, f"instances: expected a list, got {kind(instances)}")
    if not instances:
        raise RequestError(400, "instances: no values; expected one or more")
    if len(instances) > limits.rows:
        raise RequestError(
            400, f"instances: {len(instances):,} rows; expected at most {limits.rows:,}"
        )
    names = ", ".join(map(repr, specs))
    named = isinstance(instances[0], dict) and not _is_bytes(instances[0])
    if not named and len(specs) > 1:
        raise RequestError(
            400,
            f"instances is a plain list: expected a list of objects, as the signature has several "
            f"inputs, {names}",
        )
    if not named:
        return {next(iter(specs)): instances}
    for number, item in enumerate(instances):
        if not isinstance(item, dict) or _is_bytes(item):
            raise RequestError(
                400, f"instances[{number}]: expected an object with {names}, got {kind(item)}"
            )
        if item.keys() != specs.keys():
            missing = [n for n in specs if n not in item]
            unknown = [n for n in item if n not in specs]
            said = f"Missing named input: {missing[0]}" if missing else "unknown named input: "
            said += "" if missing else shown(unknown[0], quote=False)
            raise RequestError(400, f"instances[{number}]: {said}; keys must be equal to: {names}")
    return {name: [item[name] for item in instances] for name in specs}


def _columns_of_inputs(inputs: Any, specs: dict) -> dict[str, Any]:
    names = ", ".join(map(repr, specs))
    if isinstance(inputs, dict) and not _is_bytes(inputs):
        for name in specs:
            if name not in inputs:
                raise RequestError(
                    400, f"Missing named input: {name} in 'inputs' object; expected {names}"
                )
        return inputs
    if len(specs) > 1:
        raise RequestError(
            400,
            f"inputs is a plain value/list: expected an object, as the signature has several "
            f"inputs, {names}",
        )
    return {next(iter(specs)): inputs}


def array_of(value: Any, spec: dict, where: str, limits: Limits) -> np.ndarray:
    """Converts nested lists of JSON values to an array.

    Args:
        value: the lists.
        spec: dtype and shape of the input, as in a contract.
        where: the input, for errors.
        limits: of the request.

    Returns:
        The array; strings as bytes, dtype object.

    Raises:
        RequestError: with the input and the place, for a value of another type, lists of unequal
            lengths, another rank, or a size that the shape does not have.
    """
    dtype = np.dtype(object) if spec["dtype"] == "string" else np.dtype(spec["dtype"])
    shape, rank = [], len(spec["shape"])
    inner = value
    for axis in range(rank):
        if not isinstance(inner, list):
            place = where + "[0]" * axis
            raise RequestError(
                400, f"{place}: expected {_described(spec)}, got {kind(inner)}: {shown(inner)}"
            )
        shape.append(len(inner))
        if not inner:
            shape += [size or 0 for size in spec["shape"][axis + 1 :]]
            break
        inner = inner[0]
    flat: list = []
    _flatten(value, 0, shape, dtype, spec, where, limits, flat)
    for axis, (size, expected) in enumerate(zip(shape, spec["shape"], strict=True)):
        if expected is not None and size != expected:
            raise RequestError(400, f"{where}: axis {axis} has {size} values; expected {expected}")
    return np.array(flat, dtype).reshape(shape)


def _flatten(value, axis, shape, dtype, spec, where, limits, flat) -> None:
    if axis < len(shape):
        if not isinstance(value, list):
            raise RequestError(
                400, f"{where}: expected {_described(spec)}, got {kind(value)}: {shown(value)}"
            )
        if len(value) != shape[axis]:
            raise RequestError(
                400,
                f"{where}: {len(value)} values, expected {shape[axis]}, as the first has: lists of "
                "one input are equally long",
            )
        for number, item in enumerate(value):
            _flatten(item, axis + 1, shape, dtype, spec, f"{where}[{number}]", limits, flat)
        return
    flat.append(_value(value, dtype, where, limits))


def _value(value, dtype: np.dtype, where: str, limits: Limits):
    if dtype.kind == "O":
        if isinstance(value, str):
            return _text(value, where, limits)
        if _is_bytes(value) and isinstance(value["b64"], str):
            return _decoded(value["b64"], where, limits)
        raise RequestError(
            400, f'{where}: expected a string or {{"b64": ...}}, got {kind(value)}: {shown(value)}'
        )
    right = {"b": bool, "i": int, "u": int, "f": (int, float)}[dtype.kind]
    if not isinstance(value, right) or (isinstance(value, bool) and dtype.kind != "b"):
        raise RequestError(
            400, f"{where}: expected {_EXPECTED[dtype.kind]}, got {kind(value)}: {shown(value)}"
        )
    if dtype.kind in "iu":
        limit = np.iinfo(dtype)
        if not limit.min <= value <= limit.max:
            raise RequestError(400, f"{where}: {shown(value)} does not fit into {dtype.name}")
    elif dtype.kind == "f" and float(np.finfo(dtype).max) < abs(value) != float("inf"):
        raise RequestError(400, f"{where}: {shown(value)} does not fit into {dtype.name}")
    return value


def _text(value: str, where: str, limits: Limits) -> bytes:
    if len(value) > limits.text:
        raise RequestError(
            400, f"{where}: {len(value):,} characters; expected at most {limits.text:,}"
        )
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise RequestError(
            400,
            f"{where}: no valid Unicode at character {error.start}: a lone surrogate, or bytes "
            "that are not UTF-8",
        ) from None


def _decoded(value: str, where: str, limits: Limits) -> bytes:
    try:
        # As TensorFlow Serving, with or without padding, in both alphabets.
        data = value.encode("ascii").translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
        data = base64.b64decode(data + b"=" * (-len(data) % 4), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise RequestError(400, f"{where}: 'b64' is not valid base64") from None
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise RequestError(
            400, f"{where}: byte {error.start} of the decoded 'b64' is not UTF-8"
        ) from None
    if len(text) > limits.text:
        raise RequestError(
            400, f"{where}: {len(text):,} characters; expected at most {limits.text:,}"
        )
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
    """A value for a message: short, and printable without surprises.

    Args:
        value: of JSON.
        quote: whether to put strings in quotation marks.
    """
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


def reply_of(outputs: dict[str, np.ndarray], by_row: bool) -> bytes:
    """The JSON of a reply.

    Args:
        outputs: arrays by name.
        by_row: whether to reply by row (`predictions`), or by column (`outputs`).

    Returns:
        As TensorFlow Serving: a single output without its name, and outputs whose names end with
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
