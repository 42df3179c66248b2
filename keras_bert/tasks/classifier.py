"""Classification of texts and of pairs of texts (Devlin et al. 2019, section 4.1)."""

from collections.abc import Sequence

import keras
import numpy as np

from keras_bert.data.sources import check_columns
from keras_bert.data.validation_split import split_rows
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.heads import dense_head
from keras_bert.metrics import PearsonCorrelation, evaluate, predicted_labels, tune_thresholds
from keras_bert.models.backbone import BertBackbone
from keras_bert.serving import classification
from keras_bert.tasks.heads import choose_classes, saved_task
from keras_bert.tasks.long_texts import (
    WindowValidation,
    evaluate_windows,
    predict_windows,
    window_rows,
)
from keras_bert.tasks.targets import (
    check_classes,
    check_names,
    checked_weights,
    class_ids,
    class_labels,
    classes_in_graph,
    found_names,
    ids_in_graph,
    label_matrix,
    likeliest_labels,
    numbers,
    weights_by_id,
)
from keras_bert.tasks.task import BertTask
from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor
from keras_bert.training.task_metrics import CLASSES, LABELS, NUMBERS

PROBLEMS = ("single_label", "multi_label", "regression")


@keras.saving.register_keras_serializable(package="keras_bert")
class BertClassifier(BertTask):
    """A backbone, dropout and one dense layer on the pooled output; gives logits.

    Rule: google-research/bert `run_classifier.py`, `create_model`. Logits are float32 under
    every dtype policy.

    Args:
        backbone: a `BertBackbone`.
        num_classes: number of classes K; by default that of `labels`. Of a regression, how many
            numbers there are, by default 1.
        labels: K names, strings or numbers such as ratings; a number in `y` is then a name.
            Without them labels are ids; `fit` on strings takes the sorted ones.
        preprocessor: a `BertClassifierPreprocessor`, or None to work on ids alone.
        dropout: share of the pooled output dropped in training.
        problem: "single_label", one class a text, by a softmax; "multi_label", any number of
            them, by a sigmoid each; "regression", numbers, by the squared error.
        thresholds: K probabilities from which on a label is given, of a multi-label classifier;
            0.5 for each by default. See `tune_thresholds`.
        **kwargs: as `keras.Model`.

    Call arguments:
        inputs: the backbone's.

    Returns:
        float32 logits [B, K]; of a regression the numbers.

    Raises:
        ValueError: if neither `num_classes` nor `labels` is given, they disagree, or the
            preprocessor does not fit the backbone.
    """

    backbone_cls = BertBackbone
    preprocessor_cls = BertClassifierPreprocessor
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
        **kwargs,
    ):
        if problem not in PROBLEMS:
            raise ValueError(f"problem={problem!r}: expected one of {', '.join(PROBLEMS)}")
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
        pooled = backbone(inputs)["pooled_output"]  # [B, H]
        logits = self.head(self.head_dropout(pooled))  # [B, K]
        # Known before the model is compiled, which construction ends with.
        self.problem = problem
        self.num_classes = num_classes
        super().__init__(inputs=inputs, outputs=logits, **kwargs)

        # === Configuration ===
        self.labels = labels
        self.dropout = dropout
        self.thresholds = thresholds

    @property
    def thresholds(self) -> list[float] | None:
        """K probabilities from which on a label is given; None unless there are several."""
        return self._thresholds

    @thresholds.setter
    def thresholds(self, values: Sequence[float] | None) -> None:
        if self.problem != "multi_label":
            if values is not None:
                raise ValueError(f"thresholds are of multi-label problems, not of {self.problem}")
            self._thresholds = None
            return
        values = [0.5] * self.num_classes if values is None else [float(v) for v in values]
        if len(values) != self.num_classes or not all(0 <= v <= 1 for v in values):
            raise ValueError(
                f"thresholds={values}: expected {self.num_classes} numbers from 0 to 1"
            )
        self._thresholds = values

    @property
    def output_kind(self) -> str:
        """As `BertTask.output_kind`, by the problem."""
        return {"multi_label": LABELS, "regression": NUMBERS}.get(self.problem, CLASSES)

    @classmethod
    def complete_settings(cls, own, network, checkpoint, skip_mismatch):
        saved = saved_task(checkpoint, cls)
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
        fits = choose_classes(own, checkpoint, saved if same else {}, skip_mismatch)
        if "dropout" in saved:
            own.setdefault("dropout", saved["dropout"])
        if fits and "thresholds" in saved:
            own.setdefault("thresholds", saved["thresholds"])
        return fits or (None if saved else False)

    def default_loss(self):
        # On TensorFlow the step divides by the weight sum anyway; elsewhere Keras has to be told.
        reduction = "mean_with_sample_weight"
        if self.problem == "multi_label":
            return keras.losses.BinaryCrossentropy(from_logits=True, reduction=reduction)
        if self.problem == "regression":
            return keras.losses.MeanSquaredError(reduction=reduction)
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=reduction)

    def default_metrics(self) -> list:
        if self.problem == "multi_label":
            return [keras.metrics.BinaryAccuracy(name="accuracy")]
        if self.problem == "regression":
            error = keras.metrics.MeanSquaredError(name="mean_squared_error")
            return [error, *([PearsonCorrelation()] if self.num_classes == 1 else [])]
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def encode_labels(self, y) -> np.ndarray:
        """Checks labels and turns names into ids.

        Args:
            y: N ids or names, or probabilities of the classes [N, K], rows that sum to 1; of a
                multi-label problem N lists of names or ids, or 0 and 1 [N, K]; of a regression
                numbers, [N] or [N, K]. The first names that a single-label classifier without
                `labels` sees become its labels, sorted.

        Returns:
            int32 ids [N]; of probabilities and of the other problems float32 [N, K].

        Raises:
            ValueError: if a label is unknown; the error names its row.
        """
        if self.problem == "regression":
            return numbers(y, self.num_classes)
        if self.problem == "multi_label":
            return label_matrix(y, self.num_classes, self.labels)
        if self.labels is None:
            self.labels = check_names(found_names(y), self.num_classes)
        return class_labels(y, self.num_classes, self.labels)

    def encode_class_weight(self, class_weight: dict) -> dict[int, float]:
        """Turns weights by label name or id into weights by id; 1 where there is none.

        Of several labels a weight is that of a label's yes against its no.

        Raises:
            ValueError: if a label is unknown or named twice, a weight is negative or infinite, or
                the problem has no classes.
        """
        if self.problem == "regression":
            raise ValueError(f"class_weight has no meaning for the problem {self.problem!r}")
        ids = class_ids(list(class_weight), self.num_classes, self.labels)
        return weights_by_id(class_weight, ids, self.num_classes)

    def encode_labels_in_graph(self, y):
        """Turns a batch of label names [B] into ids inside `tf.data`; ids stay as they are.

        Raises:
            ValueError: if the classifier has no names, or the problem is not "single_label".
            tf.errors.InvalidArgumentError: when the data runs, if a label is unknown, or
                probabilities [B, K] do not sum to 1.
        """
        import tensorflow as tf

        if y is not None and self.problem == "regression":
            return tf.reshape(tf.cast(y, tf.float32), [-1, self.num_classes])
        if y is not None and y.dtype != tf.string and self.problem == "single_label":
            return classes_in_graph(y, self.num_classes, self.labels)
        if y is None or y.dtype != tf.string:
            return y
        if self.problem != "single_label":
            raise ValueError(
                f"labels of a {self.problem} dataset are names; expected 0 and 1, "
                f"[B, {self.num_classes}]"
            )
        if self.labels is None:
            raise ValueError("the dataset's labels are names: give the classifier labels=[...]")
        return ids_in_graph(y, self.labels)

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
        """Trains the model; see `BertTask.fit` for all arguments.

        Args:
            x: as there; with `overlap` texts, or a tuple of two columns of them.
            y: as there.
            batch_size: as there; with `overlap` windows of a batch.
            epochs: as there.
            sample_weight: as there.
            validation_data: as there; with `overlap` in memory. Its loss and metrics are then
                those of the texts' pooled answers, as of `evaluate(overlap=...)`.
            overlap: trains on texts whole, in windows that share so many pieces. Each window has
                its text's label, and a share of its weight by its number of pieces.
            **kwargs: as there.

        Returns:
            The Keras `History`.

        Raises:
            TypeError: if a text is not a string.
            ValueError: as `BertTask.fit`, or if `overlap` comes with ids or a dataset, or does not
                fit.
        """
        if overlap is not None:
            _check_has_windows(x)
            self._check_labelled(x, y, "fit")
            y = self.encode_labels(y)
            if split := kwargs.pop("validation_split", 0.0):
                if validation_data is not None:
                    raise ValueError("got both validation_data and validation_split")
                x, y, sample_weight, validation_data = split_rows(x, y, sample_weight, split)
            if validation_data is not None:
                validation_data = self._check_validation(validation_data)
                _check_has_windows(validation_data[0])
                every = kwargs.pop("validation_freq", 1)
                validation = WindowValidation(validation_data, overlap, batch_size, every)
                kwargs["callbacks"] = [
                    validation,
                    *keras.tree.flatten(kwargs.get("callbacks") or []),
                ]
                validation_data = None
            x, text, share = window_rows(self, x, overlap)
            check_columns((np.unique(text),), y, sample_weight)
            weights = 1.0 if sample_weight is None else checked_weights(sample_weight)[text]
            y, sample_weight = y[text], (share * np.transpose(weights)).T
        return super().fit(x, y, batch_size, epochs, sample_weight, validation_data, **kwargs)

    def evaluate(
        self,
        x=None,
        y=None,
        batch_size=None,
        sample_weight=None,
        overlap: int | None = None,
        **kwargs,
    ):
        """Gives loss and metrics on labelled data; takes what `fit` takes, every row once.

        Args:
            x: as in `fit`.
            y: as in `fit`.
            batch_size: rows of a batch, 32 by default.
            sample_weight: N weights.
            overlap: reads texts whole, as `predict` does.
            **kwargs: as `keras.Model.evaluate`; with `overlap` `return_dict` and `verbose`.

        Returns:
            As `keras.Model.evaluate`.

        Raises:
            ValueError: if labels are unknown, or `overlap` comes with ids or does not fit.
        """
        if overlap is None:
            return super().evaluate(x, y, batch_size, sample_weight, **kwargs)
        _check_has_windows(x)
        self._check_labelled(x, y, "evaluate")
        as_dict = kwargs.pop("return_dict", False)
        found = evaluate_windows(self, x, y, batch_size, sample_weight, overlap, **kwargs)
        return found if as_dict else [found.pop("loss"), *found.values()]

    def predict(self, x, batch_size: int | None = None, overlap: int | None = None, **kwargs):
        """Gives the logits, or of a regression the numbers, of each row.

        Args:
            x: as in `fit`, without labels; or one string.
            batch_size: rows of a batch, 32 by default.
            overlap: reads texts whole that are longer than a row, in windows that share so many
                pieces; see `keras_bert.tasks.long_texts`. None cuts off what is beyond
                `sequence_length`, as training does.
            **kwargs: as `keras.Model.predict`.

        Returns:
            float32 [N, K]; for one string [K].

        Raises:
            TypeError: if a text is not a string.
            ValueError: if columns differ in length, or `overlap` comes with ids or does not fit.
        """
        if overlap is None:
            return super().predict(x, batch_size, **kwargs)
        if isinstance(x, str | bytes):
            return self.predict([x], batch_size, overlap, **kwargs)[0]
        _check_has_windows(x)
        return predict_windows(self, x, overlap, batch_size, **kwargs)

    def classify(
        self, texts, batch_size: int | None = None, top_k: int | str | None = None, **kwargs
    ):
        """Gives each text's label and its probability, or the probabilities of several labels.

        Args:
            texts: a list of N texts, a tuple (firsts, seconds), one string, or ids as in `fit`.
            batch_size: rows of a batch, 32 by default.
            top_k: how many labels to give with their probabilities, or "all"; None for the
                text's own alone.
            **kwargs: as `predict`, `overlap` among them.

        Returns:
            With `top_k` a list of N dicts from label to probability, the likeliest first; for one
            string one dict. Else (labels, probabilities): a list of N names, or ids where the
            classifier has no names, and a float32 array [N]; for one string a single label and a
            float. Of a multi-label problem a list of N lists of the labels whose probability
            reaches its threshold, and the probabilities of all of them, [N, K]; for one string a
            list and [K].

        Raises:
            ValueError: for a regression, whose numbers `predict` gives, or if `top_k` is not from 1
                to the number of labels.
        """
        if self.problem == "regression":
            raise ValueError("a regression has no labels: predict gives its numbers, [N, K]")
        if isinstance(texts, str | bytes):
            found = self.classify([texts], batch_size, top_k, **kwargs)
            if top_k is not None:
                return found[0]
            labels, one = found[0], found[1][0]
            return labels[0], one if self.problem == "multi_label" else float(one)
        logits = self.predict(texts, batch_size, **kwargs)
        if self.problem == "multi_label":
            probabilities = _sigmoid(logits)
        else:
            exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
            probabilities = exponents / exponents.sum(axis=1, keepdims=True)
        names = self.labels or list(range(self.num_classes))
        if top_k is not None:
            return likeliest_labels(probabilities, names, top_k)
        if self.problem == "multi_label":
            given = predicted_labels(probabilities, self.thresholds)
            labels = [[names[i] for i in np.flatnonzero(row)] for row in given]
            return labels, probabilities
        return [names[i] for i in logits.argmax(axis=1)], probabilities.max(axis=1)

    def scores(self, x, y=None, **kwargs) -> dict[str, float]:
        """Scores predictions by `keras_bert.metrics.evaluate`.

        Args:
            x: texts or ids, as in `fit`.
            y: their labels.
            **kwargs: as `predict`.

        Returns:
            "accuracy", "macro_f1", "matthews", and of two classes "f1", that of class 1; of several
            labels a text "micro_f1", "macro_f1" and "samples_f1"; of a regression of one number
            "pearson" and "spearman", and "mean_squared_error" always.
        """
        labels, outputs = self.encode_labels(y), self.predict(x, **{"verbose": 0} | kwargs)
        if self.problem == "multi_label":
            names = ["micro_f1", "macro_f1", "samples_f1"]
            return evaluate(names, labels, _sigmoid(outputs), self.thresholds)
        if self.problem == "single_label":
            labels = labels.argmax(axis=1) if labels.ndim == 2 else labels
            names = ["accuracy", "macro_f1", "matthews"] + ["f1"] * (self.num_classes == 2)
            return evaluate(names, labels, outputs)
        if self.num_classes == 1:
            return evaluate(["pearson", "spearman", "mean_squared_error"], labels, outputs)
        return {"mean_squared_error": float(np.mean(np.square(labels - outputs)))}

    def tune_thresholds(self, x, y, batch_size: int | None = None, **kwargs) -> list[float]:
        """Sets `thresholds` to those of the greatest F1 of each class, on data kept from training.

        Args:
            x: texts or ids, as in `fit`.
            y: their labels.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `keras.Model.predict`.

        Returns:
            The K thresholds; `keras_bert.metrics.tune_thresholds` says how they are found.

        Raises:
            ValueError: unless the problem is "multi_label".
        """
        if self.problem != "multi_label":
            raise ValueError(f"a classifier for the problem {self.problem!r} has no thresholds")
        probabilities = _sigmoid(self.predict(x, batch_size, **kwargs))
        found = tune_thresholds(self.encode_labels(y), probabilities)
        # Some text's probability lies on each: a server may round it down.
        self.thresholds = np.maximum(found - 1e-6, 0).tolist()
        return self.thresholds

    def answer_signatures(self, run, **options):
        return classification.signatures(self, run, **options)

    def get_config(self):
        return super().get_config() | {
            "num_classes": self.num_classes,
            "labels": self.labels,
            "dropout": self.dropout,
            "problem": self.problem,
            "thresholds": self.thresholds,
        }


def _check_has_windows(x) -> None:
    if x is None or isinstance(x, dict) or hasattr(x, "element_spec"):
        raise ValueError(f"overlap= needs texts, got {type(x).__name__}")


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    """The logistic function, without overflow."""
    return np.exp(-np.logaddexp(0, -logits))
