"""Learning-rate schedules, in optimizer updates or in fractions of a time budget."""

import math

import keras
from keras import ops

from keras_bert.arguments import check_choice, check_number

DECAYS = ("linear", "polynomial", "cosine", "constant")


def decay_factor(
    share, decay: str = "linear", power: float = 1.0, end: float = 0.0, hold: float = 0.0
):
    """The shape of a decay from 1 to `end`, at a completed `share` of it, clipped to 0 to 1.

    "linear" is 1 - share; "polynomial" (1 - share)^power; "cosine" (1 + cos(pi * share)) / 2
    (Loshchilov and Hutter 2017, without restarts); each from 1 to `end` instead of 0; "constant" 1.
    The decay begins at the fraction `hold`; with a linear decay this is the trapezoid schedule.
    """
    share = ops.clip((ops.cast(share, "float32") - hold) / (1.0 - hold), 0.0, 1.0)
    if decay == "constant":
        return ops.ones_like(share)
    if decay == "cosine":
        left = (1.0 + ops.cos(math.pi * share)) / 2.0
    else:
        left = 1.0 - share
    if decay == "polynomial":
        left = left**power
    return end + (1.0 - end) * left


def _adjustable(value, name: str) -> keras.Variable:
    settings = {"trainable": False, "aggregation": "only_first_replica", "name": name}
    return keras.Variable(value, dtype="float32", **settings)


class _Curve(keras.optimizers.schedules.LearningRateSchedule):
    """A peak, and the settings of the decay after it."""

    def __init__(self, peak, decay, power, end, hold):
        check_number("peak", peak)
        check_choice("decay", decay, DECAYS)
        if not 0 < power < math.inf or (power != 1 and decay != "polynomial"):
            raise ValueError(
                f"power={power} with decay={decay!r}: expected a power above 0, other than 1 only "
                "for a polynomial decay"
            )
        for name, value, within in (("end", end, 0 <= end <= 1), ("hold", hold, 0 <= hold < 1)):
            if not within or (value and decay == "constant"):
                raise ValueError(
                    f"{name}={value} with decay={decay!r}: expected a share from 0 to "
                    f"{'1' if name == 'end' else 'below 1'}, and 0 for a constant rate"
                )
        self.peak, self.decay, self.power, self.end, self.hold = peak, decay, power, end, hold

    def fall(self, share):
        """`decay_factor` by these settings."""
        return decay_factor(share, self.decay, self.power, self.end, self.hold)

    def get_config(self):
        names = ("peak", "decay", "power", "end", "hold")
        return {name: getattr(self, name) for name in names}


@keras.saving.register_keras_serializable(package="keras_bert")
class WarmupDecay(_Curve):
    """Linear warm-up to the peak, then decay.

    Update number t (from 0) of N with W of warm-up runs at peak * (t + 1) / W while t < W, and at
    peak * decay_factor((t - W) / (N - W)) after, linear: peak * (N - t) / (N - W). No update is
    made at rate zero, and there is no drop at the peak.

    The original (google-research/bert `optimization.py`, create_optimizer) decays from update 0,
    peak * (1 - t / N)^power, and runs at peak * t / W instead while t < W. Its first update has no
    effect, and its rate drops at t = W. `original=True` selects this schedule.

    Args:
        peak: the highest rate.
        total_steps: updates N; afterwards the rate stays at its final value. None for no decay.
        warmup_steps: updates W of warm-up, less than N.
        decay: "linear", "polynomial", "cosine" or "constant".
        power: exponent of a polynomial decay.
        end: final rate as a fraction of the peak.
        original: whether to use the original schedule; linear or polynomial only.
        hold: fraction of the updates after the warm-up that run at the peak, before the decay: 0.8
            with a linear decay is a trapezoid.

    Attributes:
        variables: the variable that holds peak, length and warm-up after `make_adjustable`; empty
            before it, where they are constants of a traced function.

    Raises:
        ValueError: if the settings are inconsistent.
    """

    def __init__(
        self,
        peak: float,
        total_steps: int | None,
        warmup_steps: int = 0,
        decay: str = "linear",
        power: float = 1.0,
        end: float = 0.0,
        original: bool = False,
        hold: float = 0.0,
    ):
        super().__init__(peak, decay, power, end, hold)
        if not 0 <= warmup_steps < (math.inf if total_steps is None else total_steps):
            raise ValueError(
                f"warmup_steps={warmup_steps}, total_steps={total_steps}: expected "
                "0 <= warmup_steps < total_steps"
            )
        if original and (total_steps is None or decay not in ("linear", "polynomial")):
            raise ValueError(
                f"original=True with decay={decay!r}, total_steps={total_steps}: expected a "
                "linear or polynomial decay over a number of steps"
            )
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps
        self.original = original
        self.variables = []

    def make_adjustable(self) -> None:
        """Moves the numbers of the schedule to a variable; call it in the strategy's scope."""
        self.variables = [_adjustable(self._numbers(), "schedule")]

    def adjust(self, other: "WarmupDecay") -> None:
        """Takes over peak, length and warm-up of another schedule.

        Functions that were traced with this schedule follow, provided that it is adjustable.

        Args:
            other: a schedule with the same `shape`.
        """
        self.peak, self.total_steps = other.peak, other.total_steps
        self.warmup_steps = other.warmup_steps
        for variable in self.variables:
            variable.assign(self._numbers())

    @property
    def shape(self) -> dict:
        """The settings that `adjust` does not change."""
        numbers = ("peak", "total_steps", "warmup_steps")
        return {name: value for name, value in self.get_config().items() if name not in numbers}

    def __call__(self, step):
        step = ops.cast(step, "float32")
        numbers = self._numbers()
        if self.variables:
            numbers = ops.unstack(ops.convert_to_tensor(self.variables[0]), len(numbers))
        peak, warmup_steps, rise_per_step, begin, share_per_step = numbers
        rise = (step + (0.0 if self.original else 1.0)) * rise_per_step
        share = (step - begin) * share_per_step
        return peak * ops.where(step < warmup_steps, rise, self.fall(share))

    def _numbers(self) -> list[float]:
        """Peak, steps of warm-up, rise per step, first step of the decay, its share per step."""
        begin = 0 if self.original else self.warmup_steps
        share = 0 if self.total_steps is None else 1 / (self.total_steps - begin)
        rise = 1 / max(1, self.warmup_steps)
        return [float(n) for n in (self.peak, self.warmup_steps, rise, begin, share)]

    def get_config(self):
        return super().get_config() | {
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
            "original": self.original,
        }


@keras.saving.register_keras_serializable(package="keras_bert")
class ShareSchedule(_Curve):
    """`WarmupDecay` for a run with a time budget: a function of the elapsed fraction.

    The fraction is held in the variable `share`, from 0 to 1, which a callback has to set; the
    number of updates has no influence. At share s with warm-up w the rate is peak * s / w while s <
    w, but at least peak / 1000, so that updates before the first report are not lost; after that
    peak * decay_factor((s - w) / (1 - w)).

    Args:
        peak: the highest rate.
        warmup: fraction of the run that is warm-up, less than 1.
        decay: "linear", "polynomial", "cosine" or "constant".
        power: exponent of a polynomial decay.
        end: final rate as a fraction of the peak.
        hold: fraction of the run after the warm-up at the peak, before the decay.

    Attributes:
        share: float32 scalar variable, 0 at first. It is a state of the run, not a setting: it is
            not in `get_config`.
        variables: a list of it.

    Raises:
        ValueError: if the settings are inconsistent.
    """

    def __init__(
        self,
        peak: float,
        warmup: float = 0.1,
        decay: str = "linear",
        power: float = 1.0,
        end: float = 0.0,
        hold: float = 0.0,
    ):
        super().__init__(peak, decay, power, end, hold)
        check_number("warmup", warmup, below=1)
        self.warmup = warmup
        self.share = _adjustable(0.0, "share")
        self.variables = [self.share]

    def __call__(self, step):
        share = ops.convert_to_tensor(self.share)
        fall = self.fall((share - self.warmup) / (1.0 - self.warmup))
        if not self.warmup:
            return self.peak * fall
        rise = ops.maximum(share / self.warmup, 1e-3)
        return self.peak * ops.where(share < self.warmup, rise, fall)

    def get_config(self):
        return super().get_config() | {"warmup": self.warmup}
