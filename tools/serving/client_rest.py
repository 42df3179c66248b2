"""Asks a model on TensorFlow Serving over REST.

usage: python tools/serving/client_rest.py "a fine film" "a dull one" --model classifier
       python tools/serving/client_rest.py --model classifier --label canary < texts.txt
       python tools/serving/client_rest.py --model classifier --signature pair \\
           --input text="a cat" --input text_pair="an animal"
       python tools/serving/client_rest.py --model classifier --signature tokens --json \\
           '{"token_ids": [[2, 5, 3]], "segment_ids": [[0, 0, 0]], "padding_mask": [[1, 1, 1]]}'

Texts come from the arguments or, one a line, from the standard input. Prints one JSON object a row
where each output has a part for each row, else one with all outputs. The standard library is
enough.
"""

import argparse
import base64
import http.client
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any


class ServerError(Exception):
    """The server cannot be reached, or answered with an error."""


def predict(
    server: str,
    model: str,
    inputs: Mapping[str, Any],
    signature: str = "serving_default",
    version: int | None = None,
    label: str | None = None,
    timeout: float = 10.0,
) -> Any:
    """Asks for the outputs of a signature.

    Args:
        server: its address: http://HOST:8501.
        model: name of the model.
        inputs: by name, nested lists with a part for each row; bytes are sent as `{"b64": ...}`.
        signature: name of the signature.
        version: number of the version to ask; None for the server's choice, the highest.
        label: label of the version to ask, instead of its number.
        timeout: seconds to wait for the connection, and for each part of the answer.

    Returns:
        outputs by name; of a signature with one output, its value alone.

    Raises:
        ServerError: with what the server said.
    """
    path = f"/v1/models/{urllib.parse.quote(model, safe='')}"
    if version is not None:
        path += f"/versions/{version}"
    elif label is not None:
        path += f"/labels/{urllib.parse.quote(label, safe='')}"
    url = f"{server.rstrip('/')}{path}:predict"
    body = {"signature_name": signature, "inputs": {k: _sendable(v) for k, v in inputs.items()}}
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            content = answer.read()
    except urllib.error.HTTPError as error:
        said = error.read().decode(errors="replace").strip()
        try:
            said = json.loads(said)["error"]
        except (ValueError, KeyError, TypeError):
            pass
        raise ServerError(f"{url}: status {error.code}: {said}") from None
    except TimeoutError:
        raise ServerError(f"{url}: no answer within {timeout:g} s") from None
    except urllib.error.URLError as error:
        late = isinstance(error.reason, TimeoutError)
        said = f"no connection within {timeout:g} s" if late else error.reason
        raise ServerError(f"{url}: {said}") from None
    except (OSError, http.client.HTTPException) as error:
        raise ServerError(f"{url}: {error!r}") from None
    try:
        return json.loads(content)["outputs"]
    except (ValueError, KeyError, TypeError):
        raise ServerError(f"{url}: no outputs in the answer: {content[:200]!r}") from None


def _sendable(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"b64": base64.b64encode(value).decode()}
    return [_sendable(part) for part in value] if isinstance(value, list | tuple) else value


def by_rows(outputs: Any, inputs: Mapping[str, Any]) -> list[Any]:
    """Cuts outputs into rows, if each has as many parts as the inputs; else it is one row."""
    rows = {len(value) for value in inputs.values()}
    if isinstance(outputs, Mapping):
        lengths = {len(v) if isinstance(v, list) else None for v in outputs.values()}
        if len(rows) == 1 and lengths == rows:
            columns = zip(*outputs.values(), strict=True)
            return [dict(zip(outputs, row, strict=True)) for row in columns]
    elif isinstance(outputs, list) and rows == {len(outputs)}:
        return outputs
    return [outputs]


def parser(description: str, server: str) -> argparse.ArgumentParser:
    """The arguments of both clients."""
    made = argparse.ArgumentParser(description=description, allow_abbrev=False)
    made.add_argument("texts", nargs="*", help="rows of the input `text`")
    made.add_argument("--server", default=server, help=f"default: {server}")
    made.add_argument("--model", required=True, help="its name in models.config")
    made.add_argument("--signature", default="serving_default")
    made.add_argument(
        "--input", action="append", default=[], metavar="NAME=TEXT", help="a row of an input"
    )
    made.add_argument("--json", help="all inputs as a JSON object of columns, for any dtype")
    which = made.add_mutually_exclusive_group()
    which.add_argument("--version", type=int)
    which.add_argument("--label", help="of the version: stable, canary")
    made.add_argument("--timeout", type=float, default=10.0, help="seconds")
    return made


def inputs_of(args: argparse.Namespace, made: argparse.ArgumentParser) -> dict[str, Any]:
    """The inputs that the arguments or the standard input give."""
    if bool(args.texts) + bool(args.input) + (args.json is not None) > 1:
        made.error("give texts, --input or --json, not several of these")
    if args.json is not None:
        try:
            inputs = json.loads(args.json)
        except ValueError as error:
            made.error(f"--json: {error}")
        if not isinstance(inputs, dict) or not all(isinstance(v, list) for v in inputs.values()):
            made.error("--json: expected an object of lists")
        return inputs
    columns: dict[str, Any] = {}
    for given in args.input:
        name, equals, text = given.partition("=")
        if not equals:
            made.error(f"--input {given}: expected NAME=TEXT")
        columns.setdefault(name, []).append(os.fsencode(text))
    if columns:
        return columns
    if args.texts:
        return {"text": [os.fsencode(text) for text in args.texts]}
    lines = sys.stdin.buffer.read().splitlines()
    if not lines:
        made.error("no texts: give some as arguments or on the standard input")
    return {"text": lines}


def main(arguments: list[str] | None = None) -> None:
    made = parser(__doc__.split("\n")[0], "http://localhost:8501")
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
    except ServerError as error:
        sys.exit(f"client_rest.py: {error}")
    for row in by_rows(outputs, inputs):
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
