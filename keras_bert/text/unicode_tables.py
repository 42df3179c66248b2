"""The tokenizer's Unicode tables, read from `unicode14.npz`. NumPy only.

They are those of Unicode 14.0 (Python 3.11), frozen in that file by
`tools/make_unicode_tables.py`, so ids depend on neither the Python nor the ICU version. A table
has two stages, code point -> block -> value, since many blocks of 128 code points are equal.
"""

import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np

UNICODE_VERSION = "14.0.0"
BLOCK_BITS = 7
BLOCK_SIZE = 1 << BLOCK_BITS

# Bits of a value of `properties`; the canonical combining class is above them.
DROPPED = 1  # U+0000, U+FFFD, categories Cc and Cf, but not tab, LF, CR
SPACE = 2  # what str.split() splits on
IDEOGRAPH = 4  # in one of the CJK blocks that BERT separates, each character a word
PUNCTUATION = 8  # ASCII except letters, digits and space; categories P*
MARK = 16  # category Mn, which stripping accents removes
CASED = 32  # makes a sigma after it final (and is not case-ignorable)
CASE_IGNORABLE = 64  # skipped when a sigma looks for a cased letter
COMBINING_SHIFT = 8

# A value of a mapping is 0 (the character is unchanged) or `place << LENGTH_BITS | length`: the
# replacement's place and length in `sequences`.
LENGTH_BITS = 3


class Table(NamedTuple):
    """One value for each code point: `values[blocks[code >> 7] << 7 | code & 127]`."""

    blocks: np.ndarray  # [0x110000 / 128] int32
    values: np.ndarray  # [distinct blocks * 128] int32


class UnicodeTables(NamedTuple):
    """The tables for one setting of lower-casing and accent stripping."""

    properties: Table
    mapping: Table | None  # None: no character changes
    sequences: np.ndarray  # [N] int32, the concatenated replacements


@functools.cache
def load_tables(lowercase: bool, decompose: bool) -> UnicodeTables:
    """Reads the tables for one setting, all int32.

    The mapping lower-cases as `str.lower` does, and decomposes canonically (NFD); except for the
    final sigma and the order of marks, which depend on their neighbours.
    """
    name = "_".join(["lower"] * lowercase + ["decompose"] * decompose)
    with np.load(Path(__file__).with_name("unicode14.npz")) as file:

        def table(key: str) -> Table:
            return Table(*(file[f"{key}_{part}"].astype("int32") for part in Table._fields))

        return UnicodeTables(
            properties=table("properties"),
            mapping=table(name) if name else None,
            sequences=file["sequences"],
        )
