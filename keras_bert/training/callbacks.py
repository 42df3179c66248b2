"""The callbacks that every recipe runs with."""

import importlib.util
import logging
import time
from pathlib import Path

import keras

logger = logging.getLogger("keras_bert")


class TrainingTimer(keras.callbacks.Callback):
    """Times the training part of every epoch, validation left out.

    Attributes:
        seconds: one number an epoch. The first includes compilation.
    """

    def __init__(self):
        super().__init__()
        self.seconds: list[float] = []

    def on_epoch_begin(self, epoch, logs=None):
        self._begin = time.perf_counter()
        self._end = None

    def on_test_begin(self, logs=None):
        counters = getattr(self.model, "counters", None)
        if self._end is None and counters is not None:
            counters.read()  # waits for the steps that the device has yet to make
        self._end = self._end or time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds.append((self._end or time.perf_counter()) - self._begin)


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


def standard_callbacks(
    output_dir: str | Path, monitor: str, mode: str = "max"
) -> list[keras.callbacks.Callback]:
    """Logs for TensorBoard and the weights of the best epoch.

    Args:
        output_dir: folder to write into, made if need be: `tensorboard/` and `best.weights.h5`.
        monitor: what the best epoch is judged by, such as "val_accuracy".
        mode: "max" or "min".

    Returns:
        The callbacks; without the `tensorboard` package only the second, with a warning.
    """
    output_dir = Path(output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    callbacks: list[keras.callbacks.Callback] = [
        BestWeights(output_dir / "best.weights.h5", monitor, mode)
    ]
    if importlib.util.find_spec("tensorboard") is None:
        logger.warning("no TensorBoard log: the tensorboard package is not installed")
    else:
        logs = str(output_dir / "tensorboard")
        callbacks.append(keras.callbacks.TensorBoard(logs, write_graph=False))
    return callbacks
