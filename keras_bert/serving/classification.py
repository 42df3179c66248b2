"""Texts and pairs of texts to labels."""

from keras_bert.serving.signatures import EXAMPLES, Signature, check_texts, label_tensor, texts_spec


def signatures(task, run, overlap: int | None = None) -> dict[str, Signature]:
    """`serving_default`, of texts, and `pair`, of pairs of texts; both answer alike.

    A single-label classifier gives `label` [B], of the type of its names (a string with the id's
    digits where it has none),
    `probability` of that label, float32 [B], and `logits`, float32 [B, K]. Of a multi-label
    problem it gives `labels`, string [B, K], all of them, their `probabilities`, float32 [B, K],
    `given`, int32 [B, K], 1 for those that reach their threshold, and `logits`; of a regression
    `values`, float32 [B, K].

    Args:
        task: a `BertClassifier` with a preprocessor.
        run: its `Network`.
        overlap: as in `BertClassifier.predict`; None cuts texts off that are too long.
    """
    import tensorflow as tf

    names = label_tensor(task.labels, task.num_classes)

    def logits_of(segments):
        if overlap is None:
            return run(task.preprocessor.pack(segments))
        rows, windows = task.preprocessor.pack_windows(segments, overlap)
        weights = tf.cast(tf.maximum(windows.length, 1), tf.float32)[:, None]
        count = tf.shape(segments[0])[0]
        total = tf.math.unsorted_segment_sum(run(rows) * weights, windows.text, count)
        return total / tf.math.unsorted_segment_sum(weights, windows.text, count)

    def answer(segments):
        logits = logits_of(tuple(segments))
        if task.problem == "regression":
            return {"values": logits}
        if task.problem == "multi_label":
            probabilities = tf.sigmoid(logits)
            return {
                "labels": tf.broadcast_to(names, tf.shape(logits)),
                "probabilities": probabilities,
                "given": tf.cast(probabilities >= task.thresholds, tf.int32),
                "logits": logits,
            }
        return {
            "label": tf.gather(names, tf.argmax(logits, axis=-1)),
            "probability": tf.reduce_max(tf.nn.softmax(logits), axis=-1),
            "logits": logits,
        }

    def one(text):
        return answer(check_texts(text=text))

    def pair(text, text_pair):
        return answer(check_texts(text=text, text_pair=text_pair))

    specs = [texts_spec("text"), texts_spec("text_pair")]
    pairs = {"text": EXAMPLES, "text_pair": EXAMPLES[::-1]}
    return {
        "serving_default": Signature(one, specs[:1], {"text": EXAMPLES}),
        "pair": Signature(pair, specs, pairs),
    }
