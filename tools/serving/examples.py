"""Requests and replies of a contract, in the columns of TensorFlow Serving's REST form."""

import base64
from collections.abc import Mapping
from typing import Any


def tensor_value(value: Any) -> Any:
    """Turns a value of the REST form into what a tensor holds.

    Args:
        value: nested lists of numbers, strings and `{"b64": ...}`.

    Returns:
        the same, with bytes for `{"b64": ...}` and for strings.
    """
    if isinstance(value, Mapping):
        return base64.b64decode(value["b64"], validate=True)
    if isinstance(value, str):
        return value.encode()
    return [tensor_value(part) for part in value] if isinstance(value, list) else value


def outputs_by_name(example: Mapping[str, Any], contract: Mapping[str, Any]) -> dict[str, Any]:
    """Gives the outputs of an example by name.

    Args:
        example: with a `request` and a `reply`, whose only output comes without its name.
        contract: what contract.json holds.

    Returns:
        by name, nested lists.
    """
    outputs = example["reply"]["outputs"]
    signature = example["request"].get("signature_name", "serving_default")
    names = list(contract["signatures"][signature]["outputs"])
    return {names[0]: outputs} if len(names) == 1 else dict(outputs)


def by_rows(example: Mapping[str, Any], contract: Mapping[str, Any]) -> bool:
    """Tells whether TensorFlow Serving's batching can serve a signature, by one example of it.

    The server joins the inputs of several requests along their first axis and cuts each output
    along its first axis again. It refuses a run whose outputs are not as long there as the inputs,
    even if it holds one request alone, and a signature without inputs.

    Args:
        example: with a `request` and a `reply`.
        contract: what contract.json holds.

    Returns:
        whether each input and output has as many parts as the others. Flat outputs with
        `row_splits` beside them have not.
    """
    inputs = example["request"]["inputs"].values()
    values = [*inputs, *outputs_by_name(example, contract).values()]
    return bool(inputs) and all(
        isinstance(value, list) and len(value) == len(values[0]) for value in values
    )
