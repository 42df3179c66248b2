"""Callbacks that do not make the device wait."""

import time
from collections.abc import ItemsView, ValuesView

import keras

from keras_bert.training.dataset_sizes import known_size

# Seconds between readings by a progress bar. Each reading leaves the device idle.
REDRAW_SECONDS = 0.5


class CallbackList(keras.callbacks.CallbackList):
    """Keras's callback list, with logs of batches that are converted to numbers only when read.

    Keras's own list converts them after every batch, and waits for the device each time; the device
    then waits for the host, which needs 8 to 9 ms to start a step of BERT-Base on an H200.
    Callbacks receive the same logs at the same points; a progress bar reads them twice a second.
    `run` is that of `fit`, a `keras_bert.tasks.fitting.Run`, which counts before callbacks are
    called.
    """

    def __init__(
        self,
        callbacks,
        model,
        verbose="auto",
        epochs=1,
        steps=None,
        run=None,
    ):
        super().__init__(
            callbacks,
            add_history=run is not None,
            add_progbar=verbose != 0,
            verbose=verbose,
            epochs=epochs,
            steps=steps,
            model=model,
        )
        self._redrawn = -REDRAW_SECONDS
        self._run = run

    def on_epoch_begin(self, epoch, logs=None):
        coming = self._run and self._run.begin_epoch()
        for callback in self.callbacks if coming else ():
            if type(callback) is keras.callbacks.ProgbarLogger:
                callback.target = coming
        super().on_epoch_begin(epoch, logs)

    def on_epoch_end(self, epoch, logs=None):
        if self._run is not None:
            self._run.end_epoch(epoch)
        super().on_epoch_end(epoch, logs)

    def on_train_batch_end(self, batch, logs=None):
        if self._run is not None:
            self._run.count(logs)
        for callback, seen in self._shown(logs):
            callback.on_train_batch_end(batch, logs=seen)

    def on_test_batch_end(self, batch, logs=None):
        for callback, seen in self._shown(logs):
            callback.on_test_batch_end(batch, logs=seen)

    def on_predict_batch_end(self, batch, logs=None):
        for callback, seen in self._shown(logs):
            callback.on_predict_batch_end(batch, logs=seen)

    def _shown(self, logs):
        now = time.monotonic()
        redraw = now - self._redrawn >= REDRAW_SECONDS
        if redraw:
            self._redrawn = now
        shared = UnreadLogs(logs or {})  # one object for all, as a callback may add to it
        for callback in self.callbacks:
            is_bar = type(callback) is keras.callbacks.ProgbarLogger
            yield callback, {} if is_bar and not redraw else shared


def callbacks_over(model, batches, kwargs: dict) -> keras.callbacks.CallbackList:
    """The callbacks of `evaluate` or `predict` over batches; `kwargs` as `keras.Model.predict`."""
    given, verbose = kwargs.get("callbacks"), kwargs.get("verbose", "auto")
    if isinstance(given, keras.callbacks.CallbackList):
        return given
    steps = kwargs.get("steps") or known_size(batches)
    return CallbackList(given or [], model, verbose, steps=steps)


class UnreadLogs(dict):
    """Logs by name whose scalars are converted to floats when they are first read."""

    def __getitem__(self, name):
        value = super().__getitem__(name)
        if not isinstance(value, float) and getattr(value, "shape", None) in ((), (1,)):
            value = float(keras.ops.reshape(value, ())) if value.shape else float(value)
            self[name] = value
        return value

    def __iter__(self):  # so that dict(...) and {**...} go through `__getitem__`
        return super().__iter__()

    def __repr__(self):
        return repr(dict(self))

    def get(self, name, default=None):
        return self[name] if name in self else default

    def items(self):
        return ItemsView(self)

    def values(self):
        return ValuesView(self)

    def copy(self):
        return dict(self)

    def pop(self, name, *default):
        value = self.get(name, *default) if default else self[name]
        super().pop(name, None)
        return value

    def popitem(self):
        name = list(self)[-1]
        return name, self.pop(name)

    def setdefault(self, name, default=None):
        super().setdefault(name, default)
        return self[name]
