"""Files and folders that are written whole or not at all."""

import fnmatch
import os
import shutil
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path


def write_file(path: str | Path, content: bytes) -> None:
    """Fills a file beside `path` and puts it in place when it is whole and on the disk.

    Args:
        path: the file to make or replace; links are followed. Its folder is made if need be.
        content: all of it.
    """
    path = Path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    # In a folder of its own: mkstemp would make a file that nobody else may read.
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
    """Raises if nothing can be written at `path`: for work that is long.

    Args:
        path: the file or folder to make; the folder above it is made if need be.

    Raises:
        OSError: if the folder above it can't be made, or nothing can be made in it.
    """
    path = Path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    os.rmdir(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))


def check_replaceable(path: str | Path, known: Collection[str]) -> None:
    """Raises if `write_folder` would refuse `path`: for work that is long.

    Args:
        path: the folder to make or replace; links are followed.
        known: patterns of the file names that a folder of this kind has at its top.

    Raises:
        FileExistsError: if `path` is a file, or a folder with any other file.
        OSError: as `check_writable`.
    """
    check_writable(path)
    path = Path(path).resolve()
    found = [] if not path.exists() else os.listdir(path) if path.is_dir() else [path.name]
    strange = [name for name in found if not any(fnmatch.fnmatch(name, k) for k in known)]
    if strange:
        raise FileExistsError(
            f"{path} is not replaced, for it holds {', '.join(sorted(strange)[:5])}; choose "
            "another folder"
        )


def write_folder(path: str | Path, write: Callable[[str], None], known: Collection[str]) -> None:
    """Fills a folder beside `path` and puts it in place when it is whole.

    What lay at `path` stays until then, and comes back if the last step fails.

    Args:
        path: the folder to make or replace; links are followed. The folder above it must be
            writable.
        write: writes all files into the folder that it is given.
        known: patterns of the file names that a folder of this kind has at its top.

    Raises:
        FileExistsError: if `path` is a file, or a folder with any other file: it is somebody
            else's and stays as it is.
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
