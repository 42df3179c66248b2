"""Contexts with choices to the best choice."""

from keras_bert.serving.signatures import EXAMPLES, Signature, check_texts, texts_spec
from keras_bert.text.multiple_choice_preprocessor import best_choices


def signatures(task, run) -> dict[str, Signature]:
    """`serving_default`: `context`, string [B], and `choices`, string [B, C]; "" is no choice.

    It gives `choice`, int32 [B], from 0 to C - 1, its `text`, string [B], and `probabilities` and
    `logits`, float32 [B, C].

    Args:
        task: a `BertMultipleChoice` with a preprocessor.
        run: its `Network`.
    """
    import tensorflow as tf

    def choose(context, choices):
        columns = check_texts(context=context, choices=choices)
        counts = tf.reduce_sum(tf.cast(choices != "", tf.int32), axis=1)
        message = "input 'choices' has less than two for a context:"
        with tf.control_dependencies([tf.Assert(tf.reduce_all(counts > 1), [message, counts])]):
            logits = run(task.preprocessor.pack(tuple(columns)))
        found = best_choices(logits)
        return {
            "choice": found["choice"],
            "text": tf.gather(choices, found["choice"], batch_dims=1),
            "probabilities": found["probabilities"],
            "logits": logits,
        }

    example = {"context": EXAMPLES[:1], "choices": [["Ships lay still.", "It was hot."]]}
    specs = [texts_spec("context"), texts_spec("choices", axes=2)]
    return {"serving_default": Signature(choose, specs, example)}
