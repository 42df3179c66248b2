"""Folders that are written whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def write_folder(path: str | Path, write: Callable[[str], None]) -> None:
    """Fills a folder beside `path` and puts it in place when it is whole.

    What lay at `path` stays until then, so that a failure leaves the old preset or none, never
    half of one.

    Args:
        path: the folder to make or replace.
        write: writes all files into the folder that it is given.

    Raises:
        FileExistsError: if `path` is a file, or a folder that is not a preset of ours.
    """
    path = Path(path)
    if path.exists() and any(path.iterdir() if path.is_dir() else [path]):
        if not (path / "config.json").is_file() and not (path / "saved_model.pb").is_file():
            raise FileExistsError(
                f"{path} exists and is neither a preset nor a SavedModel; choose another folder"
            )
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        new = scratch / "new"
        new.mkdir()
        write(str(new))
        if path.exists():
            os.replace(path, scratch / "old")
        os.replace(new, path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
