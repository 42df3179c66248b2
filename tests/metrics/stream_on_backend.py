"""Streams metrics over the batches of a file, on the backend that KERAS_BACKEND names.

Run by test_streaming.py in a process of its own. `data.npz` holds labels, logits, weights, x and y;
printed is the result of each metric as JSON. On JAX the update is compiled.
"""

import json
import sys

import keras
import numpy as np

from keras_bert.metrics import F1, MatthewsCorrelation, PearsonCorrelation

ROWS = 13


def stream(metric, *columns):
    update = metric.stateless_update_state
    if keras.config.backend() == "jax":
        import jax

        update = jax.jit(update)
    state = [variable.value for variable in metric.variables]
    for start in range(0, len(columns[0]), ROWS):
        state = update(state, *(column[start : start + ROWS] for column in columns))
    return float(metric.stateless_result(state))


data = np.load(sys.argv[1])
classes = data["logits"].shape[1]
by_class = [data[name] for name in ("labels", "logits", "weights")]
print(
    json.dumps(
        {
            "backend": keras.config.backend(),
            "matthews": stream(MatthewsCorrelation(classes), *by_class),
            "macro_f1": stream(F1(classes, "macro"), *by_class),
            "pearson": stream(PearsonCorrelation(), data["x"], data["y"], data["weights"]),
        }
    )
)
