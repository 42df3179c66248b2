"""Relations between two entities of a sentence (Baldini Soares et al. 2019, arXiv:1906.03158)."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_bert.data.examples import Examples, place_of, two_columns
from keras_bert.data.relations import RelationExamples
from keras_bert.data.table_rows import LIST, Cell
from keras_bert.data.texts import as_strings, check_texts, is_text
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.heads import dense_head, states_at
from keras_bert.metrics import evaluate, relation_scores
from keras_bert.metrics.semeval import is_relation
from keras_bert.models.backbone import BertBackbone
from keras_bert.serving.signatures import TEXT, Column
from keras_bert.tasks.labelled import Labelled, one_of
from keras_bert.tasks.targets import check_classes
from keras_bert.tasks.task import Rows
from keras_bert.text.relation_preprocessor import BertRelationPreprocessor


@keras.saving.register_keras_serializable(package="keras_bert")
class BertRelationClassifier(Labelled):
    """A backbone and one dense layer on the states of the opening markers of two entities.

    Reference: Baldini Soares et al. 2019, section 3, "entity markers - entity start": the hidden
    states of both opening markers are concatenated. Logits are float32 under every dtype policy.

    Args:
        backbone: a `BertBackbone`.
        num_classes: number of relations K; by default that of `labels`.
        labels: K names. Without them labels are ids; `fit` on names uses the sorted distinct names.
        preprocessor: a `BertRelationPreprocessor`, or None to work on ids alone.
        dropout: dropout rate of the two states.
        temperature: divides the logits before probabilities are computed; see `calibrate`.
        **kwargs: as `keras.Model`.

    `fit` takes a tuple (texts, spans): N sentences, and for each the spans of its two entities,
    pairs (start, end) in characters; or `RelationExamples`, which include labels.

    Call arguments:
        inputs: the backbone's, and `entity_positions`, int32 [B, 2]: positions of the opening
            markers of the first and the second entity.

    Returns:
        float32 logits [B, K].

    Raises:
        ValueError: if neither `num_classes` nor `labels` is given, they disagree, or the
            preprocessor does not fit the backbone.
    """

    preprocessor_cls = BertRelationPreprocessor

    asks = {"text": TEXT, "spans": Column("int32", (None, 2, 2))}
    example = {"text": ["The storm sank a ship."], "spans": [[[4, 9], [17, 21]]]}
    answers_read_rows = False
    column_names = ("text", "spans", "label", "weight")
    only_in_presets = ("no other form has a place for a head of relations: it is left out",)

    def __init__(
        self,
        backbone: BertBackbone,
        num_classes: int | None = None,
        labels: list[str] | None = None,
        preprocessor: BertRelationPreprocessor | None = None,
        dropout: float = 0.1,
        temperature: float = 1.0,
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
        sequence = self.encode(backbone.input)["sequence_output"]  # [B, T, H]
        states = self.entity_states(sequence, positions)  # [B, 2 H]
        logits = self.head(self.head_dropout(states))  # [B, K]
        inputs = {**backbone.input, "entity_positions": positions}
        self.num_classes, self.labels = num_classes, labels
        super().__init__(inputs=inputs, outputs=logits, **kwargs)

        # === Configuration ===
        self.dropout = dropout
        self.temperature = temperature

    def examples(self, x, y=None) -> Examples:
        if isinstance(x, Examples):
            return x
        lines = None
        if isinstance(x, RelationExamples):
            lines, y = x.lines, x.labels if y is None else y
            x = (x.texts, x.entities)
        columns = check_spans(*two_columns(x, "texts, spans"), lines)
        return Examples(columns, self._encoded(y), lines)

    def brings_labels(self, x) -> bool:
        return isinstance(x, RelationExamples)

    def table_cells(self, given, labelled):
        cells = super().table_cells(given, labelled)
        return {"text": cells.pop("text"), "spans": Cell(LIST)} | {
            name: cell for name, cell in cells.items() if name == "label"
        }

    def examples_of_table(self, columns):
        return (columns["text"], columns["spans"]), columns.get("label")

    def rows(self, text, spans) -> Rows:
        ids, fits = self.preprocessor.encode(text, spans)
        return Rows(ids, about=fits)

    def rows_of_dataset(self, *columns):
        return self.preprocessor.pack(columns)  # refuses entities that do not fit

    def check_rows(self, rows, first, lines):
        wrong = np.flatnonzero(~rows.about.numpy())
        if len(wrong):
            raise ValueError(
                f"the entities of {place_of(first + int(wrong[0]), lines)} do not fit into "
                f"sequence_length={self.preprocessor.sequence_length} tokens"
            )

    def answers(self, outputs, rows, text, spans):
        import tensorflow as tf

        starts, ends = tf.unstack(tf.reshape(spans, [-1, 2]), axis=1)
        filled = tf.reduce_all(tf.reshape(starts < ends, [-1, 2]), axis=1)
        length = self.preprocessor.sequence_length
        checks = [("input 'spans' has an empty one, in row", filled)]
        if rows.about is not None:
            checks.append((f"entities do not fit into {length} tokens, in row", rows.about))
        asserts = [
            tf.Assert(
                tf.reduce_all(right),
                [message, tf.argmin(tf.pad(tf.cast(right, tf.int32), [[0, 1]]))],
            )
            for message, right in checks
        ]
        with tf.control_dependencies(asserts):
            return super().answers(tf.identity(outputs), rows)

    def relate(
        self,
        texts,
        spans=None,
        batch_size: int | None = None,
        top_k: int | str | None = None,
        **kwargs,
    ):
        """Predicts the relation of the two entities of each sentence, and its probability.

        Args:
            texts: N sentences, one sentence, or `RelationExamples` alone.
            spans: for each sentence the spans of its two entities, pairs (start, end) in
                characters.
            batch_size: rows of a batch, 32 by default.
            top_k: as `BertClassifier.classify`.
            **kwargs: as `keras.Model.predict`, without a progress bar by default.

        Returns:
            (labels, probabilities): a list of N names, or ids if the classifier has no names, and
            float32 [N]; for a single sentence, one label and one float. With `top_k` a list of N
            dicts from label to probability, or one dict.
        """
        if is_text(texts):
            return one_of(self.relate([texts], [spans], batch_size, top_k, **kwargs))
        x = texts if isinstance(texts, RelationExamples) else (texts, spans)
        return self._likeliest(self.answers_to(x, batch_size, kwargs), top_k)

    def scores(self, x, y=None, **kwargs) -> dict[str, float]:
        """Scores relations.

        Args:
            x: as in `fit`.
            y: their labels.
            **kwargs: as `predict`.

        Returns:
            "accuracy" and "macro_f1", from 0 to 1; if all labels are directed relations or "Other"
            also "f1", the official score of SemEval-2010, in percent.
        """
        x, labels = self._scored(x, y)
        right, logits = self._ids(labels), self.predict(x, **{"verbose": 0} | kwargs)
        found = evaluate(["accuracy", "macro_f1"], right, logits)
        if self.labels and all(map(is_relation, self.labels)):
            columns = ([self.labels[i] for i in ids] for ids in (right, logits.argmax(axis=1)))
            found["f1"] = relation_scores(*columns).f1
        return found

    def check_ids(self, x) -> None:
        super().check_ids(x)
        shape = np.shape(x.get("entity_positions"))
        if len(shape) != 2 or shape[1] != 2:
            raise ValueError(f"entity_positions of shape {shape}: expected [N, 2]")


@keras.saving.register_keras_serializable(package="keras_bert")
class EntityStates(keras.layers.Layer):
    """Gathers hidden states at some positions and concatenates those of a row.

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
        return super().get_config()  # defined, so that Keras does not derive one from the arguments

    def compute_output_spec(self, x, positions):
        return keras.KerasTensor((x.shape[0], self.width), dtype=self.compute_dtype)


def check_spans(texts, spans, lines: Sequence[int] | None = None) -> tuple[list[str], np.ndarray]:
    """Checks sentences and N pairs of pairs (start, end), to a list of str and int32 [N, 2, 2].

    Raises:
        TypeError: if a text is not a string.
        ValueError: if spans are not two pairs of integers, overlap, are empty or lie outside the
            text; the error names the row, and its line if `lines` are known.
    """
    texts = as_strings(check_texts(texts))
    if spans is None or len(spans) != len(texts):
        found = "none" if spans is None else len(spans)
        raise ValueError(f"{len(texts)} texts, but spans of {found}")
    checked = np.zeros((len(texts), 2, 2), "int32")
    for row, (text, pair) in enumerate(zip(texts, spans, strict=True)):
        where = f"spans of {place_of(row, lines)}"
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
