"""Preprocessor for token classification: one label per word, on its first piece."""

from typing import NamedTuple

import keras

from keras_bert.arguments import check_count
from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor
from keras_bert.text.tokenizer import BertTokenizer
from keras_bert.text.windows import cut, has_most_context, take

IGNORED = -1  # the label of positions without one; not the id of any class


class TokenRows(NamedTuple):
    """R rows of T tokens for a batch of B sentences.

    Attributes:
        ids: int32 [R, T] by name, the backbone's inputs.
        sentence: int32 [R], the sentence of each row.
        word: int32 [R, T], at the first piece of a word its index in the sentence; -1 at all other
            positions, and at first pieces represented by another row. So each word has exactly one
            position in all rows.
        counts: int32 [B], number of words of each sentence.
        starts: int32 ragged [B, None], for plain texts the first character of each word; None for
            sentences given as words.
        ends: int32 ragged [B, None], one after its last character; None as for `starts`.
    """

    ids: dict
    sentence: object
    word: object
    counts: object
    starts: object = None
    ends: object = None


@keras.saving.register_keras_serializable(package="keras_bert")
class BertTokenClassifierPreprocessor(BertClassifierPreprocessor):
    """Tokenizes words and converts sentences to rows, on the host, in TensorFlow.

    The first piece of a word represents it; other pieces and special tokens are ignored. Reference:
    Devlin et al. 2019, section 5.3. A sentence that does not fit into a row is split into
    overlapping windows, and a word is represented in the window where its first piece has maximum
    context. A word that the tokenizer drops, such as a control character, becomes one [UNK], so
    every word gets a prediction.

    Sentences are lists of words, or plain texts. The words of a plain text are those of BERT's
    tokenizer: split at spaces and around punctuation, each Chinese character a word.

    Args:
        tokenizer: a `BertTokenizer`.
        sequence_length: maximum number of tokens in a row, including [CLS] and [SEP].
        padding: "full" or "bucket", as in `BertClassifierPreprocessor`.
        stride: number of pieces from the start of one window to that of the next; by default half
            of the pieces of a row.

    Call arguments:
        x: a batch of texts, strings [B], or of lists of words, strings [B, None].

    Returns:
        The `ids` of `rows`, int32 [R, T].

    Raises:
        ValueError: if `sequence_length` or `stride` is out of range, or `padding` is unknown.
    """

    settings = ("sequence_length", "padding", "stride")
    expects = "a batch of texts [B], or of lists of words [B, None]"
    columns = (1, 1)
    rows_of_texts = "BertTokenClassifier.make_rows"

    def __init__(
        self,
        tokenizer: BertTokenizer,
        sequence_length: int = 128,
        padding: str = "bucket",
        stride: int | None = None,
        **kwargs,
    ):
        super().__init__(tokenizer, sequence_length, padding, **kwargs)
        if stride is not None and not 1 <= check_count("stride", stride, 0) <= sequence_length - 2:
            raise ValueError(
                f"stride={stride}: expected 1 to {sequence_length - 2}, the pieces that fit into "
                f"a row of {sequence_length} tokens"
            )
        self.stride = None if stride is None else int(stride)

    def pack(self, segments: tuple, padding: str | None = None):
        """As `BertClassifierPreprocessor.pack`, for a tuple of one batch."""
        return self.rows(*segments, padding).ids

    def rows(self, x, padding: str | None = None, by_piece: bool = False) -> TokenRows:
        """Converts a batch of sentences to rows, in graph.

        Args:
            x: texts, strings [B]; or words, ragged strings [B, None].
            padding: overrides the preprocessor's.
            by_piece: whether all pieces are to be answered for, as if each were a word; `counts`
                are then those of pieces.

        Returns:
            `TokenRows`: the ids of R rows, and their words.

        Raises:
            ValueError: if x has another shape.
        """
        import tensorflow as tf

        from keras_bert.text.lines import to_strings

        with tf.device("cpu"):
            given, x = type(x).__name__, to_strings(x)
            if x.shape.rank == 2 and isinstance(x, tf.Tensor):
                x = tf.RaggedTensor.from_tensor(x)
            if x.shape.rank != 1 + isinstance(x, tf.RaggedTensor) or given == "tuple":
                raise ValueError(f"{given} of shape {x.shape}: expected {self.expects}")
            if isinstance(x, tf.RaggedTensor):
                ids, word = self._pieces_of_words(x)
                starts = ends = None
            else:
                ids, word, starts, ends = self._pieces_of_texts(x)
            lengths = tf.cast(ids.row_lengths(), tf.int32)
            if by_piece:
                word = tf.ragged.range(lengths)
            room = self.sequence_length - 2
            windows = cut(lengths, room, self.stride or (room + 1) // 2)
            batch = self._joined([take(ids, windows)], padding)
            width = tf.shape(batch["token_ids"])[1]
            place = take(word, windows).to_tensor(IGNORED, shape=[None, self.sequence_length])[
                :, : width - 1
            ]
            known = has_most_context(windows, lengths, tf.shape(place)[1])
            place = tf.where(known, place, IGNORED)
            place = tf.pad(place, [[0, 0], [1, 0]], constant_values=IGNORED)  # [CLS]
            counts = tf.reduce_sum(tf.cast(word >= 0, tf.int32), axis=1)
            return TokenRows(batch, windows.text, place, counts, starts, ends)

    def _pieces_of_words(self, words):
        """(ids, index of the word at its first piece or -1), both ragged int32 [B, None]."""
        import tensorflow as tf

        pieces = self.tokenizer.tokenize(words.flat_values)  # [words, None]
        empty = tf.cast(pieces.row_lengths() == 0, tf.int64)
        unknown = tf.fill([tf.reduce_sum(empty)], self.tokenizer.unk_token_id)
        unknown = tf.RaggedTensor.from_row_lengths(tf.cast(unknown, pieces.dtype), empty)
        pieces = tf.concat([pieces, unknown], axis=1)
        number = tf.ragged.range(tf.cast(words.row_lengths(), tf.int32)).flat_values
        first = tf.cast(pieces.row_starts(), tf.int32)[:, None]
        blank = tf.fill([tf.size(pieces.flat_values)], IGNORED)
        word = tf.tensor_scatter_nd_update(blank, first, number)
        # From [B, words, pieces] to [B, pieces].
        nested = words.with_flat_values(pieces.with_row_splits_dtype(words.row_splits.dtype))
        splits = tf.gather(nested.values.row_splits, nested.row_splits)
        ids = tf.cast(pieces.flat_values, tf.int32)
        return tuple(
            tf.RaggedTensor.from_row_splits(values, splits, validate=False)
            for values in (ids, word)
        )

    def _pieces_of_texts(self, texts):
        """The same as `_pieces_of_words`, with the start and end character of each word."""
        import tensorflow as tf

        ids, starts, ends = self.tokenizer.tokenize_with_offsets(texts, unit="char")
        tokens = self.tokenizer.get_vocabulary()
        # "#" is always a word by itself, so no other first piece starts with it.
        later = tf.constant([t.startswith("##") and len(t) > 2 for t in tokens])
        begins = ids.with_flat_values(~tf.gather(later, ids.flat_values))
        number = tf.cumsum(tf.cast(begins.flat_values, tf.int32)) - 1
        counts = tf.reduce_sum(tf.cast(begins, tf.int32), axis=1)
        number -= tf.gather(tf.cumsum(counts, exclusive=True), ids.value_rowids())
        word = ids.with_flat_values(tf.where(begins.flat_values, number, IGNORED))
        first = tf.reshape(tf.where(begins.flat_values), [-1])
        last = tf.concat([first[1:], [tf.size(ids.flat_values, tf.int64)]], 0)[: tf.size(first)] - 1
        starts, ends = (
            tf.RaggedTensor.from_row_lengths(tf.gather(offsets.flat_values, place), counts)
            for offsets, place in ((starts, first), (ends, last))
        )
        return tf.cast(ids, tf.int32), word, starts, ends


def labels_of_rows(rows: TokenRows, labels, ignored: int | float = IGNORED):
    """Assigns the labels, or weights, of words to their first pieces, [R, T], in graph.

    Args:
        rows: from `rows`.
        labels: int32 or float32 ragged [B, None], one for each word.
        ignored: the value at positions that represent no word.
    """
    import tensorflow as tf

    begin = tf.gather(tf.cast(labels.row_starts(), tf.int32), rows.sentence)[:, None]
    values = tf.concat([labels.flat_values, [ignored]], 0)
    spare = tf.size(labels.flat_values)
    return tf.gather(values, tf.where(rows.word >= 0, begin + rows.word, spare))
