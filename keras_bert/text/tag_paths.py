"""Decodes a token classifier's output into a tag for each word. TensorFlow, in graph."""


def scores_of_words(logits, rows):
    """Gathers each word's scores, ragged [B, None, K], from the position that represents it.

    Args:
        logits: float32 [R, T, K], the model's output for `rows.ids`.
        rows: `TokenRows`, from `BertTokenClassifierPreprocessor.rows`.
    """
    import tensorflow as tf

    with tf.device("cpu"):
        begin = tf.gather(tf.cumsum(rows.counts, exclusive=True), rows.sentence)[:, None]
        answers = rows.word >= 0
        index = tf.boolean_mask(begin + rows.word, answers)[:, None]
        shape = tf.stack([tf.reduce_sum(rows.counts), tf.shape(logits)[-1]])
        values = tf.scatter_nd(index, tf.boolean_mask(logits, answers), shape)
        values.set_shape([None, logits.shape[-1]])
        return tf.RaggedTensor.from_row_lengths(values, rows.counts)


def best_tags(scores, chain=None):
    """Decodes scores, ragged [B, None, K], into tags and their probabilities, ragged [B, None].

    Without a chain, each word gets its most likely tag, with its softmax probability. With one,
    (transitions [K, K] from row to column, start [K], end [K]), the sentence gets its most likely
    tag sequence (Viterbi 1967), and a tag's probability is its marginal (forward-backward
    algorithm).
    """
    import tensorflow as tf

    if chain is None:
        flat = scores.flat_values
        tags = tf.argmax(flat, axis=-1, output_type=tf.int32)
        probabilities = tf.reduce_max(tf.nn.softmax(flat), axis=-1)
        return scores.with_flat_values(tags), scores.with_flat_values(probabilities)
    with tf.device("cpu"):  # many small sequential steps
        lengths = tf.cast(scores.row_lengths(), tf.int32)
        # Two more positions, so that an empty batch has some too.
        # In float64: over a long sentence, float32 sums lose the digits of the probabilities.
        emissions = tf.cast(scores.to_tensor(), tf.float64)
        emissions = tf.pad(emissions, [[0, 0], [0, 2], [0, 0]])  # [B, W, K]
        valid = tf.sequence_mask(lengths, tf.shape(emissions)[1])  # [B, W]
        steps = (tf.transpose(emissions, [1, 0, 2]), tf.transpose(valid)[:, :, None])
        chain = [tf.cast(part, tf.float64) for part in chain]
        tags = _best_path(*steps, *chain)
        logs = _marginals(*steps, *chain)
        probabilities = tf.cast(tf.exp(tf.gather(logs, tags, batch_dims=2)), tf.float32)
        return tuple(
            tf.RaggedTensor.from_tensor(tf.transpose(found), lengths)
            for found in (tags, tf.minimum(probabilities, 1.0))
        )


def _best_path(emissions, valid, transitions, start, end):
    """int32 [W, B] from [W, B, K] and [W, B, 1]; arbitrary after a sentence's end."""
    import tensorflow as tf

    stay = tf.broadcast_to(tf.range(tf.shape(emissions)[2]), tf.shape(emissions)[1:])

    def forward(state, step):
        score, _ = state
        emission, valid = step
        paths = score[:, :, None] + transitions  # [B, K, K]
        before = tf.argmax(paths, axis=1, output_type=tf.int32)
        score = tf.where(valid, tf.reduce_max(paths, axis=1) + emission, score)
        return score, tf.where(valid, before, stay)

    first = (start + emissions[0], stay)
    score, before = tf.scan(forward, (emissions[1:], valid[1:]), first)
    last = tf.argmax(score[-1] + end, axis=1, output_type=tf.int32)  # [B]
    tags = tf.scan(lambda tag, row: tf.gather(row, tag, batch_dims=1), before, last, reverse=True)
    return tf.concat([tags, last[None]], axis=0)


def _marginals(emissions, valid, transitions, start, end):
    """The log probability of each tag at each position, [W, B, K]."""
    import tensorflow as tf

    def forward(alpha, step):
        emission, valid = step
        paths = alpha[:, :, None] + transitions
        return tf.where(valid, tf.reduce_logsumexp(paths, axis=1) + emission, alpha)

    def backward(beta, step):
        emission, valid = step
        paths = (beta + emission)[:, None, :] + transitions
        return tf.where(valid, tf.reduce_logsumexp(paths, axis=2), beta)

    steps = (emissions[1:], valid[1:])
    alpha = start + emissions[0]
    alpha = tf.concat([alpha[None], tf.scan(forward, steps, alpha)], axis=0)
    beta = tf.broadcast_to(end, tf.shape(emissions)[1:])
    beta = tf.concat([tf.scan(backward, steps, beta, reverse=True), beta[None]], axis=0)
    total = tf.reduce_logsumexp(alpha[-1] + end, axis=1)  # [B]
    return alpha + beta - total[:, None]
