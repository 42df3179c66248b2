"""Texts with two entities to their relation."""

from keras_bert.serving.signatures import (
    Signature,
    check_ranks,
    check_texts,
    label_tensor,
    texts_spec,
)


def signatures(task, run) -> dict[str, Signature]:
    """`serving_default`: `text`, string [B], and `spans`, int32 [B, 2, 2].

    A span is the first character of an entity and the one after its last. It gives `label`, string
    [B], `probability` of it, float32 [B], and `logits`, float32 [B, K].

    Args:
        task: a `BertRelationClassifier` with a preprocessor.
        run: its `Network`.
    """
    import tensorflow as tf

    names = label_tensor(task.labels, task.num_classes)

    def relate(text, spans):
        (text,) = check_texts(text=text)
        (spans,) = check_ranks(spans=spans)
        starts, ends = tf.unstack(tf.reshape(spans, [-1, 2]), axis=1)
        wrong = starts >= ends
        row = tf.argmax(tf.pad(wrong, [[0, 1]])) // 2
        empty = tf.Assert(~tf.reduce_any(wrong), ["input 'spans' has an empty one, in row", row])
        with tf.control_dependencies([empty]):
            spans = tf.identity(spans)
        sizes = tf.shape(text)[0], tf.shape(spans)[0]
        message = "inputs 'text' and 'spans' have different numbers of rows:"
        with tf.control_dependencies([tf.Assert(sizes[0] == sizes[1], [message, *sizes])]):
            logits = run(task.preprocessor.pack((text, spans)))
        return {
            "label": tf.gather(names, tf.argmax(logits, axis=-1)),
            "probability": tf.reduce_max(tf.nn.softmax(logits), axis=-1),
            "logits": logits,
        }

    specs = [texts_spec("text"), tf.TensorSpec([None, 2, 2], tf.int32, name="spans")]
    example = {"text": ["The storm sank a ship."], "spans": [[[4, 9], [17, 21]]]}
    return {"serving_default": Signature(relate, specs, example)}
