"""Metrics that Keras accumulates over batches, equal to the metric of the whole set.

Keras's own F1Score and PearsonCorrelation are not suitable: the first expects one-hot labels and
probabilities, the second averages the correlations of batches, which is a different value.
Spearman's correlation cannot be computed this way: a rank depends on all rows. Use
`keras_bert.metrics.evaluate` on the predictions of the whole set.

The state has a fixed size, is additive over replicas, and has nearly twice float32's precision. A
row of weight 0 is ignored, whatever its values. Invalid values in other rows (NaN, a label that is
not a class) make the result NaN, since a compiled step cannot raise.
"""

import keras
from keras import ops

from keras_bert.arguments import check_choice, check_count
from keras_bert.metrics import double_float


class _Sums(keras.metrics.Metric):
    """Sums as pairs of float32; see `double_float`."""

    def __init__(self, shape: tuple[int, ...], name: str):
        super().__init__(name=name, dtype="float32")
        self.high = self.add_variable(shape, "zeros", name="high")
        self.low = self.add_variable(shape, "zeros", name="low")

    def _add(self, pair) -> None:
        high, low = double_float.for_adding_up(double_float.add(self._total(), pair))
        self.high.assign(high)
        self.low.assign(low)

    def _total(self):
        return double_float.two_sum(*map(ops.convert_to_tensor, (self.high, self.low)))


class _ClassCounts(_Sums):
    """Counts per class against the rest: true and false positives, false and true negatives."""

    def __init__(self, num_classes: int, name: str):
        check_count("num_classes", num_classes, 2)
        super().__init__((4, num_classes), name)
        self.num_classes = num_classes

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch.

        Args:
            y_true: int class ids [B], or [B, 1], or [B, T].
            y_pred: float logits or probabilities, with the classes as the last axis.
            sample_weight: float [B], or of the shape of `y_true`; ones by default.
        """
        y_pred = ops.convert_to_tensor(y_pred)
        if y_pred.shape[-1] != self.num_classes:
            raise ValueError(
                f"{self.name} was made for {self.num_classes} classes, but the predictions have "
                f"shape {tuple(y_pred.shape)}"
            )
        y_pred = ops.reshape(y_pred, (-1, self.num_classes))
        weights = _row_weights(y_true, sample_weight)
        y_true = ops.cast(ops.reshape(y_true, (-1,)), "int32")
        known = (y_true >= 0) & (y_true < self.num_classes)
        weights = _spoiled(weights, known & ~ops.any(ops.isnan(y_pred), axis=-1))[:, None]
        right = ops.one_hot(ops.where(known, y_true, 0), self.num_classes, dtype="float32")
        found = ops.one_hot(ops.argmax(y_pred, axis=-1), self.num_classes, dtype="float32")
        cells = (right * found, (1 - right) * found, right * (1 - found), (1 - right) * (1 - found))
        counts = ops.stack([ops.sum(weights * cell, axis=0) for cell in cells])
        self._add(double_float.exact(counts))

    def get_config(self) -> dict:
        return {"name": self.name, "num_classes": self.num_classes}


@keras.saving.register_keras_serializable(package="keras_bert")
class MatthewsCorrelation(_ClassCounts):
    """Matthews correlation, for several classes Gorodkin's R_K (2004), as in scikit-learn.

    0 if all labels or all predictions are of one class.

    Args:
        num_classes: 2 or more.
        name: the metric's name.

    Raises:
        ValueError: for fewer classes.
    """

    def __init__(self, num_classes: int = 2, name: str = "matthews"):
        super().__init__(num_classes, name)

    def result(self):
        # R_K is usually written with differences of large products. Per class they are sums of
        # products, for which float32 suffices.
        tp, fp, fn, tn = ops.unstack(self._total()[0], 4)
        covariance = ops.sum(tp * tn - fp * fn)
        labels = ops.sum((tp + fn) * (fp + tn))
        predictions = ops.sum((tp + fp) * (fn + tn))
        return ops.divide_no_nan(covariance, ops.sqrt(labels) * ops.sqrt(predictions))


@keras.saving.register_keras_serializable(package="keras_bert")
class F1(_ClassCounts):
    """F1 of class 1 against class 0, or the mean of the F1 of all classes.

    Args:
        num_classes: 2 or more.
        average: "binary" (two classes; 0 without positives) or "macro" (over the classes that occur
            among labels or predictions).
        name: the metric's name.

    Raises:
        ValueError: for fewer classes, another average, or "binary" with more than two.
    """

    def __init__(self, num_classes: int = 2, average: str = "binary", name: str = "f1"):
        check_choice("average", average, ("binary", "macro"))
        if average == "binary" and num_classes != 2:
            raise ValueError(
                f'average="binary" is of two classes, not {num_classes}: use average="macro"'
            )
        super().__init__(num_classes, name)
        self.average = average

    def result(self):
        tp, fp, fn, _ = ops.unstack(self._total()[0], 4)
        f1 = ops.divide_no_nan(2 * tp, 2 * tp + fp + fn)
        if self.average == "binary":
            return f1[1]
        return ops.divide_no_nan(ops.sum(f1), ops.sum(ops.cast(tp + fp + fn != 0, "float32")))

    def get_config(self) -> dict:
        return super().get_config() | {"average": self.average}


@keras.saving.register_keras_serializable(package="keras_bert")
class PearsonCorrelation(_Sums):
    """Pearson's correlation of numbers.

    0 if the labels or the predictions are all equal. A relative spread below about 3e-5 is treated
    as none; from 1e-2 on, the result is accurate to 1e-6.

    Args:
        name: the metric's name.
    """

    def __init__(self, name: str = "pearson"):
        super().__init__((6,), name)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch of numbers [B] or [B, 1], labels and predictions; the shapes may differ."""
        weights = _row_weights(y_true, sample_weight)
        x, y = (ops.cast(ops.reshape(v, (-1,)), "float32") for v in (y_true, y_pred))
        if None not in (x.shape[0], y.shape[0]) and x.shape[0] != y.shape[0]:
            raise ValueError(f"{x.shape[0]} labels, but {y.shape[0]} predictions")
        finite = ops.isfinite(x) & ops.isfinite(y)
        weights = _spoiled(weights, finite)
        x, y = ops.where(finite, x, 0.0), ops.where(finite, y, 0.0)
        # About a point within the batch the sums lose no precision; about 0 they are derived as
        # pairs.
        weight = ops.sum(weights)
        x0, y0 = (ops.divide_no_nan(ops.sum(weights * v), weight) for v in (x, y))
        x, y = x - x0, y - y0
        sums = ops.stack([ops.sum(weights * v) for v in (x, y)])
        products = ops.stack([ops.sum(weights * v) for v in (x * x, y * y, x * y)])
        self._add(_about_zero(weight, sums, products, ops.stack([x0, y0])))

    def result(self):
        pair = self._total()
        weight, first, second = (_take(pair, at) for at in ([0], _FIRST, _SECOND))
        # The variances of x and y and their covariance, times the squared weight
        sizes = double_float.multiply(weight, _take(pair, _PRODUCTS))
        moments = double_float.subtract(sizes, double_float.multiply(first, second))[0]
        variances = moments[:2]
        spread = ops.all(variances > _NO_SPREAD * sizes[0][:2])
        spread = spread | ops.any(ops.isnan(variances))  # NaN compares as False, and is kept
        norms = ops.sqrt(ops.where(spread, variances, 1.0))
        return ops.where(spread, moments[2] / (norms[0] * norms[1]), 0.0)

    def get_config(self) -> dict:
        return {"name": self.name}


# The order of sums is w, x, y, xx, yy, xy. The factors of each product:
_FIRST, _SECOND, _PRODUCTS = [1, 2, 1], [1, 2, 2], [3, 4, 5]
_NO_SPREAD = 1e-9  # of the mean square: possible rounding error after many batches


def _about_zero(weight, sums, products, origin):
    """All sums about 0 from those about the origin (x0, y0), as a pair [6]."""
    exact, add, multiply = double_float.exact, double_float.add, double_float.multiply
    moved = add(exact(sums), multiply(exact(weight), exact(origin)))
    # sum of (x + x0)(y + y0) = sum of x y + y0 (sum of x) + x0 (sum of y + y0)
    first, second = [at - 1 for at in _FIRST], [at - 1 for at in _SECOND]
    rest = add(
        multiply(_take(exact(sums), first), _take(exact(origin), second)),
        multiply(_take(exact(origin), first), _take(moved, second)),
    )
    parts = (exact(weight[None]), moved, add(exact(products), rest))
    return tuple(ops.concatenate(words) for words in zip(*parts, strict=True))


def _take(pair, at: list[int]):
    return tuple(ops.take(word, at, axis=0) for word in pair)


def _row_weights(y_true, sample_weight):
    """One float32 weight for each element of `y_true`, flat."""
    shape = ops.shape(ops.convert_to_tensor(y_true))
    if sample_weight is None:
        weights = ops.ones(shape, "float32")
    else:
        weights = ops.cast(sample_weight, "float32")
        while len(weights.shape) < len(shape):
            weights = weights[..., None]
        if len(weights.shape) > len(shape):  # [B, 1] of labels [B]
            weights = ops.squeeze(weights, -1)
        weights = ops.broadcast_to(weights, shape)
    return ops.reshape(weights, (-1,))


def _spoiled(weights, good):
    """Weights with NaN for invalid rows of nonzero weight."""
    return ops.where((weights == 0) | good, weights, float("nan"))
