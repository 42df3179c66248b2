"""Where a run stands: steps counted over all epochs, and epochs that begin in the middle."""

import keras


class Position:
    """Counts the steps of a `fit`, across stops.

    Args:
        steps_per_epoch: steps of an epoch, or None while that is not known.
        done: steps made before this `fit`.
        total: steps after which training ends, or None for no limit but Keras's epochs.
    """

    def __init__(self, steps_per_epoch, done=0, total=None):
        self.steps_per_epoch = steps_per_epoch
        self.done = done
        self.total = total
        # Batches of the first epoch to read without a step. Where the size of a pass is not
        # known, Keras counts it in the first epoch: it has to see every batch.
        self.skip = 0 if steps_per_epoch else done

    @property
    def epoch(self) -> int:
        """The epoch that the next step belongs to."""
        return self.done // self.steps_per_epoch if self.steps_per_epoch else 0

    @property
    def at_epoch_end(self) -> bool:
        """Whether the last step made was the last of its epoch."""
        return bool(self.steps_per_epoch) and self.done % self.steps_per_epoch == 0

    def callbacks(self, others: list) -> list:
        """The callbacks that keep count, around those of a user."""
        end = _EpochEnd(self)
        return [_Count(self, end), *others, end]


class _Count(keras.callbacks.Callback):
    """Before all others: they find the new count."""

    def __init__(self, position: Position, end: "_EpochEnd"):
        super().__init__()
        self.position, self.end = position, end

    def on_train_begin(self, logs=None):
        self.skipped = False
        if self.position.skip:
            train, model = self.model.train_function, self.model

            def skip(iterator):
                if self.position.skip == 0:
                    model.train_function = train
                    return train(iterator)
                self.position.skip -= 1
                self.skipped = True
                next(iterator)
                return model.get_metrics_result()

            model.train_function = skip

    def on_epoch_begin(self, epoch, logs=None):
        self.batch = -1  # last batch of this epoch, as Keras counts
        self.end.partial = not self.position.at_epoch_end

    def on_train_batch_end(self, batch, logs=None):
        if not self.skipped:
            self.position.done += batch - self.batch
        self.skipped, self.batch = False, batch

    def on_epoch_end(self, epoch, logs=None):
        position = self.position
        if position.steps_per_epoch is None:
            position.steps_per_epoch = position.done // (epoch + 1)
        if self.end.cut:
            self.end.cut = False
            # Keras looks at the flag after all callbacks: others may still set it.
            self.model.stop_training = False


class _EpochEnd(keras.callbacks.Callback):
    """After all others: cuts short an epoch that did not begin with its first step."""

    def __init__(self, position: Position):
        super().__init__()
        self.position, self.cut, self.partial = position, False, False

    def on_train_batch_end(self, batch, logs=None):
        position = self.position
        last = position.total is not None and position.done >= position.total
        if not self.model.stop_training:
            self.cut = self.partial and position.at_epoch_end and not last
            self.model.stop_training = last or self.cut
