"""Preprocessor for question answering: rows of a question and a window of its context."""

from typing import Any, NamedTuple

import keras

from keras_bert.arguments import check_count
from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor
from keras_bert.text.tokenizer import BertTokenizer
from keras_bert.text.windows import cut, has_most_context, take


class QuestionRows(NamedTuple):
    """R rows [CLS] question [SEP] window [SEP], grouped by question.

    Attributes:
        token_ids: int32 [R, T].
        segment_ids: int32 [R, T], 1 on the window and its [SEP].
        padding_mask: int32 [R, T], 1 on tokens.
        example: int32 [R], the question of each row, in ascending order.
        context_begin: int32 [R], the column of the window's first piece.
        window_start: int32 [R], the index of that piece in the context.
        starts: int32 [R, T], the first character of a piece of the context, in Unicode code
            points; -1 at all other positions.
        ends: int32 [R, T], one after its last character; -1 at all other positions.
        most_context: bool [R, T], whether this row has the maximum context for a piece of the
            context; see `keras_bert.text.windows.has_most_context`.
    """

    token_ids: Any
    segment_ids: Any
    padding_mask: Any
    example: Any
    context_begin: Any
    window_start: Any
    starts: Any
    ends: Any
    most_context: Any

    def ids(self) -> dict:
        """The inputs of the network."""
        names = ("token_ids", "segment_ids", "padding_mask")
        return {name: getattr(self, name) for name in names}


@keras.saving.register_keras_serializable(package="keras_bert")
class BertQuestionAnswererPreprocessor(BertClassifierPreprocessor):
    """Tokenizes questions and contexts, and splits contexts into overlapping windows.

    Reference: google-research/bert `run_squad.py`, `convert_examples_to_features`: a question keeps
    its first pieces, a window fills the rest of the row, and windows start `stride` pieces apart.
    The original splits a context at white space first and later searches the text for the answer;
    here every piece has character offsets, so an answer is always `context[start:end]`. It runs
    eagerly and inside `tf.data.Dataset.map`.

    Args:
        tokenizer: a `BertTokenizer`.
        sequence_length: maximum number of tokens in a row.
        padding: "full" gives rows of `sequence_length` tokens; "bucket" pads to the smallest of
            16, 32, 64, ... tokens that holds the batch.
        stride: number of pieces from the start of one window to that of the next; limited to the
            room for the context in a row, so that no piece is skipped.
        max_question_length: maximum number of pieces of a question.

    Call arguments:
        x: a tuple (questions, contexts) of two strings, or of two batches of strings [B].

    Returns:
        A dict of int32 tensors `token_ids`, `segment_ids`, `padding_mask` of shape [R, T], R >= B.
        `encode` also returns the question of each row.

    Raises:
        ValueError: if a setting leaves no room for the context, or `padding` is unknown.
    """

    settings = ("sequence_length", "padding", "stride", "max_question_length")
    expects = "(questions, contexts)"
    columns = (2, 2)
    rows_of_texts = "span_labels, with the rows of encode"

    def __init__(
        self,
        tokenizer: BertTokenizer,
        sequence_length: int = 384,
        padding: str = "bucket",
        stride: int = 128,
        max_question_length: int = 64,
        **kwargs,
    ):
        super().__init__(tokenizer, sequence_length, padding, **kwargs)
        stride = check_count("stride", stride)
        max_question_length = check_count("max_question_length", max_question_length)
        if sequence_length - max_question_length - 3 < 1:
            raise ValueError(
                f"sequence_length={sequence_length}: expected {max_question_length + 4} or more, "
                f"room for [CLS], [SEP], [SEP], max_question_length={max_question_length} pieces "
                "of a question and a context, or a smaller max_question_length"
            )
        self.stride = stride
        self.max_question_length = max_question_length

    @classmethod
    def completed(cls, settings: dict, positions: int | None) -> dict:
        """As `BertClassifierPreprocessor.completed`, with run_squad.py's defaults, or what fits.

        They are rows of 384 tokens, questions of 64 pieces and a stride of 128 pieces.
        """
        length = settings.get("sequence_length") or min(384, positions or 384)
        question = settings.get("max_question_length", min(64, length // 2))
        # Windows of short rows overlap by half, so that an answer lies whole in one.
        stride = max(1, min(128, (length - 3 - question) // 2))
        found = {"sequence_length": length, "max_question_length": question, "stride": stride}
        return found | settings

    def pack(self, segments: tuple, padding: str | None = None):
        """As `BertClassifierPreprocessor.pack`, for a tuple (questions, contexts)."""
        return self.encode(*segments, padding).ids()

    def encode(self, questions, contexts, padding: str | None = None) -> QuestionRows:
        """Converts questions and contexts to rows with their origin and offsets.

        Args:
            questions: strings [B], or one string.
            contexts: of the same shape.
            padding: overrides the preprocessor's.

        Returns:
            `QuestionRows`, at least one row for each question.
        """
        import tensorflow as tf

        from keras_bert.text.lines import text_columns

        with tf.device("cpu"):
            columns = text_columns((questions, contexts))
            questions, contexts = (tf.reshape(column, [-1]) for column in columns)
            question = self.tokenizer.tokenize(questions)[:, : self.max_question_length]
            pieces, starts, ends = self.tokenizer.tokenize_with_offsets(contexts, unit="char")
            lengths = tf.cast(pieces.row_lengths(), tf.int32)  # [B]
            room = self.sequence_length - 3 - tf.cast(question.row_lengths(), tf.int32)
            windows = cut(lengths, room, self.stride)
            question = tf.gather(question, windows.text)

            # The flat index of each window's first piece among those of all contexts, [R].
            first = tf.cast(tf.gather(pieces.row_starts(), windows.text), tf.int32) + windows.start
            batch = self._joined([question, take(pieces, windows)], padding)

            begin = tf.cast(question.row_lengths(), tf.int32) + 2  # [R]
            place = tf.range(tf.shape(batch["token_ids"])[1])[None, :] - begin[:, None]  # [R, T]
            inside = (place >= 0) & (place < windows.length[:, None])
            flat = tf.where(inside, first[:, None] + place, tf.size(pieces.flat_values))
            width = tf.reduce_max(tf.concat([windows.length, [1]], 0))
            most = has_most_context(windows, lengths, width)  # [R, width]
            most = tf.gather(most, tf.clip_by_value(place, 0, width - 1), batch_dims=1)
            return QuestionRows(
                **batch,
                example=windows.text,
                context_begin=begin,
                window_start=windows.start,
                starts=tf.gather(tf.concat([starts.flat_values, [-1]], 0), flat),
                ends=tf.gather(tf.concat([ends.flat_values, [-1]], 0), flat),
                most_context=inside & most,
            )


def span_labels(rows: QuestionRows, starts, ends):
    """The columns of the answer in each row.

    The answer's pieces are those that overlap it by a character. The label of a row whose window
    lacks any of them is [CLS]. Reference: google-research/bert `run_squad.py`,
    `convert_examples_to_features`.

    Args:
        rows: rows of N questions.
        starts: int tensor [N], the first character of each answer in its context.
        ends: int tensor [N], one after the last; at most the start if there is no answer.

    Returns:
        (labels, found): int32 [R, 2], the columns of the first and the last piece of the answer,
        or 0, 0; and bool [N], whether the answer has pieces at all.
    """
    import tensorflow as tf

    with tf.device("cpu"):
        starts, ends = tf.cast(starts, tf.int32), tf.cast(ends, tf.int32)
        start, end = (tf.gather(side, rows.example)[:, None] for side in (starts, ends))  # [R, 1]
        touched = (rows.starts >= 0) & (rows.starts < end) & (rows.ends > start)  # [R, T]
        # Every piece has maximum context in exactly one row, so this counts each once.
        once = tf.reduce_sum(tf.cast(touched & rows.most_context, tf.int32), axis=1)
        whole = tf.math.unsorted_segment_sum(once, rows.example, tf.size(starts))  # [N]
        here = tf.reduce_sum(tf.cast(touched, tf.int32), axis=1)
        holds = (here > 0) & (here == tf.gather(whole, rows.example))  # [R]
        first = tf.argmax(touched, axis=1, output_type=tf.int32)
        labels = tf.stack([first, first + here - 1], axis=1)
        return tf.where(holds[:, None], labels, 0), whole > 0
