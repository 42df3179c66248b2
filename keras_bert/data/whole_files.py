"""Atomic writes of files on any file system that TensorFlow supports.

For local files, `keras_bert.atomic` does the same without TensorFlow.
"""

import uuid


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


def read_whole(path: str) -> bytes:
    """Reads a file."""
    import tensorflow as tf

    with tf.io.gfile.GFile(path, "rb") as file:
        return file.read()
