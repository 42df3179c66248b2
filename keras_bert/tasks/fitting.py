"""A run of `fit` over a source of batches: how long it is, where it begins, where it goes on."""

import hashlib
import logging
import math
import sys

import keras

from keras_bert.text.tokenizer import SETTINGS
from keras_bert.training.automatic_optimizer import start_schedule
from keras_bert.training.callback_list import CallbackList
from keras_bert.training.callbacks import ValidationScores
from keras_bert.training.dataset_sizes import known_size, quiet_about_size
from keras_bert.training.durations import total_steps
from keras_bert.training.position import Position
from keras_bert.training.resume import Resume

logger = logging.getLogger("keras_bert")


def fit_source(
    task,
    source,
    epochs: float | None,
    steps: int | None,
    examples: int | None,
    initial_epoch: int,
    steps_per_epoch: int | None,
    callbacks,
    **kwargs,
) -> keras.callbacks.History:
    """Trains a task.

    Args:
        task: a compiled task.
        source: of the batches, as `keras_bert.data.sources` has them.
        epochs: as `BertTask.fit`.
        steps: as there.
        examples: as there.
        initial_epoch: as there.
        steps_per_epoch: as there.
        callbacks: a list of them, as `scored` gives it; a `Resume` among them says where a stopped
            run goes on.
        **kwargs: as `keras.Model.fit`, batches to validate on among them.

    Raises:
        ValueError: as `BertTask.fit`, if it is not known where the run ends, or what it goes on
            from does not fit.
    """
    resume = next((c for c in callbacks if isinstance(c, Resume)), None)
    _check_shares(task, source)
    found = None if resume is None else resume.find()
    if resume is not None:
        resume.compare(_fingerprint(task, source))
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
            "the run in %s has made %d steps, and this fit asks for %d: nothing is left to train. "
            "Pass more epochs or steps, or another folder",
            resume.directory,
            found["done"],
            total,
        )
    if task._schedule is not None:
        # A run that began without knowing its length goes on with the rate it began with.
        known = total if not found or found["total"] is not None else None
        run = known and known - initial_epoch * (steps_per_epoch or 0)
        start_schedule(task, task._schedule, run)
    done = found["done"] if found else initial_epoch * (steps_per_epoch or 0)
    task.position = Position(steps_per_epoch, done, total)
    if task.position.skip and (
        keras.config.backend() != "tensorflow" or task.steps_per_execution > 1
    ):
        raise ValueError(
            "to resume in the first epoch of a dataset of unknown size, pass steps_per_epoch"
        )
    _share_out_executions(task, steps_per_epoch, done, total)
    # Without a number of steps, Keras finds the end of an epoch where a pass ends.
    batches = source.stream(done) if steps_per_epoch else source.one_pass()
    task._training_source = source
    # Not by the batches to train on if they are an iterator, which can't be looked into.
    task.step.build_for(batches if hasattr(batches, "element_spec") else source.one_pass())
    batches = task.step.with_weight_sums(batches)
    if resume is not None:
        resume.watch(callbacks)
    if found:
        resume.restore(task)
    if steps_per_epoch:
        initial_epoch, epochs = task.position.epoch, math.ceil(total / steps_per_epoch)
    elif total is not None:
        epochs = total  # an epoch has at least one step; the position ends the run
    epochs = math.ceil(epochs)
    callbacks = CallbackList(
        task.position.callbacks(callbacks),
        task,
        kwargs.get("verbose", "auto"),
        epochs,
        steps_per_epoch or known_size(batches),
        add_history=True,
    )
    if kwargs.get("verbose", "auto") != 0 and task.train_function is None:
        # The progress bar begins after the first step, which waits for this.
        message = "tracing and compiling the step: some seconds, on a GPU up to a minute"
        print(message, file=sys.stderr, flush=True)
    with quiet_about_size():
        return keras.Model.fit(
            task,
            task.step.ahead(batches),
            epochs=epochs,
            initial_epoch=initial_epoch,
            steps_per_epoch=steps_per_epoch,
            shuffle=False,  # the batches above are shuffled already
            callbacks=callbacks,
            **kwargs,
        )


def scored(task, callbacks, validation_data) -> list[keras.callbacks.Callback]:
    """The callbacks of `fit`, those first that score answers to validation data.

    Args:
        task: a task.
        callbacks: as `BertTask.fit`.
        validation_data: (x, y) or (x, y, sample_weight) as a user gave them, a dataset, or None.

    Raises:
        ValueError: if there is nothing to score.
    """
    if isinstance(callbacks, keras.callbacks.CallbackList):
        callbacks = callbacks.callbacks
    callbacks = keras.tree.flatten(callbacks or [])
    scoring = [c for c in callbacks if isinstance(c, ValidationScores)]
    rest = [c for c in callbacks if c not in scoring]
    x = validation_data[0] if isinstance(validation_data, tuple | list) else validation_data
    in_memory = x is not None and not hasattr(x, "element_spec")
    if not scoring and in_memory and not isinstance(x, dict) and task.scores_by_default:
        scoring = [ValidationScores()]
    for callback in scoring:
        if callback.data is None:
            if not in_memory:
                raise ValueError(
                    "ValidationScores needs data in memory: pass it (x, y), or give fit lists or "
                    "arrays as validation_data"
                )
            callback.data = tuple(validation_data[:2])
    return scoring + rest


def _fingerprint(task, source) -> dict:
    """What a run that goes on has to have in common with the one that was stopped."""
    facts = source.facts() | {"schedule": task._schedule}
    text_side = task.preprocessor
    if text_side is not None:
        tokenizer = text_side.tokenizer
        facts |= {name: getattr(text_side, name) for name in getattr(text_side, "settings", ())}
        facts |= {name: getattr(tokenizer, name) for name in SETTINGS}
        words = "\n".join(tokenizer.get_vocabulary()).encode()
        facts["vocabulary"] = hashlib.blake2b(words, digest_size=16).hexdigest()
    return facts


def _check_shares(task, source) -> None:
    """Refuses a batch that replicas and micro-batches cannot share evenly.

    A user's dataset is filled up instead, as its batches may differ.
    """
    shares = task.step.replica_count * task.accumulation_steps
    size = getattr(source, "batch_size", shares)
    if size % shares:
        raise ValueError(
            f"batch_size={size} cannot be shared by {task.step.replica_count} replicas x "
            f"{task.accumulation_steps} micro-batches: expected a multiple of {shares}"
        )


def _total_steps(source, steps_per_epoch, epochs, steps, examples) -> int | None:
    """Steps from the first epoch to the end of the run; None if that is not known."""
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


def _share_out_executions(task, *steps: int | None) -> None:
    """Lets executions of several steps end with epochs, as the stream of batches has no end.

    Args:
        task: a compiled task.
        *steps: numbers of steps that the steps of an execution have to divide.
    """
    wanted = task._executions_wanted
    fits = (n for n in range(wanted, 0, -1) if not any((step or 0) % n for step in steps))
    before, task.steps_per_execution = task.steps_per_execution, next(fits)
    if task.steps_per_execution != before:
        task.train_function = task.test_function = task.predict_function = None
    if task.steps_per_execution != wanted:
        logger.warning(
            "steps_per_execution=%d does not divide the %s steps of an epoch: using %d",
            wanted,
            steps[0],
            task.steps_per_execution,
        )
