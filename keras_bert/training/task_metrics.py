"""Keras metrics on a task's outputs: which are supported, and the inputs of each.

A task's outputs are logits, and its labels ids or probabilities. Each Keras metric expects
probabilities, logits, ids or one-hot labels, and does not reject others.
"""

import keras
from keras import metrics as km
from keras import ops

from keras_bert.metrics import F1, MatthewsCorrelation
from keras_bert.models.backbone import OPTIONAL_INPUTS
from keras_bert.training.losses import is_soft
from keras_bert.training.pair_losses import cosines

CLASSES = "classes"  # a softmax over a fixed number of classes
CHOICES = "choices"  # a softmax over items that are not classes: positions, tokens, choices
LABELS = "labels"  # a sigmoid for each label
NUMBERS = "numbers"
COSINES = "cosines"  # embeddings of pairs, with a target for their cosine
NOTHING = "nothing"  # outputs without labels

# Binary: with two classes they read class 1, unless they select a class.
_BINARY = (
    km.AUC,
    km.BinaryAccuracy,
    km.BinaryCrossentropy,
    km.BinaryIoU,
    km.FalseNegatives,
    km.FalsePositives,
    km.Hinge,
    km.Precision,
    km.PrecisionAtRecall,
    km.Recall,
    km.RecallAtPrecision,
    km.SensitivityAtSpecificity,
    km.SpecificityAtSensitivity,
    km.SquaredHinge,
    km.TrueNegatives,
    km.TruePositives,
)
_SCORES = (km.Hinge, km.SquaredHinge, km.CategoricalHinge)  # read logits, as margins
_RANKED = (F1, MatthewsCorrelation, km.SparseCategoricalAccuracy, km.SparseTopKCategoricalAccuracy)
_OF_IDS = (*_RANKED, km.SparseCategoricalCrossentropy)
_SOFTMAX = (
    *_OF_IDS,
    km.CategoricalAccuracy,
    km.CategoricalCrossentropy,
    km.CategoricalHinge,
    km.KLDivergence,
    km.TopKCategoricalAccuracy,
)
_NUMBERS = (
    km.CosineSimilarity,
    km.LogCoshError,
    km.MeanAbsoluteError,
    km.MeanAbsolutePercentageError,
    km.MeanSquaredError,
    km.MeanSquaredLogarithmicError,
    km.Poisson,
    km.R2Score,
    km.RootMeanSquaredError,
)
_CORRELATIONS = (km.ConcordanceCorrelation, km.PearsonCorrelation)
# Read a row of labels as a whole; the others read each label by itself.
_OF_ROWS = (km.CosineSimilarity, km.FBetaScore, km.R2Score, *_CORRELATIONS)


def task_metrics(given, kind):
    """Converts a user's metrics to ones that read a task's outputs.

    Args:
        given: a list of metrics, names and functions, or a dict of lists by output; or None.
        kind: one of the words above, or a dict of them by output.

    Returns:
        The same, with Keras's metrics in a `TaskMetric` each. A metric of the user's own, with an
        `update_state` or a function of their own, stays as it is.

    Raises:
        ValueError: if a metric is not supported for an output, or an output is unknown.
    """
    if not isinstance(kind, dict):
        return [_for_task(one, kind) for one in keras.tree.flatten(given or [])]
    if len(kind) == 1 and not isinstance(given, dict):
        given = dict.fromkeys(kind, given)
    if not isinstance(given or {}, dict):
        raise ValueError(f"metrics={given!r}: expected a dict by output ({', '.join(kind)})")
    if unknown := sorted(set(given or {}) - set(kind)):
        raise ValueError(f"metrics name outputs {unknown}; the model has {sorted(kind)}")
    return {name: task_metrics(some, kind[name]) for name, some in (given or {}).items()}


def has_variables(model) -> bool:
    """Whether the metrics of a model have their variables, if it has metrics."""
    compiled = model._compile_metrics
    return compiled is None or compiled.built


def make_variables(model, batch) -> None:
    """Makes the variables of a compiled model's metrics, those too that come with a first batch.

    `batch` is (x, y) or (x, y, sample_weight), arrays or their specs.
    """
    x, y, _ = keras.utils.unpack_x_y_sample_weight(batch)
    compiled = model._compile_metrics
    compiled.build(y, model.output)
    if all(metric.variables and _is_ready(metric) for metric in compiled.metrics):
        return

    def row(spec):
        return ops.zeros([1, *(size or 1 for size in spec.shape[1:])], spec.dtype)

    x = {name: row(v) for name, v in x.items() if v is not None and name not in OPTIONAL_INPUTS}
    y_pred = model(x, training=False)
    with keras.StatelessScope():  # creation persists, assignment does not
        compiled.update_state(keras.tree.map_structure(row, y), y_pred, None)


def _is_ready(metric: km.Metric) -> bool:
    """Whether a metric that has variables has all of them."""
    if isinstance(metric, TaskMetric):
        return not isinstance(metric.metric, km.R2Score)
    return type(metric).__module__.startswith("keras_bert.")


@keras.saving.register_keras_serializable(package="keras_bert")
class TaskMetric(km.Metric):
    """A Keras metric that receives a task's labels and outputs as it expects them.

    Args:
        metric: the metric, which keeps the state.
        kind: kind of the output, a constant of this module.
        name: name in logs.
    """

    def __init__(self, metric: km.Metric, kind: str, name: str):
        super().__init__(name=name)
        self.metric = metric
        self.kind = kind

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch: labels as the loss reads them, outputs, weights of labels or of rows.

        Raises:
            ValueError: if the metric has one value per row, and the weights are per label.
        """
        y_pred = ops.cast(y_pred, "float32")
        if sample_weight is not None:
            sample_weight = ops.cast(sample_weight, "float32")
        read = _of_softmax if self.kind in (CLASSES, CHOICES) else _of_columns
        y, found, weights = read(self.metric, self.kind, y_true, y_pred, sample_weight)
        self.metric.update_state(y, found, sample_weight=weights)

    def result(self):
        return self.metric.result()

    def reset_state(self):
        self.metric.reset_state()

    def get_config(self):
        metric = keras.saving.serialize_keras_object(self.metric)
        return {"metric": metric, "kind": self.kind, "name": self.name}

    @classmethod
    def from_config(cls, config):
        metric = keras.saving.deserialize_keras_object(config["metric"])
        return cls(**config | {"metric": metric})


def _for_task(given, kind: str):
    """One metric, as `task_metrics` returns it."""
    metric, name = given, getattr(given, "name", given)
    if isinstance(given, str) and given.lower() in ("accuracy", "acc"):
        metric = km.BinaryAccuracy() if kind == LABELS else km.SparseCategoricalAccuracy()
        metric = km.Accuracy() if kind in (NUMBERS, COSINES) else metric
    elif isinstance(given, str) and given.lower() in ("crossentropy", "ce"):
        binary = kind == LABELS
        made = km.BinaryCrossentropy if binary else km.SparseCategoricalCrossentropy
        metric = made(from_logits=True)
    elif not isinstance(given, km.Metric):
        if callable(given) and not isinstance(given, type):
            name = getattr(given, "__name__", type(given).__name__)
            if not getattr(given, "__module__", "").startswith("keras."):
                return km.MeanMetricWrapper(given, name=name)
            given = name
        metric = km.get(given)  # of a function of Keras's, its class
        name = given if isinstance(given, str) else metric.name
    if not _is_known(metric):
        return metric
    if refusal := _refusal(metric, kind):
        raise ValueError(f"metrics: {type(metric).__name__} {refusal}")
    if isinstance(metric, km.IoU) and "int" in str(metric.dtype):
        # Keras would truncate fractional weights, such as 0.5, to integers.
        metric = type(metric).from_config(metric.get_config() | {"dtype": "float32"})
    return TaskMetric(metric, kind, name)


def _is_known(metric: km.Metric) -> bool:
    """Whether it reads labels and outputs as Keras's own do."""
    if isinstance(metric, F1 | MatthewsCorrelation):
        return True
    classes = type(metric).__mro__
    update = next(cls for cls in classes if "update_state" in vars(cls))
    kerass = next(cls for cls in classes if cls.__module__.startswith("keras."))
    # The wrapper and a user's subclass of it call a function of the user's own.
    return update.__module__.startswith("keras.") and kerass is not km.MeanMetricWrapper


def _refusal(metric: km.Metric, kind: str) -> str | None:
    """Why a metric is not supported for outputs of a kind; None if it is."""
    if type(metric) in (km.Mean, km.Sum):
        return "takes values, not labels and outputs"
    if kind == NOTHING:
        return "needs labels, and this loss has none"
    if kind in (NUMBERS, COSINES):
        if isinstance(metric, _CORRELATIONS):
            return (
                "is a mean over rows or batches, not the correlation of all of them: use "
                "keras_bert.metrics.PearsonCorrelation"
            )
        return None if isinstance(metric, _NUMBERS) else "is of classes, and outputs are numbers"
    if isinstance(metric, _CORRELATIONS):
        return "is of numbers, and outputs are classes"
    one_hot = _counts_pairs(metric) and not (metric.sparse_y_true and metric.sparse_y_pred)
    if kind == LABELS and (isinstance(metric, _SOFTMAX) or one_hot):
        return "expects one class a row, and here are several labels"
    if kind == CHOICES and not isinstance(metric, (*_SOFTMAX, km.Accuracy)):
        return "is of classes, and here are choices, positions or tokens: each stands for itself"
    return None


def _counts_pairs(metric: km.Metric) -> bool:
    """Whether it counts pairs of a right and a found class, not probabilities."""
    return isinstance(metric, km.IoU) and not isinstance(metric, km.BinaryIoU)


def _setting(metric: km.Metric, name: str):
    return metric.get_config().get(name)


def _of_softmax(metric, kind, y, logits, weights) -> tuple:
    """A metric's inputs if one of K classes is right: labels, outputs, weights."""
    count = logits.shape[-1]
    y = ops.convert_to_tensor(y)
    soft = is_soft(y, logits)
    if not soft and len(y.shape) == len(logits.shape):
        y = ops.squeeze(y, -1)
    if weights is not None:
        weights = _spread(weights, y[..., 0] if soft else y)
    from_logits = _setting(metric, "from_logits")
    if isinstance(metric, _OF_IDS):
        # Without a label, marked by an id below 0, the weight is 0.
        ids = ops.argmax(y, axis=-1) if soft else ops.maximum(ops.cast(y, "int32"), 0)
        scores = logits if from_logits or isinstance(metric, _RANKED) else ops.softmax(logits)
        return ids, scores, weights
    if count is not None:  # of choices it may vary
        logits = ops.reshape(logits, (-1, count))
        y = ops.reshape(y, (-1, count) if soft else (-1,))
        weights = None if weights is None else ops.reshape(weights, (-1,))
    if isinstance(metric, km.Accuracy) or _counts_pairs(metric):
        ids = ops.argmax(y, axis=-1) if soft else ops.maximum(ops.cast(y, "int32"), 0)
        found = ops.argmax(logits, axis=-1)
        return *(
            column if getattr(metric, name, True) else ops.one_hot(column, count)
            for name, column in (("sparse_y_true", ids), ("sparse_y_pred", found))
        ), weights
    rows = y if soft else ops.one_hot(ops.cast(y, "int32"), ops.shape(logits)[-1], dtype="float32")
    if not isinstance(metric, _BINARY):
        scores = from_logits or isinstance(metric, _SCORES)
        return rows, logits if scores else ops.softmax(logits), weights
    if soft and not isinstance(metric, km.BinaryCrossentropy):  # a binary label is never fractional
        rows = ops.one_hot(ops.argmax(y, axis=-1), count, dtype="float32")
    if isinstance(metric, _SCORES):
        found = logits
    elif from_logits:
        chance = ops.log_softmax(logits)
        found = chance - ops.log(-ops.expm1(chance))
        if count == 2:
            found = logits - ops.flip(logits, axis=-1)
    else:
        found = ops.softmax(logits)
    if any(_setting(metric, name) is not None for name in ("class_id", "top_k")):
        return rows, found, weights
    if _setting(metric, "multi_label"):
        return rows, found, None if weights is None else _spread(weights, rows)
    if count == 2:
        rows, found = rows[:, 1:], found[:, 1:]
        if isinstance(metric, km.Hinge | km.SquaredHinge):
            found = (logits - ops.flip(logits, axis=-1))[:, 1:]
    return _by_element(rows, found, weights)


def _of_columns(metric, kind, y, outputs, weights) -> tuple:
    """A metric's inputs if each of K columns has its own label or number."""
    if kind == COSINES:
        outputs = cosines(outputs)[:, None]  # [B, 1]
    count = outputs.shape[-1]
    y = ops.reshape(ops.cast(y, "float32"), (-1, count))
    if kind == LABELS:
        from_logits = _setting(metric, "from_logits") or isinstance(metric, _SCORES)
        outputs = outputs if from_logits else ops.sigmoid(outputs)
        if isinstance(metric, km.Accuracy) or _counts_pairs(metric):
            outputs = ops.cast(outputs > 0.5, "float32")
    place = _setting(metric, "class_id")
    by_label = weights is not None and len(weights.shape) == 2 and weights.shape[-1] != 1
    if place is not None and by_label:
        return y, outputs, weights[:, place]
    if _setting(metric, "multi_label"):
        return y, outputs, None if weights is None else _spread(weights, y)
    if by_label and isinstance(metric, km.FBetaScore) and metric.threshold is not None:
        # Each label as a row without others: their counts add up by column.
        own = ops.eye(count)
        y, outputs = (ops.reshape(v[..., None] * own, (-1, count)) for v in (y, outputs))
        return y, outputs, ops.reshape(weights, (-1,))
    if place is not None or _setting(metric, "top_k") or isinstance(metric, _OF_ROWS):
        if by_label:
            name = type(metric).__name__
            raise ValueError(f"metrics: {name} has one weight a row, got weights of labels [B, K]")
        return y, outputs, None if weights is None else ops.reshape(weights, (-1,))
    return _by_element(y, outputs, weights)


def _spread(weights, like):
    """Weights of labels or of rows of them, in the shape of `like`, flat to its last axis."""
    while len(weights.shape) > len(like.shape):  # [B, 1] of labels [B]
        weights = ops.squeeze(weights, -1)
    while len(weights.shape) < len(like.shape):
        weights = weights[..., None]
    return ops.broadcast_to(weights, ops.shape(like))


def _by_element(y, found, weights) -> tuple:
    """Each label as a row of its own, [N, 1] with weights [N]."""
    weights = None if weights is None else ops.reshape(_spread(weights, y), (-1,))
    return ops.reshape(y, (-1, 1)), ops.reshape(found, (-1, 1)), weights
