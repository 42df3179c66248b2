"""Preprocessor for multiple choice, and decoding of its scores."""

import keras

from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor


@keras.saving.register_keras_serializable(package="keras_bert")
class BertMultipleChoicePreprocessor(BertClassifierPreprocessor):
    """Converts every choice to a row, [CLS] context [SEP] choice [SEP].

    Reference: Devlin et al. 2019, section 4.4, where SWAG's first sentence is the context and a
    continuation is a choice. Rows are truncated as by `BertClassifierPreprocessor`: pieces are
    dropped from the longer text. An empty choice does not count, and its row is padding.

    Args:
        tokenizer: a `BertTokenizer`.
        sequence_length: maximum number of tokens in a row, including [CLS] and [SEP].
        padding: "full" or "bucket", as in `BertClassifierPreprocessor`.
        tail: as in `BertClassifierPreprocessor`.

    Call arguments:
        x: a tuple (contexts, choices): strings [B] and strings [B, C], which may be ragged, or a
            string and strings [C].
        y: indices of the correct choices, passed through.
        sample_weight: weights, passed through.

    Returns:
        A dict of int32 tensors `token_ids`, `segment_ids`, `padding_mask` of shape [B, C, T], or
        [C, T] for one context; with `y` or `sample_weight`, a tuple (x, y, sample_weight) as
        in Keras.

    Raises:
        ValueError: if x is not such a tuple.
    """

    expects = "a tuple (contexts, choices)"
    columns = (2, 2)

    def pack(self, segments: tuple, padding: str | None = None):
        """As `BertClassifierPreprocessor.pack`, for a tuple (contexts, choices).

        Raises:
            ValueError: if choices are not lists of texts.
        """
        import tensorflow as tf

        from keras_bert.text.lines import text_columns, to_strings

        with tf.device("cpu"):
            (contexts,), choices = text_columns(segments[:1]), to_strings(segments[1])
            if isinstance(choices, tf.RaggedTensor):
                choices = choices.to_tensor("")
            if contexts.shape.rank == 0:
                batch = self.pack((contexts[None], choices[None]), padding)
                return {name: value[0] for name, value in batch.items()}
            lists = choices.shape.rank == 2
            if not lists or not choices.shape[:1].is_compatible_with(contexts.shape):
                raise ValueError(
                    f"choices of shape {choices.shape}: expected a list for each context, "
                    f"[{contexts.shape[0] or 'batch'}, choices]"
                )
            count = tf.shape(choices)
            row = tf.repeat(tf.range(count[0]), count[1])  # the context of each choice
            pieces = self.tokenizer.tokenize(contexts)
            seconds = self.tokenizer.tokenize(tf.reshape(choices, [-1]))
            batch = self._joined([tf.gather(pieces, row), seconds], padding)
            there = tf.cast(tf.reshape(choices, [-1, 1]) != "", tf.int32)
            batch = {name: value * there for name, value in batch.items()}
            batch["token_ids"] += (1 - there) * self.tokenizer.pad_token_id
            for name, value in batch.items():
                width = tf.shape(value)[1]
                batch[name] = tf.reshape(value, [count[0], count[1], width])
                batch[name].set_shape([contexts.shape[0], choices.shape[1], None])
            return batch


def best_choices(logits):
    """Decodes the scores of choices, float [B, C].

    Returns a dict: `choice`, int32 [B], the choice with the highest score, the first in ties;
    `probabilities`, float32 [B, C], the softmax over the choices.
    """
    import tensorflow as tf

    logits = tf.cast(logits, tf.float32)
    return {
        "choice": tf.argmax(logits, axis=-1, output_type=tf.int32),
        "probabilities": tf.nn.softmax(logits),
    }
