"""What differs between an export's contract and what the model answers."""

from collections.abc import Mapping
from typing import Any

TOLERANCE = 1e-5  # of floats, absolute, and relative for those above 1


def signature_differences(expected: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Compares the names, dtypes and shapes of a contract's signatures with the model's."""
    problems = []
    for name in sorted({*expected, *found}):
        for side in ("inputs", "outputs"):
            said, has = (
                {
                    tensor: {key: spec[key] for key in ("dtype", "shape")}
                    for tensor, spec in signatures.get(name, {}).get(side, {}).items()
                }
                for signatures in (expected, found)
            )
            if said != has:
                problems.append(f"{name}, {side}: the contract says {said}, the model has {has}")
    return problems


def example_differences(
    number: int, example: Mapping[str, Any], contract: Mapping[str, Any], reply: Mapping[str, Any]
) -> list[str]:
    """Compares the reply of a contract's example with the model's.

    Args:
        number: of the example, from 0.
        example: with `request` and `reply`.
        contract: what contract.json holds.
        reply: the model's, with `outputs` of dtype, shape and value, or an `error`.

    Returns:
        one line for each output that differs.
    """
    from tools.serving.examples import outputs_by_name

    signature = example["request"].get("signature_name", "serving_default")
    where = f"example {number} ({signature})"
    if "error" in example["reply"]:
        said = example["reply"]["error"]
        return [] if "error" in reply else [f"{where}: an answer, expected the error {said!r}"]
    if "error" in reply:
        return [f"{where}: the error {reply['error']!r}, expected an answer"]
    outputs = outputs_by_name(example, contract)
    problems = []
    for name in sorted({*outputs, *reply["outputs"]}):
        if name not in outputs or name not in reply["outputs"]:
            side = "contract" if name not in outputs else "model's answer"
            problems.append(f"{where}: output {name} is not in the {side}")
            continue
        found = reply["outputs"][name]
        tolerance = TOLERANCE if "float" in found["dtype"] else None
        difference = value_difference(outputs[name], found["value"], tolerance)
        if difference:
            problems.append(f"{where}: output {name}{difference}")
    return problems


def value_difference(expected: Any, found: Any, tolerance: float | None) -> str | None:
    """Tells where two nested lists differ first: `[place]: VALUE, expected VALUE`."""
    if isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            return f": {len(found)} parts, expected {len(expected)}"
        for place, pair in enumerate(zip(expected, found, strict=True)):
            difference = value_difference(*pair, tolerance)
            if difference:
                return f"[{place}]{difference}"
        return None
    same = expected == found and isinstance(expected, str) == isinstance(found, str)
    if tolerance is not None and not same:
        if all(isinstance(value, int | float) for value in (expected, found)):
            same = abs(expected - found) <= tolerance * max(1.0, abs(expected))
            same = same or (expected != expected and found != found)
    return None if same else f": {found!r}, expected {expected!r}"
