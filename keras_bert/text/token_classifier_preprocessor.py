"""Words to a token classifier's rows: one label a word, on its first piece."""

from typing import NamedTuple

import keras

from keras_bert.arguments import check_count
from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor
from keras_bert.text.packing import pack
from keras_bert.text.tokenizer import BertTokenizer
from keras_bert.text.windows import cut, has_most_context

IGNORED = -1  # the label of a position that has none; no class has this id


class TokenRows(NamedTuple):
    """Rows of a batch of sentences. R rows of T tokens over B sentences.

    Attributes:
        ids: int32 [R, T] by name, the backbone's inputs.
        sentence: int32 [R], the sentence that a row is of.
        word: int32 [R, T], at the first piece of a word its number in its sentence; -1 at all
            other positions, and at first pieces that another row answers for. So each word is at
            exactly one position of all rows.
        counts: int32 [B], words of the sentences.
        starts: int32 ragged [B, None], of a plain text the first character of each word; None of
            sentences that are given as words.
        ends: the same, the character after its last.
    """

    ids: dict
    sentence: object
    word: object
    counts: object
    starts: object = None
    ends: object = None


@keras.saving.register_keras_serializable(package="keras_bert")
class BertTokenClassifierPreprocessor(BertClassifierPreprocessor):
    """Cuts words into pieces and sentences into rows, on the host, in TensorFlow.

    The first piece of each word stands for the word; the others and special tokens stand for
    nothing. Rule: Devlin et al. 2019, section 5.3. A sentence that a row cannot hold is cut into
    overlapping windows, and a word is answered for in the window where its first piece has most
    context. A word of which the tokenizer leaves nothing, such as a control character, is one
    [UNK]: every word has its answer.

    Sentences are lists of words, or plain texts. The words of a plain text are those of BERT's
    tokenizer: cut at spaces and around punctuation, each Chinese character one word.

    Args:
        tokenizer: a `BertTokenizer`.
        sequence_length: the most tokens in a row, [CLS] and [SEP] among them.
        padding: "full" or "bucket", as in `BertClassifierPreprocessor`.
        stride: pieces from the start of one window to that of the next; by default half of what
            a row can hold.

    Call arguments:
        x: a batch of texts, strings [B], or of lists of words, strings [B, None].

    Returns:
        The `ids` of `rows`, int32 [R, T].

    Raises:
        ValueError: if `sequence_length` or `stride` leave no room, or `padding` is unknown.
    """

    settings = ("sequence_length", "padding", "stride")

    def __init__(
        self,
        tokenizer: BertTokenizer,
        sequence_length: int = 128,
        padding: str = "bucket",
        stride: int | None = None,
        **kwargs,
    ):
        super().__init__(tokenizer, sequence_length, padding, **kwargs)
        if stride is not None:
            check_count("stride", stride, 0)
        if stride is not None and not 1 <= stride <= sequence_length - 2:
            raise ValueError(
                f"stride={stride}: expected 1 to {sequence_length - 2}, the pieces that a row of "
                f"{sequence_length} tokens can hold"
            )
        self.stride = stride

    def call(self, x, y=None, sample_weight=None):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "windows make more rows than there are sentences: labels and weights go through "
                "BertTokenClassifier.make_rows"
            )
        return self.rows(x).ids

    def rows(self, x, padding: str | None = None, by_piece: bool = False) -> TokenRows:
        """Turns a batch of sentences into rows, in graph.

        Args:
            x: texts, strings [B]; or words, ragged strings [B, None].
            padding: in place of the preprocessor's own.
            by_piece: whether all pieces are to be answered for, as if each were a word; `counts`
                are then those of pieces.

        Returns:
            `TokenRows`: ids of R rows, and which words they hold.

        Raises:
            ValueError: if x has another shape.
        """
        import tensorflow as tf

        from keras_bert.text.lines import to_strings

        with tf.device("cpu"):
            given = type(x).__name__
            x = to_strings(x)
            if x.shape.rank == 2 and isinstance(x, tf.Tensor):
                x = tf.RaggedTensor.from_tensor(x)
            if x.shape.rank != 1 + isinstance(x, tf.RaggedTensor) or given == "tuple":
                raise ValueError(
                    f"{given} of shape {x.shape}: expected a batch of texts [B], or of lists of "
                    "words [B, None]"
                )
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
            piece = tf.cast(tf.gather(ids.row_starts(), windows.text), tf.int32) + windows.start
            inside = tf.ragged.range(piece, piece + windows.length)  # [R, None], of the flat pieces
            segment = inside.with_values(tf.gather(ids.flat_values, inside.values))
            padding = padding or self.padding
            batch = pack([segment], self.tokenizer, self.sequence_length, padding)
            width = tf.shape(batch["token_ids"])[1]
            place = inside.with_values(tf.gather(word.flat_values, inside.values))
            place = place.to_tensor(IGNORED, shape=[None, self.sequence_length])[:, : width - 1]
            known = has_most_context(windows, lengths, tf.shape(place)[1])
            place = tf.where(known, place, IGNORED)
            place = tf.pad(place, [[0, 0], [1, 0]], constant_values=IGNORED)  # [CLS]
            counts = tf.reduce_sum(tf.cast(word >= 0, tf.int32), axis=1)
            return TokenRows(batch, windows.text, place, counts, starts, ends)

    def _pieces_of_words(self, words):
        """(ids, number of the word at its first piece or -1), both ragged int32 [B, None]."""
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
        """The same, and the first character of each word and the one after its last."""
        import tensorflow as tf

        ids, starts, ends = self.tokenizer.tokenize_with_offsets(texts, unit="char")
        tokens = self.tokenizer.get_vocabulary()
        # "#" alone is a word of its own, so that no other first piece begins with it.
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

    def get_config(self):
        return super().get_config() | {"stride": self.stride}


def labels_of_rows(rows: TokenRows, labels, ignored: int | float = IGNORED):
    """Puts the labels, or weights, of words on their first pieces, in graph.

    Args:
        rows: from `rows`.
        labels: int32 or float32 ragged [B, None], one for each word.
        ignored: what stands where no word is answered for.

    Returns:
        A tensor of the same type, [R, T].
    """
    import tensorflow as tf

    begin = tf.gather(tf.cast(labels.row_starts(), tf.int32), rows.sentence)[:, None]
    values = tf.concat([labels.flat_values, [ignored]], 0)
    spare = tf.size(labels.flat_values)
    return tf.gather(values, tf.where(rows.word >= 0, begin + rows.word, spare))
