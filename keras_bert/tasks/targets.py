"""Labels passed by users: checks, and conversion to the form that the losses read."""

import math
from collections.abc import Sequence
from numbers import Integral

import numpy as np

from keras_bert.arguments import check_count, check_number
from keras_bert.checkpoints.checks import shown
from keras_bert.data.texts import is_text
from keras_bert.serving.signatures import label_tensor

SUM_TOLERANCE = 1e-3  # how far the sum of a row of probabilities may be from 1


Label = str | int | float | bool


def check_labels(labels: Sequence[Label] | None, kinds: tuple = (str, int, float)) -> list | None:
    """Checks names of classes, of the types `kinds`; None stays None.

    Raises:
        TypeError: if a name is of another type, which a preset could not hold.
        ValueError: if a name is repeated, or is a number that is not finite.
    """
    if labels is None:
        return None
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    for label in labels:
        if not isinstance(label, kinds):
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(
                f"labels hold {label!r} of type {type(label).__name__}: expected {expected}; map "
                "others to strings, here and in y"
            )
    finite = all(math.isfinite(label) for label in labels if isinstance(label, float))
    if not finite or len(set(labels)) != len(labels):
        what = "a name is there twice" if finite else "expected finite numbers"
        raise ValueError(f"labels={labels}: {what}")
    return labels


def check_classes(
    num_classes: int | None,
    labels: Sequence[Label] | None,
    least: int = 2,
    kinds: tuple = (str, int, float),
) -> tuple[int, list | None]:
    """Checks the number of classes, `least` or more, and their names; either is sufficient.

    Returns (number, names or None).

    Raises:
        TypeError: if a name is of another type than `kinds`.
        ValueError: if there are too few classes, the two disagree, or a name is repeated.
    """
    labels = check_labels(labels, kinds)
    if num_classes is not None:
        check_count("num_classes", num_classes, 0)
    num_classes = num_classes or (labels and len(labels))
    if not num_classes or num_classes < least or (labels and len(labels) != num_classes):
        raise ValueError(
            f"num_classes={num_classes}, labels={labels}: expected {least} or more classes, and as "
            "many names, if any"
        )
    return num_classes, labels


def has_numbers_as_names(labels: Sequence[Label] | None) -> bool:
    """Whether a number in y is the name of a class, as opposed to its id."""
    return labels is not None and not all(isinstance(label, str) for label in labels)


def class_ids(y, num_classes: int, labels: list | None) -> np.ndarray:
    """One class per row: names or ids [N] or [N, 1] to int32 [N].

    If some names are numbers, ids are not accepted.

    Raises:
        ValueError: if a label is unknown; the error names its row.
    """
    by_name = has_numbers_as_names(labels)
    # NumPy converts numbers in a list with strings to strings.
    y = np.array(y, object) if by_name and not hasattr(y, "dtype") else np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"labels of shape {y.shape}: expected one a row, [N]")
    if y.dtype.kind == "O" and all(isinstance(v, Integral) for v in y.tolist()):
        y = y.astype("int64")
    names = {name: i for i, name in enumerate(labels or ())}
    expected = ", ".join(shown(str(name)) for name in names)
    if by_name:
        given = [v.item() if isinstance(v, np.generic) else v for v in y.tolist()]
        given = [v.decode() if isinstance(v, bytes) else v for v in given]
        y = np.array([names.get(v, -1) if isinstance(v, Label) else -1 for v in given])
    elif y.dtype.kind in "USO":
        given = _names(y.tolist())
        y = np.array([names.get(name, -1) for name in given])
    else:
        given, expected = y.tolist(), f"ids 0 to {num_classes - 1}"
        if labels is None:
            expected += "; if these are names, such as ratings, pass labels=[...]"
        _check_digits(y, labels or ())
    with np.errstate(invalid="ignore"):  # NaN
        wrong = ~((y >= 0) & (y < num_classes) & (y == y.astype("int32")))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"label {given[row]!r} in row {row} is unknown; expected {expected}")
    return y.astype("int32")


def class_labels(y, num_classes: int, labels: list[str] | None) -> np.ndarray:
    """As `class_ids`; or probabilities, float [N, K], rows that sum to 1, to float32 [N, K]."""
    array = np.asarray(y)
    if array.ndim == 2 and array.dtype.kind == "f" and array.shape[1] > 1:
        return probabilities(array, num_classes)
    return class_ids(y, num_classes, labels)


def probabilities(y, num_classes: int) -> np.ndarray:
    """Checks probabilities of K classes as labels, float32 [N, K]; an error names the row."""
    values = np.asarray(y, "float32")
    if values.ndim != 2 or values.shape[1] != num_classes:
        raise ValueError(
            f"labels of shape {values.shape}: expected one a row, [N], or a probability of each "
            f"class, [N, {num_classes}]"
        )
    with np.errstate(invalid="ignore"):
        good = (values >= 0).all(axis=1) & (np.abs(values.sum(axis=1) - 1) < SUM_TOLERANCE)
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(
            f"label {values[row].tolist()} in row {row}: expected probabilities that sum to 1"
        )
    return values


def classes_in_graph(y, num_classes: int | None = None, labels: Sequence[Label] | None = None):
    """As `class_labels`, inside `tf.data`: ids, numbers that are names, or probabilities."""
    import tensorflow as tf

    if y.shape.rank != 2 or y.shape[1] == 1:
        if has_numbers_as_names(labels):
            return ids_in_graph(y, labels)
        return y[:, 0] if y.shape.rank == 2 else y
    if not y.dtype.is_floating:
        raise ValueError(
            f"labels of shape {y.shape}, {y.dtype.name}: expected ids, [B], or "
            "probabilities, float [B, K]"
        )
    y = tf.ensure_shape(tf.cast(y, tf.float32), [None, num_classes])
    good = (y >= 0) & (tf.abs(tf.reduce_sum(y, axis=1, keepdims=True) - 1) < SUM_TOLERANCE)
    message = ["labels: expected probabilities in rows that sum to 1, got", y]
    with tf.control_dependencies([tf.Assert(tf.reduce_all(good), message)]):
        return tf.identity(y)


def checked_weights(weights, name: str = "sample_weight"):
    """Checks weights of losses, numbers in an array or in lists; None stays None.

    Returns a float32 array; of lists that differ in length, a list of float32 arrays.

    Raises:
        ValueError: if one is negative, infinite or not a number; the error names its place.
    """
    if weights is None:
        return None
    weights = weights.tolist() if hasattr(weights, "tolist") else weights
    if isinstance(weights, dict | str | bytes | int | float):
        raise ValueError(f"{name}={weights!r:.80}: expected a list or an array of numbers")
    weights = list(weights)
    try:
        lengths = {np.size(row) if hasattr(row, "__len__") else None for row in weights}
        if len(lengths) > 1 and None not in lengths:
            return [
                checked_weights(row, f"{name}[{i}]") if len(row) else np.zeros(0, "float32")
                for i, row in enumerate(weights)
            ]
        values = np.asarray(weights, "float32")
    except (TypeError, ValueError) as error:
        if str(error).startswith(name):
            raise
        raise ValueError(f"{name}: expected numbers ({error})") from error
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        place = np.argwhere(wrong)[0].tolist()
        raise ValueError(
            f"{name}{place} is {values[tuple(place)]:g}: expected a finite number of 0 or more"
        )
    return values


def checked_weights_in_graph(weights, name: str = "sample_weight"):
    """As `checked_weights`, for a batch inside `tf.data`: float32 of the same shape."""
    import tensorflow as tf

    weights = tf.cast(weights, tf.float32)
    wrong = tf.boolean_mask(weights, ~(tf.math.is_finite(weights) & (weights >= 0)))
    message = [f"{name}: expected finite numbers of 0 or more, got", wrong[:1]]
    with tf.control_dependencies([tf.Assert(tf.size(wrong) == 0, message)]):
        return tf.identity(weights)


def _check_digits(ids: np.ndarray, labels: Sequence[str]) -> None:
    """Raises a ValueError for an id that equals the name of another class, which is ambiguous."""
    for place, label in enumerate(labels):
        if label.isascii() and label.isdecimal() and int(label) != place:
            rows = np.flatnonzero(ids == int(label))
            if len(rows):
                raise ValueError(
                    f"label {int(label)} in row {rows[0]} is a number, and labels={[*labels]} are "
                    f"strings: pass y as strings, or numbers in labels"
                )


def ids_in_graph(y, labels: Sequence[Label]):
    """Turns a batch of names [B] or [B, 1] into int32 ids inside `tf.data`.

    Raises:
        ValueError: if names and y are of different types.
        tf.errors.InvalidArgumentError: when the data runs, if a label is unknown.
    """
    import tensorflow as tf

    names = label_tensor(labels, len(labels))
    if (names.dtype == tf.string) != (y.dtype == tf.string):
        raise ValueError(f"labels of a dataset are {y.dtype.name}; expected {names.dtype.name}")
    if y.dtype != tf.string:
        y, names = tf.cast(y, "float64"), tf.cast(names, "float64")
    matches = tf.reshape(y, [-1, 1]) == names[None, :]  # [B, K]
    known = tf.reduce_all(tf.reduce_any(matches, axis=1))
    message = ["unknown label; expected", *map(str, labels), "got", y]
    with tf.control_dependencies([tf.Assert(known, message)]):
        return tf.argmax(tf.cast(matches, "int32"), axis=1, output_type=tf.int32)


def found_names(y) -> list[str] | None:
    """The distinct names among labels, sorted; None if they are ids."""
    y = np.asarray(y)
    if y.dtype.kind not in "USO" or all(isinstance(v, Integral) for v in y.ravel().tolist()):
        return None
    return sorted(set(_names(y.ravel().tolist())))


def check_names(found: list[str] | None, num_classes: int) -> list[str] | None:
    """Checks that there are as many names as classes; None stays None."""
    if found and len(found) != num_classes:
        raise ValueError(
            f"labels hold {len(found)} names ({', '.join(found[:20])}); expected "
            f"num_classes={num_classes}. Pass labels=[...] to say which there are"
        )
    return found or None


def weights_by_id(class_weight: dict, ids: np.ndarray, num_classes: int) -> dict[int, float]:
    """Weights by label, with the ids of its keys, as weights by id; 1 for other classes."""
    if len(set(ids.tolist())) < len(ids):
        raise ValueError(f"class_weight={class_weight} names a class twice")
    for label, weight in class_weight.items():
        check_number(f"class_weight[{label!r}]", weight)
    weights = dict.fromkeys(range(num_classes), 1.0)
    return weights | dict(zip(ids.tolist(), class_weight.values(), strict=True))


def likeliest_labels(probabilities: np.ndarray, names: Sequence, top_k: int | str) -> list[dict]:
    """The most probable of K classes by name, for probabilities [N, K].

    `top_k` is a number or "all". Returns N dicts, the most probable first, ties in the order of
    classes.

    Raises:
        ValueError: if `top_k` is not from 1 to K.
    """
    count = len(names) if top_k == "all" else top_k
    if not isinstance(count, int | np.integer) or not 1 <= count <= len(names):
        raise ValueError(f"top_k={top_k!r}: expected 1 to {len(names)}, the classes, or 'all'")
    orders = np.argsort(-probabilities, axis=1, kind="stable")[:, :count]
    return [
        {names[i]: float(row[i]) for i in order}
        for row, order in zip(probabilities, orders.tolist(), strict=True)
    ]


def class_weights(given, num_classes: int, y: np.ndarray | None, several: bool) -> dict:
    """Class weights by label, from any form that a user may pass.

    Args:
        given: weights by name or id; K numbers; or "balanced", for N / (K * rows of a class) as
            in scikit-learn, over the classes that occur. For multi-label, a weight is that of a
            positive against a negative label, and "balanced" is (rows without) / (rows with).
        num_classes: number of classes K.
        y: labels of the task as its loss reads them, -1 for no label; None for a dataset.
        several: whether the task is multi-label.
    """
    if hasattr(given, "keys"):
        return dict(given)
    if isinstance(given, str) and given == "balanced" and y is not None:
        return balanced_weights(label_counts(y, num_classes, several), len(y), several)
    weights = given.tolist() if hasattr(given, "tolist") else list(given)
    if isinstance(given, str) or len(weights) != num_classes:
        raise ValueError(
            f"class_weight={given!r}: expected {num_classes} numbers, or weights by label, or "
            "'balanced' with labels in memory"
        )
    return dict(enumerate(weights))


def label_counts(y: np.ndarray, num_classes: int, several: bool) -> np.ndarray:
    """The number of rows of each class, int [K]; arguments as `class_weights`."""
    if several:
        return (y > 0).sum(axis=0)
    ids = y.argmax(axis=-1) if y.dtype.kind == "f" else y[y >= 0]
    return np.bincount(ids, minlength=num_classes)


def balanced_weights(counts: np.ndarray, rows: int, several: bool) -> dict[int, float]:
    """The weights of `class_weights` for "balanced", from the `label_counts` of N rows."""
    numbers = counts.tolist()
    if several:
        return {i: float(rows - n) / n if n else 1.0 for i, n in enumerate(numbers)}
    there = sum(n > 0 for n in numbers)
    return {i: sum(numbers) / (there * n) if n else 1.0 for i, n in enumerate(numbers)}


def _names(values: list) -> list[str]:
    names = [v.decode() if isinstance(v, bytes) else v for v in values]
    for row, name in enumerate(names):
        if not isinstance(name, str):
            kind = type(name).__name__
            raise ValueError(f"label {name!r} in row {row} is a {kind}; expected a str")
    return names


def label_matrix(y, num_classes: int, labels: list[str] | None) -> np.ndarray:
    """Any number of classes per row, float32 [N, K], 1 for the classes of a row.

    `y` are N lists of names or ids, empty ones too; or 0 and 1 for each class, [N, K], as an array
    or as lists (lists of K numbers that are all 0 or 1 are read as such).

    Raises:
        ValueError: if a label is unknown or repeated within a row; the error names the row.
    """
    if _are_marks(y, num_classes):
        matrix = np.asarray(y)
        if matrix.shape[1] != num_classes or not np.isin(matrix, (0, 1)).all():
            values = f" and values from {matrix.min()} to {matrix.max()}" if matrix.size else ""
            raise ValueError(
                f"labels of shape {matrix.shape}{values}: expected 0 or 1 for each of "
                f"{num_classes} classes"
            )
        return matrix.astype("float32")
    by_name = has_numbers_as_names(labels)
    ids = {name: i for i, name in enumerate(labels or ())}
    matrix = np.zeros((len(y), num_classes), "float32")
    for row, given in enumerate(y):
        if is_text(given) or not hasattr(given, "__iter__"):
            raise ValueError(
                f"labels of row {row} are {given!r}; expected a list of names or ids, which may "
                "be empty"
            )
        for label in given:
            place = ids.get(label, -1) if by_name or isinstance(label, str) else label
            known = not isinstance(place, float) and place in range(num_classes)
            if not known or matrix[row, place]:
                expected = ", ".join(shown(str(name)) for name in ids)
                expected = expected or f"ids 0 to {num_classes - 1}"
                what = "there twice" if known else "unknown"
                raise ValueError(f"label {label!r} in row {row} is {what}; expected {expected}")
            matrix[row, place] = 1
    return matrix


def _are_marks(y, num_classes: int) -> bool:
    """Whether labels are 0 and 1 for each class, as opposed to names or ids."""
    if getattr(y, "ndim", 1) == 2:
        return np.asarray(y).dtype.kind in "biuf"
    return len(y) > 0 and all(
        isinstance(row, list | tuple)
        and len(row) == num_classes
        and all(not is_text(v) and v in (0, 1) for v in row)
        for row in y
    )


def numbers(y, num_outputs: int) -> np.ndarray:
    """Targets of a regression, [N] or [N, K], as float32 [N, K]; an error names the row."""
    kind = "number" if num_outputs == 1 else f"list of {num_outputs} numbers"
    try:
        values = np.asarray(y, "float32")
    except (TypeError, ValueError):
        for row, value in enumerate(y):
            if not _holds_numbers(value, num_outputs):
                raise ValueError(f"label {value!r} in row {row} is no {kind}") from None
        raise
    if values.ndim == 1 and num_outputs == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] != num_outputs:
        expected = "[N]" if num_outputs == 1 else f"[N, {num_outputs}]"
        raise ValueError(f"labels of shape {values.shape}: expected numbers of shape {expected}")
    wrong = ~np.isfinite(values).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"label {values[row].tolist()} in row {row} is not finite")
    return values


def _holds_numbers(value, count: int) -> bool:
    try:
        return np.asarray(value, "float32").size == count
    except (TypeError, ValueError):
        return False
