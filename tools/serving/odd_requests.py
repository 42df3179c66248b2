"""Requests that a server has to refuse, with the input that its answer has to name."""

import base64
import copy
import gzip
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

LONG = 1_000_000  # characters: more than a server takes
ROWS = 5_000


class OddRequest(NamedTuple):
    """One request.

    Attributes:
        kind: a name for tables.
        method: of HTTP.
        path: the same.
        headers: the same.
        body: the same.
        named: what the answer's error has to contain; "" for anything.
    """

    kind: str
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    named: str


def odd_requests(
    model: str, contract: Mapping[str, Any], count: int, seed: int
) -> Iterator[OddRequest]:
    """Draws requests.

    Args:
        model: its name on the server.
        contract: of its export.
        count: number of requests.
        seed: of the draw.

    Yields:
        Requests that a right server answers with a status from 400 to 499.
    """
    makers = Makers(model, contract, random.Random(seed))
    kinds = sorted(name for name in dir(makers) if name.startswith("make_"))
    for number in range(count):
        # All kinds in turn, so that few requests hold each of them.
        kind = kinds[number % len(kinds)]
        yield getattr(makers, kind)()._replace(kind=kind.removeprefix("make_"))


class Makers:
    """Makes one request of each kind from a right one."""

    def __init__(self, model: str, contract: Mapping[str, Any], draw: random.Random):
        self._draw, self._contract = draw, contract
        self._path = f"/v1/models/{model}:predict"
        self._model = model

    def make_broken_json(self):
        body = self._bytes(self._right()[0])
        cut = self._draw.randrange(len(body))
        return self._odd(body[:cut] if self._draw.random() < 0.5 else body[cut + 1 :] + b"]")

    def make_random_bytes(self):
        return self._odd(b"\xff" + self._draw.randbytes(self._draw.randrange(200)))

    def make_json_but_no_object(self):
        values = (None, True, 5, "text", [], [{"instances": ["x"]}], 1e400)
        return self._odd(self._bytes(self._draw.choice(values)))

    def make_deep_json(self):
        return self._odd(b'{"instances": ' + b"[" * 100_000)

    def make_number_of_many_digits(self):
        return self._odd(b'{"instances": [' + b"9" * 10_000 + b"]}")

    def make_neither_inputs_nor_instances(self):
        request, _ = self._right()
        request["data"] = request.pop("inputs")
        return self._odd(self._bytes(request), "inputs")

    def make_both_inputs_and_instances(self):
        request, _ = self._right()
        return self._odd(self._bytes(request | {"instances": ["x"]}), "instances")

    def make_no_instances(self):
        value = self._draw.choice(([], {}, None, "x", 5))
        return self._odd(self._bytes({"instances": value}), "instances")

    def make_unknown_signature(self):
        request, _ = self._right()
        request["signature_name"] = self._draw.choice(("classify", "x" * 5000, "../..", "\0", "é"))
        return self._odd(self._bytes(request), "signature")

    def make_signature_of_another_type(self):
        request, _ = self._right()
        request["signature_name"] = self._draw.choice((5, None, [], {}, True))
        return self._odd(self._bytes(request), "signature_name")

    def make_missing_input(self):
        request, name = self._right()
        del request["inputs"][name]
        if self._draw.random() < 0.5 or not request["inputs"]:
            return self._odd(self._bytes(request | {"inputs": request["inputs"] or {"a": 1}}), name)
        return self._odd(self._by_row(request), name)

    def make_misspelt_input_in_a_row(self):
        request, name = self._right()
        request["inputs"][name + "s"] = request["inputs"].pop(name)
        return self._odd(self._by_row(request), name)

    def make_value_of_another_type(self):
        request, name = self._right()
        value = [None, {}, {"b64": 5}, {"b64": "eA==", "more": 1}, ["x"], [[]]]
        self._replace(request, name, self._draw.choice(value + self._wrong_scalars(request, name)))
        by_row = self._draw.random() < 0.5
        return self._odd(self._by_row(request) if by_row else self._bytes(request), name)

    def make_another_rank(self):
        request, name = self._right()
        column = request["inputs"][name]
        request["inputs"][name] = self._draw.choice(("x", 5, None, [column], [[column]]))
        return self._odd(self._bytes(request), name)

    def make_unequal_numbers_of_rows(self):
        request, name = self._right(several=True)
        if len(request["inputs"]) == 1:
            return self.make_another_rank()
        request["inputs"][name] *= 2
        return self._odd(self._bytes(request), name)

    def make_unequal_lists(self):
        request, name = self._right("tokens" if "tokens" in self._contract["signatures"] else None)
        if not isinstance(request["inputs"][name][0], list):
            return self.make_another_rank()
        request["inputs"][name] = [*request["inputs"][name], request["inputs"][name][0] * 2]
        return self._odd(self._bytes(request), name)

    def make_ids_out_of_range(self):
        if "tokens" not in self._contract["signatures"]:
            return self.make_another_rank()
        request, name = self._right("tokens")
        value = self._draw.choice((-1, 1 << 20, 1 << 40, 1 << 70, 0.5, "7", True))
        self._replace(request, name, value)
        return self._odd(self._bytes(request), name)

    def make_rows_too_long(self):
        if "tokens" not in self._contract["signatures"]:
            return self.make_another_rank()
        request, _ = self._right("tokens")
        inputs = {
            name: [[1] * 20_000] if isinstance(column[0], list) else column[:1]
            for name, column in request["inputs"].items()
        }
        return self._odd(self._bytes(request | {"inputs": inputs}), "token_ids")

    def make_long_text(self):
        request, name = self._text()
        self._replace(request, name, self._draw.choice("x é中") * LONG)
        return self._odd(self._bytes(request), name)

    def make_lone_surrogate(self):
        request, name = self._text()
        surrogate = chr(self._draw.randrange(0xD800, 0xE000))
        self._replace(request, name, "a" * self._draw.randrange(9) + surrogate + " b")
        by_row = self._draw.random() < 0.5
        return self._odd(self._by_row(request) if by_row else self._bytes(request), name)

    def make_bad_base64(self):
        request, name = self._text()
        self._replace(request, name, {"b64": self._draw.choice(("*", "é", "abc$", "a"))})
        return self._odd(self._bytes(request), name)

    def make_bytes_that_are_no_text(self):
        request, name = self._text()
        data = base64.b64encode(b"\xff\xfe" + self._draw.randbytes(5)).decode()
        self._replace(request, name, {"b64": data})
        return self._odd(self._bytes(request), name)

    def make_too_many_rows(self):
        request, _ = self._text()
        request["inputs"] = {n: (v * ROWS)[:ROWS] for n, v in request["inputs"].items()}
        named = next(iter(request["inputs"]))
        by_row = self._draw.random() < 0.5
        body = self._by_row(request) if by_row else self._bytes(request)
        return self._odd(body, "instances" if by_row else named)

    def make_large_body(self):
        return self._odd(b'{"instances": ["' + b"x" * (9 << 20) + b'"]}', "body")

    def make_damaged_gzip(self):
        request, _ = self._right()
        data = gzip.compress(self._bytes(request))
        odd = self._odd(data[: self._draw.randrange(1, len(data) - 1)], "body")
        return odd._replace(headers=odd.headers | {"Content-Encoding": "gzip"})

    def make_gzip_bomb(self):
        odd = self._odd(gzip.compress(b" " * (64 << 20)), "body")
        return odd._replace(headers=odd.headers | {"Content-Encoding": "gzip"})

    def make_unknown_encoding(self):
        odd = self._odd(self._bytes(self._right()[0]), "Content-Encoding")
        return odd._replace(headers=odd.headers | {"Content-Encoding": "br"})

    def make_unknown_model_or_version(self):
        name = self._model
        path, named = self._draw.choice(
            (
                ("/v1/models/nope:predict", "nope"),
                (f"/v1/models/{name}/versions/987654:predict", "987654"),
                (f"/v1/models/{name}/versions/{'9' * 400}:predict", name),
                (f"/v1/models/{name}/labels/nope:predict", "nope"),
            )
        )
        return self._odd(self._bytes(self._right()[0]), named)._replace(path=path)

    def make_malformed_path(self):
        paths = (
            "",
            ":explain",
            "/versions/x:predict",
            "/versions/1/labels/a:predict",
            "//:predict",
        )
        path = f"/v1/models/{self._model}{self._draw.choice(paths)}"
        return self._odd(self._bytes(self._right()[0]), "Malformed")._replace(path=path)

    def make_another_method(self):
        method = self._draw.choice(("PUT", "DELETE", "PATCH", "GET"))
        return self._odd(b"", "Malformed")._replace(method=method)

    def make_classify(self):
        method = self._draw.choice(("classify", "regress"))
        path = self._path.replace("predict", method)
        return self._odd(self._bytes({"examples": [{"text": "x"}]}), method)._replace(path=path)

    def _right(self, signature: str | None = None, several: bool = False):
        """A right request and the name of one of its inputs."""
        examples = [
            example["request"]
            for example in self._contract["examples"]
            if example["request"]["signature_name"] != "metadata"
            and example["request"]["signature_name"] == (signature or "serving_default")
        ]
        if several:
            found = [e["request"] for e in self._contract["examples"]]
            examples = [e for e in found if len(e["inputs"]) > 1] or examples
        request = copy.deepcopy(self._draw.choice(examples))
        return request, self._draw.choice(sorted(request["inputs"]))

    def _text(self):
        """A right request and the name of an input of strings."""
        specs = self._contract["signatures"]
        request = self._draw.choice(
            [
                example["request"]
                for example in self._contract["examples"]
                if any(
                    spec["dtype"] == "string"
                    for spec in specs[example["request"]["signature_name"]]["inputs"].values()
                )
            ]
        )
        inputs = specs[request["signature_name"]]["inputs"]
        names = sorted(name for name, spec in inputs.items() if spec["dtype"] == "string")
        return copy.deepcopy(request), self._draw.choice(names)

    def _wrong_scalars(self, request, name) -> list:
        dtype = self._contract["signatures"][request["signature_name"]]["inputs"][name]["dtype"]
        return [5, 1.5, True] if dtype == "string" else ["x", True, 1e300, float("nan")]

    def _replace(self, request, name, value) -> None:
        column = request["inputs"][name]
        while isinstance(column[0], list) and column[0]:
            column = self._draw.choice([part for part in column if len(part)])
        column[self._draw.randrange(len(column))] = value

    def _by_row(self, request) -> bytes:
        columns = request.pop("inputs")
        count = len(next(iter(columns.values())))
        rows = [{name: column[i] for name, column in columns.items()} for i in range(count)]
        return self._bytes(request | {"instances": rows})

    def _bytes(self, value) -> bytes:
        return json.dumps(value, ensure_ascii=self._draw.random() < 0.9).encode(
            "utf-8", "surrogatepass"
        )

    def _odd(self, body: bytes, named: str = "") -> OddRequest:
        headers = {"Content-Type": "application/json"}
        return OddRequest("", "POST", self._path, headers, body, named)
