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
        """A user's callbacks behind the one that keeps count.

        Those with a method `after_step(logs)` get it called after every execution, in their order;
        logs are scalars or scalar tensors by name, and to read one waits for the device.
        """
        hooks = [callback.after_step for callback in others if hasattr(callback, "after_step")]
        if keras.config.backend() == "tensorflow":
            return [_Count(self, hooks), *others]
        # On JAX variables hold the new state only once Keras has left the train function.
        return [_Count(self, []), *([_AfterBatch(hooks)] if hooks else []), *others]


# A truth value for Keras's `stop_training` that tells our stop from anybody else's.
_CUT = object()


class _Count(keras.callbacks.Callback):
    """Counts steps around the train function.

    Not in `on_train_batch_end`: so all is counted before the first callback of a user runs.
    """

    def __init__(self, position: Position, hooks: list):
        super().__init__()
        self.position, self.hooks = position, hooks

    def on_train_begin(self, logs=None):
        train = self.model.train_function
        # A `fit` that was broken off has left its own counting there.
        train = getattr(train, "train", train)
        self.model.train_function = _Counted(train, self, self.model)

    def on_train_end(self, logs=None):
        self.model.train_function = self.model.train_function.train

    def on_epoch_begin(self, epoch, logs=None):
        self.partial = not self.position.at_epoch_end

    def on_epoch_end(self, epoch, logs=None):
        position = self.position
        if position.steps_per_epoch is None:
            position.steps_per_epoch = position.done // (epoch + 1)
        if self.model.stop_training is _CUT:
            self.model.stop_training = False

    def after_step(self, model, logs) -> None:
        """Counts an execution; ends the run, or an epoch that did not begin with its first step."""
        position = self.position
        position.done += model.steps_per_execution
        if position.total is not None and position.done >= position.total:
            model.stop_training = True
        elif self.partial and position.at_epoch_end and not model.stop_training:
            model.stop_training = _CUT
        for hook in self.hooks:
            hook(logs)


class _AfterBatch(keras.callbacks.Callback):
    """Calls hooks where Keras calls callbacks."""

    def __init__(self, hooks: list):
        super().__init__()
        self.hooks = hooks

    def on_train_batch_end(self, batch, logs=None):
        for hook in self.hooks:
            hook(logs)


class _Counted:
    """A train function that counts; `train` is the one without."""

    def __init__(self, train, count: _Count, model):
        # The model itself, since on JAX a callback's `model` brings variables up to date when it
        # is asked for, which must not happen in the middle of a step.
        self.train, self._count, self._model = train, count, model

    def __call__(self, *arguments):
        position = self._count.position
        if position.skip:
            position.skip -= 1
            (iterator,) = arguments
            next(iterator)
            return self._model.get_metrics_result()
        result = self.train(*arguments)
        self._count.after_step(self._model, result)
        return result
