"""A machine-readable log of a run."""

import json
import math
import time
from pathlib import Path

import keras

from keras_bert.training.pace import EverySteps, writes_files


class JsonLines(keras.callbacks.Callback):
    """Appends a JSON object to a file at the end of every epoch, and every N steps.

    Each line has `step`, the number of steps over all epochs; `time`, seconds since 1970; and all
    of Keras's logs, as numbers. Lines of epochs also have `epoch`, from 0. In lines of steps,
    losses and metrics are those of the epoch so far. NaN and infinities, which JSON lacks, become
    null. The file is closed after each line.

    A resumed run appends. Steps after its checkpoint are run and logged again: of two lines with
    the same `step`, the later one is valid.

    With several worker processes, only the chief writes.

    Args:
        path: the file; its folder is created if missing.
        every_steps: N, steps between lines; None for lines of epochs alone.

    Raises:
        ValueError: if `every_steps` is not 1 or more.
        OSError: in `fit`, before the first step, if the file cannot be written.
    """

    def __init__(self, path: str | Path, every_steps: int | None = None):
        super().__init__()
        self.path = Path(path)
        self._beat = None if every_steps is None else EverySteps(every_steps)

    def on_train_begin(self, logs=None):
        if self._beat is not None:
            self._beat.start(self.model.run.done)
        if writes_files(self.model):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.open("a").close()  # raises now, not after an epoch

    def after_step(self, logs):
        done = self.model.run.done
        if self._beat is not None and self._beat.due(done):
            self.write({"step": done, **logs})

    def on_epoch_end(self, epoch, logs=None):
        self.write({"epoch": epoch, "step": self.model.run.done, **(logs or {})})

    def write(self, values: dict) -> None:
        """Appends a line.

        Args:
            values: numbers by name; `time` is added.
        """
        if not writes_files(self.model):
            return
        values = {"time": round(time.time(), 3), **values}
        line = json.dumps({name: _number(value) for name, value in values.items()})
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def _number(value):
    """An int as it is, anything else as a float, or None if it is not finite."""
    if isinstance(value, int):
        return value
    value = float(value)
    return value if math.isfinite(value) else None
