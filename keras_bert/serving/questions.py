"""Questions and contexts to answers."""

from keras_bert.serving.signatures import Signature, check_texts, texts_spec
from keras_bert.text.answers import choose, decode


def signatures(
    task, run, n_best: int = 20, max_answer_length: int = 30, top_k: int | None = None
) -> dict[str, Signature]:
    """`serving_default`, one answer, and `candidates`, the best ones.

    Both take `question` and `context`, string [B]. `serving_default` gives `answer`, string [B],
    characters of the context, "" for no answer; `start` and `end`, int32 [B], its first character
    in the context and the one after its last, 0 for no answer; `score`, float32 [B], its
    probability among the `n_best`; and `null_score`, float32 [B], how much better no answer scores
    than the best one. Whether there may be none is the task's `null_threshold`.

    `candidates` gives the `top_k` best, best first: `answer`, `start`, `end` and `score` [B, K],
    filled up with "", -1 and 0, and `count`, int32 [B].

    Args:
        task: a `BertQuestionAnswerer` with a preprocessor.
        run: its `Network`.
        n_best: as in `BertQuestionAnswerer.answer`, as the next two.
        max_answer_length: the most pieces of an answer.
        top_k: candidates that `candidates` gives; 5 by default, or `n_best` where that is less.
    """
    import tensorflow as tf

    top_k = min(5, n_best) if top_k is None else top_k
    if not 1 <= top_k <= n_best:
        raise ValueError(f"top_k={top_k}: expected 1 to n_best={n_best}")
    threshold = task.null_threshold

    def best(question, context):
        question, context = check_texts(question=question, context=context)
        rows = task.preprocessor.encode(question, context)
        logits = run(rows.ids())
        return decode(
            logits["start"],
            logits["end"],
            rows,
            context,
            threshold is not None,
            n_best,
            max_answer_length,
        )

    def answer(question, context):
        found = best(question, context)
        place = choose(found, threshold)
        return {
            "answer": tf.gather(found.text, place),
            "start": tf.gather(found.start, place),
            "end": tf.gather(found.end, place),
            "score": tf.cast(tf.gather(found.probability, place), tf.float32),
            "null_score": tf.cast(found.null_score, tf.float32),
        }

    def candidates(question, context):
        found = best(question, context)

        def dense(values, default):
            rows = tf.RaggedTensor.from_row_splits(values, found.row_splits, validate=False)
            return rows[:, :top_k].to_tensor(default, shape=[None, top_k])

        counts = found.row_splits[1:] - found.row_splits[:-1]
        return {
            "answer": dense(found.text, ""),
            "start": dense(found.start, -1),
            "end": dense(found.end, -1),
            "score": dense(tf.cast(found.probability, tf.float32), 0.0),
            "count": tf.cast(tf.minimum(counts, top_k), tf.int32),
        }

    specs = [texts_spec("question"), texts_spec("context")]
    example = {
        "question": ["What froze?", ""],
        "context": ["The harbour froze in the night.", "Ships lay still."],
    }
    return {
        "serving_default": Signature(answer, specs, example),
        "candidates": Signature(candidates, specs, example),
    }
