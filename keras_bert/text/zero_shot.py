"""Zero-shot scores of candidate labels from NLI logits. TensorFlow, in graph."""


def candidate_probabilities(logits, entailment: int, contradiction: int | None, several: bool):
    """Converts logits of (text, hypothesis) pairs to probabilities of the candidates.

    Reference: Yin et al. 2019 (arXiv:1909.00161), as in transformers' zero-shot pipeline.

    Args:
        logits: float [B, C, K], for each text and the hypothesis of each candidate.
        entailment: index of the class entailment.
        contradiction: index of the class contradiction; used only if `several`.
        several: if False, exactly one candidate is true: a softmax of the entailment logits over
            the candidates. If True, each may be true: a softmax over contradiction and entailment
            for each.

    Returns:
        float32 [B, C].
    """
    import tensorflow as tf

    logits = tf.cast(logits, tf.float32)
    if not several:
        return tf.nn.softmax(logits[..., entailment], axis=-1)
    return tf.nn.sigmoid(logits[..., entailment] - logits[..., contradiction])
