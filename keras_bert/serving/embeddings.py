"""Texts to embeddings."""

from keras_bert.serving.signatures import EXAMPLES, Signature, check_texts, texts_spec
from keras_bert.text.embedder_preprocessor import cosine


def signatures(task, run) -> dict[str, Signature]:
    """`serving_default`, of texts, and `similarity`, of pairs of texts.

    The first takes `text`, string [B], and gives `embedding`, float32 [B, H]; the second takes
    `text_pair` too, and gives the `cosine` of both texts' embeddings, float32 [B].

    Args:
        task: a `BertTextEmbedder` with a preprocessor.
        run: its `Network`.
    """
    import tensorflow as tf

    before = task.prompts.get(task.default_prompt, "")

    def vectors(text):
        text = tf.strings.join([before, text]) if before else text
        rows = task.preprocessor.pack((text,))  # [B, 1, T]
        return run({name: tf.squeeze(value, 1) for name, value in rows.items()})

    def embed(text):
        return {"embedding": vectors(*check_texts(text=text))}

    def similarity(text, text_pair):
        columns = check_texts(text=text, text_pair=text_pair)
        return {"cosine": cosine(*map(vectors, columns))}

    specs = [texts_spec("text"), texts_spec("text_pair")]
    pairs = {"text": EXAMPLES[:1], "text_pair": ["Ice lay on the water in the morning."]}
    return {
        "serving_default": Signature(embed, specs[:1], {"text": EXAMPLES}),
        "similarity": Signature(similarity, specs, pairs),
    }
