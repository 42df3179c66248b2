"""Runs of our Beam pipelines: on threads of this machine by default, with progress."""

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from keras_bert.arguments import needed

PROGRESS_SECONDS = 5.0
MOST_THREADS = 4  # more take memory with little gain, because of Python's GIL


def import_beam(user: str, extra: str) -> Any:
    """Imports Apache Beam for a function; its ImportError names the extra that installs it."""
    logging_disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)  # of Google Cloud's clients, which only its runner needs
    try:
        with needed(user, "Apache Beam", f"'keras3-bert[{extra}]'"):
            import apache_beam
            import apache_beam.options.pipeline_options
    finally:
        logging.disable(logging_disabled)
    return apache_beam


def pipeline_options(beam: Any, workers: int | None, beam_options: Sequence[str]) -> Any:
    """Options of a pipeline, by default for the runner in this process.

    `workers` are threads on this machine, None for one per core, up to 4. The options of Beam come
    last and so replace ours.
    """
    workers = workers or min(os.cpu_count() or 1, MOST_THREADS)
    # DirectRunner runs batch jobs with FnApiRunner, unless it can fetch another runner from
    # the network.
    return beam.options.pipeline_options.PipelineOptions(
        [
            "--runner=FnApiRunner",
            f"--direct_num_workers={workers}",
            f"--direct_running_mode={'multi_threading' if workers > 1 else 'in_memory'}",
            *beam_options,
        ]
    )


@contextlib.contextmanager
def progress(state: Callable[[], str], verbose: bool) -> Iterator[None]:
    """Prints the state of a run to the standard error every few seconds, if it has changed.

    `state` reads it from the files of the run, so that it works for any runner.
    """
    if not verbose:
        yield
        return
    end = threading.Event()

    def watch() -> None:
        said = ""
        while not end.wait(PROGRESS_SECONDS):
            line = state()
            if line != said:
                print(line, file=sys.stderr, flush=True)
            said = line

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
