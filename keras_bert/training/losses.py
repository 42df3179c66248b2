"""Losses as sums and weights, so that they can be added over replicas and micro-batches."""

import keras
from keras import ops


class OutputLosses:
    """The losses of a model's outputs, each as a weighted sum over the elements of a batch.

    The loss of the whole batch is sum(weight * loss) / sum(weight). Sum and divisor are kept
    separate because both may have to be summed over parts of the batch first. `loss` and
    `loss_weights` are as `keras.Model.compile` takes them; a loss object's own reduction is
    ignored, except that "sum" (or `None`) disables the division. Outputs without a loss are not
    trained.

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
        self.functions = [f.call if isinstance(f, keras.losses.Loss) else f for f in found]
        self.divided = [getattr(f, "reduction", "mean") not in ("sum", None) for f in found]
        weights = loss_weights if isinstance(loss_weights, dict) else {None: loss_weights}
        factors = map(weights.get, self.names)
        self.factors = [1.0 if factor is None else float(factor) for factor in factors]

    def weights(self, y, sample_weight) -> list:
        """One float32 weight tensor per output, [B, ...]; ones by default."""
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
            labels, outputs = _of(y, name), ops.cast(_of(y_pred, name), "float32")
            values = function(labels, outputs)
            if len(weight.shape) == len(outputs.shape) > len(values.shape) and (
                weight.shape[-1] != 1
            ):  # weights of labels: the loss of each by itself
                labels = ops.reshape(ops.cast(labels, "float32"), ops.shape(outputs))
                values = function(labels[..., None], outputs[..., None])
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
            # A slot of weight 0 is ignored, even if its loss is not finite.
            values = ops.where(weight == 0, 0.0, values)
            found.append(ops.sum(weight * values))
        return found

    def total(self, sums, divisors):
        """The total loss of a batch, from its `sums`, regularization last, and sums of weights."""
        *sums, extra = sums
        parts = zip(self.factors, sums, divisors, self.divided, strict=True)
        return extra + sum(f * (_divide(s, d) if divided else s) for f, s, d, divided in parts)


@keras.saving.register_keras_serializable(package="keras_bert")
class TaskLoss(keras.losses.Loss):
    """A Keras loss on logits that accepts both ids [...] and probabilities [..., K].

    A loss of ids receives ids, and is replaced by the cross-entropy if labels are probabilities;
    other losses receive probabilities, with ids one-hot encoded. `label_smoothing` is the fraction
    of each label that is spread over all K classes, for a loss of ids.
    """

    def __init__(self, loss: keras.losses.Loss, label_smoothing: float = 0.0):
        super().__init__(name=loss.name, reduction=loss.reduction)
        self.loss = loss
        self.label_smoothing = label_smoothing

    def call(self, y_true, y_pred):
        y_true = ops.convert_to_tensor(y_true)
        soft = is_soft(y_true, y_pred)
        if not soft and len(y_true.shape) == len(y_pred.shape):
            y_true = ops.squeeze(y_true, -1)
        if not isinstance(self.loss, keras.losses.SparseCategoricalCrossentropy):
            if not soft:
                y_true = ops.one_hot(y_true, ops.shape(y_pred)[-1], dtype=y_pred.dtype)
            return self.loss.call(y_true, y_pred)
        smoothing = self.label_smoothing
        if soft:
            return keras.losses.categorical_crossentropy(
                y_true, y_pred, from_logits=True, label_smoothing=smoothing
            )
        losses = self.loss.call(y_true, y_pred)
        if smoothing:
            spread = -ops.mean(ops.log_softmax(y_pred, axis=-1), axis=-1)
            losses = (1 - smoothing) * losses + smoothing * spread
        return losses

    def get_config(self):
        loss = keras.saving.serialize_keras_object(self.loss)
        return {"loss": loss, "label_smoothing": self.label_smoothing}

    @classmethod
    def from_config(cls, config):
        loss = keras.saving.deserialize_keras_object(config["loss"])
        return cls(loss, config["label_smoothing"])


def is_soft(y, logits) -> bool:
    """Whether labels are probabilities of classes, as opposed to ids."""
    return len(y.shape) == len(logits.shape) and y.shape[-1] != 1


class LossMeans(keras.metrics.Metric):
    """The losses of an epoch: sum(weight * loss) / sum(weight) over all its elements.

    The mean of regularization over the epoch's batches, weighted by their rows, is added, as Keras
    reports it. A loss with the reduction "sum" is also logged as a mean. With `counted_classes`, K,
    rows are also counted by class.
    """

    def __init__(
        self, losses: OutputLosses, counted_classes: int | None = None, name: str = "loss"
    ):
        super().__init__(name=name)
        self.losses = losses
        shape = (len(losses.names),)
        self.sums = self.add_variable(shape, "zeros", name="sums")
        self.weights = self.add_variable(shape, "zeros", name="weights")
        # Regularization times rows, and rows: sums, which can be added over replicas.
        self.extra = self.add_variable((2,), "zeros", name="extra")
        self.classes = None  # rows by class, for labels and predictions, float32 [2, K]
        if counted_classes:
            self.classes = self.add_variable((2, counted_classes), "zeros", name="classes")

    def update_state(self, sums, weights, extra, rows):
        """Adds a batch: sums and weights by output, regularization, rows with a target."""
        self.sums.assign(self.sums + ops.stack(sums))
        self.weights.assign(self.weights + ops.stack(weights))
        if extra:
            rows = ops.cast(rows, "float32")
            both = ops.stack([rows * sum(ops.cast(v, "float32") for v in extra), rows])
            self.extra.assign(self.extra + both)

    def count_classes(self, y, y_pred, weights) -> None:
        """Adds rows by class, those of weight 0 excepted.

        `y` are ids [...] or probabilities [..., K], `y_pred` logits [..., K], `weights` [...].
        """
        if self.classes is None:
            return
        count = self.classes.shape[1]
        ids = ops.argmax(y, axis=-1) if is_soft(y, y_pred) else y
        real = ops.reshape(ops.cast(weights != 0, "float32"), (-1, 1))
        rows = [
            ops.sum(real * ops.one_hot(ops.reshape(v, (-1,)), count, dtype="float32"), axis=0)
            for v in (ops.cast(ids, "int32"), ops.argmax(y_pred, axis=-1))
        ]
        self.classes.assign(self.classes + ops.stack(rows))

    def result(self):
        means = ops.unstack(_divide(self.sums, self.weights), len(self.losses.names))
        factors = self.losses.factors
        total = sum(f * m for f, m in zip(factors, means, strict=True))
        total = {self.name: total + _divide(self.extra[0], self.extra[1])}
        if len(means) == 1:
            return total
        return total | {f"{n}_loss": m for n, m in zip(self.losses.names, means, strict=True)}


def _of(structure, name):
    """The entry of an output in a dict by output, or the single value."""
    return structure.get(name) if isinstance(structure, dict) else structure


def _divide(sums, weights):
    """sums / weights, 0 where the weights sum to 0."""
    return ops.where(weights == 0, 0.0, sums / ops.where(weights == 0, 1.0, weights))
