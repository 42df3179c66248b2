"""The vocabulary file: one token a line, and the line's number is the token's id."""

import codecs
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

UNKNOWN = "[UNK]"
MOST_TOKENS = 10_000_000  # of a word table; far above any vocabulary
_SHOWN = 40  # characters of a bad line that an error shows


def read_vocabulary(path: str | os.PathLike[str]) -> list[str]:
    """Reads a vocabulary file.

    Lines end with LF or CRLF and nothing else, since a vocabulary may hold U+2028 and its like as
    tokens. A byte order mark, and spaces and tabs around a token, are dropped (the original strips
    them too), as are blank lines at the end; a blank line further up holds its id but matches no
    text. Doubles keep their rows.

    Args:
        path: the file, UTF-8.

    Returns:
        The tokens; a token's index is its id.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not a vocabulary; the message names the file, the line and what
            was expected there.
    """
    data = Path(path).read_bytes().removeprefix(codecs.BOM_UTF8)
    if data.count(b"\n") > MOST_TOKENS:
        raise ValueError(f"{path} has more than {MOST_TOKENS:,} lines; expected one token a line")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}, line {line}: expected UTF-8 text, one token a line, but found the byte "
            f"0x{data[error.start]:02x} ({error.reason})."
        ) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ValueError(
            f"{path}, line {line}: expected text, one token a line, but found a NUL character; "
            "this looks like a binary file."
        )
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
    """Raises a ValueError unless `tokens` can serve as a vocabulary.

    Args:
        tokens: the tokens in the order of their ids.
        source: where they come from, for the message; None means a list given by the caller.
        required: tokens that must be there.
    """
    name = "the vocabulary list" if source is None else str(source)
    if not tokens:
        raise ValueError(f"{name}: expected one token a line, but it is empty.")
    for index, token in enumerate(tokens):
        if not isinstance(token, str) or "\n" in token or token.endswith("\r"):
            raise ValueError(
                f"{name}, token {index}: expected a string without a line end, got {token!r}."
            )
        # A file of lines can't hold these: the ids of a saved vocabulary would be others.
        if token != token.strip(" \t"):
            raise ValueError(
                f"{name}, token {index}: expected no spaces or tabs around a token, got {token!r}."
            )
        if "\0" in token or any("\ud800" <= c <= "\udfff" for c in token):
            raise ValueError(f"{name}, token {index}: expected text, got {token!r}.")
    if tokens[0].startswith("\ufeff"):
        raise ValueError(f"{name}, token 0: expected no byte order mark, got {tokens[0]!r}.")
    if not tokens[-1]:
        raise ValueError(f"{name}: expected a token in the last place, got ''.")
    present = set(tokens)
    missing = [token for token in required if token not in present]
    if missing:
        shown = repr(tokens[0][:_SHOWN])
        hint = " This looks like JSON." if tokens[0].startswith(("{", '["')) else ""
        raise ValueError(
            f"{name}: expected a vocabulary that holds {' '.join(required)}, one token a line, but "
            f"{' and '.join(missing)} is on none of its {len(tokens)} lines; line 1 is {shown}."
            f"{hint}"
        )


def write_vocabulary(path: str | os.PathLike[str], tokens: Sequence[str]) -> None:
    """Writes a vocabulary file, UTF-8 with LF, that `read_vocabulary` reads back to the same ids.

    The file appears whole or not at all: it is written beside its place, then moved there.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with open(handle, "wb") as file:
            file.write("".join(f"{token}\n" for token in tokens).encode("utf-8"))
        os.chmod(temporary, 0o644)  # mkstemp's own mode shuts other users out
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
