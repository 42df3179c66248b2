"""Atomic writes of files and folders."""

import fnmatch
import os
import shutil
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path


def write_file(path: str | Path, content: bytes) -> None:
    """Writes a file atomically: a temporary file is synced to disk and renamed to `path`.

    Args:
        path: the file to create or replace; links are followed. Missing parent folders are created.
        content: the whole content.
    """
    path = Path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    # In a temporary folder: mkstemp would create a file that only its owner may read.
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        with open(scratch / "new", "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch / "new", path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def check_writable(path: str | Path) -> None:
    """Raises if nothing can be written at `path`; call it before long work.

    Args:
        path: the file or folder to be written; missing parent folders are created.

    Raises:
        OSError: if the parent folder cannot be created or is not writable.
    """
    path = Path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    os.rmdir(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))


def check_replaceable(path: str | Path, known: Collection[str]) -> None:
    """Raises if `write_folder` would refuse `path`; call it before long work.

    Args:
        path: the folder to create or replace; links are followed.
        known: patterns of the file names at the top of a folder of this kind.

    Raises:
        FileExistsError: if `path` is a file, or a folder with other files.
        OSError: as in `check_writable`.
    """
    check_writable(path)
    path = Path(path).resolve()
    found = [] if not path.exists() else os.listdir(path) if path.is_dir() else [path.name]
    strange = [name for name in found if not any(fnmatch.fnmatch(name, k) for k in known)]
    if strange:
        raise FileExistsError(
            f"{path} is not replaced because it contains {', '.join(sorted(strange)[:5])}; choose "
            "another folder"
        )


def write_folder(path: str | Path, write: Callable[[str], None], known: Collection[str]) -> None:
    """Writes a folder atomically: a temporary folder is filled and then renamed to `path`.

    The old content of `path` stays until then, and is restored if the rename fails.

    Args:
        path: the folder to create or replace; links are followed. Its parent folder must be
            writable.
        write: called with the temporary folder; writes all files into it.
        known: patterns of the file names at the top of a folder of this kind.

    Raises:
        FileExistsError: if `path` is a file, or a folder with other files. It is then left
            unchanged.
    """
    path = Path(path).resolve()
    check_replaceable(path, known)
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    new, old = scratch / "new", scratch / "old"
    try:
        new.mkdir()
        write(str(new))
        if path.exists():
            os.replace(path, old)
        os.replace(new, path)
    finally:
        if old.exists() and not path.exists():
            os.replace(old, path)
        shutil.rmtree(scratch, ignore_errors=True)
