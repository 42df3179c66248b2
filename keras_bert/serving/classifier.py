"""A classifier as a SavedModel: strings in, label and probability out."""

from pathlib import Path

import keras

from keras_bert.atomic import write_folder


def export_classifier(classifier, path: str | Path, text: bool = True) -> list[str]:
    """Writes a classifier as a SavedModel.

    Signatures, all for any number of rows:
      `serving_default`: `text`, string [B]; gives `label`, string [B] (the id in digits where
        the classifier has no names), `probability` of that label, float32 [B], and `logits`,
        float32 [B, K]. Of a multi-label problem it gives `labels`, string [B, K], all of them,
        their `probabilities`, float32 [B, K], `given`, int32 [B, K], 1 for those that reach their
        threshold, and `logits`; of a regression `values`, float32 [B, K].
      `pair`: `text` and `text_pair`, string [B] each; gives the same.
      `tokens`: `token_ids`, `segment_ids`, `padding_mask`, int32 [B, T] of any length up to the
        model's positions; gives `logits`, float32 [B, K].

    The vocabulary is inside. The string signatures run ops of TensorFlow Text: TensorFlow Serving
    has them built in, a Python process must import tensorflow_text. With `text=False` there is
    `tokens` alone, as `serving_default` too, and plain TensorFlow loads it.

    Args:
        classifier: a `BertClassifier`.
        path: the folder to make, or the SavedModel to replace.
        text: whether to add the signatures that take strings.

    Returns:
        Names of the TensorFlow Text ops in the graph.

    Raises:
        FileExistsError: if the folder holds something else.
        ValueError: if `text` is asked of a classifier without preprocessor.
    """
    import tensorflow as tf

    if text and classifier.preprocessor is None:
        raise ValueError("this classifier has no preprocessor: pass text=False to export ids alone")
    positions = classifier.backbone.max_sequence_length
    names = classifier.labels or [str(i) for i in range(classifier.num_classes)]

    def tokens(token_ids, segment_ids, padding_mask):
        length = tf.shape(token_ids)[1]
        message = f"token_ids are longer than {positions}, the positions of the model"
        with tf.control_dependencies(
            [tf.debugging.assert_less_equal(length, positions, message=message)]
        ):
            inputs = {
                "token_ids": tf.identity(token_ids),
                "segment_ids": segment_ids,
                "padding_mask": padding_mask,
            }
        return {"logits": classifier(inputs, training=False)}

    def answer(*segments):
        logits = tokens(**classifier.preprocessor.pack(segments))["logits"]
        if classifier.problem == "regression":
            return {"values": logits}
        labels = tf.constant(names)
        if classifier.problem == "multi_label":
            probabilities = tf.sigmoid(logits)
            return {
                "labels": tf.broadcast_to(labels, tf.shape(logits)),
                "probabilities": probabilities,
                "given": tf.cast(probabilities >= classifier.thresholds, tf.int32),
                "logits": logits,
            }
        return {
            "label": tf.gather(labels, tf.argmax(logits, axis=-1)),
            "probability": tf.reduce_max(tf.nn.softmax(logits), axis=-1),
            "logits": logits,
        }

    def strings(name):
        return tf.TensorSpec([None], tf.string, name=name)

    ids = [
        tf.TensorSpec([None, None], tf.int32, name=name)
        for name in ("token_ids", "segment_ids", "padding_mask")
    ]
    archive = keras.export.ExportArchive()
    archive.track(classifier)
    if text:
        archive.add_endpoint("serving_default", lambda text: answer(text), [strings("text")])
        archive.add_endpoint(
            "pair",
            lambda text, text_pair: answer(text, text_pair),
            [strings("text"), strings("text_pair")],
        )
    else:
        archive.add_endpoint("serving_default", tokens, ids)
    archive.add_endpoint("tokens", tokens, ids)
    write_folder(path, lambda folder: archive.write_out(folder, verbose=False), FILES)
    return _text_ops(path)


def _text_ops(path: str | Path) -> list[str]:
    """Reads which TensorFlow Text ops a SavedModel holds."""
    from tensorflow.core.protobuf import saved_model_pb2

    model = saved_model_pb2.SavedModel.FromString((Path(path) / "saved_model.pb").read_bytes())
    graph = model.meta_graphs[0].graph_def
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    return sorted({node.op for node in nodes if node.op.startswith(_TEXT_OP_PREFIXES)})


# What a SavedModel has at its top.
FILES = ("*.pb", "variables", "assets", "assets.extra")

# Ops that only TensorFlow Text registers, by the start of their names.
_TEXT_OP_PREFIXES = (
    "FastBertNormalize",
    "FastWordpiece",
    "WordpieceTokenize",
    "Whitespace",
    "TFText",
)
