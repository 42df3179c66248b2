"""Folders of runs: what `keras-bert train` writes, and the other commands read.

run.json        kind of task, columns, settings and data of the run
metrics.json    scores on the held-out rows, by epoch and of the weights that are kept
preset/         the trained model, for `from_preset`, `keras-bert serve` and the others
report/         a page on the errors, and its pictures
log.jsonl       losses and metrics of each epoch
checkpoints/    the state of an unfinished run, for --resume
"""

import functools
import json
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keras_bert_cli.columns import Columns

RUN, METRICS, PRESET, CHECKPOINTS = "run.json", "metrics.json", "preset", "checkpoints"
FORMAT = 1


def write(path: Path, value: dict[str, Any]) -> None:
    """Writes a JSON file atomically."""
    from keras_bert.atomic import write_file

    write_file(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def check_output(output: Path, resume: bool) -> None:
    """Checks the folder of a new run, or of one to go on with.

    Raises:
        FileExistsError: if it holds something, and `resume` is False; or a finished run.
    """
    if output.is_dir() and any(output.iterdir()) and not resume:
        raise FileExistsError(
            f"{output} is there already: go on with it by --resume, or choose another --output"
        )
    if output.exists() and not output.is_dir():
        raise FileExistsError(f"{output} is a file: choose another --output")
    if resume and (output / PRESET).is_dir():
        raise FileExistsError(f"{output} holds a finished run: choose another --output")


@contextmanager
def saved_on_interrupt():
    """Turns Ctrl-C into SIGTERM, on which `Resume` finishes the step and saves it."""
    before = signal.signal(signal.SIGINT, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Run:
    """A finished run.

    Args:
        path: its folder, or a preset of a task, which then has no columns.

    Raises:
        ValueError: if the folder is neither, or the run is unfinished.
    """

    def __init__(self, path: str):
        from keras_bert.data.rows import parse_json

        folder = Path(path)
        self.folder, self.facts = folder, {}
        if (folder / RUN).is_file():
            self.facts = parse_json((folder / RUN).read_text("utf-8"), folder / RUN)
            found = self.facts.get("format") if isinstance(self.facts, dict) else None
            if found != FORMAT:
                raise ValueError(f"{folder / RUN}: format {found!r}, expected {FORMAT}")
            if not (folder / PRESET).is_dir():
                raise ValueError(f"{folder}: an unfinished run: go on with it by train --resume")
            self.preset = str(folder / PRESET)
        else:
            self.preset = path
        self._kind = self.facts.get("kind")

    @property
    def kind(self) -> str:
        """The name of the kind of task, in `keras_bert_cli.kinds.KINDS`."""
        if self._kind is None:
            self._kind = self._kind_of(self.model)
        return self._kind

    def _kind_of(self, model) -> str:
        from keras_bert_cli.kinds import KINDS

        name, problem = type(model).__name__, getattr(model, "problem", None)
        for key, kind in KINDS.items():
            if kind.task == name and problem in (None, getattr(kind, "problem", None)):
                return key
        raise ValueError(f"{self.preset}: a {name}: expected a task of {', '.join(KINDS)}")

    @property
    def columns(self) -> Columns | None:
        """The columns that the run was trained on."""
        found = self.facts.get("columns")
        return found and Columns(tuple(found["texts"]), tuple(found["labels"]))

    @functools.cached_property
    def model(self):
        """The trained model."""
        from keras_bert.tasks import BertTask

        return BertTask.from_preset(self.preset)
