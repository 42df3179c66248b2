"""Checks of ids that users pass in place of texts."""

import numpy as np

from keras_bert.data.ragged import is_ragged
from keras_bert.models.backbone import BertBackbone, complete_inputs


def check_ids(x: dict[str, np.ndarray], backbone: BertBackbone) -> None:
    """Checks the backbone's inputs.

    A compiled model can't complain: it would read zeros there, or make NaN of them.

    Args:
        x: arrays [N, T] by name; others than the backbone's are passed over.
        backbone: says how large its tables are.

    Raises:
        ValueError: if one is missing, holds no integers or others than there are rows of a table,
            or rows are longer than there are positions.
    """
    missing = {"token_ids", "segment_ids", "padding_mask"} - set(x)
    if missing:
        raise ValueError(f"ids lack {', '.join(sorted(missing))}; got {', '.join(x) or 'none'}")
    wrong = [name for name, value in x.items() if value.dtype.kind not in "iub"]
    if wrong:
        raise ValueError(f"{wrong[0]} are {x[wrong[0]].dtype}; expected integers")
    complete_inputs(x)
    limits = {
        "token_ids": backbone.vocabulary_size,
        "segment_ids": backbone.num_segments,
        "position_ids": backbone.max_sequence_length,
    }
    for name, limit in limits.items():
        if name in x and x[name].size and not 0 <= x[name].min() <= x[name].max() < limit:
            raise ValueError(
                f"{name} run from {x[name].min()} to {x[name].max()}; expected 0 to {limit - 1}"
            )
    length, most = x["token_ids"].shape[1], backbone.max_sequence_length
    if "position_ids" not in x and length > most:
        raise ValueError(
            f"token_ids are {length} long, but the model has {most} positions: truncate them "
            f"to {most}"
        )


def checked_ids(task, x: dict) -> dict[str, np.ndarray]:
    """The ids that a user passes as arrays, checked; those that are None are left out.

    Ragged rows were made here, of texts, and stay as they are.

    Raises:
        ValueError: if they do not fit the task.
    """
    if is_ragged(x.get("token_ids")):
        return x
    columns = {name: np.asarray(value) for name, value in x.items() if value is not None}
    task._check_ids(columns)
    return columns
