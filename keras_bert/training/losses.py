"""Losses as sums and weights, so that they can be added over replicas and micro-batches."""

from collections.abc import Callable

import keras
from keras import ops


class OutputLosses:
    """The losses of a model's outputs, each as a weighted sum over the elements of a batch.

    A loss of the whole batch is sum(weight * loss) / sum(weight). Sum and divisor are kept apart
    here because both may have to be added up over parts of the batch first.

    Args:
        loss: a Keras loss, a function (y_true, y_pred) or its name; for several outputs a dict
            of them by output, outputs without one train nothing. A loss object's own reduction
            is not used, but "sum" (or `None`) turns the division off.
        loss_weights: factors of the losses by output name; 1 by default.
        outputs: the model's output or dict of outputs.

    Raises:
        ValueError: if a loss or a weight is given for an output that does not exist.
    """

    def __init__(self, loss, loss_weights, outputs):
        self.names = (
            [name for name in outputs if _of(loss, name)] if isinstance(outputs, dict) else [None]
        )
        known = set(outputs) if isinstance(outputs, dict) else set()
        for what, given in (("loss", loss), ("loss_weights", loss_weights)):
            unknown = set(given) - known if isinstance(given, dict) else set()
            if unknown:
                raise ValueError(
                    f"{what} names outputs {sorted(unknown)}; the model has {sorted(known)}"
                )
        if isinstance(outputs, dict) and not isinstance(loss, dict):
            raise ValueError(f"expected a dict of losses by output ({', '.join(outputs)})")
        found = [keras.losses.get(_of(loss, name)) for name in self.names]
        self.functions = [_elementwise(f) for f in found]
        self.divided = [getattr(f, "reduction", "mean") not in ("sum", None) for f in found]
        weights = loss_weights if isinstance(loss_weights, dict) else {None: loss_weights}
        self.factors = [
            1.0 if (f := weights.get(name)) is None else float(f) for name in self.names
        ]

    def weights(self, y, sample_weight) -> list:
        """One float32 weight tensor per output, [B, ...]; ones where there is none."""
        found = []
        for name in self.names:
            weight = _of(sample_weight, name)
            if weight is None:
                weight = ops.ones(ops.shape(_of(y, name))[:1], "float32")
            found.append(ops.cast(weight, "float32"))
        return found

    def sums(self, y, y_pred, weights) -> list:
        """Sum over the batch of weight * loss per output, float32 scalars.

        A loss with more axes than its weights is averaged over the axes that lack one.
        """
        found = []
        for name, function, weight in zip(self.names, self.functions, weights, strict=True):
            values = function(_of(y, name), ops.cast(_of(y_pred, name), "float32"))
            while len(weight.shape) > len(values.shape) and weight.shape[-1] == 1:
                weight = ops.squeeze(weight, -1)
            if len(weight.shape) > len(values.shape):
                raise ValueError(
                    f"sample weights have shape {tuple(weight.shape)}, but the loss "
                    f"{tuple(values.shape)}"
                )
            extra = range(len(weight.shape), len(values.shape))
            if extra:
                values = ops.mean(values, axis=tuple(extra))
            # A slot of weight 0 counts for nothing, even where its loss is not finite.
            values = ops.where(weight == 0, 0.0, values)
            found.append(ops.sum(weight * values))
        return found

    def total(self, sums, divisors):
        """The whole loss of a batch.

        Args:
            sums: of weight * loss over the batch, one scalar per output, and regularization.
            divisors: sums of the weights over the batch, one scalar per output.
        """
        *sums, extra = sums
        parts = zip(self.factors, sums, divisors, self.divided, strict=True)
        return extra + sum(f * (_divide(s, d) if divided else s) for f, s, d, divided in parts)


class LossMeans(keras.metrics.Metric):
    """The losses of an epoch: sum(weight * loss) / sum(weight) over all its elements.

    To it comes the mean of regularization over the epoch's batches, each weighed by its rows, as
    Keras reports it. A loss of the reduction "sum" is logged as a mean too.

    Args:
        losses: what is counted.
        name: name of the total in logs; with several outputs each one's is NAME_loss.
    """

    def __init__(self, losses: OutputLosses, name: str = "loss"):
        super().__init__(name=name)
        self.losses = losses
        shape = (len(losses.names),)
        self.sums = self.add_variable(shape, "zeros", name="sums")
        self.weights = self.add_variable(shape, "zeros", name="weights")
        # Regularization times rows, and rows: sums, which replicas can add up.
        self.extra = self.add_variable((2,), "zeros", name="extra")

    def update_state(self, sums, weights, extra, rows):
        """Adds a batch.

        Args:
            sums: of weight * loss, one scalar per output.
            weights: sums of the weights, one scalar per output.
            extra: losses of regularization, scalars.
            rows: rows of the batch that have a target.
        """
        self.sums.assign(self.sums + ops.stack(sums))
        self.weights.assign(self.weights + ops.stack(weights))
        if extra:
            rows = ops.cast(rows, "float32")
            both = ops.stack([rows * sum(ops.cast(v, "float32") for v in extra), rows])
            self.extra.assign(self.extra + both)

    def result(self):
        means = ops.unstack(_divide(self.sums, self.weights), len(self.losses.names))
        factors = self.losses.factors
        total = sum(f * m for f, m in zip(factors, means, strict=True))
        total = {self.name: total + _divide(self.extra[0], self.extra[1])}
        if len(means) == 1:
            return total
        return total | {f"{n}_loss": m for n, m in zip(self.losses.names, means, strict=True)}


def _of(structure, name):
    """What belongs to an output in a dict by output, or in a lone value."""
    return structure.get(name) if isinstance(structure, dict) else structure


def _elementwise(loss) -> Callable:
    return loss.call if isinstance(loss, keras.losses.Loss) else loss


def _divide(sums, weights):
    """sums / weights, 0 where no weight is: a batch without a target teaches nothing."""
    return ops.where(weights == 0, 0.0, sums / ops.where(weights == 0, 1.0, weights))
