"""Training with a time budget."""

from time import monotonic

import keras

from keras_bert.arguments import check_above_zero
from keras_bert.training.pace import workers
from keras_bert.training.schedules import ShareSchedule


class TimeBudget(keras.callbacks.Callback):
    """Stops training after a time; reports the elapsed fraction to a `ShareSchedule`.

        schedule = ShareSchedule(5e-5)
        model.compile(optimizer=AdamW(schedule))
        model.fit(texts, labels, epochs=100, callbacks=[TimeBudget(600, schedule)])

    Time is wall-clock time from the start of training, including compilation and validation. With
    `Resume`, a resumed run includes the time up to the last checkpoint. The step in which the time
    runs out is the last. Keras ends the epoch there; its validation and checkpoint exceed the
    budget. Keras always makes a first step, even if a resumed run has no time left.

    Args:
        seconds: the budget.
        schedule: the schedule of the model's optimizer, or None. Its `share` is set before the
            first step and after each. It counts from the end of the first step, which takes the
            compilation, or there would be no warm-up: 0 until then, and 1 when the time is over.
        until: fraction of the budget at which training stops. Another `fit` may use the rest, with
            a `TimeBudget` that continues from this one's state: `rest.set_state(b.get_state())`.

    Raises:
        ValueError: if `seconds` or `until` is out of range; in `fit`, if the optimizer does not use
            the schedule, or several worker processes train together, since their clocks differ.
    """

    def __init__(self, seconds: float, schedule: ShareSchedule | None = None, until: float = 1.0):
        super().__init__()
        check_above_zero("seconds", seconds)
        check_above_zero("until", until, most=1)
        self.seconds, self.until = seconds, until
        self.schedule = schedule
        self._before, self._begin = 0.0, None
        self._first: float | None = None  # elapsed at the end of the run's first step
        self._restored: dict = {}

    def elapsed(self) -> float:
        """Seconds of the run so far, including those before a resume."""
        return self._before + (0.0 if self._begin is None else monotonic() - self._begin)

    def get_state(self) -> dict:
        """The state that `Resume` saves."""
        return {"elapsed": self.elapsed(), "first": self._first}

    def set_state(self, state: dict) -> None:
        """Continues, in the next `fit`, from the state of `get_state`.

        Args:
            state: a dict with `elapsed` and `first`, seconds in all and until the end of the first
                step.
        """
        self._restored = state

    def on_train_begin(self, logs=None):
        if workers(self.model) > 1:
            raise ValueError(
                "TimeBudget does not work with several worker processes, which would stop at "
                "different steps: expected one process"
            )
        if self.schedule is not None:
            self._check_schedule()
        self._before, self._first = self._restored.get("elapsed", 0.0), self._restored.get("first")
        self._restored = {}
        self._begin = monotonic()
        self._report()

    def after_step(self, logs):
        if self._first is None:
            self._first = self.elapsed()
        if self._report() >= self.until * self.seconds:
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        self._before, self._begin = self.elapsed(), None

    def _report(self) -> float:
        elapsed = self.elapsed()
        if self.schedule is not None:
            first = elapsed if self._first is None else self._first
            rest = self.seconds - first
            share = (elapsed - first) / rest if rest > 0 else 1.0
            self.schedule.share.assign(min(1.0, share))
        return elapsed

    def _check_schedule(self) -> None:
        """Checks by the rate that the optimizer uses the schedule, which else has no effect.

        Checked half-way, since all schedules of this kind start alike.
        """
        if keras.config.backend() == "jax":
            raise ValueError(
                "a schedule of time does not work on JAX, whose compiled step keeps the first "
                "share: expected another backend, or schedule=None"
            )
        self.schedule.share.assign(0.5)
        rates = (self.model.optimizer.learning_rate, self.schedule(0))
        found, expected = (float(keras.ops.convert_to_numpy(rate)) for rate in rates)
        if abs(found - expected) > 1e-5 * expected:
            raise ValueError(
                f"the optimizer does not run by the schedule that TimeBudget got: its rate is "
                f"{found:g}, expected {expected:g}. Compile with optimizer=AdamW(schedule)"
            )
