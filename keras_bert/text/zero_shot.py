"""What an inference model's logits say about candidate labels. TensorFlow, in graph."""


def candidate_probabilities(logits, entailment: int, contradiction: int | None, several: bool):
    """Turns logits of (text, hypothesis) pairs into probabilities of the candidates.

    Rule: Yin et al. 2019 (arXiv:1909.00161) as transformers' zero-shot pipeline has it.

    Args:
        logits: float [B, C, K], of each text with the hypothesis of each candidate.
        entailment: which of the K classes is entailment.
        contradiction: which is contradiction; read only if `several`.
        several: False where one candidate is true: a softmax of the entailment logits over the
            candidates. True where each may be: for each a softmax over contradiction and
            entailment.

    Returns:
        float32 [B, C].
    """
    import tensorflow as tf

    logits = tf.cast(logits, tf.float32)
    if not several:
        return tf.nn.softmax(logits[..., entailment], axis=-1)
    return tf.nn.sigmoid(logits[..., entailment] - logits[..., contradiction])
