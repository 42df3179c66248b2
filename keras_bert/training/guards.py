"""What watches the loss: a stop at NaN that keeps the batch, and a way back from spikes."""

import io
import logging
import math
from collections import deque
from pathlib import Path

import keras
import numpy as np

from keras_bert.atomic import write_file
from keras_bert.training.pace import EverySteps, fresh_counters
from keras_bert.training.state import read_state, write_state

logger = logging.getLogger("keras_bert")


class StopOnNaN(keras.callbacks.Callback):
    """Stops training once a loss was not finite, and saves the batch of that very step.

    The batch lies in `directory/bad-step-N.npz`, where N counts steps from 0 over all epochs, as
    `training_batch` of the task does. Its arrays are what the step got: `x.token_ids` and the
    other inputs, `y`, `sample_weight`; for several outputs `y.NAME` and `sample_weight.NAME`. A
    `tf.data.Dataset` that shuffles gives another order when it is read again: there the file holds
    another batch.

    Only a loss counts: under float16 gradients overflow now and then, and such an update is left
    out. Checkpoints made after step N may hold weights that are not finite: remove them before
    the run goes on. With `SpikeRollback`, which handles such losses itself, leave this out.

    Args:
        directory: folder for the file, made if need be.
        every_steps: steps between two looks, each of which waits for the device; there is one at
            the end of every epoch too.

    Attributes:
        bad_step: N, or None while all losses of this `fit` were finite.

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
        self._first = self.model.position.done
        self._beat.start(self._first)
        self.bad_step = None

    def after_step(self, logs):
        if self._beat.due(self.model.position.done):
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
        parts = zip(
            ("x", "y", "sample_weight"), keras.utils.unpack_x_y_sample_weight(batch), strict=True
        )
        arrays = {key: array for name, part in parts for key, array in _named(name, part)}
        content = io.BytesIO()
        np.savez(content, **arrays)
        write_file(path, content.getvalue())


class SpikeRollback(keras.callbacks.Callback):
    """Goes back to earlier weights when the loss jumps up, and on with the batches that follow.

    A step's loss is a spike if it is not finite, or more than `factor` times the mean of the
    `window` losses before it. Weights, optimizer and random state are then put back from the last
    copy that was taken before the spike, and training goes on with new batches, so that those in
    between and the one of the spike are skipped. Rule: Chowdhery et al. 2022 (PaLM), section 5.1,
    who went back about 100 steps and skipped 200 to 500 batches. A copy that was used is dropped
    if there is an older one: should it be bad itself, the next spike leads further back.

    The place in the data and the end of the run stay as they are, while the optimizer's count of
    updates goes back with its state: a schedule of updates is behind from then on.

    Cost: each look copies one number from the device, which has to finish the step first, so that
    the next one begins some milliseconds later. Host memory holds
    two copies of weights and optimizer, with Adam 12 bytes a parameter each: 2.6 GB for BERT-Base.
    Taking one stops training for the time of the copy.

    Put it before `Resume`, which then saves no spike. A resumed run starts with new copies.

    Args:
        factor: how many times the mean a loss has to exceed, above 1.
        window: losses in the mean. Until there are so many, only a loss that is not finite counts.
        snapshot_every: steps between two copies; the first is taken as training begins.
        most: rollbacks of one `fit`; the next spike after them raises.
        check_every: steps between two looks; the losses in between are not seen.

    Attributes:
        rollbacks: a list of (steps made when the spike was seen, steps made at the copy).

    Raises:
        ValueError: if a number is out of range; in `fit`, if the train step does not count.
        RuntimeError: in `fit`, at a spike after `most` rollbacks.
    """

    def __init__(
        self,
        factor: float = 2.0,
        window: int = 50,
        snapshot_every: int = 100,
        most: int = 3,
        check_every: int = 1,
    ):
        super().__init__()
        if not 1 < factor < math.inf:
            raise ValueError(f"factor={factor}: expected a number above 1")
        least = {"window": 1, "snapshot_every": 1, "most": 0, "check_every": 1}
        given = {
            "window": window,
            "snapshot_every": snapshot_every,
            "most": most,
            "check_every": check_every,
        }
        for name, value in given.items():
            if value < least[name]:
                raise ValueError(f"{name}={value}: expected {least[name]} or more")
        self.factor, self.window, self.most = factor, window, most
        self.rollbacks: list[tuple[int, int]] = []
        self._check_beat = EverySteps(check_every)
        self._snapshot_beat = EverySteps(snapshot_every)

    def on_train_begin(self, logs=None):
        self._counters = fresh_counters(self)
        self._first = self.model.position.done
        for beat in (self._check_beat, self._snapshot_beat):
            beat.start(self._first)
        self.rollbacks = []
        self._losses = deque(maxlen=self.window)
        self._snapshots = deque(maxlen=2)  # (steps made, epoch, state)
        self._epoch = None
        self._take_snapshot()

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch

    def after_step(self, logs):
        done = self.model.position.done
        if not self._check_beat.due(done):
            return
        loss = float(keras.ops.convert_to_numpy(self._counters.loss))
        full = len(self._losses) == self.window
        mean = math.fsum(self._losses) / self.window if full else math.inf
        if not math.isfinite(loss) or loss > self.factor * mean:
            self._go_back(done, loss, mean)
            return
        self._losses.append(loss)
        if self._snapshot_beat.due(done):
            self._take_snapshot()

    def on_train_end(self, logs=None):
        self._snapshots.clear()

    def _take_snapshot(self) -> None:
        done = self.model.position.done
        self._snapshots.append((done, self._epoch, read_state(self.model)))

    def _go_back(self, done: int, loss: float, mean: float) -> None:
        against = f", against a mean of {mean:g}" if math.isfinite(mean) else ""
        found = f"the loss of step {done - 1} is {loss:g}{against}"
        if len(self.rollbacks) == self.most:
            raise RuntimeError(f"{found}: a spike after {self.most} rollbacks, and no more allowed")
        back, epoch, state = self._snapshots[-1]
        if len(self._snapshots) > 1:
            self._snapshots.pop()
        if epoch != self._epoch:
            # The epoch's metrics hold the spike, and the copy holds those of another epoch.
            state = {name: v for name, v in state.items() if not name.startswith("metrics.")}
            self.model.reset_metrics()
        write_state(self.model, state, f"the copy of step {back}")
        self.rollbacks.append((done, back))
        logger.warning(
            "%s: back to the weights after %d steps, as if steps %d to %d had not been made; the "
            "batches after them are next (rollback %d of %d)",
            found,
            back,
            back,
            done - 1,
            len(self.rollbacks),
            self.most,
        )


def _named(prefix: str, part):
    """Yields (name, array) of what belongs to x, y or sample_weight."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield from _named(f"{prefix}.{name}", value)
    elif part is not None:
        yield prefix, part
