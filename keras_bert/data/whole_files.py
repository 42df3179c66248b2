"""Files of any file system that TensorFlow knows, written whole or not at all.

`keras_bert.atomic` does so for local files, and without TensorFlow.
"""

import uuid


def write_whole(path: str, content: bytes) -> None:
    """Writes a file beside its place and then moves it there."""
    import tensorflow as tf

    temporary = temporary_name(path)
    with tf.io.gfile.GFile(temporary, "wb") as file:
        file.write(content)
    tf.io.gfile.rename(temporary, path, overwrite=True)


def temporary_name(path: str) -> str:
    """A name beside `path` that nobody else takes, not even another try at the same work."""
    return f"{path}.{uuid.uuid4().hex}.new"


def read_whole(path: str) -> bytes:
    """Reads a file."""
    import tensorflow as tf

    with tf.io.gfile.GFile(path, "rb") as file:
        return file.read()
