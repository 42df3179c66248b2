"""Classification of texts and of pairs of texts (Devlin et al. 2019, section 4.1)."""

from collections.abc import Sequence

import keras
import numpy as np
from scipy.special import expit

from keras_bert.arguments import check_choice
from keras_bert.data.examples import are_examples
from keras_bert.data.sources import check_columns
from keras_bert.data.table_rows import NUMERIC, SEVERAL
from keras_bert.data.texts import is_text
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.heads import dense_head
from keras_bert.metrics import PearsonCorrelation, evaluate, predicted_labels, tune_thresholds
from keras_bert.models.backbone import BertBackbone
from keras_bert.serving.signatures import EXAMPLES, TEXT, label_tensor
from keras_bert.tasks.labelled import Labelled, one_of
from keras_bert.tasks.targets import (
    check_classes,
    checked_weights,
    class_weights,
    label_matrix,
    likeliest_labels,
    numbers,
)
from keras_bert.tasks.task import Rows
from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor
from keras_bert.training.task_metrics import CLASSES, LABELS, NUMBERS

PROBLEMS = ("single_label", "multi_label", "regression")


@keras.saving.register_keras_serializable(package="keras_bert")
class BertClassifier(Labelled):
    """A backbone, dropout and one dense layer on the pooled output; gives logits.

    Reference: google-research/bert `run_classifier.py`, `create_model`. Logits are float32 under
    every dtype policy.

    Args:
        backbone: a `BertBackbone`.
        num_classes: number of classes K; by default that of `labels`. For regression, the number of
            outputs, 1 by default.
        labels: K names, strings or numbers such as ratings; a number in `y` is then a name. Without
            them labels are ids; `fit` on strings uses the sorted distinct strings.
        preprocessor: a `BertClassifierPreprocessor`, or None to work on ids alone.
        dropout: dropout rate of the pooled output.
        problem: "single_label", one class per text, with a softmax; "multi_label", any number of
            classes, with a sigmoid each; "regression", numbers, with the squared error.
        thresholds: for "multi_label", K probabilities at or above which a label is given; 0.5 each
            by default. See `tune_thresholds`.
        temperature: divides the logits before probabilities are computed; see `calibrate`.
        **kwargs: as `keras.Model`.

    Call arguments:
        inputs: the backbone's.

    Returns:
        float32 logits [B, K]; for regression the predicted numbers.

    Raises:
        ValueError: if neither `num_classes` nor `labels` is given, they disagree, or the
            preprocessor does not fit the backbone.
    """

    preprocessor_cls = BertClassifierPreprocessor
    answers_read_rows = False
    reads_first_tokens = True

    head_kind = "classifier"  # of `keras_bert.checkpoints.contents.HEADS`

    def __init__(
        self,
        backbone: BertBackbone,
        num_classes: int | None = None,
        labels: list[str] | None = None,
        preprocessor: BertClassifierPreprocessor | None = None,
        dropout: float = 0.1,
        problem: str = "single_label",
        thresholds: Sequence[float] | None = None,
        temperature: float = 1.0,
        **kwargs,
    ):
        check_choice("problem", problem, PROBLEMS)
        if not num_classes and labels is None and problem == "regression":
            num_classes = 1
        least = 2 if problem == "single_label" else 1
        num_classes, labels = check_classes(num_classes, labels, least)

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head_dropout = Dropout(dropout, name="head_dropout")
        self.head = dense_head(num_classes, backbone.initializer_range)

        # === Functional model ===
        inputs = backbone.input
        pooled = self.encode(inputs)["pooled_output"]  # [B, H]
        logits = self.head(self.head_dropout(pooled))  # [B, K]
        # Known before the model is compiled, which construction ends with.
        self.problem = problem
        self.num_classes, self.labels = num_classes, labels
        super().__init__(inputs=inputs, outputs=logits, **kwargs)

        # === Configuration ===
        self.dropout = dropout
        self.thresholds = thresholds
        self.temperature = temperature

    @property
    def thresholds(self) -> list[float] | None:
        """K probabilities at or above which a label is given; None unless multi-label."""
        return self._thresholds

    @thresholds.setter
    def thresholds(self, values: Sequence[float] | None) -> None:
        if self.problem == "multi_label":
            values = [0.5] * self.num_classes if values is None else [float(v) for v in values]
            if len(values) != self.num_classes or not all(0 <= v <= 1 for v in values):
                raise ValueError(
                    f"thresholds={values}: expected {self.num_classes} numbers from 0 to 1"
                )
        elif values is not None:
            raise ValueError(f"thresholds are of multi-label problems, not of {self.problem}")
        self._thresholds = values

    @property
    def label_kind(self) -> str:
        kinds = {"multi_label": SEVERAL, "regression": NUMERIC}
        return kinds.get(self.problem) or super().label_kind

    @property
    def output_kind(self) -> str:
        """As `BertTask.output_kind`, depending on the problem."""
        return {"multi_label": LABELS, "regression": NUMBERS}.get(self.problem, CLASSES)

    @classmethod
    def same_kind_of_head(cls, own, saved, checkpoint, skip_mismatch):
        saved_problem = saved.get("problem", "single_label") if saved else None
        problem = own.setdefault("problem", saved_problem or "single_label")
        if problem == "regression" and not own.keys() & {"num_classes", "labels"}:
            own["num_classes"] = saved["num_classes"] if saved_problem == problem else 1
        same = saved_problem in (None, problem)
        if not same and not skip_mismatch:
            raise ValueError(
                f"{checkpoint.source.name} has a head for the problem {saved_problem!r}, not for "
                f"{problem!r}: pass skip_mismatch=True for a new one"
            )
        return same

    def default_loss(self):
        reduction = "mean_with_sample_weight"
        if self.problem == "multi_label":
            return keras.losses.BinaryCrossentropy(from_logits=True, reduction=reduction)
        if self.problem == "regression":
            return keras.losses.MeanSquaredError(reduction=reduction)
        return super().default_loss()

    def default_metrics(self) -> list:
        if self.problem == "multi_label":
            return [keras.metrics.BinaryAccuracy(name="accuracy")]
        if self.problem == "regression":
            error = keras.metrics.MeanSquaredError(name="mean_squared_error")
            return [error, *([PearsonCorrelation()] if self.num_classes == 1 else [])]
        return super().default_metrics()

    def encode_labels(self, y) -> np.ndarray:
        """Checks labels, as `Labelled.encode_labels` does, for every problem.

        For multi-label, y are N lists of names or ids, or 0 and 1, [N, K], for regression numbers,
        [N] or [N, K]; for both the result is float32 [N, K].
        """
        if self.problem == "regression":
            return numbers(y, self.num_classes)
        if self.problem == "multi_label":
            return label_matrix(y, self.num_classes, self.labels)
        return super().encode_labels(y)

    def encode_class_weight(self, class_weight: dict) -> dict[int, float]:
        """As `Labelled.encode_class_weight`; for multi-label, positive against negative.

        Raises:
            ValueError: as `Labelled.encode_class_weight`, or if the problem has no classes.
        """
        if self.problem == "regression":
            raise ValueError(f"class_weight is not supported for the problem {self.problem!r}")
        return super().encode_class_weight(class_weight)

    def encode_labels_in_graph(self, y):
        import tensorflow as tf

        if y is None or self.problem == "single_label":
            return super().encode_labels_in_graph(y)
        if self.problem == "regression":
            return tf.reshape(tf.cast(y, tf.float32), [-1, self.num_classes])
        if y.dtype == tf.string:
            raise ValueError(
                f"labels of a {self.problem} dataset are names; expected 0 and 1, "
                f"[B, {self.num_classes}]"
            )
        return y

    # === Rows and answers ===

    def rows(self, *columns, overlap: int | None = None) -> Rows:
        """One row per example; with `overlap`, windows that share that many pieces."""
        if overlap is None:
            return Rows(self.preprocessor.pack(columns))
        ids, windows = self.preprocessor.pack_windows(columns, overlap)
        return Rows(ids, windows.text, windows.length)

    def answers(self, outputs, rows, *columns, overlap: int | None = None):
        """The answers, depending on the problem.

        A single-label classifier gives `label` [B], of the type of its names (the id as a string if
        it has none), `probability` of that label, float32 [B], and `logits`, float32 [B, K]. A
        multi-label problem gives `labels`, string [B, K], all of them, their `probabilities`,
        float32 [B, K], `given`, int32 [B, K], 1 for those that reach their threshold, and `logits`;
        regression gives `values`, float32 [B, K].

        A text's logits are the mean of those of its windows, each weighted by its number of
        pieces, so that a short last window counts for little.
        """
        import tensorflow as tf

        if rows.example is not None:
            weights = tf.cast(tf.maximum(rows.about, 1), tf.float32)[:, None]
            count = tf.shape(columns[0])[0]
            total = tf.math.unsorted_segment_sum(outputs * weights, rows.example, count)
            outputs = total / tf.math.unsorted_segment_sum(weights, rows.example, count)
        if self.problem == "regression":
            return {"values": outputs}
        if self.problem == "multi_label":
            probabilities = tf.sigmoid(outputs / self.temperature)
            names = label_tensor(self.labels, self.num_classes)
            return {
                "labels": tf.broadcast_to(names, tf.shape(outputs)),
                "probabilities": probabilities,
                "given": tf.cast(probabilities >= self.thresholds, tf.int32),
                "logits": outputs,
            }
        return super().answers(outputs, rows)

    def signatures(self, overlap: int | None = None):
        """Lists `serving_default`, for `text`, and `pair`, for two; `overlap` as in `predict`."""
        one = super().signatures(overlap=overlap)["serving_default"]
        asks = {"text": TEXT, "text_pair": TEXT}
        example = {"text": EXAMPLES, "text_pair": EXAMPLES[::-1]}
        return {"serving_default": one, "pair": one._replace(asks=asks, example=example)}

    # === Training and predictions; with `overlap` on texts longer than a row ===

    def fit(
        self,
        x=None,
        y=None,
        batch_size: int | None = None,
        epochs: float | None = None,
        sample_weight=None,
        validation_data=None,
        overlap: int | None = None,
        **kwargs,
    ):
        """Trains the model, as `BertTask.fit`.

        Args:
            overlap: trains on complete texts, in windows that share this many pieces. Each window
                has its text's label and a part of its weight, proportional to its number of pieces;
                batches are of windows. Loss and metrics of validation data in memory are those of
                the texts' pooled answers, as `evaluate(overlap=...)` computes them.

        Raises:
            ValueError: as `BertTask.fit`, or if `overlap` comes with ids or a dataset, or does not
                fit.
        """
        if overlap is None:
            return super().fit(x, y, batch_size, epochs, sample_weight, validation_data, **kwargs)
        _check_has_windows(x)
        x, y, sample_weight, validation_data = self._read_fit_data(
            x, y, sample_weight, validation_data, kwargs.pop("validation_split", 0.0)
        )
        if validation_data is not None:
            if not isinstance(validation_data, tuple | list) or not len(validation_data):
                raise ValueError("validation_data: with overlap= expected (x, y) in memory")
            _check_has_windows(validation_data[0])
            texts, labels, shares = self._check_validation(validation_data)
            every = kwargs.pop("validation_freq", 1)
            options = {"overlap": overlap, "return_dict": True, "verbose": 0}

            def validate(epoch, logs):
                if (epoch + 1) % every == 0:
                    found = self.evaluate(texts, labels, batch_size, shares, **options)
                    logs.update({f"val_{name}": value for name, value in found.items()})

            callbacks = keras.tree.flatten(kwargs.get("callbacks") or [])
            validation = keras.callbacks.LambdaCallback(on_epoch_end=validate)
            kwargs["callbacks"] = [validation, *callbacks]
        if isinstance(given := kwargs.get("class_weight"), str):  # counts texts, not windows
            several = self.output_kind == LABELS
            labels = self.encode_labels(y)
            kwargs["class_weight"] = class_weights(given, self.num_classes, labels, several)
        weights = np.ones(len(y), "float32") if sample_weight is None else sample_weight
        ids, y, weights = self.ragged_rows(x, y, weights, overlap=overlap)
        return super().fit(ids, y, batch_size, epochs, weights, **kwargs)

    def labels_of_rows(self, rows, labels, weights, first):
        if rows.example is None:
            return labels, weights
        text, length = rows.example.numpy(), np.maximum(rows.about.numpy(), 1)
        share = (length / np.bincount(text, length)[text]).astype("float32")
        labels, weights = super().labels_of_rows(rows, labels, weights, first)
        return labels, weights if weights is None else (share * weights.T).T

    def evaluate(
        self,
        x=None,
        y=None,
        batch_size: int | None = None,
        sample_weight=None,
        overlap: int | None = None,
        **kwargs,
    ):
        """Gives loss and metrics on labelled data, as `BertTask.evaluate`.

        Args:
            overlap: reads complete texts, as `predict` does. `return_dict` and `verbose` are then
                the only further arguments.

        Raises:
            ValueError: if labels are unknown, or `overlap` comes with ids or does not fit.
        """
        if overlap is None:
            return super().evaluate(x, y, batch_size, sample_weight, **kwargs)
        _check_has_windows(x)
        as_dict, weights = kwargs.pop("return_dict", False), checked_weights(sample_weight)
        x, y = self._labelled(x, y, "evaluate")
        logits = self.predict(x, batch_size, overlap, **kwargs)
        check_columns({"texts": logits}, None, weights)
        weights = np.ones(len(logits)) if weights is None else weights
        # Scaled to mean 1, so that every loss reduction divides by their sum.
        weights = (weights * weights.size / weights.sum()).astype("float32")
        self.reset_metrics()
        loss = keras.Model.compute_loss(self, None, y, logits, weights, training=False)
        # The loss comes first, also where it is among the metrics.
        metrics = self.compute_metrics(None, y, logits, weights)
        found = {n: float(v) for n, v in ({"loss": loss} | metrics | {"loss": loss}).items()}
        return found if as_dict else [*found.values()]

    def predict(self, x, batch_size: int | None = None, overlap: int | None = None, **kwargs):
        """Computes the logits of each row, or for regression the numbers.

        Args:
            x: as in `fit`, without labels; or one string.
            batch_size: rows of a batch, 32 by default.
            overlap: reads texts longer than a row in windows that share this many pieces; see
                `answers`. None truncates at `sequence_length`, as training does.
            **kwargs: as `keras.Model.predict`.

        Returns:
            float32 [N, K]; for one string [K].

        Raises:
            TypeError: if a text is not a string.
            ValueError: if columns differ in length, or `overlap` comes with ids or does not fit.
        """
        if overlap is None:
            return super().predict(x, batch_size, **kwargs)
        if is_text(x):
            return self.predict([x], batch_size, overlap, **kwargs)[0]
        _check_has_windows(x)
        found = self.answers_to(x, batch_size, kwargs, overlap=overlap)
        return found["values" if self.problem == "regression" else "logits"]

    def classify(
        self, texts, batch_size: int | None = None, top_k: int | str | None = None, **kwargs
    ):
        """Gives each text's label and its probability, or the probabilities of several labels.

        Args:
            texts: a list of N texts, a tuple (firsts, seconds), one string, or ids as in `fit`.
            batch_size: rows of a batch, 32 by default.
            top_k: number of labels to give with their probabilities, or "all"; None for the
                predicted label alone.
            **kwargs: as `predict`, `overlap` among them.

        Returns:
            With `top_k` a list of N dicts from label to probability, the most probable first; for
            one string one dict. Without it (labels, probabilities): a list of N names, or ids where
            the classifier has no names, and a float32 array [N]; for one string a single label and
            a float. For multi-label a list of N lists of the labels whose probability reaches its
            threshold, and the probabilities of all of them, [N, K]; for one string a list and [K].

        Raises:
            ValueError: for regression (use `predict`), or if `top_k` is not from 1 to the number of
                labels.
        """
        if self.problem == "regression":
            raise ValueError("a regression has no labels: predict gives its numbers, [N, K]")
        single = is_text(texts)
        options = {"overlap": kwargs.pop("overlap")} if "overlap" in kwargs else {}
        if options.get("overlap") is not None:
            _check_has_windows(texts)
        found = self.answers_to([texts] if single else texts, batch_size, kwargs, **options)
        if self.problem == "single_label":
            found = self._likeliest(found, top_k)
            return one_of(found) if single else found
        probabilities = found["probabilities"]
        if top_k is not None:
            found = likeliest_labels(probabilities, self.names, top_k)
            return found[0] if single else found
        given = predicted_labels(probabilities, self.thresholds)
        labels = [[self.names[i] for i in np.flatnonzero(row)] for row in given]
        return (labels[0], probabilities[0]) if single else (labels, probabilities)

    def scores(self, x, y=None, **kwargs) -> dict[str, float]:
        """Scores predictions by `keras_bert.metrics.evaluate`, on data as `fit` takes them.

        Args:
            x: texts or ids.
            y: their labels.
            **kwargs: as `predict`.

        Returns:
            "accuracy", "macro_f1", "matthews", and for two classes "f1", that of class 1; for
            multi-label "micro_f1", "macro_f1" and "samples_f1"; for regression
            "mean_squared_error", with a single output also "pearson" and "spearman".
        """
        x, labels = self._scored(x, y)
        outputs = self.predict(x, **{"verbose": 0} | kwargs)
        if self.problem == "multi_label":
            names = ["micro_f1", "macro_f1", "samples_f1"]
            probabilities = expit(outputs / self.temperature)
            return evaluate(names, labels, probabilities, self.thresholds)
        if self.problem == "single_label":
            names = ["accuracy", "macro_f1", "matthews"] + ["f1"] * (self.num_classes == 2)
            return evaluate(names, self._ids(labels), outputs)
        if self.num_classes == 1:
            return evaluate(["pearson", "spearman", "mean_squared_error"], labels, outputs)
        return {"mean_squared_error": float(np.mean(np.square(labels - outputs)))}

    def tune_thresholds(self, x, y, batch_size: int | None = None, **kwargs) -> list[float]:
        """Sets `thresholds` to those that maximize the F1 of each class, on held-out data.

        Args:
            x: texts or ids, as in `fit`.
            y: their labels.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `keras.Model.predict`.

        Returns:
            The K thresholds; see `keras_bert.metrics.tune_thresholds` for the method.

        Raises:
            ValueError: unless the problem is "multi_label".
        """
        if self.problem != "multi_label":
            raise ValueError(f"a classifier for the problem {self.problem!r} has no thresholds")
        probabilities = expit(self.predict(x, batch_size, **kwargs) / self.temperature)
        found = tune_thresholds(self.encode_labels(y), probabilities)
        # Each threshold equals some text's probability, which a server may round down.
        self.thresholds = np.maximum(found - 1e-6, 0).tolist()
        return self.thresholds

    def calibrate(self, x, y, batch_size: int | None = None, **kwargs) -> float:
        """As `Labelled.calibrate`; thresholds change with the probabilities, decisions stay.

        Raises:
            ValueError: as `Labelled.calibrate`, or for regression, which has no probabilities.
        """
        if self.problem == "regression":
            raise ValueError("a regression has no probabilities to calibrate")
        before = self.temperature
        after = super().calibrate(x, y, batch_size, **kwargs)
        if self.problem == "multi_label":
            with np.errstate(divide="ignore"):
                odds = np.log(self.thresholds) - np.log1p(-np.array(self.thresholds))
            self.thresholds = expit(odds * before / after).tolist()
        return after


def _check_has_windows(x) -> None:
    if not are_examples(x) or is_text(x):
        raise ValueError(f"overlap= needs texts, got {type(x).__name__}")
