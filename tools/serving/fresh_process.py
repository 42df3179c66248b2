"""A fresh process with a SavedModel, asked line by line."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

WORKER = Path(__file__).parent / "saved_model_worker.py"


class CheckError(Exception):
    """The check cannot be done."""


class FreshProcess:
    """A process that asks a SavedModel; see saved_model_worker.py."""

    def __init__(self) -> None:
        # In a folder of its own, where nothing lies that it could find by chance.
        self._folder = tempfile.TemporaryDirectory()
        with open(os.path.join(self._folder.name, "stderr"), "wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self._folder.name,
                text=True,
                encoding="utf-8",
            )

    def ask(
        self, request: Mapping[str, Any], progress: Callable[[Any], None] | None = None
    ) -> dict[str, Any]:
        """Sends a request and waits for its reply; `progress` is called with what comes before."""
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            pass  # what it died of is said below
        for line in self._process.stdout:
            reply = json.loads(line)
            if "progress" not in reply:
                return reply
            if progress:
                progress(reply)
        errors = Path(self._folder.name, "stderr").read_text(errors="replace").strip()
        raise CheckError(
            f"the process with the model ended with status {self._process.wait()}:\n"
            + "\n".join(errors.splitlines()[-10:])
        )

    def close(self) -> None:
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        self._process.stdout.close()
        self._process.wait()
        self._folder.cleanup()

    def __enter__(self) -> "FreshProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
