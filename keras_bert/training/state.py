"""The complete state of a training step, as arrays by name."""

import keras
import numpy as np


def variables_by_name(model) -> dict:
    """The variables that training changes: weights, seeds, optimizer, metrics.

    Names consist of a number and the end of the path: its start may differ between processes.
    """
    groups = {
        "weights": [*model.trainable_variables, *model.non_trainable_variables],
        "optimizer": model.optimizer.variables,
        "metrics": model.metrics_variables,
    }
    return {
        f"{group}.{i:04d}.{variable.path.split('/')[-1]}": variable
        for group, variables in groups.items()
        for i, variable in enumerate(variables)
    }


def read_state(model) -> dict[str, np.ndarray]:
    """Copies the state to the host; bfloat16 as float32, which holds all its values."""
    if keras.config.backend() == "jax":
        model.jax_state_sync()  # JAX keeps the state elsewhere while it trains
    arrays = {}
    for name, variable in variables_by_name(model).items():
        array = keras.ops.convert_to_numpy(variable)
        arrays[name] = array.astype("float32") if array.dtype.name == "bfloat16" else array
    return arrays


def write_state(model, arrays: dict[str, np.ndarray], source: str) -> None:
    """Restores the result of `read_state`, completely or not at all; metrics may be missing.

    Raises:
        ValueError: if the state, which comes from `source`, belongs to another model or optimizer.
    """
    variables = variables_by_name(model)
    shapes = {name: tuple(variable.shape) for name, variable in variables.items()}
    expected = {name for name in shapes if not name.startswith("metrics.")}
    missing = sorted(expected - set(arrays))
    left = {name: v.shape for name, v in arrays.items() if v.shape != shapes.get(name)}
    if missing or left:
        wrong = "; ".join(f"{n} {left[n]}, expected {shapes.get(n)}" for n in sorted(left)[:3])
        raise ValueError(
            f"{source} is the state of another model or optimizer: it lacks {missing[:3]} "
            f"({len(missing)} in all) and has {len(left)} of other shapes: {wrong or 'none'}"
        )
    for name, value in arrays.items():
        variables[name].assign(value)
