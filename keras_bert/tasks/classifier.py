"""Classification of texts and of pairs of texts (Devlin et al. 2019, section 4.1)."""

import logging
from pathlib import Path

import keras
import numpy as np

from keras_bert.checkpoints import Checkpoint, open_checkpoint
from keras_bert.checkpoints.preset import load_h5
from keras_bert.layers.initializers import truncated_normal
from keras_bert.models.backbone import BertBackbone
from keras_bert.serving.classifier import export_classifier
from keras_bert.tasks.task import BertTask
from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor

logger = logging.getLogger("keras_bert")


@keras.saving.register_keras_serializable(package="keras_bert")
class BertClassifier(BertTask):
    """A backbone, dropout and one dense layer on the pooled output; gives logits.

    Rule: google-research/bert `run_classifier.py`, `create_model`. Logits are float32 under
    every dtype policy.

    Args:
        backbone: a `BertBackbone`.
        num_classes: number of classes K; by default that of `labels`.
        labels: K names. Without them labels are ids; `fit` on names takes the sorted ones.
        preprocessor: a `BertClassifierPreprocessor`, or None to work on ids alone.
        dropout: share of the pooled output dropped in training.
        **kwargs: as `keras.Model`.

    Call arguments:
        inputs: the backbone's.

    Returns:
        float32 logits [B, K].

    Raises:
        ValueError: if neither `num_classes` nor `labels` is given, they disagree, or the
            preprocessor does not fit the backbone.
    """

    backbone_cls = BertBackbone
    preprocessor_cls = BertClassifierPreprocessor

    head_kind = "classifier"  # of `keras_bert.checkpoints.contents.HEADS`

    def __init__(
        self,
        backbone: BertBackbone,
        num_classes: int | None = None,
        labels: list[str] | None = None,
        preprocessor: BertClassifierPreprocessor | None = None,
        dropout: float = 0.1,
        **kwargs,
    ):
        for label in labels or ():
            if not isinstance(label, str):
                kind = type(label).__name__
                raise TypeError(f"labels hold {label!r} of type {kind}; names are str")
        labels = None if labels is None else list(labels)
        num_classes = num_classes or (labels and len(labels))
        if not num_classes or num_classes < 2:
            raise ValueError(f"num_classes={num_classes}, labels={labels}: expected 2 or more")
        if labels and (len(labels) != num_classes or len(set(labels)) != num_classes):
            raise ValueError(f"num_classes={num_classes} but labels={labels}")
        check_text_side(preprocessor, backbone)

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head_dropout = keras.layers.Dropout(dropout, name="head_dropout")
        self.head = keras.layers.Dense(
            num_classes,
            kernel_initializer=truncated_normal(backbone.initializer_range),
            dtype="float32",
            name="head",
        )

        # === Functional model ===
        inputs = backbone.input
        pooled = backbone(inputs)["pooled_output"]  # [B, H]
        logits = self.head(self.head_dropout(pooled))  # [B, K]
        super().__init__(inputs=inputs, outputs=logits, **kwargs)

        # === Configuration ===
        self.num_classes = num_classes
        self.labels = labels
        self.dropout = dropout

    @classmethod
    def from_preset(
        cls,
        preset: str | Path,
        num_classes: int | None = None,
        labels: list[str] | None = None,
        sequence_length: int | None = None,
        padding: str | None = None,
        dropout: float | None = None,
        load_weights: bool = True,
        skip_mismatch: bool = False,
        **kwargs,
    ) -> "BertClassifier":
        """Makes a classifier from a checkpoint.

        A classifier's head comes with it where it fits. What was loaded and what is new stands
        in the classifier's `loading_report`, and new weights are logged as a warning.

        Args:
            preset: a folder saved by `save_to_preset`, or the name of a preset in the package; a
                Hugging Face directory or hf:// address; a KerasHub BERT preset's name, address
                or folder; or google-research/bert's files, by folder, prefix or .index file.
            num_classes: number of classes; by default the checkpoint's.
            labels: their names; by default the checkpoint's.
            sequence_length: the most tokens in a row, the rest of a text is cut off; by default
                the checkpoint's, or all positions that the model has.
            padding: "bucket" (default) or "full", see `BertClassifierPreprocessor`.
            dropout: of the head; 0.1 by default.
            load_weights: False for new weights in the same shape.
            skip_mismatch: whether to make a new head if the checkpoint's has other classes.
            **kwargs: `BertBackbone` arguments, such as `dtype` or `hidden_dropout`.

        Raises:
            FileNotFoundError: if there is nothing at `preset`, or a file is missing.
            ValueError: if a file is damaged, weights do not fit, the number of classes is
                unknown or not the checkpoint's, or `sequence_length` exceeds the positions.
        """
        checkpoint = open_checkpoint(preset, load_weights)
        saved = checkpoint.settings("task.json", cls.__name__) or _saved_classifier(checkpoint)
        saved_labels, saved_classes = saved.get("labels"), saved.get("num_classes")
        num_classes = num_classes or (labels and len(labels)) or saved_classes
        if num_classes is None:
            raise ValueError(
                f"{preset} has no classifier that can be read, so the number of classes is not "
                "known: pass num_classes= or labels="
            )
        generic = [f"LABEL_{i}" for i in range(saved_classes or 0)]
        renamed = labels and saved_labels not in (None, generic) and list(labels) != saved_labels
        fits = saved_classes == num_classes and not renamed
        if saved_classes and not fits and not skip_mismatch:
            raise ValueError(
                f"{preset} is a classifier of {saved_classes} classes ({saved_labels}), not of "
                f"{num_classes} ({labels}): pass skip_mismatch=True for a new head"
            )
        text = checkpoint.settings("preprocessor.json", cls.preprocessor_cls.__name__)
        backbone = checkpoint.backbone(load_weights, **kwargs)
        preprocessor = None
        if checkpoint.has_text_side():
            preprocessor = cls.preprocessor_cls(
                checkpoint.tokenizer(),
                sequence_length or text.get("sequence_length") or backbone.max_sequence_length,
                padding or text.get("padding", "bucket"),
            )
        if dropout is None:
            dropout = 0.1 if saved.get("dropout") is None else saved["dropout"]
        if labels is None and fits and saved_labels != generic:
            labels = saved_labels
        model = cls(backbone, num_classes, labels, preprocessor, dropout)
        report = checkpoint.report
        paths = [weight.path for weight in model.head.weights]
        if fits and load_weights and checkpoint.contents is None:
            load_h5(model.load_task_weights, checkpoint.source.path("task.weights.h5"))
            report.loaded += paths
        elif fits and load_weights and "head" in checkpoint.heads():
            checkpoint.fill_head(model, "head")
        else:
            report.new += paths
            if saved_classes and load_weights and not fits:
                report.skipped += ["head/kernel", "head/bias"]
        if load_weights and report.new:
            logger.warning("%s", report)
        model.loading_report = report
        return model

    def default_loss(self):
        # On TensorFlow the step divides by the weight sum anyway; elsewhere Keras has to be told.
        return keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="mean_with_sample_weight"
        )

    def default_metrics(self) -> list:
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def encode_labels(self, y) -> np.ndarray:
        """Checks labels and turns names into ids.

        Args:
            y: ids, or names. The first names a classifier without `labels` sees become its
                labels, sorted.

        Returns:
            int32 ids [N].

        Raises:
            ValueError: if a label is unknown; the error names its row.
        """
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1:
            raise ValueError(f"labels have shape {y.shape}; expected one a row, [N]")
        if y.dtype.kind == "O" and all(isinstance(v, int) for v in y.tolist()):
            y = y.astype("int64")
        if y.dtype.kind in "USO":
            names = [v.decode() if isinstance(v, bytes) else v for v in y.tolist()]
            for row, name in enumerate(names):
                if not isinstance(name, str):
                    kind = type(name).__name__
                    raise ValueError(f"label {name!r} in row {row} is a {kind}; expected a str")
            if self.labels is None:
                found = sorted(set(names))
                if len(found) != self.num_classes:
                    raise ValueError(
                        f"labels hold {len(found)} names ({', '.join(found[:20])}); expected "
                        f"num_classes={self.num_classes}. Pass labels=[...] to say which there are"
                    )
                self.labels = found
            ids = {name: i for i, name in enumerate(self.labels)}
            y = np.array([ids.get(name, -1) for name in names])
            shown, expected = names, ", ".join(self.labels)
        else:
            shown, expected = y.tolist(), f"ids 0 to {self.num_classes - 1}"
        wrong = (y < 0) | (y >= self.num_classes) | (y != y.astype("int32"))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"label {shown[row]!r} in row {row} is unknown; expected {expected}")
        return y.astype("int32")

    def encode_class_weight(self, class_weight: dict) -> dict[int, float]:
        """Turns weights by label name or id into weights by id; 1 where there is none.

        Raises:
            ValueError: if a label is unknown or named twice.
        """
        ids = self.encode_labels(list(class_weight)).tolist()
        if len(set(ids)) < len(ids):
            raise ValueError(f"class_weight={class_weight} names a class twice")
        weights = dict.fromkeys(range(self.num_classes), 1.0)
        return weights | dict(zip(ids, class_weight.values(), strict=True))

    def encode_labels_in_graph(self, y):
        """Turns a batch of label names [B] into ids inside `tf.data`; ids stay as they are.

        Raises:
            ValueError: if the classifier has no names.
            tf.errors.InvalidArgumentError: when the data runs, if a label is unknown.
        """
        import tensorflow as tf

        if y is None or y.dtype != tf.string:
            return y
        if self.labels is None:
            raise ValueError("the dataset's labels are names: give the classifier labels=[...]")
        matches = tf.reshape(y, [-1, 1]) == tf.constant(self.labels)[None, :]  # [B, K]
        known = tf.reduce_all(tf.reduce_any(matches, axis=1))
        message = ["unknown label; expected", *self.labels, "got", y]
        with tf.control_dependencies([tf.Assert(known, message)]):
            return tf.argmax(tf.cast(matches, "int32"), axis=1, output_type=tf.int32)

    def classify(self, texts, batch_size: int | None = None, **kwargs):
        """Gives each text's label and its probability.

        Args:
            texts: a list of N texts, a tuple (firsts, seconds), one string, or ids as in `fit`.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `keras.Model.predict`.

        Returns:
            (labels, probabilities): a list of N names, or ids where the classifier has no names,
            and a float32 array [N]; for one string a single label and a float.
        """
        if isinstance(texts, str | bytes):
            labels, probabilities = self.classify([texts], batch_size, **kwargs)
            return labels[0], float(probabilities[0])
        logits = self.predict(texts, batch_size, **kwargs)
        exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
        ids = logits.argmax(axis=1)
        probabilities = (exponents / exponents.sum(axis=1, keepdims=True)).max(axis=1)
        labels = [self.labels[i] for i in ids] if self.labels else ids.tolist()
        return labels, probabilities

    def export(self, path: str | Path, text: bool = True) -> list[str]:
        """Writes a SavedModel for TensorFlow Serving; see `keras_bert.serving.classifier`.

        Args:
            path: the folder to make, or the SavedModel to replace.
            text: whether to add the signatures that take strings. Without them the model needs
                no ops but TensorFlow's own.

        Returns:
            Names of the TensorFlow Text ops that the server must have.
        """
        return export_classifier(self, path, text)

    def get_config(self):
        return super().get_config() | {
            "num_classes": self.num_classes,
            "labels": self.labels,
            "dropout": self.dropout,
        }


def check_text_side(preprocessor, backbone: BertBackbone) -> None:
    """Checks that what the preprocessor gives fits the backbone's tables.

    Raises:
        ValueError: if its rows or its vocabulary are larger.
    """
    if preprocessor is None:
        return
    if preprocessor.sequence_length > backbone.max_sequence_length:
        raise ValueError(
            f"sequence_length={preprocessor.sequence_length} exceeds the backbone's "
            f"{backbone.max_sequence_length} positions"
        )
    # A vocabulary that a saved model brings is read only after construction.
    if not preprocessor.tokenizer.has_vocabulary:
        return
    size = preprocessor.tokenizer.vocabulary_size()
    if size > backbone.vocabulary_size:
        raise ValueError(
            f"the vocabulary has {size} tokens, but the backbone's table has only "
            f"{backbone.vocabulary_size} rows"
        )


def _saved_classifier(checkpoint: Checkpoint) -> dict:
    """What another form says of its classifier: num_classes, labels, dropout; empty without one.

    Raises:
        ValueError: if it gives several labels or a number to a text.
    """
    contents = checkpoint.contents
    if contents is None or contents.head != "classifier":
        return {}
    if contents.problem != "single_label":
        raise ValueError(
            f"{contents.source} is a classifier for the problem {contents.problem!r}, which is "
            "not supported: expected 'single_label'"
        )
    kernel = contents.tensors.get("head/kernel")
    num_classes = len(contents.labels or ()) or (None if kernel is None else kernel.shape[1])
    return {
        "num_classes": num_classes,
        "labels": contents.labels,
        "dropout": contents.head_dropout,
    }
