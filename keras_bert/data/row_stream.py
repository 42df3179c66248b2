"""Rows of a prepared corpus in an order that is a function of the seed, starting at any batch.

In each epoch the shards are read in parallel, in a new order and each starting at a new document,
and grouped into blocks of documents. The rows of a block are computed at once (`pairing.py`), in
random order, and the blocks are concatenated into the stream of rows. Masks are drawn for fixed
chunks of that stream, so they are a function of the seed and the position in the stream too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from keras_bert.data.records import CorpusIndex, parse_documents
from keras_bert.text.tokenizer import BertTokenizer

READ_TOGETHER = 16  # shards open at a time
MASKED_TOGETHER = 512  # rows masked with one seed: few enough for a processor's cache
# Purposes of a draw: the second half of the seed, after the user's.
_ORDER, _ROWS, _MASKS = range(3)


@dataclass(frozen=True)
class RowStream:
    """The rows of a corpus in order, and batches of them.

    Attributes:
        index: index of the corpus.
        make_spans: a function of `pairing.py`, with its settings.
        joined: whether the spans are those of the joined documents.
        masker: masks rows, or chooses the tokens to predict.
        rates: (first, final, rows): the masking rate goes linearly from the first to the final one
            over so many rows of the stream, and stays there; None for the masker's own.
        sequence_length: length of a row.
        repeat: whether epochs repeat endlessly.
        block_documents: number of documents in a block.
        num_parallel_calls: parallelism of the maps, or None.
    """

    index: CorpusIndex
    make_spans: Callable
    joined: bool
    tokenizer: BertTokenizer
    masker: Any
    rates: tuple[float, float, int] | None
    sequence_length: int
    batch_size: int
    seed: int
    repeat: bool
    block_documents: int
    num_parallel_calls: int | None

    def starting_at(self, first: int) -> Any:
        """The batches starting at `first`, endless or to the end of the epoch.

        The attribute `starting_at` of the result does the same relative to it.
        """
        import tensorflow as tf

        piece, past = divmod(first * self.batch_size, MASKED_TOGETHER)
        epoch, block, row = self._place(piece * MASKED_TOGETHER)

        def rows(at_epoch, at_block, documents):
            here = (at_epoch == epoch) & (at_block == block)
            return self._rows(at_epoch, at_block, documents, tf.where(here, row, 0))

        def masked(at_piece, rows):
            batch = self._masked(at_piece, *rows)
            begin = tf.where(at_piece == piece, past, 0)
            return {name: value[begin:] for name, value in batch.items()}

        dataset = self._map(self._epochs(epoch).skip(block), rows)
        dataset = self._map(dataset.rebatch(MASKED_TOGETHER).enumerate(piece), masked)
        dataset = dataset.rebatch(self.batch_size, drop_remainder=self.repeat)
        if self.repeat:
            endless = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
            dataset = dataset.apply(endless)
        dataset = dataset.prefetch(tf.data.AUTOTUNE)
        dataset.batch_size = self.batch_size
        dataset.starting_at = lambda further: self.starting_at(first + further)
        return dataset

    def _map(self, dataset, function):
        import tensorflow as tf

        parallel = self.num_parallel_calls or tf.data.AUTOTUNE
        return dataset.map(
            tf.autograph.experimental.do_not_convert(function),  # it would take seconds
            num_parallel_calls=parallel,
            deterministic=True,
        )

    def _place(self, row: int) -> tuple[int, int, int]:
        """The epoch, the block in it, and the row in the block, of row `row` of the stream."""
        if row == 0:
            return 0, 0, 0
        for epoch, block, count in self._map(self._epochs(0), self._count).as_numpy_iterator():
            if row < count:
                return int(epoch), int(block), int(row)
            row -= count
        return 0, int(block) + 1, 0  # beyond the only epoch

    def _epochs(self, first: int):
        """Datasets of (epoch, index of the block in it, its documents), starting at `first`."""
        import tensorflow as tf

        epochs = tf.data.Dataset.range(first, tf.int64.max if self.repeat else first + 1)
        return epochs.flat_map(tf.autograph.experimental.do_not_convert(self._blocks))

    def _blocks(self, epoch):
        import tensorflow as tf

        filled = [i for i, shard in enumerate(self.index.shards) if shard.documents]
        paths = tf.constant([self.index.paths[i] for i in filled])
        documents = tf.constant([self.index.shards[i].documents for i in filled], tf.int64)
        seeds = tf.random.split(self._folded(_ORDER, epoch), 2, alg="philox")
        order = tf.range(len(filled))
        order = tf.random.experimental.stateless_shuffle(order, seeds[0], alg="philox")
        begin = tf.random.stateless_uniform(
            [len(filled)], seeds[1], 0, tf.int64.max, tf.int64, alg="philox"
        )
        begin = tf.gather(begin % documents, order)

        def turned(path, begin):
            shard = tf.data.TFRecordDataset(path)
            return shard.skip(begin).concatenate(shard.take(begin))

        shards = tf.data.Dataset.from_tensor_slices((tf.gather(paths, order), begin))
        documents = shards.interleave(turned, min(READ_TOGETHER, len(filled)))
        blocks = documents.batch(self.block_documents).enumerate()
        return blocks.map(lambda block, documents: (epoch, block, documents))

    def _folded(self, kind: int, *numbers):
        """The seed for a draw of one kind, int64 [2]."""
        import tensorflow as tf

        seed = tf.constant([self.seed, kind], tf.int64)
        for number in numbers:
            seed = tf.random.experimental.stateless_fold_in(seed, number, alg="philox")
        return seed

    def _count(self, epoch, block, documents):
        import tensorflow as tf

        # Skipping the tokens makes this many times faster; they are checked when rows are built.
        feature = tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)
        lengths = tf.io.parse_example(documents, {"sentence_lengths": feature})["sentence_lengths"]
        sentences = (lengths.flat_values, lengths.row_lengths())
        sentences = (tf.cast(value, tf.int32) for value in sentences)
        spans = self.make_spans(*sentences, seed=self._folded(_ROWS, epoch, block))
        return epoch, block, tf.size(spans.length)

    def _rows(self, epoch, block, documents, begin):
        from keras_bert.data import pairing

        tokens, *sentences = parse_documents(documents, self.index.vocabulary_size)
        spans = self.make_spans(*sentences, seed=self._folded(_ROWS, epoch, block))
        spans = pairing.Spans(*(value if value is None else value[begin:] for value in spans))
        if self.joined:
            separator = self.tokenizer.sep_token_id
            tokens = pairing.join_documents(tokens, *sentences, separator)
        token_ids = pairing.rows(tokens, spans, self.sequence_length, self.tokenizer)
        labels = () if spans.labels is None else (spans.labels,)
        return token_ids, spans.first_length, spans.length, *labels

    def _rate(self, piece):
        """The masking rate of a chunk of rows, by its place in the stream; None for a fixed one."""
        import tensorflow as tf

        if self.rates is None:
            return None
        first, final, rows = self.rates
        done = tf.minimum(tf.cast(piece * MASKED_TOGETHER, tf.float32) / rows, 1.0)
        return first + (final - first) * done

    def _masked(self, piece, token_ids, first_length, length, *labels):
        from keras_bert.data import pairing

        segment_ids, padding_mask = pairing.row_masks(first_length, length, self.sequence_length)
        batch = self.masker(token_ids, padding_mask, self._folded(_MASKS, piece), self._rate(piece))
        batch |= {"segment_ids": segment_ids, "padding_mask": padding_mask}
        return batch | dict(zip(["next_sentence_labels"], labels, strict=False))
