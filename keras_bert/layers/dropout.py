"""Dropout whose random seed can be drawn ahead of its use."""

import keras


class _DrawnSeed(keras.random.SeedGenerator):
    """Stands in for a seed generator but always gives the one seed drawn before."""

    def __init__(self, seed):  # no call to super: it holds no state of its own
        self._seed = seed

    def next(self, ordered=True):
        return self._seed


class Dropout(keras.layers.Dropout):
    """`keras.layers.Dropout` that can be told which seed to use.

    Recomputing a block in the backward pass (gradient checkpointing) must drop the same units
    as the forward pass did. A layer that draws its seed inside the recomputed function would
    draw another the second time; so the block draws with `draw` outside and passes it to `call`.
    """

    def draw(self, training: bool | None):
        """Draws the seed of one call.

        Returns:
            A seed tensor, or None where nothing is dropped.
        """
        if not training or self.rate == 0:
            return None
        return self.seed_generator.next()

    def call(self, inputs, training=False, seed=None):
        if seed is None:
            return super().call(inputs, training=training)
        return keras.random.dropout(inputs, self.rate, seed=_DrawnSeed(seed))
