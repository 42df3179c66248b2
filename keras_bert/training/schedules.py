"""Learning-rate schedules, counted in optimizer updates."""

import math

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_bert")
class WarmupLinear(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to the peak, then falls linearly to zero.

    Update number t (from 0) of N with W of warm-up runs at peak * (t + 1) / W while t < W and at
    peak * (N - t) / (N - W) after. So no update is made at rate zero and the peak is reached. The
    original (google-research/bert `optimization.py`) decays from update 0, so that its rate jumps
    down at the end of the warm-up; that jump is left out here.

    Args:
        peak: the highest rate.
        total_steps: updates N; after them the rate stays zero. None for no decay.
        warmup_steps: updates W of warm-up, less than N.

    Raises:
        ValueError: if the steps do not fit.
    """

    def __init__(self, peak: float, total_steps: int | None, warmup_steps: int = 0):
        if not 0 <= warmup_steps < (total_steps or math.inf):
            raise ValueError(
                f"warmup_steps={warmup_steps}, total_steps={total_steps}: expected "
                "0 <= warmup_steps < total_steps"
            )
        self.peak = peak
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        rise = (step + 1.0) / max(1, self.warmup_steps)
        fall = ops.ones_like(step)
        if self.total_steps is not None:
            fall = (self.total_steps - step) / (self.total_steps - self.warmup_steps)
        rate = ops.where(step < self.warmup_steps, rise, ops.maximum(fall, 0.0))
        return self.peak * rate

    def get_config(self):
        return {
            "peak": self.peak,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
        }
