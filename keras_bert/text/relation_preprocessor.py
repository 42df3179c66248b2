"""Preprocessor for relation classification. TensorFlow, in graph."""

from collections.abc import Sequence

import keras

from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor
from keras_bert.text.padding import bucket_length, pair_lengths
from keras_bert.text.tokenizer import BertTokenizer

# Default markers around the first and the second entity; the first set in the vocabulary is used.
# The signs are those of R-BERT (Wu and He 2019, arXiv:1905.08284).
MARKERS = (
    ("[unused1]", "[unused2]", "[unused3]", "[unused4]"),
    ("$", "$", "#", "#"),
)


@keras.saving.register_keras_serializable(package="keras_bert")
class BertRelationPreprocessor(BertClassifierPreprocessor):
    """Inserts markers around two entities of each sentence, and converts it to a row.

    [CLS] before [M1] first [/M1] between [M2] second [/M2] after [SEP], or the same with the
    second entity in front. Reference: Baldini Soares et al. 2019 (arXiv:1906.03158), section 3.2,
    "entity markers". The five parts are tokenized separately, so a marker inside a word splits it.

    A sentence that is too long is truncated around the entities: first the part before both loses
    pieces at its start and the part after both at its end, the longer of the two first; when both
    are empty, the part between loses pieces in its middle. The entities themselves are never cut.

    Args:
        tokenizer: a `BertTokenizer`.
        sequence_length: maximum number of tokens in a row, including markers, [CLS] and [SEP].
        padding: "full" or "bucket", as in `BertClassifierPreprocessor`.
        markers: four tokens of the vocabulary that open and close the first and the second entity.
            By default [unused1] to [unused4] if the vocabulary has them, otherwise $ $ # #.

    Call arguments:
        x: a tuple (texts, spans): strings [B], and ints [B, 2, 2], (start, end) of each
            entity in characters, `end` exclusive.
        y: labels, passed through.
        sample_weight: weights, passed through.

    Returns:
        A dict of int32 tensors `token_ids`, `segment_ids` (zeros) and `padding_mask` [B, T], and
        `entity_positions` [B, 2], the columns of the opening markers; with `y` or
        `sample_weight`, a tuple (x, y, sample_weight) as in Keras.

    Raises:
        ValueError: if `markers` are not four tokens of the vocabulary, or it has no default ones.
        tf.errors.InvalidArgumentError: if spans overlap or are outside their text, or entities are
            too long for a row.
    """

    settings = ("sequence_length", "padding", "markers")
    expects = "a tuple (texts, spans)"
    columns = (2, 2)
    least_length = 8  # [CLS], four markers, two entities and [SEP]

    def __init__(
        self,
        tokenizer: BertTokenizer,
        sequence_length: int = 512,
        padding: str = "full",
        markers: Sequence[str] | None = None,
        **kwargs,
    ):
        super().__init__(tokenizer, sequence_length, padding, **kwargs)
        markers = [markers] if isinstance(markers, str) else markers  # not one for each character
        self.markers = None if markers is None else tuple(markers)
        if tokenizer.has_vocabulary:  # the vocabulary of a saved model is loaded later
            self.marker_ids()

    def marker_ids(self) -> list[int]:
        """The ids of the four markers.

        Raises:
            ValueError: if the vocabulary has no default markers, or `markers` are not four of it.
        """
        vocabulary = set(self.tokenizer.get_vocabulary())
        for markers in MARKERS if self.markers is None else (self.markers,):
            if len(markers) == 4 and vocabulary.issuperset(markers):
                return [self.tokenizer.token_to_id(token) for token in markers]
        raise ValueError(
            f"markers={self.markers}: expected four tokens of the vocabulary that open and close "
            "the first and the second entity; None takes [unused1] to [unused4], or $ and #"
        )

    def pack(self, segments: tuple, padding: str | None = None):
        """As `BertClassifierPreprocessor.pack`, for a tuple (texts, spans).

        Raises:
            tf.errors.InvalidArgumentError: if two entities do not fit into `sequence_length`.
        """
        import tensorflow as tf

        rows, fits = self.encode(*segments, padding)
        first = tf.argmin(tf.pad(tf.cast(fits, tf.int32), [[0, 1]]))  # none in an empty batch
        message = f"entities do not fit into {self.sequence_length} tokens, in row"
        with tf.control_dependencies([tf.Assert(tf.reduce_all(fits), [message, first])]):
            return {name: tf.identity(value) for name, value in rows.items()}

    def encode(self, texts, spans, padding: str | None = None) -> tuple[dict, object]:
        """Converts sentences to rows, cutting at the end where entities do not fit.

        Args:
            texts: strings [B].
            spans: ints [B, 2, 2].
            padding: overrides the preprocessor's.

        Returns:
            (the dict of `call`, bool [B]: whether the entities fit).

        Raises:
            ValueError: if texts or spans have another shape or type.
        """
        import tensorflow as tf

        from keras_bert.text.lines import text_columns

        with tf.device("cpu"):
            (texts,) = text_columns((texts,))
            spans = tf.convert_to_tensor(spans)
            shape = texts.shape.concatenate([2, 2])
            if not spans.dtype.is_integer or not spans.shape.is_compatible_with(shape):
                raise ValueError(
                    f"spans are {spans.dtype.name} of shape {spans.shape}: expected integers of "
                    f"shape {shape} for texts of shape {texts.shape}"
                )
            spans = tf.ensure_shape(tf.cast(spans, tf.int32), [None, 2, 2])
            swapped = spans[:, 0, 0] > spans[:, 1, 0]  # whether the second entity is in front, [B]
            in_order = tf.where(swapped[:, None, None], spans[:, ::-1], spans)
            parts = _parts(texts, in_order)  # [B, 5]
            pieces = self.tokenizer.tokenize(tf.reshape(parts, [-1]))  # [5 B, None]
            lengths = tf.reshape(tf.cast(pieces.row_lengths(), tf.int32), [-1, 5])
            starts = tf.reshape(tf.cast(pieces.row_starts(), tf.int32), [-1, 5])
            begin, count, fits = _cut(starts, lengths, self.sequence_length - 6)

            # A row has 12 slots, each a slice of one pool of pieces and special tokens.
            tokenizer = self.tokenizer
            specials = [tokenizer.cls_token_id, tokenizer.sep_token_id, *self.marker_ids()]
            pool = tf.concat([pieces.flat_values, tf.constant(specials, tf.int32)], axis=0)
            cls, sep, *markers = (tf.size(pieces.flat_values) + i for i in range(6))
            rank = tf.cast(swapped, tf.int32)  # index of the entity in front
            # index of the marker that opens or closes an entity
            opens = [markers[0] + 2 * rank, markers[0] + 2 * (1 - rank)]
            same, one = tf.zeros_like(rank), tf.ones_like(rank)
            slots = [
                (cls + same, one),
                (begin[0], count[0]),
                (opens[0], one),
                (begin[1], count[1]),
                (opens[0] + 1, one),
                (begin[2], count[2]),
                (begin[3], count[3]),
                (opens[1], one),
                (begin[4], count[4]),
                (opens[1] + 1, one),
                (begin[5], count[5]),
                (sep + same, one),
            ]
            begin, count = (tf.stack(column, axis=1) for column in zip(*slots, strict=True))
            stretches = tf.ragged.range(tf.reshape(begin, [-1]), tf.reshape(begin + count, [-1]))
            used = tf.reduce_sum(count, axis=1)  # tokens of each row, [B]
            ids = tf.RaggedTensor.from_row_lengths(tf.gather(pool, stretches.flat_values), used)
            width = self.sequence_length
            if (padding or self.padding) == "bucket":
                longest = tf.minimum(tf.reduce_max(used), width)  # of rows that do not fit
                width = bucket_length(longest, width)
            token_ids = ids.to_tensor(tokenizer.pad_token_id)[:, :width]
            room = [[0, 0], [0, width - tf.shape(token_ids)[1]]]
            token_ids = tf.pad(token_ids, room, constant_values=tokenizer.pad_token_id)
            before = tf.cumsum(count, axis=1, exclusive=True)
            places = tf.stack([before[:, 2], before[:, 7]], axis=1)
            places = tf.where(swapped[:, None], places[:, ::-1], places)
            mask = tf.cast(tf.range(width)[None, :] < used[:, None], tf.int32)
            rows = {
                "token_ids": token_ids,
                "segment_ids": tf.zeros_like(token_ids),
                "padding_mask": mask,
                "entity_positions": tf.where(fits[:, None], places, 0),
            }
            for value in rows.values():
                value.set_shape([texts.shape[0], value.shape[1]])
            return rows, fits

    def get_config(self):
        return super().get_config() | {"markers": self.markers and list(self.markers)}


def _parts(texts, spans):
    """Splits texts at the ends of two spans, the first of which is in front: strings [B, 5]."""
    import tensorflow as tf

    length = tf.strings.length(texts, unit="UTF8_CHAR")
    cuts = [tf.zeros_like(length), *tf.unstack(tf.reshape(spans, [-1, 4]), axis=1), length]
    places = tf.stack(cuts, axis=1)  # [B, 6]
    right = tf.reduce_all(places[:, 1:] >= places[:, :-1], axis=1)
    message = "spans overlap or are outside their text, in row"
    wrong = tf.argmin(tf.pad(tf.cast(right, tf.int32), [[0, 1]]))
    with tf.control_dependencies([tf.Assert(tf.reduce_all(right), [message, wrong, spans])]):
        places = tf.identity(places)
    # One call per part: `substr` needs positions of the shape of the texts.
    parts = [
        tf.strings.substr(texts, places[:, i], places[:, i + 1] - places[:, i], unit="UTF8_CHAR")
        for i in range(5)
    ]
    return tf.stack(parts, axis=1)


def _cut(starts, lengths, budget: int):
    """Truncates sentences as described in the class to `budget` pieces.

    Takes the start of each part's pieces in the pool and their number, int32 [B, 5]. Returns lists
    of six int32 [B], starts and lengths for before, first, the two ends of between, second, after;
    and bool [B], whether the entities fit.
    """
    import tensorflow as tf

    before, first, between, second, after = tf.unstack(lengths, axis=1)
    room = budget - first - second
    fits = room >= 0
    room = tf.maximum(room, 0)
    kept = tf.minimum(between, room)
    head = kept - kept // 2  # of an odd budget the first entity gets one piece more
    kept_before, kept_after = pair_lengths(before, after, room - kept)
    begin = tf.unstack(starts, axis=1)
    begin.insert(3, begin[2] + between - kept // 2)
    begin[0] += before - kept_before
    return begin, [kept_before, first, head, kept // 2, second, kept_after], fits
