"""A callback that stops at a loss that is not finite, and saves the batch."""

import io
import logging
from pathlib import Path

import keras
import numpy as np

from keras_bert.atomic import write_file
from keras_bert.training.pace import EverySteps, fresh_counters

logger = logging.getLogger("keras_bert")


class StopOnNaN(keras.callbacks.Callback):
    """Stops training when a loss is not finite, and saves the batch of that step.

    The batch is saved to `directory/bad-step-N.npz`, where N counts steps from 0 over all epochs,
    as in the task's `training_batch`. Its arrays are the inputs of the step: `x.token_ids` and the
    other inputs, `y`, `sample_weight`; for several outputs `y.NAME` and `sample_weight.NAME`. A
    `tf.data.Dataset` that shuffles has another order when it is read again; then the file holds
    another batch.

    Only losses are checked: in float16, gradients overflow occasionally, and such updates are
    skipped. Checkpoints written after step N may hold weights that are not finite: remove them
    before resuming the run.

    Args:
        directory: folder for the file, created if missing.
        every_steps: steps between checks, each of which waits for the device; there is also one at
            the end of every epoch.

    Attributes:
        bad_step: N, or None if all losses of this `fit` were finite so far.

    Raises:
        ValueError: if `every_steps` is not 1 or more; in `fit`, if the train step does not count.
    """

    def __init__(self, directory: str | Path, every_steps: int = 10):
        super().__init__()
        self.directory = Path(directory)
        self.bad_step: int | None = None
        self._beat = EverySteps(every_steps)

    def on_train_begin(self, logs=None):
        self._counters = fresh_counters(self)
        self._first = self.model.run.done
        self._beat.start(self._first)
        self.bad_step = None

    def after_step(self, logs):
        if self._beat.due(self.model.run.done):
            self._look()

    def on_epoch_end(self, epoch, logs=None):
        self._look()

    def _look(self) -> None:
        counts = self._counters.read()
        if counts["first_bad"] is None:
            return
        self.model.stop_training = True
        if self.bad_step is not None:
            return
        self.bad_step = self._first + counts["first_bad"]
        path = self.directory / f"bad-step-{self.bad_step}.npz"
        logger.error(
            "the loss was not finite at step %d (that of the last step is %g): training stops, "
            "and the batch of the step goes to %s",
            self.bad_step,
            counts["loss"],
            path,
        )
        batch = self.model.training_batch(self.bad_step)
        batch = keras.utils.unpack_x_y_sample_weight(batch)
        parts = zip(("x", "y", "sample_weight"), batch, strict=True)
        arrays = {key: array for name, part in parts for key, array in _named(name, part)}
        content = io.BytesIO()
        np.savez(content, **arrays)
        write_file(path, content.getvalue())


def _named(prefix: str, part):
    """Yields (name, array) of the parts of x, y or sample_weight."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield from _named(f"{prefix}.{name}", value)
    elif part is not None:
        yield prefix, part
