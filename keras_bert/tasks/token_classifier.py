"""Token classification: entities, parts of speech, segmentation (Devlin et al. 2019, 5.3)."""

from collections.abc import Sequence
from functools import partial

import keras
import numpy as np

from keras_bert.data.examples import Examples, are_examples
from keras_bert.data.table_rows import LIST, Cell
from keras_bert.data.tagged import (
    AnnotatedTexts,
    TaggedSentences,
    annotated_texts,
    kinds_of,
)
from keras_bert.data.texts import is_text
from keras_bert.layers.crf import CRF, CRFLoss
from keras_bert.layers.dropout import Dropout
from keras_bert.layers.heads import dense_head
from keras_bert.metrics import tagging_scores
from keras_bert.models.backbone import BertBackbone
from keras_bert.serving.signatures import Column
from keras_bert.tasks.labelled import Labelled
from keras_bert.tasks.sentences import (
    check_sentences,
    check_tags,
    ids_of_tags,
    names_of_tags,
    to_tensor,
    token_weights,
    token_weights_in_graph,
)
from keras_bert.tasks.targets import check_classes, check_names
from keras_bert.tasks.task import CHUNK, Answer, Rows
from keras_bert.text.entities import (
    TaggedEntity,
    character_offsets,
    find_entities,
    join_words,
    marks_entity,
    tag_places,
    tags_of_spans,
)
from keras_bert.text.substrings import substrings
from keras_bert.text.tag_paths import best_tags, scores_of_words
from keras_bert.text.token_classifier_preprocessor import (
    IGNORED,
    BertTokenClassifierPreprocessor,
    labels_of_rows,
)


@keras.saving.register_keras_serializable(package="keras_bert")
class BertTokenClassifier(Labelled):
    """A backbone, dropout and one dense layer on every token's output; gives logits.

    A word's label is that of its first piece. The loss is the mean over all labelled words of a
    batch. Sentences that are too long are split into windows, see
    `BertTokenClassifierPreprocessor`; every word counts once in the loss and has one prediction.

    With `crf` the loss is that of a linear-chain CRF over the words (`keras_bert.layers.crf`), and
    decoding finds the best path. Each window is then trained as a separate sentence of the words it
    predicts; decoding runs over whole sentences.

    Args:
        backbone: a `BertBackbone`.
        num_classes: number of labels K; by default that of `labels`.
        labels: K names, such as ["O", "B-PER", "I-PER"]. Without them labels are ids; `fit` on
            names uses "O" and the sorted others.
        preprocessor: a `BertTokenClassifierPreprocessor`, or None to work on ids alone.
        dropout: dropout rate of the output.
        crf: whether to add a linear-chain CRF.
        temperature: divides the logits before probabilities are computed; see `calibrate`. 1 with
            `crf`.
        **kwargs: as `keras.Model`.

    `fit` takes N sentences, lists of words or plain texts, and for each a list of labels, one per
    word, as names or ids; plain texts are split by `words`. Or texts with a list of entities each,
    (first character, character after the last, type). `TaggedSentences`, `AnnotatedTexts` and a
    list of objects with "text" and "entities", see `keras_bert.data.read_entities`, include labels.
    Weights are per sentence, [N], or a list per sentence, one per word. For ids, labels are [N, T],
    -1 at positions without a label.

    Call arguments:
        inputs: the backbone's.

    Returns:
        float32 logits [B, T, K]; with `crf` the CRF's emissions.

    Raises:
        ValueError: if neither `num_classes` nor `labels` is given, they disagree, or the
            preprocessor does not fit the backbone.

    Example:

    >>> tagger = BertTokenClassifier.from_preset(source, labels=["O", "B-PER", "I-PER"])
    >>> tagger.fit([["Ada", "met", "Grace"]], [["B-PER", "O", "B-PER"]])
    >>> tagger.tag("Ada met Grace.")
    [TaggedEntity(text='Ada', label='PER', start=0, end=3, score=0.99...), ...]
    """

    preprocessor_cls = BertTokenClassifierPreprocessor

    column_names = ("words", "tags", "text", "entities", "weight")
    head_kind = "token_classifier"
    labels_by_token = outputs_by_token = True

    def __init__(
        self,
        backbone: BertBackbone,
        num_classes: int | None = None,
        labels: list[str] | None = None,
        preprocessor: BertTokenClassifierPreprocessor | None = None,
        dropout: float = 0.1,
        crf: bool = False,
        temperature: float = 1.0,
        **kwargs,
    ):
        num_classes, labels = check_classes(num_classes, labels, kinds=(str,))

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.head_dropout = Dropout(dropout, name="head_dropout")
        self.head = dense_head(num_classes, backbone.initializer_range)
        spread = backbone.initializer_range
        self.chain = CRF(num_classes, spread, dtype="float32", name="crf") if crf else None

        # === Functional model ===
        inputs = backbone.input
        encoded = self.encode(inputs)["sequence_output"]  # [B, T, H]
        logits = self.head(self.head_dropout(encoded))  # [B, T, K]
        if crf:
            logits = self.chain(logits)
        # Known before the model is compiled, which construction ends with.
        self.num_classes, self.labels = num_classes, labels
        self.crf = crf
        super().__init__(inputs=inputs, outputs=logits, **kwargs)

        # === Configuration ===
        self.dropout = dropout
        if crf and temperature != 1:
            raise ValueError(f"temperature={temperature}: expected 1 with crf=True")
        self.temperature = temperature

    @classmethod
    def same_kind_of_head(cls, own, saved, checkpoint, skip_mismatch):
        crf = own.setdefault("crf", saved.get("crf", False))
        # Heads of other libraries have no CRF, and get a new one.
        same = checkpoint.contents is not None or saved.get("crf", crf) == crf
        if not same and not skip_mismatch:
            raise ValueError(
                f"{checkpoint.source.name} has a head {'without' if crf else 'with'} a CRF, and "
                f"crf={crf}: pass skip_mismatch=True for a new one"
            )
        return same

    def default_loss(self):
        reduction = "mean_with_sample_weight"
        if self.crf:
            return CRFLoss(self.chain, reduction)
        return keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=IGNORED, reduction=reduction
        )

    # === Rows ===

    def table_cells(self, given, labelled):
        if {"text", "entities"} & {*given}:
            cells = {"text": Cell(), "entities": Cell(LIST)}
        else:
            cells = {"words": Cell(LIST), "tags": Cell(LIST)}
        return cells if labelled else dict([*cells.items()][:1])

    def examples_of_table(self, columns):
        if "text" not in columns:
            return columns["words"], columns.get("tags")
        if "entities" not in columns:
            return columns["text"], None
        return AnnotatedTexts(columns["text"], columns["entities"]), None

    def names_in(self, columns):
        if "entities" in columns:
            types = {kind for spans in columns["entities"] for kind in kinds_of(spans)}
            return _tags_of(types) if types else []
        # A row of another form is reported when rows are checked.
        found = [tag for tags in columns["tags"] if isinstance(tags, list) for tag in tags]
        return list({*found}) if all(isinstance(tag, str) for tag in found) else None

    def adopt_names(self, names):
        self.labels = check_names(names_of_tags([names]), self.num_classes)

    def brings_labels(self, x) -> bool:
        return isinstance(x, TaggedSentences) or annotated_texts(x) is not None

    def examples(self, x, y=None) -> Examples:
        if isinstance(x, Examples):
            return x
        if isinstance(x, TaggedSentences):
            if y is not None:
                raise ValueError("TaggedSentences bring their own tags: got y beside them")
            check_tags(x.words, x.tags, x.lines)
            return Examples((check_sentences(x.words),), self._encode(x.tags, x.lines), x.lines)
        if (given := annotated_texts(x, y)) is not None:
            x, y = given.texts, self._tags_of_texts(given)
        sentences = check_sentences(x) if len(x) else []
        if y is not None:
            y = self.encode_labels(y)
            if len(y) != len(sentences) or not isinstance(sentences[0], str):
                check_tags(sentences, y)
        return Examples((sentences,), y)

    def encode_labels(self, y):
        """Checks labels and turns names into ids, as `Labelled.encode_labels` does.

        `y` has for each of N sentences a list of names or ids, one per word, -1 for a word without
        a label; or ids by token, int [N, T], -1 at positions without one. The result is a list of N
        int32 arrays, or int32 [N, T]; an error names sentence and word.
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
        """As `Labelled.encode_class_weight`.

        Raises:
            ValueError: as `Labelled.encode_class_weight`, or with `crf`, whose loss is per
                sentence.
        """
        if self.crf:
            raise ValueError("class_weight is not supported with crf=True: loss is a sentence's")
        return super().encode_class_weight(class_weight)

    def encode_labels_in_graph(self, y):
        """Passes ids through, as `BertTask.encode_labels_in_graph`; names of tags are refused.

        Raises:
            ValueError: if `y` are names.
        """
        if y is not None and y.dtype.name == "string":
            raise ValueError(
                "a dataset for a token classifier gives ids by token, int [B, T] with -1 at "
                "positions without a label; lists of tag names go to fit as they are"
            )
        return y

    def _tags_of_texts(self, given: AnnotatedTexts) -> list[list[str]]:
        """The tags of the words of texts with character spans; a model may adopt their names."""
        self.check_has_preprocessor()
        if self.labels is None:
            self.adopt_names(_tags_of({kind for spans in given.entities for *_, kind in spans}))
        offsets = self._offsets(check_sentences(given.texts))
        return [
            tags_of_spans(spans, *words, self.labels, given.name(row))
            for row, (spans, words) in enumerate(zip(given.entities, offsets, strict=True))
        ]

    def _offsets(self, texts: list[str]) -> list[tuple]:
        """For each text, the start and end characters of its words."""
        found = []
        for first in range(0, len(texts), CHUNK):
            batch = to_tensor(texts[first : first + CHUNK], "string")
            rows = self.preprocessor.rows(batch)
            found += zip(rows.starts.to_list(), rows.ends.to_list(), strict=True)
        return found

    def rows(self, text) -> Rows:
        rows = self.preprocessor.rows(text)
        return Rows(rows.ids, rows.sentence, rows)

    def labels_of_rows(self, rows, labels, weights, first):
        if labels is None:
            return None, None
        check_tags([range(n) for n in rows.about.counts.numpy()], labels, first=first)
        found, given = labels_of_rows(rows.about, to_tensor(labels, "int32")), None
        if weights is not None and np.ndim(weights[0]) == 1:
            if self.crf:
                raise ValueError("sample_weight of words: with crf=True the loss is a sentence's")
            check_tags(labels, weights, first=first, kind="weights")
            given = labels_of_rows(rows.about, to_tensor(weights, "float32"), 0.0).numpy()
        elif weights is not None:
            given = weights[np.asarray(rows.example)]
        return found, token_weights(found.numpy(), given)

    def _checked_rows(self, x, y, sample_weight):
        if y is not None:
            y = self.encode_labels(np.asarray(y))
            sample_weight = token_weights(y, sample_weight)
        return super()._checked_rows(x, y, sample_weight)

    def dataset_preparer(self, dataset, labelled):
        prepare = super().dataset_preparer(dataset, labelled)

        def with_token_weights(*batch):
            x, y, weights = keras.utils.unpack_x_y_sample_weight(prepare(*batch))
            if y is None:
                return keras.utils.pack_x_y_sample_weight(x)
            return x, y, token_weights_in_graph(y, weights)

        return with_token_weights

    # === Answers ===

    def _chain(self) -> list | None:
        """The CRF as values: a served graph reads weights only through its network."""
        return self.chain and [keras.ops.convert_to_numpy(part) for part in self.chain.scores]

    def _key(self, name: str) -> tuple | None:
        """The key of an `Answer`; None with a CRF, whose values become constants of a graph."""
        return None if self.crf else (name,)

    def _entities(self, chain, outputs, rows: Rows, *_) -> dict:
        """The entities of all sentences, concatenated, and their number per sentence."""
        import tensorflow as tf

        parts = find_entities(*self._best_tags(chain, outputs, rows), self.labels)
        starts, ends = parts.start, parts.end
        if rows.about.starts is not None:
            starts, ends = character_offsets(parts, rows.about.starts, rows.about.ends)
        count = tf.math.unsorted_segment_sum(
            tf.ones_like(parts.sentence), parts.sentence, tf.size(rows.about.counts)
        )
        found = {name: getattr(parts, name) for name in ("sentence", "label", "score")}
        return found | {"start": starts, "end": ends, "count": count}

    def _served_entities(self, chain, outputs, rows, text):
        """`entities` of `text`, string [B], with E the maximum number per text.

        `entity`, string [B, E], as written in the text, `label`, string [B, E], `start` and `end`,
        int32 [B, E], its first character and one past its last, `score`, float32 [B, E], the mean
        of the probabilities of its words' tags, and `count`, int32 [B], the number of entities;
        unused places hold "", -1 and 0.
        """
        import tensorflow as tf

        found = self._entities(chain, outputs, rows)
        sentence, count = found.pop("sentence"), found.pop("count")
        found["entity"] = substrings(text, sentence, found["start"], found["end"])
        rest = {"entity": "", "label": "", "start": -1, "end": -1, "score": 0.0}
        return {
            name: tf.RaggedTensor.from_row_lengths(value, count).to_tensor(rest[name])
            for name, value in found.items()
        } | {"count": count}

    def _names_of(self, tags):
        import tensorflow as tf

        names = tf.constant(list(map(str, self.names)))
        return tags.with_flat_values(tf.gather(names, tags.flat_values))

    def answers(self, outputs, rows, text, chain=None):
        """`tags` of `text`, string [B], with W the maximum number of words per text.

        `word` and `tag`, string [B, W], `start` and `end`, int32 [B, W], `probability`, float32
        [B, W], and `count`, int32 [B].
        """
        tags, probabilities = self._best_tags(chain, outputs, rows)
        starts, ends = rows.about.starts, rows.about.ends
        words = substrings(text, starts.value_rowids(), starts.values, ends.values)
        return {
            "word": starts.with_values(words).to_tensor(),
            "tag": self._names_of(tags).to_tensor(),
            "start": starts.to_tensor(-1),
            "end": ends.to_tensor(-1),
            "probability": probabilities.to_tensor(),
            "count": rows.about.counts,
        }

    def _rows_of_words(self, words, count) -> Rows:
        import tensorflow as tf

        width = tf.shape(words)[1]
        inside = tf.reduce_all((count >= 0) & (count <= width))
        message = ["input 'count' lies outside of 0 to", width, "the words of a row"]
        with tf.control_dependencies([tf.Assert(inside, message)]):
            return self.rows(tf.RaggedTensor.from_tensor(words, count))

    def _tags_of_words(self, chain, outputs, rows, words, count):
        """`tag` and `probability`, [B, W], of `words`, string [B, W], `count` of them per row."""
        import tensorflow as tf

        tags, probabilities = self._best_tags(chain, outputs, rows)
        shape = tf.cast(tf.stack([-1, tf.shape(words)[1]]), tags.row_splits.dtype)
        return {
            "tag": self._names_of(tags).to_tensor(shape=shape),
            "probability": probabilities.to_tensor(shape=shape),
        }

    def signatures(self):
        """Lists `tags`, for texts, `words`, for texts split into words, and `entities`.

        `entities` exists if the labels mark entities, and is then `serving_default`; otherwise
        `tags` is.
        """
        chain = self._chain()
        answers = partial(self.answers, chain=chain)
        tags = Answer(self.asks, self.example, self.rows, answers, None, self._key("tags"))
        asks = {"words": Column(shape=(None, None)), "count": Column("int32")}
        example = {"words": [["Ada", "met", "Grace"]], "count": [3]}
        answers = partial(self._tags_of_words, chain)
        words = Answer(asks, example, self._rows_of_words, answers, None, self._key("words"))
        found = {"tags": tags, "words": words}
        if _mark_entities(self.labels):
            found["entities"] = tags._replace(
                answers=partial(self._served_entities, chain), key=self._key("entities")
            )
        return {"serving_default": found.get("entities", tags), **found}

    def words(self, texts: Sequence[str]) -> list[list[str]]:
        """Splits plain texts into words, as written in the text.

        Args:
            texts: a list of N texts.

        Returns:
            N lists.
        """
        self.check_has_preprocessor()
        texts = check_sentences(texts) if len(texts) else []
        return [
            [text[a:b] for a, b in zip(starts, ends, strict=True)]
            for text, (starts, ends) in zip(texts, self._offsets(texts), strict=True)
        ]

    def _of_words(self, name: str, values, x, batch_size, kwargs) -> list:
        """Applies `values` to each sentence's words: a list of N arrays [words, ...]."""

        def answers(outputs, rows, text):
            found = values(outputs, rows)
            return {"values": found.flat_values, "count": rows.about.counts}

        parts = []
        for _, found in self._asked(name, answers, x, batch_size, kwargs):
            parts += np.split(found["values"], np.cumsum(found["count"])[:-1])
        return parts

    def _asked(self, name: str, answers, x, batch_size, kwargs):
        """As `respond`, for a function of answers with a name; nothing without sentences."""
        asked = Answer(self.asks, self.example, self.rows, answers, None, self._key(name))
        data = self.examples(x)
        return self.respond(asked, data, batch_size, kwargs) if len(data) else ()

    def predict(self, x, batch_size: int | None = None, **kwargs):
        """Computes the logits.

        Args:
            x: N sentences, lists of words or texts; or ids, as `BertTask.predict`.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `keras.Model.predict`.

        Returns:
            For sentences a list of N float32 arrays [words, K]; for ids float32 [N, T, K].
        """
        if not are_examples(x):
            return super().predict(x, batch_size, **kwargs)

        def scores(outputs, rows):
            return scores_of_words(outputs, rows.about)

        return self._of_words("scores", scores, x, batch_size, {"verbose": "auto"} | kwargs)

    def predict_tags(
        self, x, batch_size: int | None = None, **kwargs
    ) -> list[list[str]] | list[list[int]]:
        """Predicts a label for each word.

        Args:
            x: N sentences, lists of words; or N texts, split by `words`.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `keras.Model.predict`, without a progress bar by default.

        Returns:
            N lists of names, or of ids if the model has no names; one per word.
        """
        names = self.names
        return [[names[tag] for tag in tags] for tags in self._best_ids(x, batch_size, kwargs)]

    def _best_ids(self, x, batch_size, kwargs) -> list[list[int]]:
        chain = self._chain()

        def tags(outputs, rows):
            return self._best_tags(chain, outputs, rows)[0]

        return [row.tolist() for row in self._of_words("tags", tags, x, batch_size, kwargs)]

    def tag(
        self, x, batch_size: int | None = None, **kwargs
    ) -> list[TaggedEntity] | list[list[TaggedEntity]]:
        """Predicts the entities of sentences.

        Args:
            x: a text, N texts, or N lists of words.
            batch_size: rows of a batch, 32 by default.
            **kwargs: as `keras.Model.predict`.

        Returns:
            For each sentence a list of entities in their order, each with `text`, `label`, `start`,
            `end` and `score`; for one text a single list. Offsets count characters, so that
            text[start:end] is the entity; for lists of words, they count words.

        Raises:
            ValueError: if the labels mark no entities.
        """
        if is_text(x):
            return self.tag([x], batch_size, **kwargs)[0]
        if self.labels is None:
            raise ValueError("the model has no labels, so that entities have no names")
        tag_places(self.labels)  # checked before any work
        answers, entities = partial(self._entities, self._chain()), []
        names = ("sentence", "label", "start", "end", "score")
        for (sentences,), found in self._asked("found", answers, x, batch_size, kwargs):
            here = [[] for _ in sentences]
            columns = (found[name].tolist() for name in names)
            for number, label, start, end, score in zip(*columns, strict=True):
                text = sentences[number][start:end]
                text = text if isinstance(text, str) else join_words(text)
                here[number].append(TaggedEntity(text, label.decode(), start, end, score))
            entities += here
        return entities

    def scores(self, x, y=None, **kwargs) -> dict[str, float]:
        """Scores the tags of words of data as `fit` takes them, by `tagging_scores`.

        `fit` reports them for validation data that are sentences, if the labels mark entities.

        Args:
            x: sentences.
            y: their labels, or spans.
            **kwargs: as `predict_tags`.

        Returns:
            "accuracy" over words, and if the labels mark entities "precision", "recall" and "f1"
            of these.
        """
        data = self.examples(x, y)
        right, found = data.labels, self._best_ids(data, kwargs.pop("batch_size", None), kwargs)
        check_tags(found, right)
        names = np.array(list(map(str, self.names)))

        def named(rows):
            pairs = zip(rows, right, strict=True)
            return [names[np.asarray(ids, int)[known != IGNORED]].tolist() for ids, known in pairs]

        return tagging_scores(named(right), named(found), entities=self.scores_by_default)

    @property
    def scores_by_default(self) -> bool:
        return self.labels is not None and all(map(marks_entity, self.labels))

    def logits_and_labels(self, x, y, batch_size=None, **kwargs):
        if self.crf:
            raise ValueError("crf=True: a tag's probability is a marginal, without a temperature")
        data = self.examples(x, y)
        found = self.predict(data, batch_size, **{"verbose": 0} | kwargs)
        check_tags(found, data.labels)
        logits, labels = np.concatenate(found), np.concatenate(data.labels)
        return logits[labels != IGNORED], labels[labels != IGNORED]

    def _best_tags(self, chain, outputs, rows: Rows) -> tuple:
        """(ids, probabilities) of the words' tags, ragged [B, None]."""
        return best_tags(scores_of_words(outputs / self.temperature, rows.about), chain)


def _tags_of(types: set[str]) -> list[str]:
    """O, and B-TYPE and I-TYPE for all types."""
    return ["O", *(f"{letter}-{kind}" for letter in "BI" for kind in sorted(types))]


def _mark_entities(labels: list[str] | None) -> bool:
    """Whether labels are tags such as B-PER, I-PER and O."""
    try:
        return bool(labels) and any(tag_places(labels)[1])
    except ValueError:
        return False
