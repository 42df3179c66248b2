"""Relations between two entities of a sentence (Baldini Soares et al. 2019, arXiv:1906.03158)."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_bert.arguments import check_batch_size
from keras_bert.data.ragged import is_ragged
from keras_bert.data.relations import RelationExamples
from keras_bert.data.texts import check_texts
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.heads import dense_head, states_at
from keras_bert.metrics import evaluate, relation_scores
from keras_bert.metrics.relations import is_relation
from keras_bert.models.backbone import BertBackbone
from keras_bert.serving import relations
from keras_bert.tasks.chunks import encode_in_chunks
from keras_bert.tasks.heads import choose_classes, saved_task
from keras_bert.tasks.row_task import RowTask
from keras_bert.tasks.targets import (
    check_classes,
    check_names,
    class_ids,
    class_labels,
    classes_in_graph,
    found_names,
    likeliest_labels,
    weights_by_id,
)
from keras_bert.text.multiple_choice_preprocessor import best_choices
from keras_bert.text.relation_preprocessor import BertRelationPreprocessor


@keras.saving.register_keras_serializable(package="keras_bert")
class BertRelationClassifier(RowTask):
    """A backbone, and one dense layer on the states of the markers that open two entities.

    Rule: Baldini Soares et al. 2019, section 3, "entity markers - entity start": the hidden
    states of both opening markers, one after the other, give the relation. Logits are float32
    under every dtype policy.

    Args:
        backbone: a `BertBackbone`.
        num_classes: number of relations K; by default that of `labels`.
        labels: K names. Without them labels are ids; `fit` on names takes the sorted ones.
        preprocessor: a `BertRelationPreprocessor`, or None to work on ids alone.
        dropout: share of the two states dropped in training.
        **kwargs: as `keras.Model`.

    Call arguments:
        inputs: the backbone's, and `entity_positions`, int32 [B, 2]: the tokens that open the
            first and the second entity.

    Returns:
        float32 logits [B, K].

    Raises:
        ValueError: if neither `num_classes` nor `labels` is given, they disagree, or the
            preprocessor does not fit the backbone.
    """

    backbone_cls = BertBackbone
    preprocessor_cls = BertRelationPreprocessor

    head_kind = None  # no other form of checkpoint has a place for such a head
    only_in_presets = ("no other form has a place for a head of relations: it is left out",)
    outputs_by_token = False

    def __init__(
        self,
        backbone: BertBackbone,
        num_classes: int | None = None,
        labels: list[str] | None = None,
        preprocessor: BertRelationPreprocessor | None = None,
        dropout: float = 0.1,
        **kwargs,
    ):
        num_classes, labels = check_classes(num_classes, labels)

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.entity_states = EntityStates(dtype=backbone.dtype_policy, name="entity_states")
        self.head_dropout = Dropout(dropout, name="head_dropout")
        self.head = dense_head(num_classes, backbone.initializer_range)

        # === Functional model ===
        positions = keras.Input((2,), dtype="int32", name="entity_positions")
        sequence = backbone(backbone.input)["sequence_output"]  # [B, T, H]
        states = self.entity_states(sequence, positions)  # [B, 2 H]
        logits = self.head(self.head_dropout(states))  # [B, K]
        inputs = {**backbone.input, "entity_positions": positions}
        super().__init__(inputs=inputs, outputs=logits, **kwargs)

        # === Configuration ===
        self.num_classes = num_classes
        self.labels = labels
        self.dropout = dropout

    @classmethod
    def complete_settings(cls, own, network, checkpoint, skip_mismatch):
        saved = saved_task(checkpoint, cls)
        fits = choose_classes(own, checkpoint, saved, skip_mismatch)
        if "dropout" in saved:
            own.setdefault("dropout", saved["dropout"])
        return fits or (None if saved else False)

    def default_loss(self):
        return keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="mean_with_sample_weight"
        )

    def default_metrics(self) -> list:
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def fit(
        self,
        x=None,
        y=None,
        batch_size: int | None = None,
        epochs: float | None = None,
        sample_weight=None,
        validation_data=None,
        **kwargs,
    ):
        """Trains the model; see `BertTask.fit` for all arguments.

        Args:
            x: a tuple (texts, spans): N sentences, and for each the spans of two entities, pairs
                (start, end) in characters; `RelationExamples`, which bring their labels; a dict
                of int arrays with the model's inputs; or a `tf.data.Dataset` of batches (x, y).
            y: N labels, as ids or as names.
            batch_size: rows of a batch, 32 by default.
            epochs: passes over the data.
            sample_weight: N weights of the rows' losses.
            validation_data: `RelationExamples`, (x, y), (x, y, sample_weight), or a dataset.
            **kwargs: as `BertTask.fit`.

        Raises:
            TypeError: if a text is not a string.
            ValueError: if spans overlap, lie outside of their text or do not fit into a row; the
                error names the row, and the line of the file where that is known.
        """
        x, y = self._columns(x, y)
        if isinstance(validation_data, RelationExamples):
            validation_data = self._columns(validation_data)
        return super().fit(
            x, y, batch_size, epochs, sample_weight, validation_data=validation_data, **kwargs
        )

    def evaluate(self, x=None, y=None, batch_size=None, sample_weight=None, **kwargs):
        """Gives loss and metrics on labelled data; takes what `fit` takes."""
        return super().evaluate(*self._columns(x, y), batch_size, sample_weight, **kwargs)

    def predict(self, x, batch_size: int | None = None, **kwargs):
        """Gives the logits, float32 [N, K]; takes what `fit` takes, without labels."""
        x, _ = self._columns(x)
        if isinstance(x, dict) and is_ragged(x.get("token_ids")):  # of `RelationExamples`
            return self.predict_rows(x, batch_size or 32, **kwargs)
        if isinstance(x, dict) or hasattr(x, "element_spec"):
            return super().predict(x, batch_size, **kwargs)
        self.check_has_preprocessor()
        if isinstance(x, tuple) and len(x) == 2 and not len(x[0]) and not len(x[1]):
            return np.zeros((0, self.num_classes), "float32")
        return self.predict_rows(self.ragged_rows(x)[0], check_batch_size(batch_size), **kwargs)

    def relate(
        self,
        texts,
        spans=None,
        batch_size: int | None = None,
        top_k: int | str | None = None,
        **kwargs,
    ):
        """Gives the relation of the two entities of each sentence, and its probability.

        Args:
            texts: N sentences, one sentence, or `RelationExamples` alone.
            spans: for each sentence the spans of its two entities, pairs (start, end) in
                characters.
            batch_size: rows of a batch, 32 by default.
            top_k: as `BertClassifier.classify`.
            **kwargs: as `keras.Model.predict`.

        Returns:
            (labels, probabilities): a list of N names, or ids where the classifier has no names,
            and float32 [N]; for one sentence a label and a float. With `top_k` a list of N dicts
            from label to probability, or one dict.
        """
        if isinstance(texts, str | bytes):
            found = self.relate([texts], [spans], batch_size, top_k, **kwargs)
            return found[0] if top_k is not None else (found[0][0], float(found[1][0]))
        x = texts if isinstance(texts, RelationExamples) else (texts, spans)
        logits = self.predict(x, batch_size, **kwargs)
        names = self.labels or list(range(self.num_classes))
        found = {name: value.numpy() for name, value in best_choices(logits).items()}
        if top_k is not None:
            return likeliest_labels(found["probabilities"], names, top_k)
        return [names[i] for i in found["choice"]], found["probabilities"].max(axis=1)

    def scores(self, x, y=None, **kwargs) -> dict[str, float]:
        """Scores relations.

        Args:
            x: as in `fit`.
            y: their labels.
            **kwargs: as `predict`.

        Returns:
            "accuracy" and "macro_f1", from 0 to 1; where all labels are directed relations or
            "Other" also "f1", SemEval-2010's official figure in percent.
        """
        x, y = self._columns(x, y)
        right, logits = self.encode_labels(y), self.predict(x, **{"verbose": 0} | kwargs)
        right = right.argmax(axis=1) if right.ndim == 2 else right
        found = evaluate(["accuracy", "macro_f1"], right, logits)
        if self.labels and all(map(is_relation, self.labels)):
            columns = ([self.labels[i] for i in ids] for ids in (right, logits.argmax(axis=1)))
            found["f1"] = relation_scores(*columns).f1
        return found

    def ragged_rows(self, x, y=None, sample_weight=None):
        """Turns sentences into rows; see `RowTask.ragged_rows`."""
        return self._rows(x), y, sample_weight

    def encode_labels(self, y) -> np.ndarray:
        """Checks labels as `BertClassifier` does: int32 ids [N], or float32 [N, K]."""
        if self.labels is None:
            self.labels = check_names(found_names(y), self.num_classes)
        return class_labels(y, self.num_classes, self.labels)

    def encode_class_weight(self, class_weight: dict) -> dict[int, float]:
        """Turns weights by label name or id into weights by id; 1 where there is none."""
        ids = class_ids(list(class_weight), self.num_classes, self.labels)
        return weights_by_id(class_weight, ids, self.num_classes)

    def encode_labels_in_graph(self, y):
        if y is not None and y.dtype.name == "string":
            raise ValueError("the dataset's labels are names; expected ids")
        return y if y is None else classes_in_graph(y, self.num_classes, self.labels)

    def _check_ids(self, x) -> None:
        super()._check_ids(x)
        places, length = x.get("entity_positions"), x["token_ids"].shape[1]
        if places is None or places.shape[1:] != (2,):
            shape = None if places is None else places.shape
            raise ValueError(f"entity_positions have shape {shape}; expected [N, 2]")
        if places.size and not 0 <= places.min() <= places.max() < length:
            raise ValueError(
                f"entity_positions run from {places.min()} to {places.max()}; expected 0 to "
                f"{length - 1}"
            )

    def _columns(self, x, y=None) -> tuple:
        """Takes `RelationExamples` apart: the checks of their spans name lines of the file."""
        if not isinstance(x, RelationExamples):
            return x, y
        self.check_has_preprocessor()
        rows = self._rows((x.texts, x.entities), x.lines)
        return rows, x.labels if y is None else y

    def _rows(self, x, lines: Sequence[int] | None = None) -> dict[str, np.ndarray]:
        if not isinstance(x, tuple) or len(x) != 2:
            raise ValueError(
                f"expected a tuple (texts, spans), got {type(x).__name__}"
                + (f" of {len(x)}" if isinstance(x, tuple) else "")
            )
        texts, spans = check_spans(*x, lines)
        if not texts:
            raise ValueError("there are no texts")

        def encode(columns, start):
            rows, fits = self.preprocessor.encode(*columns)
            wrong = np.flatnonzero(~fits.numpy())
            if len(wrong):
                raise ValueError(
                    f"the entities of {_where(start + int(wrong[0]), lines)} do not fit into "
                    f"sequence_length={self.preprocessor.sequence_length} tokens"
                )
            return rows

        return encode_in_chunks(encode, (texts, spans))

    def answer_signatures(self, run, **options):
        return relations.signatures(self, run, **options)

    def get_config(self):
        return super().get_config() | {
            "num_classes": self.num_classes,
            "labels": self.labels,
            "dropout": self.dropout,
        }


@keras.saving.register_keras_serializable(package="keras_bert")
class EntityStates(keras.layers.Layer):
    """Picks the hidden states at some positions, and joins those of a row.

    Call arguments:
        x: float [B, T, H].
        positions: int [B, P], from 0 to T - 1.

    Returns:
        float [B, P * H]; NaN at a position outside of the row.
    """

    def build(self, x_shape, positions_shape):
        self.width = positions_shape[1] * x_shape[2]

    def call(self, x, positions):
        return ops.reshape(states_at(x, positions), (-1, self.width))

    def get_config(self):
        return super().get_config()  # its own, so that Keras does not make one of the arguments

    def compute_output_spec(self, x, positions):
        return keras.KerasTensor((x.shape[0], self.width), dtype=self.compute_dtype)


def check_spans(texts, spans, lines: Sequence[int] | None = None) -> tuple[list[str], np.ndarray]:
    """Checks sentences and the spans of their two entities.

    Args:
        texts: N sentences.
        spans: N pairs of pairs (start, end), in characters.
        lines: N lines of the file that they come from, for errors.

    Returns:
        A list of N str, and the spans, int32 [N, 2, 2].

    Raises:
        TypeError: if a text is not a string.
        ValueError: if spans are not two of two whole numbers, overlap, hold no text or lie outside
            of it; the error names the row.
    """
    texts = [t.decode() if isinstance(t, bytes) else t for t in check_texts(texts)]
    if spans is None or len(spans) != len(texts):
        found = "none" if spans is None else len(spans)
        raise ValueError(f"{len(texts)} texts, but spans of {found}")
    checked = np.zeros((len(texts), 2, 2), "int32")
    for row, (text, pair) in enumerate(zip(texts, spans, strict=True)):
        where = f"spans of {_where(row, lines)}"
        values = np.asarray(pair, object)
        whole = all(isinstance(v, int | np.integer) for v in values.ravel())
        if values.shape != (2, 2) or not whole:
            raise ValueError(f"{where} are {pair!r}; expected two pairs (start, end)")
        for start, end in values:
            if not 0 <= start < end <= len(text) or not text[start:end].strip():
                raise ValueError(
                    f"{where}: ({start}, {end}) holds no text; expected characters 0 to "
                    f"{len(text)} of {text!r:.80}"
                )
        first, second = sorted(values.tolist())
        if second[0] < first[1]:
            raise ValueError(f"{where} overlap: {values.tolist()}")
        checked[row] = values
    return texts, checked


def _where(row: int, lines: Sequence[int] | None) -> str:
    return f"row {row}" if lines is None else f"row {row} (line {lines[row]})"
