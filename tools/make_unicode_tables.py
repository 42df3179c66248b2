"""Writes keras_bert/text/unicode14.npz, the Unicode facts that the tokenizer reads.

Usage: python tools/make_unicode_tables.py [OUTPUT]

Needs a Python whose `unicodedata` is Unicode 14.0.0 (CPython 3.11): the tokenizer must give the
same ids on every Python, so the facts are frozen once. A second run gives the same bytes.
"""

import sys
import unicodedata
from pathlib import Path

import numpy as np

from keras_bert.text import unicode_tables as tables

OUTPUT = Path(tables.__file__).with_name("unicode14.npz")
CODE_POINTS = range(0x110000)
CJK = (  # the eight blocks that google-research/bert sets apart (`_is_chinese_char`)
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
ASCII_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def properties(char: str) -> int:
    """Returns the flag bits and, above them, the canonical combining class of one character."""
    code, category = ord(char), unicodedata.category(char)
    # str.lower() turns a sigma into a final one after a cased letter and any case-ignorable
    # characters. Python keeps both properties to itself, but shows them in what it does.
    cased = (char + "Σ").lower().endswith("ς")
    ignorable = not cased and ("a" + char + "Σ").lower().endswith("ς")
    dropped = code in (0, 0xFFFD) or (category in ("Cc", "Cf") and char not in "\t\n\r")
    facts = {
        tables.DROPPED: dropped,
        tables.SPACE: not dropped and char.isspace(),
        tables.IDEOGRAPH: any(first <= code <= last for first, last in CJK),
        tables.PUNCTUATION: char in ASCII_PUNCTUATION or category.startswith("P"),
        tables.MARK: category == "Mn",
        tables.CASED: cased,
        tables.CASE_IGNORABLE: ignorable,
    }
    flags = sum(flag for flag, holds in facts.items() if holds)
    return flags | unicodedata.combining(char) << tables.COMBINING_SHIFT


def decompose(text: str) -> str:
    return unicodedata.normalize("NFD", text)


MAPPINGS = {
    "lower": str.lower,
    "decompose": decompose,
    "lower_decompose": lambda char: decompose(char.lower()),
}


def two_stage(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Splits `values`, one a code point, into blocks and keeps each distinct block once."""
    blocks = values.reshape(-1, tables.BLOCK_SIZE)
    distinct, block_of = np.unique(blocks, axis=0, return_inverse=True)
    return block_of.reshape(-1).astype("uint16"), distinct.reshape(-1)


def build() -> dict[str, np.ndarray]:
    """Computes every array of the file, by name."""
    arrays = {}

    def add(name: str, values: list[int], dtype: str) -> None:
        arrays[f"{name}_blocks"], arrays[f"{name}_values"] = two_stage(np.array(values, dtype))

    add("properties", [properties(chr(code)) for code in CODE_POINTS], "uint16")
    sequences: list[int] = []
    places: dict[str, int] = {}
    for name, mapping in MAPPINGS.items():
        entries = []
        for code in CODE_POINTS:
            replacement = mapping(chr(code))
            if replacement == chr(code):
                entries.append(0)
                continue
            if replacement not in places:
                places[replacement] = len(sequences) << tables.LENGTH_BITS | len(replacement)
                sequences.extend(map(ord, replacement))
            entries.append(places[replacement])
        add(name, entries, "int32")
    arrays["sequences"] = np.array(sequences, "int32")
    return arrays


def main() -> None:
    if unicodedata.unidata_version != tables.UNICODE_VERSION:
        raise SystemExit(
            f"This Python has Unicode {unicodedata.unidata_version}, but the tables are of Unicode "
            f"{tables.UNICODE_VERSION}: run this under CPython 3.11."
        )
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT
    np.savez_compressed(output, **build())
    print(f"{output}: {output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
