"""Checks of ids that users pass instead of texts, as arrays or datasets."""

import keras
import numpy as np

from keras_bert.data.contract import OPTIONAL_INPUTS, REQUIRED_INPUTS
from keras_bert.data.ragged import is_ragged
from keras_bert.models.backbone import BertBackbone
from keras_bert.models.backbone import check_ids as check_limits
from keras_bert.tasks.targets import checked_weights_in_graph

# Inputs of heads that are positions in the row.
POSITIONS = ("mask_positions", "entity_positions")
KNOWN = (*REQUIRED_INPUTS, *OPTIONAL_INPUTS, "packed_from", *POSITIONS)
# Labels by the output that reads them; see the keys of a batch in `contract.py`.
LABELS = {None: "labels", "mlm": "mask_ids", "nsp": "next_sentence_labels"}
WEIGHTS = {None: "sample_weight", "mlm": "mask_weights"}


def check_ids(x: dict[str, np.ndarray], backbone: BertBackbone) -> None:
    """Checks the backbone's inputs, arrays [N, T] by name, by the sizes of its tables.

    Raises:
        ValueError: if one is missing, holds values that are not integers or ids outside a table,
            or rows are longer than the position table.
    """
    if missing := set(REQUIRED_INPUTS) - set(x):
        raise ValueError(
            f"ids lack {', '.join(sorted(missing))}; got {', '.join(x) or 'none'}: expected a dict "
            "of all of these, or columns of examples in a tuple"
        )
    for name, value in x.items():
        if name not in KNOWN:  # an input of a user's own head
            continue
        if value.dtype.kind not in "iub" or (name not in POSITIONS and value.ndim != 2):
            raise ValueError(
                f"input '{name}' has shape {value.shape}, {value.dtype}; expected integers [batch, "
                "tokens] (one text alone needs a batch axis in front: value[None])"
            )
    length, most = x["token_ids"].shape[1], backbone.max_sequence_length
    check_limits(x, backbone.limits | dict.fromkeys(POSITIONS, length))
    if "position_ids" not in x and length > most:
        raise ValueError(
            f"token_ids are {length} long, but the model has {most} positions: truncate them "
            f"to {most}"
        )


def checked_ids(task, x: dict) -> dict[str, np.ndarray]:
    """Checks ids that a user passes as arrays for a task; those that are None are omitted.

    Ragged rows come from texts in this package and are returned unchanged.
    """
    if is_ragged(x.get("token_ids")):
        return x
    columns = {name: np.asarray(value) for name, value in x.items() if value is not None}
    task.check_ids(columns)
    return columns


def check_preprocessor(preprocessor, backbone: BertBackbone) -> None:
    """Checks that a preprocessor's rows and vocabulary, if any, fit the backbone's tables."""
    if preprocessor is None:
        return
    if preprocessor.sequence_length > backbone.max_sequence_length:
        raise ValueError(
            f"sequence_length={preprocessor.sequence_length} exceeds the backbone's "
            f"{backbone.max_sequence_length} positions"
        )
    # The vocabulary of a saved model is read only after construction.
    if not preprocessor.tokenizer.has_vocabulary:
        return
    size = preprocessor.tokenizer.vocabulary_size()
    if size > backbone.vocabulary_size:
        raise ValueError(
            f"the vocabulary has {size} tokens, but the backbone's table has only "
            f"{backbone.vocabulary_size} rows"
        )


def has_several(inputs) -> bool:
    """Whether ids have an axis of several texts, [B, C, T]."""
    return isinstance(inputs, dict) and len(inputs["token_ids"].shape) == 3


def fold(inputs: dict) -> dict:
    """Folds ids [B, C, T] by name into independent rows, [B * C, T]."""
    check_axes(inputs)
    return {
        name: keras.ops.reshape(value, (-1, *keras.ops.shape(value)[2:]))
        for name, value in inputs.items()
    }


def check_axes(inputs: dict) -> None:
    """Raises a ValueError for an input without an axis of several texts."""
    for name, value in inputs.items():
        if len(value.shape) != (4 if name == "token_embeddings" else 3):
            raise ValueError(
                f"input '{name}' has shape {tuple(value.shape)}; expected three axes [batch, "
                "texts, tokens] as others have"
            )


def check_batch_in_graph(task, x, y=None, sample_weight=None):
    """Makes a dataset's map reject ids and labels out of range, which a compiled step cannot.

    Args:
        task: a compiled task.
        x: a dict of int tensors by name, [B, ..., T].
        y: labels as the loss reads them, by output if there are several; or None.
        sample_weight: weights as y, finite and 0 or more; or None. Labels of weight 0 are not
            checked.

    Returns:
        (x, y, sample_weight), which depend on the checks.
    """
    import tensorflow as tf

    weights = {
        name: checked_weights_in_graph(v, WEIGHTS.get(name, f"sample_weight of {name!r}"))
        for name, v in _by_output(sample_weight).items()
        if v is not None
    }
    sample_weight = weights.get(None, weights or None)
    length, most = x["token_ids"].shape[-1], task.backbone.max_sequence_length
    checks = []
    if "position_ids" not in x:
        message = f"token_ids are longer than the {most} positions of the model"
        if length is not None and length > most:
            raise ValueError(f"{message}: they have {length} tokens")
        checks.append(tf.debugging.assert_less_equal(tf.shape(x["token_ids"])[-1], most, message))
    length = tf.shape(x["token_ids"])[-1]
    limits = {name: (limit, limit - 1) for name, limit in task.backbone.limits.items()}
    limits |= dict.fromkeys(POSITIONS, (length, "T - 1"))
    checks += [_in_range(name, x[name], *limit) for name, limit in limits.items() if name in x]
    if y is not None and task.reads_label_ids:
        outputs, given = _by_output(task.output), _by_output(y)
        if None in given.keys() - outputs.keys():
            raise ValueError(
                f"the dataset's labels are {y}: expected a dict by output, {', '.join(outputs)}"
            )
        for name, output in outputs.items():
            labels, weight = given.get(name), weights.get(name, weights.get(None))
            if labels is None or labels.dtype.is_bool:
                continue
            classes = output.shape[-1] if len(output.shape) > 1 else None
            axes = len(output.shape) if classes is not None else 2  # [B, T] or [B, C]
            for_each = labels.shape.rank == axes and (labels.shape[-1] != 1 or classes == 1)
            if labels.dtype.is_floating and (for_each or labels.shape.rank is None):
                limit = (None, 1)  # probabilities
            elif classes is None:  # as many classes as tokens or choices
                known = x["token_ids"].shape[1]
                limit = (tf.shape(x["token_ids"])[1], known - 1 if known else "T - 1")
            elif for_each:
                limit = (2, 1)  # 0 or 1 for each
            else:
                limit = (classes, classes - 1)
            if weight is not None:
                while weight.shape.rank < labels.shape.rank:
                    weight = weight[..., None]
                labels = tf.where(weight == 0, tf.zeros_like(labels), labels)
            checks.append(_in_range(LABELS.get(name, f"labels of {name!r}"), labels, *limit))
    with tf.control_dependencies(checks):
        batch = (x, y, sample_weight)
        return keras.tree.map_structure(lambda v: v if v is None else tf.identity(v), batch)


def _by_output(part) -> dict:
    """Labels, weights or outputs by the output's name; None for a single one without a name."""
    return part if isinstance(part, dict) else {None: part}


def _in_range(name: str, values, limit, last):
    """Checks that values are whole numbers from 0 to `last`, below `limit`; any without a limit."""
    import tensorflow as tf

    values = tf.reshape(values, [-1])
    if limit is None:
        right = (values >= 0) & (values <= last)
    else:
        right = (values >= 0) & (values < tf.cast(limit, values.dtype))
        right &= values == tf.round(values)
    wrong = tf.boolean_mask(values, ~right)
    expected = "whole numbers from " if values.dtype.is_floating and limit is not None else ""
    return tf.debugging.Assert(
        tf.size(wrong) == 0, [f"{name}: expected {expected}0 to {last}, got", wrong[:1]]
    )
