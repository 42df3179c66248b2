"""The vocabulary file: one token per line; line numbers are ids."""

import codecs
import os
import re
from collections.abc import Sequence
from pathlib import Path

from keras_bert.atomic import write_file

UNKNOWN = "[UNK]"
MOST_TOKENS = 10_000_000  # far above any vocabulary
_SHOWN = 40  # characters of an invalid line shown in an error
_UNSTORABLE = re.compile("\\A[ \t]|[ \t\r]\\Z|[\n\0\ud800-\udfff]")


def read_vocabulary(path: str | os.PathLike[str]) -> list[str]:
    """Reads a vocabulary file.

    Lines end only with LF or CRLF, because a vocabulary can contain U+2028 and similar characters
    as tokens. A byte order mark, spaces and tabs around a token (as in the original), and blank
    lines at the end are dropped; any other blank line keeps its id but matches no text.
    Duplicates keep their ids.

    Args:
        path: the file, UTF-8.

    Returns:
        The tokens; a token's index is its id.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if the file is not a vocabulary; the message names the file, the line or the
            token's id, and what was expected.
    """
    data = Path(path).read_bytes().removeprefix(codecs.BOM_UTF8)
    if data.count(b"\n") > MOST_TOKENS:
        raise ValueError(f"{path} has more than {MOST_TOKENS:,} lines; expected one token per line")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}, line {line}: expected UTF-8 text, one token per line, but found the byte "
            f"0x{data[error.start]:02x} ({error.reason})"
        ) from error
    lines = [line.removesuffix("\r").strip(" \t") for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    check_vocabulary(lines, path)
    return lines


def check_vocabulary(
    tokens: Sequence[str],
    source: str | os.PathLike[str] | None = None,
    required: Sequence[str] = (UNKNOWN,),
) -> None:
    """Raises a ValueError unless `tokens`, in the order of their ids, can be a vocabulary.

    `source` is their origin, for the message; None for a list passed by the caller. Of `required`
    tokens, each must be present.
    """
    name = "the vocabulary list" if source is None else str(source)
    if not tokens:
        raise ValueError(f"{name}: expected one token per line, but it is empty")
    for index, token in enumerate(tokens):
        # A text file cannot store others: the ids of a saved vocabulary would differ.
        if (
            not isinstance(token, str)
            or _UNSTORABLE.search(token)
            or (not index and token.startswith("\ufeff"))
        ):
            raise ValueError(
                f"{name}, token {index}: expected a string without a line end, NUL, unpaired "
                f"surrogate, byte order mark, or spaces or tabs around it, got {token!r:.{_SHOWN}}"
            )
    if not tokens[-1]:
        raise ValueError(f"{name}: expected a token in the last place, got ''")
    present = set(tokens)
    missing = [token for token in required if token not in present]
    if missing:
        shown = repr(tokens[0][:_SHOWN])
        hint = " This looks like JSON." if tokens[0].startswith(("{", '["')) else ""
        raise ValueError(
            f"{name}: expected a vocabulary with {' '.join(required)}, one token per line, but "
            f"{' and '.join(missing)} is on none of its {len(tokens)} lines; line 1 is {shown}."
            f"{hint}"
        )


def write_vocabulary(path: str | os.PathLike[str], tokens: Sequence[str]) -> None:
    """Writes a vocabulary file, UTF-8 with LF, that `read_vocabulary` reads with the same ids.

    The file is written atomically.
    """
    write_file(path, "".join(f"{token}\n" for token in tokens).encode("utf-8"))
