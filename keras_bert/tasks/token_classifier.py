"""A label for each word: names, parts of speech, word segmentation (Devlin et al. 2019, 5.3)."""

from collections.abc import Sequence

import keras
import numpy as np

from keras_bert.data.ragged import is_ragged
from keras_bert.data.tagged import TaggedSentences, annotated_texts
from keras_bert.layers.crf import CRF, CRFLoss
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.heads import dense_head
from keras_bert.metrics import tagging_scores
from keras_bert.models.backbone import BertBackbone
from keras_bert.serving import tagging
from keras_bert.tasks.batch_sources import weight_table
from keras_bert.tasks.heads import choose_classes, saved_task
from keras_bert.tasks.row_task import RowTask
from keras_bert.tasks.sentences import (
    check_tags,
    ids_of_tags,
    names_of_tags,
    token_weights,
    token_weights_in_graph,
)
from keras_bert.tasks.tagging import (
    best_ids,
    entities_of,
    labelled_rows,
    tags_of_texts,
    word_scores,
    words_of_texts,
)
from keras_bert.tasks.targets import check_classes, check_names, class_ids, weights_by_id
from keras_bert.text.entities import TaggedEntity, marks_entity, tag_places
from keras_bert.text.token_classifier_preprocessor import IGNORED, BertTokenClassifierPreprocessor


@keras.saving.register_keras_serializable(package="keras_bert")
class BertTokenClassifier(RowTask):
    """A backbone, dropout and one dense layer on every token's output; gives logits.

    A word's label is that of its first piece. The loss is the mean over all labelled words of a
    batch. Sentences that are too long are cut into windows, see `BertTokenClassifierPreprocessor`;
    every word counts once in the loss, and has one prediction.

    With `crf` the loss is that of a linear chain over the words (`keras_bert.layers.crf`), and
    decoding looks for the best path. A window is then trained as a sentence of its own, of the
    words that it answers for; the search is over whole sentences.

    Args:
        backbone: a `BertBackbone`.
        num_classes: number of labels K; by default that of `labels`.
        labels: K names, such as ["O", "B-PER", "I-PER"]. Without them labels are ids; `fit` on
            names takes "O" and the sorted others.
        preprocessor: a `BertTokenClassifierPreprocessor`, or None to work on ids alone.
        dropout: share of the output dropped in training.
        crf: whether labels make a chain.
        **kwargs: as `keras.Model`.

    Call arguments:
        inputs: the backbone's.

    Returns:
        float32 logits [B, T, K]; with `crf` the chain's emissions.

    Raises:
        ValueError: if neither `num_classes` nor `labels` is given, they disagree, or the
            preprocessor does not fit the backbone.

    Example:

    >>> tagger = BertTokenClassifier.from_preset(source, labels=["O", "B-PER", "I-PER"])
    >>> tagger.fit([["Ada", "met", "Grace"]], [["B-PER", "O", "B-PER"]])
    >>> tagger.tag("Ada met Grace.")
    [TaggedEntity(text='Ada', label='PER', start=0, end=3, score=0.99...), ...]
    """

    backbone_cls = BertBackbone
    preprocessor_cls = BertTokenClassifierPreprocessor

    head_kind = "token_classifier"  # of `keras_bert.checkpoints.contents.HEADS`
    labels_by_token = True

    def __init__(
        self,
        backbone: BertBackbone,
        num_classes: int | None = None,
        labels: list[str] | None = None,
        preprocessor: BertTokenClassifierPreprocessor | None = None,
        dropout: float = 0.1,
        crf: bool = False,
        **kwargs,
    ):
        num_classes, labels = check_classes(num_classes, labels, kinds=(str,))

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head_dropout = Dropout(dropout, name="head_dropout")
        self.head = dense_head(num_classes, backbone.initializer_range)
        self.chain = None
        if crf:
            spread = backbone.initializer_range
            self.chain = CRF(num_classes, spread, dtype="float32", name="crf")

        # === Functional model ===
        inputs = backbone.input
        encoded = backbone(inputs)["sequence_output"]  # [B, T, H]
        logits = self.head(self.head_dropout(encoded))  # [B, T, K]
        if crf:
            logits = self.chain(logits)
        # Known before the model is compiled, which construction ends with.
        self.num_classes = num_classes
        self.crf = crf
        super().__init__(inputs=inputs, outputs=logits, **kwargs)

        # === Configuration ===
        self.labels = labels
        self.dropout = dropout

    @classmethod
    def complete_settings(cls, own, network, checkpoint, skip_mismatch):
        saved = saved_task(checkpoint, cls)
        crf = own.setdefault("crf", saved.get("crf", False))
        # A head of another library has no chain, and gets a new one.
        same = checkpoint.contents is not None or saved.get("crf", crf) == crf
        if not same and not skip_mismatch:
            raise ValueError(
                f"{checkpoint.source.name} has a head {'without' if crf else 'with'} a CRF, and "
                f"crf={crf}: pass skip_mismatch=True for a new one"
            )
        fits = choose_classes(own, checkpoint, saved, skip_mismatch) and same
        if "dropout" in saved:
            own.setdefault("dropout", saved["dropout"])
        return fits or (None if saved else False)

    # === Training ===

    def default_loss(self):
        reduction = "mean_with_sample_weight"
        if self.crf:
            return CRFLoss(self.chain, reduction)
        return keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=IGNORED, reduction=reduction
        )

    def default_metrics(self) -> list:
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def encode_labels(self, y):
        """Checks labels and turns names into ids.

        Args:
            y: for each of N sentences a list of names or ids, one a word, -1 for a word without a
                label; or ids by token, int [N, T], -1 at positions without a label. The first
                names that a model without `labels` sees become its labels.

        Returns:
            A list of N int32 arrays, or int32 [N, T].

        Raises:
            ValueError: if a label is unknown; the error names sentence and word.
        """
        return self._encode(y)

    def _encode(self, y, lines: Sequence[int] | None = None):
        labels = self.labels
        if labels is None and getattr(getattr(y, "dtype", None), "kind", "O") not in "iu":
            labels = check_names(names_of_tags(y), self.num_classes)
        ids = ids_of_tags(y, self.num_classes, labels, lines)
        self.labels = labels
        return ids

    def encode_class_weight(self, class_weight: dict) -> dict[int, float]:
        """Turns weights by label name or id into weights by id; 1 where there is none.

        Raises:
            ValueError: if a label is unknown, or labels make a chain, whose loss is the sentence's.
        """
        if self.crf:
            raise ValueError("class_weight has no meaning with crf=True: its loss is a sentence's")
        ids = class_ids(list(class_weight), self.num_classes, self.labels)
        return weights_by_id(class_weight, ids, self.num_classes)

    def encode_labels_in_graph(self, y):
        """Lets ids through; names of tags can't come in a dataset.

        Raises:
            ValueError: if `y` are names.
        """
        import tensorflow as tf

        if y is not None and y.dtype == tf.string:
            raise ValueError(
                "a dataset for a token classifier gives ids by token, int [B, T] with -1 at "
                "positions without a label; lists of tag names go to fit as they are"
            )
        return y

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
        """Trains the model.

        Args:
            x: N sentences, lists of words, or plain texts; or, which bring their labels,
                `keras_bert.data.TaggedSentences`, `keras_bert.data.AnnotatedTexts` or a list of
                objects with "text" and "entities", see `keras_bert.data.read_entities`; or a
                dict of ids or a dataset of them, as `BertTask.fit`.
            y: for each sentence a list of labels, one a word, as names or ids; see
                `encode_labels`. Words of a plain text are those of `words`. Or for each text a
                list of entities, (first character, character after the last, type).
            batch_size: rows of a batch, 32 by default. Not with a dataset.
            epochs: passes over the data; 1 by default.
            sample_weight: N weights of the sentences, or for each sentence a list of weights, one a
                word; of ids, [N] or [N, T].
            validation_data: what x and y take.
            **kwargs: as `BertTask.fit`.

        Returns:
            The Keras `History`: loss and accuracy, over labelled words. With `crf` the accuracy
            is that of the emissions alone.

        Raises:
            TypeError: if a sentence is neither a list of words nor a text.
            ValueError: if tags do not match words, a tag is unknown, or an entity overlaps another
                or cuts a word; the error names the sentence, and its line where the data comes
                from a reader. And as `BertTask.fit`.
        """
        x, y = self._with_tags(x, y)
        if isinstance(validation_data, TaggedSentences) or annotated_texts(validation_data):
            validation_data = self._with_tags(validation_data, None)
        return super().fit(x, y, batch_size, epochs, sample_weight, validation_data, **kwargs)

    def evaluate(self, x=None, y=None, batch_size=None, sample_weight=None, **kwargs):
        """Gives loss and accuracy on what `fit` takes."""
        x, y = self._with_tags(x, y)
        return super().evaluate(x, y, batch_size, sample_weight, **kwargs)

    def _with_tags(self, x, y):
        """Takes a reader's sentences apart, while it is known which lines they come from.

        Character spans become the tags of words.
        """
        if not isinstance(x, TaggedSentences):
            given = annotated_texts(x, y)
            return (x, y) if given is None else (given.texts, tags_of_texts(self, given))
        if y is not None:
            raise ValueError("TaggedSentences bring their own tags: got y beside them")
        check_tags(x.words, x.tags, x.lines)
        return x.words, self._encode(x.tags, x.lines)

    def ragged_rows(self, x, y=None, sample_weight=None) -> tuple[dict, object, object]:
        """Turns sentences into rows; see `RowTask.ragged_rows`.

        Args:
            x: N sentences, lists of words or texts; or `TaggedSentences`.
            y: their labels, as `encode_labels` takes them, or None.
            sample_weight: N weights of the sentences, or None.

        Returns:
            (ids, labels or None, weights or None), `tf.RaggedTensor` [R, tokens] all of them.
            Labels are -1, and weights 0, where a position has no label.
        """
        self.check_has_preprocessor()
        x, y = self._with_tags(x, y)
        return labelled_rows(self, x, y, sample_weight)

    def _source(
        self,
        x,
        y=None,
        sample_weight=None,
        batch_size=None,
        shuffle=False,
        seed=0,
        class_weight=None,
        labelled=True,
    ):
        if not hasattr(x, "element_spec"):
            if not isinstance(x, dict):
                x, y, sample_weight = self.ragged_rows(x, y, sample_weight)
            elif y is not None:
                y = self.encode_labels(np.asarray(y))
                sample_weight = token_weights(y, sample_weight)
            if class_weight is not None:
                ids = y.values.numpy() if is_ragged(y) else y
                factors = weight_table(self, class_weight, ids)[np.maximum(ids, 0)]
                sample_weight = sample_weight * (
                    y.with_values(factors) if is_ragged(y) else factors
                )
                class_weight = None
        elif class_weight is not None:
            raise ValueError("class_weight needs rows in memory: a dataset can bring weights")
        return super()._source(
            x, y, sample_weight, batch_size, shuffle, seed, class_weight, labelled
        )

    def _dataset_preparer(self, dataset, labelled):
        import tensorflow as tf

        if keras.tree.flatten(dataset.element_spec)[0].dtype == tf.string:
            raise ValueError(
                "a token classifier takes datasets of ids; texts and words go to fit in lists"
            )
        prepare = super()._dataset_preparer(dataset, labelled)

        def with_token_weights(*batch):
            x, y, weights = keras.utils.unpack_x_y_sample_weight(prepare(*batch))
            if y is None:
                return keras.utils.pack_x_y_sample_weight(x)
            return x, y, token_weights_in_graph(y, weights)

        return with_token_weights

    # === Answers ===

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        """The words that plain texts are cut into, as they stand there.

        Args:
            texts: a list of N texts.

        Returns:
            N lists.
        """
        return words_of_texts(self, texts)

    def predict(self, x, batch_size: int | None = None, **kwargs):
        """Gives the logits.

        Args:
            x: N sentences, lists of words or texts; or ids, as `BertTask.predict`.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `keras.Model.predict`.

        Returns:
            For sentences a list of N float32 arrays [words, K]; for ids float32 [N, T, K].
        """
        if isinstance(x, dict):
            return self.predict_ids(x, batch_size, **kwargs)
        if hasattr(x, "element_spec"):
            return super().predict(x, batch_size, **kwargs)
        parts = [scores for _, _, scores in word_scores(self, x, batch_size, kwargs)]
        return [row.numpy() for scores in parts for row in scores]

    def predict_tags(
        self, x, batch_size: int | None = None, **kwargs
    ) -> list[list[str]] | list[list[int]]:
        """Gives a label for each word.

        Args:
            x: N sentences, lists of words; or N texts, cut into `words`.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `keras.Model.predict`.

        Returns:
            N lists of names, or of ids where the model has no names; as many as there are words.
        """
        found = best_ids(self, x, batch_size, kwargs)
        if self.labels is None:
            return found
        return [[self.labels[tag] for tag in tags] for tags in found]

    def tag(
        self, x, batch_size: int | None = None, **kwargs
    ) -> list[TaggedEntity] | list[list[TaggedEntity]]:
        """Gives the entities of sentences.

        Args:
            x: a text, N texts, or N lists of words.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `keras.Model.predict`.

        Returns:
            For each sentence a list of entities in their order, each with `text`, `label`, `start`,
            `end` and `score`; for one text a single list. Offsets count characters of a text, so
            that text[start:end] is the entity's; of lists of words, they count words.

        Raises:
            ValueError: if the labels mark no entities.
        """
        if isinstance(x, str | bytes):
            return self.tag([x], batch_size, **kwargs)[0]
        if self.labels is None:
            raise ValueError("the model has no labels, so that entities have no names")
        tag_places(self.labels)  # before all the work
        return entities_of(self, x, batch_size, kwargs)

    def scores(self, x, y=None, **kwargs) -> dict[str, float]:
        """Scores the tags of words, by `keras_bert.metrics.tagging_scores`.

        `fit` shows them for its validation data, where that are sentences and the labels mark
        entities.

        Args:
            x: sentences, as in `fit`.
            y: their labels, or spans.
            **kwargs: as `predict_tags`.

        Returns:
            "accuracy" over words, and if the labels mark entities "precision", "recall" and "f1"
            of these.
        """
        x, y = self._with_tags(x, y)
        right, found = self.encode_labels(y), best_ids(self, x, None, {"verbose": 0} | kwargs)
        check_tags(found, right)
        names = self.labels or [str(i) for i in range(self.num_classes)]
        kept = [
            [(names[a], names[b]) for a, b in zip(*row, strict=True) if a != IGNORED]
            for row in zip(right, found, strict=True)
        ]
        columns = ([[pair[i] for pair in row] for row in kept] for i in range(2))
        return tagging_scores(*columns, entities=self.scores_by_default)

    @property
    def scores_by_default(self) -> bool:
        return self.labels is not None and all(map(marks_entity, self.labels))

    def answer_signatures(self, run, **options):
        return tagging.signatures(self, run, **options)

    def get_config(self):
        return super().get_config() | {
            "num_classes": self.num_classes,
            "labels": self.labels,
            "dropout": self.dropout,
            "crf": self.crf,
        }
