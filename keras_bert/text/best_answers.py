"""Decodes start and end logits into answers. TensorFlow, in graph."""

from typing import Any, NamedTuple

from keras_bert.arguments import check_count
from keras_bert.text.question_answering_preprocessor import QuestionRows
from keras_bert.text.substrings import substrings

# The logit of padding: 0 after a softmax, and the sum of two is finite.
NO_TOKEN = -1e9


class NBest(NamedTuple):
    """The n-best lists of N questions, C candidates in total, grouped by question, best first.

    Attributes:
        row_splits: int64 [N + 1], the boundaries of the questions; each has at least one candidate.
        text: string [C]; "" for no answer.
        start: int32 [C], first character in the context, in code points; 0 for no answer.
        end: int32 [C], one after the last character; 0 for no answer.
        start_logit: float64 [C], logit of the first piece.
        end_logit: float64 [C], logit of the last piece.
        probability: float64 [C], a softmax over the candidates of a question.
        null_score: float64 [N], the score difference between no answer and the best answer: the
            sum of [CLS]'s two logits, minimum over the windows, minus the best answer's sum, which
            is 2 * NO_TOKEN if no span is valid.
        best: int32 [N], index in C of the best non-empty answer; that of no answer if no span is
            valid.
        null: int32 [N], index in C of no answer; -1 if it is not a candidate.
    """

    row_splits: Any
    text: Any
    start: Any
    end: Any
    start_logit: Any
    end_logit: Any
    probability: Any
    null_score: Any
    best: Any
    null: Any


def decode(
    start_logits,
    end_logits,
    rows: QuestionRows,
    contexts,
    with_null: bool = False,
    n_best: int = 20,
    max_answer_length: int = 30,
    temperature: float = 1.0,
) -> NBest:
    """Finds the best answers to each question over all of its windows.

    Reference: google-research/bert `run_squad.py`, `write_predictions`. The `n_best` best starts
    and ends of each row are paired. A pair is valid if both are in the context, the row is the one
    with maximum context for the start, and the answer has 1 to `max_answer_length` pieces. Pairs
    are sorted by the sum of their logits, duplicates of a text are dropped, and the `n_best` best
    are kept. Ties go to the leftmost.

    There are three differences: padding is excluded; an answer is an exact substring of the
    context; and if no span is valid, the only answer is "".

    Args:
        start_logits: float tensor [R, T].
        end_logits: float tensor [R, T].
        rows: the rows of the logits.
        contexts: strings [N].
        with_null: whether no answer is a candidate too, as in SQuAD 2.0. It is kept at any rank.
        n_best: see above.
        max_answer_length: see above.
        temperature: divides the sums of two logits before the softmax of `probability`.

    Returns:
        `NBest`.

    Raises:
        ValueError: if `n_best` is less than 2 or `max_answer_length` less than 1.
    """
    import tensorflow as tf

    check_count("n_best", n_best, 2)
    check_count("max_answer_length", max_answer_length)
    with tf.device("cpu"):  # strings, and sorting, which must be deterministic
        contexts = tf.reshape(tf.convert_to_tensor(contexts, tf.string), [-1])
        number, count = tf.size(contexts), tf.shape(rows.starts)[0]
        real = rows.padding_mask != 0
        # In float64, where the sum of two float32 is exact.
        logits = [
            tf.where(real, tf.cast(side, tf.float64), NO_TOKEN)
            for side in (start_logits, end_logits)
        ]

        # === All pairs of the best starts and ends, K * K per row ===
        best = tf.minimum(n_best, tf.shape(real)[1])
        (start_logit, start), (end_logit, end) = (tf.math.top_k(side, best) for side in logits)
        row, start, end = (  # [R * K * K], ends fastest
            tf.reshape(tf.broadcast_to(side, [count, best, best]), [-1])
            for side in (tf.range(count)[:, None, None], start[:, :, None], end[:, None, :])
        )
        start_logit = tf.repeat(tf.reshape(start_logit, [-1]), best)
        end_logit = tf.reshape(tf.repeat(end_logit, best, axis=0), [-1])
        begin, last = tf.stack([row, start], axis=1), tf.stack([row, end], axis=1)
        length = end - start + 1
        valid = tf.gather_nd(rows.most_context, begin) & (tf.gather_nd(rows.ends, last) >= 0)
        valid &= (length >= 1) & (length <= max_answer_length)
        start_logit, end_logit, row, begin, last = (
            tf.boolean_mask(side, valid) for side in (start_logit, end_logit, row, begin, last)
        )
        example = tf.gather(rows.example, row)  # [C]
        starts, ends = tf.gather_nd(rows.starts, begin), tf.gather_nd(rows.ends, last)

        # === No answer: the minimum sum of [CLS]'s logits over the windows ===
        nulls = [side[:, 0] for side in logits]  # [R] each
        null_sum = tf.math.unsorted_segment_min(nulls[0] + nulls[1], rows.example, number)  # [N]
        least = nulls[0] + nulls[1] <= tf.gather(null_sum, rows.example)
        least = tf.where(least, tf.range(count), count)
        null_row = tf.math.unsorted_segment_min(least, rows.example, number)  # the first such row
        answered = tf.math.unsorted_segment_sum(tf.ones_like(example), example, number) > 0
        added = tf.range(number)
        if not with_null:
            added = tf.boolean_mask(added, ~answered)
        zeros = tf.zeros_like(added)
        null_row = tf.gather(null_row, added)
        # After all pairs, so that pairs win ties.
        is_null = tf.concat([tf.zeros_like(example, tf.bool), tf.ones_like(added, tf.bool)], 0)
        example = tf.concat([example, added], 0)
        start, end = tf.concat([starts, zeros], 0), tf.concat([ends, zeros], 0)
        start_logit = tf.concat([start_logit, tf.gather(nulls[0], null_row)], 0)
        end_logit = tf.concat([end_logit, tf.gather(nulls[1], null_row)], 0)
        candidates = (example, is_null, start, end, start_logit, end_logit)

        # === Sorted, without duplicates ===
        order = tf.argsort(start_logit + end_logit, direction="DESCENDING", stable=True)
        order = tf.gather(order, tf.argsort(tf.gather(example, order), stable=True))
        example, is_null, start, end, start_logit, end_logit = (
            tf.gather(side, order) for side in candidates
        )
        text = substrings(contexts, example, start, end)
        kind = tf.where(is_null, "none ", "span ")
        key = tf.strings.join([kind, tf.strings.as_string(example), " ", text])
        kinds, kind = tf.unique(key)
        kept = tf.math.unsorted_segment_min(tf.range(tf.size(kind)), kind, tf.size(kinds))
        example, is_null = tf.gather(example, kept), tf.gather(is_null, kept)
        counts = tf.math.unsorted_segment_sum(tf.ones_like(example), example, number)
        first = tf.gather(tf.cumsum(counts, exclusive=True), example)
        rank = tf.range(tf.size(example)) - first  # within the question, whose candidates adjoin
        chosen = tf.where((rank < n_best) | is_null)[:, 0]
        kept, example, is_null = (tf.gather(side, chosen) for side in (kept, example, is_null))
        text, start, end, start_logit, end_logit = (
            tf.gather(side, kept) for side in (text, start, end, start_logit, end_logit)
        )

        # === Scores ===
        total = start_logit + end_logit
        greatest = tf.gather(tf.math.segment_max(total, example), example)
        power = tf.exp((total - greatest) / temperature)
        probability = power / tf.gather(tf.math.segment_sum(power, example), example)
        place, size = tf.range(tf.size(example)), tf.size(example)
        null = tf.math.unsorted_segment_min(tf.where(is_null, place, size), example, number)
        best = tf.math.unsorted_segment_min(tf.where(is_null, size, place), example, number)
        best_sum = tf.gather(tf.concat([total, [2 * NO_TOKEN]], 0), best)
        counts = tf.math.unsorted_segment_sum(tf.ones_like(example, tf.int64), example, number)
        return NBest(
            row_splits=tf.concat([[tf.constant(0, tf.int64)], tf.cumsum(counts)], 0),
            text=text,
            start=start,
            end=end,
            start_logit=start_logit,
            end_logit=end_logit,
            probability=probability,
            null_score=null_sum - best_sum,
            best=tf.where(answered, best, null),
            null=tf.where(null < size, null, -1),
        )


def choose(found: NBest, null_threshold: float | None):
    """Selects the answer to each question: int32 [N], indices in `found`.

    No answer is selected if `null_score` is above `null_threshold`; None always selects the best
    answer. Reference: google-research/bert `run_squad.py`, `null_score_diff_threshold`. A threshold
    needs candidates decoded `with_null`.
    """
    import tensorflow as tf

    if null_threshold is None:
        return found.best
    with_null = tf.debugging.assert_non_negative(
        found.null, message="null_threshold: expected candidates decoded with with_null=True"
    )
    with tf.control_dependencies([with_null]):
        return tf.where(found.null_score > null_threshold, found.null, found.best)
