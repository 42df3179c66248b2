"""Texts with [MASK]s to the tokens that could stand there."""

from keras_bert.serving.signatures import EXAMPLES, Signature, check_texts, texts_spec
from keras_bert.text.packing import pack
from keras_bert.text.prompts import MASK, candidate_ids, check_has_mask, mask_positions, prompt_rows


def signatures(task, run, top_k: int | None = None, targets=None) -> dict[str, Signature]:
    """`serving_default`, what could stand for [MASK]s, and of a pre-trainer `next_sentence`.

    `serving_default` takes `text`, string [B], and gives, with M the most [MASK]s of a text:
    `token`, string, `id`, int32, and `score`, float32, all [B, M, K], the likeliest first, and
    `count`, int32 [B], how many [MASK]s there are; the rest is "", -1 and 0. A text without [MASK]
    has none.

    `next_sentence` takes `text` and `text_pair`, string [B], and gives `probability`, float32 [B],
    that the second goes on where the first ends, and `logits`, float32 [B, 2].

    Args:
        task: a `BertMaskedLM` with a preprocessor.
        run: its `Network`.
        top_k: how many tokens K to give for each [MASK]; 5 by default, or all targets.
        targets: the only tokens to choose from, see `BertMaskedLM.fill`.
    """
    import tensorflow as tf

    text_side = task.preprocessor
    tokenizer, length = text_side.tokenizer, text_side.sequence_length
    check_has_mask(tokenizer)
    size = tokenizer.vocabulary_size()
    candidates, top_k = candidate_ids(tokenizer, top_k, targets)

    def likeliest(output):
        # The backbone's table may have more rows than there are tokens.
        logits = tf.cast(output["mlm"], tf.float32)[..., :size]
        scores = tf.gather(tf.nn.softmax(logits), candidates, axis=-1)
        scores, ids = tf.math.top_k(scores, top_k)  # [R, P, K]
        return {"id": tf.gather(candidates, ids), "score": scores}

    def fill(text):
        (text,) = check_texts(text=text)
        rows = prompt_rows(text, tokenizer, length)
        ids = pack([rows.pieces], tokenizer, length, "bucket")
        positions, slots = mask_positions(rows)
        found = run(ids | {"mask_positions": positions}, likeliest)
        place = tf.stack([rows.row, slots], axis=1)

        def dense(values, default):
            rows_of_texts = tf.RaggedTensor.from_row_lengths(values, rows.counts)
            return rows_of_texts.to_tensor(default, shape=[None, None, top_k])

        ids, scores = (tf.gather_nd(found[name], place) for name in ("id", "score"))  # [M, K]
        return {
            "token": dense(tf.gather(tf.constant(tokenizer.get_vocabulary()), ids), ""),
            "id": dense(ids, -1),
            "score": dense(scores, 0.0),
            "count": rows.counts,
        }

    def next_sentence(text, text_pair):
        columns = check_texts(text=text, text_pair=text_pair)
        ids = text_side.pack(tuple(columns))
        positions = tf.zeros([tf.shape(text)[0], 1], tf.int32)
        logits = run(ids | {"mask_positions": positions}, lambda output: output["nsp"])
        return {"probability": tf.nn.softmax(logits)[:, 0], "logits": logits}

    texts = {"text": [f"The harbour {MASK} in the {MASK}.", "No ships."]}
    found = {"serving_default": Signature(fill, [texts_spec("text")], texts)}
    if "nsp" in task.output:
        specs = [texts_spec("text"), texts_spec("text_pair")]
        example = {"text": EXAMPLES[:1], "text_pair": ["Ships lay still."]}
        found["next_sentence"] = Signature(next_sentence, specs, example)
    return found
