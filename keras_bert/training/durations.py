"""How long to train, counted in optimizer updates."""

import math

from keras_bert.arguments import check_above_zero


def total_steps(
    rows: int | None,
    batch_size: int,
    *,
    steps: int | None = None,
    epochs: float | None = None,
    examples: int | None = None,
) -> int:
    """Converts a duration to a number of updates; a partial batch is an update too.

    Args:
        rows: rows in one epoch; None if unknown.
        batch_size: rows of an update, over all replicas.
        steps: updates; or
        epochs: passes over the data, such as 3 or 0.5; or
        examples: rows, counted each time they are used.

    Returns:
        `steps`; or epochs * ceil(rows / batch_size), rounded up; or ceil(examples / batch_size).

    Raises:
        ValueError: unless exactly one duration is given, if a number is not positive or whole, or
            if epochs are given but not the rows.
    """
    durations = {"steps": steps, "epochs": epochs, "examples": examples}
    given = {name: value for name, value in durations.items() if value is not None}
    if len(given) != 1:
        what = " and ".join(f"{name}={value}" for name, value in given.items()) or "none"
        raise ValueError(f"got {what}: expected exactly one of {', '.join(durations)}")
    whole = {"rows": rows, "batch_size": batch_size, "steps": steps, "examples": examples}
    for name, value in whole.items():
        if value is not None and not (value > 0 and value % 1 == 0):
            raise ValueError(f"{name}={value}: expected a whole number above 0")
    if steps is not None:
        return int(steps)
    if examples is not None:
        return math.ceil(examples / batch_size)
    check_above_zero("epochs", epochs)
    if rows is None:
        raise ValueError(
            f"epochs={epochs}, but the number of rows is unknown: pass steps or examples"
        )
    # Rounded first: 0.07 * 100 is a little more than 7, which must not add an eighth update.
    return max(1, math.ceil(round(epochs * math.ceil(rows / batch_size), 6)))
