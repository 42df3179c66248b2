"""Preprocessor of the embedder, and nearest neighbours of its embeddings."""

import math

import keras

from keras_bert.text.classifier_preprocessor import BertClassifierPreprocessor


@keras.saving.register_keras_serializable(package="keras_bert")
class BertTextEmbedderPreprocessor(BertClassifierPreprocessor):
    """Converts each text to a row, [CLS] text [SEP]; the texts of an example stay together.

    Args:
        tokenizer: a `BertTokenizer`.
        sequence_length: maximum number of tokens in a row; longer texts are truncated.
        padding: "full" or "bucket", as in `BertClassifierPreprocessor`.
        tail: as in `BertClassifierPreprocessor`.

    Call arguments:
        x: a string; strings [B]; or a tuple of two or more of these: first texts, second texts, and
            negatives, which may also be strings [B, M], M per example.
        y: labels, passed through.
        sample_weight: weights, passed through.

    Returns:
        A dict of int32 tensors `token_ids`, `segment_ids`, `padding_mask` of shape [B, C, T],
        where C is the number of texts per example; [C, T] for one string. With `y` or
        `sample_weight`, a tuple (x, y, sample_weight) as in Keras.
    """

    columns = (1, math.inf)

    def pack(self, segments: tuple, padding: str | None = None):
        """As `BertClassifierPreprocessor.pack`, for any number of texts; negatives also [B, M]."""
        import tensorflow as tf

        from keras_bert.text.lines import text_columns, to_strings

        columns = list(segments[:2])
        for negatives in map(to_strings, segments[2:]):
            several = isinstance(negatives, tf.Tensor) and negatives.shape.rank == 2
            columns += tf.unstack(negatives, axis=1) if several else [negatives]
        texts = tf.stack(text_columns(columns), axis=-1)  # [B, C] or [C]
        rows = super().pack((tf.reshape(texts, [-1]),), padding)
        for name, value in rows.items():
            shape = tf.concat([tf.shape(texts), tf.shape(value)[1:]], axis=0)
            rows[name] = tf.ensure_shape(tf.reshape(value, shape), [*texts.shape, None])
        return rows


def nearest(queries, corpus, top_k: int):
    """Finds the `top_k` embeddings of a corpus, [N, H], with the highest cosine similarity.

    Returns for queries [Q, H] a dict: `indices`, int32 [Q, top_k], and `scores`, float32 [Q,
    top_k], in descending order; ties keep the order of the corpus.
    """
    import tensorflow as tf

    cosines = tf.matmul(_units(queries), _units(corpus), transpose_b=True)  # [Q, N]
    scores, indices = tf.math.top_k(cosines, top_k)
    return {"indices": indices, "scores": scores}


def cosine(firsts, seconds):
    """The cosine similarity of pairs of embeddings, two float [N, H] to float32 [N]."""
    import tensorflow as tf

    return tf.reduce_sum(_units(firsts) * _units(seconds), axis=-1)


def _units(embeddings):
    import tensorflow as tf

    return tf.math.l2_normalize(tf.cast(embeddings, tf.float32), axis=-1, epsilon=1e-24)
