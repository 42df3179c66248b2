"""Validation scores after each epoch, and the weights of the best epoch."""

from pathlib import Path

import keras


class ValidationScores(keras.callbacks.Callback):
    """Scores the answers to validation data after every epoch: entity F1, macro F1, SQuAD's F1.

    They are computed by the task's method `scores`. They are added to the logs as `val_f1` and so
    on before all other callbacks of a task's `fit`, so that `EarlyStopping("val_f1", mode="max")`
    and `BestWeights` can monitor them.

    Args:
        data: (x, y) as `fit` takes them, or an object that includes labels; by default the
            `validation_data` of `fit`, which then must not be a dataset.
        prefix: prefix of the names.
        **kwargs: as the task's `scores`.
    """

    def __init__(self, data=None, prefix: str = "val_", **kwargs):
        super().__init__()
        self.data, self.prefix, self._options = data, prefix, kwargs

    def on_epoch_end(self, epoch, logs=None):
        data = self.data if type(self.data) is tuple else (self.data,)
        for name, value in self.model.scores(*data[:2], **self._options).items():
            logs.setdefault(self.prefix + name, value)  # the metrics of `compile` take precedence


class BestWeights(keras.callbacks.ModelCheckpoint):
    """Writes the weights of the best epoch; a resumed run remembers the best value.

    Args:
        path: the file, `.weights.h5`.
        monitor: the log that defines the best epoch.
        mode: "max" or "min".
    """

    def __init__(self, path: str | Path, monitor: str, mode: str = "max"):
        super().__init__(str(path), monitor, mode=mode, save_best_only=True, save_weights_only=True)

    def get_state(self) -> dict:
        """Returns the best value so far, for `Resume`."""
        return {"best": None if self.best is None else float(self.best)}

    def set_state(self, state: dict) -> None:
        """Restores the best value.

        Args:
            state: from `get_state`.
        """
        self.best = state["best"]
