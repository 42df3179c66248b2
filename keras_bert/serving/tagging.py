"""Sentences to entities, or to a tag for each word."""

import keras

from keras_bert.serving.signatures import (
    EXAMPLES,
    Signature,
    check_ranks,
    check_texts,
    texts_spec,
)
from keras_bert.text.entities import character_offsets, find_entities, tag_places
from keras_bert.text.substrings import substrings
from keras_bert.text.tag_paths import best_tags, scores_of_words


def signatures(task, run) -> dict[str, Signature]:
    """`tags`, of texts, `words`, of texts cut into words, and where tags mark entities `entities`.

    `serving_default` is `entities`, else `tags`.

    `entities` takes `text`, string [B], and gives E the most entities of a row: `entity`, string
    [B, E], as it stands in the text, `label`, string [B, E], `start` and `end`, int32 [B, E], its
    first character and the one after its last, `score`, float32 [B, E], the mean of the
    probabilities of its words' tags, and `count`, int32 [B], how many there are; the rest of a row
    is "", -1 and 0.

    `tags` takes `text` and gives, with W the most words of a row, `word` and `tag`, string [B, W],
    `start` and `end`, int32 [B, W], `probability`, float32 [B, W], and `count`, int32 [B].

    `words` takes `words`, string [B, W], and `count`, int32 [B], how many of a row are words, and
    gives `tag` and `probability`, [B, W].

    Args:
        task: a `BertTokenClassifier` with a preprocessor.
        run: its `Network`.
    """
    import tensorflow as tf

    names = task.labels or [str(i) for i in range(task.num_classes)]
    # As values: the graph reads weights through its network alone.
    chain = task.chain and [keras.ops.convert_to_numpy(part) for part in task.chain.scores]

    def tagged(sentences):
        """(rows, tags, probabilities) of strings [B] or ragged words [B, None]."""
        rows = task.preprocessor.rows(sentences)
        scores = scores_of_words(run(rows.ids), rows)
        return rows, *best_tags(scores, chain)

    def named_tags(tags):
        return tags.with_flat_values(tf.gather(tf.constant(names), tags.flat_values))

    def tags(text):
        (text,) = check_texts(text=text)
        rows, found, probabilities = tagged(text)
        words = substrings(text, rows.starts.value_rowids(), rows.starts.values, rows.ends.values)
        return {
            "word": rows.starts.with_values(words).to_tensor(),
            "tag": named_tags(found).to_tensor(),
            "start": rows.starts.to_tensor(-1),
            "end": rows.ends.to_tensor(-1),
            "probability": probabilities.to_tensor(),
            "count": rows.counts,
        }

    def words(words, count):
        (words,) = check_texts(words=words)
        (count,) = check_ranks(count=count)
        width = tf.shape(words)[1]
        inside = tf.reduce_all((count >= 0) & (count <= width))
        same = tf.shape(count)[0] == tf.shape(words)[0]
        checks = [
            tf.Assert(same, ["inputs 'words' and 'count' have different numbers of rows"]),
            tf.Assert(inside, ["input 'count' lies outside of 0 to", width, "the words of a row"]),
        ]
        with tf.control_dependencies(checks):
            sentences = tf.RaggedTensor.from_tensor(words, count)
        _, found, probabilities = tagged(sentences)
        shape = tf.cast(tf.stack([-1, width]), found.row_splits.dtype)
        return {
            "tag": named_tags(found).to_tensor(shape=shape),
            "probability": probabilities.to_tensor(shape=shape),
        }

    def entities(text):
        (text,) = check_texts(text=text)
        rows, found, probabilities = tagged(text)
        parts = find_entities(found, probabilities, task.labels)
        starts, ends = character_offsets(parts, rows.starts, rows.ends)
        count = tf.math.unsorted_segment_sum(
            tf.ones_like(parts.sentence), parts.sentence, tf.size(text)
        )

        def dense(values, default):
            rows = tf.RaggedTensor.from_row_lengths(values, count)
            return rows.to_tensor(default)

        return {
            "entity": dense(substrings(text, parts.sentence, starts, ends), ""),
            "label": dense(parts.label, ""),
            "start": dense(starts, -1),
            "end": dense(ends, -1),
            "score": dense(parts.score, 0.0),
            "count": count,
        }

    texts = {"text": EXAMPLES}
    sentence = {"words": [["Ada", "met", "Grace"]], "count": [3]}
    specs = [texts_spec("words", axes=2), tf.TensorSpec([None], tf.int32, name="count")]
    found = {
        "tags": Signature(tags, [texts_spec("text")], texts),
        "words": Signature(words, specs, sentence),
    }
    if marks_entities(task.labels):
        found["entities"] = Signature(entities, [texts_spec("text")], texts)
    return {"serving_default": found.get("entities", found["tags"]), **found}


def marks_entities(labels: list[str] | None) -> bool:
    """Whether labels are tags such as B-PER, I-PER and O."""
    try:
        return bool(labels) and any(tag_places(labels)[1])
    except ValueError:
        return False
