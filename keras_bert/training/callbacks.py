"""Scores of validation data after each epoch, and the weights of the best one."""

from pathlib import Path

import keras


class ValidationScores(keras.callbacks.Callback):
    """Scores the answers to validation data after every epoch: entity F1, macro F1, SQuAD's F1.

    The task's method `scores` says which they are. They join the logs as `val_f1` and the like,
    ahead of all other callbacks of a task's `fit`, so that `EarlyStopping("val_f1", mode="max")`
    and `BestWeights` can judge by them.

    Args:
        data: (x, y) as `fit` takes them, or an object that brings its labels; by default the
            `validation_data` of `fit`, which then may not be a dataset.
        prefix: of the names.
        **kwargs: as the task's `scores`.
    """

    def __init__(self, data=None, prefix: str = "val_", **kwargs):
        super().__init__()
        self.data, self.prefix, self._options = data, prefix, kwargs

    def on_epoch_end(self, epoch, logs=None):
        data = self.data if type(self.data) is tuple else (self.data,)
        for name, value in self.model.scores(*data[:2], **self._options).items():
            logs.setdefault(self.prefix + name, value)  # the metrics of `compile` go before


class BestWeights(keras.callbacks.ModelCheckpoint):
    """Writes the weights of the best epoch; a run that goes on remembers what was best.

    Args:
        path: the file, `.weights.h5`.
        monitor: what the best epoch is judged by.
        mode: "max" or "min".
    """

    def __init__(self, path: str | Path, monitor: str, mode: str = "max"):
        super().__init__(str(path), monitor, mode=mode, save_best_only=True, save_weights_only=True)

    def get_state(self) -> dict:
        """Gives the best value so far, which `Resume` keeps."""
        return {"best": None if self.best is None else float(self.best)}

    def set_state(self, state: dict) -> None:
        """Takes the best value up.

        Args:
            state: from `get_state`.
        """
        self.best = state["best"]
