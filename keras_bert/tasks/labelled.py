"""Base of tasks with named classes: classifiers of texts, of relations and of words."""

import numpy as np
from scipy.special import softmax

from keras_bert.data.table_rows import CLASS, NUMERIC
from keras_bert.metrics import best_temperature
from keras_bert.serving.signatures import label_tensor
from keras_bert.tasks.calibrated import Calibrated
from keras_bert.tasks.from_checkpoint import choose_classes, complete, saved_task
from keras_bert.tasks.targets import (
    check_names,
    class_ids,
    class_labels,
    classes_in_graph,
    found_names,
    has_numbers_as_names,
    ids_in_graph,
    likeliest_labels,
    weights_by_id,
)

# Settings that were chosen on held-out data for one head.
HELD_OUT = ("thresholds", "temperature")


class Labelled(Calibrated):
    """Base of tasks whose head outputs logits of `num_classes` classes, named by `labels`."""

    @classmethod
    def complete_settings(cls, own, network, checkpoint, skip_mismatch):
        saved = saved_task(checkpoint, cls)
        same = cls.same_kind_of_head(own, saved, checkpoint, skip_mismatch)
        fits = choose_classes(own, checkpoint, saved if same else {}, skip_mismatch)
        if not fits:
            saved = {name: value for name, value in saved.items() if name not in HELD_OUT}
        complete(own, cls, saved)
        return fits or (None if saved else False)

    @classmethod
    def same_kind_of_head(cls, own: dict, saved: dict, checkpoint, skip_mismatch: bool) -> bool:
        """Whether a checkpoint's head is of the requested kind, as `complete_settings` asks.

        `saved` are the settings in the checkpoint; those in `own` for the kind of head are
        completed.

        Raises:
            ValueError: if it is of another kind, and `skip_mismatch` is False.
        """
        return True

    @property
    def names(self) -> list:
        """The K labels, or ids if the task has none."""
        return self.labels or list(range(self.num_classes))

    @property
    def label_kind(self) -> str:
        return NUMERIC if has_numbers_as_names(self.labels) else CLASS

    def names_in(self, columns) -> list[str] | None:
        """Lists names of labels in rows of a table, as `examples_of_table`; None for ids."""
        found = set()
        for label in columns["label"]:
            labels = label if isinstance(label, list) else [label]
            if not all(isinstance(name, str) for name in labels):
                return None
            found.update(labels)
        return list(found)

    def adopt_names(self, names: list[str]) -> None:
        """Adopts names found in a table, sorted, as `encode_labels` does with those in memory."""
        self.labels = check_names(names, self.num_classes)

    def encode_labels(self, y) -> np.ndarray:
        """Checks labels and turns names into ids.

        Args:
            y: N ids or names, or probabilities of the classes [N, K], rows that sum to 1. A task
                without `labels` adopts the first names that it sees, sorted.

        Returns:
            int32 ids [N]; for probabilities float32 [N, K].

        Raises:
            ValueError: if a label is unknown; the error names its row.
        """
        if self.labels is None:
            self.labels = check_names(found_names(y), self.num_classes)
        return class_labels(y, self.num_classes, self.labels)

    def encode_labels_in_graph(self, y):
        """Turns a batch of labels [B] of a dataset into ids, as `BertTask.encode_labels_in_graph`.

        Raises:
            ValueError: if they are strings, and the task has no labels.
            tf.errors.InvalidArgumentError: when the data runs, if a label is unknown, or
                probabilities [B, K] do not sum to 1.
        """
        if y is None or y.dtype.name != "string":
            return y if y is None else classes_in_graph(y, self.num_classes, self.labels)
        if self.labels is None:
            raise ValueError("the dataset's labels are names: give the classifier labels=[...]")
        return ids_in_graph(y, self.labels)

    def encode_class_weight(self, class_weight: dict) -> dict[int, float]:
        """Turns weights by label into those by id, as `BertTask.encode_class_weight`; 1 by default.

        Raises:
            ValueError: if a label is unknown or named twice, or a weight is negative or infinite.
        """
        ids = class_ids(list(class_weight), self.num_classes, self.labels)
        return weights_by_id(class_weight, ids, self.num_classes)

    def best_temperature(self, x, y, batch_size, **kwargs):
        return best_temperature(*self.logits_and_labels(x, y, batch_size, **kwargs))

    def logits_and_labels(self, x, y, batch_size: int | None = None, **kwargs) -> tuple:
        """Computes logits [M, K] and labels of M examples or words, as `calibrate` takes them."""
        x, labels = self._scored(x, y)
        return self.predict(x, batch_size, **{"verbose": 0} | kwargs), labels

    def answers(self, outputs, rows, *columns, **options):
        """`label` [B], `probability` of it, float32 [B], and `logits`, float32 [B, K]."""
        import tensorflow as tf

        names = label_tensor(self.labels, self.num_classes)
        return {
            "label": tf.gather(names, tf.argmax(outputs, axis=-1)),
            "probability": tf.reduce_max(tf.nn.softmax(outputs / self.temperature), axis=-1),
            "logits": outputs,
        }

    def _likeliest(self, answers: dict, top_k: int | str | None):
        """(labels, probabilities) of answers, or with `top_k` the most probable labels of each."""
        logits = answers["logits"]
        if top_k is None:
            return [self.names[i] for i in logits.argmax(axis=1)], answers["probability"]
        probabilities = softmax(logits / self.temperature, axis=1)
        return likeliest_labels(probabilities, self.names, top_k)

    def _ids(self, labels: np.ndarray) -> np.ndarray:
        """Ids [N] of labels as the loss reads them; for probabilities the most probable class."""
        return labels.argmax(axis=1) if labels.ndim == 2 else labels


def one_of(found):
    """The answer to a single example, from (labels, probabilities) or from a list."""
    return (found[0][0], float(found[1][0])) if isinstance(found, tuple) else found[0]
