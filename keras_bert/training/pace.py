"""Helpers of callbacks that run every N steps."""

from keras_bert.arguments import check_count


class EverySteps:
    """Tracks when N more steps of a run are done, even if one call makes several steps."""

    def __init__(self, steps: int):
        self.steps = check_count("every_steps", steps)
        self._done = 0

    def start(self, done: int) -> None:
        """Starts a `fit` after `done` steps."""
        self._done = done

    def due(self, done: int) -> bool:
        """Whether a multiple of N was reached since the last call; `done` counts all steps."""
        reached = done // self.steps > self._done // self.steps
        self._done = done
        return reached


def workers(model) -> int:
    """The number of worker processes that train a model together."""
    strategy = getattr(model, "distribute_strategy", None)
    return getattr(getattr(strategy, "extended", None), "_num_workers", 1)


def writes_files(model) -> bool:
    """Whether this process writes what workers that train together need once."""
    strategy = getattr(model, "distribute_strategy", None)
    return strategy is None or strategy.extended.should_checkpoint


def fresh_counters(callback):
    """Resets and returns the counters of a callback's model, when training begins and only then.

    Whichever callback does it last, all of them see the counts of this `fit`.
    """
    counters = getattr(callback.model, "counters", None)
    if counters is None:
        raise ValueError(
            f"{type(callback).__name__} reads the counters of the train step, which "
            f"{type(callback.model).__name__} lacks: expected a task of keras_bert on the "
            "TensorFlow backend"
        )
    counters.reset()
    return counters
