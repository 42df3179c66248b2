"""Dynamic masking of the batches of another source."""

from collections.abc import Callable

# Rows that share a seed in `one_pass`.
CHUNK = 256


class MaskedSource:
    """The batches of a source of `keras_bert.data.sources`, masked.

    Masks are a function of the seed and the position in the stream only: those of batch n of
    `stream` come from (`seed`, n), so masks differ between epochs, and a resumed run sees the same
    ones as an uninterrupted run.

    `mask` maps the parts of a batch of the source and a seed, int64 [2], to the model's inputs.
    """

    def __init__(self, source, mask: Callable, seed: int = 0):
        self._source, self._mask, self._seed = source, mask, seed
        self.steps = source.steps

    def __getattr__(self, name):  # batch_size, size, endless: those of the source
        return getattr(self._source, name)

    def stream(self, first: int = 0):
        """An endless `tf.data.Dataset` of batches, from batch `first` of the first pass on."""
        return self._masked(self._source.stream(first), first)

    def one_pass(self):
        """A `tf.data.Dataset` of the first pass, always with the same masks.

        For rows in memory, masks do not depend on the batch size.
        """
        import tensorflow as tf

        batches, size = self._source.one_pass(), getattr(self._source, "batch_size", None)
        if size is None:
            return self._masked(batches)
        masked = self._masked(batches.rebatch(CHUNK)).rebatch(size)
        return masked.apply(tf.data.experimental.assert_cardinality(self.steps))

    def _masked(self, batches, first: int = 0):
        import tensorflow as tf

        @tf.autograph.experimental.do_not_convert  # it would take seconds without benefit
        def mask(number, batch):
            return self._mask(*batch, tf.stack([tf.constant(self._seed, tf.int64), number]))

        masked = batches.enumerate(first).map(mask, num_parallel_calls=tf.data.AUTOTUNE)
        return masked.prefetch(tf.data.AUTOTUNE)
