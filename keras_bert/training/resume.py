"""Checkpoints of a run, and bitwise identical resumption."""

import hashlib
import json
import logging
import math
import os
import shutil
import signal
import threading
from pathlib import Path

import keras
import safetensors.numpy

from keras_bert.arguments import check_choice, check_count
from keras_bert.atomic import write_folder
from keras_bert.training.pace import workers, writes_files
from keras_bert.training.state import read_state, variables_by_name, write_state

logger = logging.getLogger("keras_bert")

TENSORS, FACTS = "state.safetensors", "state.json"
FORMAT = 1


class Resume(keras.callbacks.Callback):
    """Saves weights, optimizer, schedule, random state and data position; `fit` resumes there.

    Pass it to `fit` of a task. If the folder holds a checkpoint, `fit` restores the newest complete
    one before the first step and runs the remaining steps, with the batches of an uninterrupted
    run. On one CPU device the final weights are bitwise identical (see
    `tf.config.experimental.enable_op_determinism` for GPUs). Each checkpoint is a folder
    `step-NNNNNNNNN` with `state.safetensors` and `state.json`, written atomically.

    On SIGTERM the current step is finished and saved, and the process exits with status 143; except
    if several worker processes train together, as they would stop at different steps.

    Args:
        directory: folder of the checkpoints, created if missing. Several workers must share it.
        every_steps: steps between checkpoints; by default one at the end of every epoch.
        keep: number of newest checkpoints to keep.
        monitor: a metric of the epochs' logs, such as "val_accuracy"; the checkpoint of the best
            epoch is also kept.
        mode: "max" or "min": which value of `monitor` is best.
        on_change: "error" refuses to resume if texts, labels, weights, row count, batch size, seed,
            schedule or preprocessor settings differ from those of the original run; "warn" logs it
            and resumes. Of a dataset only its size and the types of its batches are compared;
            epochs and steps may change.

    Raises:
        ValueError: if an argument is out of range; in `fit`, if a checkpoint belongs to another
            model, or to other data or settings.
    """

    def __init__(
        self,
        directory: str | Path,
        every_steps: int | None = None,
        keep: int = 3,
        monitor: str | None = None,
        mode: str = "max",
        on_change: str = "error",
    ):
        super().__init__()
        if every_steps is not None:
            check_count("every_steps", every_steps)
        check_count("keep", keep)
        check_choice("mode", mode, ("max", "min"))
        check_choice("on_change", on_change, ("error", "warn"))
        self.on_change = on_change
        self.directory = Path(directory)
        self.every_steps, self.keep = every_steps, keep
        self.monitor, self.sign = monitor, 1 if mode == "max" else -1
        self.best, self.best_step = -math.inf, None
        self._arrays, self._facts, self._source = None, None, ""
        self._fingerprint = {}
        self._others = {}
        self._stop_wanted = False
        self._saved = None

    # === Before training ===

    def find(self) -> dict | None:
        """Reads the newest complete checkpoint; damaged ones are logged and skipped.

        Returns:
            The contents of its `state.json`, or None if there is no checkpoint.
        """
        for folder in reversed(self._folders()):
            try:
                facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
                data = (folder / TENSORS).read_bytes()
                if facts["format"] != FORMAT:
                    raise ValueError(f"format {facts['format']}, expected {FORMAT}")
                if hashlib.sha256(data).hexdigest() != facts["sha256"]:
                    raise ValueError(f"{TENSORS} is not what was written ({len(data)} bytes)")
                self._arrays = safetensors.numpy.load(data)
            except (OSError, ValueError, KeyError, safetensors.SafetensorError) as error:
                logger.warning("checkpoint %s is damaged, trying the one before: %s", folder, error)
                continue
            self._source, self._facts = str(folder), facts
            self.best = -math.inf if facts["best"] is None else facts["best"]
            self.best_step = facts["best_step"]
            self._saved = facts["done"]
            logger.info("going on from %s", folder)
            return facts
        return None

    def compare(self, fingerprint: dict) -> None:
        """Compares data and settings, by name, with those of the checkpoint, as `find` read it.

        Raises:
            ValueError: if they differ, and `on_change` is "error".
        """
        self._fingerprint = json.loads(json.dumps(fingerprint))
        if self._facts is None:
            return
        before = self._facts.get("fingerprint") or {}
        changed = [
            name
            for name, value in self._fingerprint.items()
            if name in before and before[name] != value
        ]
        if None in (before.get("schedule"), self._fingerprint.get("schedule")):
            changed = [name for name in changed if name != "schedule"]  # another optimizer
        changed += before.keys() ^ self._fingerprint.keys() if before else ()
        if not changed:
            return
        shown = [_change(name, before.get(name), self._fingerprint.get(name)) for name in changed]
        message = f"{self._source}: the run began with other data or settings: {'; '.join(shown)}"
        if self.on_change == "error":
            raise ValueError(
                f"{message}. Pass what it began with, another folder, or on_change='warn'"
            )
        logger.warning("%s", message)

    def watch(self, callbacks: list) -> None:
        """Registers callbacks with `get_state` and `set_state`, as `restore` needs them."""
        self._others = {
            type(c).__name__: c for c in callbacks if c is not self and hasattr(c, "get_state")
        }

    def restore(self, model) -> None:
        """Restores a model that is ready to train, and the callbacks, as `find` read them.

        Raises:
            ValueError: if the model's shape differs.
        """
        write_state(model, self._arrays, self._source)
        for name, callback in self._others.items():
            if name in self._facts["callbacks"]:
                callback.set_state(self._facts["callbacks"][name])

    # === While training ===

    def on_train_begin(self, logs=None):
        self._stop_wanted = False
        self._old_handler = None
        if workers(self.model) == 1 and threading.current_thread() is threading.main_thread():
            self._old_handler = signal.signal(signal.SIGTERM, self._on_signal)

    def on_train_end(self, logs=None):
        if self._old_handler is not None:
            signal.signal(signal.SIGTERM, self._old_handler)
        self._old_handler = None

    def _on_signal(self, number, frame):
        self._stop_wanted = True

    def on_epoch_begin(self, epoch, logs=None):
        # Keras has just reset the metrics; those of an interrupted epoch continue.
        if self._arrays is not None and not self.model.run.at_epoch_end:
            for name, variable in variables_by_name(self.model).items():
                if name.startswith("metrics."):
                    variable.assign(self._arrays[name])
        self._arrays = None

    def after_step(self, logs):
        run = self.model.run
        due = self.every_steps and run.done // self.every_steps > (
            (self._saved or 0) // self.every_steps
        )
        if self._stop_wanted:
            self.save()
            logger.warning("SIGTERM: saved step %d in %s", run.done, self.directory)
            self.on_train_end()
            raise SystemExit(128 + signal.SIGTERM)
        # The end of an epoch is saved after its validation.
        if due and not run.at_epoch_end:
            self.save()

    def on_epoch_end(self, epoch, logs=None):
        value = (logs or {}).get(self.monitor)
        if self.monitor is not None and value is None:
            raise ValueError(f"monitor={self.monitor!r} is not in the logs: {sorted(logs or {})}")
        if value is not None and self.sign * float(value) > self.best:
            self.best, self.best_step = self.sign * float(value), self.model.run.done
        self.save()

    def save(self) -> None:
        """Writes a checkpoint of the current step, then removes those that are not kept."""
        run = self.model.run
        arrays = read_state(self.model)  # on every worker: reading may involve the others
        self._saved = run.done
        if not writes_files(self.model):
            return
        data = safetensors.numpy.save(arrays)
        facts = {
            "format": FORMAT,
            "done": run.done,
            "steps_per_epoch": run.steps_per_epoch,
            "total": run.total,
            "sha256": hashlib.sha256(data).hexdigest(),
            "best": self.best if math.isfinite(self.best) else None,  # JSON has no infinity
            "best_step": self.best_step,
            "callbacks": {name: c.get_state() for name, c in self._others.items()},
            "fingerprint": self._fingerprint,
        }

        def write(path):
            for name, content in ((TENSORS, data), (FACTS, json.dumps(facts).encode())):
                with open(Path(path) / name, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())

        write_folder(self.directory / f"step-{run.done:09d}", write, (TENSORS, FACTS))
        self._remove_old()

    def _folders(self) -> list[Path]:
        return sorted(p for p in self.directory.glob("step-*") if p.is_dir())

    def _remove_old(self) -> None:
        pinned = f"step-{self.best_step or 0:09d}"
        # Damaged checkpoints of later steps must not displace the complete ones of this run.
        newest = f"step-{self.model.run.done:09d}"
        folders = [folder for folder in self._folders() if folder.name <= newest]
        for folder in folders[: -self.keep]:
            if folder.name != pinned:
                shutil.rmtree(folder)
        for scratch in self.directory.glob(".step-*"):  # left by a run killed while writing
            shutil.rmtree(scratch, ignore_errors=True)


def _change(name: str, before, now) -> str:
    if any(isinstance(value, str) and len(value) == 32 for value in (before, now)):
        return f"other {name}"  # hashes are not readable
    return f"{name} was {before!r:.100}, now {now!r:.100}"
