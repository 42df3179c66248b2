"""Atomic writes of files on any file system that TensorFlow supports.

For local files, `keras_bert.atomic` does the same without TensorFlow.
"""

import fnmatch
import os
import uuid
from collections.abc import Iterable


def write_whole(path: str, content: bytes) -> None:
    """Writes a file atomically: to a temporary name, and then renames it."""
    import tensorflow as tf

    temporary = temporary_name(path)
    with tf.io.gfile.GFile(temporary, "wb") as file:
        file.write(content)
    tf.io.gfile.rename(temporary, path, overwrite=True)


def temporary_name(path: str) -> str:
    """A unique name next to `path`, different even for a retry of the same work."""
    return f"{path}.{uuid.uuid4().hex}.new"


def delete(path: str) -> None:
    """Deletes a file or folder, if it is there."""
    import tensorflow as tf

    if tf.io.gfile.isdir(path):
        tf.io.gfile.rmtree(path)
    elif tf.io.gfile.exists(path):
        tf.io.gfile.remove(path)


def claim_folder(
    folder: str, ours: Iterable[str], kind: str, overwrite: bool, first: str
) -> list[str]:
    """The names in a folder, which may not exist; with `overwrite` deletes them, `first` first.

    Raises:
        FileExistsError: if a name matches none of the patterns `ours`, and is not of this kind.
    """
    import tensorflow as tf

    found = tf.io.gfile.listdir(folder) if tf.io.gfile.exists(folder) else []
    found = [name.rstrip("/") for name in found]
    if strange := [n for n in found if not any(fnmatch.fnmatch(n, own) for own in ours)]:
        raise FileExistsError(
            f"{folder} contains {', '.join(sorted(strange)[:5])}, not {kind}; choose another folder"
        )
    if not overwrite:
        return found
    for name in sorted(found, key=lambda name: name != first):
        delete(os.path.join(folder, name))
    return []


def read_whole(path: str) -> bytes:
    """Reads a file."""
    import tensorflow as tf

    with tf.io.gfile.GFile(path, "rb") as file:
        return file.read()
