"""A run of `fit` over a source of batches: its length, its progress, and where it resumes."""

import hashlib
import logging
import math
import sys

import keras

from keras_bert import compile_cache
from keras_bert.data.examples import are_examples, is_dataset
from keras_bert.data.table_rows import Table
from keras_bert.text.tokenizer import SETTINGS
from keras_bert.training.automatic_optimizer import start_schedule
from keras_bert.training.callback_list import CallbackList
from keras_bert.training.callbacks import ValidationScores
from keras_bert.training.dataset_sizes import known_size, quiet_about_size
from keras_bert.training.durations import total_steps
from keras_bert.training.resume import Resume

logger = logging.getLogger("keras_bert")


class Run:
    """A run of `fit`, counted across interruptions: `task.run`, for callbacks.

    Arguments as `BertTask.fit`, whose `class_weight` the source has already. A `Resume` among the
    callbacks, a list as `scored` returns it, defines where an interrupted run resumes.

    Attributes:
        source: the source of batches, see `keras_bert.data.sources`.
        schedule: settings of the automatic optimizer's schedule; None for other optimizers.
        steps_per_epoch: steps per epoch, or None while unknown.
        done: steps completed, including those before this `fit`.
        total: steps after which training ends, or None if only Keras's epochs limit it.
        skip: batches of the first epoch to read without a step. If the size of an epoch is
            unknown, Keras counts it in the first epoch and has to see every batch.

    Raises:
        ValueError: as `BertTask.fit`, if the end of the run is not known, or its data do not match
            the checkpoint that it resumes from.
    """

    def __init__(
        self,
        task,
        source,
        *,
        epochs: float | None = None,
        steps: int | None = None,
        examples: int | None = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        class_weight=None,
        callbacks=(),
    ):
        self.source, self.schedule = source, task.schedule
        self._class_weight = class_weight
        self._task, self._callbacks = task, callbacks
        self._hooks = [c.after_step for c in callbacks if hasattr(c, "after_step")]
        self._resume = next((c for c in callbacks if isinstance(c, Resume)), None)
        # A user's dataset is filled up instead, as its batch sizes may differ.
        shares = task.step.replica_count * task.step.accumulation_steps
        size = getattr(source, "batch_size", shares)
        if size % shares:
            raise ValueError(
                f"batch_size={size} cannot be shared by {task.step.replica_count} replicas x "
                f"{task.step.accumulation_steps} micro-batches: expected a multiple of {shares}"
            )
        self._found = found = None if self._resume is None else self._resume.find()
        if self._resume is not None:
            self._resume.compare(self._fingerprint())
        if source.steps is None and found:
            source.steps = found["steps_per_epoch"]  # counted in the first epoch
        steps_per_epoch = steps_per_epoch or source.steps
        total = _total_steps(source, steps_per_epoch, epochs, steps, examples)
        if getattr(source, "endless", False) and steps_per_epoch is None:
            if total is None:
                raise ValueError("the dataset has no end: pass steps_per_epoch, steps or examples")
            steps_per_epoch = total
        if found and total is not None and found["done"] >= total:
            logger.warning(
                "the run in %s has made %d steps, and this fit asks for %d: nothing is left to "
                "train. Pass more epochs or steps, or another folder",
                self._resume.directory,
                found["done"],
                total,
            )
        self._first = initial_epoch * (steps_per_epoch or 0)
        self.done = found["done"] if found else self._first
        self.steps_per_epoch, self.total = steps_per_epoch, total
        self.skip = 0 if steps_per_epoch else self.done
        one_by_one = keras.config.backend() == "tensorflow" and task.steps_per_execution == 1
        if self.skip and not one_by_one:
            raise ValueError(
                "to resume in the first epoch of a dataset of unknown size, pass steps_per_epoch"
            )
        if steps_per_epoch:
            initial_epoch, epochs = self.epoch, total / steps_per_epoch
        elif total is not None:
            epochs = total  # an epoch has at least one step; the run's length ends it
        self._epochs = {"initial_epoch": initial_epoch, "epochs": math.ceil(epochs)}

    @property
    def epoch(self) -> int:
        """The epoch of the next step."""
        return self.done // self.steps_per_epoch if self.steps_per_epoch else 0

    @property
    def at_epoch_end(self) -> bool:
        """Whether the last completed step was the last of its epoch."""
        return bool(self.steps_per_epoch) and self.done % self.steps_per_epoch == 0

    def fit(self, **kwargs) -> keras.callbacks.History:
        """Trains the task; arguments as `keras.Model.fit`, including batches to validate on.

        Raises:
            ValueError: if a checkpoint to resume from belongs to another model.
        """
        task, source, step = self._task, self.source, self._task.step
        if self.schedule is not None:
            # A run that started without a known length keeps its initial learning rate.
            known = not self._found or self._found["total"] is not None
            length = self.total - self._first if known and self.total else None
            start_schedule(task, self.schedule, length)
        self._share_out_executions()
        # Without a number of steps, Keras ends an epoch where the data end.
        batches = source.stream(self.done) if self.steps_per_epoch else source.one_pass()
        # Not built from the training batches if they are an iterator, which cannot be peeked at.
        step.build_for(batches if is_dataset(batches) else source.one_pass())
        batches = step.divided(batches, source, self.done)
        if self._resume is not None:
            self._resume.watch(self._callbacks)
        if self._found:
            self._resume.restore(task)
        verbose = kwargs.get("verbose", "auto")
        callbacks = CallbackList(
            self._callbacks,
            task,
            verbose,
            self._epochs["epochs"],
            self.steps_per_epoch or known_size(batches),
            run=self,
        )
        if verbose != 0 and task.train_function is None:
            # The progress bar starts after the first step, which waits for this.
            message = "tracing and compiling the step: some seconds, on a GPU up to a minute"
            print(message, file=sys.stderr, flush=True)
        if skips := self.skip > 0:
            train = task.make_train_function()
            task.train_function = self._skipping(train)
        try:
            with quiet_about_size():
                history = keras.Model.fit(
                    task,
                    step.ahead(batches, training=True),
                    **self._epochs,
                    steps_per_epoch=self.steps_per_epoch,
                    shuffle=False,  # the batches above are shuffled already
                    callbacks=callbacks,
                    **kwargs,
                )
        finally:
            if skips:
                task.train_function = train
        compile_cache.keep()
        return history

    def _skipping(self, train):
        """A train function that reads the batches to skip without a step."""

        def skipping(iterator):
            if not self.skip:
                return train(iterator)
            next(iterator)
            return self._task.get_metrics_result()

        return skipping

    def begin_epoch(self) -> int | None:
        """Notes where an epoch begins; returns the steps to its end, or to that of the run."""
        self._partial = not self.at_epoch_end
        if not self.steps_per_epoch:
            return None
        rest = self.steps_per_epoch - self.done % self.steps_per_epoch
        return rest if self.total is None else min(rest, max(self.total - self.done, 1))

    def count(self, logs) -> None:
        """Counts an execution; ends the run, or an epoch that did not start at its first step.

        A method `after_step(logs)` of a callback is called after every execution, in their order.
        Logs are scalars or scalar tensors by name; reading one waits for the device.
        """
        if self.skip:
            self.skip -= 1
            return
        task = self._task
        self.done += task.steps_per_execution
        if self.total is not None and self.done >= self.total:
            task.stop_training = True
        elif self._partial and self.at_epoch_end and not task.stop_training:
            task.stop_training = _CUT
        for hook in self._hooks:
            hook(logs)

    def end_epoch(self, epoch: int) -> None:
        """Counts the steps of an epoch of unknown size, and undoes the stop that ended it."""
        if self.steps_per_epoch is None:
            self.steps_per_epoch = self.done // (epoch + 1)
        if self._task.stop_training is _CUT:
            self._task.stop_training = False

    def _fingerprint(self) -> dict:
        """Everything that a resumed run must have in common with the interrupted one."""
        facts = self.source.facts() | {"schedule": self.schedule}
        if self._class_weight is not None:
            facts["class_weight"] = _plain_weights(self._class_weight)
        return facts | text_settings(self._task)

    def _share_out_executions(self) -> None:
        """Makes executions of several steps end with epochs, since the batches are infinite."""
        task, wanted = self._task, self._task.step.executions_wanted
        lengths = [n for n in (self.steps_per_epoch, self.done, self.total) if n]
        fits = (n for n in range(wanted, 0, -1) if not any(length % n for length in lengths))
        before, task.steps_per_execution = task.steps_per_execution, next(fits)
        if task.steps_per_execution != before:
            task.train_function = task.test_function = task.predict_function = None
        if task.steps_per_execution != wanted:
            logger.warning(
                "steps_per_execution=%d does not divide the %s steps of an epoch: using %d",
                wanted,
                self.steps_per_epoch,
                task.steps_per_execution,
            )


def text_settings(task) -> dict:
    """The settings of preprocessor and tokenizer by name, and a digest of the vocabulary."""
    found = task.preprocessor
    if found is None:
        return {}
    settings = {name: getattr(found, name) for name in getattr(found, "settings", ())}
    settings |= {name: getattr(found.tokenizer, name) for name in SETTINGS}
    words = "\n".join(found.tokenizer.get_vocabulary()).encode()
    return settings | {"vocabulary": hashlib.blake2b(words, digest_size=16).hexdigest()}


def scored(task, callbacks, validation_data) -> list[keras.callbacks.Callback]:
    """The callbacks of `fit`, starting with those that score answers to validation data.

    `validation_data` are (x, y, sample_weight), (x,) of a dataset or a table, or None.
    """
    if isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks = callbacks.callbacks
    callbacks = keras.tree.flatten(callbacks or [])
    scoring = [c for c in callbacks if isinstance(c, ValidationScores)]
    rest = [c for c in callbacks if c not in scoring]
    x, *_ = validation_data or (None,)
    if not scoring and are_examples(x) and task.scores_by_default:
        scoring = [ValidationScores()]
    for callback in scoring:
        if callback.data is None:
            if x is None or is_dataset(x) or isinstance(x, Table):
                raise ValueError(
                    "ValidationScores needs data in memory: pass it (x, y), or give fit lists or "
                    "arrays as validation_data"
                )
            callback.data = tuple(validation_data[:2])
    return scoring + rest


def _plain_weights(given) -> str | dict[str, float]:
    """Class weights of any form for JSON."""
    if isinstance(given, str):
        return given
    pairs = given.items() if hasattr(given, "items") else enumerate(given)
    return {str(name): float(weight) for name, weight in pairs}


def _total_steps(source, steps_per_epoch, epochs, steps, examples) -> int | None:
    """Steps from the first epoch to the end of the run; None if unknown."""
    if epochs is not None and steps is None and examples is None:
        if steps_per_epoch is None:
            return None
        return total_steps(steps_per_epoch, 1, epochs=epochs)
    batch_size = getattr(source, "batch_size", None)
    if examples is not None and batch_size is None:
        raise ValueError("examples= needs rows in memory; for a dataset pass steps=")
    if examples is not None and hasattr(source, "texts_per_step"):  # packed rows
        return math.ceil(examples / source.texts_per_step)
    return total_steps(None, batch_size or 1, steps=steps, epochs=epochs, examples=examples)


# A truthy value for Keras's `stop_training` that distinguishes this stop from any other.
_CUT = object()
