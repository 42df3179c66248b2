"""Builds rows from a block of documents: sentence pairs, or continuous text.

The original (google-research/bert, create_pretraining_data.py, `create_instances_from_document`)
walks through a document: it collects sentences into a chunk up to a target length, makes a pair of
it, and continues with the next chunk. Here the random draws of a chunk belong to the sentence at
which it starts, so the chunks of all sentences are computed at once, and those that a walk from the
first sentence of a document visits are selected afterwards. The distribution is unchanged: no
sentence is visited twice.

Axes: T tokens, S sentences, D documents of the block, all concatenated; N resulting rows; L tokens
in a row. Everything is int32, seeds are int64 [2], and the same seed gives the same rows.

Imports TensorFlow, so import this module lazily.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_bert.text.padding import pair_lengths
from keras_bert.text.tokenizer import BertTokenizer

SHORTEST = 2  # tokens, the minimum target length drawn, as in the original


class Spans(NamedTuple):
    """Rows as positions in the block's tokens, each int32 [N].

    Attributes:
        first_start: first token of the first segment.
        first_length: its number of tokens.
        second_start: first token of the second segment.
        length: length of the row with its special tokens: `[CLS] first [SEP] second [SEP]`, or
            `[CLS] first [SEP]` if there is no second segment.
        labels: `next_sentence_labels`, or None if rows are not pairs.
    """

    first_start: tf.Tensor
    first_length: tf.Tensor
    second_start: tf.Tensor
    length: tf.Tensor
    labels: tf.Tensor | None


class _Block:
    """The boundaries of the sentences and documents of a block."""

    def __init__(self, sentence_lengths, sentences):
        self.size = tf.size(sentence_lengths)  # S
        self.sentences = sentences  # [D]
        self.begins = tf.cumsum(sentences, exclusive=True)  # [D] first sentence of a document
        self.document = tf.repeat(tf.range(tf.size(sentences)), sentences)  # [S]
        self.ends = tf.gather(self.begins + sentences, self.document)  # [S] first of the next one
        self.offsets = tf.pad(tf.cumsum(sentence_lengths), [[1, 0]])  # [S + 1] tokens before each

    def reach(self, begin, length):
        """One after the sentence that completes `length` tokens, starting from `begin`."""
        return tf.searchsorted(self.offsets, tf.gather(self.offsets, begin) + length)

    def walk(self, following):
        """The sentences that are reachable from the first of each document, [N], ascending.

        `following` [S] is the successor of each sentence: a later one, or the end of the document.
        """
        last = self.size
        jump = tf.pad(
            tf.where(following == self.ends, last, following), [[0, 1]], constant_values=last
        )
        reached = tf.scatter_nd(
            self.begins[:, None], tf.ones_like(self.begins), tf.expand_dims(last + 1, 0)
        )
        # After k rounds all sentences within 2^k - 1 steps of a start are reached.
        _, reached = tf.while_loop(
            lambda jump, reached: tf.reduce_any(jump < last),
            lambda jump, reached: (
                tf.gather(jump, jump),
                tf.maximum(reached, tf.math.unsorted_segment_max(reached, jump, last + 1)),
            ),
            (jump, reached),
            shape_invariants=(tf.TensorShape([None]), tf.TensorShape([None])),
        )
        return tf.cast(tf.where(reached[:-1])[:, 0], tf.int32)


def next_sentence_spans(
    sentence_lengths: tf.Tensor,
    sentences: tf.Tensor,
    sequence_length: int,
    short_seq_prob: float,
    seed: tf.Tensor,
    alone: bool = False,
) -> Spans:
    """Pairs for next sentence prediction, in random order; label 0 is the true next, 1 a random.

    The algorithm of the original, see above. A random second segment starts at a random sentence of
    another document of the block, uniformly chosen.

    If the corpus is a single document (`alone`), a random second segment comes from the document
    itself: it starts neither in the first segment nor with the sentence after it, and an earlier
    one ends before the first segment. If that is impossible, the pair is a true one.

    Args:
        sentence_lengths: [S], number of tokens of each sentence, at least 1.
        sentences: [D], number of sentences of each document, at least 1; D is at least 2, or 1 if
            `alone`, with at least 2 sentences.
        sequence_length: L.
        short_seq_prob: fraction of the documents whose target length is drawn from 2 to L - 3
            instead of being L - 3.
        seed: seed of all draws.
        alone: whether the corpus is a single document.
    """
    seeds = tf.unstack(tf.random.split(seed, 8, alg="philox"))
    block = _Block(sentence_lengths, sentences)
    target = _targets(tf.shape(sentences), sequence_length - 3, short_seq_prob, seeds[0])
    target = tf.gather(target, block.document)  # [S]
    begin = tf.range(block.size)
    end = tf.minimum(block.reach(begin, target), block.ends)
    count = end - begin
    shape = tf.shape(begin)
    split = begin + 1 + _integers(shape, seeds[1]) % tf.maximum(count - 1, 1)
    random = (count == 1) | (_integers(shape, seeds[2]) % 2 == 1)
    if alone:  # number of sentences at which a random segment may start
        free = block.size - (split - begin) - tf.cast(split < block.size, tf.int32)
        random &= free > 0
        end = tf.where(random, end, tf.maximum(end, tf.minimum(split + 1, block.size)))
    # The sentences of a chunk that a random segment replaced are used again.
    chunks = block.walk(tf.where(random, split, end))
    chunks = tf.random.experimental.stateless_shuffle(chunks, seeds[3], alg="philox")

    begin, split, end, random, target, document = (
        tf.gather(value, chunks) for value in (begin, split, end, random, target, block.document)
    )
    shape = tf.shape(chunks)
    if alone:
        start = _integers(shape, seeds[4]) % tf.maximum(tf.gather(free, chunks), 1)
        limit = tf.where(start < begin, begin, block.size)
        start += tf.where(start < begin, 0, split - begin + 1)
    else:
        several = tf.debugging.assert_greater(
            tf.size(sentences), 1, "block: expected at least 2 documents for random next sentences"
        )
        with tf.control_dependencies([several] if several is not None else []):
            other = _integers(shape, seeds[4]) % tf.maximum(tf.size(sentences) - 1, 1)
        other += tf.cast(other >= document, tf.int32)
        size, limit = tf.gather(sentences, other), tf.gather(block.begins, other)
        start = limit + _integers(shape, seeds[5]) % size
        limit += size
    first_length = tf.gather(block.offsets, split) - tf.gather(block.offsets, begin)
    start = tf.where(random, start, split)
    wanted = tf.maximum(target - first_length, 1)  # at least one sentence
    limit = tf.where(random, tf.minimum(block.reach(start, wanted), limit), end)
    return _pairs(
        tf.gather(block.offsets, begin),
        first_length,
        tf.gather(block.offsets, start),
        tf.gather(block.offsets, limit) - tf.gather(block.offsets, start),
        tf.cast(random, tf.int32),
        sequence_length,
        seeds[6:],
    )


def sentence_order_spans(
    sentence_lengths: tf.Tensor,
    sentences: tf.Tensor,
    sequence_length: int,
    short_seq_prob: float,
    seed: tf.Tensor,
) -> Spans:
    """Pairs for sentence order prediction, in random order; label 0 is in order, 1 is swapped.

    As in ALBERT (google-research/albert, create_pretraining_data.py): chunks as for next sentence
    prediction, split between two sentences, and half of them swapped. ALBERT uses a random second
    segment for a chunk of one sentence, and labels it as swapped; here no pair is random. A chunk
    has at least two sentences: a single last sentence of a document is paired with the previous
    one, and a document of one sentence is split in the middle.

    Args: as in `next_sentence_spans`.
    """
    seeds = tf.unstack(tf.random.split(seed, 6, alg="philox"))
    block = _Block(sentence_lengths, sentences)
    target = _targets(tf.shape(sentences), sequence_length - 3, short_seq_prob, seeds[0])
    begin = tf.range(block.size)
    end = tf.maximum(block.reach(begin, tf.gather(target, block.document)), begin + 2)
    end = tf.minimum(end, block.ends)
    split = begin + 1 + _integers(tf.shape(begin), seeds[1]) % tf.maximum(end - begin - 1, 1)
    chunks = block.walk(end)
    chunks = tf.random.experimental.stateless_shuffle(chunks, seeds[2], alg="philox")

    begin, split, end, document = (
        tf.gather(value, chunks) for value in (begin, split, end, block.document)
    )
    left_alone = (end - begin == 1) & (begin > tf.gather(block.begins, document))
    split = tf.where(left_alone, begin, split)
    begin = tf.where(left_alone, begin - 1, begin)
    begin, split, end = (tf.gather(block.offsets, place) for place in (begin, split, end))
    split = tf.where(split == end, (begin + end + 1) // 2, split)  # one sentence
    swapped = _integers(tf.shape(chunks), seeds[3]) % 2
    straight = swapped == 0
    return _pairs(
        tf.where(straight, begin, split),
        tf.where(straight, split - begin, end - split),
        tf.where(straight, split, begin),
        tf.where(straight, end - split, split - begin),
        swapped,
        sequence_length,
        seeds[4:],
    )


def next_or_order_spans(
    sentence_lengths: tf.Tensor,
    sentences: tf.Tensor,
    sequence_length: int,
    short_seq_prob: float,
    seed: tf.Tensor,
    alone: bool = False,
) -> Spans:
    """Pairs of which the second segment follows (0), or is random or the previous one (1).

    Each document gives pairs for next sentence prediction or for sentence order prediction. About a
    quarter of the pairs is random and a quarter swapped: the topic does not suffice to tell the
    label, and neither does the order. StructBERT (Wang et al. 2019) has such pairs, a third each,
    in three classes. A corpus of one document has pairs of one kind in an epoch.

    Args: as in `next_sentence_spans`.
    """
    seeds = tf.unstack(tf.random.split(seed, 4, alg="philox"))
    block = _Block(sentence_lengths, sentences)
    settings = (sentence_lengths, sentences, sequence_length, short_seq_prob)
    either = (
        next_sentence_spans(*settings, seeds[0], alone),
        sentence_order_spans(*settings, seeds[1]),
    )
    # Sentences that a random segment replaced are used again, so a document makes about four pairs
    # for next sentence prediction where it makes three for the order.
    chosen = tf.cast(_integers(tf.shape(sentences), seeds[2]) % 7 < 4, tf.int32)  # [D]
    begins = tf.gather(block.offsets, block.begins)
    parts = []
    for number, spans in enumerate(either):
        document = tf.searchsorted(begins, spans.first_start, side="right") - 1
        mine = tf.gather(chosen, document) == number
        parts.append([tf.boolean_mask(value, mine) for value in spans])
    joined = [tf.concat(values, axis=0) for values in zip(*parts, strict=True)]
    order = tf.random.experimental.stateless_shuffle(
        tf.range(tf.size(joined[0])), seeds[3], alg="philox"
    )
    return Spans(*(tf.gather(value, order) for value in joined))


def packed_spans(
    sentence_lengths: tf.Tensor,
    sentences: tf.Tensor,
    sequence_length: int,
    short_seq_prob: float,
    seed: tf.Tensor,
) -> Spans:
    """Documents split into windows that fill a row, in random order; each token is in one window.

    Windows have L - 2 tokens, or in a fraction `short_seq_prob` of the documents a number drawn
    from 2 to L - 2; the last of a document has the remaining ones.
    """
    target_seed, order_seed = tf.unstack(tf.random.split(seed, 2, alg="philox"))
    block = _Block(sentence_lengths, sentences)
    begins = tf.gather(block.offsets, block.begins)  # [D], in tokens
    ends = tf.gather(block.offsets, block.begins + sentences)
    target = _targets(tf.shape(sentences), sequence_length - 2, short_seq_prob, target_seed)
    windows = (ends - begins + target - 1) // target  # [D]
    document = tf.repeat(tf.range(tf.size(windows)), windows)  # [N]
    number = tf.range(tf.size(document)) - tf.gather(tf.cumsum(windows, exclusive=True), document)
    target = tf.gather(target, document)
    start = tf.gather(begins, document) + number * target
    return _windows(start, tf.minimum(target, tf.gather(ends, document) - start), order_seed)


def joined_spans(
    sentence_lengths: tf.Tensor,
    sentences: tf.Tensor,
    sequence_length: int,
    short_seq_prob: float,
    seed: tf.Tensor,
) -> Spans:
    """The text of `join_documents` split into windows across documents, in random order.

    Windows have L - 2 tokens, or with probability `short_seq_prob` a number drawn from 2 to L - 2;
    the last of the block has the remaining ones.
    """
    target_seed, order_seed = tf.unstack(tf.random.split(seed, 2, alg="philox"))
    size = tf.reduce_sum(sentence_lengths) + tf.size(sentences) - 1
    budget = sequence_length - 2
    most = (size - 1) // (SHORTEST if short_seq_prob else budget) + 1  # maximum number of windows
    lengths = _targets(most[None], budget, short_seq_prob, target_seed)
    start = tf.cumsum(lengths, exclusive=True)
    used = start < size
    start, lengths = tf.boolean_mask(start, used), tf.boolean_mask(lengths, used)
    return _windows(start, tf.minimum(lengths, size - start), order_seed)


def join_documents(
    tokens: tf.Tensor, sentence_lengths: tf.Tensor, sentences: tf.Tensor, sep_id: int
) -> tf.Tensor:
    """Joins the documents of a block into one text [T + D - 1], separated by [SEP]."""
    block = _Block(sentence_lengths, sentences)
    begins = tf.gather(block.offsets, block.begins)
    documents = tf.RaggedTensor.from_row_starts(tokens, begins)
    separators = tf.fill([tf.size(sentences), 1], sep_id)
    return tf.concat([documents, separators], axis=1).flat_values[:-1]


def rows(
    tokens: tf.Tensor, spans: Spans, sequence_length: int, tokenizer: BertTokenizer
) -> tf.Tensor:
    """Gathers the `token_ids` [N, L] of rows from `tokens` [T], with special tokens and padding."""
    first, length = spans.first_length[:, None], spans.length[:, None]
    column = tf.range(1, sequence_length)[None, :]  # [1, L - 1]
    place = column + tf.where(
        column <= first, spans.first_start[:, None] - 1, spans.second_start[:, None] - first - 2
    )
    # [SEP] and [PAD] are appended to the tokens.
    separator = tf.size(tokens)
    place = tf.where((column == first + 1) | (column == length - 1), separator, place)
    place = tf.where(column < length, place, separator + 1)
    tokens = tf.concat([tokens, [tokenizer.sep_token_id, tokenizer.pad_token_id]], axis=0)
    return tf.pad(
        tf.gather(tokens, place), [[0, 0], [1, 0]], constant_values=tokenizer.cls_token_id
    )


def row_masks(
    first_length: tf.Tensor, length: tf.Tensor, sequence_length: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """The `segment_ids` and `padding_mask` [N, L] of rows, from fields of their `Spans`."""
    column = tf.range(sequence_length)[None, :]
    real = column < length[:, None]
    second = real & (column > first_length[:, None] + 1)
    return tf.cast(second, tf.int32), tf.cast(real, tf.int32)


def _integers(shape, seed):
    """Draws from 0 to 2^31 - 2, a range so large that remainders are practically uniform."""
    return tf.random.stateless_uniform(shape, seed, 0, 2**31 - 1, tf.int32, alg="philox")


def _targets(shape, budget, short_seq_prob, seed):
    """Target lengths: `budget`, or with probability `short_seq_prob` uniform from 2 to `budget`."""
    if_short, length = tf.unstack(tf.random.split(seed, 2, alg="philox"))
    short = tf.random.stateless_uniform(shape, if_short, alg="philox") < short_seq_prob
    length = SHORTEST + _integers(shape, length) % (budget - SHORTEST + 1)
    return tf.where(short, length, budget)


def _pairs(first_start, first_length, second_start, second_length, labels, sequence_length, seeds):
    """Truncates pairs: the longer segment first, each token randomly from its start or end."""
    kept = pair_lengths(first_length, second_length, sequence_length - 3)

    def cut_in_front(cut, seed):
        counts = tf.cast(cut, tf.float32)
        return tf.random.stateless_binomial(tf.shape(cut), seed, counts, 0.5, tf.int32)

    return Spans(
        first_start + cut_in_front(first_length - kept[0], seeds[0]),
        kept[0],
        second_start + cut_in_front(second_length - kept[1], seeds[1]),
        kept[0] + kept[1] + 3,
        labels,
    )


def _windows(start, length, seed):
    order = tf.range(tf.size(start))
    order = tf.random.experimental.stateless_shuffle(order, seed, alg="philox")
    start, length = tf.gather(start, order), tf.gather(length, order)
    return Spans(start, length, tf.zeros_like(start), length + 2, None)
